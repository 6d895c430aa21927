# SPDX-License-Identifier: Apache-2.0
"""Exports one training step of a vision transformer (ViT-S/16 at 224 by default): forward, backward, AdamW.

    python examples/jax/export_vit.py --out=build/vit --batch=16 --no-inputs
    build/otrn prof build/vit/vit.mlir

Patches are cut by a reshape, so that their embedding is a matrix product. --dtype=bf16 is mixed precision, as in
export_gpt2.py, and so is --dropout=10. Weights come from a seed; --cpu writes what JAX's CPU gives as vit_out_000.npy, …, the loss last.
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
        "norm1": norm(),
        "qkv": dense(o.width, 3 * o.width),
        "out": dense(o.width, o.width),
        "norm2": norm(),
        "up": dense(o.width, 4 * o.width),
        "down": dense(4 * o.width, o.width),
    }
    return {
        "patch": dense(3 * o.patch * o.patch, o.width),
        "first": normal(1, 1, o.width),
        "places": normal(1, (o.image // o.patch) ** 2 + 1, o.width),
        "layers": [layer() for _ in range(o.layers)],
        "norm": norm(),
        "head": dense(o.width, o.classes),
    }


def layer_norm(p, x):
    wide = x.astype(jnp.float32)
    mean = wide.mean(-1, keepdims=True)
    variance = ((wide - mean) ** 2).mean(-1, keepdims=True)
    return ((wide - mean) * jax.lax.rsqrt(variance + 1e-6) * p["g"] + p["b"]).astype(x.dtype)


def linear(p, x):
    return x @ p["w"] + p["b"]


def attention(p, x, heads, drop):
    b, s, d = x.shape
    q, k, v = jnp.moveaxis(linear(p["qkv"], x).reshape(b, s, 3, heads, d // heads), 2, 0)
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(jnp.float32) / np.float32(
        np.sqrt(d // heads)
    )
    weights = drop(jax.nn.softmax(scores, axis=-1).astype(x.dtype))
    return linear(p["out"], jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(b, s, d))


def loss_fn(params, images, labels, o, dtype, drop):
    params = jax.tree.map(lambda p: p.astype(dtype), params)
    n = o.image // o.patch
    x = images.astype(dtype).reshape(-1, n, o.patch, n, o.patch, 3)
    x = x.transpose(0, 1, 3, 2, 4, 5).reshape(-1, n * n, 3 * o.patch * o.patch)
    x = linear(params["patch"], x)
    first = jnp.broadcast_to(params["first"], (x.shape[0], 1, o.width))
    x = drop(jnp.concatenate([first, x], axis=1) + params["places"])
    for p in export_common.layers(params["layers"]):
        x = x + drop(attention(p, layer_norm(p["norm1"], x), o.heads, drop))
        h = jax.nn.gelu(linear(p["up"], layer_norm(p["norm2"], x)), approximate=False)
        x = x + drop(linear(p["down"], drop(h)))
    logits = linear(params["head"], layer_norm(params["norm"], x)[:, 0]).astype(jnp.float32)
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def main():
    sizes = dict(
        batch=16, image=224, patch=16, layers=12, width=384, heads=6, classes=1000, seed=0, dropout=0
    )
    o, dtype = export_common.options(__doc__, "vit", sizes)
    rng = np.random.default_rng(o.seed)
    params = init(rng, o)
    optimizer = optax.adamw(1e-3, weight_decay=0.05)
    images = rng.standard_normal((o.batch, o.image, o.image, 3)).astype(np.float32)
    labels = rng.integers(0, o.classes, o.batch, dtype=np.int32)
    args = params, optimizer.init(params), images, labels, *export_common.dropout_key(o)

    def step(params, state, images, labels, *key):
        drop = export_common.dropout_of(o, key)
        loss, grads = jax.value_and_grad(loss_fn)(params, images, labels, o, dtype, drop)
        with jax.named_scope("optimizer"):
            updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, loss

    export_common.export(step, args, o.out, "vit", (0, 1), inputs=not o.no_inputs, cpu=o.cpu)


if __name__ == "__main__":
    main()
