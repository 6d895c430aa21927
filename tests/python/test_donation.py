# SPDX-License-Identifier: Apache-2.0
"""Donated arrays are consumed, their memory is reused, and misuse is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest


def test_donated_array_is_deleted_and_its_memory_reused():
    f = jax.jit(lambda x: x + 1, donate_argnums=0)
    x = jax.device_put(np.arange(1000, dtype=np.float32))
    address = x.unsafe_buffer_pointer()
    y = f(x)
    assert x.is_deleted()
    assert y.unsafe_buffer_pointer() == address
    np.testing.assert_array_equal(y, np.arange(1000) + 1)
    with pytest.raises((RuntimeError, ValueError), match="deleted"):
        np.asarray(x)
    with pytest.raises((RuntimeError, ValueError), match="deleted"):
        f(x)


def test_not_donated_stays():
    x = jax.device_put(np.arange(3, dtype=np.float32))
    y = jax.jit(lambda x: x + 1)(x)
    assert not x.is_deleted()
    assert y.unsafe_buffer_pointer() != x.unsafe_buffer_pointer()
    np.testing.assert_array_equal(x, [0, 1, 2])


def test_donated_without_a_matching_output():
    f = jax.jit(lambda x: x.sum(), donate_argnums=0)
    x = jax.device_put(np.ones(10, np.float32))
    with pytest.warns(UserWarning, match="donated buffers were not usable"):
        assert float(f(x)) == 10


def test_donated_and_used_at_the_same_time():
    f = jax.jit(lambda x, y: x + y, donate_argnums=0)
    x = jax.device_put(np.ones(10, np.float32))
    with pytest.raises(Exception, match="donate"):
        f(x, x)
    if not x.is_deleted():  # JAX itself may have refused before it reached us
        np.testing.assert_array_equal(x, np.ones(10))


def test_swap_in_place():
    f = jax.jit(lambda x, y: (y, x), donate_argnums=(0, 1))
    x, y = (jax.device_put(np.full(100, v, np.float32)) for v in (1, 2))
    a, b = f(x, y)
    np.testing.assert_array_equal(a, np.full(100, 2))
    np.testing.assert_array_equal(b, np.full(100, 1))


def test_reads_after_the_write_in_place():
    """The first result takes the argument's memory; the second still needs the old values."""
    f = jax.jit(lambda x: (x * 2, jnp.flip(x).sum() + x[0]), donate_argnums=0)
    x = np.arange(64, dtype=np.float32)
    a, b = f(jax.device_put(x))
    np.testing.assert_array_equal(a, x * 2)
    assert float(b) == x.sum()


def test_a_long_chain_allocates_nothing_new(device):
    f = jax.jit(lambda x: x * 0.5 + 1, donate_argnums=0)
    x = f(jax.device_put(np.zeros(4096, np.float32)))
    before = device.memory_stats()
    for _ in range(50):
        x = f(x)
    after = device.memory_stats()
    assert after["bytes_in_use"] == before["bytes_in_use"]
    assert after["num_allocs"] == before["num_allocs"]
