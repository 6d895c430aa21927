// SPDX-License-Identifier: Apache-2.0
// eval_special.c — functions that libm lacks, from their textbook series, in double.
#include <math.h>

#include "hlo/eval_in.h"

// Inverse of erf. Start from a two-term logarithmic estimate (good to about 2e-3), then Halley
// steps on erf near zero and on erfc in the tail, where 1 - |x| is exact.
double special_erf_inv(double x) {
    double a = fabs(x);
    if (!(a < 1))
        return a == 1 ? copysign(INFINITY, x) : NAN;
    if (a < 1e-9) // erf(y) = 2y/sqrt(pi) to double precision
        return x * 0.88622692545275801365;
    const double k = 0.147, two_over_pi_k = 2 / (M_PI * k);
    double l = log1p(-a * a), t = two_over_pi_k + l / 2;
    double y = sqrt(sqrt(t * t - l / k) - t);
    for (int i = 0; i < 4; i++) {
        double f = a < 0.5 ? erf(y) - a : (1 - a) - erfc(y);
        double step = f * 0.88622692545275801365 * exp(y * y); // f / f'
        y -= step / (1 + y * step);
    }
    return copysign(y, x);
}

// Derivative of log gamma: reflection to the right half, recurrence up to 12, then the asymptotic
// series with Bernoulli numbers.
double special_digamma(double x) {
    if (x == 0)
        return copysign(INFINITY, -x);
    if (x < 0 && x == floor(x))
        return NAN;
    if (x < 0) {
        double frac = x - floor(x); // pi cot(pi x), with the argument reduced exactly
        return special_digamma(1 - x) - M_PI / tan(M_PI * frac);
    }
    static const double b[] = {1. / 12,  -1. / 120,     1. / 252, -1. / 240,
                               1. / 132, -691. / 32760, 1. / 12};
    double shift = 0;
    for (; x < 12; x++)
        shift += 1 / x;
    double inv2 = 1 / (x * x), p = inv2, sum = 0;
    for (int i = 0; i < 7; i++, p *= inv2)
        sum += b[i] * p;
    return log(x) - 0.5 / x - sum - shift;
}

// exp(-|x|) I1(x): the power series (all terms of one sign) up to 30, the asymptotic one above.
double special_bessel_i1e(double x) {
    double a = fabs(x);
    if (isnan(x))
        return x;
    if (isinf(x))
        return copysign(0, x);
    if (a <= 30) {
        double q = a * a / 4, term = a / 2, sum = term;
        for (int k = 1; k < 200 && term > sum * 1e-18; k++)
            sum += term *= q / (k * (k + 1.0));
        return copysign(exp(-a) * sum, x);
    }
    double term = 1, sum = 1;
    for (int k = 1; k < 60; k++) {
        double odd = 2 * k - 1, next = -term * (4 - odd * odd) / (k * 8 * a);
        if (fabs(next) >= fabs(term) || fabs(next) < 1e-18)
            break;
        sum += term = next;
    }
    return copysign(sum / sqrt(2 * M_PI * a), x);
}

// The sum of (q + k)^-x over k >= 0, for x > 1 and q > 0: the first terms, then Euler-Maclaurin.
static double zeta_right(double x, double q) {
    double sum = 0;
    for (; q < 16; q++) {
        double term = pow(q, -x);
        sum += term;
        if (isinf(sum) || term < sum * 1e-18)
            return sum;
    }
    static const double bernoulli[] = {1. / 6,  -1. / 30,      1. / 42, -1. / 30,
                                       5. / 66, -691. / 2730, 7. / 6,  -3617. / 510};
    double last = pow(q, -x), rise = x / q, fact = 2; // rise: x (x+1) … / q^(2i-1); fact: (2i)!
    sum += last * (q / (x - 1) + 0.5);
    for (int i = 1; i <= 8 && last > 0; i++) {
        sum += last * bernoulli[i - 1] * rise / fact;
        rise *= (x + 2 * i - 1) * (x + 2 * i) / (q * q);
        fact *= (2 * i + 1) * (2 * i + 2.0);
    }
    return sum;
}

// Hurwitz zeta. Infinite at x = 1, and for even x at q = 0, -1, …; not a number where it is not real.
// For other negative q the terms left of zero are those of a sum to the right, up to their sign.
double special_zeta(double x, double q) {
    if (isnan(x) || isnan(q) || x < 1 || q == -INFINITY)
        return NAN;
    if (x == 1)
        return INFINITY;
    if (q <= 0 && q == floor(q))
        return fmod(x, 2) == 0 ? INFINITY : NAN;
    if (isinf(q) || (isinf(x) && q > 1))
        return 0;
    if (q > 0)
        return isinf(x) ? (q == 1 ? 1 : INFINITY) : zeta_right(x, q);
    if (isinf(x) || x != floor(x))
        return NAN;
    double n = -floor(q), f = q + n;
    double left = zeta_right(x, 1 - f) - zeta_right(x, n + 1 - f);
    return zeta_right(x, f) + (fmod(x, 2) == 0 ? left : -left);
}

// Derivatives of digamma: (-1)^(n+1) n! zeta(n + 1, x) for whole n > 0.
double special_polygamma(double n, double x) {
    if (n == 0)
        return special_digamma(x);
    if (!(n > 0) || n != floor(n))
        return NAN;
    double v = tgamma(n + 1) * special_zeta(n + 1, x);
    return fmod(n, 2) == 0 ? -v : v;
}
