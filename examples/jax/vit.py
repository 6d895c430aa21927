# SPDX-License-Identifier: Apache-2.0
"""Trains a vision transformer on scikit-learn's handwritten digits.

    python examples/jax/vit.py                  to a loss below 0.15 (a random guess has 2.3)
    python examples/jax/vit.py --platform=cpu   the same on JAX's CPU
"""

import sys

import numpy as np
import optax
from flax import nnx
from sklearn.datasets import load_digits

import common
import opentrn

GOAL = 0.15
SIDE, PATCH = 8, 2  # pixels
TRAIN = 1437  # of 1797 images; the others are the test set


class Block(nnx.Module):
    def __init__(self, width, heads, rngs):
        self.norm1 = nnx.LayerNorm(width, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(heads, width, decode=False, rngs=rngs)
        self.norm2 = nnx.LayerNorm(width, rngs=rngs)
        self.up = nnx.Linear(width, 4 * width, rngs=rngs)
        self.down = nnx.Linear(4 * width, width, rngs=rngs)

    def __call__(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(nnx.gelu(self.up(self.norm2(x))))


class ViT(nnx.Module):
    def __init__(self, width, layers, heads, rngs):
        self.patches = nnx.Conv(1, width, (PATCH, PATCH), strides=(PATCH, PATCH), padding="VALID", rngs=rngs)
        places = (SIDE // PATCH) ** 2
        self.places = nnx.Param(0.02 * rngs.params.normal((places, width)))
        self.blocks = nnx.List([Block(width, heads, rngs) for _ in range(layers)])
        self.norm = nnx.LayerNorm(width, rngs=rngs)
        self.head = nnx.Linear(width, 10, rngs=rngs)

    def __call__(self, images):
        x = self.patches(images)
        x = x.reshape(len(images), -1, x.shape[-1]) + self.places
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).mean(1))


def loss_fn(model, images, labels):
    return optax.softmax_cross_entropy_with_integer_labels(model(images), labels).mean()


@nnx.jit
def train_step(model, optimizer, images, labels):
    loss, grads = nnx.value_and_grad(loss_fn)(model, images, labels)
    optimizer.update(model, grads)
    return loss


@nnx.jit
def guess(model, images):
    return model(images).argmax(-1)


def data(rng):
    images, labels = load_digits(return_X_y=True)
    order = rng.permutation(len(images))
    images = (images[order] / 16).astype(np.float32).reshape(-1, SIDE, SIDE, 1)
    labels = labels[order].astype(np.int32)
    return (images[:TRAIN], labels[:TRAIN]), (images[TRAIN:], labels[TRAIN:])


def train(steps=300, batch=64, width=64, layers=3, heads=4, out=None):
    rng = np.random.default_rng(common.SEED)
    (images, labels), (test_images, test_labels) = data(rng)
    model = ViT(width, layers, heads, nnx.Rngs(common.SEED))
    schedule = optax.warmup_cosine_decay_schedule(0.0, 3e-3, steps // 10, steps)
    optimizer = nnx.Optimizer(model, optax.adamw(schedule), wrt=nnx.Param)
    name = f"ViT, {common.parameters(model) / 1e6:.2f} M parameters, {batch} images a step"
    with opentrn.training(name, steps, samples=batch, goal=GOAL, out=out) as run:
        for _ in range(steps):
            pick = rng.integers(0, TRAIN, batch)
            run.step(train_step(model, optimizer, images[pick], labels[pick]))
    accuracy = float((np.asarray(guess(model, test_images)) == test_labels).mean())
    print(f"accuracy on the test set {accuracy:.3f}", file=out)
    return run


if __name__ == "__main__":
    args = common.arguments(__doc__, steps=300, batch=64, width=64, layers=3, heads=4)
    run = train(args.steps, args.batch, args.width, args.layers, args.heads)
    sys.exit(not run.reached)
