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


class Passes:
    """A micro-batch through a piece, forward and backward, as functions of what one device has; and the shapes of that."""

    def __init__(self, kind, n, m, u, types):
        self.compute, self.store, self.sums = (TYPES[t] for t in types)
        self.run, self.batch, self.inward, is_loss = model.piece(kind, n, m, u, self.compute)
        tree = weights(kind, n, m, u, types[0])
        self.learned = [i for i, v in enumerate(tree) if not v.frozen]
        self.tree = [tree[i] for i in self.learned]
        self.params = _like(held(tree, u, u.zero == 3), self.store)
        self.hand, self.pull_in = handed(u, self.sums, self.compute), pulled(self.tree, u, self.sums)
        self.key = [jax.eval_shape(lambda: jax.random.key_data(jax.random.key(0, impl="rbg")))] if m.dropout or m.score_dropout else []
        self.out = [] if is_loss else [model.handed_on(kind, m, u, self.compute)]

    def changed(self, params, new):
        """Weights with others in the place of those that learn."""
        full = list(params)
        for i, v in zip(self.learned, new):
            full[i] = v
        return full

    def there(self, params, batch, key):
        """What it makes, and the way back."""
        key = jax.random.wrap_key_data(key[0], impl="rbg") if key else None
        value = lambda changing, *batch: self.run(self.hand(self.changed(params, changing), key), *batch)
        changing = [params[i] for i in self.learned]
        return jax.vjp(lambda c, x: value(c, x, *batch[1:]) if self.inward else value(c, *batch), changing, batch[0] if self.inward else ())

    def back(self, pull, given=()):
        """Gradients of weights, as a micro-batch leaves them, and of what came in."""
        found, inner = pull(given[0] if given else jnp.float32(1))
        return self.pull_in(found), inner if self.inward else ()


def micro(kind, n, m, u, types, accumulate):
    """Forward and backward of a piece; accumulate: gradients are added to those of the micro-batches before."""
    p = Passes(kind, n, m, u, types)
    grads = _like(held(p.tree, u, u.zero > 1), p.sums) if accumulate else []

    def run(params, before, batch, out, key):
        result, pull = p.there(params, batch, key)
        found, inner = p.back(pull, out)
        return [t + g for t, g in zip(before, found)] if before else found, result, inner

    return _over(u, run, (p.params, grads, p.batch, p.out, p.key), donate_argnums=(1,))


def forward(kind, n, m, u, types):
    """The way there alone, with what the way back needs."""
    p = Passes(kind, n, m, u, types)

    def run(params, batch, key):
        result, pull = p.there(params, batch, key)
        return result, [v for v in jax.tree.leaves(pull) if v.dtype != jax.dtypes.float0]

    return _over(u, run, (p.params, p.batch, p.key))


def step(kind, n, m, u, types, optimizer, master, micros=1):
    """A whole step of a piece: micro-batches, one after the other, and the update."""
    p, several = Passes(kind, n, m, u, types), micros > 1
    update = updated(p.tree, u, optimizer, types, master)

    def micro(params, batch, key):
        result, pull = p.there(params, batch, key)
        return p.back(pull)[0], result

    def run(own, rest, wide, state, batch, key, count):
        params = p.changed(rest, own)
        if several:  # libraries begin the next when one is done
            add = lambda before, given: (lambda found: ([a + b for a, b in zip(before, found[0])], found[1]))(micro(params, *given))
            found, result = jax.lax.scan(add, [jnp.zeros(s, p.sums) for s in held(p.tree, u, u.zero > 1)], (batch, key))
        else:
            found, result = micro(params, batch, key)
        if u.zero in (1, 2):
            own = [replicas.own(u, v, w) for v, w in zip(p.tree, own)]
        new, state, stored = update(wide or own, state, found, count)
        return stored if master else new, new if master else [], state, result.sum()

    mine = _like(held(p.tree, u, u.zero > 0), moving(types, master))
    given = lambda shapes: [jax.ShapeDtypeStruct((micros, *v.shape), v.dtype) for v in shapes] if several else shapes
    own, rest = [p.params[i] for i in p.learned], [None if i in p.learned else v for i, v in enumerate(p.params)]
    args = (own, rest, mine if master else [], [mine] * OPTIMIZERS[optimizer][1], given(p.batch), given(p.key), jax.ShapeDtypeStruct((), jnp.float32))
    return _over(u, run, args, donate_argnums=(0, 2, 3))


# The optimizer: weights, two moments and gradients to weights and moments, clipped by the norm of all gradients. All of it has the type of the weights it
# changes, as torch's and optax's have: of fp32 ones where they are kept beside bf16.


def _grown(share, count, moment):
    return jnp.asarray(1 - share**count, moment.dtype)


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


def updated(tree, u, optimizer, types, master):
    """The update as a function of what a device has of weights, moments and gradients, and the count of steps; master: fp32 weights beside those stored."""
    store, kind = TYPES[types[1]], moving(types, master)
    rule, _ = OPTIMIZERS[optimizer]
    meet = (lambda v, g: g) if u.meet else met(u)
    back = (lambda v, p: replicas.gather(u, v, p)) if u.zero in (1, 2) else lambda v, p: p
    over = tuple(k for k, n in zip(AXES, (u.replicas, u.ep, u.cp, u.tp)) if n > 1 and (u.zero or k == "tp"))  # who has other weights than others

    def step(held, state, grads, count):
        grads = [meet(v, g).astype(kind) for v, g in zip(tree, grads)]
        if optimizer in CLIPPED:
            known = sum(jnp.square(g.astype(jnp.float32)).sum() for g in grads)
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


def update(kind, n, m, u, optimizer, types, master, accumulate=False):
    """Gradients of a piece reduced over the replicas, the optimizer, weights gathered; accumulate: and the zeros to which the next step's are added."""
    tree = [v for v in weights(kind, n, m, u, types[0]) if not v.frozen]
    sums = TYPES[types[2]]
    mine, count = held(tree, u, u.zero > 0), jax.ShapeDtypeStruct((), jnp.float32)
    state = [_like(mine, moving(types, master)) for _ in range(OPTIMIZERS[optimizer][1])]
    args = (_like(mine, moving(types, master)), state, _like(held(tree, u, u.meet and u.zero > 0), sums), count)
    rule = updated(tree, u, optimizer, types, master)

    def step(held, state, grads, count):
        return rule(held, state, grads, count), [jnp.zeros_like(g) for g in grads] if accumulate else []

    return _over(u, step, args, donate_argnums=(0, 1, 2) if accumulate else (0, 1))
