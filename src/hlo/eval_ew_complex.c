// SPDX-License-Identifier: Apache-2.0
// eval_ew_complex.c — elementwise ops on complex numbers, in double.
//
// Products, quotients and elementary functions are those of base/elem.h.
#include "base/elem.h"
#include "hlo/eval_in.h"

typedef double complex cplx;

static bool less(cplx x, cplx y) { // lexicographic
    return creal(x) < creal(y) || (creal(x) == creal(y) && cimag(x) < cimag(y));
}

#define UNARY(name, expr)                                                                          \
    static void c_##name(int dtype, size_t n, void *r, const void *a, const void *b) {             \
        (void)dtype, (void)b;                                                                      \
        for (size_t i = 0; i < n; i++) {                                                           \
            const double *p = (const double *)a + 2 * i;                                           \
            cplx x = CMPLX(p[0], p[1]), v = (expr);                                                \
            ((double *)r)[2 * i] = creal(v), ((double *)r)[2 * i + 1] = cimag(v);                  \
        }                                                                                          \
    }
#define BINARY(name, expr)                                                                         \
    static void c_##name(int dtype, size_t n, void *r, const void *a, const void *b) {             \
        (void)dtype;                                                                               \
        for (size_t i = 0; i < n; i++) {                                                           \
            const double *p = (const double *)a + 2 * i, *q = (const double *)b + 2 * i;           \
            cplx x = CMPLX(p[0], p[1]), y = CMPLX(q[0], q[1]), v = (expr);                         \
            ((double *)r)[2 * i] = creal(v), ((double *)r)[2 * i + 1] = cimag(v);                  \
        }                                                                                          \
    }

UNARY(acos, elem_c_acos(x))
UNARY(acosh, elem_c_acosh(x))
UNARY(asin, elem_c_asin(x))
UNARY(asinh, elem_c_asinh(x))
UNARY(atan, elem_c_atan(x))
UNARY(atanh, elem_c_atanh(x))
UNARY(cbrt, elem_c_cbrt(x))
UNARY(cosh, elem_c_cosh(x))
UNARY(cosine, elem_c_cos(x))
UNARY(exponential, elem_c_exp(x))
UNARY(expm1, elem_c_expm1(x))
UNARY(log, elem_c_log(x))
UNARY(log1p, elem_c_log1p(x))
UNARY(logistic, elem_c_logistic(x))
UNARY(conj, CMPLX(creal(x), -cimag(x)))
UNARY(negate, CMPLX(-creal(x), -cimag(x)))
UNARY(rsqrt, elem_c_rsqrt(x))
UNARY(sign, elem_c_sign(x))
UNARY(sine, elem_c_sin(x))
UNARY(sinh, elem_c_sinh(x))
UNARY(sqrt, elem_c_sqrt(x))
UNARY(square, elem_c_square(x))
UNARY(tan, elem_c_tan(x))
UNARY(tanh, elem_c_tanh(x))
BINARY(add, CMPLX(creal(x) + creal(y), cimag(x) + cimag(y)))
BINARY(atan2, elem_c_atan2(x, y))
BINARY(divide, elem_c_div(x, y))
BINARY(maximum, less(x, y) ? y : x)
BINARY(minimum, less(y, x) ? y : x)
BINARY(multiply, elem_c_mul(x, y))
BINARY(power, elem_c_pow(x, y))
BINARY(subtract, CMPLX(creal(x) - creal(y), cimag(x) - cimag(y)))

WideFn *eval_ew_complex(HloOpcode code) {
    static WideFn *const table[HLO_OPCODE_COUNT] = {
        [HLO_ADD] = c_add,
        [HLO_ATAN2] = c_atan2,
        [HLO_CBRT] = c_cbrt,
        [HLO_CHLO_ACOS] = c_acos,
        [HLO_CHLO_ACOSH] = c_acosh,
        [HLO_CHLO_ASIN] = c_asin,
        [HLO_CHLO_ASINH] = c_asinh,
        [HLO_CHLO_ATAN] = c_atan,
        [HLO_CHLO_ATANH] = c_atanh,
        [HLO_CHLO_COSH] = c_cosh,
        [HLO_CHLO_SINH] = c_sinh,
        [HLO_CHLO_SQUARE] = c_square,
        [HLO_CHLO_TAN] = c_tan,
        [HLO_COSINE] = c_cosine,
        [HLO_DIVIDE] = c_divide,
        [HLO_EXPONENTIAL] = c_exponential,
        [HLO_EXPONENTIAL_MINUS_ONE] = c_expm1,
        [HLO_LOG] = c_log,
        [HLO_LOG_PLUS_ONE] = c_log1p,
        [HLO_LOGISTIC] = c_logistic,
        [HLO_MAXIMUM] = c_maximum,
        [HLO_MINIMUM] = c_minimum,
        [HLO_MULTIPLY] = c_multiply,
        [HLO_CHLO_CONJ] = c_conj,
        [HLO_NEGATE] = c_negate,
        [HLO_POWER] = c_power,
        [HLO_RSQRT] = c_rsqrt,
        [HLO_SIGN] = c_sign,
        [HLO_SINE] = c_sine,
        [HLO_SQRT] = c_sqrt,
        [HLO_SUBTRACT] = c_subtract,
        [HLO_TAN] = c_tan,
        [HLO_TANH] = c_tanh,
    };
    return table[code];
}
