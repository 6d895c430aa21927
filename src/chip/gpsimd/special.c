// SPDX-License-Identifier: Apache-2.0
// special.c — the rarer functions of the CHLO dialect, lane by lane in double, rounded once for
// f32.
#include <math.h>

#include "base/elem.h"
#include "chip/gpsimd/gp.h"

#define LANE(name)                                                                                 \
    static void name(void *dst, const void *const *src, size_t n, const int16_t *attr)
#define ONE(name, FN)                                                                              \
    LANE(name##_f32) {                                                                             \
        (void)attr;                                                                                \
        for (size_t i = 0; i < n; i++)                                                             \
            ((float *)dst)[i] = (float)FN((double)((const float *)src[0])[i]);                     \
    }                                                                                              \
    LANE(name##_f64) {                                                                             \
        (void)attr;                                                                                \
        for (size_t i = 0; i < n; i++)                                                             \
            ((double *)dst)[i] = FN(((const double *)src[0])[i]);                                  \
    }
#define TWO(name, FN)                                                                              \
    LANE(name##_f32) {                                                                             \
        (void)attr;                                                                                \
        const float *a = src[0], *b = src[1];                                                      \
        for (size_t i = 0; i < n; i++)                                                             \
            ((float *)dst)[i] = (float)FN((double)a[i], (double)b[i]);                             \
    }                                                                                              \
    LANE(name##_f64) {                                                                             \
        (void)attr;                                                                                \
        const double *a = src[0], *b = src[1];                                                     \
        for (size_t i = 0; i < n; i++)                                                             \
            ((double *)dst)[i] = FN(a[i], b[i]);                                                   \
    }
#define ASK(name, T, question)                                                                     \
    LANE(name) {                                                                                   \
        (void)attr;                                                                                \
        for (size_t i = 0; i < n; i++) {                                                           \
            T x = ((const T *)src[0])[i];                                                          \
            ((uint8_t *)dst)[i] = (question);                                                      \
        }                                                                                          \
    }
ASK(lane_is_inf_f32, float, x == INFINITY || x == -INFINITY)
ASK(lane_is_inf_f64, double, x == INFINITY || x == -INFINITY)
ASK(lane_is_pos_inf_f32, float, x == INFINITY)
ASK(lane_is_pos_inf_f64, double, x == INFINITY)
ASK(lane_is_neg_inf_f32, float, x == -INFINITY)
ASK(lane_is_neg_inf_f64, double, x == -INFINITY)
LANE(lane_conj_f32) { // a real number is its own
    (void)attr;
    memmove(dst, src[0], n * sizeof(float));
}
LANE(lane_conj_f64) {
    (void)attr;
    memmove(dst, src[0], n * sizeof(double));
}
TWO(lane_polygamma, elem_polygamma)
TWO(lane_zeta, elem_zeta)
ONE(lane_bessel_i1e, elem_bessel_i1e)
ONE(lane_digamma, elem_digamma)
ONE(lane_lgamma, elem_lgamma)

static double one_nan(double x) { return isnan(x) ? NAN : x; }
LANE(lane_next_f32) {
    (void)attr;
    for (size_t i = 0; i < n; i++)
        ((float *)dst)[i] = (float)one_nan(nextafterf(((const float *)src[0])[i], ((const float *)src[1])[i]));
}
LANE(lane_next_f64) {
    (void)attr;
    for (size_t i = 0; i < n; i++)
        ((double *)dst)[i] = one_nan(nextafter(((const double *)src[0])[i], ((const double *)src[1])[i]));
}

