// SPDX-License-Identifier: Apache-2.0
// avx512.h — a model of the AVX-512, AVX512_BF16 and AMX instructions our kernels use, lane by lane in plain C.
//
// `make levels` includes it before every source: the intrinsics become the functions below, `target` attributes ask for AVX2,
// and host.c offers every level. So the kernels, layouts and plans of all levels are tested on any x86 host with AVX2.
// Only what the hardware itself does is not: that is for hosts that have it. A kernel that uses an
// intrinsic without a row here does not compile in that build.
#ifndef OTRN_TESTS_MODEL_AVX512_H
#define OTRN_TESTS_MODEL_AVX512_H

#include <immintrin.h>
#include <math.h>

#include "tests/model/tiles.h"

#define OTRN_MODEL_LEVELS 1
#define MODEL static inline __attribute__((always_inline, unused))
#define EACH_LANE(n) for (int i = 0; i < (n); i++)

typedef union ModelV {
    __m512 f;
    __m512d d;
    __m512i i;
    float f32[16];
    double f64[8];
    int32_t i32[16];
    uint32_t u32[16];
    uint16_t u16[32];
    uint64_t u64[8];
    uint8_t u8[64];
} ModelV;
typedef union ModelH { // half as wide
    __m256i i;
    uint16_t u16[16];
} ModelH;

#define V_OF(kind, x) ((ModelV){.kind = (x)})

// --- memory ------------------------------------------------------------------------------------------------------
MODEL ModelV model_bytes(const void *p) {
    ModelV r;
    memcpy(&r, p, 64);
    return r;
}
MODEL __m512 m512_loadu_ps(const void *p) { return model_bytes(p).f; }
MODEL __m512d m512_loadu_pd(const void *p) { return model_bytes(p).d; }
MODEL __m512i m512_loadu_si512(const void *p) { return model_bytes(p).i; }
MODEL void m512_storeu_ps(void *p, __m512 x) { memcpy(p, &x, 64); }
MODEL void m512_storeu_pd(void *p, __m512d x) { memcpy(p, &x, 64); }
MODEL void m512_storeu_si512(void *p, __m512i x) { memcpy(p, &x, 64); }
// An address that is not aligned is an error of the hardware too.
MODEL void model_aligned(const void *p) {
    if ((uintptr_t)p & 63)
        __builtin_trap();
}
MODEL __m512 m512_load_ps(const void *p) { return model_aligned(p), model_bytes(p).f; }
MODEL __m512i m512_load_si512(const void *p) { return model_aligned(p), model_bytes(p).i; }
MODEL void m512_store_ps(void *p, __m512 x) { model_aligned(p), memcpy(p, &x, 64); }
MODEL void m512_store_si512(void *p, __m512i x) { model_aligned(p), memcpy(p, &x, 64); }
// Lanes that the mask leaves out are not touched.
MODEL __m512 m512_maskz_loadu_ps(__mmask16 m, const void *p) {
    ModelV r = {.u64 = {0}};
    EACH_LANE(16) if (m >> i & 1) memcpy(&r.u32[i], (const uint8_t *)p + 4 * i, 4);
    return r.f;
}
MODEL __m512i m512_maskz_loadu_epi32(__mmask16 m, const void *p) { return V_OF(f, m512_maskz_loadu_ps(m, p)).i; }
MODEL __m512i m512_maskz_loadu_epi16(__mmask32 m, const void *p) {
    ModelV r = {.u64 = {0}};
    EACH_LANE(32) if (m >> i & 1) memcpy(&r.u16[i], (const uint8_t *)p + 2 * i, 2);
    return r.i;
}
MODEL __m256i m256_maskz_loadu_epi16(__mmask16 m, const void *p) {
    ModelH r = {.u16 = {0}};
    EACH_LANE(16) if (m >> i & 1) memcpy(&r.u16[i], (const uint8_t *)p + 2 * i, 2);
    return r.i;
}
MODEL __m128i m128_maskz_loadu_epi8(__mmask16 m, const void *p) {
    uint8_t r[16] = {0};
    EACH_LANE(16) if (m >> i & 1) r[i] = ((const uint8_t *)p)[i];
    return _mm_loadu_si128((const __m128i *)(const void *)r);
}
MODEL void m512_mask_storeu_ps(void *p, __mmask16 m, __m512 x) {
    ModelV v = V_OF(f, x);
    EACH_LANE(16) if (m >> i & 1) memcpy((uint8_t *)p + 4 * i, &v.u32[i], 4);
}
MODEL void m512_mask_storeu_epi16(void *p, __mmask32 m, __m512i x) {
    ModelV v = V_OF(i, x);
    EACH_LANE(32) if (m >> i & 1) memcpy((uint8_t *)p + 2 * i, &v.u16[i], 2);
}
MODEL void m256_mask_storeu_epi16(void *p, __mmask16 m, __m256i x) {
    ModelH v = {.i = x};
    EACH_LANE(16) if (m >> i & 1) memcpy((uint8_t *)p + 2 * i, &v.u16[i], 2);
}

