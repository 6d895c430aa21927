#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reference values for tests/unit/elem_test.c: scripts/elem_vectors.py > tests/unit/data/elem_vectors.txt

Arguments are drawn from ranges that matter to the function; a value is the nearest double and what it misses, in
thousandths of its unit in the last place. Needs mpmath.
"""
import math
import random
import re

import mpmath as M
from mpmath import mp, mpc, mpf

SAMPLES = 24
random.seed(2024)


def sign():
    return random.choice((1, -1))


def flat(lo, hi):
    return lambda: random.uniform(lo, hi)


def size(lo, hi):  # any sign, sizes 2^lo … 2^hi
    return lambda: sign() * 2.0 ** random.uniform(lo, hi)


def positive(lo, hi):
    return lambda: 2.0 ** random.uniform(lo, hi)


def below_one():
    return sign() * (1 - 2.0 ** random.uniform(-53, -1))


def quarter_turn():  # the double next to a multiple of pi/2
    return float(random.randrange(1, 1 << random.randrange(2, 60)) * M.pi / 2)


TURNS = [size(-60, 20), size(20, 1023), quarter_turn, flat(-10, 10)]
ONE = {
    "exp": (M.exp, [flat(-745, 709), flat(-1, 1), flat(-745, -708)]),
    "expm1": (M.expm1, [flat(-40, 709), flat(-1, 1), size(-1074, 0)]),
    "log": (M.log, [positive(-1074, 1023), flat(0.5, 2), lambda: 1 + size(-52, -2)()]),
    "log1p": (M.log1p, [flat(-0.99, 3), size(-1074, -1), positive(0, 1023)]),
    "logistic": (lambda x: 1 / (1 + M.exp(-x)), [flat(-745, 40), flat(-3, 3)]),
    "cbrt": (lambda x: M.sign(x) * M.cbrt(abs(x)), [size(-1074, 1023)]),
    "rsqrt": (lambda x: 1 / M.sqrt(x), [positive(-1074, 1023)]),
    "sinh": (M.sinh, [flat(-710, 710), flat(-2, 2), size(-1074, 0)]),
    "cosh": (M.cosh, [flat(-710, 710), flat(-2, 2)]),
    "tanh": (M.tanh, [flat(-20, 20), flat(-1, 1), size(-1074, 0)]),
    "asinh": (M.asinh, [size(-1074, 1023), flat(-2, 2)]),
    "acosh": (M.acosh, [positive(0, 1023), lambda: 1 + positive(-52, 0)()]),
    "atanh": (M.atanh, [flat(-1, 1), size(-1074, -1), below_one]),
    "asin": (M.asin, [flat(-1, 1), size(-1074, -1), below_one]),
    "acos": (M.acos, [flat(-1, 1), size(-1074, -1), below_one]),
    "atan": (M.atan, [size(-1074, 1023), flat(-3, 3)]),
    "erf": (M.erf, [flat(-6, 6), flat(-1.2, 1.2), size(-1074, 0)]),
    "erfc": (M.erfc, [flat(-6, 26.5), flat(-1.2, 1.2), flat(25, 27.2)]),
    "erf_inv": (M.erfinv, [flat(-1, 1), size(-1074, -1), below_one]),
    "sin": (M.sin, TURNS),
    "cos": (M.cos, TURNS),
    "tan": (M.tan, TURNS),
    "lgamma": (lambda x: M.loggamma(x).real, [positive(-500, 0), flat(0.5, 3), flat(3, 30), positive(5, 1000)]),
    "digamma": (M.digamma, [positive(-500, 0), flat(0.5, 3), flat(3, 30), positive(5, 1000)]),
    "bessel_i1e": (lambda x: M.besseli(1, x) * M.exp(-abs(x)), [flat(-30, 30), flat(30, 600), size(-300, 0)]),
}


def power_pair():
    kind = random.randrange(4)
    if kind == 0:
        return 2.0 ** random.uniform(-1074, 1023), random.uniform(-0.9, 0.9)
    if kind == 1:
        return random.uniform(0.5, 2), random.uniform(-1000, 1000)
    if kind == 2:
        return 1 + size(-52, -5)(), 2.0 ** random.uniform(0, 10)
    return -random.uniform(0.5, 40), float(random.randrange(-180, 180))


def any_pair():
    a = size(-500, 500)()
    return a, a * size(-60, 60)()


TWO = {
    "pow": (lambda a, b: a**b, power_pair),
    "atan2": (M.atan2, any_pair),
    "hypot": (lambda a, b: M.sqrt(a * a + b * b), any_pair),
    "zeta": (M.zeta, lambda: (random.uniform(1.05, 30), 2.0 ** random.uniform(-5, 8))),
    "polygamma": (lambda n, x: M.polygamma(int(n), x), lambda: (float(random.randrange(1, 10)), 2.0 ** random.uniform(-5, 8))),
}


def plane():
    kind = random.randrange(6)
    if kind == 0:
        return random.uniform(-3, 3), random.uniform(-3, 3)
    if kind == 1:
        return size(-60, 8)(), size(-60, 8)()
    if kind == 2:
        return size(-1000, 1000)(), size(-1000, 1000)()
    if kind == 3:  # near the unit circle
        t, r = random.uniform(-math.pi, math.pi), 1 + size(-50, -3)()
        return r * math.cos(t), r * math.sin(t)
    if kind == 4:  # near the branch points on either axis
        return sign() * (1 + size(-52, -2)()), size(-300, 0)()
    return size(-52, -2)(), sign() * (1 + size(-52, -2)())


COMPLEX = {
    "exp": M.exp, "expm1": lambda z: M.exp(z) - 1, "log": M.log, "log1p": lambda z: M.log(1 + z),
    "logistic": lambda z: 1 / (1 + M.exp(-z)), "sqrt": M.sqrt, "rsqrt": lambda z: 1 / M.sqrt(z),
    "cbrt": lambda z: M.exp(M.log(z) / 3), "sin": M.sin, "cos": M.cos, "tan": M.tan, "sinh": M.sinh,
    "cosh": M.cosh, "tanh": M.tanh, "asin": M.asin, "acos": M.acos, "atan": M.atan, "asinh": M.asinh,
    "acosh": M.acosh, "atanh": M.atanh, "sign": lambda z: z / abs(z),
}
BOUNDED = {"exp", "expm1", "logistic", "sin", "cos", "tan", "sinh", "cosh", "tanh"}


def value(v):
    """(nearest double, missing part in 0.001 ulp), or None where a double has no finite nearest."""
    try:
        near = float(v)
    except OverflowError:
        return None
    if math.isinf(near):
        return None
    return near, int(M.nint((v - mpf(near)) / mpf(math.ulp(near)) * 1000))


def number(x):
    return f"{int(x)}" if x == int(x) and abs(x) < 1000 and (x != 0 or math.copysign(1, x) > 0) else re.sub(r"\.?0*p", "p", x.hex())


def emit(kind, name, rows):
    print(kind, name, *(v for r in rows for v in r))


def main():
    print("# Arguments and values of elementary functions. Written by scripts/elem_vectors.py; read by tests/unit/elem_test.c.")
    print("# A line is a function and its rows: 1 NAME x y more, 2 NAME a b y more, c NAME x y re more im more. "
          "y + more / 1000 ulp is the true value.")
    for name, (f, draws) in ONE.items():
        rows = []
        while len(rows) < SAMPLES:
            x = draws[len(rows) % len(draws)]()
            mp.prec = 2400 if abs(x) < 1e-20 or abs(x) > 1e20 else 400
            v = value(f(mpf(x)))
            if v and v[0]:
                rows.append((number(x), number(v[0]), str(v[1])))
        emit("1", name, rows)
    for name, (f, draw) in TWO.items():
        rows = []
        while len(rows) < SAMPLES:
            a, b = draw()
            mp.prec = 2400 if name == "hypot" else 400
            v = value(f(mpf(a), mpf(b)))
            if v and v[0]:
                rows.append((number(a), number(b), number(v[0]), str(v[1])))
        emit("2", name, rows)
    for name, f in COMPLEX.items():
        rows = []
        while len(rows) < SAMPLES:
            x, y = plane()
            if name in BOUNDED:
                x, y = math.fmod(x, 700), math.fmod(y, 700)
            mp.prec = 6000 if max(abs(x), abs(y)) > 1e30 or min(abs(x), abs(y)) < 1e-30 else 700
            z = f(mpc(x, y))
            re, im = value(z.real), value(z.imag)
            if re and im and re[0] and im[0]:
                rows.append((number(x), number(y), number(re[0]), str(re[1]), number(im[0]), str(im[1])))
        emit("c", name, rows)


main()
