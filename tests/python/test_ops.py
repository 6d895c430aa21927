# SPDX-License-Identifier: Apache-2.0
"""jit on the device against jit on JAX's CPU."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

F32 = np.array([-3.5, -1.0, -0.25, -0.0, 0.0, 0.125, 0.5, 1.0, 1.5, 2.75, 10.0, 80.0], np.float32)
SPECIAL = np.array(
    [np.inf, -np.inf, np.nan, 3.4e38], np.float32
)  # no subnormals: JAX's CPU flushes them
I32 = np.array([-(2**31), -77, -3, -1, 0, 1, 2, 5, 31, 1000, 2**31 - 1], np.int32)
U32 = np.array([0, 1, 2, 7, 31, 2**16, 2**31, 2**32 - 1], np.uint32)


def both(f, *args, cpu, device):
    run = lambda d: jax.tree.map(np.asarray, jax.jit(f)(*jax.device_put(args, d)))
    return run(device), run(cpu)


def close(f, *args, cpu, device, rtol=2e-6):
    got, want = both(f, *args, cpu=cpu, device=device)
    for g, w in zip(jax.tree.leaves(got), jax.tree.leaves(want)):
        assert g.dtype == w.dtype
        np.testing.assert_allclose(g, w, rtol=rtol, atol=1e-30, equal_nan=True)


EXACT_UNARY = {
    "abs": jnp.abs,
    "neg": lambda x: -x,
    "sign": jnp.sign,
    "floor": jnp.floor,
    "ceil": jnp.ceil,
    "round": jnp.round,
    "sqrt": lambda x: jnp.sqrt(jnp.abs(x)),
    "isfinite": jnp.isfinite,
    "relu": jax.nn.relu,
    "square": jnp.square,
    "to int": lambda x: jnp.clip(x, -100, 100).astype(jnp.int32),
    "to bf16 and back": lambda x: x.astype(jnp.bfloat16).astype(jnp.float32),
    "to f16": lambda x: x.astype(jnp.float16),
    "to bool": lambda x: x.astype(bool),
    "bits": lambda x: jax.lax.bitcast_convert_type(x, jnp.uint32),
}
CLOSE_UNARY = {
    "exp": jnp.exp,
    "expm1": jnp.expm1,
    "log": lambda x: jnp.log(jnp.abs(x)),
    "tanh": jnp.tanh,
    "sin": jnp.sin,
    "cos": jnp.cos,
    "logistic": jax.nn.sigmoid,
    "rsqrt": lambda x: jax.lax.rsqrt(jnp.abs(x) + 0.5),
    "log1p": lambda x: jnp.log1p(jnp.abs(x)),
    "gelu": jax.nn.gelu,
    "softplus": jax.nn.softplus,
    "cbrt": jnp.cbrt,
    "reciprocal": lambda x: 1 / (x + 0.3),
}
BINARY = {
    "add": jnp.add,
    "sub": jnp.subtract,
    "mul": jnp.multiply,
    "div": lambda x, y: x / (y + 0.3),
    "max": jnp.maximum,
    "min": jnp.minimum,
    "lt": jnp.less,
    "ge": jnp.greater_equal,
    "eq": jnp.equal,
    "ne": jnp.not_equal,
    "where": lambda x, y: jnp.where(x > y, x, -y),
    "rem": lambda x, y: jax.lax.rem(x, y + 0.3),
}
INTEGER = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "and": lambda x, y: x & y,
    "or": lambda x, y: x | y,
    "xor": lambda x, y: x ^ y,
    "not": lambda x, y: ~x,
    "left": lambda x, y: jax.lax.shift_left(x, y & 31),
    "right": lambda x, y: jax.lax.shift_right_logical(x, y & 31),
    "arithmetic": lambda x, y: jax.lax.shift_right_arithmetic(x, y & 31),
    "min": jnp.minimum,
    "div": lambda x, y: jax.lax.div(x, jnp.where(y == 0, 1, y)),
    "rem": lambda x, y: jax.lax.rem(x, jnp.where(y == 0, 1, y)),
    "count": lambda x, y: jax.lax.population_count(x),
    "zeros": lambda x, y: jax.lax.clz(x),
    "to f32": lambda x, y: x.astype(jnp.float32),
    "less": lambda x, y: x < y,
}


@pytest.mark.parametrize("name", EXACT_UNARY)
def test_exact_unary(name, cpu, device):
    f = EXACT_UNARY[name]
    got, want = both(f, np.concatenate([F32, SPECIAL]), cpu=cpu, device=device)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", CLOSE_UNARY)
def test_close_unary(name, cpu, device):
    close(CLOSE_UNARY[name], F32, cpu=cpu, device=device)


@pytest.mark.parametrize("name", BINARY)
def test_binary(name, cpu, device):
    x, y = np.meshgrid(F32, F32)
    got, want = both(BINARY[name], x, y, cpu=cpu, device=device)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("values", [I32, U32], ids=["i32", "u32"])
@pytest.mark.parametrize("name", INTEGER)
def test_integer(name, values, cpu, device):
    x, y = np.meshgrid(values, values)
    got, want = both(INTEGER[name], x, y, cpu=cpu, device=device)
    np.testing.assert_array_equal(got, want)


SHAPES = {
    "reshape": lambda x: x.reshape(4, 6),
    "transpose": lambda x: x.T,
    "broadcast": lambda x: x[:, None] + x[0],
    "concatenate": lambda x: jnp.concatenate([x, 2 * x]),
    "slice": lambda x: x[1:, ::2],
    "pad": lambda x: jnp.pad(x, ((1, 0), (2, 3))),
    "iota": lambda x: x + jnp.arange(x.shape[1]),
    "reverse": lambda x: x[::-1],
    "sum": jnp.sum,
    "max": lambda x: x.max(0),
    "any": lambda x: (x > 2).any(1),
    "prod": lambda x: x.prod(1),
    "one hot": lambda x: jax.nn.one_hot(jnp.arange(3), 5),
    "several results": lambda x: (x, x + 1, x.sum()),
    "no argument used": lambda x: jnp.ones(3),
    "scalar": lambda x: x[0, 0] * 2,
    "empty": lambda x: x[:, 3:3] + 1,
    "empty sum": lambda x: x[3:].sum(0),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name, cpu, device):
    x = np.arange(24, dtype=np.float32).reshape(3, 8) / 8
    close(SHAPES[name], x, cpu=cpu, device=device)


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 4, 5), (64, 128, 32), (130, 257, 129)], ids=str)
def test_dot(shape, cpu, device):
    m, k, n = shape
    rng = np.random.default_rng(1)
    x, y = (rng.standard_normal(s).astype(np.float32) for s in ((m, k), (k, n)))
    got, _ = both(jnp.dot, x, y, cpu=cpu, device=device)
    exact = x.astype(np.float64) @ y.astype(np.float64)
    scale = np.abs(x).astype(np.float64) @ np.abs(y).astype(np.float64)
    assert np.max(np.abs(got - exact) / scale) < 1e-6


def test_gradient(cpu, device):
    f = jax.grad(lambda w, x: jnp.sum(jax.nn.log_softmax(jnp.tanh(x @ w))[:, 0]))
    rng = np.random.default_rng(2)
    w, x = (rng.standard_normal(s).astype(np.float32) for s in ((8, 6), (5, 8)))
    got, want = both(f, w, x, cpu=cpu, device=device)
    assert np.max(np.abs(got - want)) <= 1e-6 * np.max(np.abs(want))  # small elements are differences of large terms


def test_random_bits(cpu, device):
    f = lambda key: jax.random.bits(key, (33,))
    got, want = both(f, np.array([1, 2], np.uint32), cpu=cpu, device=device)
    np.testing.assert_array_equal(got, want)


def test_eager_and_printing(device):
    x = jnp.arange(4) * 2 + 1
    assert x.devices() == {device}
    assert str(x) == "[1 3 5 7]"
    assert int(x.sum()) == 16


def test_threads():
    from concurrent.futures import ThreadPoolExecutor

    f = jax.jit(lambda x, i: (x * i).sum())
    x = jax.device_put(np.arange(100, dtype=np.float32))
    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda i: float(f(x, float(i))), range(200)))
    assert got == [4950.0 * i for i in range(200)]


@pytest.mark.parametrize("impl", ["rbg", "unsafe_rbg"])
def test_draws_of_the_chips_generator(impl):
    """Bits follow from key and place, not from who computes them; gradients see the mask of the forward pass."""
    key = jax.random.split(jax.random.key(5, impl=impl), 3)[2]

    def drop(x):
        return jnp.where(jax.random.bernoulli(key, 0.9, x.shape), x, 0)

    x = jnp.ones((256, 512))
    kept = np.asarray(jax.jit(drop)(x))
    assert abs(kept.mean() - 0.9) < 0.005 and abs(kept[:, ::2].mean() - kept[:, 1::2].mean()) < 0.01
    grad = jax.jit(jax.grad(lambda x: (drop(jnp.sin(x)) * 2).sum()))(x)
    np.testing.assert_array_equal(np.asarray(grad) != 0, kept != 0)
    bits = np.asarray(jax.random.bits(key, (256, 512)))
    np.testing.assert_array_equal((bits >> 9) * 2.0**-23 < np.float32(0.9), kept != 0)
    np.testing.assert_array_equal(jax.random.bits(key, (512,)), bits[0])  # a kernel's, few as they are
