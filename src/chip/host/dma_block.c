// SPDX-License-Identifier: Apache-2.0
// dma_block.c — transposed copies of 8 x 8 elements: plain loops, and in registers on x86.
//
// In registers a transpose is three rounds of interleaving: pairs of elements, pairs of pairs, and
// pairs of fours. Elements of 16 bytes have nothing to gain.
#include "chip/host/dma_block.h"

#include <assert.h>
#include <string.h>

#define PLAIN(bytes)                                                                               \
    static void plain_##bytes(uint8_t *dst, int64_t dst_pitch, const uint8_t *src,                 \
                              int64_t src_pitch) {                                                 \
        for (int64_t i = 0; i < BLOCK; i++)                                                        \
            for (int64_t j = 0; j < BLOCK; j++)                                                    \
                memcpy(dst + i * dst_pitch + j * (bytes), src + j * src_pitch + i * (bytes),       \
                       (bytes));                                                                   \
    }
PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)

#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx2")))
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif

static TARGET void avx2_1(uint8_t *dst, int64_t dst_pitch, const uint8_t *src, int64_t src_pitch) {
    __m128i r[8];
    UNROLL for (int j = 0; j < 8; j++) r[j] =
        _mm_loadl_epi64((const __m128i *)(src + j * src_pitch));
    __m128i a = _mm_unpacklo_epi8(r[0], r[1]), b = _mm_unpacklo_epi8(r[2], r[3]);
    __m128i c = _mm_unpacklo_epi8(r[4], r[5]), d = _mm_unpacklo_epi8(r[6], r[7]);
    __m128i ab0 = _mm_unpacklo_epi16(a, b), ab1 = _mm_unpackhi_epi16(a, b);
    __m128i cd0 = _mm_unpacklo_epi16(c, d), cd1 = _mm_unpackhi_epi16(c, d);
    __m128i out[4] = {_mm_unpacklo_epi32(ab0, cd0), _mm_unpackhi_epi32(ab0, cd0),
                      _mm_unpacklo_epi32(ab1, cd1), _mm_unpackhi_epi32(ab1, cd1)};
    UNROLL for (int i = 0; i < 4; i++) {
        _mm_storel_epi64((__m128i *)(dst + (2 * i) * dst_pitch), out[i]);
        _mm_storel_epi64((__m128i *)(dst + (2 * i + 1) * dst_pitch),
                         _mm_unpackhi_epi64(out[i], out[i]));
    }
}

static TARGET void avx2_2(uint8_t *dst, int64_t dst_pitch, const uint8_t *src, int64_t src_pitch) {
    __m128i r[8], a[8], b[8];
    UNROLL for (int j = 0; j < 8; j++) r[j] =
        _mm_loadu_si128((const __m128i *)(src + j * src_pitch));
    UNROLL for (int j = 0; j < 4; j++) {
        a[j] = _mm_unpacklo_epi16(r[2 * j], r[2 * j + 1]);     // columns 0..3 of two rows
        a[j + 4] = _mm_unpackhi_epi16(r[2 * j], r[2 * j + 1]); // columns 4..7
    }
    UNROLL for (int h = 0; h < 8; h += 4) {
        UNROLL for (int j = 0; j < 2; j++) {
            b[h + j] = _mm_unpacklo_epi32(a[h + 2 * j], a[h + 2 * j + 1]);
            b[h + j + 2] = _mm_unpackhi_epi32(a[h + 2 * j], a[h + 2 * j + 1]);
        }
    }
    UNROLL for (int i = 0; i < 4; i++) {
        __m128i lo = _mm_unpacklo_epi64(b[2 * i], b[2 * i + 1]);
        __m128i hi = _mm_unpackhi_epi64(b[2 * i], b[2 * i + 1]);
        _mm_storeu_si128((__m128i *)(dst + (2 * i) * dst_pitch), lo);
        _mm_storeu_si128((__m128i *)(dst + (2 * i + 1) * dst_pitch), hi);
    }
}

static TARGET void avx2_4(uint8_t *dst, int64_t dst_pitch, const uint8_t *src, int64_t src_pitch) {
    __m256 r[8], a[8], b[8];
    // Rows j and j + 4 share a register per half, which leaves only steps within 128 bits.
    UNROLL for (int j = 0; j < 4; j++) {
        const float *lo = (const float *)(src + j * src_pitch);
        const float *hi = (const float *)(src + (j + 4) * src_pitch);
        r[j] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(lo)), _mm_loadu_ps(hi), 1);
        r[j + 4] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(lo + 4)),
                                        _mm_loadu_ps(hi + 4), 1);
    }
    UNROLL for (int h = 0; h < 8; h += 4) {
        a[h] = _mm256_unpacklo_ps(r[h], r[h + 1]), a[h + 1] = _mm256_unpackhi_ps(r[h], r[h + 1]);
        a[h + 2] = _mm256_unpacklo_ps(r[h + 2], r[h + 3]);
        a[h + 3] = _mm256_unpackhi_ps(r[h + 2], r[h + 3]);
        b[h] = _mm256_shuffle_ps(a[h], a[h + 2], 0x44),
        b[h + 1] = _mm256_shuffle_ps(a[h], a[h + 2], 0xee);
        b[h + 2] = _mm256_shuffle_ps(a[h + 1], a[h + 3], 0x44);
        b[h + 3] = _mm256_shuffle_ps(a[h + 1], a[h + 3], 0xee);
    }
    UNROLL for (int i = 0; i < 8; i++) _mm256_storeu_ps((float *)(dst + i * dst_pitch), b[i]);
}

static TARGET void avx2_8(uint8_t *dst, int64_t dst_pitch, const uint8_t *src, int64_t src_pitch) {
    for (int i = 0; i < 8; i += 2) { // two rows of dst at a time
        UNROLL for (int j = 0; j < 8; j += 2) {
            __m128i x = _mm_loadu_si128((const __m128i *)(src + j * src_pitch + i * 8));
            __m128i y = _mm_loadu_si128((const __m128i *)(src + (j + 1) * src_pitch + i * 8));
            _mm_storeu_si128((__m128i *)(dst + i * dst_pitch + j * 8), _mm_unpacklo_epi64(x, y));
            _mm_storeu_si128((__m128i *)(dst + (i + 1) * dst_pitch + j * 8),
                             _mm_unpackhi_epi64(x, y));
        }
    }
}
#endif

BlockFn *block_find(HostLevel level, size_t elem_bytes) {
#if defined(__x86_64__)
    if (level >= HOST_AVX2)
        switch (elem_bytes) {
        case 1:
            return avx2_1;
        case 2:
            return avx2_2;
        case 4:
            return avx2_4;
        case 8:
            return avx2_8;
        }
#endif
    (void)level;
    switch (elem_bytes) {
    case 1:
        return plain_1;
    case 2:
        return plain_2;
    case 4:
        return plain_4;
    case 8:
        return plain_8;
    case 16:
        return plain_16;
    }
    assert(!"element size");
    return NULL;
}
