// SPDX-License-Identifier: Apache-2.0
// eval_ew_complex.c — elementwise ops on complex numbers, in double.
//
// Multiplication is the plain formula (no recovery of infinities, as XLA); division and the
// elementary functions are C's.
#include <complex.h>
#include <math.h>

#include "hlo/eval_in.h"

typedef double complex cplx;

static cplx mul(cplx a, cplx b) {
    double ar = creal(a), ai = cimag(a), br = creal(b), bi = cimag(b);
    return CMPLX(ar * br - ai * bi, ar * bi + ai * br);
}

// The product a*b as an unevaluated sum of two doubles.
static double two_product(double a, double b, double *err) {
    double p = a * b;
    *err = fma(a, b, -p);
    return p;
}

static double two_sum(double a, double b, double *err) {
    double s = a + b, bb = s - a;
    *err = (a - (s - bb)) + (b - bb);
    return s;
}

// log(1 + z). The real part is half of log1p(2x + x² + y²), whose argument may cancel almost
// wholly: it is summed with its rounding errors.
static cplx clog1p(cplx z) {
    double x = creal(z), y = cimag(z);
    double im = atan2(y, 1 + x);
    if (!isfinite(x) || !isfinite(y) || fabs(x) > 1e100 || fabs(y) > 1e100)
        return CMPLX(creal(clog(CMPLX(1 + x, y))), im);
    double ex, ey, e1, e2;
    double xx = two_product(x, x, &ex), yy = two_product(y, y, &ey);
    double big = fabs(2 * x) > yy ? 2 * x : yy, small = fabs(2 * x) > yy ? yy : 2 * x;
    double s = two_sum(big, small, &e1);
    s = two_sum(s, xx, &e2);
    double sum = s + (e1 + e2 + ex + ey);
    return CMPLX(0.5 * log1p(sum), im);
}

// exp(z) - 1 = expm1(x) cos y - 2 sin²(y/2) + i exp(x) sin y
static cplx cexpm1(cplx z) {
    double x = creal(z), y = cimag(z);
    if (y == 0)
        return CMPLX(expm1(x), y);
    double h = sin(y / 2);
    return CMPLX(expm1(x) * cos(y) - 2 * h * h, exp(x) * sin(y));
}

// C gives exp(±inf ± i inf) a zero or an infinity; here a direction that does not exist is NaN.
static cplx exponential(cplx z) {
    if (isinf(creal(z)) && !isfinite(cimag(z)))
        return CMPLX(NAN, NAN);
    return cexp(z);
}

// (x - y)(x + y) + 2xy i: no inf - inf, and no cancellation of squares.
static cplx square(cplx z) {
    double x = creal(z), y = cimag(z);
    bool diagonal = fabs(x) == fabs(y) && isfinite(x); // x + y may overflow against x - y = 0
    return CMPLX(diagonal ? 0 : (x - y) * (x + y), 2 * (x * y));
}

static cplx power(cplx x, cplx y) {
    if (y == 0)
        return 1;
    if (x == 0)
        return creal(y) > 0 ? 0 : CMPLX(NAN, NAN);
    return cexp(mul(y, clog(x)));
}

static cplx sign(cplx z) {
    if (isnan(creal(z)) || isnan(cimag(z)))
        return CMPLX(NAN, NAN);
    double a = cabs(z);
    return a == 0 ? 0 : CMPLX(creal(z) / a, cimag(z) / a);
}

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

UNARY(acos, cacos(x))
UNARY(acosh, cacosh(x))
UNARY(asin, casin(x))
UNARY(asinh, casinh(x))
UNARY(atan, catan(x))
UNARY(atanh, catanh(x))
UNARY(cbrt, power(x, 1.0 / 3))
UNARY(cosh, ccosh(x))
UNARY(cosine, ccos(x))
UNARY(exponential, exponential(x))
UNARY(expm1, cexpm1(x))
UNARY(log, clog(x))
UNARY(log1p, clog1p(x))
UNARY(logistic, 1 / (1 + cexp(-x)))
UNARY(conj, conj(x))
UNARY(negate, -x)
UNARY(rsqrt, 1 / csqrt(x))
UNARY(sign, sign(x))
UNARY(sine, csin(x))
UNARY(sinh, csinh(x))
UNARY(sqrt, csqrt(x))
UNARY(square, square(x))
UNARY(tan, ctan(x))
UNARY(tanh, ctanh(x))
BINARY(add, CMPLX(creal(x) + creal(y), cimag(x) + cimag(y)))
BINARY(atan2, mul(CMPLX(0, -1), clog((y + mul(CMPLX(0, 1), x)) / csqrt(mul(x, x) + mul(y, y)))))
BINARY(divide, x / y)
BINARY(maximum, less(x, y) ? y : x)
BINARY(minimum, less(y, x) ? y : x)
BINARY(multiply, mul(x, y))
BINARY(power, power(x, y))
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