// --- all lanes alike ----------------------------------------------------------------------------------------------
MODEL __m512 m512_set1_ps(float x) {
    ModelV r;
    EACH_LANE(16) r.f32[i] = x;
    return r.f;
}
MODEL __m512i m512_set1_epi32(int x) {
    ModelV r;
    EACH_LANE(16) r.i32[i] = x;
    return r.i;
}
MODEL __m512i m512_set1_epi16(short x) {
    ModelV r;
    EACH_LANE(32) r.u16[i] = (uint16_t)x;
    return r.i;
}
MODEL __m512i m512_broadcast_i32x4(__m128i x) {
    ModelV r;
    EACH_LANE(4) memcpy(r.u8 + 16 * i, &x, 16);
    return r.i;
}

// --- lane by lane -------------------------------------------------------------------------------------------------
#define MODEL_F2(name, expr)                                                                                           \
    MODEL __m512 m512_##name(__m512 va, __m512 vb) {                                                                   \
        ModelV a = V_OF(f, va), b = V_OF(f, vb), r;                                                                    \
        EACH_LANE(16) r.f32[i] = (expr);                                                                               \
        return r.f;                                                                                                    \
    }
MODEL_F2(add_ps, a.f32[i] + b.f32[i])
MODEL_F2(sub_ps, a.f32[i] - b.f32[i])
MODEL_F2(mul_ps, a.f32[i] * b.f32[i])
MODEL_F2(div_ps, a.f32[i] / b.f32[i])
MODEL_F2(max_ps, a.f32[i] > b.f32[i] ? a.f32[i] : b.f32[i]) // the second when one is NaN
MODEL_F2(min_ps, a.f32[i] < b.f32[i] ? a.f32[i] : b.f32[i])
MODEL_F2(scalef_ps, scalbnf(a.f32[i], isfinite(b.f32[i]) ? (int)floorf(b.f32[i]) : 0))
#define MODEL_I2(name, lane, n, expr)                                                                                  \
    MODEL __m512i m512_##name(__m512i va, __m512i vb) {                                                                \
        ModelV a = V_OF(i, va), b = V_OF(i, vb), r;                                                                    \
        EACH_LANE(n) r.lane[i] = (expr);                                                                               \
        return r.i;                                                                                                    \
    }
MODEL_I2(add_epi32, u32, 16, a.u32[i] + b.u32[i])
MODEL_I2(add_epi16, u16, 32, (uint16_t)(a.u16[i] + b.u16[i]))
MODEL_I2(and_si512, u32, 16, a.u32[i] & b.u32[i])
MODEL_I2(or_si512, u32, 16, a.u32[i] | b.u32[i])
MODEL_I2(xor_si512, u32, 16, a.u32[i] ^ b.u32[i])
#define MODEL_SHIFT(name, lane, op)                                                                                    \
    MODEL __m512i m512_##name(__m512i va, unsigned n) {                                                                \
        ModelV a = V_OF(i, va);                                                                                        \
        EACH_LANE(16) a.lane[i] = a.lane[i] op n;                                                                      \
        return a.i;                                                                                                    \
    }
