# SPDX-License-Identifier: Apache-2.0
"""jit with shardings: what each device computes, and which collectives it needs, against one device."""

import collections
import functools
import itertools
import re

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

pytestmark = pytest.mark.skipif(len(jax.devices()) < 8, reason="needs eight devices")


def mesh_of(*shape):
    return jax.make_mesh(shape, ("dp", "tp"), axis_types=(AxisType.Auto,) * 2, devices=jax.devices()[:8])


def put(mesh, tree, specs):
    return jax.tree.map(lambda x, s: jax.device_put(x, NamedSharding(mesh, s)), tree, specs)


def collectives(compiled):
    names = "all-reduce|all-gather|reduce-scatter|all-to-all|collective-broadcast"
    return collections.Counter(re.findall(rf"\s({names})\(", compiled.as_text()))


# --- a transformer's training step -----------------------------------------------------------------

VOCABULARY, WIDTH, HEADS, LAYERS, BATCH, LENGTH = 64, 32, 4, 2, 16, 8
HEAD = WIDTH // HEADS


def weights():
    rng = np.random.default_rng(0)
    n = lambda *s: (rng.standard_normal(s) / np.sqrt(s[0])).astype(np.float32)
    layer = lambda: {
        "qkv": n(WIDTH, 3, HEADS, HEAD), "out": n(HEADS, HEAD, WIDTH), "norm1": np.ones(WIDTH, np.float32),
        "up": n(WIDTH, 4 * WIDTH), "bias": np.zeros(4 * WIDTH, np.float32), "down": n(4 * WIDTH, WIDTH),
        "norm2": np.ones(WIDTH, np.float32),
    }  # fmt: skip
    layers = [layer() for _ in range(LAYERS)]
    return {"embed": n(VOCABULARY, WIDTH), "layers": layers, "head": n(WIDTH, VOCABULARY)}


# Megatron's cuts: heads and hidden units over tp, rows of the products behind them.
LAYER = {
    "qkv": P(None, None, "tp"), "out": P("tp"), "norm1": P(), "up": P(None, "tp"), "bias": P("tp"), "down": P("tp"),
    "norm2": P(),
}  # fmt: skip
TENSOR_PARALLEL = {"embed": P("tp"), "layers": [LAYER] * LAYERS, "head": P(None, "tp")}
WHOLE = jax.tree.map(lambda x: P(), weights())
FULLY_SHARDED = jax.tree.map(lambda x: P("dp") if x.shape[0] % 8 == 0 else P(), weights())


def normed(x, scale):
    return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5) * scale


def block(x, layer):
    h = normed(x, layer["norm1"])
    q, k, v = jnp.moveaxis(jnp.einsum("bsd,dthe->bsthe", h, layer["qkv"]), 2, 0)
    scores = jnp.einsum("bqhe,bkhe->bhqk", q, k) / np.sqrt(HEAD)
    scores = jnp.where(jnp.tril(jnp.ones((LENGTH, LENGTH), bool)), scores, -1e30)
    x = x + jnp.einsum("bhqk,bkhe,hed->bqd", jax.nn.softmax(scores), v, layer["out"])
    return x + jax.nn.gelu(normed(x, layer["norm2"]) @ layer["up"] + layer["bias"]) @ layer["down"]


def loss_fn(params, tokens, scanned):
    x = params["embed"][tokens[:, :-1]]
    if scanned:
        stacked = jax.tree.map(lambda *a: jnp.stack(a), *params["layers"])
        x, _ = jax.lax.scan(lambda x, layer: (jax.checkpoint(block)(x, layer), None), x, stacked)
    else:
        for layer in params["layers"]:
            x = block(x, layer)
    return optax.softmax_cross_entropy_with_integer_labels(x @ params["head"], tokens[:, 1:]).mean()


OPTIMIZER = optax.adamw(1e-2, eps=1e-3)  # steps do not depend on the last bits of small gradients


@functools.partial(jax.jit, static_argnames="scanned")
def step(params, state, tokens, scanned=False):
    loss, grads = jax.value_and_grad(loss_fn)(params, tokens, scanned)
    updates, state = OPTIMIZER.update(grads, state, params)
    return optax.apply_updates(params, updates), state, loss


