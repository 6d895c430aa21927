# SPDX-License-Identifier: Apache-2.0
"""What JAX puts into regions and custom calls beyond the usual, against numbers worked out in NumPy (XLA's
CPU compiler gives up on loops and switches inside a reduction)."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

A = np.random.RandomState(0).randn(6, 6).astype(np.float32)


def halve(v):
    while v > 0.5:
        v = np.float32(v * np.float32(0.5))
    return v


REDUCERS = {
    "cond": (
        lambda p, q: lax.cond(q > 0, lambda: p + q, lambda: p - 2 * q),
        lambda p, q: p + q if q > 0 else p - 2 * q,
    ),
    "switch": (
        lambda p, q: lax.switch((q * 3).astype(jnp.int32), [lambda: p + q, lambda: p - q, lambda: p]),
        lambda p, q: [p + q, p - q, p][min(max(int(q * 3), 0), 2)],
    ),
    "while": (
        lambda p, q: p + lax.while_loop(lambda s: s > 0.5, lambda s: s * 0.5, jnp.abs(q)),
        lambda p, q: p + halve(abs(q)),
    ),
    "loop": (
        lambda p, q: lax.fori_loop(0, 3, lambda i, s: s * 0.5 + q, p),
        lambda p, q: ((p * 0.5 + q) * 0.5 + q) * 0.5 + q,
    ),
    "tensors": (
        lambda p, q: jnp.sum(jnp.sort(jnp.stack([p, q, p * q])) * jnp.arange(3, dtype=jnp.float32)),
        lambda p, q: float(np.sort([p, q, p * q]) @ np.arange(3)),
    ),
}


@pytest.mark.parametrize("name", REDUCERS)
def test_reduce(name, device):
    f, plain = REDUCERS[name]
    got = jax.jit(lambda a: lax.reduce(a, np.float32(0), f, (1,)))(jax.device_put(A, device))
    want = [functools.reduce(plain, row, np.float32(0)) for row in A]
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-5, atol=1e-5)


def test_windows_with_a_branch(device):
    f = lambda p, q: lax.cond(q > p, lambda: q, lambda: p * 0.5)
    run = jax.jit(lambda a: lax.reduce_window(a, np.float32(0), f, (1, 2), (1, 1), "VALID"))
    step = lambda p, q: np.where(q > p, q, p * 0.5)
    want = step(step(np.float32(0), A[:, :-1]), A[:, 1:])
    np.testing.assert_allclose(np.asarray(run(jax.device_put(A, device))), want, rtol=1e-6)


@pytest.mark.parametrize("f", [lax.approx_max_k, lax.approx_min_k])
def test_approximate_top_k_is_exact(f, device):
    values, places = jax.jit(lambda a: f(a, 3))(jax.device_put(A, device))
    want = np.argsort(-A if f is lax.approx_max_k else A, axis=1, kind="stable")[:, :3]
    np.testing.assert_array_equal(places, want)
    np.testing.assert_array_equal(values, np.take_along_axis(A, want, 1))


def test_rng_uniform(device):
    with jax.default_device(device):
        draw = jax.jit(lambda: (lax.rng_uniform(2.0, 3.0, (500,)), lax.rng_uniform(2.0, 3.0, (500,))))
        a, b = map(np.asarray, draw())
        again = list(map(np.asarray, draw()))
    assert not np.array_equal(a, again[0]) and not np.array_equal(b, again[1]) and not np.array_equal(b, again[0])  # the stream goes on
    assert (a >= 2).all() and (a < 3).all()
    assert abs(a.mean() - 2.5) < 0.05
    assert not np.array_equal(a, b)
