// SPDX-License-Identifier: Apache-2.0
// elem_special.c — the gamma family and a Bessel function, from recurrences and their series.
//
// lgamma and digamma are within 3 ulp for positive arguments; left of zero they are differences, so that
// near their zeros there the error is absolute. zeta and polygamma add a few ulp per term.
#include "base/elem.h"

#include "base/elem_body.h"

static bool is_whole(double x) { return x == floor(x); }

// pi / sin(pi x) and pi / tan(pi x) need x only to the nearest whole number.
static Turn half_turns(double x) {
    double near = 2 * x - nearbyint(2 * x); // of a quarter turn, exact
    double n = nearbyint(2 * x);
    return (Turn){dd_mul1(E_PI_2, near), (uint64_t)(int64_t)fmod(n, 4) & 3};
}

// Stirling's series behind the leading terms, x >= 10.
static Dd stirling(double x) {
    static const double c[] = {1. / 12,       -1. / 360,        1. / 1260,       -1. / 1680, 1. / 1188,
                               -691. / 360360, 1. / 156, -3617. / 122400};
    const Dd half_log_2pi = {0x1.d67f1c864beb5p-1, -0x1.65b5a1b7ff5dfp-55};
    double rest = e_poly(c, 1 / (x * x)) / x;
    Dd l = dd_mul(e_log_dd((Dd){x, 0}), dd_sum(x, -0.5));
    return dd_add1(dd_add(dd_add1(l, -x), half_log_2pi), rest);
}
// x > 0: near 1 and 2 from the expansion about 2, whose zero is a factor; up to 10 by recurrence.
static Dd lgamma_positive(double x) {
    if (x > 0x1p55) {
        Dd l = dd_add1(e_log_dd((Dd){x, 0}), -1);
        return x > 0x1p900 ? (Dd){l.h * x, 0} : dd_mul1(l, x);
    }
    if (x >= 10)
        return stirling(x);
    double t = x - 2;
    Dd shift = {0, 0};
    if (x < 0.5) { // gamma(x) = gamma(x + 2) / (x (x + 1))
        t = x;
        shift = dd_neg(dd_add(e_log_dd((Dd){x, 0}), e_log_dd(dd_sum(1, x))));
    } else if (x < 1.5) {
        t = x - 1;
        shift = dd_neg(e_log_dd((Dd){x, 0}));
    } else if (x > 2.5) {
        Dd product = {1, 0};
        for (; t > 0.5; t--)
            product = dd_mul1(product, t + 1);
        shift = e_log_dd(product);
    }
    Dd p = dd_quick(ELEM_LGAMMA[0], t * e_poly_of(ELEM_LGAMMA + 1, sizeof ELEM_LGAMMA / 8 - 1, t));
    return dd_add(shift, e_abs(t) < 0x1p-60 ? (Dd){ELEM_LGAMMA[0] * t, 0} : dd_mul1(p, t));
}
double elem_lgamma(double x) {
    if (x != x || e_abs(x) == INFINITY)
        return x != x ? e_result(x) : INFINITY;
    if (x <= 0 && is_whole(x))
        return INFINITY;
    if (x > 0)
        return lgamma_positive(x).h;
    if (x > -0x1p-60)
        return -elem_log(-x);
    // log(pi / |x sin(pi x)|) - lgamma(-x)
    const Dd log_pi = {0x1.250d048e7a1bdp+0, 0x1.7abf2ad8d5088p-57};
    Dd s = e_turn_sin(half_turns(x));
    s = s.h < 0 ? dd_neg(s) : s;
    Dd l = dd_add(e_log_dd(s), e_log_dd((Dd){-x, 0}));
    return dd_add(dd_add(log_pi, dd_neg(l)), dd_neg(lgamma_positive(-x))).h;
}

// psi(x): upward recurrence to 16, then the asymptotic series in Bernoulli numbers; negative x by
// reflection.
double elem_digamma(double x) {
    static const double c[] = {-1. / 120,     1. / 252, -1. / 240,    1. / 132,
                               -691. / 32760, 1. / 12,  -3617. / 8160}; // behind 1/12
    if (x == 0)
        return copysign(INFINITY, -x);
    if (x != x || x == -INFINITY || (x < 0 && is_whole(x)))
        return e_result(NAN);
    if (x == INFINITY)
        return x;
    Dd sum = {0, 0}, v = {x, 0};
    if (x < 0) { // psi(1 - x) - pi cot(pi x)
        Turn t = half_turns(x);
        Dd s = e_turn_sin(t), cosine = e_turn_cos(t);
        sum = dd_neg(dd_div(dd_mul(E_PI, cosine), s));
        v = dd_sum(1, -x);
    }
    for (; v.h < 16; v = dd_add1(v, 1))
        sum = dd_add(sum, dd_neg(dd_div((Dd){1, 0}, v)));
    sum = dd_add(sum, e_log_dd(v));
    if (v.h > 0x1p60)
        return sum.h;
    double z = 1 / (v.h * v.h);
    Dd first = dd_div((Dd){-E_THIRD_H / 4, -E_THIRD_L / 4}, dd_mul(v, v));
    sum = dd_add(dd_add(sum, dd_div((Dd){-0.5, 0}, v)), first);
    return dd_add1(sum, -(z * z * e_poly(c, z))).h;
}