def train(mesh=None, specs=WHOLE, scanned=False, steps=3):
    params = weights()
    place = lambda x: x
    if mesh:
        params = put(mesh, params, specs)
        place = lambda x: jax.device_put(x, NamedSharding(mesh, P("dp")))
    state = OPTIMIZER.init(params)
    if mesh:
        state = jax.tree.map(lambda x: x if x.ndim else jax.device_put(x, NamedSharding(mesh, P())), state)
    losses, used = [], None
    for i in range(steps):
        tokens = np.random.default_rng(9 + i).integers(0, VOCABULARY, (BATCH, LENGTH + 1)).astype(np.int32)
        if mesh and i == 0:
            used = collectives(step.lower(params, state, place(tokens), scanned).compile())
        params, state, loss = step(params, state, place(tokens), scanned)
        losses.append(float(loss))
    return losses, jax.tree.map(np.asarray, params), used


@pytest.fixture(scope="module")
def one_device():
    return train()


def same(got, want):
    np.testing.assert_allclose(got[0], want[0], rtol=1e-5)
    for g, w in zip(jax.tree.leaves(got[1]), jax.tree.leaves(want[1])):
        np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-5)


def test_data_parallel(one_device):
    got = train(mesh_of(8, 1))
    same(got, one_device)
    assert set(got[2]) == {"all-reduce"}  # gradients, nothing is gathered


def test_data_and_tensor_parallel(one_device):
    got = train(mesh_of(2, 4), TENSOR_PARALLEL)
    same(got, one_device)
    assert set(got[2]) == {"all-reduce"}  # also where the labels pick from logits in parts


def test_fully_sharded(one_device):
    got = train(mesh_of(8, 1), FULLY_SHARDED)
    same(got, one_device)
    # Weights are gathered, gradients scattered; activations are too large for either.
    assert got[2]["reduce-scatter"] >= 10 and got[2]["all-reduce"] < 5


def test_layers_in_a_loop(one_device):
    got = train(mesh_of(2, 4), TENSOR_PARALLEL, scanned=True)
    same(got, one_device)


# --- single ops in all ways to lie -----------------------------------------------------------------

