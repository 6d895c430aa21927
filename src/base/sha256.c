// SPDX-License-Identifier: Apache-2.0
// sha256.c — SHA-256 as FIPS 180-4 defines it, in plain C and with x86's SHA instructions.
//
// A message is padded to blocks of 64 bytes: a one bit, zeros, its length in bits. Each block goes through 64 rounds that
// mix it into a state of eight words. Both forms of the rounds give the same bits.
#include "base/sha256.h"

#include <string.h>

#define BLOCK 64

typedef void Rounds(uint32_t state[8], const uint8_t *blocks, size_t count);

// Of the first 64 primes, the first 32 bits behind the point of their cube roots.
static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t load_be(const uint8_t *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void store_be(uint8_t *p, uint32_t v) {
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> (24 - 8 * i));
}

static uint32_t turn(uint32_t x, int by) { return x >> by | x << (32 - by); }

static void rounds_portable(uint32_t state[8], const uint8_t *block, size_t count) {
    for (; count--; block += BLOCK) {
        uint32_t w[64], s[8];
        for (int i = 0; i < 16; i++)
            w[i] = load_be(block + 4 * i);
        for (int i = 16; i < 64; i++) {
            uint32_t a = w[i - 15], b = w[i - 2];
            w[i] = w[i - 16] + (turn(a, 7) ^ turn(a, 18) ^ a >> 3) + w[i - 7] + (turn(b, 17) ^ turn(b, 19) ^ b >> 10);
        }
        memcpy(s, state, sizeof s);
        for (int i = 0; i < 64; i++) {
            uint32_t a = s[0], e = s[4];
            uint32_t t1 = s[7] + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & s[5]) ^ (~e & s[6])) + constants[i] + w[i];
            uint32_t t2 = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));
            memmove(s + 1, s, 7 * sizeof *s);
            s[4] += t1;
            s[0] = t1 + t2;
        }
        for (int i = 0; i < 8; i++)
            state[i] += s[i];
    }
}

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

static bool has_instructions(void) {
    unsigned a, b, c, d;
    return __builtin_cpu_supports("sse4.1") && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b >> 29 & 1);
}

// The instructions keep the state as the words {a, b, e, f} and {c, d, g, h}, do two rounds each and four words of the
// schedule at a time.
__attribute__((target("sha,sse4.1"))) static void rounds_instructions(uint32_t state[8], const uint8_t *block, size_t count) {
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bll, 0x0405060700010203ll);
    __m128i abef = _mm_set_epi32((int)state[0], (int)state[1], (int)state[4], (int)state[5]);
    __m128i cdgh = _mm_set_epi32((int)state[2], (int)state[3], (int)state[6], (int)state[7]);
    for (; count--; block += BLOCK) {
        __m128i w[4], abef_before = abef, cdgh_before = cdgh;
        for (int i = 0; i < 16; i++) {
            if (i < 4) {
                w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(block + 16 * i)), swap);
            } else {
                __m128i last = w[(i + 3) % 4], before = w[(i + 2) % 4];
                __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(w[i % 4], w[(i + 1) % 4]), _mm_alignr_epi8(last, before, 4));
                w[i % 4] = _mm_sha256msg2_epu32(sum, last);
            }
            __m128i k = _mm_add_epi32(w[i % 4], _mm_loadu_si128((const __m128i *)(constants + 4 * i)));
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, k);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(k, 0x0e));
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }
    state[0] = (uint32_t)_mm_extract_epi32(abef, 3), state[1] = (uint32_t)_mm_extract_epi32(abef, 2);
    state[4] = (uint32_t)_mm_extract_epi32(abef, 1), state[5] = (uint32_t)_mm_extract_epi32(abef, 0);
    state[2] = (uint32_t)_mm_extract_epi32(cdgh, 3), state[3] = (uint32_t)_mm_extract_epi32(cdgh, 2);
    state[6] = (uint32_t)_mm_extract_epi32(cdgh, 1), state[7] = (uint32_t)_mm_extract_epi32(cdgh, 0);
}
#endif

static Sha256 hash(Rounds *rounds, const void *bytes, size_t n) {
    // Of the first eight primes, the first 32 bits behind the point of their square roots.
    uint32_t state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    uint8_t tail[2 * BLOCK] = {0};
    size_t rest = n % BLOCK, last = rest + 9 > BLOCK ? 2 : 1;
    rounds(state, bytes, n / BLOCK);
    if (rest)
        memcpy(tail, (const uint8_t *)bytes + n - rest, rest);
    tail[rest] = 0x80;
    store_be(tail + last * BLOCK - 8, (uint32_t)((uint64_t)n >> 29));
    store_be(tail + last * BLOCK - 4, (uint32_t)n << 3);
    rounds(state, tail, last);
    Sha256 h;
    for (int i = 0; i < 8; i++)
        store_be(h.at + 4 * i, state[i]);
    return h;
}

Sha256 sha256_portable(const void *bytes, size_t n) { return hash(rounds_portable, bytes, n); }

Sha256 sha256(const void *bytes, size_t n) {
#if defined(__x86_64__)
    if (has_instructions())
        return hash(rounds_instructions, bytes, n);
#endif
    return hash(rounds_portable, bytes, n);
}

void sha256_print(const Sha256 *h, char out[SHA256_TEXT]) {
    for (int i = 0; i < SHA256_BYTES; i++) {
        out[2 * i] = "0123456789abcdef"[h->at[i] >> 4];
        out[2 * i + 1] = "0123456789abcdef"[h->at[i] & 15];
    }
    out[2 * SHA256_BYTES] = 0;
}
