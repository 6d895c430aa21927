# SPDX-License-Identifier: Apache-2.0
"""Programs of one device, lowered without any data: a micro-batch through some layers and back, and the optimizer.

Only this file and model.py need JAX.
"""

import functools
import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")
import jax
import jax.numpy as jnp

from opentrn._predict import groups, model, replicas
from opentrn._predict.spec import CLIPPED

TYPES = {"fp32": jnp.float32, "bf16": jnp.bfloat16}
AXES = ("dp", "ep", "cp", "tp")


@functools.lru_cache(None)
def weights(kind, n, m, u, dtype="bf16"):
    """The weights of a piece, in the order it asks for them."""
    run, batch, _, _ = model.piece(kind, n, m, u, TYPES[dtype])
    seen = model.Weights(dtype=TYPES[dtype], adapted=u.lora > 0)
    _over(u, lambda *batch: run(seen, *batch), batch, trace=True)
    return seen.seen


def _over(u, step, args, trace=False, **jit):
    """step on each device of a mesh: every argument is a device's own, so all of them together are so many times as long."""
    if u.devices == 1:
        return jax.eval_shape(step, *args) if trace else _lower(step, args, jit)
    from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec

    mesh = AbstractMesh((u.replicas, u.ep, u.cp, u.tp), AXES)
    spec = lambda v: PartitionSpec(AXES) if v.ndim else PartitionSpec()
    wide = lambda v: jax.ShapeDtypeStruct((u.devices * v.shape[0], *v.shape[1:]) if v.ndim else (), v.dtype, sharding=NamedSharding(mesh, spec(v)))

    def alone(*args):
        return jax.tree.map(lambda v: jnp.reshape(v, (1,)) if v.ndim == 0 else v, step(*args))

    spread = jax.shard_map(alone, mesh=mesh, in_specs=jax.tree.map(spec, tuple(args)), out_specs=PartitionSpec(AXES), check_vma=False)
    args = jax.tree.map(wide, args)
    return jax.eval_shape(spread, *args) if trace else _lower(spread, args, jit)


def _lower(step, args, jit):
    traced = jax.jit(step, keep_unused=True, **jit).trace(*args)
    with groups.by_axes():
        return traced.lower(lowering_platforms=("cpu",)).as_text()


def held(tree, u, sharded):
    """Shapes of weights on a device: whole, or its part of each."""
    return [replicas.part(u, v.shape, v.expert) if sharded else v.shape for v in tree]


def _like(shapes, dtype):
    return [jax.ShapeDtypeStruct(s, dtype) for s in shapes]


def pulled(tree, u, sums):
    """Gradients as a micro-batch leaves them: where replicas have met, their sum, or each device's part of it; with ZeRO-3 they have, layer by layer."""
    meet = met(u) if u.meet and u.zero < 3 else lambda v, g: g
    return lambda found: [meet(v, g.astype(sums)) for v, g in zip(tree, found)]


def met(u):
    """How replicas' gradients meet."""
    return (lambda v, g: replicas.scatter(u, v.expert, g)) if u.zero else lambda v, g: replicas.total(u, v.expert, g)


def handed(u, sums, compute):
    """Weights of a program, whole or in parts."""
    return lambda given, key=None: replicas.Gathered(u, sums, given, compute, key) if u.zero == 3 else model.Weights(given, compute, key)


def micro(kind, n, m, u, types, accumulate, squares=False):
    """Forward and backward of a piece; accumulate: gradients are added to those of the micro-batches before; squares: they are whole, so their norm
    is begun here, where there is other work beside it."""
    return _micro(kind, n, m, u, types, accumulate, squares, False)


def forward(kind, n, m, u, types):
    """The way there alone, with what the way back needs."""
    return _micro(kind, n, m, u, types, False, False, True)


def _micro(kind, n, m, u, types, accumulate, squares, only_there):
    compute, store, sums = (TYPES[t] for t in types)
    run, batch, inward, is_loss = model.piece(kind, n, m, u, compute)
    tree = weights(kind, n, m, u, types[0])
    params = _like(held(tree, u, u.zero == 3), store)
    learned = [i for i, v in enumerate(tree) if not v.frozen]
    pull_in, hand = pulled([tree[i] for i in learned], u, sums), handed(u, sums, compute)
    grads = _like(held([tree[i] for i in learned], u, u.zero > 1), sums) if accumulate else []
    key = [jax.eval_shape(lambda: jax.random.key_data(jax.random.key(0, impl="rbg")))] if m.dropout or m.score_dropout else []
    out = [] if is_loss else [model.handed_on(kind, m, u, compute)]

    def step(params, before, batch, back, key):
        key = jax.random.wrap_key_data(key[0], impl="rbg") if key else None

        def value(changing, *batch):
            full = list(params)
            for i, v in zip(learned, changing):
                full[i] = v
            return run(hand(full, key), *batch)

        changing = [params[i] for i in learned]
        result, pull = jax.vjp(lambda c, x: value(c, x, *batch[1:]) if inward else value(c, *batch), changing, batch[0] if inward else ())
        if only_there:
            return result, [v for v in jax.tree.leaves(pull) if v.dtype != jax.dtypes.float0]
        found, inner = pull(back[0] if back else jnp.float32(1))
        found = pull_in(found)
        if before:
            found = [t + g for t, g in zip(before, found)]
        return found, result, inner if inward else (), square(found) if squares else ()

    return _over(u, step, (params, grads, batch, out, key), donate_argnums=(1,))


