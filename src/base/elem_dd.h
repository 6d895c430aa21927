// SPDX-License-Identifier: Apache-2.0
// elem_dd.h — bit views of doubles, and numbers of twice the precision: unevaluated sums h + l.
//
// Sums after Knuth, products after Dekker and Veltkamp. No fused operation: a host without one would
// have to imitate it, and every host must give the same bits. Products need magnitudes between
// 2^-900 and 2^990; callers scale.
#ifndef OTRN_BASE_ELEM_DD_H
#define OTRN_BASE_ELEM_DD_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define ELEM_FN static inline __attribute__((always_inline, unused))

ELEM_FN double e_of(uint64_t u) {
    double f;
    memcpy(&f, &u, sizeof f);
    return f;
}
ELEM_FN uint64_t e_bits(double f) {
    uint64_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}
ELEM_FN double e_abs(double x) { return e_of(e_bits(x) & 0x7fffffffffffffffu); }
// The sign of s on the magnitude of m.
ELEM_FN double e_sign(double m, double s) {
    return e_of((e_bits(m) & 0x7fffffffffffffffu) | (e_bits(s) & 0x8000000000000000u));
}
ELEM_FN bool e_neg(double x) { return e_bits(x) >> 63; }
ELEM_FN double e_clamp(double x, double lo, double hi) { // NaN stays NaN
    x = x < lo ? lo : x;
    return x > hi ? hi : x;
}
// Which NaN an operation makes differs between hosts; results have one.
ELEM_FN double e_result(double y) { return y != y ? e_of(0x7ff8000000000000u) : y; }

// Adding and taking away 1.5 * 2^52 rounds |x| < 2^51 to the nearest even integer.
#define E_ROUND 0x1.8p52

typedef struct Dd {
    double h, l;
} Dd;

ELEM_FN Dd dd_sum(double a, double b) { // exact
    double s = a + b, bb = s - a;
    return (Dd){s, (a - (s - bb)) + (b - bb)};
}
ELEM_FN Dd dd_quick(double a, double b) { // exact where |a| >= |b|
    double s = a + b;
    return (Dd){s, b - (s - a)};
}
ELEM_FN Dd dd_prod(double a, double b) { // exact
    double p = a * b, ca = a * 0x1.0000002p27, cb = b * 0x1.0000002p27;
    double ah = ca - (ca - a), al = a - ah, bh = cb - (cb - b), bl = b - bh;
    return (Dd){p, ((ah * bh - p) + ah * bl + al * bh) + al * bl};
}
ELEM_FN Dd dd_add(Dd a, Dd b) {
    Dd s = dd_sum(a.h, b.h), t = dd_sum(a.l, b.l);
    s = dd_quick(s.h, s.l + t.h);
    return dd_quick(s.h, s.l + t.l);
}
ELEM_FN Dd dd_add1(Dd a, double b) {
    Dd s = dd_sum(a.h, b);
    return dd_quick(s.h, s.l + a.l);
}
ELEM_FN Dd dd_neg(Dd a) { return (Dd){-a.h, -a.l}; }
ELEM_FN Dd dd_scale(Dd a, double power_of_two) {
    return (Dd){a.h * power_of_two, a.l * power_of_two};
}
ELEM_FN Dd dd_mul(Dd a, Dd b) {
    Dd p = dd_prod(a.h, b.h);
    return dd_quick(p.h, p.l + (a.h * b.l + a.l * b.h));
}
ELEM_FN Dd dd_mul1(Dd a, double b) {
    Dd p = dd_prod(a.h, b);
    return dd_quick(p.h, p.l + a.l * b);
}
ELEM_FN Dd dd_div(Dd a, Dd b) {
    double q = a.h / b.h;
    Dd p = dd_prod(q, b.h);
    return dd_quick(q, ((((a.h - p.h) - p.l) + a.l) - q * b.l) / b.h);
}
ELEM_FN Dd dd_sqrt(Dd a) { // of a positive number, or zero
    double s = sqrt(a.h), d = s == 0 ? 1 : s + s;
    Dd p = dd_prod(s, s);
    return dd_quick(s, (((a.h - p.h) - p.l) + a.l) / d);
}
// Selection by bits. The compiler threads jumps through plain conditions that depend on each other, and
// then cannot make vectors of them; where it does, these stand instead.
ELEM_FN uint64_t e_mask(bool c) { return 0 - (uint64_t)c; }
ELEM_FN double e_pick(uint64_t mask, double a, double b) {
    return e_of((e_bits(a) & mask) | (e_bits(b) & ~mask));
}
ELEM_FN Dd dd_pick(uint64_t mask, Dd a, Dd b) {
    return (Dd){e_pick(mask, a.h, b.h), e_pick(mask, a.l, b.l)};
}
ELEM_FN Dd dd_select(bool c, Dd a, Dd b) { return (Dd){c ? a.h : b.h, c ? a.l : b.l}; }

// Horner's scheme. The count is a constant wherever this is called.
ELEM_FN double e_poly_of(const double *c, int n, double x) {
    double y = c[n - 1];
#if !defined(__clang__)
#pragma GCC unroll 40
#endif
    for (int i = n - 2; i >= 0; i--)
        y = c[i] + x * y;
    return y;
}
#define e_poly(C, x) e_poly_of(C, (int)(sizeof(C) / sizeof *(C)), x)

#endif
