# SPDX-License-Identifier: Apache-2.0
"""Transformers in plain JAX, as people write them from a Hugging Face configuration: dictionaries of weights, optax, shardings of arguments.

Nothing here knows how opentrn prices a configuration (_predict/model.py): accuracy/sides.py sets the two beside each other. Precision is told by two types: of what
is stored, and of what products take. Where they differ (amp) products alone are narrow, as under torch.autocast: norms and what layers add to are as stored. Scores, their softmax and
losses are fp32.
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

COLUMN, ROW = (None, "tp"), ("tp", None)  # how a product's weight is cut


def _dense(a, b, cut=(None, None), bias=True):
    return {"w": ((a, b), cut)} | ({"b": ((b,), cut[1:])} if bias else {})


def _norm(c, size=None):
    return {"g": ((size or c["width"],), (None,))} | ({"b": ((size or c["width"],), (None,))} if c["norm"] == "layer" else {})


def _attention(c):
    wide, kv = c["heads"] * c["head"], c["kv"] * c["head"]
    return {k: _dense(c["width"], n, COLUMN, c["qkv_bias"]) for k, n in (("q", wide), ("k", kv), ("v", kv))} | {"o": _dense(wide, c["width"], ROW, c["out_bias"])}


def _layer(c, cross=False):
    up = {k: _dense(c["width"], c["hidden"], COLUMN, c["bias"]) for k in (("gate", "up") if c["gated"] else ("up",))}
    both = {"attention": _attention(c), "norm1": _norm(c), "norm2": _norm(c), **up, "down": _dense(c["hidden"], c["width"], ROW, c["bias"])}
    return both | ({"cross": _attention(c), "norm3": _norm(c)} if cross else {})


def tree_of(c):
    """(shape, how it is cut) of every weight."""
    width, layers = c["width"], [_layer(c) for _ in range(c["layers"])]
    if c["task"] == "classes":
        side = c["image"] // c["patch"]
        return {"patch": _dense(3 * c["patch"] ** 2, width), "first": ((width,), (None,)), "places": ((side * side + 1, width), (None, None)), "layers": layers,
                "norm": _norm(c), "head": _dense(width, c["classes"])}  # fmt: skip
    tree = {"words": ((c["vocab"], width), ("tp", None)), "layers": layers, "norm": _norm(c)}
    tree |= {} if c["tied"] else {"head": _dense(width, c["vocab"], COLUMN, False)}
    tree |= {"places": ((c["positions"], width), (None, None))} if c["places"] == "learned" else {}
    if c["task"] == "mlm":
        tree |= {"kinds": ((2, width), (None, None)), "pool": _dense(width, width), "follow": _dense(width, 2), "turn": _dense(width, width), "turned": _norm(c),
                 "bias": ((c["vocab"],), ("tp",))}  # fmt: skip
    if c["task"] == "span":
        near = ((32, c["heads"]), (None, "tp"))
        tree |= {"near": near, "after": near, "writes": [_layer(c, True) for _ in range(c["layers"])], "last": _norm(c)}
    return tree


def cast(policy, x):
    return x.astype(policy[1])


def dense(policy, p, x):
    y = cast(policy, x) @ cast(policy, p["w"])
    return y + cast(policy, p["b"]) if "b" in p else y


def norm(p, x):
    wide = x.astype(jnp.float32)
    if "b" in p:
        y = (wide - wide.mean(-1, keepdims=True)) * jax.lax.rsqrt(wide.var(-1, keepdims=True) + 1e-5) * p["g"] + p["b"]
    else:
        y = p["g"] * (wide * jax.lax.rsqrt((wide**2).mean(-1, keepdims=True) + 1e-5))
    return y.astype(x.dtype)


def rotate(policy, x, share):
    size = int(x.shape[-1] * share) // 2 * 2
    angle = np.arange(x.shape[1])[:, None] / 10000 ** (np.arange(0, size, 2) / size)
    cos, sin = (f(angle)[None, :, None].astype(policy[0]) for f in (np.cos, np.sin))
    a, b = jnp.split(x[..., :size], 2, -1)
    return cast(policy, jnp.concatenate([a * cos - b * sin, b * cos + a * sin, x[..., size:]], -1))


def attention(policy, c, p, x, source, mask, bias=None):
    q, k, v = (dense(policy, p[n], t).reshape(*t.shape[:2], -1, c["head"]) for n, t in (("q", x), ("k", source), ("v", source)))
    if c["places"] == "rotary":
        q, k = rotate(policy, q, c["rotary"]), rotate(policy, k, c["rotary"])
    k, v = (jnp.repeat(t, c["heads"] // c["kv"], axis=2) for t in (k, v))
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(jnp.float32) / np.sqrt(c["head"]).astype(np.float32)
    scores = scores if bias is None else scores + bias
    scores = scores if mask is None else jnp.where(mask, scores, -jnp.inf)
    y = jnp.einsum("bhqk,bkhd->bqhd", cast(policy, jax.nn.softmax(scores, axis=-1)), v)
    return dense(policy, p["o"], y.reshape(*x.shape[:2], -1))


ACTS = {"gelu": jax.nn.gelu, "erf": lambda x: jax.nn.gelu(x, approximate=False), "silu": jax.nn.silu, "relu": jax.nn.relu}


def mlp(policy, c, p, x):
    h = ACTS[c["act"]](dense(policy, p["gate" if c["gated"] else "up"], x))
    return dense(policy, p["down"], h * dense(policy, p["up"], x) if c["gated"] else h)


def layer(policy, c, p, x, mask, bias=None, source=None):
    attend = lambda x, q=p["attention"]: attention(policy, c, q, x, x, mask, bias)
    if c["post"]:
        x = norm(p["norm1"], x + attend(x))
        return norm(p["norm2"], x + mlp(policy, c, p, x))
    if c["parallel"]:
        return x + attend(norm(p["norm1"], x)) + mlp(policy, c, p, norm(p["norm2"], x))
    x = x + attend(norm(p["norm1"], x))
    if source is not None:
        x = x + attention(policy, c, p["cross"], norm(p["norm3"], x), source, None)
    return x + mlp(policy, c, p, norm(p["norm2"], x))


def cross_entropy(logits, targets):
    return optax.softmax_cross_entropy_with_integer_labels(logits.astype(jnp.float32), targets).mean()


def causal(seq, window=0):
    at = jnp.arange(seq)
    mask = at[:, None] >= at[None, :]
    return mask & (at[:, None] - at[None, :] < window) if window else mask


def _head(policy, w, x):
    return dense(policy, w["head"], x) if "head" in w else cast(policy, x) @ cast(policy, w["words"]).T


def language(policy, c, w, tokens, targets):
    x = w["words"][tokens]
    x = x + w["places"][: tokens.shape[1]] if "places" in w else x
    mask = causal(tokens.shape[1], c["window"] if c["window"] < tokens.shape[1] else 0)
    for p in w["layers"]:
        x = layer(policy, c, p, x, mask)
    return cross_entropy(_head(policy, w, norm(w["norm"], x)), targets)


def masked(policy, c, w, tokens, kinds, mask, targets, follows):
    x = norm(w["norm"], w["words"][tokens] + w["places"][: tokens.shape[1]] + w["kinds"][kinds])
    for p in w["layers"]:
        x = layer(policy, c, p, x, mask[:, None, None, :] != 0)
    first = cross_entropy(dense(policy, w["follow"], jnp.tanh(dense(policy, w["pool"], x[:, 0]))), follows)
    h = norm(w["turned"], ACTS[c["act"]](dense(policy, w["turn"], x)))
    return first + cross_entropy(_head(policy, w, h) + cast(policy, w["bias"]), targets)


def pictures(policy, c, w, images, labels):
    b, side, p = images.shape[0], c["image"] // c["patch"], c["patch"]
    x = images.reshape(b, 3, side, p, side, p).transpose(0, 2, 4, 1, 3, 5).reshape(b, side * side, -1)
    first = jnp.broadcast_to(w["first"], (b, 1, c["width"]))
    x = jnp.concatenate([first, dense(policy, w["patch"], x).astype(first.dtype)], 1) + w["places"]
    for q in w["layers"]:
        x = layer(policy, c, q, x, None)
    return cross_entropy(dense(policy, w["head"], norm(w["norm"], x)[:, 0]), labels)


def distances(table, seq, both):
    """T5's bias of scores by distance: near ones have rows of their own, far ones share them by the logarithm."""
    ahead = np.arange(seq)[None, :] - np.arange(seq)[:, None]
    some, base = (16, np.where(ahead > 0, 16, 0)) if both else (32, 0)
    far = np.abs(ahead) if both else np.maximum(-ahead, 0)
    late = some // 2 + (np.log(np.maximum(far, 1) / (some // 2)) / np.log(128 / (some // 2)) * (some - some // 2)).astype(int)
    return table[base + np.where(far < some // 2, far, np.minimum(late, some - 1))].transpose(2, 0, 1)


def span(policy, c, w, tokens, wanted, targets):
    x, near = w["words"][tokens], distances(w["near"], tokens.shape[1], True)
    for p in w["layers"]:
        x = layer(policy, c, p, x, None, near)
    x = norm(w["norm"], x)
    y, after = w["words"][wanted], distances(w["after"], wanted.shape[1], False)
    for p in w["writes"]:
        y = layer(policy, c, p, y, causal(wanted.shape[1]), after, x)
    return cross_entropy(_head(policy, w, norm(w["last"], y)), targets)


TASKS = {"lm": language, "mlm": masked, "classes": pictures, "span": span}


def parted(shape, cut, dp):
    """A cut that replicas share too: of the first dimension that is whole and that they divide."""
    cut = list(cut)
    at = next((i for i, n in enumerate(shape) if cut[i] is None and n % dp == 0), None)
    if at is not None:
        cut[at] = "dp"
    return tuple(cut)


def text(c, batch, types, mesh, zero=0):
    """A training step over a mesh. c: sizes, as Model has them; batch: shapes; types: of what is stored, of what products take."""
    mesh = AbstractMesh(tuple(mesh.values()), tuple(mesh))
    like = lambda shape, dtype, cut: jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, P(*cut)))
    leaf = lambda v: isinstance(v, tuple)
    tree = tree_of(c)
    stored = lambda dtype, share: jax.tree.map(lambda v: like(v[0], dtype, parted(*v, mesh.shape["dp"]) if share else v[1]), tree, is_leaf=leaf)
    params, shared = stored(types[0], zero == 3), stored(types[0], zero > 0)
    opt = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(3e-4, b2=0.95, weight_decay=0.1))
    state = jax.eval_shape(opt.init, params)
    where = jax.tree.map(lambda v: v.sharding, shared)
    state = optax.tree_map_params(opt, lambda s, at: jax.ShapeDtypeStruct(s.shape, s.dtype, sharding=at), state, where, transform_non_params=lambda s: like(s.shape, s.dtype, ()))
    given = [like(v.shape, v.dtype, ("dp",)) for v in batch]

    def step(params, state, *batch):
        loss, grads = jax.value_and_grad(lambda w: TASKS[c["task"]](types, c, w, *batch))(params)
        changes, state = opt.update(grads, state, params)
        return optax.apply_updates(params, changes), state, loss

    out = jax.tree.map(lambda v: v.sharding, (params, state)) + (NamedSharding(mesh, P()),)
    traced = jax.jit(step, donate_argnums=(0, 1), keep_unused=True, out_shardings=out).trace(params, state, *given)
    return traced.lower(lowering_platforms=("cpu",)).as_text()
