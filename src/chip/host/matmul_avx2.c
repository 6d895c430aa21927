// SPDX-License-Identifier: Apache-2.0
// matmul_avx2.c — tensor-engine tiles of 4 x 24 with 256-bit vectors.
//
// 12 accumulators, 3 vectors of the panel and one broadcast fill the 16 registers; seven loads feed
// twelve FMAs.
#if defined(__x86_64__)

#include <immintrin.h>

#include "chip/host/matmul.h"

#define TARGET __attribute__((target("avx2,fma,f16c")))
#define V __m256
#define LANES 8
#define ROWS 4
#define VECS 3
#define PAIR_ROWS 2
#define BLOCK ROWS

#define v_zero() _mm256_setzero_ps()
#define v_load(p) _mm256_load_ps(p)
#define v_loadu(p) _mm256_loadu_ps(p)
#define v_storeu(p, x) _mm256_storeu_ps(p, x)
#define v_splat(x) _mm256_set1_ps(x)
#define v_fma(a, b, c) _mm256_fmadd_ps(a, b, c)
#define v_add(a, b) _mm256_add_ps(a, b)
#define v_bits(x) _mm256_castsi256_ps(_mm256_set1_epi32((int)(x)))
#define v_clean(x) _mm256_blendv_ps(x, v_bits(MM_NAN), _mm256_cmp_ps(x, x, _CMP_UNORD_Q))

#include "chip/host/matmul_tile.h"

TILE(wide, 1)
TILE(wide, 2)
TILE(wide, 3)
TILE(narrow, 1)
TILE(narrow, 2)
TILE(narrow, 3)

INLINE __m256 widen_f32(const uint8_t *p) {
    return _mm256_loadu_ps((const float *)p);
}

INLINE __m256 widen_tf32(const uint8_t *p) {
    __m256 x = _mm256_loadu_ps((const float *)p);
    __m256 cut = _mm256_and_ps(x, v_bits(~0x1fffu));
    return _mm256_blendv_ps(cut, v_bits(MM_NAN), _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}

INLINE __m256 widen_bf16(const uint8_t *p) {
    __m256i x = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(x, 16));
}

INLINE __m256 widen_f16(const uint8_t *p) {
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
}

// As in matmul_avx512.c: f8 as the top of an f16, scaled, special codes put right.
INLINE __m256 widen_f8(const uint8_t *p, const int man_bits, const float scale, const int inf_code,
                       const int nan_above) {
    __m128i x = _mm_cvtepu8_epi16(_mm_loadl_epi64((const __m128i *)p));
    __m128i mag16 = _mm_and_si128(x, _mm_set1_epi16(0x7f));
    __m256 f = _mm256_cvtph_ps(_mm_slli_epi16(mag16, 10 - man_bits));
    f = _mm256_mul_ps(f, _mm256_set1_ps(scale));
    __m256i mag = _mm256_cvtepu16_epi32(mag16);
    __m256i sign = _mm256_slli_epi32(_mm256_xor_si256(_mm256_cvtepu16_epi32(x), mag), 24);
    __m256i inf = _mm256_cmpeq_epi32(mag, _mm256_set1_epi32(inf_code));
    __m256i nan = _mm256_cmpgt_epi32(mag, _mm256_set1_epi32(nan_above));
    f = _mm256_blendv_ps(f, v_bits(0x7f800000), _mm256_castsi256_ps(inf));
    f = _mm256_blendv_ps(f, v_bits(MM_NAN), _mm256_castsi256_ps(nan));
    return _mm256_or_ps(f, _mm256_castsi256_ps(sign));
}

#include "chip/host/matmul_widen.h"

const MmKernels mm_avx2 = {
    .rows = ROWS,
    .lanes = LANES,
    .vecs = VECS,
    .block = BLOCK,
    .block_step = BLOCK * ISA_PE_ROWS,
    .fetch_near = true, // 12 KiB
    .wide = {wide_1, wide_2, wide_3},
    .narrow = {narrow_1, narrow_2, narrow_3},
    .thin_wide = thin_wide,
    .dot_wide = dot_wide,
    .thin_bf16 = thin_bf16,
    .widen = widen,
};

#endif
