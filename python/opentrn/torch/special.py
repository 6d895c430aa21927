# SPDX-License-Identifier: Apache-2.0
"""Special functions by elementary ones.

Bessel functions are means of a periodic function over equally spaced angles, which converges faster than any power of
their number, or (K) sums over a range that grows with 1 / x; far from zero they are their asymptotic series. Chebyshev
polynomials are cosines of multiples of an angle. Each works on blocks [elements, angles], in float32 at least.
"""

import math

import torch

aten = torch.ops.aten

_ANGLES = 64
_EULER = 0.57721566490153286


def _wide(x):
    if not x.is_floating_point():
        return torch.get_default_dtype()
    return torch.promote_types(x.dtype, torch.float32)


def _work(function):
    """Computes in float32 or float64 and gives the type of the argument, or the default one."""

    def call(x):
        kind = x.dtype if x.is_floating_point() else torch.get_default_dtype()
        return function(x.to(_wide(x))).to(kind)

    return call


def _angles(x):
    """Angles between 0 and pi, for the last dimension of a block."""
    return (torch.arange(_ANGLES, dtype=x.dtype, device=x.device) + 0.5) * (math.pi / _ANGLES)


def _series(x, *terms):
    """1 + terms[0] / x + terms[1] / x^2 …"""
    total = 0.0
    for term in reversed(terms):
        total = (total + term) / x
    return total + 1


# --- modified, of the first kind: I0 and I1, scaled by exp(-|x|) --------------------------------------

_LARGE = 300.0


def _far(x, large):
    return torch.where(x > large, x, large)


def _i0e(x):
    x = x.abs()
    near = torch.exp(x.clamp(max=_LARGE)[..., None] * (_angles(x).cos() - 1)).mean(-1)
    far = _far(x, _LARGE)
    far = _series(far, 1 / 8, 9 / 128, 225 / 3072) / (2 * math.pi * far).sqrt()
    return torch.where(x > _LARGE, far, near)


def _i1e(x):
    size = x.abs()
    block, c = size.clamp(max=_LARGE)[..., None], _angles(x).cos().abs()
    near = (-0.5 * c * torch.exp(block * (c - 1)) * torch.expm1(-2 * block * c)).mean(-1)
    far = _far(size, _LARGE)
    far = _series(far, -3 / 8, -15 / 128, -315 / 3072) / (2 * math.pi * far).sqrt()
    return torch.where(size > _LARGE, far, near) * x.sign()


# --- of the first and second kind: J, Y ---------------------------------------------------------------

_WAVES = 25.0


def _waves(x, order):
    """(amplitude, P, Q, phase) of the functions far from zero."""
    x = _far(x, _WAVES)
    z = 1 / (x * x)
    if order == 0:
        p, q = 1 + z * (-9 / 128 + z * 3675 / 32768), (-1 / 8 + z * (75 / 1024 - z * 59535 / 262144)) / x
    else:
        p, q = 1 + z * (15 / 128 - z * 4725 / 32768), (3 / 8 + z * (-105 / 1024 + z * 72765 / 262144)) / x
    return (2 / (math.pi * x)).sqrt(), p, q, x - (order / 2 + 0.25) * math.pi


def _j(order):
    def call(x):
        size, angles = x.abs(), _angles(x)
        s = angles.sin()
        block = size.clamp(max=_WAVES)[..., None] * s
        near = (block.cos() if order == 0 else s * block.sin()).mean(-1)
        height, p, q, phase = _waves(size, order)
        found = torch.where(size > _WAVES, height * (p * phase.cos() - q * phase.sin()), near)
        return found * x.sign() if order else found

    return call


