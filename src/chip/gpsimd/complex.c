// SPDX-License-Identifier: Apache-2.0
// complex.c — complex lanes: plain loops in double, rounded once for complex<f32>.
//
// The functions are those of base/elem.h.
#include "base/elem.h"
#include "chip/gpsimd/gp.h"

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

static Z z_add(Z a, Z b) { return CMPLX(creal(a) + creal(b), cimag(a) + cimag(b)); }
static Z z_sub(Z a, Z b) { return CMPLX(creal(a) - creal(b), cimag(a) - cimag(b)); }
static Z z_conj(Z z) { return CMPLX(creal(z), -cimag(z)); }
static Z z_neg(Z z) { return CMPLX(-creal(z), -cimag(z)); }
static bool z_less(Z a, Z b) { // by real part, then by imaginary part
    return creal(a) < creal(b) || (creal(a) == creal(b) && cimag(a) < cimag(b));
}
static Z z_max(Z a, Z b) { return creal(a) != creal(a) || cimag(a) != cimag(a) ? a : z_less(b, a) ? a : b; }
static Z z_min(Z a, Z b) { return creal(a) != creal(a) || cimag(a) != cimag(a) ? a : z_less(a, b) ? a : b; }

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
TWO(lane_mul, elem_c_mul)
TWO(lane_div, elem_c_div)
TWO(lane_pow, elem_c_pow)
TWO(lane_atan2, elem_c_atan2)
TWO(lane_max, z_max)
TWO(lane_min, z_min)
ONE(lane_neg, z_neg)
ONE(lane_sign, elem_c_sign)
ONE(lane_square, elem_c_square)
ONE(lane_exp, elem_c_exp)
ONE(lane_expm1, elem_c_expm1)
ONE(lane_log, elem_c_log)
ONE(lane_log1p, elem_c_log1p)
ONE(lane_tanh, elem_c_tanh)
ONE(lane_logistic, elem_c_logistic)
ONE(lane_sin, elem_c_sin)
ONE(lane_cos, elem_c_cos)
ONE(lane_tan, elem_c_tan)
ONE(lane_sqrt, elem_c_sqrt)
ONE(lane_rsqrt, elem_c_rsqrt)
ONE(lane_cbrt, elem_c_cbrt)
ONE(lane_conj, z_conj)
ONE(lane_acos, elem_c_acos)
ONE(lane_acosh, elem_c_acosh)
ONE(lane_asin, elem_c_asin)
ONE(lane_asinh, elem_c_asinh)
ONE(lane_atan, elem_c_atan)
ONE(lane_atanh, elem_c_atanh)
ONE(lane_cosh, elem_c_cosh)
ONE(lane_sinh, elem_c_sinh)

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
            ((T *)dst)[i] = (T)elem_hypot(creal(z), cimag(z));                                          \
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
