#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Coefficients of src/base/elem_body.h: scripts/elem_fit.py > src/base/elem_poly.h

Each row is interpolated at Chebyshev nodes with 110 digits, which is near minimax; the degree is the smallest that
reaches the wanted error. The error printed beside a row is relative to the function, before coefficients are rounded. Needs mpmath.
"""
from mpmath import (mp, mpf, cos, pi, sqrt, exp, log, atanh, tanh, sinh, sin, asin, atan, asinh, erf, erfc, erfinv,
                    loggamma, polyval, floor)

mp.dps = 110


def fit(f, lo, hi, degree):
    n = degree + 1
    lo, hi = mpf(lo), mpf(hi)
    xs = [(lo + hi) / 2 + (hi - lo) / 2 * cos(pi * (2 * k + 1) / (2 * n)) for k in range(n)]
    table = [f(x) for x in xs]
    for level in range(1, n):  # Newton's divided differences, then monomials
        for i in range(n - 1, level - 1, -1):
            table[i] = (table[i] - table[i - 1]) / (xs[i] - xs[i - level])
    poly = [table[-1]]
    for i in range(n - 2, -1, -1):
        shifted = [mpf(0)] + poly
        for j, c in enumerate(poly):
            shifted[j] -= xs[i] * c
        shifted[0] += table[i]
        poly = shifted
    return poly


def error(f, poly, lo, hi):
    worst = mpf(0)
    for i in range(101):
        x = mpf(lo) + (mpf(hi) - mpf(lo)) * i / 100
        y = f(x)
        worst = max(worst, abs(polyval(poly[::-1], x) / y - 1))
    return worst


def away(f, x, limit):
    """f needs 0/0 near zero: step in by the value's own smoothness."""
    return f(x if abs(x) > limit else mpf(limit))


ROOT = lambda g: lambda z: g(sqrt(z)) if z > 0 else g(mpf(10) ** -20)
small = mpf(10) ** -40
ATANH = lambda z: away(lambda t: (atanh(sqrt(t)) / sqrt(t) - 1) / t, z, small)
W = lambda w: sqrt(1 - exp(-w))


def erfinv_tail(s):  # y with -log(1 - erf(y)^2) = s^2, by Newton on log erfc
    w = s * s
    c = 1 - sqrt(1 - exp(-w))
    y = s
    for _ in range(60):
        e = erfc(y)
        step = (log(e) - log(c)) / (-2 / sqrt(pi) * exp(-y * y) / e)
        y -= step
        if abs(step) < mpf(10) ** -40:
            break
    return y / sqrt(1 - exp(-w))


LN2H = log(mpf(2)) / 2
ROWS = [
    # name, what, function, from, to, wanted relative error (log2)
    ("EXP", "(e^r - 1 - r) / r^2", lambda r: (exp(r) - 1 - r) / r**2 if abs(r) > small else mpf(1) / 2 + r / 6,
     -LN2H * 1.01, LN2H * 1.01, -58),
    ("LOG", "(atanh(s) / s - 1) / z, z = s^2", ATANH, 0, 0.0295, -58),
    ("LOG5", "(atanh(s) / s - 1 - z / 3) / z^2",
     lambda z: (atanh(sqrt(z)) / sqrt(z) - 1 - z / 3) / z**2 if z > mpf(10) ** -20 else mpf(1) / 5 + z / 7, 0, 0.0295, -58),
    ("SIN", "(sin(r) / r - 1) / z, z = r^2", ROOT(lambda r: (sin(r) / r - 1) / r**2), 0, 0.6175, -57),
    ("COS", "(cos(r) - 1 + z / 2) / z^2", lambda z: (cos(sqrt(z)) - 1 + z / 2) / z**2 if z > mpf(10) ** -20 else mpf(1) / 24,
     0, 0.6175, -55),
    ("TANH", "(tanh(x) / x - 1) / z", ROOT(lambda x: (tanh(x) / x - 1) / x**2), 0, 0.4, -57),
    ("SINH", "(sinh(x) / x - 1) / z", ROOT(lambda x: (sinh(x) / x - 1) / x**2), 0, 1, -57),
    ("ASIN", "(asin(x) / x - 1) / z", ROOT(lambda x: (asin(x) / x - 1) / x**2), 0, 0.25, -57),
    ("ATAN", "(atan(x) / x - 1) / z", ROOT(lambda x: (atan(x) / x - 1) / x**2), 0, 0.1717, -57),
    ("ATANH", "(atanh(x) / x - 1) / z", ATANH, 0, 0.25, -57),
    ("ASINH", "(asinh(x) / x - 1) / z", ROOT(lambda x: (asinh(x) / x - 1) / x**2), 0, 0.25, -57),
    ("ERF", "(erf(x) / x - 2 / sqrt(pi)) / z", ROOT(lambda x: (erf(x) / x - 2 / sqrt(pi)) / x**2), 0, 1, -56),
    ("ERFCX", "(1 + 2x) e^(x^2) erfc(x), t = (x - 3.75) / (x + 3.75)",
     lambda t: (lambda x: (1 + 2 * x) * exp(x * x) * erfc(x))(mpf(15) / 4 * (1 + t) / (1 - t)),
     (mpf("0.45") - 3.75) / (mpf("0.45") + 3.75), mpf("24.3") / mpf("31.8"), -58),
    ("ERFINV", "erf_inv(x) / x, w = -log(1 - x^2) below 5",
     lambda w: erfinv(W(w)) / W(w) if w > small else sqrt(pi) / 2, 0, 5, -25),
    ("ERFINV_TAIL", "the same over s = sqrt(w) from 2.2", erfinv_tail, 2.2, 6.1, -25),
    ("LGAMMA", "lgamma(2 + t) / t", lambda t: loggamma(2 + t).real / t if abs(t) > small else mpf("0.42278433509846713939"),
     -0.5, 0.5, -56),
]


def main():
    print("// SPDX-License-Identifier: Apache-2.0")
    print("// elem_poly.h — polynomials of elem_body.h, lowest degree first. Written by scripts/elem_fit.py.")
    print("//")
    print("// Beside each: the function it stands for, the interval, the relative error before rounding to double.")
    print("#ifndef OTRN_BASE_ELEM_POLY_H\n#define OTRN_BASE_ELEM_POLY_H\n\n#include <stdint.h>")
    for name, what, f, lo, hi, want in ROWS:
        for degree in range(4, 40):
            poly = fit(f, lo, hi, degree)
            worst = error(f, poly, lo, hi)
            if worst < mpf(2) ** want:
                break
        print(f"\n// {what}: [{float(lo):.5g}, {float(hi):.5g}], 2^{float(log(worst, 2)):.1f}")
        print(f"static const double ELEM_{name}[] = {{")
        for i in range(0, len(poly), 3):
            print("    " + " ".join(float(c).hex() + "," for c in poly[i:i + 3]))
        print("};")
    print("\n// 2 / pi after the point, 1280 bits.")
    print("static const uint64_t ELEM_TWO_OVER_PI[] = {")
    mp.prec = 1500
    bits = int(floor(mpf(2) / pi * mpf(2) ** 1280))
    words = [bits >> (1280 - 64 * (i + 1)) & (2**64 - 1) for i in range(20)]
    for i in range(0, 20, 4):
        print("    " + " ".join(f"0x{w:016x}," for w in words[i:i + 4]))
    print("};\n\n#endif")


main()