def _y(order):
    """Neumann's series of even orders; its sum over orders stands inside the mean, as one weight for each angle."""

    def call(x):
        angles = _angles(x)
        s, weight = angles.sin(), torch.zeros_like(angles)
        for k in range(1, 25):
            weight = weight + (-1) ** (k + 1) / k * (2 * k * angles).cos()
        inside = x.clamp(max=_WAVES)
        block = inside[..., None] * s
        log = (inside / 2).log() + _EULER
        if order == 0:
            near = 2 / math.pi * log * block.cos().mean(-1) + 4 / math.pi * (weight * block.cos()).mean(-1)
        else:
            near = 2 / math.pi * (log * (s * block.sin()).mean(-1) - block.cos().mean(-1) / inside)
            near = near + 4 / math.pi * (weight * s * block.sin()).mean(-1)
        height, p, q, phase = _waves(x, order)
        found = torch.where(x > _WAVES, height * (p * phase.sin() + q * phase.cos()), near)
        return torch.where(x == 0, float("-inf"), torch.where(x < 0, float("nan"), found))

    return call


def _k(order, scaled):
    """The integral of exp(-x cosh t) cosh(order t), over all t at which it matters."""

    def call(x):
        inside = torch.where(x > 0, x, 1.0)
        reach = torch.acosh(1 + 24 / inside.clamp(min=1e-30)) + (1.0 if order else 0.0)
        t = reach[..., None] * (torch.arange(_ANGLES + 1, dtype=x.dtype, device=x.device) / _ANGLES)
        high = t.sinh() * (t / 2).tanh()  # cosh t - 1, exact near zero
        block = torch.exp(-inside[..., None] * high) * (high + 1 if order else 1)
        found = (block.sum(-1) - block[..., 0] / 2) * reach / _ANGLES
        found = found if scaled else found * (-inside).exp()
        return torch.where(x == 0, float("inf"), torch.where(x < 0, float("nan"), found))

    return call


# --- around the normal distribution -------------------------------------------------------------------


def _erfcx(x):
    inside = x.clamp(-20, 2)
    near = (inside * inside).exp() * torch.special.erfc(inside)
    far = _far(x, 2.0)
    rest = far
    for k in range(40, 0, -1):
        rest = far + k / 2 / rest
    return torch.where(x > 2, 1 / (rest * math.sqrt(math.pi)), torch.where(x < -20, float("inf"), near))


def _ndtri(p):
    return (math.sqrt(2) * torch.special.erfinv(2 * p.double() - 1)).to(p.dtype)


_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66)


def _zeta(x, q):
    """Twenty terms, and the rest by Euler and Maclaurin."""
    kind = torch.promote_types(torch.result_type(x, q), torch.float32)
    x, q = torch.broadcast_tensors(x.double(), q.double())
    total, base = torch.zeros_like(x), q
    for _ in range(20):
        total = total + base.abs() ** -x * torch.where((base < 0) & (x % 2 != 0), -1.0, 1.0)
        base = base + 1
    last = base**-x
    total = total + last * base / (x - 1) + last / 2
    factor = x * last / base
    for k, number in enumerate(_BERNOULLI, 1):
        total = total + number / math.factorial(2 * k) * factor
        factor = factor * (x + 2 * k - 1) * (x + 2 * k) / (base * base)
    whole = q == q.floor()
    total = torch.where((q <= 0) & whole, float("inf"), torch.where((q <= 0) & (x != x.floor()), float("nan"), total))
    return torch.where(x == 1, float("inf"), torch.where(x < 1, float("nan"), total)).to(kind)


# --- Chebyshev polynomials: T, U, V, W ----------------------------------------------------------------


def _chebyshev(kind, shifted=False):
    def call(x, n):
        result = torch.promote_types(torch.result_type(x, n), torch.float32)
        x, n = torch.broadcast_tensors(x.double(), n.double().trunc())
        x = 2 * x - 1 if shifted else x
        inside, size = x.clamp(-1, 1), x.abs().clamp(min=1)
        a, h = inside.acos(), size.acosh()
        sign = torch.where((x < 0) & (n % 2 != 0), -1.0, 1.0)
        if kind == "t":
            near, far = (n * a).cos(), sign * (n * h).cosh()
        elif kind == "u":
            near, far = ((n + 1) * a).sin() / a.sin(), sign * ((n + 1) * h).sinh() / h.sinh()
            near = torch.where(x.abs() == 1, sign * (n + 1), near)
        else:
            high, low = ((n + 0.5) * h).cosh() / (h / 2).cosh(), ((n + 0.5) * h).sinh() / (h / 2).sinh()
            swap = (x < 0) if kind == "v" else (x > 0)
            far = sign * torch.where(swap, low, high)
            if kind == "v":
                near = ((n + 0.5) * a).cos() / (a / 2).cos()
                near = torch.where(x == -1, sign * (2 * n + 1), near)
            else:
                near = ((n + 0.5) * a).sin() / (a / 2).sin()
                near = torch.where(x == 1, 2 * n + 1, near)
        found = torch.where(x.abs() > 1, far, near)
        return torch.where(n < 0, 0.0, torch.where(n == 0, 1.0, found)).to(result)

    return call


