# SPDX-License-Identifier: Apache-2.0
"""Fine-tunes a BERT-style encoder to tell kinds of text apart: prose, program code and tables of characters.

    python examples/jax/bert.py                  a loss below 0.45 (a random guess has 1.1)
    python examples/jax/bert.py --platform=cpu   the same on JAX's CPU

As with BERT there are two phases: the encoder first learns to guess masked bytes of unlabelled text, then a new head on its
first position is trained with labels, the encoder with it at a smaller rate. All texts come with Python.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

import common
import opentrn

GOAL = 0.45
MASK, CLASS, VOCABULARY = 256, 257, 258
MASKED = 0.15  # of the bytes of the first phase


class Block(nnx.Module):
    def __init__(self, width, heads, rngs):
        self.attention = nnx.MultiHeadAttention(heads, width, decode=False, rngs=rngs)
        self.norm1 = nnx.LayerNorm(width, rngs=rngs)
        self.up = nnx.Linear(width, 4 * width, rngs=rngs)
        self.down = nnx.Linear(4 * width, width, rngs=rngs)
        self.norm2 = nnx.LayerNorm(width, rngs=rngs)

    def __call__(self, x):
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.down(nnx.gelu(self.up(x))))


class Encoder(nnx.Module):
    def __init__(self, width, layers, heads, length, rngs):
        self.tokens = nnx.Embed(VOCABULARY, width, rngs=rngs)
        self.places = nnx.Embed(length + 1, width, rngs=rngs)
        self.norm = nnx.LayerNorm(width, rngs=rngs)
        self.blocks = nnx.List([Block(width, heads, rngs) for _ in range(layers)])

    def __call__(self, tokens):
        x = self.norm(self.tokens(tokens) + self.places(jnp.arange(tokens.shape[1])))
        for block in self.blocks:
            x = block(x)
        return x


class Masked(nnx.Module):
    """The first phase: guess the bytes behind the masks. The embedding is also the way back."""

    def __init__(self, encoder, width, rngs):
        self.encoder = encoder
        self.dense = nnx.Linear(width, width, rngs=rngs)

    def loss(self, tokens, bytes_, masked):
        logits = self.encoder.tokens.attend(nnx.gelu(self.dense(self.encoder(tokens))))
        losses = optax.softmax_cross_entropy_with_integer_labels(logits, bytes_)
        return (losses * masked).sum() / masked.sum()


class Classifier(nnx.Module):
    """The second: a label from the first position."""

    def __init__(self, encoder, width, classes, rngs):
        self.encoder = encoder
        self.pooler = nnx.Linear(width, width, rngs=rngs)
        self.head = nnx.Linear(width, classes, rngs=rngs)

    def __call__(self, tokens):
        return self.head(nnx.tanh(self.pooler(self.encoder(tokens)[:, 0])))

    def loss(self, tokens, labels):
        return optax.softmax_cross_entropy_with_integer_labels(self(tokens), labels).mean()


@nnx.jit
def train_step(model, optimizer, *batch):
    loss, grads = nnx.value_and_grad(lambda m: m.loss(*batch))(model)
    optimizer.update(model, grads)
    return loss


@nnx.jit
def guess(model, tokens):
    return model(tokens).argmax(-1)


def with_class(tokens):
    return np.concatenate([np.full((len(tokens), 1), CLASS, np.int32), tokens], 1)


def masked_batch(texts, batch, length, rng):
    pieces = np.concatenate([common.windows(t, batch // len(texts), length, rng) for t in texts])
    bytes_ = with_class(pieces)
    masked = rng.random(bytes_.shape) < MASKED
    masked[:, 0] = False
    return np.where(masked, MASK, bytes_).astype(np.int32), np.minimum(bytes_, 255), masked.astype(np.float32)


def labelled_batch(texts, batch, length, rng):
    labels = rng.integers(0, len(texts), batch).astype(np.int32)
    pieces = np.concatenate([common.windows(texts[k], 1, length, rng) for k in labels])
    return with_class(pieces), labels


def train(steps=120, batch=48, length=63, width=96, layers=3, heads=4, out=None):
    texts = [common.prose(), common.sources("asyncio"), common.sources("encodings")]
    rng, rngs = np.random.default_rng(common.SEED), nnx.Rngs(common.SEED)
    encoder = Encoder(width, layers, heads, length, rngs)
    masked = Masked(encoder, width, rngs)
    optimizer = nnx.Optimizer(masked, optax.adamw(1e-3), wrt=nnx.Param)
    size = f"{common.parameters(encoder) / 1e6:.2f} M parameters, {batch} x {length + 1} bytes a step"
    with opentrn.training(f"BERT, masked bytes, {size}", steps, samples=batch, out=out) as before:
        for _ in range(steps):
            before.step(train_step(masked, optimizer, *masked_batch(texts, batch, length, rng)))

    model = Classifier(encoder, width, len(texts), rngs)
    rates = {"old": optax.adamw(3e-4), "new": optax.adamw(3e-3)}
    age = lambda path, _: "old" if path[0].key == "encoder" else "new"
    rule = optax.multi_transform(rates, lambda params: jax.tree.map_with_path(age, params))
    optimizer = nnx.Optimizer(model, rule, wrt=nnx.Param)
    with opentrn.training(f"BERT, fine-tuned, {size}", steps, samples=batch, goal=GOAL, out=out) as run:
        for _ in range(steps):
            run.step(train_step(model, optimizer, *labelled_batch(texts, batch, length, rng)))
    tokens, labels = labelled_batch(texts, 4 * batch, length, rng)
    accuracy = float((np.asarray(guess(model, tokens)) == labels).mean())
    print(f"accuracy on new pieces {accuracy:.3f}", file=out)
    run.earlier = before.losses
    return run


if __name__ == "__main__":
    args = common.arguments(__doc__, steps=120, batch=48, length=63, width=96, layers=3, heads=4)
    run = train(args.steps, args.batch, args.length, args.width, args.layers, args.heads)
    sys.exit(not run.reached)
