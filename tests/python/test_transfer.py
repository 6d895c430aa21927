# SPDX-License-Identifier: Apache-2.0
"""Arrays to the device and back: every element type, every shape, every stride."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

TYPES = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]
SMALL_TYPES = [
    "bfloat16",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e4m3b11fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float4_e2m1fn",
    "int2",
    "int4",
    "uint2",
    "uint4",
]


def sample(dtype, shape, seed=0):
    """Random values; for the small floats random bits are as good."""
    rng = np.random.default_rng(seed)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu" and dtype.itemsize > 1 or dtype.name in ("int8", "uint8"):
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    if dtype.kind == "c":
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    return np.asarray(rng.standard_normal(shape) * 2).astype(dtype)


def same(x, y):
    x, y = np.asarray(x), np.asarray(y)
    assert x.dtype == y.dtype
    assert x.shape == y.shape
    assert x.tobytes() == y.tobytes()


@pytest.mark.parametrize("name", TYPES + SMALL_TYPES)
@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 5), (2, 3, 4), (0,), (4, 0, 2)], ids=str)
def test_round_trip(name, shape, x64):
    x = sample(np.dtype(getattr(ml_dtypes, name, name)), shape)
    y = jax.device_put(x)
    assert y.shape == shape
    same(y, x)


VIEWS = {
    "transposed": lambda a: a.T,
    "reversed": lambda a: a[::-1],
    "reversed twice": lambda a: a[::-1, :, ::-1],
    "every second": lambda a: a[:, ::2],
    "inner column": lambda a: a[:, :, 1],
    "broadcast": lambda a: np.broadcast_to(a[:, :1], a.shape),
    "fortran": np.asfortranarray,
    "permuted": lambda a: a.transpose(1, 2, 0),
    "new axes": lambda a: a[None, :, None, 1::2, ::-3],
    "empty slice": lambda a: a[:, 2:2],
}


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "complex64", "complex128"])
@pytest.mark.parametrize("view", VIEWS)
def test_strided(view, dtype, x64):
    x = VIEWS[view](sample(np.dtype(dtype), (4, 5, 6)))
    same(jax.device_put(x), np.ascontiguousarray(x).reshape(x.shape))


def test_many_dimensions():
    x = np.arange(2**12, dtype=np.int32).reshape((2,) * 12)
    same(jax.device_put(x), x)
    y = x.transpose(tuple(reversed(range(12))))
    same(jax.device_put(y), np.ascontiguousarray(y))


def test_the_host_array_may_change_afterwards():
    x = np.arange(5, dtype=np.float32)
    y = jax.device_put(x)
    x[:] = -1
    np.testing.assert_array_equal(y, [0, 1, 2, 3, 4])


def test_large():
    x = sample(np.dtype("float32"), (1500, 1001))
    same(jax.device_put(x), x)
    same(jax.device_put(x.T), np.ascontiguousarray(x.T))


def test_copy_between_backends(cpu, device):
    x = jax.device_put(np.arange(6, dtype=np.int32), cpu)
    y = jax.device_put(x, device)
    same(jax.device_put(y, cpu), x)


def test_delete():
    x = jax.device_put(np.arange(3))
    assert not x.is_deleted()
    x.delete()
    assert x.is_deleted()
    with pytest.raises(RuntimeError, match="deleted"):
        np.asarray(x)


def test_shards_and_pointers():
    x = jnp.asarray(np.arange(4, dtype=np.float32))
    assert x.addressable_shards[0].data.unsafe_buffer_pointer() % 64 == 0
    assert x.on_device_size_in_bytes() == 16
