# SPDX-License-Identifier: Apache-2.0
"""Exports one fine-tuning step of BERT (large, 128 tokens by default): forward, backward, AdamW.

    python examples/jax/export_bert.py --out=build/bert --batch=8 --no-inputs
    build/otrn prof build/bert/bert.mlir

A classifier on the first token, padding masked by length. --dropout=10 drops a tenth wherever BERT does, see export_gpt2.py. --dtype=bf16 is mixed precision, as in
export_gpt2.py. Weights come from a seed; --cpu writes what JAX's CPU gives as bert_out_000.npy, …, the loss last.
"""

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")
import jax
import jax.numpy as jnp
import numpy as np
import optax

import export_common


def init(rng, o):
    normal = lambda *shape: (0.02 * rng.standard_normal(shape)).astype(np.float32)
    dense = lambda a, b: {"w": normal(a, b), "b": np.zeros(b, np.float32)}
    norm = lambda: {"g": np.ones(o.width, np.float32), "b": np.zeros(o.width, np.float32)}
    layer = lambda: {
        "q": dense(o.width, o.width),
        "k": dense(o.width, o.width),
        "v": dense(o.width, o.width),
        "out": dense(o.width, o.width),
        "norm1": norm(),
        "up": dense(o.width, 4 * o.width),
        "down": dense(4 * o.width, o.width),
        "norm2": norm(),
    }
    return {
        "words": normal(o.vocab, o.width),
        "places": normal(512, o.width),
        "kinds": normal(2, o.width),
        "norm": norm(),
        "layers": [layer() for _ in range(o.layers)],
        "pool": dense(o.width, o.width),
        "head": dense(o.width, o.classes),
    }


def layer_norm(p, x):
    wide = x.astype(jnp.float32)
    mean = wide.mean(-1, keepdims=True)
    variance = ((wide - mean) ** 2).mean(-1, keepdims=True)
    return ((wide - mean) * jax.lax.rsqrt(variance + 1e-12) * p["g"] + p["b"]).astype(x.dtype)


def linear(p, x):
    return x @ p["w"] + p["b"]


def attention(p, x, mask, heads, drop):
    b, s, d = x.shape
    split = lambda t: t.reshape(b, s, heads, d // heads)
    q, k, v = (split(linear(p[name], x)) for name in "qkv")
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(jnp.float32) / np.float32(
        np.sqrt(d // heads)
    )
    weights = drop(jax.nn.softmax(scores + mask, axis=-1).astype(x.dtype))
    return linear(p["out"], jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(b, s, d))


def loss_fn(params, tokens, kinds, lengths, labels, heads, dtype, drop):
    params = jax.tree.map(lambda p: p.astype(dtype), params)
    s = tokens.shape[1]
    x = params["words"][tokens] + params["places"][:s] + params["kinds"][kinds]
    x = drop(layer_norm(params["norm"], x))
    mask = jnp.where(jnp.arange(s) < lengths[:, None], np.float32(0), np.float32(-1e9))
    for p in export_common.layers(params["layers"]):
        x = layer_norm(p["norm1"], x + drop(attention(p, x, mask[:, None, None, :], heads, drop)))
        h = jax.nn.gelu(linear(p["up"], x), approximate=False)
        x = layer_norm(p["norm2"], x + drop(linear(p["down"], h)))
    logits = linear(params["head"], drop(jnp.tanh(linear(params["pool"], x[:, 0]))))
    logits = logits.astype(jnp.float32)
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def main():
    sizes = dict(batch=8, seq=128, layers=24, width=1024, heads=16, vocab=30522, classes=2, seed=0, dropout=0)
    o, dtype = export_common.options(__doc__, "bert", sizes)
    rng = np.random.default_rng(o.seed)
    params = init(rng, o)
    optimizer = optax.adamw(2e-5, weight_decay=0.01)
    shape = (o.batch, o.seq)
    args = (
        params,
        optimizer.init(params),
        rng.integers(0, o.vocab, shape, dtype=np.int32),
        rng.integers(0, 2, shape, dtype=np.int32),
        rng.integers(o.seq // 2, o.seq + 1, o.batch, dtype=np.int32),
        rng.integers(0, o.classes, o.batch, dtype=np.int32),
        *export_common.dropout_key(o),
    )

    def step(params, state, tokens, kinds, lengths, labels, *key):
        drop = export_common.dropout_of(o, key)
        batch = tokens, kinds, lengths, labels
        loss, grads = jax.value_and_grad(loss_fn)(params, *batch, o.heads, dtype, drop)
        with jax.named_scope("optimizer"):
            updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, loss

    export_common.export(step, args, o.out, "bert", (0, 1), inputs=not o.no_inputs, cpu=o.cpu)


if __name__ == "__main__":
    main()
