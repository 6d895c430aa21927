# SPDX-License-Identifier: Apache-2.0
"""Arrays whose axes lie in another order: device_put and jit with a Format, AUTO, copies, what really lies in memory."""

import ctypes

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.layout import Format, Layout
from jax.sharding import NamedSharding, PartitionSpec as P, SingleDeviceSharding

A = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def lying(order, device):
    return Format(Layout(order), SingleDeviceSharding(device))


@pytest.fixture
def turned(device):
    return jax.device_put(A, lying((2, 0, 1), device))


def test_bytes_lie_in_the_order_asked_for(turned):
    assert turned.format.layout.major_to_minor == (2, 0, 1)
    at = turned.addressable_data(0).unsafe_buffer_pointer()
    memory = np.ctypeslib.as_array((ctypes.c_float * A.size).from_address(at))
    np.testing.assert_array_equal(memory, A.transpose(2, 0, 1).ravel())
    np.testing.assert_array_equal(turned, A)


def test_a_program_takes_what_it_is_given(turned):
    np.testing.assert_array_equal(jax.jit(lambda a: 2 * a[1])(turned), 2 * A[1])
    np.testing.assert_array_equal(turned + 1, A + 1)


def test_a_copy_lies_as_before(turned):
    there = jax.device_put(turned, jax.devices()[-1])
    np.testing.assert_array_equal(there, A)


def test_results_lie_as_asked_and_go_on(device, turned):
    f = jax.jit(lambda a: a * a, in_shardings=lying((2, 0, 1), device), out_shardings=lying((1, 2, 0), device))
    out = f(turned)
    assert out.format.layout.major_to_minor == (1, 2, 0)
    np.testing.assert_array_equal(out, A * A)
    np.testing.assert_array_equal(f.lower(turned).compile()(turned), A * A)


def test_a_transposed_argument_need_not_move(device):
    auto = Format(Layout.AUTO, SingleDeviceSharding(device))
    compiled = jax.jit(lambda a: a.T, in_shardings=auto, out_shardings=auto).lower(jax.ShapeDtypeStruct(A.shape, A.dtype)).compile()
    assert compiled.input_formats[0][0].layout.major_to_minor == (0, 1, 2)
    assert compiled.output_formats.layout.major_to_minor == (2, 1, 0)
    np.testing.assert_array_equal(compiled(A), A.T)


@pytest.mark.skipif(len(jax.devices()) < 4, reason="needs four devices")
def test_parts_lie_so_too():
    mesh = jax.make_mesh((2, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2, devices=jax.devices()[:4])
    a = np.arange(64, dtype=np.int32).reshape(8, 8)
    parts = jax.device_put(a, Format(Layout((1, 0)), NamedSharding(mesh, P("x", "y"))))
    assert parts.format.layout.major_to_minor == (1, 0)
    np.testing.assert_array_equal(parts, a)
    np.testing.assert_array_equal(jax.jit(jnp.dot)(parts, parts), a @ a)


def test_a_serialised_program_knows_its_layouts(device, turned):
    from jax.experimental import serialize_executable as s

    f = jax.jit(lambda a: a - 1, out_shardings=lying((1, 0, 2), device)).lower(turned).compile()
    again = s.deserialize_and_load(*s.serialize(f), execution_devices=[device])
    out = again(turned)
    assert out.format.layout.major_to_minor == (1, 0, 2)
    np.testing.assert_array_equal(out, A - 1)