MODEL_SHIFT(slli_epi32, u32, <<)
MODEL_SHIFT(srli_epi32, u32, >>)
MODEL_SHIFT(srai_epi32, i32, >>)
MODEL __m512 m512_and_ps(__m512 a, __m512 b) { return (__m512)m512_and_si512((__m512i)a, (__m512i)b); }
MODEL __m512 m512_or_ps(__m512 a, __m512 b) { return (__m512)m512_or_si512((__m512i)a, (__m512i)b); }
MODEL __m512 m512_fmadd_ps(__m512 va, __m512 vb, __m512 vc) {
    ModelV a = V_OF(f, va), b = V_OF(f, vb), c = V_OF(f, vc), r;
    EACH_LANE(16) r.f32[i] = model_fma(a.f32[i], b.f32[i], c.f32[i]);
    return r.f;
}
MODEL __m512 m512_sqrt_ps(__m512 va) {
    ModelV a = V_OF(f, va);
    EACH_LANE(16) a.f32[i] = sqrtf(a.f32[i]);
    return a.f;
}
MODEL __m512d m512_sqrt_pd(__m512d va) {
    ModelV a = V_OF(d, va);
    EACH_LANE(8) a.f64[i] = sqrt(a.f64[i]);
    return a.d;
}
MODEL __m512 m512_roundscale_ps(__m512 va, int how) { // to nearest even is all that is used
    ModelV a = V_OF(f, va);
    if (how != (_MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC))
        __builtin_trap();
    EACH_LANE(16) a.f32[i] = nearbyintf(a.f32[i]);
    return a.f;
}
MODEL __m512 m512_range_ps(__m512 va, __m512 vb, int how) { // the smaller magnitude with the sign of a
    ModelV a = V_OF(f, va), b = V_OF(f, vb);
    if (how != 2)
        __builtin_trap();
    EACH_LANE(16) a.f32[i] = copysignf(fabsf(a.f32[i]) < fabsf(b.f32[i]) ? a.f32[i] : b.f32[i], a.f32[i]);
    return a.f;
}
// Two steps of a chain, the high halves first; subnormals are zero whatever the mode.
MODEL __m512 m512_dpbf16_ps(__m512 vc, __m512bh va, __m512bh vb) {
    ModelV a = V_OF(i, (__m512i)va), b = V_OF(i, (__m512i)vb), c = V_OF(f, vc);
    unsigned old = _mm_getcsr();
    _mm_setcsr(0x1f80u | 0x8040u);
    __asm__ volatile("" ::: "memory");
    EACH_LANE(16) {
        volatile float sum = c.f32[i]; // stays between the changes of mode
        sum = model_fma(model_float(a.u32[i] & 0xffff0000), model_float(b.u32[i] & 0xffff0000), sum);
        sum = model_fma(model_float(a.u32[i] << 16), model_float(b.u32[i] << 16), sum);
        c.f32[i] = sum;
    }
    __asm__ volatile("" ::: "memory");
    _mm_setcsr(old);
    return c.f;
}

// --- masks --------------------------------------------------------------------------------------------------------
MODEL __mmask16 m512_mask_cmp_ps_mask(__mmask16 m, __m512 va, __m512 vb, int how) { // unordered is all that is used
    ModelV a = V_OF(f, va), b = V_OF(f, vb);
    unsigned r = 0;
    if (how != _CMP_UNORD_Q)
        __builtin_trap();
    EACH_LANE(16) r |= (unsigned)(isnan(a.f32[i]) || isnan(b.f32[i])) << i;
    return (__mmask16)(r & m);
}
MODEL __mmask16 m512_cmp_ps_mask(__m512 a, __m512 b, int how) { return m512_mask_cmp_ps_mask(0xffff, a, b, how); }
#define MODEL_TEST(name, expr)                                                                                         \
    MODEL __mmask16 m512_##name(__m512i va, __m512i vb) {                                                              \
        ModelV a = V_OF(i, va), b = V_OF(i, vb);                                                                       \
        unsigned r = 0;                                                                                                \
        EACH_LANE(16) r |= (unsigned)(expr) << i;                                                                      \
        return (__mmask16)r;                                                                                           \
    }
