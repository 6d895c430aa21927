# SPDX-License-Identifier: Apache-2.0
"""Transformers as one device of a job sees them: its heads, its part of an MLP, its experts, its positions.

A model is plain functions of numbered weights: it asks w(3, 4) for a weight of that shape where it needs one, a first trace
collects the shapes, the traces behind it hand out what they are given in the same order. What devices of a tensor-parallel
group tell each other stands here as collectives, placed as Megatron places them: with `sp` activations between the products
are cut by position (gathered before a product, reduced and scattered behind it), without it they are whole on each device.
Statistics of norms, softmax and losses are fp32, everything else has the type of the weights.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from opentrn._predict.size import tokens_of
from opentrn._predict.spec import BUCKETS, Cut, Model, wanted  # noqa: F401


@dataclasses.dataclass(frozen=True)
class Weight:
    shape: tuple[int, ...]
    expert: bool = False
    frozen: bool = False


class Weights:
    """Hands out weights; collects their shapes when it has none. adapted: those that are no adapters do not learn."""

    def __init__(self, given=None, dtype=jnp.float32, key=None, adapted=False):
        self.given, self.dtype, self.key, self.adapted = None if given is None else iter(given), dtype, key, adapted
        self.seen = []

    def __call__(self, *shape, expert=False, adapter=False):
        if self.given is not None:
            return next(self.given).astype(self.dtype)
        self.seen.append(Weight(shape, expert, self.adapted and not adapter))
        return jnp.zeros(shape, self.dtype)

    def drop(self, x, share):
        """Dropout, every call with a key of its own; nothing without a key."""
        if self.key is None or not share:
            return x
        self.key, key = jax.random.split(self.key)
        return jnp.where(jax.random.bernoulli(key, 1 - share, x.shape), x / (1 - share), 0).astype(x.dtype)

    def layers(self, n, layer, x, remat):
        """x through layer(w, x) n times."""
        tree = self._tree(layer, x) if n and self.given is not None else []
        for _ in range(n):
            if self.given is None:
                x = layer(self, x)
                continue
            given = [next(self.given) for _ in tree]
            key = None
            if self.key is not None:
                self.key, key = jax.random.split(self.key)
            x = self.through(layer, tree, remat)(x, given, key)
        return x

    def through(self, layer, tree, remat):
        """A layer as a function of its input, what it is given of its weights (tree), and a key."""
        run = lambda x, given, key: layer(self.like(given, key), x)
        return jax.checkpoint(run) if remat else run

    def like(self, given, key):
        return Weights(given, self.dtype, key)

    def _tree(self, layer, x):
        seen = Weights(dtype=self.dtype)
        jax.eval_shape(lambda x: layer(seen, x), x)
        return seen.seen


# What devices tell each other. Forward and backward are each other's transpose: who sums forward passes gradients on as they are.


def _pair(forward, backward):
    op = jax.custom_vjp(forward)
    op.defvjp(lambda x: (forward(x), None), lambda _, g: (backward(g),))
    return op


def _gather(axis, dim):
    return lambda x: jax.lax.all_gather(x, axis, axis=dim, tiled=True)


def _scatter(axis, dim):
    return lambda x: jax.lax.psum_scatter(x, axis, scatter_dimension=dim, tiled=True)


def enter(x, u):
    """Before a product whose outputs are shared out."""
    if u.tp == 1:
        return x
    if u.sp:
        return _pair(_gather("tp", 1), _scatter("tp", 1))(x)
    return _pair(lambda x: x, lambda g: jax.lax.psum(g, "tp"))(x)


def entered(x, u, products):
    """Products of all positions. Where these are cut, the backward pass keeps a device's own and gathers them again, as Megatron does."""
    run = lambda x: products(enter(x, u))
    return jax.checkpoint(run)(x) if u.tp > 1 and u.sp and u.recompute != "full" else run(x)


def leave(x, u):
    """Behind a product whose contracted index is shared out."""
    if u.tp == 1:
        return x
    return _pair(_scatter("tp", 1), _gather("tp", 1))(x) if u.sp else total(x, u)


def total(x, u):
    return x if u.tp == 1 else _pair(lambda x: jax.lax.psum(x, "tp"), lambda g: g)(x)


# Layers

SCALE = 16.0  # of what becomes fp8, both ways: a number of a history, which costs what this one does


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _product8(form, dtype, a, b):
    return _narrow(form, dtype, a, b)


