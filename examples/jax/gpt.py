# SPDX-License-Identifier: Apache-2.0
"""Trains a GPT on bytes from scratch; the text is Python's own help.

    python examples/jax/gpt.py                  200 steps to a loss below 2.5 (a random guess has 5.5)
    python examples/jax/gpt.py --platform=cpu   the same on JAX's CPU
"""

import sys

import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

import common
import opentrn

GOAL = 2.5


class Block(nnx.Module):
    def __init__(self, width, heads, rngs):
        self.norm1 = nnx.LayerNorm(width, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(heads, width, decode=False, rngs=rngs)
        self.norm2 = nnx.LayerNorm(width, rngs=rngs)
        self.up = nnx.Linear(width, 4 * width, rngs=rngs)
        self.down = nnx.Linear(4 * width, width, rngs=rngs)

    def __call__(self, x, mask):
        x = x + self.attention(self.norm1(x), mask=mask)
        return x + self.down(nnx.gelu(self.up(self.norm2(x))))


class GPT(nnx.Module):
    def __init__(self, width, layers, heads, length, rngs):
        self.tokens = nnx.Embed(256, width, rngs=rngs)
        self.places = nnx.Embed(length, width, rngs=rngs)
        self.blocks = nnx.List([Block(width, heads, rngs) for _ in range(layers)])
        self.norm = nnx.LayerNorm(width, rngs=rngs)
        self.head = nnx.Linear(width, 256, use_bias=False, rngs=rngs)

    def __call__(self, tokens):
        mask = nnx.make_causal_mask(tokens)
        x = self.tokens(tokens) + self.places(jnp.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x, mask)
        return self.head(self.norm(x))


def loss_fn(model, tokens):
    logits = model(tokens[:, :-1])
    return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()


@nnx.jit
def train_step(model, optimizer, tokens):
    loss, grads = nnx.value_and_grad(loss_fn)(model, tokens)
    optimizer.update(model, grads)
    return loss


def train(steps=200, batch=16, length=128, width=128, layers=4, heads=4, out=None):
    text, rng = common.prose(), np.random.default_rng(common.SEED)
    model = GPT(width, layers, heads, length, nnx.Rngs(common.SEED))
    schedule = optax.warmup_cosine_decay_schedule(0.0, 3e-3, steps // 10, steps)
    rule = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule, weight_decay=0.01))
    optimizer = nnx.Optimizer(model, rule, wrt=nnx.Param)
    name = f"GPT, {common.parameters(model) / 1e6:.2f} M parameters, {batch} x {length} bytes a step"
    with opentrn.training(name, steps, tokens=batch * length, goal=GOAL, out=out) as run:
        for _ in range(steps):
            run.step(train_step(model, optimizer, common.windows(text, batch, length + 1, rng)))
    return run


if __name__ == "__main__":
    args = common.arguments(__doc__, steps=200, batch=16, length=128, width=128, layers=4, heads=4)
    run = train(args.steps, args.batch, args.length, args.width, args.layers, args.heads)
    sys.exit(not run.reached)
