# SPDX-License-Identifier: Apache-2.0
"""Trains a classifier of handwritten digits on the opentrn device, with JAX and optax.

    python examples/jax/digits_mlp.py             loss, accuracy, host time and modelled time
    python examples/jax/digits_mlp.py --compare   and every loss against JAX's CPU

The program is ordinary JAX; the images are scikit-learn's. Weights and batches come from numpy, so
that every device sees the same ones. Activations are tanh: with relu, a rounding difference next to
zero can switch a unit on or off, and two correct devices drift apart.
"""

import argparse
import os
import sys
import time

os.environ.setdefault("JAX_PLATFORMS", "opentrn,cpu")
import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import load_digits

WIDTHS = [64, 128, 64, 10]
TRAIN = 1437  # of 1797 images; the others are the test set
BATCH = 128
SEED = 0
ACCURACY = 0.95  # what the demo promises
TOLERANCE = 1e-5  # of a loss, relative to JAX's CPU

optimizer = optax.adam(2e-3)


def data():
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(SEED).permutation(len(images))
    images, labels = (images[order] / 16).astype(np.float32), labels[order].astype(np.int32)
    return (images[:TRAIN], labels[:TRAIN]), (images[TRAIN:], labels[TRAIN:])


def init():
    rng = np.random.default_rng(SEED + 1)
    return [
        {
            "w": (rng.standard_normal((a, b)) / np.sqrt(a)).astype(np.float32),
            "b": np.zeros(b, np.float32),
        }
        for a, b in zip(WIDTHS, WIDTHS[1:])
    ]


def logits_fn(params, x):
    for layer in params[:-1]:
        x = jnp.tanh(x @ layer["w"] + layer["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


def loss_fn(params, x, y):
    return optax.softmax_cross_entropy(logits_fn(params, x), jax.nn.one_hot(y, WIDTHS[-1])).mean()


def step(params, state, x, y):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    updates, state = optimizer.update(grads, state, params)
    return optax.apply_updates(params, updates), state, loss


def batches(images, labels, steps):
    rng = np.random.default_rng(SEED + 2)
    for _ in range(steps):
        pick = rng.integers(0, len(images), BATCH)
        yield images[pick], labels[pick]


def train(device, steps, show=lambda i, loss: None):
    """Returns the losses, the accuracy on the test set, seconds per step, and the compiled step."""
    (images, labels), (test_images, test_labels) = data()
    with jax.default_device(device):
        params = jax.device_put(init())
        state = optimizer.init(params)
        jitted = jax.jit(step, donate_argnums=(0, 1))
        compiled = jitted.lower(params, state, images[:BATCH], labels[:BATCH]).compile()
        losses, seconds = [], []
        for i, (x, y) in enumerate(batches(images, labels, steps)):
            begin = time.perf_counter()
            params, state, loss = jitted(params, state, x, y)
            losses.append(float(loss))
            seconds.append(time.perf_counter() - begin)
            show(i, losses[-1])
        guess = np.asarray(jax.jit(logits_fn)(params, test_images)).argmax(-1)
    return (
        np.array(losses),
        float((guess == test_labels).mean()),
        float(np.median(seconds)),
        compiled,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--compare", action="store_true", help="compare every loss with JAX's CPU")
    o = parser.parse_args()

    device = jax.devices()[0]
    shape = "-".join(map(str, WIDTHS))
    print(f"device {device}, {device.device_kind}; MLP {shape}, batch {BATCH}, {o.steps} steps")
    show = lambda i, loss: (
        print(f"step {i + 1:4}  loss {loss:.4f}") if i % 25 == 0 or i == o.steps - 1 else None
    )
    losses, accuracy, seconds, compiled = train(device, o.steps, show)
    reached = accuracy >= ACCURACY
    print(
        f"test accuracy {accuracy:.4f} ({'reaches' if reached else 'MISSES'} the target {ACCURACY})"
    )
    print(f"host time per step {seconds * 1e6:.0f} us")
    if device.platform in ("opentrn", "neuron"):
        import opentrn

        times = (
            f"{t} {opentrn.report(compiled, t)['total_us']:.1f} us"
            for t in ("trn1", "trn2", "trn3")
        )
        print("modelled time per step: " + ", ".join(times))
        print("compiled step: cache " + ("hit" if opentrn.cache_hit(compiled) else "miss"))
    if o.compare:
        expected = train(jax.devices("cpu")[0], o.steps)[0]
        worst = np.max(np.abs(losses - expected) / np.abs(expected))
        reached &= bool(worst <= TOLERANCE)
        print(
            f"loss of every step against JAX's CPU: largest relative difference {worst:.2g} "
            f"({'within' if worst <= TOLERANCE else 'ABOVE'} {TOLERANCE:g})"
        )
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