# The optimizer: weights, two moments and gradients to weights and moments, clipped by the norm of all gradients. All of it has the type of the weights it
# changes, as torch's and optax's have: of fp32 ones where they are kept beside bf16.


def _grown(share, count, moment):
    return (1 - share**count).astype(moment.dtype)


def _adamw(p, g, s, count, norm):
    m, v = 0.9 * s[0] + 0.1 * g, 0.95 * s[1] + 0.05 * g * g
    step = (m / _grown(0.9, count, m)) / (jnp.sqrt(v / _grown(0.95, count, v)) + 1e-8)
    return p - 3e-4 * (step + 0.1 * p), (m, v)


def _lamb(p, g, s, count, norm):
    m, v = 0.9 * s[0] + 0.1 * g, 0.999 * s[1] + 0.001 * g * g
    step = (m / _grown(0.9, count, m)) / (jnp.sqrt(v / _grown(0.999, count, v)) + 1e-6) + 0.01 * p
    size, long = jnp.sqrt((p * p).sum()), jnp.sqrt((step * step).sum())
    return p - 1e-3 * jnp.where((size > 0) & (long > 0), size / long, 1.0) * step, (m, v)


def _sgd(p, g, s, count, norm):
    m = 0.9 * s[0] + g
    return p - 0.1 * m, (m,)


OPTIMIZERS = {"adamw": (_adamw, 2), "lamb": (_lamb, 2), "sgd": (_sgd, 1)}  # rule, moments


def moving(types, master):
    """The type in which weights move."""
    return jnp.float32 if master else TYPES[types[1]]


def square(grads):
    """A device's share of the square of their norm."""
    return sum(jnp.square(g.astype(jnp.float32)).sum() for g in grads)


def updated(tree, u, optimizer, types, master):
    """The update as a function of what a device has of weights, moments and gradients, the count of steps, and where it is known the square of the
    gradients; master: fp32 weights beside those stored."""
    store, kind = TYPES[types[1]], moving(types, master)
    rule, _ = OPTIMIZERS[optimizer]
    meet = (lambda v, g: g) if u.meet else met(u)
    back = (lambda v, p: replicas.gather(u, v, p)) if u.zero in (1, 2) else lambda v, p: p
    over = tuple(k for k, n in zip(AXES, (u.replicas, u.ep, u.cp, u.tp)) if n > 1 and (u.zero or k == "tp"))  # who has other weights than others

    def step(held, state, grads, count, known=None):
        grads = [meet(v, g).astype(kind) for v, g in zip(tree, grads)]
        if optimizer in CLIPPED:
            known = square(grads) if known is None else known
            norm = jnp.sqrt(jax.lax.psum(known, over) if over else known)
            grads = [g * jnp.minimum(1.0, 1.0 / (norm + 1e-6)).astype(kind) for g in grads]
        new, after = [], []
        for p, g, *s in zip(held, grads, *state):
            p, s = rule(p, g, s, count, None)
            new.append(p)
            after.append(s)
        stored = [back(v, p.astype(store)) for v, p in zip(tree, new)]
        return (new if master else stored), [list(s) for s in zip(*after)], (stored if master else [])

    return step


def update(kind, n, m, u, optimizer, types, master, accumulate=False, squares=False):
    """Gradients of a piece reduced over the replicas, the optimizer, weights gathered; accumulate: and the zeros to which the next step's are added;
    squares: the square of their norm is known."""
    tree = [v for v in weights(kind, n, m, u, types[0]) if not v.frozen]
    sums = TYPES[types[2]]
    mine, count = held(tree, u, u.zero > 0), jax.ShapeDtypeStruct((), jnp.float32)
    state = [_like(mine, moving(types, master)) for _ in range(OPTIMIZERS[optimizer][1])]
    args = (_like(mine, moving(types, master)), state, _like(held(tree, u, u.meet and u.zero > 0), sums), count, count if squares else None)
    rule = updated(tree, u, optimizer, types, master)

    def step(held, state, grads, count, known):
        return rule(held, state, grads, count, known), [jnp.zeros_like(g) for g in grads] if accumulate else []

    return _over(u, step, args, donate_argnums=(0, 1, 2) if accumulate else (0, 1))
