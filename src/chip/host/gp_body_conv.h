// SPDX-License-Identifier: Apache-2.0
// gp_body_conv.h — conversions: narrow floats to and from f32, and between compute types.
//
// Every conversion rounds once, to nearest even. Where f64 or a wide integer becomes a float
// narrower than f32 the way leads over f32 rounded to odd (an inexact value gets its last bit set),
// which makes the second rounding right because f32 has at least two more bits than any narrower
// type.
#include "chip/host/gp_body_base.h"

// --- narrow floats -----------------------------------------------------------------------------

static inline float f32_of_bf16(uint16_t x) { return f32_of((uint32_t)x << 16); }
static inline uint16_t bf16_of_f32(float x) {
    uint32_t u = f32_bits(x), cut = u >> 16, r = (u + 0x7fff + (cut & 1)) >> 16;
    return (uint16_t)(x != x ? cut | 0x40 : r);
}
static void widen_bf16(void *dst, const void *src, size_t n) {
    float *y = dst;
    const uint16_t *x = src;
    LANES(n) y[i] = f32_of_bf16(x[i]);
}
static void narrow_bf16(void *dst, const void *src, size_t n) {
    uint16_t *y = dst;
    const float *x = src;
    LANES(n) y[i] = bf16_of_f32(x[i]);
}

static void widen_tf32(void *dst, const void *src, size_t n) { memmove(dst, src, n * 4); }

static void narrow_tf32(void *dst, const void *src, size_t n) {
    float *y = dst;
    const float *x = src;
    LANES(n) {
        uint32_t u = f32_bits(x[i]);
        uint32_t r = (u + 0xfff + (u >> 13 & 1)) & ~0x1fffu;
        y[i] = f32_of((u & 0x7fffffffu) >= 0x7f800000u ? u : r);
    }
}

// A format with E exponent bits, M mantissa bits, bias B, E < 8. The product scales both normal and
// subnormal codes exactly; NaN and infinity are put in afterwards.
#define ALWAYS static inline __attribute__((always_inline))
ALWAYS float widen_one(uint32_t code, int E, int M, int B, int flavour) {
    uint32_t mag = code & ((1u << (E + M)) - 1), sign = (code >> (E + M) & 1) << 31;
    float scale = f32_of((uint32_t)(127 + 127 - B) << 23);
    uint32_t u = f32_bits(f32_of(mag << (23 - M)) * scale);
    uint32_t inf = ((1u << E) - 1) << M;
    if (flavour == FF_IEEE)
        u = mag >= inf ? 0x7f800000u | (mag - inf) << (23 - M) : u;
    if (flavour == FF_FN)
        u = mag == (1u << (E + M)) - 1 ? 0x7fc00000u : u;
    u |= sign;
    if (flavour == FF_FNUZ)
        u = code == 1u << (E + M) ? 0xffc00000u : u; // its sign bit is set
    return f32_of(u);
}

ALWAYS uint32_t narrow_one(float x, int E, int M, int B, int flavour) {
    uint32_t all = f32_bits(x), u = all & 0x7fffffffu, sign = all >> 31 << (E + M);
    int drop = 23 - M;
    uint32_t normal =
        (u - ((uint32_t)(127 - B) << 23) + ((1u << (drop - 1)) - 1) + (u >> drop & 1)) >> drop;
    float lift =
        f32_of((uint32_t)(127 + 1 - B - M + 23) << 23); // its last bit is the least subnormal
    uint32_t tiny = f32_bits(f32_of(u) + lift) - f32_bits(lift);
    uint32_t r = u < (uint32_t)(128 - B) << 23 ? tiny : normal;
    uint32_t ones = (1u << (E + M)) - 1;
    uint32_t most = flavour == FF_IEEE ? ones - (1u << M) : flavour == FF_FN ? ones - 1 : ones;
    uint32_t over = flavour == FF_SAT ? most : flavour == FF_FNUZ ? 1u << (E + M) : most + 1;
    uint32_t nan = flavour == FF_IEEE  ? ones - (1u << M) + 1 + (1u << (M - 1))
                   : flavour == FF_SAT ? 1u << (E + M)
                                       : over;
    bool high = u >= (uint32_t)(127 - B + (1 << E)) << 23 ||
                r > most; // the code would wrap, or is not there
    r = high ? over : r;
    r = u > 0x7f800000u ? nan : r;
    if (flavour == FF_FNUZ)
        return r == 0 ? 0 : r | sign;
    return r | sign;
}

