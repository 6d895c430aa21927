// SPDX-License-Identifier: Apache-2.0
// gp_special.c — the rarer functions of the CHLO dialect, lane by lane in double, rounded once for
// f32.
#define _GNU_SOURCE // lgamma_r
#include <math.h>

#include "chip/gp.h"

// psi(x): upward recurrence to 10, then the asymptotic series in Bernoulli numbers; negative x by
// reflection.
static double digamma(double x) {
    static const double b[] = {1.0 / 12,  -1.0 / 120,     1.0 / 252, -1.0 / 240,
                               1.0 / 132, -691.0 / 32760, 1.0 / 12,  -3617.0 / 8160};
    const double pi = 3.14159265358979323846;
    if (x == 0)
        return copysign(INFINITY, -x);
    if (x < 0 && x == floor(x))
        return NAN;
    double r = 0;
    if (x < 0) {
        double frac = x - floor(x);
        r = -pi / tan(pi * frac);
        x = 1 - x;
    }
    for (; x < 10; x++)
        r -= 1 / x;
    double z = 1 / (x * x), sum = 0;
    for (int i = 7; i >= 0; i--)
        sum = (sum + b[i]) * z;
    return r + log(x) - 0.5 / x - sum;
}

// exp(-|x|) I1(x): the power series (all terms of one sign) up to 30, the asymptotic series above.
static double bessel_i1e(double x) {
    double a = fabs(x), sum, term;
    if (a < 30) {
        double q = 0.25 * a * a;
        sum = term = 1;
        for (int k = 1; k < 120 && term > sum * 1e-18; k++) {
            term *= q / ((double)k * (k + 1));
            sum += term;
        }
        return 0.5 * x * sum * exp(-a);
    }
    if (isinf(a))
        return copysign(0, x);
    sum = term = 1;
    for (int k = 1; k < 40; k++) { // (4 - 1)(4 - 9)… / (k! (8x)^k), alternating
        double odd = 2 * k - 1, next = -term * (4 - odd * odd) / (k * 8 * a);
        if (fabs(next) >= fabs(term))
            break;
        term = next;
        sum += term;
    }
    return copysign(sum / sqrt(2 * 3.14159265358979323846 * a), x);
}

// zeta(x, q) for x > 1, q > 0: its first terms, then the Euler-Maclaurin series in Bernoulli numbers.
static double zeta_positive(double x, double q) {
    static const double b[] = {1.0 / 12, -1.0 / 720, 1.0 / 30240, -1.0 / 1209600, 1.0 / 47900160,
                               -691.0 / 1307674368000, 1.0 / 74724249600, -3617.0 / 10670622842880000};
    double sum = 0, term;
    for (; q < 18; q++) {
        sum += term = pow(q, -x);
        if (isinf(sum) || term < sum * 1e-18)
            return sum;
    }
    term = pow(q, -x);
    sum += term * q / (x - 1) + 0.5 * term;
    double up = x * term / q; // x (x + 1) … (x + 2i) / q^(x + 2i + 1)
    for (int i = 0; i < 8; i++) {
        sum += up * b[i];
        up *= (x + 2 * i + 1) * (x + 2 * i + 2) / (q * q);
    }
    return sum;
}

// Hurwitz zeta: poles at x = 1 and, for even x, at q = 0, -1, …; elsewhere left of zero only whole x have a
// real value, the sum of both sides of zero.
static double zeta(double x, double q) {
    if (!(x >= 1) || isnan(q) || q == -INFINITY)
        return NAN;
    if (x == 1)
        return INFINITY;
    bool even = fmod(x, 2) == 0;
    if (q <= 0 && q == floor(q))
        return even ? INFINITY : NAN;
    if (q < 0 && (isinf(x) || x != floor(x)))
        return NAN;
    if (isinf(q) || isinf(x))
        return isinf(q) || q > 1 ? 0 : q == 1 ? 1 : INFINITY;
    if (q > 0)
        return zeta_positive(x, q);
    double n = -floor(q), f = q + n;
    double left = zeta_positive(x, 1 - f) - zeta_positive(x, n + 1 - f);
    return zeta_positive(x, f) + (even ? left : -left);
}

static double polygamma(double n, double x) { // (-1)^(n+1) n! zeta(n + 1, x)
    if (n == 0)
        return digamma(x);
    if (!(n > 0) || n != floor(n))
        return NAN;
    double v = tgamma(n + 1) * zeta(n + 1, x);
    return fmod(n, 2) == 0 ? -v : v;
}

