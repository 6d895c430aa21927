// SPDX-License-Identifier: Apache-2.0
// matmul_avx512.c — tensor-engine tiles of 8 x 32 with 512-bit vectors.
//
// 16 accumulators of 32 registers: both 128 rows and 512 columns divide evenly, a widened panel
// takes half of a 32 KiB L1, and 16 chains hide the latency of two FMA pipes.
#if defined(__x86_64__)

#include <immintrin.h>

#include "chip/host/matmul.h"

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,f16c")))
#define V __m512
#define LANES 16
#define ROWS 8
#define VECS 2
#define PAIR_ROWS 4
#define BLOCK MM_BLOCK_COLS

#define v_zero() _mm512_setzero_ps()
#define v_load(p) _mm512_load_ps(p)
#define v_loadu(p) _mm512_loadu_ps(p)
#define v_storeu(p, x) _mm512_storeu_ps(p, x)
#define v_splat(x) _mm512_set1_ps(x)
#define v_fma(a, b, c) _mm512_fmadd_ps(a, b, c)
#define v_add(a, b) _mm512_add_ps(a, b)
#define v_bits(x) _mm512_castsi512_ps(_mm512_set1_epi32((int)(x)))
#define v_clean(x) _mm512_mask_mov_ps(x, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), v_bits(MM_NAN))

#include "chip/host/matmul_tile.h"

TILE(wide, 1)
TILE(wide, 2)
TILE(narrow, 1)
TILE(narrow, 2)

INLINE __m512 widen_f32(const uint8_t *p) {
    return _mm512_loadu_ps(p);
}

INLINE __m512 widen_tf32(const uint8_t *p) {
    __m512 x = _mm512_loadu_ps(p);
    __m512 cut = _mm512_and_ps(x, v_bits(~0x1fffu));
    return _mm512_mask_mov_ps(cut, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), v_bits(MM_NAN));
}

INLINE __m512 widen_bf16(const uint8_t *p) {
    __m512i x = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(x, 16));
}

INLINE __m512 widen_f16(const uint8_t *p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}

// f8 as the top of an f16: the same sign, the exponent at the bottom of f16's field, then scaled.
// Exponents that mean infinity or NaN in f8 but not in f16 are put right by code.
INLINE __m512 widen_f8(const uint8_t *p, const int man_bits, const float scale, const int inf_code,
                       const int nan_above) {
    __m512i x = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p));
    __m512i mag = _mm512_and_si512(x, _mm512_set1_epi32(0x7f));
    __m512i sign = _mm512_slli_epi32(_mm512_xor_si512(x, mag), 24);
    __m256i half = _mm512_cvtepi32_epi16(_mm512_slli_epi32(mag, 10 - man_bits));
    __m512 f = _mm512_mul_ps(_mm512_cvtph_ps(half), _mm512_set1_ps(scale));
    f = _mm512_mask_mov_ps(f, _mm512_cmpeq_epi32_mask(mag, _mm512_set1_epi32(inf_code)),
                           v_bits(0x7f800000));
    f = _mm512_mask_mov_ps(f, _mm512_cmpgt_epi32_mask(mag, _mm512_set1_epi32(nan_above)),
                           v_bits(MM_NAN));
    return _mm512_or_ps(f, _mm512_castsi512_ps(sign));
}

#include "chip/host/matmul_widen.h"

const MmKernels mm_avx512 = {
    .rows = ROWS,
    .lanes = LANES,
    .vecs = VECS,
    .block = BLOCK,
    .block_step = MM_BLOCK_FLOATS,
    .fetch_near = false, // 16 KiB; measured: no worse on AMD, and Intel wants L2 at the nearest
    .in_place = true,
    .wide = {wide_1, wide_2},
    .narrow = {narrow_1, narrow_2},
    .thin_wide = thin_wide,
    .dot_wide = dot_wide,
    .thin_bf16 = thin_bf16,
    .widen = widen,
};

#endif
