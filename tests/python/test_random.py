# SPDX-License-Identifier: Apache-2.0
"""Random numbers are JAX's, bit for bit, in sizes that run on the engines; loops over time and routing give JAX's numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax, random

DRAWS = {
    "bits": lambda key: random.bits(key, (129, 260)),
    "uniform": lambda key: random.uniform(key, (4, 64, 200)),
    "bernoulli": lambda key: random.bernoulli(key, 0.3, (256, 256)),
    "randint": lambda key: random.randint(key, (40000,), -5, 1000),
    "permutation": lambda key: random.permutation(key, 1000),
    "categorical": lambda key: random.categorical(key, jnp.zeros((64, 300))),
    "split": lambda key: random.split(key, 20000),
    "narrow": lambda key: random.bits(key, (70000,), jnp.uint8),
}


def both(f, device, cpu, *args):
    outs = []
    for d in (device, cpu):
        placed = jax.device_put(args, d)
        outs.append(jax.tree.map(np.asarray, jax.jit(f)(*placed)))
    return outs


@pytest.mark.parametrize("name", DRAWS)
def test_draws(name, device, cpu):
    mine, theirs = both(DRAWS[name], device, cpu, np.array([3, 123456789], np.uint32))
    np.testing.assert_array_equal(mine, theirs)


def test_normal(device, cpu):
    mine, theirs = both(lambda key: random.normal(key, (200, 200)), device, cpu, np.array([0, 7], np.uint32))
    np.testing.assert_allclose(mine, theirs, rtol=2e-5, atol=1e-6)


def test_dropout_gradient(device, cpu):
    def loss(w, x, key):
        h = jnp.tanh(x @ w)
        h = jnp.where(random.bernoulli(key, 0.9, h.shape), h / 0.9, 0.0)
        return (h**2).mean()

    w = np.asarray(random.normal(random.PRNGKey(1), (96, 256)) * 0.1)
    x = np.asarray(random.normal(random.PRNGKey(2), (128, 96)))
    mine, theirs = both(jax.value_and_grad(loss), device, cpu, w, x, np.array([0, 1], np.uint32))
    np.testing.assert_allclose(mine[0], theirs[0], rtol=1e-5)
    np.testing.assert_allclose(mine[1], theirs[1], rtol=1e-4, atol=1e-8)


def test_scan_gradient(device, cpu):
    """An LSTM through time: slices forwards, and backwards in the gradient."""

    def loss(p, x):
        def cell(carry, xt):
            h, s = carry
            i, f, g, o = jnp.split(xt @ p["wi"] + h @ p["wh"], 4, -1)
            s = jax.nn.sigmoid(f) * s + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(s)
            return (h, s), h

        zero = jnp.zeros((x.shape[1], 32))
        return (lax.scan(cell, (zero, zero), x)[1] ** 2).mean()

    p = {
        "wi": np.asarray(random.normal(random.PRNGKey(1), (24, 128)) * 0.2),
        "wh": np.asarray(random.normal(random.PRNGKey(2), (32, 128)) * 0.2),
    }
    x = np.asarray(random.normal(random.PRNGKey(3), (9, 16, 24)))
    mine, theirs = both(jax.value_and_grad(loss), device, cpu, p, x)
    np.testing.assert_allclose(mine[0], theirs[0], rtol=1e-5)
    for k in p:
        np.testing.assert_allclose(mine[1][k], theirs[1][k], rtol=1e-4, atol=1e-8)


def test_counter_is_read(device, cpu):
    """The counter of a loop as a number, as an index and in a condition."""

    def f(x):
        def body(i, c):
            y, n = c
            y = y.at[(i * 3) % 7].add(x[i] * i)
            return y, n + lax.cond(i > 4, lambda: i, lambda: -1)

        return lax.fori_loop(0, 12, body, (jnp.zeros((7, 600)), 0))

    mine, theirs = both(f, device, cpu, np.arange(12 * 600, dtype=np.float32).reshape(12, 600))
    np.testing.assert_array_equal(mine[0], theirs[0])
    assert mine[1] == theirs[1]


def test_running(device, cpu):
    x = np.asarray(random.normal(random.PRNGKey(4), (70, 300)))
    i = np.asarray(random.randint(random.PRNGKey(5), (300, 70), 0, 9))

    def f(x, i):
        return jnp.cumsum(x, 1), lax.cummax(x, 0), lax.cumsum(x, 1, reverse=True), jnp.cumsum(i, 0)

    mine, theirs = both(f, device, cpu, x, i)
    for a, b in zip(mine, theirs):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(mine[3], theirs[3])


def test_running_on_vector(device, cpu):
    """Long enough for the vector engine: sums, products and extremes, from both ends."""
    x = np.asarray(random.normal(random.PRNGKey(8), (3, 300, 700)))

    def f(x):
        y = x.astype(jnp.bfloat16)
        sums = jnp.cumsum(x, 2), lax.cumsum(x, 2, reverse=True), jnp.cumprod(1 + x / 100, 2)
        return *sums, lax.cummax(x, 2), lax.cummin(x, 2, reverse=True), lax.cummax(y, 2).astype(jnp.float32)

    mine, theirs = both(f, device, cpu, x)
    for a, b in zip(mine[:3], theirs[:3]):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
    for a, b in zip(mine[3:], theirs[3:]):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_places(dtype, device, cpu):
    """Where the largest and the smallest are: ties, zeros of both signs, NaN and infinities."""
    x = np.asarray(random.randint(random.PRNGKey(6), (230, 300), -40, 40)).astype(np.float32)
    x[3, 40] = x[3, 200] = np.nan
    x[4] = -np.inf
    x[5] = np.inf
    x[6, ::2] = -0.0
    x[6, 1::2] = 0.0
    x[7, 299] = 100
    x = x.astype(dtype)

    def f(x):
        return jnp.argmax(x, 1), jnp.argmin(x, -1), jnp.argmax(x, 0), jnp.argmax(x[:, None, :, None], 2), jnp.nanargmax(x, 1)

    mine, theirs = both(f, device, cpu, x)
    for a, b in zip(mine, theirs):
        np.testing.assert_array_equal(a, b)
