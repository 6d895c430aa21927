// SPDX-License-Identifier: Apache-2.0
// md5.c — MD5 as RFC 1321 defines it.
#include "base/md5.h"

#include <string.h>

#include "base/bytes.h"

static uint32_t turn(uint32_t v, int n) { return v << n | v >> (32 - n); }

// The RFC's constants: whole part of 2^32 |sin(i + 1)|.
static const uint32_t sines[64] = {
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501, 0x698098d8, 0x8b44f7af, 0xffff5bb1,
    0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821, 0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453,
    0xd8a1e681, 0xe7d3fbc8, 0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a, 0xfffa3942,
    0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70, 0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05,
    0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665, 0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d,
    0x85845dd1, 0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391};

static void block(uint32_t state[4], const uint8_t *p) {
    static const int turns[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
    uint32_t word[16], a = state[0], b = state[1], c = state[2], d = state[3];
    for (int i = 0; i < 16; i++)
        word[i] = le_load32(p + 4 * i);
#define ROUND(r, function, index)                                                                  \
    for (int i = 16 * (r); i < 16 * (r) + 16; i++) {                                               \
        uint32_t next = b + turn(a + (function) + sines[i] + word[(index) & 15], turns[r][i & 3]); \
        a = d, d = c, c = b, b = next;                                                             \
    }
    ROUND(0, (b & c) | (~b & d), i)
    ROUND(1, (b & d) | (c & ~d), 5 * i + 1)
    ROUND(2, b ^ c ^ d, 3 * i + 5)
    ROUND(3, c ^ (b | ~d), 7 * i)
#undef ROUND
    state[0] += a, state[1] += b, state[2] += c, state[3] += d;
}

void md5_init(Md5 *m) { *m = (Md5){.state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476}}; }

void md5_add(Md5 *m, const void *bytes, size_t n) {
    const uint8_t *p = bytes;
    size_t have = m->bytes & 63;
    m->bytes += n;
    if (have) {
        size_t more = n < 64 - have ? n : 64 - have;
        memcpy(m->part + have, p, more);
        p += more, n -= more;
        if (have + more < 64)
            return;
        block(m->state, m->part);
    }
    for (; n >= 64; p += 64, n -= 64)
        block(m->state, p);
    memcpy(m->part, p, n);
}

void md5_end(Md5 *m, uint8_t out[MD5_BYTES]) {
    uint8_t tail[72] = {0x80};
    uint64_t bits = m->bytes * 8;
    size_t zeros = (119 - (m->bytes & 63)) & 63; // behind the one bit, up to eight bytes before a block's end
    le_store64(tail + 1 + zeros, bits);
    md5_add(m, tail, zeros + 9);
    for (int i = 0; i < 4; i++)
        le_store32(out + 4 * i, m->state[i]);
}