def _in_float32(op):
    """Both arguments in one shape and a type that JAX computes in."""

    def call(x, y):
        kind = torch.promote_types(torch.result_type(x, y), torch.bfloat16)
        wide = torch.promote_types(kind, torch.float32)
        if x.shape == y.shape and x.dtype == y.dtype == wide:
            return NotImplemented
        kind = kind if x.is_floating_point() or y.is_floating_point() else torch.get_default_dtype()
        return op(*torch.broadcast_tensors(x.to(wide), y.to(wide))).to(kind)

    return call


def _gcd(a, b):
    """Euclid's steps, as many as two neighbours among Fibonacci's numbers of the type need."""
    a, b = torch.broadcast_tensors(a.abs(), b.abs())
    kind = torch.result_type(a, b)
    a, b = a.to(kind), b.to(kind)
    for _ in range({8: 13, 16: 25, 32: 47}.get(torch.iinfo(kind).bits, 93)):
        a, b = torch.where(b == 0, a, b), torch.where(b == 0, 0, a % torch.where(b == 0, 1, b))
    return a


SPECIAL = {
    aten.special_i0e.default: _work(_i0e),
    aten.special_i1e.default: _work(_i1e),
    aten.i0.default: _work(lambda x: _i0e(x) * x.abs().exp()),
    aten.special_i1.default: _work(lambda x: _i1e(x) * x.abs().exp()),
    aten.special_modified_bessel_i0.default: _work(lambda x: _i0e(x) * x.abs().exp()),
    aten.special_modified_bessel_i1.default: _work(lambda x: _i1e(x) * x.abs().exp()),
    aten.special_bessel_j0.default: _work(_j(0)),
    aten.special_bessel_j1.default: _work(_j(1)),
    aten.special_bessel_y0.default: _work(_y(0)),
    aten.special_bessel_y1.default: _work(_y(1)),
    aten.special_modified_bessel_k0.default: _work(_k(0, False)),
    aten.special_modified_bessel_k1.default: _work(_k(1, False)),
    aten.special_scaled_modified_bessel_k0.default: _work(_k(0, True)),
    aten.special_scaled_modified_bessel_k1.default: _work(_k(1, True)),
    aten.special_spherical_bessel_j0.default: _work(lambda x: torch.sinc(x / math.pi)),
    aten.special_erfcx.default: _work(_erfcx),
    aten.special_ndtri.default: _work(_ndtri),
    aten.special_zeta.default: _zeta,
    aten.special_chebyshev_polynomial_t.default: _chebyshev("t"),
    aten.special_chebyshev_polynomial_u.default: _chebyshev("u"),
    aten.special_chebyshev_polynomial_v.default: _chebyshev("v"),
    aten.special_chebyshev_polynomial_w.default: _chebyshev("w"),
    aten.special_shifted_chebyshev_polynomial_t.default: _chebyshev("t", True),
    aten.special_shifted_chebyshev_polynomial_u.default: _chebyshev("u", True),
    aten.special_shifted_chebyshev_polynomial_v.default: _chebyshev("v", True),
    aten.special_shifted_chebyshev_polynomial_w.default: _chebyshev("w", True),
    aten.gcd.default: _gcd,
    **{
        op: _in_float32(op)
        for op in (
            aten.igamma.default,
            aten.igammac.default,
            aten.special_legendre_polynomial_p.default,
            aten.special_hermite_polynomial_h.default,
            aten.special_hermite_polynomial_he.default,
            aten.special_laguerre_polynomial_l.default,
        )
    },
}