def _narrow(form, dtype, a, b):
    """Operands scaled and rounded to fp8, their product scaled back."""
    a, b = ((t * SCALE).astype(dtype) if t.dtype != dtype else t for t in (a, b))
    return (jnp.einsum(form, a, b, preferred_element_type=jnp.float32) * (1 / SCALE**2)).astype(jnp.bfloat16)


def _product8_forward(form, dtype, a, b):
    kept = tuple((t * SCALE).astype(dtype) for t in (a, b))
    return _narrow(form, dtype, *kept), kept


def _product8_backward(form, dtype, kept, g):
    a, b = kept
    inputs, out = form.split("->")
    left, right = inputs.split(",")
    g = (g * SCALE).astype(dtype)
    return _narrow(f"{out},{right}->{left}", dtype, g, b), _narrow(f"{left},{out}->{right}", dtype, a, g)


_product8.defvjp(_product8_forward, _product8_backward)


def product(form, a, b, u):
    """Of activations and weights: what --precision=fp8 narrows. Scores, router and head stay as they are, as training libraries have it."""
    return _product8(form, jnp.dtype(u.fp8), a, b) if u.fp8 else jnp.einsum(form, a, b)


def norm(w, x, m, size=None):
    wide = x.astype(jnp.float32)
    scale = w(size or m.width)
    if m.norm == "layer":
        wide = wide - wide.mean(-1, keepdims=True)
    wide = wide * jax.lax.rsqrt((wide * wide).mean(-1, keepdims=True) + 1e-5)
    return (wide * scale + w(size or m.width)).astype(x.dtype) if m.norm == "layer" else (wide * scale).astype(x.dtype)


def dense(w, x, out, bias, u):
    y = product("bsi,io->bso", x, w(x.shape[-1], out), u)
    if u.lora:
        y = y + (x @ w(x.shape[-1], u.lora, adapter=True)) @ w(u.lora, out, adapter=True)
    return y + w(out) if bias else y


def together(w, x, parts, out, bias, u):
    """Several products of x with as many outputs, as one."""
    y = product("bsw,wpo->pbso", x, w(x.shape[-1], parts, out), u)
    if u.lora:
        low = jnp.einsum("bsw,wpr->bspr", x, w(x.shape[-1], parts, u.lora, adapter=True))
        y = y + jnp.einsum("bspr,pro->pbso", low, w(parts, u.lora, out, adapter=True))
    return y + w(parts, 1, 1, out) if bias else y


def joins(u):
    """Is a gated MLP's way up one product? Assumed of layers that cut activations by position: libraries that do so have layers of
    their own. They join queries, keys and values too; here these stay apart, as a model's text has them. Of the five ways to join
    that were tried, published steps (accuracy/steps.py) are told within 11.9 % with both joined, 12.0 with this, 12.1 with none."""
    return u.sp and u.tp > 1


def queries_keys_values(w, x, source, heads, kv, m, u):
    wanted = ((x, heads), (source, kv), (source, kv))
    return [dense(w, t, n * m.head, m.bias if m.qkv_bias is None else m.qkv_bias, u).reshape(*t.shape[:2], n, m.head) for t, n in wanted]


@functools.lru_cache(8)
def _angles(at, half):
    angle = np.array(at)[:, None] / 10000 ** (np.arange(half) / half)
    return tuple(f(angle)[None, :, None].astype(np.float32) for f in (np.cos, np.sin))


