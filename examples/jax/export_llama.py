# SPDX-License-Identifier: Apache-2.0
"""Exports one training step of a Llama-like model over several devices: forward, backward, AdamW, with shardings.

    python examples/jax/export_llama.py --out=build/llama --data=4 --model=8
    build/otrn prof build/llama/llama.mlir --instance=trn1.32xlarge --tokens=8192

The default has Llama 3.2 1B's sizes on 32 devices: batches are cut over `data`, heads, hidden units and the vocabulary over
`model`; JAX writes the shardings into the program and the compiler cuts it. RMS norms, rotary positions, grouped queries,
SwiGLU; weights and AdamW's moments are fp32, products bf16 unless --dtype=fp32. There is no data: only the program is written.
"""

import argparse
import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")


def options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    sizes = dict(batch=4, seq=2048, layers=16, width=2048, heads=32, kv=8, hidden=8192, vocab=128256, data=4, model=8)
    for key, value in sizes.items():
        parser.add_argument(f"--{key}", type=int, default=value)
    parser.add_argument("--dtype", choices=("fp32", "bf16"), default="bf16")
    parser.add_argument("--out", default="build/llama")
    return parser.parse_args()


O = options()
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={O.data * O.model}"
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import export_common

HEAD = O.width // O.heads
DTYPE = {"fp32": jnp.float32, "bf16": jnp.bfloat16}[O.dtype]
LAYER = {  # shape, how it is cut
    "norm1": ((O.width,), P()),
    "q": ((O.width, O.heads, HEAD), P(None, "model", None)),
    "k": ((O.width, O.kv, HEAD), P(None, "model", None)),
    "v": ((O.width, O.kv, HEAD), P(None, "model", None)),
    "out": ((O.heads, HEAD, O.width), P("model", None, None)),
    "norm2": ((O.width,), P()),
    "gate": ((O.width, O.hidden), P(None, "model")),
    "up": ((O.width, O.hidden), P(None, "model")),
    "down": ((O.hidden, O.width), P("model", None)),
}
PARAMS = {
    "embed": ((O.vocab, O.width), P("model", None)),
    "layers": [LAYER] * O.layers,
    "norm": ((O.width,), P()),
}
is_leaf = lambda v: isinstance(v, tuple)


def rms_norm(x, g):
    wide = x.astype(jnp.float32)
    return (wide * jax.lax.rsqrt((wide * wide).mean(-1, keepdims=True) + 1e-5)).astype(x.dtype) * g


def rotate(x):
    angle = np.arange(O.seq)[:, None] / 500000 ** (np.arange(0, HEAD, 2) / HEAD)
    cos, sin = (f(angle)[None, :, None].astype(x.dtype) for f in (np.cos, np.sin))
    a, b = jnp.split(x, 2, -1)
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


def attention(p, x):
    q, k, v = (jnp.einsum("bsw,whd->bshd", x, p[name]) for name in ("q", "k", "v"))
    q, k = rotate(q), rotate(k)
    k, v = (jnp.repeat(t, O.heads // O.kv, axis=2) for t in (k, v))
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(jnp.float32) / np.float32(np.sqrt(HEAD))
    scores = jnp.where(jnp.tril(jnp.ones((O.seq, O.seq), bool)), scores, np.float32(-np.inf))
    y = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, axis=-1).astype(x.dtype), v)
    return jnp.einsum("bqhd,hdw->bqw", y, p["out"])


def loss_fn(params, tokens, targets):
    params = jax.tree.map(lambda p: p.astype(DTYPE), params)
    x = params["embed"][tokens]
    for p in export_common.layers(params["layers"]):
        x = x + attention(p, rms_norm(x, p["norm1"]))
        h = rms_norm(x, p["norm2"])
        x = x + (jax.nn.silu(h @ p["gate"]) * (h @ p["up"])) @ p["down"]
    logits = (rms_norm(x, params["norm"]) @ params["embed"].T).astype(jnp.float32)
    return optax.softmax_cross_entropy_with_integer_labels(logits, targets).mean()


def main():
    mesh = Mesh(np.array(jax.devices()).reshape(O.data, O.model), ("data", "model"))
    typed = lambda shape, spec, dtype: jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, spec))
    params = jax.tree.map(lambda v: typed(*v, jnp.float32), PARAMS, is_leaf=is_leaf)
    tokens = typed((O.batch, O.seq), P("data", None), jnp.int32)
    optimizer = optax.adamw(3e-4, b2=0.95, weight_decay=0.1)
    state = jax.eval_shape(optimizer.init, params)
    like = {leaf.shape: leaf.sharding for leaf in jax.tree.leaves(params)}
    whole = NamedSharding(mesh, P())
    state = jax.tree.map(lambda s: jax.ShapeDtypeStruct(s.shape, s.dtype, sharding=like.get(s.shape, whole)), state)
    shardings = lambda tree: jax.tree.map(lambda s: s.sharding, tree)

    def step(params, state, tokens, targets):
        loss, grads = jax.value_and_grad(loss_fn)(params, tokens, targets)
        with jax.named_scope("optimizer"):
            updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, loss

    jitted = jax.jit(
        step, donate_argnums=(0, 1), keep_unused=True, out_shardings=(shardings(params), shardings(state), whole)
    )
    text = export_common.save(jitted.lower(params, state, tokens, tokens), (), O.out, "llama", inputs=False)
    count = sum(np.prod(leaf.shape) for leaf in jax.tree.leaves(params))
    print(f"{O.out}/llama.mlir: {count / 1e6:.1f}M parameters on {O.data} x {O.model} devices, {len(text) / 1e3:.0f} kB of text")


if __name__ == "__main__":
    main()