// exp(-|x|) I1(x): the power series (all terms of one sign) up to 30, the asymptotic one above.
double elem_bessel_i1e(double x) {
    double a = e_abs(x);
    if (x != x)
        return e_result(x);
    if (a <= 30) {
        Dd q = dd_scale(a < 0x1p-400 ? (Dd){0, 0} : dd_prod(a, a), 0.25), term = {1, 0}, sum = term;
        for (int k = 1; k < 200 && term.h > sum.h * 0x1p-60; k++) {
            term = dd_div(dd_mul(term, q), (Dd){k * (k + 1.0), 0});
            sum = dd_add(sum, term);
        }
        ExpParts e = e_exp_parts(-a, 0);
        return copysign(0.5 * a * e_scale(dd_mul(e_exp_sum(e), sum).h, e.v), x);
    }
    double term = 1, sum = 0;
    for (int k = 1; k < 60; k++) {
        double odd = 2 * k - 1, next = -term * (4 - odd * odd) / (k * 8 * a);
        if (e_abs(next) >= e_abs(term) || e_abs(next) < 0x1p-60)
            break;
        sum += term = next;
    }
    return copysign((1 + sum) / sqrt(2 * E_PI.h * a), x);
}

// The sum of (q + k)^-x over k >= 0, for x > 1 and q > 0: the first terms, then Euler-Maclaurin.
static double zeta_right(double x, double q) {
    static const double c[] = {1. / 12,          -1. / 720,    1. / 30240,
                               -1. / 1209600,    1. / 47900160, -691. / 1307674368000,
                               1. / 74724249600, -3617. / 10670622842880000};
    Dd sum = {0, 0}, at = {q, 0}; // a rounded step would count x times
    for (int i = 0; at.h < 18 + x && i < 1000; at = dd_add1(at, 1), i++) { // the series needs q above x
        double term = elem_pow(at.h, -x);
        if (term == INFINITY)
            return term;
        term -= term * (x * at.l / at.h);
        sum = dd_add1(sum, term);
        if (term < sum.h * 0x1p-60)
            return sum.h;
    }
    q = at.h;
    double last = elem_pow(q, -x) * (1 - x * at.l / q), rise = x * last / q; // x (x + 1) … (x + 2i) / q^(x + 2i + 1)
    double rest = 0.5 * last;
    for (int i = 0; i < 8; i++) {
        rest += rise * c[i];
        rise *= (x + 2 * i + 1) * (x + 2 * i + 2) / (q * q);
    }
    return dd_add1(dd_add1(sum, last * q / (x - 1)), rest).h;
}

// Hurwitz zeta. Infinite at x = 1, and for even x at q = 0, -1, …; not a number where it is not real.
// For other negative q the terms left of zero are those of a sum to the right, up to their sign.
double elem_zeta(double x, double q) {
    if (!(x >= 1) || q != q || q == -INFINITY)
        return e_result(NAN);
    if (x == 1)
        return INFINITY;
    bool even = fmod(x, 2) == 0;
    if (q <= 0 && is_whole(q))
        return even ? INFINITY : e_result(NAN);
    if (q == INFINITY || (x == INFINITY && q > 1))
        return 0;
    if (q > 0)
        return x == INFINITY ? (q == 1 ? 1 : INFINITY) : zeta_right(x, q);
    if (x == INFINITY || !is_whole(x))
        return e_result(NAN);
    double n = -floor(q), f = q + n;
    double left = zeta_right(x, 1 - f) - zeta_right(x, n + 1 - f);
    return e_result(zeta_right(x, f) + (even ? left : -left));
}

// Derivatives of digamma: (-1)^(n+1) n! zeta(n + 1, x) for whole n > 0.
double elem_polygamma(double n, double x) {
    if (n == 0)
        return elem_digamma(x);
    if (!(n > 0) || !is_whole(n))
        return e_result(NAN);
    Dd factorial = {1, 0};
    for (int i = 2; i <= n && i <= 170; i++)
        factorial = dd_mul1(factorial, i);
    double f = n > 170 ? INFINITY : factorial.h, v = f * elem_zeta(n + 1, x);
    return e_result(fmod(n, 2) == 0 ? -v : v);
}