MODEL_TEST(cmpeq_epi32_mask, a.i32[i] == b.i32[i])
MODEL_TEST(cmpgt_epi32_mask, a.i32[i] > b.i32[i])
MODEL_TEST(test_epi32_mask, (a.u32[i] & b.u32[i]) != 0)
MODEL __mmask16 m128_test_epi8_mask(__m128i a, __m128i b) {
    return (__mmask16)~_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_and_si128(a, b), _mm_setzero_si128()));
}
MODEL ModelV model_where(__mmask16 m, ModelV x, ModelV y) {
    EACH_LANE(16) x.u32[i] = m >> i & 1 ? y.u32[i] : x.u32[i];
    return x;
}
MODEL __m512 m512_mask_mov_ps(__m512 s, __mmask16 m, __m512 a) { return model_where(m, V_OF(f, s), V_OF(f, a)).f; }
MODEL __m512 m512_mask_add_ps(__m512 s, __mmask16 m, __m512 a, __m512 b) {
    return m512_mask_mov_ps(s, m, m512_add_ps(a, b));
}
MODEL __m512i m512_mask_add_epi32(__m512i s, __mmask16 m, __m512i a, __m512i b) {
    return model_where(m, V_OF(i, s), V_OF(i, m512_add_epi32(a, b))).i;
}
MODEL __m512i m512_mask_or_epi32(__m512i s, __mmask16 m, __m512i a, __m512i b) {
    return model_where(m, V_OF(i, s), V_OF(i, m512_or_si512(a, b))).i;
}
MODEL __m512i m512_mask_max_epi32(__m512i s, __mmask16 m, __m512i va, __m512i vb) {
    ModelV a = V_OF(i, va), b = V_OF(i, vb);
    EACH_LANE(16) a.i32[i] = a.i32[i] > b.i32[i] ? a.i32[i] : b.i32[i];
    return model_where(m, V_OF(i, s), a).i;
}
MODEL __m512i m512_mask_min_epi32(__m512i s, __mmask16 m, __m512i va, __m512i vb) {
    ModelV a = V_OF(i, va), b = V_OF(i, vb);
    EACH_LANE(16) a.i32[i] = a.i32[i] < b.i32[i] ? a.i32[i] : b.i32[i];
    return model_where(m, V_OF(i, s), a).i;
}
MODEL __m512i m512_maskz_mov_epi16(__mmask32 m, __m512i va) {
    ModelV a = V_OF(i, va);
    EACH_LANE(32) a.u16[i] = m >> i & 1 ? a.u16[i] : 0;
    return a.i;
}
MODEL int m512_reduce_max_epi32(__m512i va) {
    ModelV a = V_OF(i, va);
    int r = a.i32[0];
    EACH_LANE(16) r = a.i32[i] > r ? a.i32[i] : r;
    return r;
}
MODEL int m512_reduce_min_epi32(__m512i va) {
    ModelV a = V_OF(i, va);
    int r = a.i32[0];
    EACH_LANE(16) r = a.i32[i] < r ? a.i32[i] : r;
    return r;
}

// --- from type to type, from lane to lane ---------------------------------------------------------------------------
MODEL __m512i m512_cvtepu16_epi32(__m256i va) {
    ModelH a = {.i = va};
    ModelV r;
    EACH_LANE(16) r.u32[i] = a.u16[i];
    return r.i;
}
MODEL __m512i m512_cvtepu8_epi32(__m128i va) {
    uint8_t a[16];
    ModelV r;
    memcpy(a, &va, 16);
    EACH_LANE(16) r.u32[i] = a[i];
    return r.i;
}
MODEL __m256i m512_cvtepi32_epi16(__m512i va) {
    ModelV a = V_OF(i, va);
    ModelH r;
    EACH_LANE(16) r.u16[i] = (uint16_t)a.u32[i];
    return r.i;
}
MODEL __m512 m512_cvtph_ps(__m256i a) {
    ModelV r;
    _mm256_storeu_ps(r.f32, _mm256_cvtph_ps(_mm256_castsi256_si128(a)));
    _mm256_storeu_ps(r.f32 + 8, _mm256_cvtph_ps(_mm256_extracti128_si256(a, 1)));
    return r.f;
}
#define model_cvtps_ph(x, how)                                                                                         \
    ({                                                                                                                 \
        ModelV cvt_ = V_OF(f, x);                                                                                      \
        _mm256_set_m128i(_mm256_cvtps_ph(_mm256_loadu_ps(cvt_.f32 + 8), (how) & 7),                                    \
                         _mm256_cvtps_ph(_mm256_loadu_ps(cvt_.f32), (how) & 7));                                       \
    })
