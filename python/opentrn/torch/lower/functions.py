# SPDX-License-Identifier: Apache-2.0
"""Functions that are loops of a length only their arguments know: JAX programs, as decompositions are (linalg.py)."""

from opentrn.torch.lower.linalg import _jax, program


@program("aten.igamma.default")
def _igamma(a, x):
    return _jax()[1].igamma(a, x)


@program("aten.igammac.default")
def _igammac(a, x):
    return _jax()[1].igammac(a, x)


def _recurrence(first, following):
    """p0 = 1, p1 = first(x), p(k+1) = following(x, k, p(k), p(k-1)); each element stops at its own n."""

    def call(x, n):
        jnp, lax, _ = _jax()
        n = jnp.trunc(n)

        def step(carry):
            k, now, before = carry
            return k + 1, jnp.where(k < n, following(x, k, now, before), now), jnp.where(k < n, now, before)

        start = (jnp.ones((), x.dtype), jnp.where(n == 0, 1, first(x)), jnp.ones_like(x))
        found = lax.while_loop(lambda carry: jnp.any(carry[0] < n), step, start)[1]
        return jnp.where(n < 0, 0, found)

    return call


_POLYNOMIALS = {  # name: p1, and what follows k and the two before
    "legendre_polynomial_p": (lambda x: x, lambda x, k, p, q: ((2 * k + 1) * x * p - k * q) / (k + 1)),
    "hermite_polynomial_h": (lambda x: 2 * x, lambda x, k, p, q: 2 * x * p - 2 * k * q),
    "hermite_polynomial_he": (lambda x: x, lambda x, k, p, q: x * p - k * q),
    "laguerre_polynomial_l": (lambda x: 1 - x, lambda x, k, p, q: ((2 * k + 1 - x) * p - k * q) / (k + 1)),
}
for _name, _rule in _POLYNOMIALS.items():
    program(f"aten.special_{_name}.default")(_recurrence(*_rule))
