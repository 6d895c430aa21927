# SPDX-License-Identifier: Apache-2.0
"""HLO, XLA's own form of a program, beside StableHLO: the same program along both roads gives the same bits."""

import re
import subprocess

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import OTRN
from jax import lax

from opentrn import _runtime

R = np.random.default_rng(0)
A, B = R.normal(size=(6, 5)).astype("f"), R.normal(size=(6, 5)).astype("f")
S = (A @ A.T + 6 * np.eye(6)).astype("f")
V = R.normal(size=24).astype("f")
I = R.integers(0, 6, (7,)).astype("i4")
U = R.integers(0, 2**32, (4, 4), dtype="u4")
X = R.normal(size=(2, 9, 9, 4)).astype("f")
K = R.normal(size=(3, 3, 4, 6)).astype("f")
C = (A + 1j * B).astype("c8")

CONV = ("NHWC", "HWIO", "NHWC")


def loop(x):
    return lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, (jnp.sin(s[1][0]), s[1][1] * 2)), (0, (x, x)))


def train(w, x, y):
    def loss(w):
        return jnp.mean((jnp.tanh(x @ w[0]) @ w[1] - y) ** 2)

    value, g = jax.value_and_grad(loss)(w)
    return value, jax.tree.map(lambda a, b: a - 0.1 * b, w, g)