// The processor's own f16 conversions do the same, quieting NaN; without them it is written out.
static void widen_f16(void *dst, const void *src, size_t n) {
    float *y = dst;
    const uint16_t *x = src;
    size_t i = 0;
#if GP_ISA == 2
    for (; i + 16 <= n; i += 16)
        _mm512_storeu_ps(y + i, _mm512_cvtph_ps(_mm256_loadu_si256((const void *)(x + i))));
#elif GP_ISA == 1
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(y + i, _mm256_cvtph_ps(_mm_loadu_si128((const void *)(x + i))));
#endif
    for (; i < n; i++) {
        uint32_t u = f32_bits(widen_one(x[i], 5, 10, 15, FF_IEEE));
        y[i] = f32_of((x[i] & 0x7fffu) > 0x7c00 ? u | 0x400000 : u);
    }
}

static void narrow_f16(void *dst, const void *src, size_t n) {
    uint16_t *y = dst;
    const float *x = src;
    size_t i = 0;
#if GP_ISA == 2
    for (; i + 16 <= n; i += 16)
        _mm256_storeu_si256(
            (void *)(y + i),
            _mm512_cvtps_ph(_mm512_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#elif GP_ISA == 1
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((void *)(y + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
#endif
    for (; i < n; i++) {
        uint32_t u = f32_bits(x[i]);
        uint32_t payload = (u >> 16 & 0x8000) | 0x7e00 | (u >> 13 & 0x3ff);
        uint32_t r = narrow_one(x[i], 5, 10, 15, FF_IEEE);
        y[i] = (uint16_t)((u & 0x7fffffffu) > 0x7f800000u ? payload : r);
    }
}

#define NARROW8(S, E, M, B, FLAVOUR)                                                               \
    static void widen_##S(void *dst, const void *src, size_t n) {                                  \
        float *y = dst;                                                                            \
        const uint8_t *x = src;                                                                    \
        LANES(n) y[i] = widen_one(x[i], E, M, B, FLAVOUR);                                         \
    }                                                                                              \
    static void narrow_##S(void *dst, const void *src, size_t n) {                                 \
        uint8_t *y = dst;                                                                          \
        const float *x = src;                                                                      \
        LANES(n) y[i] = (uint8_t)narrow_one(x[i], E, M, B, FLAVOUR);                               \
    }
NARROW8(f4e2m1fn, 2, 1, 1, FF_SAT)
NARROW8(f6e2m3fn, 2, 3, 1, FF_SAT)
NARROW8(f6e3m2fn, 3, 2, 3, FF_SAT)
NARROW8(f8e3m4, 3, 4, 3, FF_IEEE)
NARROW8(f8e4m3, 4, 3, 7, FF_IEEE)
NARROW8(f8e4m3fn, 4, 3, 7, FF_FN)
NARROW8(f8e4m3fnuz, 4, 3, 8, FF_FNUZ)
NARROW8(f8e4m3b11fnuz, 4, 3, 11, FF_FNUZ)
NARROW8(f8e5m2, 5, 2, 15, FF_IEEE)
NARROW8(f8e5m2fnuz, 5, 2, 16, FF_FNUZ)

static void widen_e8m0(void *dst, const void *src, size_t n) {
    float *y = dst;
    const uint8_t *x = src;
    LANES(n) {
        uint32_t u = x[i] ? (uint32_t)x[i] << 23 : 0x400000u;
        y[i] = f32_of(x[i] == 0xff ? 0x7fc00000u : u);
    }
}

// Nearest power of two, ties up, between the least two always up; what is less than the least goes to it, zero and negative
// numbers are NaN.
static void narrow_e8m0(void *dst, const void *src, size_t n) {
    uint8_t *y = dst;
    const float *x = src;
    LANES(n) {
        uint32_t u = f32_bits(x[i]), code = u >> 23, man = u & 0x7fffffu;
        code = code ? code + (man >= 0x400000u) : man > 0x400000u;
        bool bad = !u || u >= 0x7f800000u || code > 254; // zero, negative, inf and nan
        y[i] = (uint8_t)(bad ? 255 : code);
    }
}

// --- between compute types ---------------------------------------------------------------------

#define CONV(FROM, TO, FT, TT, EXPR)                                                               \
    static void conv_##FROM##_##TO(void *dst, const void *src, size_t n) {                         \
        TT *y = dst;                                                                               \
        const FT *x = src;                                                                         \
        LANES(n) {                                                                                 \
            FT v = x[i];                                                                           \
            y[i] = EXPR;                                                                           \
        }                                                                                          \
    }

// Integer to integer: only the size of the target and the sign of the source matter.
#define CONV_FROM_INT(S, T)                                                                        \
    CONV(S, u8, T, uint8_t, (uint8_t)v)                                                            \
    CONV(S, u16, T, uint16_t, (uint16_t)v)                                                         \
    CONV(S, u32, T, uint32_t, (uint32_t)v)                                                         \
    CONV(S, u64, T, uint64_t, (uint64_t)v)                                                         \
    CONV(S, f32, T, float, (float)v)                                                               \
    CONV(S, f64, T, double, (double)v)                                                             \
    CONV(S, bool, T, uint8_t, v != 0)
CONV_FROM_INT(i8, int8_t)
CONV_FROM_INT(i16, int16_t)
CONV_FROM_INT(i32, int32_t)
CONV_FROM_INT(i64, int64_t)
CONV_FROM_INT(u8, uint8_t)
CONV_FROM_INT(u16, uint16_t)
CONV_FROM_INT(u32, uint32_t)
CONV_FROM_INT(u64, uint64_t)
CONV(bool, u8, uint8_t, uint8_t, v != 0)
CONV(bool, u16, uint8_t, uint16_t, v != 0)
CONV(bool, u32, uint8_t, uint32_t, v != 0)
CONV(bool, u64, uint8_t, uint64_t, v != 0)
CONV(bool, f32, uint8_t, float, v != 0 ? 1.0f : 0.0f)
CONV(bool, f64, uint8_t, double, v != 0 ? 1.0 : 0.0)
CONV(f32, f64, float, double, (double)v)
CONV(f64, f32, double, float, (float)v)
CONV(f32, f32, float, float, v)
CONV(f64, f64, double, double, v)
CONV(f32, bool, float, uint8_t, v != 0)
CONV(f64, bool, double, uint8_t, v != 0)

// Float to integer: toward zero, saturating, NaN to 0. Up to 32 bits the bounds are exact in f64.
static inline double bounded(double v, double lo, double hi) {
    v = v < lo ? lo : v;
    v = v > hi ? hi : v;
    return v == v ? v : 0;
}
static inline float bounded_f32(float v, float lo, float hi) {
    v = v < lo ? lo : v;
    v = v > hi ? hi : v;
    return v == v ? v : 0;
}
static inline int32_t
i32_of_f32(float v) { // 2^31 - 1 is no f32: the last one below it, then the end itself
    int32_t y = (int32_t)bounded_f32(v, -0x1p31f, 0x1.fffffep30f);
    return v >= 0x1p31f ? INT32_MAX : y;
}
static inline int32_t i32_of_f64(double v) {
    return (int32_t)bounded(v, -2147483648.0, 2147483647.0);
}
#define bounded_f64 bounded
#define CONV_TO_INT(F, FT)                                                                         \
    CONV(F, i8, FT, int8_t, (int8_t)(int32_t)bounded_##F(v, -128, 127))                            \
    CONV(F, i16, FT, int16_t, (int16_t)(int32_t)bounded_##F(v, -32768, 32767))                     \
    CONV(F, i32, FT, int32_t, i32_of_##F(v))                                                       \
    CONV(F, uc8, FT, uint8_t, (uint8_t)(int32_t)bounded_##F(v, 0, 255))                            \
    CONV(F, uc16, FT, uint16_t, (uint16_t)(int32_t)bounded_##F(v, 0, 65535))                       \
    CONV(F, uc32, FT, uint32_t, (uint32_t)(int64_t)bounded(v, 0, 4294967295.0))                    \
    static void conv_##F##_i64(void *dst, const void *src, size_t n) {                             \
        int64_t *y = dst;                                                                          \
        const FT *x = src;                                                                         \
        for (size_t i = 0; i < n; i++) {                                                           \
            double v = x[i];                                                                       \
            y[i] = v >= 0x1p63 ? INT64_MAX : v > -0x1p63 ? (int64_t)v : v != v ? 0 : INT64_MIN;    \
        }                                                                                          \
    }                                                                                              \
    static void conv_##F##_uc64(void *dst, const void *src, size_t n) {                            \
        uint64_t *y = dst;                                                                         \
        const FT *x = src;                                                                         \
        for (size_t i = 0; i < n; i++) {                                                           \
            double v = x[i];                                                                       \
            y[i] = v >= 0x1p64 ? UINT64_MAX : v > 0 ? (uint64_t)v : 0;                             \
        }                                                                                          \
    }
CONV_TO_INT(f32, float)
CONV_TO_INT(f64, double)

// Rounded to odd: toward zero, then the last bit set when anything was lost.
static inline float odd_f32(double v) {
    float f = (float)v;
    uint32_t u = f32_bits(f);
    u -= f64_abs(f) > f64_abs(v); // inf becomes the largest finite value, which is odd
    u |= (double)f != v;
    return v - v == 0 ? f32_of(u) : f;
}
// At most 53 bits survive, the last of them sticky.
static inline double odd_i64(int64_t v) {
    uint64_t neg = 0 - (uint64_t)(v < 0), a = ((uint64_t)v ^ neg) - neg;
    uint64_t cut = (a & ~(uint64_t)0xfff) | (uint64_t)((a & 0xfff) != 0) << 12;
    a = a >> 52 ? cut : a;
    double d = (double)a;
    return v < 0 ? -d : d;
}
static inline double odd_u64(uint64_t a) {
    uint64_t cut = (a & ~(uint64_t)0xfff) | (uint64_t)((a & 0xfff) != 0) << 12;
    return (double)(a >> 52 ? cut : a);
}
#define TO_ODD(S, T, EXPR)                                                                         \
    static void odd_from_##S(void *dst, const void *src, size_t n) {                               \
        float *y = dst;                                                                            \
        const T *x = src;                                                                          \
        for (size_t i = 0; i < n; i++) {                                                           \
            T v = x[i];                                                                            \
            y[i] = EXPR;                                                                           \
        }                                                                                          \
    }
TO_ODD(f64, double, odd_f32(v))
TO_ODD(i32, int32_t, odd_f32((double)v))
TO_ODD(u32, uint32_t, odd_f32((double)v))
TO_ODD(i64, int64_t, odd_f32(odd_i64(v)))
TO_ODD(u64, uint64_t, odd_f32(odd_u64(v)))

#define CONV_INT_ROW(S)                                                                            \
    {                                                                                              \
        [LC_I8] = conv_##S##_u8, [LC_I16] = conv_##S##_u16, [LC_I32] = conv_##S##_u32,             \
        [LC_I64] = conv_##S##_u64, [LC_U8] = conv_##S##_u8, [LC_U16] = conv_##S##_u16,             \
        [LC_U32] = conv_##S##_u32, [LC_U64] = conv_##S##_u64, [LC_F32] = conv_##S##_f32,           \
        [LC_F64] = conv_##S##_f64, [LC_BOOL] = conv_##S##_bool                                     \
    }
#define conv_bool_bool conv_bool_u8
#define CONV_FLOAT_ROW(S)                                                                          \
    {                                                                                              \
        [LC_I8] = conv_##S##_i8, [LC_I16] = conv_##S##_i16, [LC_I32] = conv_##S##_i32,             \
        [LC_I64] = conv_##S##_i64, [LC_U8] = conv_##S##_uc8, [LC_U16] = conv_##S##_uc16,           \
        [LC_U32] = conv_##S##_uc32, [LC_U64] = conv_##S##_uc64, [LC_F32] = conv_##S##_f32,         \
        [LC_F64] = conv_##S##_f64, [LC_BOOL] = conv_##S##_bool                                     \
    }
#define WIDEN_ROWS(W)                                                                              \
    [DT_BF16] = W##_bf16, [DT_F16] = W##_f16, [DT_TF32] = W##_tf32, [DT_F4E2M1FN] = W##_f4e2m1fn,  \
    [DT_F6E2M3FN] = W##_f6e2m3fn, [DT_F6E3M2FN] = W##_f6e3m2fn, [DT_F8E3M4] = W##_f8e3m4,          \
    [DT_F8E4M3] = W##_f8e4m3, [DT_F8E4M3FN] = W##_f8e4m3fn, [DT_F8E4M3FNUZ] = W##_f8e4m3fnuz,      \
    [DT_F8E4M3B11FNUZ] = W##_f8e4m3b11fnuz, [DT_F8E5M2] = W##_f8e5m2,                              \
    [DT_F8E5M2FNUZ] = W##_f8e5m2fnuz, [DT_F8E8M0FNU] = W##_e8m0
