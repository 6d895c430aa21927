# SPDX-License-Identifier: Apache-2.0
"""What goes wrong becomes a Python exception with our text, and the process lives on."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import opentrn
from conftest import ROOT


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


def line_of(function, text):
    """"file.py:12", where the function has the text."""
    lines, first = inspect.getsourcelines(function)
    return f"{inspect.getsourcefile(function)}:{first + next(i for i, l in enumerate(lines) if text in l)}"


def test_compile_error_shows_the_line():
    def f(x):
        y = x + 1
        call = jax.ffi.ffi_call("opentrn_test_no_such", jax.ShapeDtypeStruct(x.shape, x.dtype))
        z = call(y)  # here
        return z * 2

    with pytest.raises(jax.errors.JaxRuntimeError) as error:
        jax.jit(f)(jnp.ones(3))
    assert line_of(f, "# here") in str(error.value)


def test_nan_shows_the_line():
    def f(x):
        y = jnp.tanh(x) * 2
        z = jnp.log(y - 1.9)  # here
        return jax.nn.relu(z + x).sum()

    x = jnp.array([[3.0, 2.0], [1.0, 3.0]])
    assert np.isnan(jax.jit(f)(x))  # nothing is said unless asked
    with pytest.raises(jax.errors.JaxRuntimeError) as error:
        jax.block_until_ready(jax.jit(f, compiler_options={"nan": "on"})(x))
    text = str(error.value)
    assert line_of(f, "# here") in text and "stablehlo.log" in text and "a NaN in element [1, 0]" in text
    assert f"from {float(jnp.tanh(1.0) * 2 - 1.9):.4g}"[:9] in text
    assert float(jax.jit(f, compiler_options={"nan": "on"})(x[:1])) > 0  # and there is none here
    works()


def test_nan_in_a_gradient():
    def f(x):
        return jnp.sqrt(x).sum()  # here

    x = jnp.array([1.0, 0.0])
    both = lambda x: x * jax.grad(f)(x)  # 0 * Inf
    with pytest.raises(jax.errors.JaxRuntimeError) as error:
        jax.block_until_ready(jax.jit(both, compiler_options={"nan": "on"})(x))
    assert "the first Inf was made by" in str(error.value) and line_of(f, "# here") in str(error.value)
    with pytest.raises(jax.errors.JaxRuntimeError, match="made an Inf"):
        jax.block_until_ready(jax.jit(both, compiler_options={"nan": "inf"})(x))
    already = jnp.array([jnp.nan, 1.0])  # what came in is not made here
    assert np.isnan(jax.jit(lambda x: x @ x, compiler_options={"nan": "on"})(already))


def test_out_of_hbm_shows_the_tensors(tmp_path):
    """A chip of little memory: the tensors alive at the peak and the lines that made them."""
    lines = (ROOT / "chips" / "trn2.chip").read_text().splitlines()
    less = {"hbm_bytes_per_core": "1048576 B", "cores_per_logical_core": "1 count"}
    small = [f"{k} = {less[k]} # origin: assumed; a test" if (k := l.split(" ")[0]) in less else l for l in lines]
    chip = tmp_path / "small.chip"
    chip.write_text("\n".join(small) + "\n")

    def f(x):
        y = jnp.sort(x @ x, axis=0)  # sorted
        z = jnp.cumsum(y[:, :, None] * x[0, :8], axis=1)  # largest
        return z.sum() + y.sum()

    f_small = jax.jit(f, compiler_options={"target": str(chip)})
    with pytest.raises(jax.errors.JaxRuntimeError, match="RESOURCE_EXHAUSTED") as error:
        jax.block_until_ready(f_small(jnp.ones((128, 128))))
    text = str(error.value)
    assert "a core of" in text and "has 1.0 MiB" in text and "argument 0" in text
    assert line_of(f, "# sorted") in text and line_of(f, "# largest") in text
    works()


def test_unknown_compiler_option():
    f = jax.jit(lambda x: x - 1, compiler_options={"no_such_option": True})
    with pytest.raises(jax.errors.JaxRuntimeError, match="No such compile option: 'no_such_option'"):
        f(1.0)
    f = jax.jit(lambda x: x - 1, compiler_options={"auto_cast": "all"})
    with pytest.raises(jax.errors.JaxRuntimeError, match="did you mean 'auto-cast'?"):
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
    with pytest.raises(ValueError, match="trn99"):  # what a caller can get wrong is told as such
        opentrn.report(compiled, "trn99")


def test_deserialising_nonsense(device):
    client = device.client
    with pytest.raises(Exception):
        client.deserialize_executable(b"\x00" * 64, [device])
    works()