PROGRAMS = {
    "elementwise": (lambda a, b: (a + b, a - b, a * b, a / b, jnp.maximum(a, b), jnp.minimum(a, b), -a, abs(a)), A, B),
    "functions": (lambda a: (jnp.exp(a), jnp.sin(a), jnp.cos(a), jnp.tanh(a), jnp.sqrt(abs(a)), lax.rsqrt(abs(a)), lax.logistic(a)), A),
    "logs": (lambda a: (jnp.log(abs(a)), jnp.log1p(abs(a)), jnp.expm1(a), jnp.cbrt(a), jnp.tan(a)), A),
    "power": (lambda a, b: (abs(a) ** b, jnp.arctan2(a, b), jnp.fmod(a, b), jnp.sign(a)), A, B),
    "rounding": (lambda a: (jnp.floor(a), jnp.ceil(a), jnp.round(a), lax.round(a), jnp.isfinite(a)), A),
    "erf": (lambda a: lax.erf(a), A),
    "bits": (lambda u: (u & 7, u | 9, u ^ 3, ~u, u << 3, u >> 2, lax.population_count(u), lax.clz(u)), U),
    "signed": (lambda i: (i // 3, i % 4, i >> 1, -i, i * i), I),
    "compare": (lambda a, b: (a < b, a >= b, a == b, jnp.where(a > b, a, b)), A, B),
    "clamp": (lambda a: jnp.clip(a, -0.5, 0.5), A),
    "convert": (lambda a: (a.astype(jnp.int32), a.astype(jnp.bfloat16), a.astype(jnp.float16), (a * 9).astype(jnp.int8), a > 0), A),
    "bitcast": (lambda a: lax.bitcast_convert_type(a, jnp.uint32), A),
    "complex": (lambda c: (c * c, jnp.conj(c), c.real, c.imag, abs(c)), C),
    "broadcast": (lambda a: a[:, None, :] + jnp.arange(4.0)[None, :, None], A),
    "transpose": (lambda x: jnp.transpose(x, (3, 0, 2, 1)), X),
    "reshape": (lambda a: a.reshape(5, 3, 2), A),
    "slice": (lambda x: (x[:, 1:8:3], x[..., ::-1], x[0, 2]), X),
    "dynamic slice": (lambda a, i: (lax.dynamic_slice(a, (i[0], i[1]), (2, 3)), lax.dynamic_update_slice(a, a[:2, :2], (i[2], i[0]))), A, I),
    "concatenate": (lambda a, b: jnp.concatenate([a, b, a], 1), A, B),
    "pad": (lambda a: lax.pad(a, 1.5, [(1, 2, 1), (-1, 0, 0)]), A),
    "iota": (lambda a: a + lax.broadcasted_iota(jnp.float32, (6, 5), 1), A),
    "gather": (lambda a, i: a[i], A, I),
    "gather 2": (lambda a, i: a[i, i % 5], A, I),
    "take along": (lambda a: jnp.take_along_axis(a, jnp.argsort(a, 1), 1), A),
    "scatter add": (lambda a, i: a.at[i].add(2.0), A, I),
    "scatter set": (lambda a, i: a.at[:, 2].set(7.0), A, I),
    "sums": (lambda a: (a.sum(), a.sum(0), a.max(1), a.min(), a.prod(1)), A),
    "logic": (lambda a: ((a > 0).all(1), (a > 0).any()), A),
    "argmax": (lambda a: (a.argmax(1), a.argmin(0)), A),
    "softmax": (lambda a: jax.nn.softmax(a, -1), A),
    "cumsum": (lambda v: (jnp.cumsum(v), lax.cummax(v)), V),
    "sort": (lambda a: jnp.sort(a, 1), A),
    "sort pairs": (lambda v, w: lax.sort((v, w), num_keys=1), V, np.arange(24, dtype="i4")),
    "matmul": (lambda a, b: a @ b.T, A, B),
    "batched": (lambda x: jnp.einsum("abcd,abed->abce", x, x), X),
    "bf16 product": (lambda a, b: jnp.dot(a.astype(jnp.bfloat16), b.T.astype(jnp.bfloat16), preferred_element_type=jnp.float32), A, B),
    "convolution": (lambda x, k: lax.conv_general_dilated(x, k, (2, 1), "SAME", rhs_dilation=(1, 2), dimension_numbers=CONV), X, K),
    "transposed": (lambda x, k: lax.conv_general_dilated(x, k, (1, 1), ((2, 2), (2, 2)), lhs_dilation=(2, 2), dimension_numbers=CONV), X, K),
    "depthwise": (lambda x, k: lax.conv_general_dilated(x, k[:, :, :1, :4], (1, 1), "VALID", dimension_numbers=CONV, feature_group_count=4), X, K),
    "pool": (lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME"), X),
    "pool gradient": (jax.grad(lambda x: (lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "VALID") ** 2).sum()), X),
    "fft": (lambda c, v: (jnp.fft.fft(c), jnp.fft.rfft(v), jnp.fft.irfft(jnp.fft.rfft(v))), C, V),
    "cholesky": (lambda s: lax.linalg.cholesky(s, symmetrize_input=False), S),
    "while": (loop, A),
    "cond": (lambda a, i: lax.cond(i[0] > 2, lambda a: a * 2, lambda a: jnp.sin(a), a), A, I),
    "switch": (lambda a, i: lax.switch(i[1], [lambda a: a * 2, jnp.sin, lambda a: a[::-1]], a), A, I),
    "scan": (lambda x: lax.scan(lambda c, r: (c + r, c * r), x[0], x), A),
    "map": (lambda x: lax.map(lambda r: jnp.sum(r) * r, x), A),
    "vmap": (jax.vmap(lambda a, i: a[i % 5] * 3), A, I[:6]),
    "threefry": (lambda u: jax.random.uniform(jax.random.wrap_key_data(u[0, :2]), (3, 5)), U),
    "rng bits": (lambda u: lax.rng_bit_generator(u[0], (4, 3), dtype=jnp.uint32), U),
    "rng": (lambda a: a + lax.rng_uniform(np.float32(0), np.float32(2), (6, 5)), A),
    "reduce precision": (lambda a: lax.reduce_precision(a, 5, 4), A),
    "barrier": (lambda a, b: lax.optimization_barrier((a + 1, b * 2)), A, B),
    "constants": (lambda a: a + np.arange(30, dtype="f").reshape(6, 5) * np.float32(0.1), A),
    "train": (train, [A.T.copy(), B], A, A),
    "layer norm gradient": (jax.grad(lambda a: (((a - a.mean(1, keepdims=True)) / jnp.sqrt(a.var(1, keepdims=True) + 1e-5)) ** 3).sum()), A),
}


def environment():
    """One for each run: rng goes on in one."""
    return _runtime.Environment(cache="off")


def run(program, name, arrays):
    exe = environment().compile(program, name)
    assert [shape for _, shape in exe.arg_types()] == [a.shape for a in arrays]
    results = [np.zeros(int(np.prod(shape)) * 16 + 16, "u1") for _, shape in exe.result_types()]
    sizes = [int(np.prod(shape)) * _width(kind) for kind, shape in exe.result_types()]
    exe.run([(a.ctypes.data, a.nbytes) for a in arrays], [(r.ctypes.data, n) for r, n in zip(results, sizes, strict=True)])
    return exe.result_types(), [r[:n].tobytes() for r, n in zip(results, sizes, strict=True)]


def _width(kind):
    wide = {"i1": 1, "bf16": 2, "complex<f32>": 8}
    return wide.get(kind) or int(kind.lstrip("uif")) // 8


@pytest.mark.parametrize("name", PROGRAMS)
def test_same_bits(name):
    f, *args = PROGRAMS[name]
    lowered = jax.jit(f, keep_unused=True).lower(*args)
    arrays = [np.ascontiguousarray(a) for a in jax.tree.leaves(args)]
    want = run(lowered.as_text().encode(), "p.mlir", arrays)
    hlo = lowered.compiler_ir("hlo")
    assert run(hlo.as_serialized_hlo_module_proto(), "p.hlo.pb", arrays) == want
    assert run(hlo.as_hlo_text(print_large_constants=True).encode(), "p.hlo", arrays) == want


Z = np.random.default_rng(5)
CONDITIONED = {  # what a formula of its own makes of rounding: 4e-6 and more between two hosts
    "betainc": (lax.betainc, *Z.uniform(0.1, 3, (2, 4000)).astype("f"), Z.uniform(0.05, 0.95, 4000).astype("f")),
    "igamma": (lax.igamma, *Z.uniform(0.1, 9, (2, 4000)).astype("f")),
    "softmax": (lambda a: jax.nn.softmax(a @ a.T, -1), (Z.normal(size=(200, 64)) * 3).astype("f")),
    "log_softmax": (lambda a: jax.nn.log_softmax(a * 40, -1), Z.normal(size=(64, 1000)).astype("f")),
    "svdvals": (jnp.linalg.svdvals, Z.normal(size=(40, 30)).astype("f")),
}


@pytest.mark.parametrize("name", CONDITIONED)
def test_as_near_as_the_cpu(name):
    """Programs compiled for CPUs, after optimisation, beside float64: no further off than JAX's CPU by more than 2e-6 of the largest element."""
    f, *args = CONDITIONED[name]
    with jax.default_device(jax.local_devices(backend="cpu")[0]):
        compiled = jax.jit(f).lower(*args).compile()
        theirs = np.asarray(compiled(*args), "f8")
        with jax.enable_x64(True):
            exact = np.asarray(jax.jit(f)(*(a.astype("f8") for a in args)))
    _, [data] = run(compiled.as_text().encode(), "p.hlo", args)
    ours = np.frombuffer(data, "f").reshape(exact.shape)
    assert np.abs(ours - exact).max() <= np.abs(theirs - exact).max() + 2e-6 * np.abs(exact).max()


def test_what_a_module_says(tmp_path):
    """Names of arguments, donated ones, the user's line; the message in the wrappers that dumps have."""
    lowered = jax.jit(lambda state, x: state + jnp.log(x), donate_argnums=0).lower(A, B)
    bare = lowered.compiler_ir("hlo").as_serialized_hlo_module_proto()
    exe = environment().compile(bare, "p.hlo.pb")
    assert exe.arg_names() == ["state", "x"] and exe.aliases() == [0]
    wrapped = b"\x0a" + _varint(len(bare)) + bare
    for path, data in (("a", bare), ("b", wrapped), ("c", b"\x0a" + _varint(len(wrapped)) + wrapped + b"\x22\x04Host")):
        (tmp_path / path).write_bytes(data)
        out = subprocess.run([OTRN, "compile", tmp_path / path, "--explain"], capture_output=True, text=True)
        assert out.returncode == 0 and "test_hlo.py" in out.stdout + out.stderr


MESH = jax.sharding.AbstractMesh((2, 2), ("x", "y"))
CUT, ROWS, COLUMNS, BOTH = (jax.sharding.NamedSharding(MESH, jax.sharding.PartitionSpec(*axes)) for axes in (("x", "y"), ("y", None), (None, "x"), (("y", "x"), None)))
_P = jax.sharding.PartitionSpec
_product = jax.shard_map(lambda a, b: lax.psum(a @ b, "y") + lax.axis_index("x"), mesh=MESH, in_specs=(_P("x", "y"), _P("y")), out_specs=_P("x"))
_swap = jax.shard_map(lambda a: lax.ppermute(a, "x", [(0, 1), (1, 0)]), mesh=MESH, in_specs=_P("x"), out_specs=_P("x"), axis_names={"x"})
SHARDED = {
    "constraint": (lambda a, b: lax.with_sharding_constraint(jnp.tanh(a @ b), ROWS), (CUT, ROWS), CUT),
    "partly replicated": (lambda a, b: a @ b, (ROWS, COLUMNS), BOTH),
    "turned": (lambda a, b: (a @ b).sum(0), (BOTH, COLUMNS), jax.sharding.NamedSharding(MESH, jax.sharding.PartitionSpec("x"))),
    "tuple": (lambda a, b: {"p": a @ b, "q": (jnp.sin(a), b * 2)}, (ROWS, COLUMNS), {"p": CUT, "q": (ROWS, COLUMNS)}),
    "shard_map": (lambda a, b: jnp.sin(_product(jnp.tanh(a), b)), (CUT, ROWS), CUT),
    "shard_map in a loop": (lambda a, b: lax.fori_loop(0, 3, lambda i, c: _swap(c) + 1, a) @ b, (CUT, ROWS), ROWS),
    "loop": (lambda a, b: lax.fori_loop(0, 3, lambda i, c: lax.with_sharding_constraint(jnp.tanh(c + 1), ROWS), a) @ b, (CUT, ROWS), ROWS),
}


@pytest.mark.parametrize("shardy", [False, True], ids=["gspmd", "shardy"])
@pytest.mark.parametrize("name", SHARDED)
def test_shardings(name, shardy, tmp_path):
    """Cuts over devices, as GSPMD says them and as Shardy does, in all three forms: the same products and collectives of a device."""
    program, takes, gives = SHARDED[name]
    f = jax.jit(program, in_shardings=takes, out_shardings=gives)
    before = jax.config.jax_use_shardy_partitioner
    jax.config.update("jax_use_shardy_partitioner", shardy)
    try:
        lowered = f.trace(np.ones((8, 16), "f"), np.ones((16, 4), "f")).lower(lowering_platforms=("cpu",))
        forms = {"a.mlir": lowered.as_text().encode()}
        hlo = lowered.compiler_ir("hlo")
    finally:
        jax.config.update("jax_use_shardy_partitioner", before)
    forms |= {"a.pb": hlo.as_serialized_hlo_module_proto(), "a.hlo": hlo.as_hlo_text().encode()}
    dumps = []
    for name, data in forms.items():
        assert name != "a.mlir" or (b"sdy" in data) == shardy
        (tmp_path / name).write_bytes(data)
        out = subprocess.run([OTRN, "compile", "--cache=off", "--dump=spmd", tmp_path / name], capture_output=True, text=True)
        assert out.returncode == 0, out.stderr
        lines = (line.split(" = ", 1)[1].split(" loc")[0] for line in out.stdout.splitlines() if re.search(r' = "stablehlo\.(all_|reduce_scatter|collective|dot)', line))
        dumps.append(sorted(re.sub(r"%\w+|#\d+|handle = \d+", "%", line) for line in lines))
    assert dumps[0] == dumps[1] == dumps[2] and dumps[0]


def _fields(data):
    """(number, wire, payload) of a message, the payload as it stands."""
    at, out = 0, []

    def number():
        nonlocal at
        value, shift = 0, 0
        while True:
            byte = data[at]
            at, value, shift = at + 1, value | (byte & 127) << shift, shift + 7
            if byte < 128:
                return value

    while at < len(data):
        key = number()
        if key & 7 == 2:
            n = number()
            out.append((key >> 3, 2, data[at : at + n]))
            at += n
        elif key & 7 == 0:
            out.append((key >> 3, 0, number()))
        else:
            n = 8 if key & 7 == 1 else 4
            out.append((key >> 3, key & 7, data[at : at + n]))
            at += n
    return out


def test_numbers_of_operands():
    """An instruction's number has its computation's in the upper half; where TensorFlow names it as an operand it has not."""
    hlo = jax.jit(loop).lower(A).compiler_ir("hlo").as_serialized_hlo_module_proto()

    def bare(packed):
        return b"".join(_varint(n & 0xFFFFFFFF) for n in _numbers(packed))

    changed = _in_every(_fields(hlo), 3, lambda c: _in_every(_fields(c), 2, lambda i: _in_every(_fields(i), 36, bare)))
    assert changed != hlo and run(changed, "p.hlo.pb", [A]) == run(hlo, "p.hlo.pb", [A])


def _in_every(fields, which, change):
    out = b""
    for number, wire, payload in fields:
        payload = change(payload) if number == which and wire == 2 else payload
        out += _varint(number << 3 | wire)
        out += _varint(payload) if wire == 0 else (_varint(len(payload)) if wire == 2 else b"") + payload
    return out


def _numbers(packed):
    value, shift = 0, 0
    for byte in packed:
        value, shift = value | (byte & 127) << shift, shift + 7
        if byte < 128:
            yield value
            value, shift = 0, 0


def _varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])
