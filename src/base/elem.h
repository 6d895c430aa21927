// SPDX-License-Identifier: Apache-2.0
// elem.h — our own elementary functions of f64 and complex f64: one definition for evaluator and chip.
//
// Within 3 ulp of the true value (tests/unit/elem_test.c prints what each reaches; most stay below 1),
// over the whole range of arguments, with the special cases of IEEE 754 and C. Only IEEE add, subtract,
// multiply, divide, square root and integer operations occur, never a fused one: results do not depend on
// the host or its C library. Every NaN result is 0x7ff8000000000000.
#ifndef OTRN_BASE_ELEM_H
#define OTRN_BASE_ELEM_H

#include <complex.h>
#include <stdint.h>

// Those of elem_body.h; the chip has vector forms of these with the same bits.
#define ELEM_ONE_ROWS(X)                                                                           \
    X(exp) X(expm1) X(log) X(log1p) X(logistic) X(cbrt) X(rsqrt) X(sinh) X(cosh) X(tanh)           \
    X(asinh) X(acosh) X(atanh) X(asin) X(acos) X(atan) X(erf) X(erfc) X(erf_inv)
#define ELEM_TURN_ROWS(X) X(sin) X(cos) X(tan) // of an angle
#define ELEM_TWO_ROWS(X) X(pow) X(atan2) X(hypot)
// elem_special.c
#define ELEM_SPECIAL1_ROWS(X) X(lgamma) X(digamma) X(bessel_i1e)
#define ELEM_SPECIAL2_ROWS(X) X(zeta) X(polygamma)
// elem_complex.c
#define ELEM_COMPLEX1_ROWS(X)                                                                      \
    X(exp) X(expm1) X(log) X(log1p) X(logistic) X(sqrt) X(rsqrt) X(cbrt) X(sin) X(cos) X(tan)      \
    X(sinh) X(cosh) X(tanh) X(asin) X(acos) X(atan) X(asinh) X(acosh) X(atanh) X(sign) X(square)
#define ELEM_COMPLEX2_ROWS(X) X(mul) X(div) X(pow) X(atan2)

#define X(name) double elem_##name(double x);
ELEM_ONE_ROWS(X) ELEM_TURN_ROWS(X) ELEM_SPECIAL1_ROWS(X)
#undef X
#define X(name) double elem_##name(double a, double b);
ELEM_TWO_ROWS(X) ELEM_SPECIAL2_ROWS(X)
#undef X
#define X(name) double complex elem_c_##name(double complex z);
ELEM_COMPLEX1_ROWS(X)
#undef X
#define X(name) double complex elem_c_##name(double complex a, double complex b);
ELEM_COMPLEX2_ROWS(X)
#undef X

float elem_cosh_f32(float x); // for f32 and narrower: rounded at each step, as frameworks expand it
// e^(2 pi i k / n), 0 <= k < n < 2^50.
double complex elem_c_root(int64_t k, int64_t n);

#endif
