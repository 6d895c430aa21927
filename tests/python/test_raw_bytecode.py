# SPDX-License-Identifier: Apache-2.0
"""A program as text, as raw bytecode and as a portable artifact is one program: the same graph, the same results to the bit."""

import os
import subprocess

import numpy as np
import pytest
from conftest import OTRN

import jax
import jax.numpy as jnp
from jax import lax

A, B, C = np.float32([[1, -2, 3], [4, 5, -6]]), np.float32([[1, 2], [3, 4], [5, 6]]), np.float32([0.5, -1.5, 2.5])
IMAGE, KERNEL = np.arange(2 * 6 * 6 * 3, dtype=np.float32).reshape(2, 6, 6, 3) / 50, np.arange(3 * 3 * 3 * 4, dtype=np.float32).reshape(3, 3, 3, 4) / 90
I = np.int32([1, 0, 1])


def loss(w, x):
    return jnp.mean(jax.nn.log_softmax(jnp.tanh(x @ w)) ** 2)


def conv(x, k, **options):
    return lax.conv_general_dilated(x, k, (2, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), **options)


PROGRAMS = {
    "add": (lambda a: a + a, A),
    "matmul": (lambda a, b: a @ b, A, B),
    "highest": (lambda a, b: jnp.dot(a, b, precision="highest"), A, B),
    "algorithm": (lambda a, b: lax.dot(a, b, precision="F32_F32_F32"), A, B),
    "einsum": (lambda x, k: jnp.einsum("bhwc,hwco->bo", x[:, :3, :3], k), IMAGE, KERNEL),
    "gradient": (jax.value_and_grad(loss), np.float32([[1, 2], [0, 1], [1, 0]]), A),
    "conv": (conv, IMAGE, KERNEL),
    "conv dilated": (lambda x, k: conv(x, k, rhs_dilation=(2, 1)), IMAGE, KERNEL),
    "conv gradient": (jax.grad(lambda x, k: conv(x, k).sum()), IMAGE, KERNEL),
    "pool": (lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"), IMAGE),
    "pool gradient": (jax.grad(lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID").sum()), IMAGE),
    "gather": (lambda a, i: a[i], A, I),
    "scatter": (lambda a, i: a.at[i].add(2.0), A, I),
    "batched gather": (lambda a, i: jnp.take_along_axis(a, i[None, :2] * jnp.ones((2, 1), jnp.int32), 1), A, I),
    "slice": (lambda a: (a[:, ::2], lax.dynamic_slice(a, (0, 1), (2, 2))), A),
    "update": (lambda a, i: lax.dynamic_update_slice(a, jnp.zeros((1, 1)), (i[0], i[1])), A, I),
    "sort": (lambda c: (jnp.sort(c), jnp.argsort(-c)), C),
    "top k": (lambda c: lax.top_k(c, 2), C),
    "reduce": (lambda a: (a.sum(0), a.max(), a.argmin(1)), A),
    "cumulative": (lambda a: (jnp.cumsum(a, 1), jnp.cumprod(a, 0), lax.cummax(a)), A),
    "loop": (lambda c: lax.fori_loop(0, 5, lambda i, x: x * 0.5 + i, c), C),
    "scan": (lambda c: lax.scan(lambda x, y: (x + y, x * y), jnp.float32(1), c), C),
    "while": (lambda c: lax.while_loop(lambda x: x.sum() < 20, lambda x: x * x + 1, c), C),
    "branches": (lambda i, c: lax.switch(i[0], [jnp.sin, lambda x: x * c[0], jnp.exp], c), I, C),
    "functions": (lambda c: (jnp.exp2(c), lax.erf(c), lax.lgamma(c), jnp.arctan2(c, 2.0), lax.rsqrt(c * c), lax.is_finite(c)), C),
    "chlo": (lambda c: (jnp.sinh(c), jnp.arcsin(c / 3), lax.digamma(c), lax.erf_inv(c / 3), jnp.square(c)), C),
    "compare": (lambda c: (c > 1, c != c, (c > 0) & (c < 2), jnp.where(c > 0, c, -c)), C),
    "random": (lambda c: c * jax.random.normal(jax.random.key(3), (3,)), C),
    "bits": (lambda i: (i ^ 3, i << 2, ~i, lax.population_count(i), lax.bitcast_convert_type(i, jnp.float32)), I),
    "types": (lambda c: (c.astype(jnp.bfloat16), c.astype(jnp.int8), c.astype(jnp.float8_e4m3fn).astype(jnp.float32), c.astype(bool)), C),
    "constants": (lambda c: (c + np.float32([1, 2, 3]), c[:2] * np.array([True, False]), np.int64([7, -9]), np.arange(200, dtype=np.uint8)), C),
    "complex": (lambda c: (jnp.fft.rfft(c), lax.real(lax.complex(c, c) * 2j)), C),
    "linear": (lambda a: (jnp.linalg.cholesky(a @ a.T), lax.linalg.triangular_solve(a @ a.T, a, left_side=True, lower=True)), A),
    "pad": (lambda a: lax.pad(a, 1.0, ((1, 0, 2), (-1, 1, 0))), A),
    "precision": (lambda a: lax.reduce_precision(a, 5, 3), A),
    "names": (jax.jit(lambda a: jax.checkpoint(lambda x: jax.nn.gelu(x).sum())(a)), A),
}


@pytest.fixture(scope="module")
def writers():
    from jax._src.interpreters.mlir import make_ir_context
    from jax._src.lib import _jax
    from jaxlib.mlir import ir

    def write(text, folder):
        (folder / "text.mlir").write_text(text)
        with make_ir_context():
            with open(folder / "raw.mlirbc", "wb") as file:
                ir.Module.parse(text).operation.write_bytecode(file)
            artifact = _jax.mlir.serialize_portable_artifact(ir.Module.parse(text), "1.13.0", True)
            (folder / "portable.mlirbc").write_bytes(artifact)

    return write


def otrn(*args):
    ran = subprocess.run([OTRN, *args], capture_output=True, timeout=300, env={**os.environ, "OTRN_CACHE": "off"})
    assert ran.returncode == 0, ran.stderr.decode()
    return ran.stdout


@pytest.mark.parametrize("name", PROGRAMS)
def test_three_forms(name, tmp_path, writers):
    if not OTRN.exists():
        pytest.skip("build/otrn is not there")
    function, *inputs = PROGRAMS[name]
    text = jax.jit(function, keep_unused=True).lower(*inputs).as_text()
    writers(text, tmp_path)
    assert otrn("compile", tmp_path / "raw.mlirbc", "--dump=read") == otrn("compile", tmp_path / "text.mlir", "--dump=read")
    given = []
    for i, value in enumerate(inputs):
        np.save(tmp_path / f"in{i}.npy", value)
        given.append(f"--input={tmp_path / f'in{i}.npy'}")
    results = []
    other = "text.mlir" if "chlo." in text else "portable.mlirbc"  # whose writer approximates CHLO's functions itself
    for form in ("raw.mlirbc", other):
        (tmp_path / f"{form}.out").mkdir()
        otrn("run", tmp_path / form, *given, f"--output={tmp_path / form}.out")
        results.append({f.name: f.read_bytes() for f in (tmp_path / f"{form}.out").glob("*.npy")})
    assert results[0] and results[0] == results[1]
