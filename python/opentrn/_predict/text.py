# SPDX-License-Identifier: Apache-2.0
"""Numbers as people read them: thousands apart, no exponents, seconds in a unit that fits; `otrn` tells them alike (src/clock/view.h)."""

import math


def number(v, digits=4):
    """1,234,567; below 1000 so many digits; what is not known is a dash."""
    if v is None:
        return "–"
    if abs(v) >= 1000 - 0.5 * 10 ** (3 - digits):
        return f"{v:,.0f}"
    if 0 < abs(v) < 1e-4:
        return f"{v:.{digits - 1 - math.floor(math.log10(abs(v)))}f}"
    return f"{v:.{digits}g}"


def unit(v):
    """(how many of it are a second, its name) for so many seconds."""
    return (1.0, "s") if v >= 0.1 or not v > 0 else (1e3, "ms") if v >= 1e-3 else (1e6, "us")


def seconds(v):
    times, name = unit(v)
    return f"{number(v * times)} {name}"


def counted(r):
    """What a prediction's rates and dollars are of."""
    return "pictures" if r["model"] == "vit" else "tokens"
