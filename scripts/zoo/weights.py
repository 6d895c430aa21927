# SPDX-License-Identifier: Apache-2.0
"""Models as plain functions of numbered weights, and their training steps, lowered without any data.

A model is a function loss(w, *batch). It asks w(3, 4) for a weight of that shape where it needs one: a first trace collects the
shapes, the traces behind it hand out what the step was given, in the same order. w.stack runs a layer n times, as a scan over
stacked weights or repeated, so both forms of a model are one text.
"""

import dataclasses
import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")
import jax
import jax.numpy as jnp
import optax
import optax.contrib

TYPES = {"fp32": jnp.float32, "bf16": jnp.bfloat16}


@dataclasses.dataclass(frozen=True)
class Weight:
    shape: tuple


class Weights:
    def __init__(self, given=None, dtype=jnp.float32, key=None):
        self.given, self.dtype, self.key = given if given is None else iter(given), dtype, key
        self.tree = []

    def __call__(self, *shape):
        if self.given is not None:
            return next(self.given).astype(self.dtype)
        self.tree.append(Weight(shape))
        return jnp.zeros(shape, self.dtype)

    def drop(self, x, percent):
        """Dropout, every call with a key of its own; nothing without a key."""
        if self.key is None or not percent:
            return x
        self.key, key = jax.random.split(self.key)
        kept = jax.random.bernoulli(key, 1 - percent / 100, x.shape)
        return jnp.where(kept, x / (1 - percent / 100), 0).astype(x.dtype)

    def stack(self, n, layer, x, scan=False, remat=False):
        """x through layer(w, x) n times, each with weights of its own; x may be any tree, what layer returns is alike."""
        if self.given is None:
            one = Weights(dtype=self.dtype)
            x = layer(one, x)
            stacked = lambda v: Weight((n, *v.shape))
            self.tree.append(jax.tree.map(stacked, one.tree) if scan else [one.tree] * n)
            return x

        def run(x, at):
            weights, key = at
            return layer(Weights(weights, self.dtype, key), x)

        run = jax.checkpoint(run) if remat else run
        keys = None
        if self.key is not None:
            self.key, key = jax.random.split(self.key)
            keys = jax.random.split(key, n)
        layers = next(self.given)
        if scan:
            return jax.lax.scan(lambda x, at: (run(x, at), None), x, (layers, keys))[0]
        for i, weights in enumerate(layers):
            x = run(x, (weights, None if keys is None else keys[i]))
        return x


OPTIMIZERS = {
    "adamw": lambda: optax.adamw(3e-4, b2=0.95, weight_decay=0.1),
    "adamw clipped": lambda: optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(3e-4, b2=0.95, weight_decay=0.1)),
    "sgd": lambda: optax.sgd(0.1, momentum=0.9),
    "lion": lambda: optax.lion(1e-4, weight_decay=0.1),
    "adafactor": lambda: optax.adafactor(1e-3),
    "lamb": lambda: optax.lamb(1e-3, weight_decay=0.01),
    "muon": lambda: optax.contrib.muon(1e-3),
}


def collect(loss, batch, dtype):
    """The weights of a model, as a tree of Weight."""
    w = Weights(dtype=dtype)
    jax.eval_shape(lambda *batch: loss(w, *batch), *batch)
    return w.tree


def lower(loss, batch, optimizer="adamw", compute="fp32", store="fp32", prng=None, micro=1):
    """The lowered training step of a model: loss, gradients, optimizer. batch: ShapeDtypeStructs of one micro-batch.

    compute: type of products and activations; store: of weights between steps. prng: kind of the key that dropout draws
    from, the step's last argument. micro: micro-batches whose gradients are added, in fp32, by a loop in the step. optimizer None: one
    micro-step of many, which adds its gradients to those it is given, in the weights' type, and leaves the weights alone.
    """
    rule = OPTIMIZERS[optimizer]() if optimizer else optax.identity()
    tree = collect(loss, batch, TYPES[compute])
    params = jax.tree.map(lambda v: jax.ShapeDtypeStruct(v.shape, TYPES[store]), tree)
    wide = jax.tree.map(lambda v: jax.ShapeDtypeStruct(v.shape, jnp.float32), tree)  # moments
    state = jax.eval_shape(rule.init, wide)
    if micro > 1:
        batch = [jax.ShapeDtypeStruct((micro, *b.shape), b.dtype) for b in batch]
    key = () if prng is None else (jax.eval_shape(lambda: jax.random.key_data(jax.random.key(0, impl=prng))),)

    def value(params, key, *batch):
        return loss(Weights(params, TYPES[compute], key), *batch)

    def gradients(params, key, *batch):
        if micro == 1:
            return jax.value_and_grad(value)(params, key, *batch)

        def add(total, at):
            return jax.tree.map(lambda t, g: t + g.astype(t.dtype), total, jax.value_and_grad(value)(params, key, *at)), None

        zero = jnp.float32(0), jax.tree.map(lambda v: jnp.zeros(v.shape, jnp.float32), params)
        return jax.tree.map(lambda t: t / micro, jax.lax.scan(add, zero, tuple(batch))[0])

    def step(params, state, *rest):
        at = len(batch)
        key = jax.random.wrap_key_data(rest[at], impl=prng) if prng else None
        result, grads = gradients(params, key, *rest[:at])
        grads = jax.tree.map(lambda g: g.astype(jnp.float32), grads)
        updates, state = rule.update(grads, state, jax.tree.map(lambda p: p.astype(jnp.float32), params))
        new = jax.tree.map(lambda p, u: (p + u).astype(p.dtype), params, updates)
        return new, state, result

    def micro_step(totals, params, *rest):
        key = jax.random.wrap_key_data(rest[len(batch)], impl=prng) if prng else None
        result, grads = gradients(params, key, *rest[: len(batch)])
        return jax.tree.map(jnp.add, totals, grads), result

    if not optimizer:
        return jax.jit(micro_step, donate_argnums=0, keep_unused=True).lower(params, params, *batch, *key)
    return jax.jit(step, donate_argnums=(0, 1), keep_unused=True).lower(params, state, *batch, *key)
