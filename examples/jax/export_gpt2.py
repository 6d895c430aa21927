# SPDX-License-Identifier: Apache-2.0
"""Exports one training step of GPT-2 (124M by default): forward, backward, clipping, AdamW.

    python examples/jax/export_gpt2.py --out=build/gpt2 --batch=1 --seq=1024
    build/otrn compile build/gpt2/gpt2.mlir --stats

Layers are unrolled, so the program has a line for every operation of every layer. Weights come from
a seed; --no-inputs leaves the files with them out (three times 500 MB at full size), --cpu
writes what JAX's CPU gives as gpt2_out_000.npy, …, the loss last. --dtype=bf16 is mixed precision: the
optimizer keeps weights in fp32, products and the residual stream are bf16, statistics and loss fp32. --dropout=10
drops a tenth of embeddings, attention weights and what is added to the residual stream; its key is the last argument.
"""

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")
import jax
import jax.numpy as jnp
import numpy as np
import optax

import export_common


def init(rng, o):
    normal = lambda *shape, std=0.02: (std * rng.standard_normal(shape)).astype(np.float32)
    dense = lambda a, b, std=0.02: {"w": normal(a, b, std=std), "b": np.zeros(b, np.float32)}
    norm = lambda: {"g": np.ones(o.width, np.float32), "b": np.zeros(o.width, np.float32)}
    out = 0.02 / np.sqrt(2 * o.layers)  # GPT-2 scales what is added to the residual stream
    layer = lambda: {
        "ln1": norm(),
        "qkv": dense(o.width, 3 * o.width),
        "proj": dense(o.width, o.width, out),
        "ln2": norm(),
        "up": dense(o.width, 4 * o.width),
        "down": dense(4 * o.width, o.width, out),
    }
    return {
        "wte": normal(o.vocab, o.width),
        "wpe": normal(o.seq, o.width, std=0.01),
        "layers": [layer() for _ in range(o.layers)],
        "ln": norm(),
    }


def layer_norm(p, x):
    wide = x.astype(jnp.float32)
    centred = wide - wide.mean(-1, keepdims=True)
    normal = centred * jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)
    return (normal * p["g"] + p["b"]).astype(x.dtype)


def attention(p, x, heads, drop):
    b, s, d = x.shape
    q, k, v = (
        t.reshape(b, s, heads, d // heads).transpose(0, 2, 1, 3)
        for t in jnp.split(x @ p["qkv"]["w"] + p["qkv"]["b"], 3, axis=-1)
    )
    scores = (q @ k.transpose(0, 1, 3, 2)).astype(jnp.float32) / np.float32(np.sqrt(d // heads))
    scores = jnp.where(jnp.tril(jnp.ones((s, s), bool)), scores, np.float32(-np.inf))
    weights = drop(jax.nn.softmax(scores, axis=-1).astype(x.dtype))
    y = (weights @ v).transpose(0, 2, 1, 3).reshape(b, s, d)
    return y @ p["proj"]["w"] + p["proj"]["b"]


def loss_fn(params, tokens, targets, o, dtype, drop):
    params = jax.tree.map(lambda p: p.astype(dtype), params)
    x = drop(params["wte"][tokens] + params["wpe"])
    for p in export_common.layers(params["layers"]):
        x = x + drop(attention(p, layer_norm(p["ln1"], x), o.heads, drop))
        h = jax.nn.gelu(layer_norm(p["ln2"], x) @ p["up"]["w"] + p["up"]["b"], approximate=True)
        h = h @ p["down"]["w"]
        x = x + drop(h + p["down"]["b"]) if o.dropout else x + h + p["down"]["b"]
    logits = layer_norm(params["ln"], x) @ params["wte"].T
    logits = logits.astype(jnp.float32)
    return optax.softmax_cross_entropy_with_integer_labels(logits, targets).mean()


def main():
    sizes = dict(batch=1, seq=1024, layers=12, width=768, heads=12, vocab=50257, seed=0, dropout=0)
    o, dtype = export_common.options(__doc__, "gpt2", sizes)
    rng = np.random.default_rng(o.seed)
    params = init(rng, o)
    text = rng.integers(0, o.vocab, (o.batch, o.seq + 1), dtype=np.int32)
    optimizer = optax.adamw(3e-4, b2=0.95, weight_decay=0.1)
    args = params, optimizer.init(params), text[:, :-1], text[:, 1:], *export_common.dropout_key(o)

    def step(params, state, tokens, targets, *key):
        drop = export_common.dropout_of(o, key)
        loss, grads = jax.value_and_grad(loss_fn)(params, tokens, targets, o, dtype, drop)
        norm = jnp.sqrt(sum((g * g).sum() for g in jax.tree.leaves(grads)))
        grads = jax.tree.map(lambda g: g * jnp.minimum(1.0, 1.0 / norm), grads)
        with jax.named_scope("optimizer"):
            updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, loss

    export_common.export(step, args, o.out, "gpt2", (0, 1), inputs=not o.no_inputs, cpu=o.cpu)


if __name__ == "__main__":
    main()
