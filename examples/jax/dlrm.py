# SPDX-License-Identifier: Apache-2.0
"""Trains a recommender in the manner of DLRM on generated clicks.

    python examples/jax/dlrm.py                  to a loss below 0.6 (a constant guess has 0.69)
    python examples/jax/dlrm.py --platform=cpu   the same on JAX's CPU

Dense features pass a small network, each categorical feature looks up a row of its table, all pairs of the resulting vectors
are multiplied, and a second network makes the chance of a click out of the products. Clicks are drawn from hidden vectors of
the same kind, so there is something to find; what they draw by chance nobody can.
"""

import sys

import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

import common
import opentrn

GOAL = 0.6
DENSE = 8  # dense features


class Network(nnx.Module):
    def __init__(self, widths, rngs):
        self.layers = nnx.List([nnx.Linear(a, b, rngs=rngs) for a, b in zip(widths, widths[1:])])

    def __call__(self, x):
        for layer in self.layers[:-1]:
            x = nnx.relu(layer(x))
        return self.layers[-1](x)


class DLRM(nnx.Module):
    def __init__(self, tables, rows, width, rngs):
        pairs = (tables + 1) * tables // 2
        self.bottom = Network([DENSE, 64, width], rngs)
        self.tables = nnx.List([nnx.Embed(rows, width, rngs=rngs) for _ in range(tables)])
        self.top = Network([width + pairs, 64, 32, 1], rngs)

    def __call__(self, dense, picks):
        x = self.bottom(dense)
        vectors = jnp.stack([x] + [t(picks[:, i]) for i, t in enumerate(self.tables)], 1)
        products = jnp.einsum("bid,bjd->bij", vectors, vectors)
        i, j = np.triu_indices(vectors.shape[1], 1)
        return self.top(jnp.concatenate([x, products[:, i, j]], 1))[:, 0]


def loss_fn(model, dense, picks, clicks):
    return optax.sigmoid_binary_cross_entropy(model(dense, picks), clicks).mean()


@nnx.jit
def train_step(model, optimizer, dense, picks, clicks):
    loss, grads = nnx.value_and_grad(loss_fn)(model, dense, picks, clicks)
    optimizer.update(model, grads)
    return loss


class Clicks:
    """Users who click when their hidden vectors agree."""

    def __init__(self, tables, rows, rng):
        self.rng, self.rows = rng, rows
        self.hidden = rng.standard_normal((tables, rows, 4)) / 2
        self.weights = rng.standard_normal((DENSE, 4)) / 2

    def batch(self, size):
        rng, tables = self.rng, len(self.hidden)
        dense = rng.standard_normal((size, DENSE))
        # few rows are popular, most are rare
        picks = (self.rows * rng.random((size, tables)) ** 3).astype(np.int32)
        taste = dense @ self.weights + self.hidden[np.arange(tables), picks].sum(1)
        chance = 1 / (1 + np.exp(-(taste[:, 0] * taste[:, 1] + taste[:, 2])))
        clicks = rng.random(size) < chance
        return dense.astype(np.float32), picks, clicks.astype(np.float32)


def train(steps=600, batch=1024, tables=8, rows=1000, width=16, out=None):
    clicks = Clicks(tables, rows, np.random.default_rng(common.SEED))
    model = DLRM(tables, rows, width, nnx.Rngs(common.SEED))
    optimizer = nnx.Optimizer(model, optax.adam(3e-3), wrt=nnx.Param)
    name = f"DLRM, {common.parameters(model) / 1e6:.2f} M parameters, {batch} samples a step"
    with opentrn.training(name, steps, samples=batch, goal=GOAL, out=out) as run:
        for _ in range(steps):
            run.step(train_step(model, optimizer, *clicks.batch(batch)))
    return run


if __name__ == "__main__":
    args = common.arguments(__doc__, steps=600, batch=1024, tables=8, rows=1000, width=16)
    run = train(args.steps, args.batch, args.tables, args.rows, args.width)
    sys.exit(not run.reached)