#define MODEL_UNPACK(name, lane, per, first)                                                                           \
    MODEL __m512i m512_##name(__m512i va, __m512i vb) {                                                                \
        ModelV a = V_OF(i, va), b = V_OF(i, vb), r;                                                                    \
        EACH_LANE(4 * (per)) {                                                                                         \
            int at = i / (per) * (per) + (first) + i % (per) / 2;                                                      \
            r.lane[i] = i & 1 ? b.lane[at] : a.lane[at];                                                               \
        }                                                                                                              \
        return r.i;                                                                                                    \
    }
MODEL_UNPACK(unpacklo_epi32, u32, 4, 0)
MODEL_UNPACK(unpackhi_epi32, u32, 4, 2)
MODEL_UNPACK(unpacklo_epi64, u64, 2, 0)
MODEL_UNPACK(unpackhi_epi64, u64, 2, 1)
MODEL __m512i m512_shuffle_i32x4(__m512i va, __m512i vb, int how) {
    ModelV a = V_OF(i, va), b = V_OF(i, vb), r;
    EACH_LANE(4) memcpy(r.u8 + 16 * i, (i < 2 ? a.u8 : b.u8) + (how >> 2 * i & 3) * 16, 16);
    return r.i;
}
MODEL __m512i m512_shuffle_epi8(__m512i va, __m512i vb) {
    ModelV a = V_OF(i, va), b = V_OF(i, vb), r;
    EACH_LANE(64) r.u8[i] = b.u8[i] & 0x80 ? 0 : a.u8[i / 16 * 16 + (b.u8[i] & 15)];
    return r.i;
}
MODEL __m512i m512_permutex2var_epi16(__m512i va, __m512i which, __m512i vb) {
    ModelV a = V_OF(i, va), b = V_OF(i, vb), w = V_OF(i, which), r;
    EACH_LANE(32) r.u16[i] = (w.u16[i] & 32 ? b.u16 : a.u16)[w.u16[i] & 31];
    return r.i;
}

