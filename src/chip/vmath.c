// SPDX-License-Identifier: Apache-2.0
// vmath.c — the tables of vmath.h, and the f64 function that libm lacks.
#include "chip/vmath.h"

#include <math.h>

#include "chip/gp.h"

const VMath *vmath_f32(HostLevel level) { return gp_level(level)->vmath; }

// A start from the tail's leading terms or a straight line, then Halley steps on erf (erfc near 1,
// where 1 - x is exact): each triples the number of right digits.
double vmath_erf_inv(double x) {
    double a = fabs(x);
    if (!(a < 1))
        return a == 1 ? copysign(INFINITY, x) : NAN;
    if (a < 1e-8)
        return x * 0.88622692545275801; // sqrt(pi) / 2, the next term is x^3
    double w = -log((1 - a) * (1 + a)), y;
    if (w < 5) {
        y = a * (0.886227 + w * (0.2320 + w * 0.0115));
    } else {
        double s = sqrt(w);
        y = s - 0.25 * log(3.14159265358979 * w) / s;
    }
    for (int step = 0; step < 4; step++) {
        double miss = a > 0.5 ? (1 - a) - erfc(y) : erf(y) - a;
        double slope = 1.1283791670955126 * exp(-y * y);
        double d = miss / slope;
        y -= d / (1 + y * d);
    }
    return copysign(y, x);
}
