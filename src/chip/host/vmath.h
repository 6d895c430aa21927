// SPDX-License-Identifier: Apache-2.0
// vmath.h — our own elementary functions over arrays of f32.
//
// Each is a branch-free loop that the compiler turns into vector code for every host level. Inside,
// a value is widened to double, reduced, put through a short near-minimax polynomial whose error is
// below 2^-30, and rounded once: results are within 0.6 ulp and follow the special cases of IEEE
// 754 and C. exp, tanh and logistic stay in f32 for speed and are within 2 ulp. Only IEEE add, subtract, multiply, divide, square root and integer operations occur,
// never a fused one, so that all levels compute the same bits.
#ifndef OTRN_CHIP_VMATH_H
#define OTRN_CHIP_VMATH_H

#include <stddef.h>

#include "base/host.h"

// y[i] = f(x[i]); y may be x.
typedef void VMath1(float *y, const float *x, size_t n);
// y[i] = f(a[i], b[i]); y may be a or b.
typedef void VMath2(float *y, const float *a, const float *b, size_t n);

#define VMATH1_ROWS(X)                                                                             \
    X(exp)                                                                                         \
    X(expm1) X(log) X(log1p) X(tanh) X(logistic) X(sin) X(cos) X(tan) X(sqrt) X(rsqrt) X(cbrt)     \
        X(erf) X(erf_inv)
#define VMATH2_ROWS(X) X(pow) X(atan2)

typedef struct VMath {
#define X(name) VMath1 *name;
    VMATH1_ROWS(X)
#undef X
#define X(name) VMath2 *name;
    VMATH2_ROWS(X)
#undef X
} VMath;

const VMath *vmath_f32(HostLevel level);

#endif