// --- the names ----------------------------------------------------------------------------------------------------
#define target(...) target("avx2,fma,f16c")
#define _mm_maskz_loadu_epi8 m128_maskz_loadu_epi8
#define _mm_test_epi8_mask m128_test_epi8_mask
#define _mm256_mask_storeu_epi16 m256_mask_storeu_epi16
#define _mm256_maskz_loadu_epi16 m256_maskz_loadu_epi16
#define _mm512_add_epi16 m512_add_epi16
#define _mm512_add_epi32 m512_add_epi32
#define _mm512_add_ps m512_add_ps
#define _mm512_and_ps m512_and_ps
#define _mm512_and_si512 m512_and_si512
#define _mm512_broadcast_i32x4 m512_broadcast_i32x4
#define _mm512_cmp_ps_mask m512_cmp_ps_mask
#define _mm512_cmpeq_epi32_mask m512_cmpeq_epi32_mask
#define _mm512_cmpgt_epi32_mask m512_cmpgt_epi32_mask
#define _mm512_cvtepi32_epi16 m512_cvtepi32_epi16
#define _mm512_cvtepu16_epi32 m512_cvtepu16_epi32
#define _mm512_cvtepu8_epi32 m512_cvtepu8_epi32
#define _mm512_cvtph_ps m512_cvtph_ps
#define _mm512_div_ps m512_div_ps
#define _mm512_dpbf16_ps m512_dpbf16_ps
#define _mm512_fmadd_ps m512_fmadd_ps
#define _mm512_load_ps m512_load_ps
#define _mm512_load_si512 m512_load_si512
#define _mm512_loadu_pd m512_loadu_pd
#define _mm512_loadu_ps m512_loadu_ps
#define _mm512_loadu_si512 m512_loadu_si512
#define _mm512_mask_add_epi32 m512_mask_add_epi32
#define _mm512_mask_add_ps m512_mask_add_ps
#define _mm512_mask_cmp_ps_mask m512_mask_cmp_ps_mask
#define _mm512_mask_max_epi32 m512_mask_max_epi32
#define _mm512_mask_min_epi32 m512_mask_min_epi32
#define _mm512_mask_mov_ps m512_mask_mov_ps
#define _mm512_mask_or_epi32 m512_mask_or_epi32
#define _mm512_mask_storeu_epi16 m512_mask_storeu_epi16
#define _mm512_mask_storeu_ps m512_mask_storeu_ps
#define _mm512_maskz_loadu_epi16 m512_maskz_loadu_epi16
#define _mm512_maskz_loadu_epi32 m512_maskz_loadu_epi32
#define _mm512_maskz_loadu_ps m512_maskz_loadu_ps
#define _mm512_maskz_mov_epi16 m512_maskz_mov_epi16
#define _mm512_max_ps m512_max_ps
#define _mm512_min_ps m512_min_ps
#define _mm512_mul_ps m512_mul_ps
#define _mm512_or_ps m512_or_ps
#define _mm512_or_si512 m512_or_si512
#define _mm512_permutex2var_epi16 m512_permutex2var_epi16
#define _mm512_range_ps m512_range_ps
#define _mm512_reduce_max_epi32 m512_reduce_max_epi32
#define _mm512_reduce_min_epi32 m512_reduce_min_epi32
#define _mm512_roundscale_ps m512_roundscale_ps
#define _mm512_scalef_ps m512_scalef_ps
#define _mm512_set1_epi16 m512_set1_epi16
#define _mm512_set1_epi32 m512_set1_epi32
#define _mm512_set1_ps m512_set1_ps
#define _mm512_shuffle_epi8 m512_shuffle_epi8
#define _mm512_shuffle_i32x4 m512_shuffle_i32x4
#define _mm512_slli_epi32 m512_slli_epi32
#define _mm512_sqrt_pd m512_sqrt_pd
#define _mm512_sqrt_ps m512_sqrt_ps
#define _mm512_srai_epi32 m512_srai_epi32
#define _mm512_srli_epi32 m512_srli_epi32
#define _mm512_store_ps m512_store_ps
#define _mm512_store_si512 m512_store_si512
#define _mm512_storeu_pd m512_storeu_pd
#define _mm512_storeu_ps m512_storeu_ps
#define _mm512_storeu_si512 m512_storeu_si512
#define _mm512_sub_ps m512_sub_ps
#define _mm512_test_epi32_mask m512_test_epi32_mask
#define _mm512_unpackhi_epi32 m512_unpackhi_epi32
#define _mm512_unpackhi_epi64 m512_unpackhi_epi64
#define _mm512_unpacklo_epi32 m512_unpacklo_epi32
#define _mm512_unpacklo_epi64 m512_unpacklo_epi64
#define _mm512_xor_si512 m512_xor_si512
#define _mm512_setzero_ps() m512_set1_ps(0)
#define _mm512_setzero_si512() m512_set1_epi32(0)
#define _mm512_castps_si512(x) ((__m512i)(x))
#define _mm512_castsi512_ps(x) ((__m512)(x))
#define _mm512_stream_si512(p, x) m512_store_si512(p, x)
#define _mm512_cvtps_ph(x, how) model_cvtps_ph(x, how)
#undef _tile_zero
#define _tile_zero(t) memset(&model[t], 0, sizeof model[t])
#undef _tile_loadd
#define _tile_loadd(t, at, pitch) model_load(t, at, pitch)
#undef _tile_stored
#define _tile_stored(t, at, pitch) model_store(t, at, pitch)
#undef _tile_dpbf16ps
#define _tile_dpbf16ps(c, a, b) model_multiply(c, a, b)
#undef _tile_loadconfig
#define _tile_loadconfig(c) ((void)(c))
#undef _tile_release
#define _tile_release() ((void)0)

#endif
