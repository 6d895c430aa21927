# SPDX-License-Identifier: Apache-2.0
"""Training steps of other architectures than the exported ones, small: loss and every parameter beside JAX's CPU."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax import lax

RNG = np.random.default_rng(7)


def dense(a, b):
    return (RNG.standard_normal((a, b)) / np.sqrt(a)).astype(np.float32)


def kernel(k, a, b):
    return (RNG.standard_normal((k, k, a, b)) / (k * np.sqrt(a))).astype(np.float32)


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def cross_entropy(logits, targets):
    return optax.softmax_cross_entropy_with_integer_labels(logits, targets).mean()


def rms_norm(x, g):
    return x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * g


def rotate(x):
    d = x.shape[-1]
    angle = np.arange(x.shape[1])[:, None] / 10000 ** (np.arange(0, d, 2) / d)
    cos, sin = (f(angle)[None, :, None].astype(np.float32) for f in (np.cos, np.sin))
    a, b = jnp.split(x, 2, -1)
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


def llama():
    """Rotary positions, grouped queries, RMS norm, SwiGLU; layers in a scan, recomputed; clipped by the global norm."""
    width, heads, groups, vocab = 64, 4, 2, 96
    each = width // heads
    layer = lambda: {"n1": np.ones(width, np.float32), "q": dense(width, width), "kv": dense(width, 2 * groups * each), "o": dense(width, width),
                     "n2": np.ones(width, np.float32), "up": dense(width, 256), "down": dense(128, width)}
    params = {"words": 0.1 * normal(vocab, width), "layers": jax.tree.map(lambda *x: np.stack(x), layer(), layer()), "head": dense(width, vocab)}

    @jax.checkpoint
    def block(x, p):
        b, s, _ = x.shape
        h = rms_norm(x, p["n1"])
        k, v = jnp.split((h @ p["kv"]).reshape(b, s, 2 * groups, each), 2, 2)
        q, k = rotate((h @ p["q"]).reshape(b, s, heads, each)), rotate(k)
        k, v = (jnp.repeat(t, heads // groups, 2) for t in (k, v))
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.float32(np.sqrt(each))
        weights = jax.nn.softmax(jnp.where(jnp.tril(jnp.ones((s, s), bool)), scores, -1e9), -1)
        x = x + jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(x.shape) @ p["o"]
        gate, up = jnp.split(rms_norm(x, p["n2"]) @ p["up"], 2, -1)
        return x + (jax.nn.silu(gate) * up) @ p["down"], None

    def loss(p, tokens):
        x, _ = lax.scan(block, p["words"][tokens[:, :-1]], p["layers"])
        return cross_entropy(x @ p["head"], tokens[:, 1:])

    optimizer = optax.chain(optax.clip_by_global_norm(0.1), optax.sgd(0.5, momentum=0.9))
    return loss, params, (RNG.integers(0, vocab, (2, 65), dtype=np.int32),), optimizer


def unet():
    """Group norm, numbers per image and channel, a transposed convolution, dropout."""
    c = 64
    params = {"in": kernel(3, 3, c), "down": kernel(3, c, c), "time": dense(16, c), "up": kernel(2, c, c), "out": kernel(3, 2 * c, 3)}
    conv = lambda x, w, stride=1: lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def group_norm(x):
        y = x.reshape(x.shape[0], -1, 8, c // 8)
        y = y - y.mean((1, 3), keepdims=True)
        return (y * lax.rsqrt((y * y).mean((1, 3), keepdims=True) + 1e-5)).reshape(x.shape)

    def loss(p, x, t, key):
        h = jax.nn.silu(group_norm(conv(x, p["in"])))
        d = jax.nn.silu(group_norm(conv(h, p["down"], 2)) * (1 + (t @ p["time"])[:, None, None]))
        d = jnp.where(jax.random.bernoulli(jax.random.wrap_key_data(key), 0.9, d.shape), d / 0.9, 0)
        u = lax.conv_transpose(d, p["up"], (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), transpose_kernel=True)
        return ((conv(jnp.concatenate([u, h], -1), p["out"]) - x) ** 2).mean()

    return loss, params, (normal(2, 16, 16, 3), normal(2, 16), np.array([1, 2], np.uint32)), optax.sgd(0.1)


def experts():
    """A mixture of experts: the best two of four, places by a running sum, sent by products."""
    width, n, hidden = 64, 4, 128
    params = {"route": dense(width, n), "up": np.stack([dense(width, hidden) for _ in range(n)]), "down": np.stack([dense(hidden, width) for _ in range(n)])}

    def loss(p, x, y):
        room = x.shape[0]
        weight, chosen = lax.top_k(jax.nn.softmax(x @ p["route"]), 2)
        one = jax.nn.one_hot(chosen, n)
        flat = one.transpose(1, 0, 2).reshape(-1, n)
        place = ((jnp.cumsum(flat, 0) - flat).reshape(2, -1, n).transpose(1, 0, 2) * one).sum(-1)
        at = jax.nn.one_hot(place.astype(jnp.int32), room)
        sent = jnp.einsum("tke,tkc,td->ecd", one, at, x)
        made = jnp.einsum("ecf,efd->ecd", jax.nn.silu(jnp.einsum("ecd,edf->ecf", sent, p["up"])), p["down"])
        return ((jnp.einsum("tke,tkc,tk,ecd->td", one, at, weight, made) - y) ** 2).mean()

    return loss, params, (normal(64, width), normal(64, width)), optax.sgd(0.1)


def recurrent():
    """An LSTM by scan, and a graph layer that sums messages by receiver."""
    width = 64
    params = {"x": dense(width, 4 * width), "h": dense(width, 4 * width), "m": dense(2 * width, width)}

    def loss(p, x, send, receive):
        def cell(state, x):
            h, c = state
            i, f, g, o = jnp.split(x + h @ p["h"], 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), None

        zero = jnp.zeros((x.shape[1], width))
        (h, _), _ = lax.scan(cell, (zero, zero), x @ p["x"])
        message = jax.nn.relu(jnp.concatenate([h[send], h[receive]], -1) @ p["m"])
        return (jax.ops.segment_sum(message, receive, h.shape[0]) ** 2).mean()

    edges = [RNG.integers(0, 32, 100, dtype=np.int32) for _ in range(2)]
    return loss, params, (normal(12, 32, width), *edges), optax.lion(1e-3)


def separable(layout):
    """Depthwise (strided, dilated), grouped and transposed convolutions, 1x1 ones, batch norm, pooling."""
    width, kernels = 32, lambda k, a, b: kernel(k, a, b) if layout == "NHWC" else kernel(k, a, b).transpose(3, 2, 0, 1)
    axes = (0, 1, 2) if layout == "NHWC" else (0, 2, 3)
    params = {"stem": kernels(3, 3, width), "down": kernels(3, 1, width), "wide": kernels(5, 1, width), "groups": kernels(3, 4, width),
              "point": kernels(1, width, 2 * width), "up": kernels(2, 2 * width, 16), "head": dense(16, 10)}

    def conv(x, w, stride=1, groups=1, gap=1, up=1):
        k = w.shape[0] if layout == "NHWC" else w.shape[2]
        pad = ((k - 1) * gap // 2,) * 2 if up == 1 else (k - 1,) * 2
        numbers = (layout, "HWIO" if layout == "NHWC" else "OIHW", layout)
        return lax.conv_general_dilated(x, w, (stride,) * 2, (pad,) * 2, (up,) * 2, (gap,) * 2, numbers, feature_group_count=groups)

    def norm(x):
        mean = x.mean(axes, keepdims=True)
        return jax.nn.silu((x - mean) * lax.rsqrt(((x - mean) ** 2).mean(axes, keepdims=True) + 1e-5))

    def loss(p, x, targets):
        x = norm(conv(x, p["stem"]))
        x = norm(conv(x, p["down"], 2, width))
        x = x + norm(conv(x, p["wide"], groups=width, gap=2))
        x = x + norm(conv(x, p["groups"], groups=width // 4))
        x = norm(conv(x, p["point"]))
        window = (1, 3, 3, 1) if layout == "NHWC" else (1, 1, 3, 3)
        x = lax.reduce_window(x, -np.inf, lax.max, window, tuple(2 if n > 1 else 1 for n in window), "SAME")
        x = norm(conv(x, p["up"], up=2))
        return cross_entropy(x.mean(axes[1:]) @ p["head"], targets)

    image = (4, 40, 40, 3) if layout == "NHWC" else (4, 3, 40, 40)
    return loss, params, (normal(*image), RNG.integers(0, 10, 4, dtype=np.int32)), optax.sgd(0.1)


def channels_last():
    return separable("NHWC")


def channels_first():
    return separable("NCHW")


@pytest.mark.parametrize("model", [llama, unet, experts, recurrent, channels_last, channels_first])
def test_a_step(model, cpu):
    loss, params, batch, optimizer = model()

    def step(p, s, *batch):
        value, grads = jax.value_and_grad(loss)(p, *batch)
        updates, s = optimizer.update(grads, s, p)
        return value, grads, optax.apply_updates(p, updates)

    args = params, optimizer.init(params), *batch
    got = jax.jit(step)(*args)
    want = jax.jit(step)(*jax.device_put(args, cpu))
    assert abs(got[0] - want[0]) <= 1e-5 * abs(want[0])
    for g, w in zip(jax.tree.leaves(got[1]), jax.tree.leaves(want[1])):
        np.testing.assert_allclose(g, w, rtol=0, atol=5e-5 * np.abs(w).max() + 1e-9)
    for g, w in zip(jax.tree.leaves(got[2]), jax.tree.leaves(want[2])):  # lion takes signs: one of noise may differ
        assert np.mean(np.abs(np.asarray(g) - w) > 2e-5 * np.abs(w).max() + 1e-9) < 1e-3