def rotate(x, at, size):
    """Rotary positions of x[batch, position, head, feature], of its first `size` features."""
    cos, sin = _angles(tuple(at), size // 2)
    a, b = jnp.split(x[..., :size].astype(jnp.float32), 2, -1)
    turned = [(a * cos - b * sin).astype(x.dtype), (b * cos + a * sin).astype(x.dtype)]
    return jnp.concatenate([*turned, x[..., size:]] if size < x.shape[-1] else turned, -1)



def distances(w, q, k, both, m, u):
    """A bias of scores [head, q, k] by how far positions are from each other, near ones each alone, far ones by the logarithm."""
    table, ahead = w(BUCKETS, m.heads // u.tp), jnp.arange(k)[None, :] - jnp.arange(q)[:, None]
    some = BUCKETS // 2 if both else BUCKETS
    far = jnp.abs(ahead) if both else jnp.maximum(-ahead, 0)
    near = some // 2
    late = near + (jnp.log(jnp.maximum(far, 1) / near) * ((some - near) / np.log(128 / near))).astype(jnp.int32)
    bucket = jnp.where(far < near, far, jnp.minimum(late, some - 1)) + (jnp.where(ahead > 0, some, 0) if both else 0)
    return jnp.einsum("qkb,bh->hqk", jax.nn.one_hot(bucket, BUCKETS, dtype=table.dtype), table)


def weigh(w, q, k, v, mask, m, u, bias=None):
    """Attention of q[b, q, head, feature] over k, v[b, k, kv head, feature]; heads of one kv head lie together. Plain: what the
    product makes, what autocast's softmax reads and makes, in fp32, and what dropout leaves are kept in HBM."""
    kept = jax.lax.optimization_barrier if u.attention == "plain" else lambda x: x
    b, s, heads, size = q.shape
    if heads == k.shape[2]:
        forms = "bqhd,bkhd->bhqk", "bhqk,bkhd->bqhd"
    else:
        q = q.reshape(b, s, k.shape[2], -1, size)
        forms = "bqhgd,bkhd->bhgqk", "bhgqk,bkhd->bqhgd"
    scores = kept(jnp.einsum(forms[0], q, k)).astype(jnp.float32) / np.float32(np.sqrt(size))
    if bias is not None:
        scores = scores + bias.astype(jnp.float32)
    if mask is not None:
        scores = jnp.where(mask, scores, np.float32(-np.inf))
    weights = jax.nn.softmax(kept(scores), axis=-1)
    weights = kept(w.drop(kept(weights) if u.attention == "plain" else weights.astype(q.dtype), m.score_dropout).astype(q.dtype))
    return jnp.einsum(forms[1], weights, v).reshape(b, s, heads * size)


def heads_here(m, u):
    """Heads of queries and of keys and values on a device; where devices are more than those of keys, some have the same."""
    return m.heads // u.tp, max(m.kv // u.tp, 1)


def attention(w, x, mask, m, u, source=None, at=None, bias=None):
    heads, kv = heads_here(m, u)
    x = x.astype(w.dtype)
    q, k, v = entered(x, u, lambda x: queries_keys_values(w, x, x if source is None else source, heads, kv, m, u))
    if m.qk_norm:
        q, k = (norm(w, t, m, m.head) for t in (q, k))
    if m.places == "rotary" and source is None:
        q, k = (rotate(t, at, int(m.head * m.rotary) // 2 * 2) for t in (q, k))
    if u.cp > 1:
        k, v = (_pair(_gather("cp", 1), _scatter("cp", 1))(t) for t in (k, v))
    key = None
    if w.key is not None:
        w.key, key = jax.random.split(w.key)

    def run(q, k, v, bias, key):
        return weigh(Weights([], w.dtype, key), q, k, v, mask, m, u, bias)

    y = (jax.checkpoint(run) if u.recompute == "selective" else run)(q, k, v, bias, key)
    return leave(dense(w, y, m.width, m.bias if m.out_bias is None else m.out_bias, u), u)


ACTS = {
    "gelu": jax.nn.gelu,
    "erf": lambda x: jax.nn.gelu(x, approximate=False),
    "relu": jax.nn.relu,
    "silu": jax.nn.silu,
}


def mlp(w, x, m, u):
    x = x.astype(w.dtype)
    if m.experts:
        return mixture(w, x, m, u)
    act, hidden = ACTS[m.act], m.hidden // u.tp
    if m.gated and joins(u):
        gate, up = entered(x, u, lambda x: together(w, x, 2, hidden, m.bias, u))
        x = act(gate) * up
    elif m.gated:
        gate, up = entered(x, u, lambda x: [dense(w, x, hidden, m.bias, u) for _ in range(2)])
        x = act(gate) * up
    else:
        x = act(entered(x, u, lambda x: dense(w, x, hidden, m.bias, u)))
    return leave(dense(w, x, m.width, m.bias, u), u)


def rows_at(x, at):
    """Rows of x; zeros where `at` is beyond its end."""
    return jnp.where((at < x.shape[0])[:, None], x[jnp.minimum(at, x.shape[0] - 1)], 0)


@functools.partial(jax.custom_vjp, nondiff_argnums=(3,))
def moved(x, at, back, times):
    """Rows of x, each `times` times, to other places: at[i] is the copy that comes to i, back[j] where copy j goes. A move by
    index there and back: a scatter would add up what never meets."""
    return rows_at(x, at // times)


moved.defvjp(
    lambda x, at, back, times: (moved(x, at, back, times), back),
    lambda times, back, g: (rows_at(g, back).reshape(-1, times, g.shape[-1]).sum(1), None, None),
)


def mixture(w, x, m, u):
    """So many experts for each token; each has room for its even share and a quarter more, what finds no place is left out."""
    x = enter(x, u)
    b, s, d = x.shape
    tokens, n = x.reshape(b * s, d), b * s
    room = -(-5 * m.chosen * n // (4 * m.experts))
    chance, pick = jax.lax.top_k(jax.nn.softmax((tokens @ w(d, m.experts)).astype(jnp.float32)), m.chosen)
    hot = jax.nn.one_hot(pick.reshape(-1), m.experts)
    place = (jnp.cumsum(hot, 0) * hot).sum(-1).astype(jnp.int32) - 1
    places = m.experts * room
    to = jnp.where(place < room, pick.reshape(-1) * room + place, places)
    of = jnp.full(places, n * m.chosen).at[to].set(jnp.arange(n * m.chosen), mode="drop")
    inside = moved(tokens, of, to, m.chosen).reshape(m.experts, room, d)
    here, hidden = m.experts // u.ep, m.hidden // u.tp
    swap = lambda a, b: _pair(
        lambda x: jax.lax.all_to_all(x, "ep", a, b, tiled=True), lambda g: jax.lax.all_to_all(g, "ep", b, a, tiled=True)
    )
    if u.ep > 1:
        inside = swap(0, 1)(inside)
    gate, up = (product("erd,edh->erh", inside, w(here, d, hidden, expert=True), u) for _ in range(2))
    inside = product("erh,ehd->erd", ACTS[m.act](gate) * up, w(here, hidden, d, expert=True), u)
    if u.ep > 1:
        inside = swap(1, 0)(inside)
    out = moved(inside.reshape(places, d), to, of, 1).reshape(n, m.chosen, d)
    return leave((out * chance.astype(x.dtype)[..., None]).sum(1).reshape(b, s, d), u)


def block(w, x, mask, m, u, at=None, source=None, bias=None):
    drop = lambda x: w.drop(x, m.dropout)
    if m.post:
        x = norm(w, x + drop(attention(w, x, mask, m, u, at=at)), m)
        return norm(w, x + drop(mlp(w, x, m, u)), m)
    if m.parallel:
        return x + drop(attention(w, norm(w, x, m), mask, m, u, at=at)) + drop(mlp(w, norm(w, x, m), m, u))
    x = x + drop(attention(w, norm(w, x, m), mask, m, u, at=at, bias=bias))
    if source is not None:
        x = x + drop(attention(w, norm(w, x, m), None, m, u, enter(source, u)))
    return x + drop(mlp(w, norm(w, x, m), m, u))


def places_here(u):
    """Positions of a device: all, or of context-parallel ones the first and the last piece, whose causal work is the mean."""
    if u.cp == 1:
        return np.arange(u.seq)
    half = u.seq // (2 * u.cp)
    return np.concatenate([np.arange(half), np.arange(u.seq - half, u.seq)])


def causal(at, seq, window):
    """Computed by the program: a table of seq x seq would be most of its text."""
    ahead = (at[0] + jnp.arange(len(at)) if (np.diff(at) == 1).all() else jnp.asarray(at))[:, None] - jnp.arange(seq)[None, :]
    return (ahead >= 0) & (ahead < window) if window else ahead >= 0


def layers(w, x, n, m, u, lengths=None):
    at = places_here(u)
    if m.task == "lm":
        mask = causal(at, u.seq, m.window if m.window < u.seq else 0)
        if u.attention != "flash":
            mask = mask | jnp.isnan(jax.lax.stop_gradient(x[0, 0, 0]))  # never, but only the run knows
    else:
        mask = None if lengths is None else (jnp.arange(u.seq) < lengths[:, None])[:, None, None, :]
    return w.layers(n, lambda w, x: block(w, x, mask, m, u, at), x, u.recompute == "full")


# Ends of a model


def table_of(w, m, u):
    return w(-(-m.vocab // u.tp), m.width)


def look_up(table, tokens, u):
    if u.tp == 1:
        return table[tokens]
    here = tokens - jax.lax.axis_index("tp") * table.shape[0]
    ours = (here >= 0) & (here < table.shape[0])
    return leave(jnp.where(ours[..., None], table[jnp.where(ours, here, 0)], 0), u)


def cross_entropy(logits, targets, u):
    """Mean over positions; each device has the logits of its part of the words."""
    logits = logits.astype(jnp.float32)
    most = jax.lax.stop_gradient(logits).max(-1, keepdims=True)
    if u.tp > 1:
        most = jax.lax.stop_gradient(jax.lax.pmax(most, "tp"))
        targets = targets - jax.lax.axis_index("tp") * logits.shape[-1]
    ours = (targets >= 0) & (targets < logits.shape[-1])
    right = jnp.take_along_axis(logits, jnp.where(ours, targets, 0)[..., None], -1)[..., 0]
    right = jnp.where(ours, right, 0) if u.tp > 1 else right
    sums = jnp.log(total(jnp.exp(logits - most).sum(-1), u))
    return (sums + most[..., 0] - total(right, u)).mean()


def stream(x, u):
    """What layers add to. Automatic casting narrows what products take, and what they make; a sum with fp32 is fp32."""
    return x.astype(jnp.float32) if u.wide else x


def begin(w, m, u, tokens, kinds=None):
    """Tokens to activations; the table with them, which a tied head needs."""
    table = table_of(w, m, u)
    x = stream(look_up(table, tokens, u), u)
    if m.places == "learned":
        places = w(m.positions, m.width)[: u.seq // u.cp]
        if u.sp and u.tp > 1:
            n = places.shape[0] // u.tp
            places = jax.lax.dynamic_slice_in_dim(places, jax.lax.axis_index("tp") * n, n)
        x = x + places
    if kinds is not None:
        kind = w(2, m.width)[kinds]
        x = norm(w, x + kind, m)
    return w.drop(x, m.dropout), table


def end(w, x, targets, m, u, table=None):
    """Activations to the loss of a language model."""
    x = enter(norm(w, x, m).astype(w.dtype), u)
    return cross_entropy(x @ (table_of(w, m, u) if table is None else table).T, targets, u)


def language(w, tokens, targets, n, m, u):
    x, table = begin(w, m, u, tokens)
    return end(w, layers(w, x, n, m, u), targets, m, u, table if m.tied else None)


def masked_language(w, tokens, kinds, lengths, targets, follows, n, m, u):
    x, table = begin(w, m, u, tokens, kinds)
    return masked_end(w, layers(w, x, n, m, u, lengths), targets, follows, m, u, table)


def masked_end(w, x, targets, follows, m, u, table=None):
    """Activations to the loss of masked words and of what follows."""
    x = x.astype(w.dtype)
    pooled = jnp.tanh(x[:, 0] @ w(m.width, m.width) + w(m.width))
    one = dataclasses.replace(u, tp=1)
    loss = cross_entropy(pooled @ w(m.width, 2) + w(2), follows, one)
    h = norm(w, ACTS[m.act](x @ w(m.width, m.width) + w(m.width)), m).astype(w.dtype)
    table = table_of(w, m, u) if table is None else table
    return loss + cross_entropy(enter(h, u) @ table.T + w(table.shape[0]), targets, u)


def patches(w, images, m, u):
    """Pictures to activations."""
    b, side, p = images.shape[0], m.image // m.patch, m.patch
    x = images.reshape(b, side, p, side, p, 3).transpose(0, 1, 3, 2, 4, 5).reshape(b, side * side, p * p * 3)
    x = x.astype(w.dtype) @ w(p * p * 3, m.width) + w(m.width)
    return stream(jnp.concatenate([jnp.broadcast_to(w(m.width), (b, 1, m.width)), x], 1), u) + w(side * side + 1, m.width)


def classes_end(w, x, labels, m, u):
    return cross_entropy(norm(w, x, m)[:, 0].astype(w.dtype) @ w(m.width, m.classes) + w(m.classes), labels, dataclasses.replace(u, tp=1))


def pictures(w, images, labels, n, m, u):
    return classes_end(w, layers(w, patches(w, images, m, u), n, m, u), labels, m, u)


def span(w, tokens, wanted, targets, n, m, u):
    """Encoder and decoder with n layers each."""
    table = table_of(w, m, u)
    x = read(w, stream(look_up(table, tokens, u), u), n, m, u)
    y = write(w, stream(look_up(table, wanted, u), u), norm(w, x, m), n, m, u)
    return end(w, y, targets, m, u, table if m.tied else None)


def read(w, x, n, m, u):
    """Layers of an encoder; positions are a bias on scores, one for all of them."""
    near = distances(w, x.shape[1], x.shape[1], True, m, u)
    layer = lambda w, x: (block(w, x[0], None, m, u, bias=x[1]), x[1])
    return w.layers(n, layer, (x, near), u.recompute == "full")[0]


def write(w, y, x, n, m, u):
    """Layers of a decoder, each of which looks at x, what the encoder made."""
    mask, near = causal(np.arange(y.shape[1]), y.shape[1], 0), distances(w, y.shape[1], y.shape[1], False, m, u)
    layer = lambda w, y: (block(w, y[0], mask, m, u, source=y[1], bias=y[2]), y[1], y[2])
    return w.layers(n, layer, (y, x.astype(w.dtype), near), u.recompute == "full")[0]


def handed_on(kind, m, u, dtype):
    """What a stage hands on to the next: a decoder's what the encoder made, too."""
    dtype = jnp.float32 if u.wide else dtype
    like = lambda tokens: jax.ShapeDtypeStruct((u.batch, tokens // u.cp // (u.tp if u.sp else 1), m.width), dtype)
    x = like(tokens_of(m, u.seq))
    return (like(wanted(u.seq)), x) if kind in ("turn", "write") else x


def _span_stage(kind, n, m, u, dtype, tokens, made):
    """piece() of a stage of a pipeline over encoder and decoder."""
    x, both = (handed_on(k, m, u, dtype) for k in ("middle", "write"))
    if kind == "first":
        return lambda w, tokens: read(w, stream(look_up(table_of(w, m, u), tokens, u), u), n, m, u), [tokens], False, False
    if kind == "middle":
        return lambda w, x: read(w, x, n, m, u), [x], True, False
    if kind == "write":
        return lambda w, both: (write(w, *both, n, m, u), both[1]), [both], True, False
    if kind == "last":
        return lambda w, both, targets: end(w, write(w, *both, n, m, u), targets, m, u), [both, made], True, True

    def turn(w, x, tokens, targets=None):
        x, table = norm(w, x, m), table_of(w, m, u)
        y = write(w, stream(look_up(table, tokens, u), u), x, n, m, u)
        return (y, x) if targets is None else end(w, y, targets, m, u, table if m.tied else None)

    return (turn, [x, made], True, False) if kind == "turn" else (turn, [x, made, made], True, True)


def _stage(kind, n, m, u, x, tokens, each, images):
    """piece() of a pipeline's first, middle or last stage."""
    more = [each] if m.task == "mlm" else []  # lengths, which every layer masks by
    if kind == "middle":
        return lambda w, x, *lengths: layers(w, x, n, m, u, *lengths), [x, *more], True, False
    if kind == "first" and m.task == "classes":
        return lambda w, images: layers(w, patches(w, images, m, u), n, m, u), [images], False, False
    if kind == "first":
        kinds = [tokens] if m.task == "mlm" else []
        return lambda w, t, *b: layers(w, begin(w, m, u, t, *b[:-1])[0], n, m, u, *b[-1:]), [tokens, *kinds, *more], False, False
    if m.task == "mlm":
        return lambda w, x, lengths, t, f: masked_end(w, layers(w, x, n, m, u, lengths), t, f, m, u), [x, each, tokens, each], True, True
    if m.task == "classes":
        return lambda w, x, labels: classes_end(w, layers(w, x, n, m, u), labels, m, u), [x, each], True, True
    return lambda w, x, t: end(w, layers(w, x, n, m, u), t, m, u), [x, tokens], True, True


def piece(kind, n, m, u, dtype):
    """(function of weights and inputs, shapes of the inputs, does its first input have a gradient, is its result a loss).

    kind: whole, or a stage of a pipeline: first, middle, last; of a decoder, turn, write, last, or all of it: second. n: its layers.
    """
    seq = u.seq // u.cp
    whole = lambda *shape: jax.ShapeDtypeStruct(shape, jnp.int32)
    tokens, each = whole(u.batch, seq), whole(u.batch)
    images = jax.ShapeDtypeStruct((u.batch, m.image, m.image, 3), jnp.float32)
    of = lambda f: lambda w, *b: f(w, *b, n, m, u)
    made = whole(u.batch, wanted(seq))
    if kind != "whole" and m.task == "span":
        return _span_stage(kind, n, m, u, dtype, tokens, made)
    if kind != "whole":
        return _stage(kind, n, m, u, handed_on(kind, m, u, dtype), tokens, each, images)
    if m.task == "mlm":
        return of(masked_language), [tokens, tokens, each, tokens, each], False, True
    if m.task == "classes":
        return of(pictures), [images, each], False, True
    if m.task == "span":
        return of(span), [tokens, made, made], False, True
    return of(language), [tokens, tokens], False, True
