# SPDX-License-Identifier: Apache-2.0
"""Transformers by configuration: GPT-2, GPT-NeoX, Llama, BERT, ViT and their kin, in one text.

Statistics of norms, softmax and losses are fp32, everything else has the type of the weights (weights.py).
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax


@dataclasses.dataclass(frozen=True)
class Config:
    layers: int = 12
    width: int = 768
    heads: int = 12
    kv: int = 0  # heads of keys and values; 0: as many as queries
    hidden: int = 0  # 0: four times the width
    vocab: int = 50257
    seq: int = 1024
    batch: int = 1
    norm: str = "layer"  # or rms
    act: str = "gelu"  # gelu (tanh), erf (exact), relu, swiglu
    places: str = "learned"  # or rotary, none
    task: str = "lm"  # lm, mlm (every position, and whether two sentences follow), classes (pictures in patches of 16)
    classes: int = 1000
    post: bool = False  # norms behind the sums, as BERT has them
    parallel: bool = False  # attention and MLP side by side, as GPT-NeoX has them
    bias: bool = True
    fused: bool = False  # one product for queries, keys and values, one for a gated MLP's way up, as tensor-parallel models have them
    tied: bool = True  # the head is the table of tokens
    dropout: int = 0  # percent
    experts: int = 0  # a mixture, two for each token
    window: int = 0  # keys that a query sees; 0: all before it
    scan: bool = False
    remat: str = "none"  # full: layers are computed again; attention: only scores and weights


def norm(w, x, c):
    wide = x.astype(jnp.float32)
    scale = w(c.width)
    if c.norm == "layer":
        wide = wide - wide.mean(-1, keepdims=True)
    wide = wide * jax.lax.rsqrt((wide * wide).mean(-1, keepdims=True) + 1e-5)
    return (wide * scale + w(c.width)).astype(x.dtype) if c.norm == "layer" else (wide * scale).astype(x.dtype)


def dense(w, x, c, out):
    y = x @ w(x.shape[-1], out)
    return y + w(out) if c.bias else y


def together(w, x, c, parts, out):
    """Several products of x with as many outputs, as one."""
    y = jnp.einsum("bsw,wpo->pbso", x, w(x.shape[-1], parts, out))
    return y + w(parts, 1, 1, out) if c.bias else y


def rotate(x):
    """Rotary positions of x[batch, position, head, feature]."""
    half = x.shape[-1] // 2
    angle = np.arange(x.shape[1])[:, None] / 10000 ** (np.arange(half) / half)
    cos, sin = (f(angle)[None, :, None].astype(np.float32) for f in (np.cos, np.sin))
    a, b = jnp.split(x.astype(jnp.float32), 2, -1)
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1).astype(x.dtype)


def weigh(w, q, k, v, mask, c):
    """Attention of q[b, q, head, feature] over k, v[b, k, kv head, feature]; heads of one kv head lie together."""
    b, s, heads, size = q.shape
    if heads == k.shape[2]:
        forms = "bqhd,bkhd->bhqk", "bhqk,bkhd->bqhd"
    else:
        q = q.reshape(b, s, k.shape[2], -1, size)
        forms = "bqhgd,bkhd->bhgqk", "bhgqk,bkhd->bqhgd"
    scores = jnp.einsum(forms[0], q, k).astype(jnp.float32) / np.float32(np.sqrt(size))
    if mask is not None:
        scores = jnp.where(mask, scores, np.float32(-np.inf))
    weights = w.drop(jax.nn.softmax(scores, axis=-1).astype(q.dtype), c.dropout)
    return jnp.einsum(forms[1], weights, v).reshape(b, s, heads * size)


def attention(w, x, mask, c, source=None):
    b, s, _ = x.shape
    kv, size = c.kv or c.heads, c.width // c.heads
    source = x if source is None else source
    if c.fused and kv == c.heads and source is x:
        q, k, v = together(w, x, c, 3, c.width).reshape(3, b, s, c.heads, size)
    else:
        q = dense(w, x, c, c.heads * size).reshape(b, s, c.heads, size)
        k, v = (dense(w, source, c, kv * size).reshape(b, source.shape[1], kv, size) for _ in range(2))
    if c.places == "rotary":
        q, k = rotate(q), rotate(k)
    run = lambda *args: weigh(w, *args, c)
    run = jax.checkpoint(run) if c.remat == "attention" and not c.dropout else run
    return dense(w, run(q, k, v, mask), c, c.width)


def mlp(w, x, c):
    hidden = c.hidden or 4 * c.width
    if c.experts:
        return mixture(w, x, c, hidden)
    if c.act == "swiglu" and c.fused:
        gate, up = together(w, x, c, 2, hidden)
        return dense(w, jax.nn.silu(gate) * up, c, c.width)
    if c.act == "swiglu":
        return dense(w, jax.nn.silu(dense(w, x, c, hidden)) * dense(w, x, c, hidden), c, c.width)
    act = {"gelu": jax.nn.gelu, "erf": lambda x: jax.nn.gelu(x, approximate=False), "relu": jax.nn.relu}[c.act]
    return dense(w, act(dense(w, x, c, hidden)), c, c.width)


def mixture(w, x, c, hidden):
    """Two experts for each token, places in each as many as twice the even share; what finds no place is left out."""
    b, s, d = x.shape
    tokens = x.reshape(b * s, d)
    room = 2 * 2 * b * s // c.experts
    chance, pick = jax.lax.top_k(jax.nn.softmax((tokens @ w(d, c.experts)).astype(jnp.float32)), 2)
    chosen = jax.nn.one_hot(pick, c.experts)
    place = (jnp.cumsum(chosen.reshape(-1, c.experts), 0).reshape(chosen.shape) - 1) * chosen
    place = jax.nn.one_hot(place.sum(-1), room) * (place.max(-1) < room)[..., None]
    send = jnp.einsum("tke,tkr->ter", chosen, place).astype(x.dtype)
    back = jnp.einsum("tk,tke,tkr->ter", chance, chosen, place).astype(x.dtype)
    inside = jnp.einsum("td,ter->erd", tokens, send)
    inside = jax.nn.silu(jnp.einsum("erd,edh->erh", inside, w(c.experts, d, hidden))) * jnp.einsum(
        "erd,edh->erh", inside, w(c.experts, d, hidden)
    )
    inside = jnp.einsum("erh,ehd->erd", inside, w(c.experts, hidden, d))
    return jnp.einsum("erd,ter->td", inside, back).reshape(x.shape)


def block(w, x, mask, c):
    drop = lambda x: w.drop(x, c.dropout)
    if c.post:
        x = norm(w, x + drop(attention(w, x, mask, c)), c)
        return norm(w, x + drop(mlp(w, x, c)), c)
    if c.parallel:
        return x + drop(attention(w, norm(w, x, c), mask, c)) + drop(mlp(w, norm(w, x, c), c))
    x = x + drop(attention(w, norm(w, x, c), mask, c))
    return x + drop(mlp(w, norm(w, x, c), c))


def layers(w, x, mask, c):
    return w.stack(c.layers, lambda w, x: block(w, x, mask, c), x, scan=c.scan, remat=c.remat == "full")


def causal(seq, window=0):
    at = np.arange(seq)
    mask = at[:, None] >= at[None, :]
    return jnp.asarray(mask & (at[:, None] - at[None, :] < window) if window else mask)


def cross_entropy(logits, targets):
    return optax.softmax_cross_entropy_with_integer_labels(logits.astype(jnp.float32), targets).mean()


def language(w, tokens, targets, c):
    table = w(c.vocab, c.width)
    x = table[tokens]
    if c.places == "learned":
        x = x + w(c.seq, c.width)
    x = layers(w, w.drop(x, c.dropout), causal(c.seq, c.window), c)
    x = norm(w, x, c)
    return cross_entropy(x @ (table.T if c.tied else w(c.width, c.vocab)), targets)


def masked_language(w, tokens, kinds, lengths, targets, follows, c):
    table = w(c.vocab, c.width)
    x = norm(w, table[tokens] + w(512, c.width)[: c.seq] + w(2, c.width)[kinds], c)
    mask = (jnp.arange(c.seq) < lengths[:, None])[:, None, None, :]
    x = layers(w, w.drop(x, c.dropout), mask, c)
    pooled = jnp.tanh(dense(w, x[:, 0], c, c.width))
    loss = cross_entropy(dense(w, pooled, c, 2), follows)
    h = norm(w, jax.nn.gelu(dense(w, x, c, c.width), approximate=False), c)
    return loss + cross_entropy(h @ table.T + w(c.vocab), targets)


def pictures(w, images, labels, c):
    b, side = images.shape[0], images.shape[1] // 16
    x = images.reshape(b, side, 16, side, 16, 3).transpose(0, 1, 3, 2, 4, 5).reshape(b, side * side, 768)
    x = dense(w, x.astype(w.dtype), c, c.width)
    x = jnp.concatenate([jnp.broadcast_to(w(c.width), (b, 1, c.width)), x], 1) + w(side * side + 1, c.width)
    x = norm(w, layers(w, x, None, c), c)
    return cross_entropy(dense(w, x[:, 0], c, c.classes), labels)


def model(c):
    """A model of weights.py and its batch."""
    whole = lambda *shape: jax.ShapeDtypeStruct(shape, jnp.int32)
    tokens = whole(c.batch, c.seq)
    if c.task == "mlm":
        return (lambda w, *batch: masked_language(w, *batch, c)), [tokens, tokens, whole(c.batch), tokens, whole(c.batch)]
    if c.task == "classes":
        images = jax.ShapeDtypeStruct((c.batch, c.seq, c.seq, 3), jnp.float32)  # seq: side of a picture
        return (lambda w, *batch: pictures(w, *batch, c)), [images, whole(c.batch)]
    return (lambda w, *batch: language(w, *batch, c)), [tokens, tokens]
