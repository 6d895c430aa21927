# SPDX-License-Identifier: Apache-2.0
"""Trains a transformer on long texts with blockwise attention: no matrix of all pairs of positions is ever made.

    python examples/jax/long_context.py                  one text of 2048 bytes a step, to a loss below 2.9
    python examples/jax/long_context.py --platform=cpu   the same on JAX's CPU

A block of queries meets the blocks of keys one after the other and carries the largest score, the sum of weights and the
weighted sum of values so far; what the backward pass needs of a block is computed again. Positions are rotations.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

import common
import opentrn

GOAL = 2.9


def rotated(x):
    """Rotary positions over x[batch, length, heads, features]."""
    half = x.shape[-1] // 2
    angles = jnp.arange(x.shape[1])[:, None] * 10000.0 ** (-jnp.arange(half) / half)
    sin, cos = jnp.sin(angles)[:, None], jnp.cos(angles)[:, None]
    a, b = x[..., :half], x[..., half:]
    return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], -1)


def blockwise_attention(q, k, v, block):
    """Causal attention over [batch, length, heads, features], in blocks of positions."""
    batch, length, heads, features = q.shape
    cut = lambda x: x.reshape(batch, length // block, block, heads, features).transpose(1, 0, 3, 2, 4)
    q, k, v = cut(q / np.sqrt(features)), cut(k), cut(v)
    places = jnp.arange(length).reshape(-1, block)

    def queries(_, at):
        query, rows = at

        @jax.checkpoint
        def keys(carry, at):
            most, total, out = carry
            key, value, columns = at
            scores = jnp.einsum("bhqd,bhkd->bhqk", query, key)
            scores = jnp.where(rows[:, None] >= columns[None, :], scores, -1e30)
            new = jnp.maximum(most, scores.max(-1))
            weights = jnp.exp(scores - new[..., None])
            old = jnp.exp(most - new)
            total = total * old + weights.sum(-1)
            out = out * old[..., None] + jnp.einsum("bhqk,bhkd->bhqd", weights, value)
            return (new, total, out), None

        begin = jnp.full(query.shape[:-1], -1e30), jnp.zeros(query.shape[:-1]), jnp.zeros_like(query)
        (_, total, out), _ = jax.lax.scan(keys, begin, (k, v, places))
        return None, out / total[..., None]

    _, out = jax.lax.scan(queries, None, (q, places))
    return out.transpose(1, 0, 3, 2, 4).reshape(batch, length, heads, features)


class Block(nnx.Module):
    def __init__(self, width, heads, block, rngs):
        self.heads, self.block = heads, block
        self.norm1 = nnx.RMSNorm(width, rngs=rngs)
        self.qkv = nnx.Linear(width, 3 * width, use_bias=False, rngs=rngs)
        self.out = nnx.Linear(width, width, use_bias=False, rngs=rngs)
        self.norm2 = nnx.RMSNorm(width, rngs=rngs)
        self.gate = nnx.Linear(width, 2 * width, use_bias=False, rngs=rngs)
        self.up = nnx.Linear(width, 2 * width, use_bias=False, rngs=rngs)
        self.down = nnx.Linear(2 * width, width, use_bias=False, rngs=rngs)

    def __call__(self, x):
        batch, length, width = x.shape
        qkv = self.qkv(self.norm1(x)).reshape(batch, length, 3, self.heads, width // self.heads)
        q, k, v = rotated(qkv[:, :, 0]), rotated(qkv[:, :, 1]), qkv[:, :, 2]
        x = x + self.out(blockwise_attention(q, k, v, self.block).reshape(x.shape))
        h = self.norm2(x)
        return x + self.down(nnx.silu(self.gate(h)) * self.up(h))


class Model(nnx.Module):
    def __init__(self, width, layers, heads, block, rngs):
        self.tokens = nnx.Embed(256, width, rngs=rngs)
        self.blocks = nnx.List([Block(width, heads, block, rngs) for _ in range(layers)])
        self.norm = nnx.RMSNorm(width, rngs=rngs)
        self.head = nnx.Linear(width, 256, use_bias=False, rngs=rngs)

    def __call__(self, tokens):
        x = self.tokens(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def loss_fn(model, tokens):
    losses = optax.softmax_cross_entropy_with_integer_labels(model(tokens[:, :-1]), tokens[:, 1:])
    return losses.mean()


@nnx.jit
def train_step(model, optimizer, tokens):
    loss, grads = nnx.value_and_grad(loss_fn)(model, tokens)
    optimizer.update(model, grads)
    return loss


def train(steps=60, length=2048, block=256, width=64, layers=2, heads=2, out=None):
    text, rng = common.prose(), np.random.default_rng(common.SEED)
    model = Model(width, layers, heads, block, nnx.Rngs(common.SEED))
    schedule = optax.warmup_cosine_decay_schedule(0.0, 6e-3, steps // 10, steps)
    rule = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule))
    optimizer = nnx.Optimizer(model, rule, wrt=nnx.Param)
    size = f"{common.parameters(model) / 1e6:.2f} M parameters"
    name = f"long context, {size}, {length} bytes a step in blocks of {block}"
    with opentrn.training(name, steps, tokens=length, goal=GOAL, out=out) as run:
        for _ in range(steps):
            run.step(train_step(model, optimizer, common.windows(text, 1, length + 1, rng)))
    return run


if __name__ == "__main__":
    args = common.arguments(__doc__, steps=60, length=2048, block=256, width=64, layers=2, heads=2)
    run = train(args.steps, args.length, args.block, args.width, args.layers, args.heads)
    sys.exit(not run.reached)
