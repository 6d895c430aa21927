// SPDX-License-Identifier: Apache-2.0
// gp_complex.c — complex lanes: plain loops in double, rounded once for complex<f32>.
//
// Functions come from C's <complex.h> where it has them; the formulas of the others stand with
// them.
#include <complex.h>
#include <math.h>

#include "chip/gp.h"

typedef double complex Z;

static Z z_load32(const void *p, size_t i) {
    const float *f = (const float *)p + 2 * i;
    return CMPLX(f[0], f[1]);
}
static void z_store32(void *p, size_t i, Z v) {
    float *f = (float *)p + 2 * i;
    f[0] = (float)creal(v), f[1] = (float)cimag(v);
}
static Z z_load64(const void *p, size_t i) {
    const double *f = (const double *)p + 2 * i;
    return CMPLX(f[0], f[1]);
}
static void z_store64(void *p, size_t i, Z v) {
    double *f = (double *)p + 2 * i;
    f[0] = creal(v), f[1] = cimag(v);
}

// C's product and quotient repair infinities; XLA's plain formula does not. The plain product is
// used, the quotient is scaled so that it neither overflows nor underflows early (after Smith).
static Z z_mul(Z a, Z b) {
    return CMPLX(creal(a) * creal(b) - cimag(a) * cimag(b),
                 creal(a) * cimag(b) + cimag(a) * creal(b));
}
static Z z_div(Z a, Z b) {
    double c = creal(b), d = cimag(b);
    if (fabs(c) < fabs(d)) {
        double r = c / d, den = c * r + d;
        return CMPLX((creal(a) * r + cimag(a)) / den, (cimag(a) * r - creal(a)) / den);
    }
    if (c == 0 && d == 0)
        return CMPLX(creal(a) / c, cimag(a) / c);
    double r = d / c, den = c + d * r;
    return CMPLX((creal(a) + cimag(a) * r) / den, (cimag(a) - creal(a) * r) / den);
}
static Z z_expm1(Z z) { // e^x cos y - 1 = expm1(x) cos y - 2 sin^2(y/2)
    double x = creal(z), y = cimag(z), s = sin(0.5 * y);
    return CMPLX(expm1(x) * cos(y) - 2 * s * s, exp(x) * sin(y));
}
static Z z_log1p(Z z) {
    double x = creal(z), y = cimag(z);
    double m = hypot(1 + x, y);
    double re = fabs(x) < 0.5 && fabs(y) < 0.5 ? 0.5 * log1p(x * (2 + x) + y * y) : log(m);
    return CMPLX(re, atan2(y, 1 + x));
}
static Z z_pow(Z a, Z b) {
    if (creal(a) == 0 && cimag(a) == 0) {
        if (creal(b) == 0 && cimag(b) == 0)
            return 1;
        return creal(b) > 0 ? CMPLX(0, 0) : CMPLX(creal(b) < 0 ? INFINITY : NAN, NAN);
    }
    double r = hypot(creal(a), cimag(a)), t = atan2(cimag(a), creal(a)), l = log(r);
    double m = exp(creal(b) * l - cimag(b) * t), angle = cimag(b) * l + creal(b) * t;
    return CMPLX(m * cos(angle), m * sin(angle));
}
static Z z_sign(Z z) {
    double m = hypot(creal(z), cimag(z));
    if (m == 0)
        return z;
    return CMPLX(creal(z) / m, cimag(z) / m);
}
static Z z_logistic(Z z) { return z_div(1, 1 + cexp(-z)); }
static Z z_rsqrt(Z z) { return z_div(1, csqrt(z)); }
static Z z_cbrt(Z z) {
    if (creal(z) == 0 && cimag(z) == 0)
        return z;
    double r = cbrt(hypot(creal(z), cimag(z))), t = atan2(cimag(z), creal(z)) / 3;
    return CMPLX(r * cos(t), r * sin(t));
}
static Z z_atan2(Z y, Z x) { // -i log((x + i y) / sqrt(x^2 + y^2))
    Z u = CMPLX(creal(x) - cimag(y), cimag(x) + creal(y));
    Z l = clog(z_div(u, csqrt(z_mul(x, x) + z_mul(y, y))));
    return CMPLX(cimag(l), -creal(l));
}
static Z z_add(Z a, Z b) { return a + b; }
static Z z_sub(Z a, Z b) { return a - b; }
static Z z_neg(Z z) { return CMPLX(-creal(z), -cimag(z)); }
static Z
z_square(Z z) { // real part as a product: x^2 - y^2 would be infinity minus infinity too early
    double x = creal(z), y = cimag(z);
    return CMPLX(fabs(x) == fabs(y) && isfinite(x) ? 0 : (x - y) * (x + y), x * y + x * y);
}
static Z
z_exp(Z z) { // C knows the modulus of e^inf whatever the angle; a product of its parts does not
    return isinf(creal(z)) && !isfinite(cimag(z)) ? CMPLX(NAN, NAN) : cexp(z);
}
static bool z_less(Z a, Z b) { // by real part, then by imaginary part
    return creal(a) < creal(b) || (creal(a) == creal(b) && cimag(a) < cimag(b));
}
static Z z_max(Z a, Z b) { return isnan(creal(a)) || isnan(cimag(a)) ? a : z_less(b, a) ? a : b; }
static Z z_min(Z a, Z b) { return isnan(creal(a)) || isnan(cimag(a)) ? a : z_less(a, b) ? a : b; }