// The neighbour of a 16-bit float in the direction of another: its magnitude code one up or down.
static uint16_t next_16(uint16_t a, uint16_t b, float fa, float fb, uint16_t nan) {
    if (fa != fa || fb != fb)
        return nan;
    if (fa == fb)
        return b;
    if (fa == 0)
        return (b & 0x8000) | 1;
    return (uint16_t)((fb > fa) == (fa > 0) ? a + 1 : a - 1);
}
LANE(lane_next_bf16) {
    (void)attr;
    const uint16_t *a = src[0], *b = src[1];
    for (size_t i = 0; i < n; i++)
        ((uint16_t *)dst)[i] = next_16(a[i], b[i], bf16_to_f32(a[i]), bf16_to_f32(b[i]), 0x7fc0);
}
LANE(lane_next_f16) {
    (void)attr;
    const uint16_t *a = src[0], *b = src[1];
    for (size_t i = 0; i < n; i++)
        ((uint16_t *)dst)[i] = next_16(a[i], b[i], f16_to_f32(a[i]), f16_to_f32(b[i]), 0x7e00);
}

// Types of a byte: the same on their codes. E8M0 has neither sign nor zero, FNUZ types no -0.
static uint8_t next_8(int dtype, const uint8_t *a, const uint8_t *b) {
    double x = dtype_to_f64(dtype, a), y = dtype_to_f64(dtype, b);
    uint8_t sign = (uint8_t)(1u << (dtype_row(dtype)->bits - 1)), out = 0;
    if (isnan(x) || isnan(y)) {
        dtype_from_f64(dtype, &out, NAN);
        return out;
    }
    if (x == y)
        return *b;
    if (x == 0)
        return (uint8_t)(y < 0 ? sign | 1 : 1);
    out = (uint8_t)((y > x) == (x > 0) ? *a + 1 : *a - 1);
    return dtype_row(dtype)->flavour == FF_FNUZ && out == sign ? 0 : out;
}
#define NEXT_8(X)                                                                                  \
    X(F4E2M1FN) X(F6E2M3FN) X(F6E3M2FN) X(F8E3M4) X(F8E4M3) X(F8E4M3FN) X(F8E4M3FNUZ)              \
    X(F8E4M3B11FNUZ) X(F8E5M2) X(F8E5M2FNUZ) X(F8E8M0FNU)
