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