#define LANE(name, BITS)                                                                           \
    static void name##_##BITS(void *dst, const void *const *src, size_t n, const int16_t *attr)
#define ONE(name, FN)                                                                              \
    LANE(name, 32) {                                                                               \
        (void)attr;                                                                                \
        for (size_t i = 0; i < n; i++)                                                             \
            z_store32(dst, i, FN(z_load32(src[0], i)));                                            \
    }                                                                                              \
    LANE(name, 64) {                                                                               \
        (void)attr;                                                                                \
        for (size_t i = 0; i < n; i++)                                                             \
            z_store64(dst, i, FN(z_load64(src[0], i)));                                            \
    }
#define TWO(name, FN)                                                                              \
    LANE(name, 32) {                                                                               \
        (void)attr;                                                                                \
        for (size_t i = 0; i < n; i++)                                                             \
            z_store32(dst, i, FN(z_load32(src[0], i), z_load32(src[1], i)));                       \
    }                                                                                              \
    LANE(name, 64) {                                                                               \
        (void)attr;                                                                                \
        for (size_t i = 0; i < n; i++)                                                             \
            z_store64(dst, i, FN(z_load64(src[0], i), z_load64(src[1], i)));                       \
    }
TWO(lane_add, z_add)
TWO(lane_sub, z_sub)
TWO(lane_mul, z_mul)
TWO(lane_div, z_div)
TWO(lane_pow, z_pow)
TWO(lane_atan2, z_atan2)
TWO(lane_max, z_max)
TWO(lane_min, z_min)
ONE(lane_neg, z_neg)
ONE(lane_sign, z_sign)
ONE(lane_square, z_square)
ONE(lane_exp, z_exp)
ONE(lane_expm1, z_expm1)
ONE(lane_log, clog)
ONE(lane_log1p, z_log1p)
ONE(lane_tanh, ctanh)
ONE(lane_logistic, z_logistic)
ONE(lane_sin, csin)
ONE(lane_cos, ccos)
ONE(lane_tan, ctan)
ONE(lane_sqrt, csqrt)
ONE(lane_rsqrt, z_rsqrt)
ONE(lane_cbrt, z_cbrt)
ONE(lane_conj, conj)
ONE(lane_acos, cacos)
ONE(lane_acosh, cacosh)
ONE(lane_asin, casin)
ONE(lane_asinh, casinh)
ONE(lane_atan, catan)
ONE(lane_atanh, catanh)
ONE(lane_cosh, ccosh)
ONE(lane_sinh, csinh)

static bool z_compare(Z a, Z b, int dir) {
    bool eq = creal(a) == creal(b) && cimag(a) == cimag(b);
    switch (dir) {
    case CMP_EQ: return eq;
    case CMP_NE: return !eq;
    case CMP_GE: return eq || z_less(b, a);
    case CMP_GT: return z_less(b, a);
    case CMP_LE: return eq || z_less(a, b);
    default: return z_less(a, b);
    }
}

