# SPDX-License-Identifier: Apache-2.0
"""Models that are no plain transformers: pictures, sequences, speech, graphs, recommendations, games. See weights.py.

Each is loss(w, *batch) with a function of the same name and `_batch` that gives its batch; sizes are keywords of both.
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import transformer

f32 = lambda *shape: jax.ShapeDtypeStruct(shape, jnp.float32)
i32 = lambda *shape: jax.ShapeDtypeStruct(shape, jnp.int32)
cross_entropy = transformer.cross_entropy


def dense(w, x, out, bias=True):
    y = x @ w(x.shape[-1], out)
    return y + w(out) if bias else y


def mlp(w, x, widths, act=jax.nn.relu):
    for i, width in enumerate(widths):
        x = dense(w, x if i == 0 else act(x), width)
    return x


def layer_norm(w, x):
    wide = x.astype(jnp.float32)
    wide = wide - wide.mean(-1, keepdims=True)
    wide = wide * jax.lax.rsqrt((wide * wide).mean(-1, keepdims=True) + 1e-6)
    return (wide * w(x.shape[-1]) + w(x.shape[-1])).astype(x.dtype)


def group_norm(w, x, groups=32):
    b, h, wd, c = x.shape
    wide = x.astype(jnp.float32).reshape(b, h, wd, groups, c // groups)
    mean = wide.mean((1, 2, 4), keepdims=True)
    spread = ((wide - mean) ** 2).mean((1, 2, 4), keepdims=True)
    wide = ((wide - mean) * jax.lax.rsqrt(spread + 1e-5)).reshape(x.shape)
    return (wide * w(c) + w(c)).astype(x.dtype)


def batch_norm(w, x):
    wide = x.astype(jnp.float32)
    mean = wide.mean((0, 1, 2))
    spread = ((wide - mean) ** 2).mean((0, 1, 2))
    return ((wide - mean) * jax.lax.rsqrt(spread + 1e-5) * w(x.shape[-1]) + w(x.shape[-1])).astype(x.dtype)


def conv(w, x, out, size=3, stride=1, groups=1):
    kernel = w(size, size, x.shape[-1] // groups, out)
    return jax.lax.conv_general_dilated(
        x, kernel, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=groups
    )


# Pictures


def pictures_batch(batch=16, side=224):
    return [f32(batch, side, side, 3), i32(batch)]


def mobilenet(w, images, labels, classes=1000):
    """MobileNetV2: expand, depthwise, project."""
    norm = lambda x: jnp.clip(batch_norm(w, x), 0, 6)
    x = norm(conv(w, images.astype(w.dtype), 32, stride=2))
    for grow, out, count, stride in [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]:
        for i in range(count):
            inside = x.shape[-1] * grow
            h = norm(conv(w, x, inside, 1)) if grow > 1 else x
            h = norm(conv(w, h, inside, 3, stride if i == 0 else 1, groups=inside))
            h = batch_norm(w, conv(w, h, out, 1))
            x = x + h if x.shape == h.shape else h
    x = norm(conv(w, x, 1280, 1)).mean((1, 2))
    return cross_entropy(dense(w, x, classes), labels)


def convnext(w, images, labels, widths=(96, 192, 384, 768), blocks=(3, 3, 9, 3), classes=1000):
    x = layer_norm(w, conv(w, images.astype(w.dtype), widths[0], 4, 4))
    for i, (width, count) in enumerate(zip(widths, blocks)):
        if i:
            x = conv(w, layer_norm(w, x), width, 2, 2)
        for _ in range(count):
            h = layer_norm(w, conv(w, x, width, 7, groups=width))
            h = dense(w, jax.nn.gelu(dense(w, h, 4 * width)), width)
            x = x + h * w(width)
    return cross_entropy(dense(w, layer_norm(w, x.mean((1, 2))), classes), labels)


def vgg(w, images, labels, classes=100):
    x = images.astype(w.dtype)
    for out, count in [(64, 2), (128, 2), (256, 3), (512, 3), (512, 3)]:
        for _ in range(count):
            x = jax.nn.relu(conv(w, x, out) + w(out))
        x = jax.lax.reduce_window(x, -np.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return cross_entropy(mlp(w, x.reshape(x.shape[0], -1), [1024, 1024, classes]), labels)


def mixer(w, images, labels, width=512, layers=8, scan=True, classes=1000):
    b, side = images.shape[0], images.shape[1] // 16
    x = images.reshape(b, side, 16, side, 16, 3).transpose(0, 1, 3, 2, 4, 5).reshape(b, side * side, 768)

    def layer(w, x):
        h = layer_norm(w, x).transpose(0, 2, 1)
        x = x + mlp(w, h, [256, side * side], jax.nn.gelu).transpose(0, 2, 1)
        return x + mlp(w, layer_norm(w, x), [4 * width, width], jax.nn.gelu)

    x = w.stack(layers, layer, dense(w, x.astype(w.dtype), width), scan=scan)
    return cross_entropy(dense(w, layer_norm(w, x).mean(1), classes), labels)


def clip_batch(batch=32, side=224, seq=77):
    return [f32(batch, side, side, 3), i32(batch, seq)]


def clip(w, images, tokens, width=384, layers=6):
    """Contrastive: each picture with its own text among all of the batch."""
    c = transformer.Config(layers=layers, width=width, heads=width // 64, scan=True)
    b, side = images.shape[0], images.shape[1] // 16
    x = images.reshape(b, side, 16, side, 16, 3).transpose(0, 1, 3, 2, 4, 5).reshape(b, side * side, 768)
    x = transformer.layers(w, dense(w, x.astype(w.dtype), width) + w(side * side, width), None, c)
    seen = dense(w, layer_norm(w, x).mean(1), width)
    y = w(49408, width)[tokens] + w(tokens.shape[1], width)
    y = transformer.layers(w, y, transformer.causal(tokens.shape[1]), c)
    read = dense(w, layer_norm(w, y)[:, -1], width)
    unit = lambda x: x.astype(jnp.float32) * jax.lax.rsqrt((x.astype(jnp.float32) ** 2).sum(-1, keepdims=True))
    scores = unit(seen) @ unit(read).T * jnp.exp(w().astype(jnp.float32))
    own = jnp.arange(b)
    return cross_entropy(scores, own) + cross_entropy(scores.T, own)


# Making pictures


def times(t, width):
    """Sines of a time, as diffusion models see it."""
    angle = t[:, None] * np.exp(-np.log(1e4) * np.arange(width // 2) / (width // 2)).astype(np.float32)
    return jnp.concatenate([jnp.sin(angle), jnp.cos(angle)], -1)


def unet_batch(batch=8, side=64):
    return [f32(batch, side, side, 4), f32(batch, side, side, 4), f32(batch)]


def noisy(x, noise, t):
    a = jnp.cos(t * np.float32(np.pi / 2))[:, None, None, None]
    return x * a + noise * jnp.sqrt(1 - a * a)


def unet(w, x, noise, t, widths=(128, 256, 512)):
    """A diffusion U-Net with attention in the middle; the loss is how far its noise is from the true one."""
    time = jax.nn.silu(mlp(w, times(t, 128).astype(w.dtype), [512, 512], jax.nn.silu))

    def block(h, out):
        y = conv(w, jax.nn.silu(group_norm(w, h)), out) + dense(w, time, out)[:, None, None]
        y = conv(w, jax.nn.silu(group_norm(w, y)), out)
        return y + (h if h.shape[-1] == out else conv(w, h, out, 1))

    h, kept = conv(w, noisy(x, noise, t).astype(w.dtype), widths[0]), []
    for width in widths:
        h = block(h, width)
        kept.append(h)
        h = conv(w, h, width, stride=2)
    b, s, _, c = h.shape
    look = transformer.Config(width=c, heads=8)
    h = h + transformer.attention(w, group_norm(w, h).reshape(b, s * s, c), None, look).reshape(h.shape)
    for width, old in zip(widths[::-1], kept[::-1]):
        h = jnp.repeat(jnp.repeat(h, 2, 1), 2, 2)
        h = block(jnp.concatenate([h, old], -1), width)
    out = conv(w, jax.nn.silu(group_norm(w, h)), x.shape[-1])
    return ((out.astype(jnp.float32) - noise) ** 2).mean()


def dit_batch(batch=16, side=32):
    return [f32(batch, side, side, 4), f32(batch, side, side, 4), f32(batch), i32(batch)]


def dit(w, x, noise, t, labels, width=384, layers=12, scan=True):
    """A diffusion transformer: norms shifted and scaled by time and class."""
    c = transformer.Config(width=width, heads=width // 64)
    b, side = x.shape[0], x.shape[1] // 2
    told = mlp(w, times(t, 256).astype(w.dtype), [width, width], jax.nn.silu) + w(1000, width)[labels]
    h = noisy(x, noise, t).reshape(b, side, 2, side, 2, 4).transpose(0, 1, 3, 2, 4, 5).reshape(b, side * side, 16)
    plain = lambda x: jax.nn.standardize(x.astype(jnp.float32), epsilon=1e-6).astype(x.dtype)

    def layer(w, x):
        shift = jnp.split(dense(w, jax.nn.silu(told), 6 * width)[:, None], 6, -1)
        x = x + shift[2] * transformer.attention(w, plain(x) * (1 + shift[0]) + shift[1], None, c)
        return x + shift[5] * mlp(w, plain(x) * (1 + shift[3]) + shift[4], [4 * width, width], jax.nn.gelu)

    h = w.stack(layers, layer, dense(w, h.astype(w.dtype), width) + w(side * side, width), scan=scan)
    out = dense(w, layer_norm(w, h), 16).reshape(b, side, side, 2, 2, 4).transpose(0, 1, 3, 2, 4, 5).reshape(x.shape)
    return ((out.astype(jnp.float32) - noise) ** 2).mean()


def vae_batch(batch=64, side=32):
    return [f32(batch, side, side, 3)]


def vae(w, images, code=128):
    """A variational autoencoder; its noise is drawn in the step."""
    x = images.astype(w.dtype)
    for out in (64, 128, 256):
        x = jax.nn.relu(conv(w, x, out, 4, 2) + w(out))
    shape = x.shape
    mean, spread = jnp.split(dense(w, x.reshape(shape[0], -1), 2 * code), 2, -1)
    key = jax.random.key(0) if w.key is None else w.key
    z = mean + jnp.exp(0.5 * spread) * jax.random.normal(key, mean.shape, mean.dtype)
    x = jax.nn.relu(dense(w, z, int(np.prod(shape[1:])))).reshape(shape)
    for out in (128, 64, 3):
        x = jax.lax.conv_transpose(jax.nn.relu(x), w(4, 4, x.shape[-1], out), (2, 2), "SAME") + w(out)
    wide, mean, spread = (v.astype(jnp.float32) for v in (x, mean, spread))
    return ((wide - images) ** 2).mean() - 0.5 * (1 + spread - mean**2 - jnp.exp(spread)).mean()


def vq_vae(w, images, width=256, codes=8192):
    """An autoencoder whose codes are the nearest of a table (argmin), with the gradient passed straight through."""
    x = images.astype(w.dtype)
    for out in (64, width):
        x = jax.nn.relu(conv(w, x, out, 4, 2) + w(out))
    table, flat = w(codes, width).astype(jnp.float32), x.reshape(-1, width).astype(jnp.float32)
    nearest = jnp.argmin((table**2).sum(1) - 2 * flat @ table.T, -1)
    code = table[nearest]
    keep = jax.lax.stop_gradient
    beside = ((keep(flat) - code) ** 2).mean() + 0.25 * ((flat - keep(code)) ** 2).mean()
    x = (flat + keep(code - flat)).reshape(x.shape).astype(w.dtype)
    for out in (64, 3):
        x = jax.lax.conv_transpose(jax.nn.relu(x), w(4, 4, x.shape[-1], out), (2, 2), "SAME") + w(out)
    return ((x.astype(jnp.float32) - images) ** 2).mean() + beside


def nerf_batch(rays=1024, points=64):
    return [f32(rays, points, 3), f32(rays, 3), f32(rays, 3)]


def nerf(w, at, direction, colour, width=256):
    """Colours along rays, summed by their density."""
    waves = lambda x, n: jnp.concatenate([f(x * 2.0**i) for i in range(n) for f in (jnp.sin, jnp.cos)], -1)
    x = mlp(w, waves(at, 10).astype(w.dtype), [width] * 5)
    x = jax.nn.relu(jnp.concatenate([jax.nn.relu(x), waves(at, 10).astype(w.dtype)], -1) @ w(width + 60, width))
    density = jax.nn.softplus(dense(w, x, 1))[..., 0].astype(jnp.float32) / at.shape[1]
    seen = jnp.broadcast_to(waves(direction, 4)[:, None], (*at.shape[:2], 24)).astype(w.dtype)
    shade = jax.nn.sigmoid(mlp(w, jnp.concatenate([dense(w, x, width), seen], -1), [width // 2, 3])).astype(jnp.float32)
    passed = jnp.exp(-(jnp.cumsum(density, -1) - density))
    return (((passed * (1 - jnp.exp(-density)))[..., None] * shade).sum(1) - colour).__pow__(2).mean()


# Sequences


def tokens_batch(batch=8, seq=512):
    return [i32(batch, seq), i32(batch, seq)]


def lstm(w, tokens, targets, width=512, layers=2, vocab=10000):
    x = w(vocab, width)[tokens].transpose(1, 0, 2)
    b = x.shape[1]
    for _ in range(layers):
        into, own, bias = w(width, 4 * width), w(width, 4 * width), w(4 * width)

        def cell(carry, at):
            h, c = carry
            i, f, g, o = jnp.split(at + h @ own, 4, -1)
            c = jax.nn.sigmoid(f + 1) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        zero = jnp.zeros((b, width), x.dtype)
        _, x = jax.lax.scan(cell, (zero, zero), x @ into + bias)
    return cross_entropy(dense(w, x.transpose(1, 0, 2), vocab), targets)


def gru(w, tokens, targets, width=256, vocab=8000):
    """An encoder and a decoder with dot attention over it."""

    def run(x, h):
        own, into = w(width, 3 * width), w(width, 3 * width)

        def cell(h, at):
            a, b = jnp.split(at, 3, -1), jnp.split(h @ own, 3, -1)
            z, r = jax.nn.sigmoid(a[0] + b[0]), jax.nn.sigmoid(a[1] + b[1])
            h = z * h + (1 - z) * jnp.tanh(a[2] + r * b[2])
            return h, h

        return jax.lax.scan(cell, h, x @ into)

    x, y = w(vocab, width)[tokens].transpose(1, 0, 2), w(vocab, width)[targets].transpose(1, 0, 2)
    last, heard = run(x, jnp.zeros(x.shape[1:], x.dtype))
    _, said = run(y, last)
    scores = jax.nn.softmax(jnp.einsum("qbd,kbd->bqk", said, heard).astype(jnp.float32)).astype(x.dtype)
    out = jnp.concatenate([said.transpose(1, 0, 2), jnp.einsum("bqk,kbd->bqd", scores, heard)], -1)
    return cross_entropy(dense(w, out, vocab), targets)


def mamba(w, tokens, targets, width=512, layers=2, state=16, vocab=32000, scan=True):
    """Selective state spaces: a scan over positions for each channel and state, by halves."""
    inside, rank = 2 * width, width // 16

    def ssm(w, x):
        step, b, c = jnp.split(x @ w(inside, rank + 2 * state), [rank, rank + state], -1)
        step = jax.nn.softplus(dense(w, step, inside)).astype(jnp.float32)
        decay = jnp.exp(step[..., None] * -jnp.exp(w(inside, state).astype(jnp.float32)))
        add = (step * x)[..., None] * b[:, :, None]
        join = lambda a, b: (a[0] * b[0], b[0] * a[1] + b[1])
        _, h = jax.lax.associative_scan(join, (decay, add.astype(jnp.float32)), axis=1)
        return (jnp.einsum("bsdn,bsn->bsd", h, c.astype(jnp.float32)) + x * w(inside)).astype(x.dtype)

    def layer(w, x):
        h, gate = jnp.split(dense(w, layer_norm(w, x), 2 * inside, bias=False), 2, -1)
        near = w(4, inside)
        late = [jnp.pad(h, ((0, 0), (3 - i, 0), (0, 0)))[:, : h.shape[1]] * near[i] for i in range(4)]
        h = jax.nn.silu(sum(late) + w(inside))
        return x + dense(w, ssm(w, h) * jax.nn.silu(gate), width, bias=False)

    table = w(vocab, width)
    x = w.stack(layers, layer, table[tokens], scan=scan)
    return cross_entropy(layer_norm(w, x) @ table.T, targets)


def lru(w, tokens, targets, width=256, layers=2, vocab=10000):
    """Linear recurrent units: a complex state that decays and rotates, as an associative scan over positions."""

    def layer(w, x):
        decay = jnp.exp(jax.lax.complex(-jnp.exp(w(width).astype(jnp.float32)), w(width).astype(jnp.float32)))
        h = layer_norm(w, x)
        add = jax.lax.complex(*(dense(w, h, width, bias=False).astype(jnp.float32) for _ in range(2)))
        join = lambda a, b: (a[0] * b[0], b[0] * a[1] + b[1])
        _, state = jax.lax.associative_scan(join, (jnp.broadcast_to(decay, add.shape), add), axis=1)
        seen = dense(w, jnp.concatenate([state.real, state.imag], -1).astype(x.dtype), width)
        return x + mlp(w, jax.nn.gelu(seen), [4 * width, width], jax.nn.gelu)

    table = w(vocab, width)
    return cross_entropy(layer_norm(w, w.stack(layers, layer, table[tokens])) @ table.T, targets)


def complex_scan(w, tokens, targets, width=256, layers=2, vocab=10000):
    """State spaces whose complex state goes from position to position in a loop."""

    def layer(w, x):
        decay = jnp.exp(jax.lax.complex(-jnp.exp(w(width).astype(jnp.float32)), w(width).astype(jnp.float32)))
        h = layer_norm(w, x)
        add = jax.lax.complex(*(dense(w, h, width, bias=False).astype(jnp.float32) for _ in range(2)))
        move = lambda state, u: ((state := decay * state + u), state)
        states = jax.lax.scan(move, jnp.zeros_like(add[:, 0]), add.swapaxes(0, 1))[1].swapaxes(0, 1)
        return x + dense(w, jnp.concatenate([states.real, states.imag], -1).astype(x.dtype), width)

    table = w(vocab, width)
    return cross_entropy(layer_norm(w, w.stack(layers, layer, table[tokens])) @ table.T, targets)


def self_taught(w, tokens, targets, width=256, vocab=50000):
    """A head that learns from its own most likely words where it was given none: an argmax over a large vocabulary."""
    table = w(vocab, width)
    logits = layer_norm(w, mlp(w, table[tokens], [4 * width, width], jax.nn.gelu)) @ table.T
    likely = jax.lax.stop_gradient(jnp.argmax(logits, -1))
    return cross_entropy(logits, jnp.where(targets < 0, likely, targets))


def sorted_experts(w, tokens, targets, width=512, hidden=1024, experts=8, chosen=2, vocab=16384):
    """Experts without a capacity: rows sorted by their expert, one ragged product for all of them."""
    table = w(vocab, width)
    x = table[tokens].reshape(-1, width)
    h = layer_norm(w, x)
    share, expert = jax.lax.top_k(jax.nn.softmax(dense(w, h, experts, bias=False).astype(jnp.float32)), chosen)
    order = jnp.argsort(expert.reshape(-1))
    rows, sizes = h[order // chosen], jnp.bincount(expert.reshape(-1), length=experts).astype(jnp.int32)
    inside = jax.nn.silu(jax.lax.ragged_dot(rows, w(experts, width, hidden), sizes))
    out = jax.lax.ragged_dot(inside, w(experts, hidden, width), sizes) * share.reshape(-1)[order][:, None].astype(x.dtype)
    x = x + jnp.zeros_like(x).at[order // chosen].add(out)
    return cross_entropy(layer_norm(w, x).reshape(*tokens.shape, width) @ table.T, targets)


def linear_attention(w, tokens, targets, width=512, layers=4, heads=8, block=64, vocab=32000):
    """Retention: attention inside a block of positions, a decaying state between blocks."""
    size, decay = width // heads, 1 - 2.0 ** (-5 - np.arange(heads))
    at = np.arange(block)
    inner = np.where(at[:, None] >= at, decay[:, None, None] ** np.maximum(at[:, None] - at, 0), 0).astype(np.float32)
    carry = [np.asarray(v, np.float32) for v in (decay[:, None] ** (at + 1), decay[:, None] ** (block - 1 - at), decay**block)]

    def retain(w, x):
        b, s, _ = x.shape
        cut = lambda t: t.reshape(b, s // block, block, heads, size).transpose(1, 0, 3, 2, 4)
        q, k, v = (cut(dense(w, x, width, bias=False)) for _ in range(3))

        def step(state, at):
            q, k, v = at
            y = jnp.einsum("bhqk,bhkd->bhqd", (jnp.einsum("bhqd,bhkd->bhqk", q, k) * inner).astype(q.dtype), v)
            y = y + jnp.einsum("bhqd,bhde->bhqe", (q * carry[0][:, :, None]).astype(q.dtype), state.astype(q.dtype))
            new = jnp.einsum("bhkd,bhke->bhde", (k * carry[1][:, :, None]).astype(q.dtype), v)
            return state * carry[2][:, None, None] + new, y

        _, y = jax.lax.scan(step, jnp.zeros((b, heads, size, size)), (q, k, v))
        y = y.transpose(1, 0, 3, 2, 4).reshape(b, s, width).astype(x.dtype)
        return dense(w, jax.nn.silu(dense(w, x, width)) * layer_norm(w, y), width, bias=False)

    def layer(w, x):
        x = x + retain(w, layer_norm(w, x))
        return x + mlp(w, layer_norm(w, x), [4 * width, width], jax.nn.gelu)

    table = w(vocab, width)
    return cross_entropy(layer_norm(w, w.stack(layers, layer, table[tokens], scan=True)) @ table.T, targets)


def t5(w, tokens, targets, width=512, heads=8, layers=6, vocab=32128, scan=True):
    """Encoder and decoder, no biases, gated gelu, RMS norms."""
    c = transformer.Config(width=width, heads=heads, norm="rms", bias=False)
    gated = lambda w, x: dense(w, jax.nn.gelu(dense(w, x, 2 * width, False)) * dense(w, x, 2 * width, False), width, False)
    norm = lambda w, x: transformer.norm(w, x, c)

    def encode(w, x):
        x = x + transformer.attention(w, norm(w, x), None, c)
        return x + gated(w, norm(w, x))

    table = w(vocab, width)
    heard = norm(w, w.stack(layers, encode, table[tokens], scan=scan))

    def decode(w, x):
        x = x + transformer.attention(w, norm(w, x), transformer.causal(x.shape[1]), c)
        x = x + transformer.attention(w, norm(w, x), None, c, heard)
        return x + gated(w, norm(w, x))

    y = norm(w, w.stack(layers, decode, table[targets], scan=scan))
    return cross_entropy(y @ table.T, targets)


def speech_batch(batch=8, frames=800, length=60):
    return [f32(batch, frames, 80), f32(batch, frames // 4), i32(batch, length), f32(batch, length)]


def speech(w, sound, sound_gaps, text, text_gaps, width=256, layers=6, letters=64):
    """Convolutions that shorten, a transformer, and CTC: which letters, whenever they come."""
    x = sound.astype(w.dtype)[..., None]
    for _ in range(2):
        x = jax.nn.relu(conv(w, x, 64, stride=2) + w(64))
    b, s = x.shape[:2]
    c = transformer.Config(layers=layers, width=width, heads=4, scan=True)
    x = transformer.layers(w, dense(w, x.reshape(b, s, -1), width) + w(s, width), None, c)
    logits = dense(w, layer_norm(w, x), letters).astype(jnp.float32)
    return optax.ctc_loss(logits, sound_gaps, text, text_gaps).mean()


# Graphs, recommendations, games


def graph_batch(nodes=4096, edges=32768, width=128):
    return [f32(nodes, width), i32(edges), i32(edges), i32(nodes)]


def graph(w, x, source, target, labels, width=256, layers=3, classes=40):
    """Messages along edges, summed where they arrive."""
    x = x.astype(w.dtype)
    for _ in range(layers):
        told = jax.ops.segment_sum(x[source], target, x.shape[0])
        x = jax.nn.relu(layer_norm(w, dense(w, x, width) + dense(w, told, width)))
    return cross_entropy(dense(w, x, classes), labels)


def words_batch(batch=8192, others=16):
    return [i32(batch), i32(batch), i32(batch, others)]


def words(w, centre, near, far, vocab=50000, width=128):
    """Vectors of words by what is near: only a few rows of two tables get gradients."""
    a, b = w(vocab, width)[centre], w(vocab, width)
    right = jax.nn.log_sigmoid((a * b[near]).sum(-1))
    wrong = jax.nn.log_sigmoid(-jnp.einsum("nd,nkd->nk", a, b[far])).sum(-1)
    return -(right + wrong).astype(jnp.float32).mean()


def towers_batch(batch=4096, fields=12):
    return [i32(batch, fields), i32(batch, fields)]


def towers(w, user, item, rows=20000, width=32):
    """Two towers over tables of categories, each user with its own item among all of the batch."""
    side = lambda picks: mlp(w, w(rows, width)[picks].reshape(picks.shape[0], -1), [256, 128, 64])
    scores = (side(user) @ side(item).T).astype(jnp.float32)
    return cross_entropy(scores, jnp.arange(user.shape[0]))


def ppo_batch(batch=4096, seen=64):
    return [f32(batch, seen), i32(batch), f32(batch), f32(batch), f32(batch)]


def ppo(w, seen, action, old, advantage, gain, actions=18):
    """The clipped objective of an actor, its entropy, and a critic's error."""
    h = mlp(w, seen.astype(w.dtype), [256, 256], jnp.tanh)
    chance = jax.nn.log_softmax(dense(w, jnp.tanh(h), actions).astype(jnp.float32))
    value = dense(w, jnp.tanh(h), 1)[:, 0].astype(jnp.float32)
    ratio = jnp.exp(jnp.take_along_axis(chance, action[:, None], 1)[:, 0] - old)
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    actor = jnp.minimum(ratio * advantage, jnp.clip(ratio, 0.8, 1.2) * advantage).mean()
    return 0.5 * ((value - gain) ** 2).mean() - actor + 0.01 * (jnp.exp(chance) * chance).sum(-1).mean()


def atari_batch(batch=64, side=84):
    return [f32(batch, side, side, 4), f32(batch, side, side, 4), i32(batch), f32(batch)]


def atari(w, seen, then, action, gain, actions=18):
    """Q-learning from screens."""
    kernels = [w(8, 8, 4, 32), w(4, 4, 32, 64), w(3, 3, 64, 64)]
    first, second = w(7744, 512), w(512, actions)

    def value(x):
        for kernel, stride in zip(kernels, (4, 2, 1)):
            x = jax.nn.relu(
                jax.lax.conv_general_dilated(x, kernel, (stride,) * 2, "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            )
        return jax.nn.relu(x.reshape(x.shape[0], -1) @ first) @ second

    now = jnp.take_along_axis(value(seen.astype(w.dtype)), action[:, None], 1)[:, 0]
    goal = gain + 0.99 * jax.lax.stop_gradient(value(then.astype(w.dtype)).max(-1))
    return optax.huber_loss(now.astype(jnp.float32), goal.astype(jnp.float32)).mean()
