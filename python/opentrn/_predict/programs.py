# SPDX-License-Identifier: Apache-2.0
"""Programs of one device, lowered without any data: a micro-batch through some layers and back, and the optimizer.

Only this file and model.py need JAX.
"""

import functools
import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")
import jax
import jax.numpy as jnp

from opentrn._predict import model

TYPES = {"fp32": jnp.float32, "bf16": jnp.bfloat16}


@functools.lru_cache(None)
def weights(kind, n, m, u, dtype="bf16"):
    """The weights of a piece, in the order it asks for them."""
    run, batch, _, _ = model.piece(kind, n, m, u, TYPES[dtype])
    seen = model.Weights(dtype=TYPES[dtype])
    _over(u, lambda *batch: run(seen, *batch), batch, trace=True)
    return seen.seen


def _over(u, step, args, trace=False, **jit):
    """step on each device of a mesh: every argument is a device's own, so all of them together are so many times as long."""
    if u.devices == 1:
        return jax.eval_shape(step, *args) if trace else _lower(step, args, jit)
    from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec

    mesh = AbstractMesh((u.ep, u.cp, u.tp), ("ep", "cp", "tp"))
    spec = PartitionSpec(("ep", "cp", "tp"))
    wide = lambda v: jax.ShapeDtypeStruct((u.devices * v.shape[0], *v.shape[1:]), v.dtype, sharding=NamedSharding(mesh, spec))

    def alone(*args):
        return jax.tree.map(lambda v: jnp.reshape(v, (1,)) if v.ndim == 0 else v, step(*args))

    spread = jax.shard_map(alone, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
    args = jax.tree.map(wide, args)
    return jax.eval_shape(spread, *args) if trace else _lower(spread, args, jit)


def _lower(step, args, jit):
    return jax.jit(step, keep_unused=True, **jit).trace(*args).lower(lowering_platforms=("cpu",)).as_text()


def micro(kind, n, m, u, types, accumulate):
    """Forward and backward of a piece; accumulate: gradients are added to those of the micro-batches before."""
    compute, store, sums = (TYPES[t] for t in types)
    run, batch, inward, is_loss = model.piece(kind, n, m, u, compute)
    tree = weights(kind, n, m, u, types[0])
    params = [jax.ShapeDtypeStruct(v.shape, store) for v in tree]
    learned = [i for i, v in enumerate(tree) if not v.frozen]
    grads = [jax.ShapeDtypeStruct(tree[i].shape, sums) for i in learned] if accumulate else []
    key = [jax.eval_shape(lambda: jax.random.key_data(jax.random.key(0, impl="rbg")))] if m.dropout else []
    out = [] if is_loss else [_result(run, batch, m, u, compute)]

    def step(params, before, batch, back, key):
        key = jax.random.wrap_key_data(key[0], impl="rbg") if key else None

        def value(changing, *batch):
            full = list(params)
            for i, v in zip(learned, changing):
                full[i] = v
            return run(model.Weights(full, compute, key), *batch)

        changing = [params[i] for i in learned]
        result, pull = jax.vjp(lambda c, x: value(c, x, *batch[1:]) if inward else value(c, *batch), changing, batch[0] if inward else ())
        found, inner = pull(back[0] if back else jnp.float32(1))
        found = [g.astype(sums) for g in found]
        if before:
            found = [t + g for t, g in zip(before, found)]
        return found, result, inner if inward else ()

    return _over(u, step, (params, grads, batch, out, key), donate_argnums=(1,))


def _result(run, batch, m, u, dtype):
    """Shape of what a stage hands on: as its input, or as the stage behind it takes it."""
    return jax.ShapeDtypeStruct((u.batch, u.seq // u.cp // (u.tp if u.sp else 1), m.width), dtype)


# The optimizer: weights, two moments and gradients to weights and moments, clipped by the norm of all gradients


def _adamw(p, g, s, count, norm):
    m, v = 0.9 * s[0] + 0.1 * g, 0.95 * s[1] + 0.05 * g * g
    step = (m / (1 - 0.9**count)) / (jnp.sqrt(v / (1 - 0.95**count)) + 1e-8)
    return p - 3e-4 * (step + 0.1 * p), (m, v)


def _lamb(p, g, s, count, norm):
    m, v = 0.9 * s[0] + 0.1 * g, 0.999 * s[1] + 0.001 * g * g
    step = (m / (1 - 0.9**count)) / (jnp.sqrt(v / (1 - 0.999**count)) + 1e-6) + 0.01 * p
    size, long = jnp.sqrt((p * p).sum()), jnp.sqrt((step * step).sum())
    return p - 1e-3 * jnp.where((size > 0) & (long > 0), size / long, 1.0) * step, (m, v)


def _sgd(p, g, s, count, norm):
    m = 0.9 * s[0] + g
    return p - 0.1 * m, (m,)


OPTIMIZERS = {"adamw": (_adamw, 2, True), "lamb": (_lamb, 2, False), "sgd": (_sgd, 1, False)}  # rule, moments, clipped


def update(shapes, optimizer, types, master):
    """The optimizer alone over weights of these shapes; master: fp32 weights beside those stored."""
    _, store, sums = (TYPES[t] for t in types)
    rule, moments, clipped = OPTIMIZERS[optimizer]
    like = lambda dtype: [jax.ShapeDtypeStruct(s, dtype) for s in shapes]
    held, state = like(jnp.float32 if master else store), [like(jnp.float32) for _ in range(moments)]
    count = jax.ShapeDtypeStruct((), jnp.float32)

    def step(held, state, grads, count):
        wide = [g.astype(jnp.float32) for g in grads]
        if clipped:
            norm = jnp.sqrt(sum((g * g).sum() for g in wide))
            wide = [g * jnp.minimum(1.0, 1.0 / (norm + 1e-6)) for g in wide]
        new, after = [], []
        for p, g, *s in zip(held, wide, *state):
            p, s = rule(p.astype(jnp.float32), g, s, count, None)
            new.append(p)
            after.append(s)
        stored = [p.astype(store) for p in new]
        return (new if master else stored), [list(s) for s in zip(*after)], (stored if master else [])

    return _lower(step, (held, state, like(sums), count), dict(donate_argnums=(0, 1)))