X = np.random.default_rng(1).standard_normal((8, 4, 16)).astype(np.float32)
W = np.random.default_rng(2).standard_normal((16, 8)).astype(np.float32)
I = np.random.default_rng(3).integers(0, 8, (8, 4)).astype(np.int32)
SPECS = [P(), P("dp"), P("tp"), P(None, "dp"), P(None, None, "tp"), P("dp", None, "tp"), P("tp", "dp"), P(("dp", "tp"))]
OPS = {
    "product": lambda x, w, i: x @ w,
    "batched": lambda x, w, i: jnp.einsum("bsd,btd->bst", x, x * 2),
    "sum": lambda x, w, i: x.sum((0, 2)) + x.sum(),
    "max": lambda x, w, i: x.max(0) - x.min(1)[:4],
    "mean from 1": lambda x, w, i: jax.lax.reduce(x, 1.0, jax.lax.add, (0,)),
    "argmax": lambda x, w, i: x.argmax(2) + x.argmax(0).sum(),
    "any": lambda x, w, i: (x > 2).any((0, 2)),
    "transpose": lambda x, w, i: x.transpose(2, 0, 1) + 1,
    "merge": lambda x, w, i: x.reshape(32, 16) @ w,
    "split": lambda x, w, i: x.reshape(8, 4, 4, 4).sum(3) + x.reshape(2, 4, 64).sum(),
    "ravel": lambda x, w, i: x.reshape(512)[::2],
    "broadcast": lambda x, w, i: x + x[0] * jnp.arange(16.0) + x[:, :1],
    "iota": lambda x, w, i: x * jax.lax.broadcasted_iota(jnp.int32, x.shape, 0) + jnp.arange(8)[:, None, None],
    "take rows": lambda x, w, i: w[:8][i] + x[..., :8],
    "take along": lambda x, w, i: jnp.take_along_axis(x, i[..., None], 2),
    "pick rows": lambda x, w, i: x[i[:, 0]] + x[jnp.array([-9, -1, 0, 3, 7, 8, 99, 2])],
    "pick by bytes": lambda x, w, i: x[i[:, 0].astype(jnp.uint8)],
    "pick places": lambda x, w, i: x[i[:, 0] % 8, i[:, 1] % 4],
    "add rows": lambda x, w, i: jnp.zeros((8, 16)).at[i].add(x),
    "add to rows": lambda x, w, i: (w.T * 2).at[i].add(x),
    "set rows": lambda x, w, i: w.T.at[i[:, 0]].set(x[:, 0]).sum(1),
    "concatenate": lambda x, w, i: jnp.concatenate([x, -x, x[:, :2]], 1),
    "pad": lambda x, w, i: jnp.pad(x, ((0, 0), (1, 2), (0, 0))),
    "slices": lambda x, w, i: x[:, 1:3, ::2] + jax.lax.dynamic_slice(x, (i[0, 0], 1, 0), (8, 2, 8)),
    "update": lambda x, w, i: jax.lax.dynamic_update_slice(x, x[:, :2] * 2, (0, i[0, 0], 0)),
    "sort": lambda x, w, i: jnp.sort(x, 1) + jnp.argsort(x, 2),
    "top k": lambda x, w, i: jax.lax.top_k(x, 3)[0],
    "cumsum": lambda x, w, i: jnp.cumsum(x, 1) + jnp.cumsum(x, 0),
    "reverse": lambda x, w, i: x[::-1] + x[:, ::-1],
    "softmax": lambda x, w, i: jax.nn.softmax(x, 2) + jax.nn.log_softmax(x, 0),
    "loop": lambda x, w, i: jax.lax.fori_loop(0, 3, lambda k, c: jnp.tanh(c @ w @ w.T) + k, x),
    "branch": lambda x, w, i: jax.lax.cond(i[0, 0] > 3, lambda: x @ w, lambda: x[..., :8]),
    "random": lambda x, w, i: x + jax.random.normal(jax.random.key(0), x.shape),
    "gradient": lambda x, w, i: jax.grad(lambda x: jnp.tanh(x @ w).sum())(x),
}  # fmt: skip


@pytest.mark.parametrize("name", OPS)
def test_every_way_to_lie(name, cpu):
    f, mesh = OPS[name], mesh_of(2, 4)
    with jax.default_device(cpu):
        want = np.asarray(jax.jit(f)(X, W, I))
    rest = itertools.cycle([(P(), P()), (P("tp"), P("dp")), (P(None, "dp"), P(None, "tp")), (P("dp", "tp"), P())])
    for spec, (w_spec, i_spec) in zip(SPECS, rest):
        got = jax.jit(f)(*put(mesh, (X, W, I), (spec, w_spec, i_spec)))
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-4, atol=1e-5, err_msg=f"{spec} {w_spec} {i_spec}")


def test_results_where_they_are_wanted():
    mesh = mesh_of(2, 4)
    want = np.tanh(X @ W)
    for in_spec, out_spec in itertools.product(SPECS, SPECS):
        out_spec = P(*out_spec[:2], None) if len(out_spec) == 3 else out_spec
        f = jax.jit(lambda x, w: jnp.tanh(x @ w), out_shardings=NamedSharding(mesh, out_spec))
        got = f(*put(mesh, (X, W), (in_spec, P())))
        assert got.sharding.is_equivalent_to(NamedSharding(mesh, out_spec), 3)
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-4, atol=1e-5)


def test_compiled_text_is_one_devices():
    mesh = mesh_of(2, 4)
    compiled = jax.jit(lambda x, w: x @ w).lower(*put(mesh, (X, W), (P("dp"), P("tp")))).compile()
    text = compiled.as_text()
    assert "f32[4,4,16]" in text and "f32[4,8]" in text and "f32[8,4,16]" not in text
    assert collectives(compiled) == {"all-reduce": 1}
