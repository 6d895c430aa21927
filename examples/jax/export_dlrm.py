# SPDX-License-Identifier: Apache-2.0
"""Exports one training step of a recommender like DLRM: forward, backward, AdamW or SGD.

    python examples/jax/export_dlrm.py --out=build/dlrm --batch=512
    build/otrn prof build/dlrm/dlrm.mlir

Dense features go through an MLP, categorical ones through embedding tables (--bag rows of each are summed
up); all pairs of the resulting vectors are multiplied, and a second MLP gives the click's probability.
--cpu runs the step on JAX's CPU and writes its results as dlrm_out_000.npy, …, the loss last.
"""

import argparse
import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")
import jax
import jax.numpy as jnp
import numpy as np
import optax

import export_common


def init(rng, o):
    def dense(a, b):
        std = np.sqrt(2 / (a + b))
        return {"w": (std * rng.standard_normal((a, b))).astype(np.float32), "b": np.zeros(b, np.float32)}

    def mlp(sizes):
        return [dense(a, b) for a, b in zip(sizes, sizes[1:])]

    table = lambda: (rng.uniform(-1, 1, (o.rows, o.width)) / np.sqrt(o.rows)).astype(np.float32)
    pairs = (o.tables + 1) * o.tables // 2
    return {
        "tables": [table() for _ in range(o.tables)],
        "bottom": mlp([o.dense, *o.bottom, o.width]),
        "top": mlp([pairs + o.width, *o.top, 1]),
    }


def mlp(layers, x, last):
    for i, p in enumerate(layers):
        x = x @ p["w"] + p["b"]
        x = jax.nn.relu(x) if i + 1 < len(layers) or last else x
    return x


def loss_fn(params, dense, sparse, clicks):
    x = mlp(params["bottom"], dense, last=True)
    bags = [t[sparse[:, i]].sum(1) for i, t in enumerate(params["tables"])]
    vectors = jnp.stack([x, *bags], axis=1)
    products = jnp.einsum("bik,bjk->bij", vectors, vectors)
    i, j = np.tril_indices(vectors.shape[1], -1)
    y = mlp(params["top"], jnp.concatenate([x, products[:, i, j]], axis=1), last=False)[:, 0]
    return optax.sigmoid_binary_cross_entropy(y, clicks).mean()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    sizes = lambda s: [int(n) for n in s.split(",")]
    for name, value in dict(batch=512, tables=26, rows=10000, width=64, dense=13, bag=1, seed=0).items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--bottom", type=sizes, default=[512, 256])
    parser.add_argument("--top", type=sizes, default=[512, 256])
    parser.add_argument("--optimizer", choices=("sgd", "adamw"), default="adamw")
    parser.add_argument("--out", default="build/dlrm")
    parser.add_argument("--no-inputs", action="store_true")
    parser.add_argument("--cpu", action="store_true")
    o = parser.parse_args()

    rng = np.random.default_rng(o.seed)
    params = init(rng, o)
    dense = rng.standard_normal((o.batch, o.dense)).astype(np.float32)
    sparse = rng.integers(0, o.rows, (o.batch, o.tables, o.bag), dtype=np.int32)
    clicks = rng.integers(0, 2, o.batch).astype(np.float32)
    optimizer = optax.sgd(0.1) if o.optimizer == "sgd" else optax.adamw(1e-3)

    def step(params, state, dense, sparse, clicks):
        loss, grads = jax.value_and_grad(loss_fn)(params, dense, sparse, clicks)
        with jax.named_scope("optimizer"):
            updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, loss

    args = params, optimizer.init(params), dense, sparse, clicks
    export_common.export(step, args, o.out, "dlrm", donate=(0, 1), inputs=not o.no_inputs, cpu=o.cpu)


if __name__ == "__main__":
    main()
