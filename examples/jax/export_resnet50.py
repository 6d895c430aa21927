# SPDX-License-Identifier: Apache-2.0
"""Exports one training step of ResNet-50: forward, backward, batch norm statistics, SGD or AdamW.

    python examples/jax/export_resnet50.py --out=build/resnet50 --batch=8
    build/otrn prof build/resnet50/resnet50.mlir

Bottleneck blocks as in version 1.5 (the 3x3 convolution has the stride). --blocks, --width, --image and
--classes make smaller ones of the same kind; --layout=NCHW puts channels first, as PyTorch has them.
--cpu runs the step on JAX's CPU and writes its results as resnet50_out_000.npy, …, the loss last.
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
    def conv(size, a, b):
        std = np.sqrt(2 / (size * size * b))
        return (std * rng.standard_normal((size, size, a, b))).astype(np.float32)

    norm = lambda c: {"g": np.ones(c, np.float32), "b": np.zeros(c, np.float32)}
    stage_of = [s for s, n in enumerate(o.blocks) for _ in range(n)]
    blocks, inner, wide = [], o.width, o.width
    for i, stage in enumerate(stage_of):
        first = i == 0 or stage_of[i - 1] != stage
        inner = o.width << stage
        block = {
            "conv1": conv(1, wide, inner), "norm1": norm(inner),
            "conv2": conv(3, inner, inner), "norm2": norm(inner),
            "conv3": conv(1, inner, 4 * inner), "norm3": norm(4 * inner),
        }
        if first:
            block |= {"short": conv(1, wide, 4 * inner), "norm0": norm(4 * inner)}
        blocks.append(block)
        wide = 4 * inner
    dense = (0.01 * rng.standard_normal((wide, o.classes))).astype(np.float32)
    return {
        "stem": conv(7, 3, o.width), "norm": norm(o.width), "blocks": blocks,
        "dense": dense, "bias": np.zeros(o.classes, np.float32),
    }


class Net:
    """The model; gathers the batch's statistics as it goes."""

    def __init__(self, o):
        self.o, self.stats = o, []
        self.axes = (0, 1, 2) if o.layout == "NHWC" else (0, 2, 3)

    def conv(self, x, w, stride=1):
        pad = w.shape[0] // 2
        numbers = (self.o.layout, "HWIO", self.o.layout)
        return jax.lax.conv_general_dilated(
            x, w.astype(x.dtype), (stride, stride), ((pad, pad),) * 2, dimension_numbers=numbers
        )

    def norm(self, x, p):
        wide = x.astype(jnp.float32)
        mean = wide.mean(self.axes, keepdims=True)
        var = ((wide - mean) ** 2).mean(self.axes, keepdims=True)
        self.stats += [mean.reshape(-1), var.reshape(-1)]
        g, b = (v.reshape(mean.shape) for v in (p["g"], p["b"]))
        return ((wide - mean) * jax.lax.rsqrt(var + 1e-5) * g + b).astype(x.dtype)

    def block(self, x, p, stride):
        y = jax.nn.relu(self.norm(self.conv(x, p["conv1"]), p["norm1"]))
        y = jax.nn.relu(self.norm(self.conv(y, p["conv2"], stride), p["norm2"]))
        y = self.norm(self.conv(y, p["conv3"]), p["norm3"])
        if "short" in p:
            x = self.norm(self.conv(x, p["short"], stride), p["norm0"])
        return jax.nn.relu(x + y)

    def __call__(self, params, x):
        last = self.o.layout == "NHWC"
        window, strides = ((1, 3, 3, 1), (1, 2, 2, 1)) if last else ((1, 1, 3, 3), (1, 1, 2, 2))
        pads = ((0, 0), (1, 1), (1, 1), (0, 0)) if last else ((0, 0), (0, 0), (1, 1), (1, 1))
        x = jax.nn.relu(self.norm(self.conv(x, params["stem"], 2), params["norm"]))
        x = jax.lax.reduce_window(x, -np.inf, jax.lax.max, window, strides, pads)
        stage_of = [s for s, n in enumerate(self.o.blocks) for _ in range(n)]
        for i, p in enumerate(export_common.layers(params["blocks"])):
            first = i > 0 and stage_of[i - 1] != stage_of[i]
            x = self.block(x, p, 2 if first else 1)
        x = x.astype(jnp.float32).mean((1, 2) if last else (2, 3))
        return x @ params["dense"] + params["bias"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name, value in dict(batch=8, image=224, width=64, classes=1000, seed=0).items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--blocks", type=lambda s: [int(n) for n in s.split(",")], default=[3, 4, 6, 3])
    parser.add_argument("--layout", choices=("NHWC", "NCHW"), default="NHWC")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--optimizer", choices=("sgd", "adamw"), default="sgd")
    parser.add_argument("--out", default="build/resnet50")
    parser.add_argument("--no-inputs", action="store_true")
    parser.add_argument("--cpu", action="store_true")
    o = parser.parse_args()

    rng = np.random.default_rng(o.seed)
    params = init(rng, o)
    shape = (o.batch, o.image, o.image, 3) if o.layout == "NHWC" else (o.batch, 3, o.image, o.image)
    images = rng.standard_normal(shape).astype(np.float32)
    labels = rng.integers(0, o.classes, o.batch, dtype=np.int32)
    optimizer = optax.sgd(0.1, momentum=0.9) if o.optimizer == "sgd" else optax.adamw(1e-3)

    def loss_fn(params, images, labels):
        net = Net(o)
        logits = net(params, images.astype(o.dtype))
        loss = optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()
        return loss, net.stats

    running = jax.tree.map(lambda s: np.zeros(s.shape, np.float32), jax.eval_shape(loss_fn, params, images, labels)[1])

    def step(params, state, running, images, labels):
        (loss, stats), grads = jax.value_and_grad(loss_fn, has_aux=True)(params, images, labels)
        with jax.named_scope("optimizer"):
            updates, state = optimizer.update(grads, state, params)
        running = jax.tree.map(lambda r, s: 0.9 * r + 0.1 * s, running, stats)
        return optax.apply_updates(params, updates), state, running, loss

    args = params, optimizer.init(params), running, images, labels
    export_common.export(step, args, o.out, "resnet50", donate=(0, 1, 2), inputs=not o.no_inputs, cpu=o.cpu)


if __name__ == "__main__":
    main()
