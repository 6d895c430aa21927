# SPDX-License-Identifier: Apache-2.0
"""What goes wrong becomes a Python exception with our text, and the process lives on."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import opentrn


def works():
    assert float(jax.jit(lambda x: x + 1)(1.0)) == 2.0


def test_unsupported_op():
    """A custom call nobody has heard of."""
    f = jax.jit(
        lambda x: jax.ffi.ffi_call(
            "opentrn_test_no_such_call", jax.ShapeDtypeStruct(x.shape, x.dtype)
        )(x)
    )
    with pytest.raises(jax.errors.JaxRuntimeError, match="opentrn_test_no_such_call"):
        f(jnp.ones(3))
    works()


def test_unknown_compiler_option():
    f = jax.jit(lambda x: x - 1, compiler_options={"no_such_option": True})
    with pytest.raises(jax.errors.JaxRuntimeError, match="No such compile option: 'no_such_option'"):
        f(1.0)
    works()


def test_bad_compiler_option_value():
    f = jax.jit(lambda x: x - 2, compiler_options={"target": "trn99"})
    with pytest.raises(jax.errors.JaxRuntimeError, match="trn99"):
        f(1.0)
    works()


def test_compiler_option():
    f = jax.jit(lambda x: x - 3, compiler_options={"target": "trn1"})
    assert float(f(5.0)) == 2.0


def test_out_of_memory(device):
    with pytest.raises(Exception, match="RESOURCE_EXHAUSTED"):
        jax.block_until_ready(jax.jit(lambda: jnp.zeros((1 << 20, 1 << 20), jnp.float32))())
    works()


def test_report_of_nonsense():
    with pytest.raises(RuntimeError, match="error"):
        opentrn.report(b"this is no program", "trn2")
    compiled = jax.jit(lambda x: x + 1).lower(1.0).compile()
    with pytest.raises(RuntimeError, match="trn99"):
        opentrn.report(compiled, "trn99")


def test_deserialising_nonsense(device):
    client = device.client
    with pytest.raises(Exception):
        client.deserialize_executable(b"\x00" * 64, [device])
    works()