#define PARTS(BITS, T)                                                                             \
    LANE(lane_real, BITS) {                                                                        \
        (void)attr;                                                                                \
        for (size_t i = 0; i < n; i++)                                                             \
            ((T *)dst)[i] = (T)creal(z_load##BITS(src[0], i));                                     \
    }                                                                                              \
    LANE(lane_imag, BITS) {                                                                        \
        (void)attr;                                                                                \
        for (size_t i = 0; i < n; i++)                                                             \
            ((T *)dst)[i] = (T)cimag(z_load##BITS(src[0], i));                                     \
    }                                                                                              \
    LANE(lane_abs, BITS) {                                                                         \
        (void)attr;                                                                                \
        for (size_t i = 0; i < n; i++) {                                                           \
            Z z = z_load##BITS(src[0], i);                                                         \
            ((T *)dst)[i] = (T)hypot(creal(z), cimag(z));                                          \
        }                                                                                          \
    }                                                                                              \
    LANE(lane_clamp, BITS) {                                                                       \
        (void)attr;                                                                                \
        for (size_t i = 0; i < n; i++) {                                                           \
            Z z = z_max(z_load##BITS(src[1], i), z_load##BITS(src[0], i));                         \
            z_store##BITS(dst, i, z_min(z, z_load##BITS(src[2], i)));                              \
        }                                                                                          \
    }                                                                                              \
    LANE(lane_compare, BITS) {                                                                     \
        for (size_t i = 0; i < n; i++)                                                             \
            ((uint8_t *)dst)[i] =                                                                  \
                z_compare(z_load##BITS(src[0], i), z_load##BITS(src[1], i), attr[0]);              \
    }
PARTS(32, float)
PARTS(64, double)

#define ROWS(BITS)                                                                                 \
    [HLO_ADD] = lane_add_##BITS, [HLO_SUBTRACT] = lane_sub_##BITS,                                 \
    [HLO_MULTIPLY] = lane_mul_##BITS, [HLO_DIVIDE] = lane_div_##BITS,                              \
    [HLO_POWER] = lane_pow_##BITS, [HLO_ATAN2] = lane_atan2_##BITS,                                \
    [HLO_MAXIMUM] = lane_max_##BITS, [HLO_MINIMUM] = lane_min_##BITS,                              \
    [HLO_CLAMP] = lane_clamp_##BITS, [HLO_NEGATE] = lane_neg_##BITS,                               \
    [HLO_SIGN] = lane_sign_##BITS, [HLO_CHLO_SQUARE] = lane_square_##BITS,                         \
    [HLO_EXPONENTIAL] = lane_exp_##BITS, [HLO_EXPONENTIAL_MINUS_ONE] = lane_expm1_##BITS,          \
    [HLO_LOG] = lane_log_##BITS, [HLO_LOG_PLUS_ONE] = lane_log1p_##BITS,                           \
    [HLO_TANH] = lane_tanh_##BITS, [HLO_LOGISTIC] = lane_logistic_##BITS,                          \
    [HLO_SINE] = lane_sin_##BITS, [HLO_COSINE] = lane_cos_##BITS, [HLO_TAN] = lane_tan_##BITS,     \
    [HLO_SQRT] = lane_sqrt_##BITS, [HLO_RSQRT] = lane_rsqrt_##BITS, [HLO_CBRT] = lane_cbrt_##BITS, \
    [HLO_REAL] = lane_real_##BITS, [HLO_IMAG] = lane_imag_##BITS, [HLO_ABS] = lane_abs_##BITS,     \
    [HLO_COMPARE] = lane_compare_##BITS, [HLO_CHLO_TAN] = lane_tan_##BITS,                         \
    [HLO_CHLO_ACOS] = lane_acos_##BITS, [HLO_CHLO_ACOSH] = lane_acosh_##BITS,                      \
    [HLO_CHLO_ASIN] = lane_asin_##BITS, [HLO_CHLO_ASINH] = lane_asinh_##BITS,                      \
    [HLO_CHLO_ATAN] = lane_atan_##BITS, [HLO_CHLO_ATANH] = lane_atanh_##BITS,                      \
    [HLO_CHLO_CONJ] = lane_conj_##BITS, [HLO_CHLO_COSH] = lane_cosh_##BITS, [HLO_CHLO_SINH] = lane_sinh_##BITS

LaneFn *const lane_c64[HLO_OPCODE_COUNT] = {ROWS(32)};
LaneFn *const lane_c128[HLO_OPCODE_COUNT] = {ROWS(64)};
