// SPDX-License-Identifier: Apache-2.0
// gzip.c — a small writer of RFC 1952 files: one deflate block with the fixed codes of RFC 1951.
//
// Repetitions are found by a hash of four bytes whose earlier places are chained, the newest first; the longest of a
// few is taken. Text that repeats itself, as timelines and reports do, becomes about a tenth.
#include "base/gzip.h"

#include <assert.h>
#include <string.h>

#define WINDOW 32768u
#define HASH_BITS 15
#define TRIES 24
#define MATCH_MIN 4u
#define MATCH_MAX 258u

typedef struct Bits {
    Buf *out;
    uint64_t have; // not yet written, the first in the lowest bit
    int n;
} Bits;

static void bits_put(Bits *b, uint32_t v, int n) {
    b->have |= (uint64_t)v << b->n;
    b->n += n;
    for (; b->n >= 8; b->n -= 8, b->have >>= 8)
        put_u8(b->out, (uint8_t)b->have);
}

// Huffman codes go out with their first bit first.
static void code_put(Bits *b, uint32_t code, int n) {
    uint32_t turned = 0;
    for (int i = 0; i < n; i++)
        turned |= (code >> i & 1) << (n - 1 - i);
    bits_put(b, turned, n);
}

static void symbol_put(Bits *b, uint32_t s) { // the fixed code of literals and lengths
    if (s < 144)
        code_put(b, 0x30 + s, 8);
    else if (s < 256)
        code_put(b, 0x190 + s - 144, 9);
    else if (s < 280)
        code_put(b, s - 256, 7);
    else
        code_put(b, 0xc0 + s - 280, 8);
}

static void match_put(Bits *b, uint32_t length, uint32_t distance) {
    static const uint16_t lengths[] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                       31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
    static const uint8_t length_bits[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
    uint32_t k = 28, d = 0;
    while (lengths[k] > length)
        k--;
    symbol_put(b, 257 + k);
    bits_put(b, length - lengths[k], length_bits[k]);
    // Distance codes: two for each number of extra bits.
    uint32_t base = 1, extra = 0;
    while (distance >= base + (1u << extra)) {
        base += 1u << extra;
        d++;
        extra = d < 4 ? 0 : d / 2 - 1;
    }
    code_put(b, d, 5);
    bits_put(b, distance - base, (int)extra);
}

static uint32_t hash_of(const uint8_t *p) {
    uint32_t v = (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
    return v * 2654435761u >> (32 - HASH_BITS);
}

static uint32_t same_bytes(const uint8_t *a, const uint8_t *b, uint32_t most) {
    uint32_t n = 0;
    while (n < most && a[n] == b[n])
        n++;
    return n;
}

static void deflate_put(const uint8_t *bytes, size_t n, Buf *out) {
    // Places of a hash: 1 + the newest, and of each place in the window the one before. 0: none.
    size_t *newest = ARENA_NEWN(out->arena, size_t, 1u << HASH_BITS), *before = ARENA_NEWN(out->arena, size_t, WINDOW);
    Bits b = {.out = out};
    bits_put(&b, 1, 1); // the last block
    bits_put(&b, 1, 2); // fixed codes
    for (size_t i = 0; i < n;) {
        uint32_t length = 0, distance = 0, most = n - i < MATCH_MAX ? (uint32_t)(n - i) : MATCH_MAX;
        size_t at = most >= MATCH_MIN ? newest[hash_of(bytes + i)] : 0;
        for (int tries = TRIES; at && i - (at - 1) <= WINDOW - 1 && tries && length < most; tries--) {
            uint32_t k = same_bytes(bytes + at - 1, bytes + i, most);
            if (k > length)
                length = k, distance = (uint32_t)(i - (at - 1));
            size_t next = before[(at - 1) % WINDOW];
            at = next < at ? next : 0; // an older entry was overwritten
        }
        if (length >= MATCH_MIN)
            match_put(&b, length, distance);
        else
            symbol_put(&b, bytes[i]), length = 1;
        for (; length; length--, i++)
            if (n - i >= MATCH_MIN) {
                uint32_t h = hash_of(bytes + i);
                before[i % WINDOW] = newest[h];
                newest[h] = i + 1;
            }
    }
    symbol_put(&b, 256);
    bits_put(&b, 0, 7); // to a whole byte
}

void gzip_put(const void *bytes, size_t n, Buf *out) {
    static const uint8_t head[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255};
    uint32_t table[256], crc = 0xffffffffu;
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int k = 0; k < 8; k++)
            c = c & 1 ? c >> 1 ^ 0xedb88320u : c >> 1;
        table[i] = c;
    }
    const uint8_t *p = bytes;
    for (size_t i = 0; i < n; i++)
        crc = crc >> 8 ^ table[(crc ^ p[i]) & 0xff];
    buf_put(out, head, sizeof head);
    deflate_put(p, n, out);
    put_u32(out, ~crc);
    put_u32(out, (uint32_t)n);
}