#define X(type)                                                                                    \
    LANE(lane_next_##type) {                                                                       \
        (void)attr;                                                                                \
        for (size_t i = 0; i < n; i++)                                                             \
            ((uint8_t *)dst)[i] =                                                                  \
                next_8(DT_##type, (const uint8_t *)src[0] + i, (const uint8_t *)src[1] + i);       \
    }
NEXT_8(X)
#undef X

LaneFn *lane_next_after(int dtype) {
    switch (dtype) {
#define X(type) case DT_##type: return lane_next_##type;
        NEXT_8(X)
#undef X
    case DT_F32: return lane_next_f32;
    case DT_F64: return lane_next_f64;
    case DT_BF16: return lane_next_bf16;
    case DT_F16: return lane_next_f16;
    default: return NULL;
    }
}

// reduce_precision of narrow IEEE formats on their own codes: mantissa to nearest even, also a subnormal's, then the
// exponent range. E and M are theirs.
static uint32_t reduce_code(uint32_t x, int E, int M, const int16_t *attr) {
    uint32_t inf = ((1u << E) - 1) << M, sign = x & 1u << (E + M), abs = x & ~sign;
    int drop = attr[1] < M ? M - attr[1] : 0, bias = (1 << (E - 1)) - 1, reach = attr[0] < E ? (1 << (attr[0] - 1)) - 1 : 0;
    if (abs > inf)
        return attr[1] > 0 ? x : sign | inf;
    if (drop)
        abs = (abs + ((1u << (drop - 1)) - 1) + (abs >> drop & 1)) & ~((1u << drop) - 1);
    int exp = (int)(abs >> M);
    if (attr[0] < E)
        abs = exp > bias + reach ? inf : exp <= bias - reach ? 0 : abs;
    return sign | abs;
}
#define REDUCE(name, T, E, M)                                                                      \
    LANE(name) {                                                                                   \
        const T *x = src[0];                                                                       \
        for (size_t i = 0; i < n; i++)                                                             \
            ((T *)dst)[i] = (T)reduce_code(x[i], E, M, attr);                                      \
    }
REDUCE(lane_reduce_f16, uint16_t, 5, 10)
REDUCE(lane_reduce_f8e3m4, uint8_t, 3, 4)
REDUCE(lane_reduce_f8e4m3, uint8_t, 4, 3)
REDUCE(lane_reduce_f8e5m2, uint8_t, 5, 2)

LaneFn *lane_reduce_precision(int dtype) {
    switch (dtype) {
    case DT_F16: return lane_reduce_f16;
    case DT_F8E3M4: return lane_reduce_f8e3m4;
    case DT_F8E4M3: return lane_reduce_f8e4m3;
    case DT_F8E5M2: return lane_reduce_f8e5m2;
    default: return NULL; // bf16 shares its range with f32; others are reduced as f32
    }
}

// The upper half of a product.
#define MULHI(name, T, WIDE)                                                                       \
    LANE(name) {                                                                                   \
        (void)attr;                                                                                \
        const T *a = src[0], *b = src[1];                                                          \
        for (size_t i = 0; i < n; i++)                                                             \
            ((T *)dst)[i] = (T)((WIDE)a[i] * (WIDE)b[i] >> (8 * sizeof(T)));                       \
    }
#define MULHI_NARROW(name, T, BITS)                                                                \
    LANE(name) {                                                                                   \
        (void)attr;                                                                                \
        const T *a = src[0], *b = src[1];                                                          \
        for (size_t i = 0; i < n; i++)                                                             \
            ((T *)dst)[i] = (T)(a[i] * b[i] >> BITS);                                              \
    }
MULHI(lane_mulhi_i8, int8_t, int32_t)
MULHI(lane_mulhi_i16, int16_t, int32_t)
MULHI(lane_mulhi_i32, int32_t, int64_t)
MULHI(lane_mulhi_i64, int64_t, __int128)
MULHI(lane_mulhi_u8, uint8_t, uint32_t)
MULHI(lane_mulhi_u16, uint16_t, uint32_t)
MULHI(lane_mulhi_u32, uint32_t, uint64_t)
MULHI(lane_mulhi_u64, uint64_t, unsigned __int128)
// Of types narrower than a byte, one per byte: the product fits it.
MULHI_NARROW(lane_mulhi_i2, int8_t, 2)
MULHI_NARROW(lane_mulhi_i4, int8_t, 4)
MULHI_NARROW(lane_mulhi_u2, uint8_t, 2)
MULHI_NARROW(lane_mulhi_u4, uint8_t, 4)

LaneFn *lane_mulhi(int dtype) {
    static LaneFn *const table[DT_COUNT] = {
        [DT_I2] = lane_mulhi_i2,   [DT_I4] = lane_mulhi_i4,   [DT_I8] = lane_mulhi_i8,
        [DT_I16] = lane_mulhi_i16, [DT_I32] = lane_mulhi_i32, [DT_I64] = lane_mulhi_i64,
        [DT_UI2] = lane_mulhi_u2,  [DT_UI4] = lane_mulhi_u4,  [DT_UI8] = lane_mulhi_u8,
        [DT_UI16] = lane_mulhi_u16, [DT_UI32] = lane_mulhi_u32, [DT_UI64] = lane_mulhi_u64,
    };
    return table[dtype];
}

#define ROWS(T)                                                                                    \
    [HLO_CHLO_BESSEL_I1E] = lane_bessel_i1e_##T, [HLO_CHLO_DIGAMMA] = lane_digamma_##T,            \
    [HLO_CHLO_LGAMMA] = lane_lgamma_##T, [HLO_CHLO_CONJ] = lane_conj_##T,                          \
    [HLO_CHLO_IS_INF] = lane_is_inf_##T, [HLO_CHLO_IS_POS_INF] = lane_is_pos_inf_##T,              \
    [HLO_CHLO_IS_NEG_INF] = lane_is_neg_inf_##T, [HLO_CHLO_POLYGAMMA] = lane_polygamma_##T,        \
    [HLO_CHLO_ZETA] = lane_zeta_##T

LaneFn *const lane_special_f32[HLO_OPCODE_COUNT] = {ROWS(f32)};
LaneFn *const lane_special_f64[HLO_OPCODE_COUNT] = {ROWS(f64)};