static double log_gamma(double x) {
    int sign;
    return lgamma_r(x, &sign);
}

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
TWO(lane_polygamma, polygamma)
TWO(lane_zeta, zeta)
ONE(lane_acos, acos)
ONE(lane_acosh, acosh)
ONE(lane_asin, asin)
ONE(lane_asinh, asinh)
ONE(lane_atan, atan)
ONE(lane_atanh, atanh)
ONE(lane_bessel_i1e, bessel_i1e)
ONE(lane_digamma, digamma)
ONE(lane_erfc, erfc)
ONE(lane_lgamma, log_gamma)
ONE(lane_sinh, sinh)
ONE(lane_tan, tan)

// As frameworks expand it before they serialise a program: exp(x + log 1/2) + exp(-x + log 1/2),
// every step rounded to the type.
LANE(lane_cosh_f32) {
    (void)attr;
    const float half = -0.693147180559945309f;
    for (size_t i = 0; i < n; i++) {
        float x = ((const float *)src[0])[i], up = x + half, down = half - x;
        ((float *)dst)[i] = (float)exp((double)up) + (float)exp((double)down);
    }
}
LANE(lane_cosh_f64) {
    (void)attr;
    const double half = -0.693147180559945309;
    for (size_t i = 0; i < n; i++) {
        double x = ((const double *)src[0])[i];
        ((double *)dst)[i] = exp(x + half) + exp(half - x);
    }
}

LANE(lane_next_f32) {
    (void)attr;
    for (size_t i = 0; i < n; i++)
        ((float *)dst)[i] = nextafterf(((const float *)src[0])[i], ((const float *)src[1])[i]);
}
LANE(lane_next_f64) {
    (void)attr;
    for (size_t i = 0; i < n; i++)
        ((double *)dst)[i] = nextafter(((const double *)src[0])[i], ((const double *)src[1])[i]);
}

// The neighbour of a 16-bit float in the direction of another: its magnitude code one up or down.
static uint16_t next_16(uint16_t a, uint16_t b, float fa, float fb) {
    if (fa != fa || fb != fb)
        return fa != fa ? a : b;
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
        ((uint16_t *)dst)[i] = next_16(a[i], b[i], bf16_to_f32(a[i]), bf16_to_f32(b[i]));
}
LANE(lane_next_f16) {
    (void)attr;
    const uint16_t *a = src[0], *b = src[1];
    for (size_t i = 0; i < n; i++)
        ((uint16_t *)dst)[i] = next_16(a[i], b[i], f16_to_f32(a[i]), f16_to_f32(b[i]));
}

LaneFn *lane_next_after(int dtype) {
    switch (dtype) {
    case DT_F32: return lane_next_f32;
    case DT_F64: return lane_next_f64;
    case DT_BF16: return lane_next_bf16;
    case DT_F16: return lane_next_f16;
    default: return NULL;
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
    [HLO_CHLO_ACOS] = lane_acos_##T, [HLO_CHLO_ACOSH] = lane_acosh_##T,                            \
    [HLO_CHLO_ASIN] = lane_asin_##T, [HLO_CHLO_ASINH] = lane_asinh_##T,                            \
    [HLO_CHLO_ATAN] = lane_atan_##T, [HLO_CHLO_ATANH] = lane_atanh_##T,                            \
    [HLO_CHLO_BESSEL_I1E] = lane_bessel_i1e_##T, [HLO_CHLO_COSH] = lane_cosh_##T,                  \
    [HLO_CHLO_DIGAMMA] = lane_digamma_##T, [HLO_CHLO_ERFC] = lane_erfc_##T,                        \
    [HLO_CHLO_LGAMMA] = lane_lgamma_##T, [HLO_CHLO_SINH] = lane_sinh_##T,                          \
    [HLO_CHLO_TAN] = lane_tan_##T, [HLO_CHLO_CONJ] = lane_conj_##T,                                \
    [HLO_CHLO_IS_INF] = lane_is_inf_##T, [HLO_CHLO_IS_POS_INF] = lane_is_pos_inf_##T,              \
    [HLO_CHLO_IS_NEG_INF] = lane_is_neg_inf_##T, [HLO_CHLO_POLYGAMMA] = lane_polygamma_##T,        \
    [HLO_CHLO_ZETA] = lane_zeta_##T

LaneFn *const lane_special_f32[HLO_OPCODE_COUNT] = {ROWS(f32)};
LaneFn *const lane_special_f64[HLO_OPCODE_COUNT] = {ROWS(f64)};
