# SPDX-License-Identifier: Apache-2.0
"""What replicas tell each other: gradients summed or scattered, weights gathered.

A device's part of a weight is a flat piece of it, as long as everyone's; what is too much at the end is zeros. Each weight is a
collective of its own in the program: the compiler joins them, and places them beside other work, as it does for any program.
"""

import math

import jax
import jax.numpy as jnp

from opentrn._predict import model


def axes(u, expert):
    """Those of the mesh over which a weight is the same: an expert's has fewer replicas."""
    sizes = {"dp": u.replicas, "cp": u.cp} if expert else {"dp": u.replicas, "ep": u.ep, "cp": u.cp}
    return tuple(k for k, n in sizes.items() if n > 1)


def ranks(u, expert):
    return u.replicas * u.cp * (1 if expert else u.ep)


def part(u, shape, expert):
    """Shape of a device's part of a weight."""
    return (-(-math.prod(shape) // ranks(u, expert)),)


def total(u, expert, g):
    over = axes(u, expert)
    return jax.lax.psum(g, over) if over else g


def scatter(u, expert, g):
    over, g = axes(u, expert), g.reshape(-1)
    more = part(u, g.shape, expert)[0] * ranks(u, expert) - g.shape[0]
    g = jnp.pad(g, (0, more)) if more else g
    return jax.lax.psum_scatter(g, over, tiled=True) if over else g


def own(u, v, w):
    """A device's part of a weight that it has whole."""
    over, size = axes(u, v.expert), part(u, v.shape, v.expert)[0]
    w = jnp.pad(w.reshape(-1), (0, size * ranks(u, v.expert) - math.prod(v.shape)))
    return jax.lax.dynamic_slice_in_dim(w, jax.lax.axis_index(over) * size, size) if over else w


def gather(u, v, p):
    over, size = axes(u, v.expert), math.prod(v.shape)
    p = jax.lax.all_gather(p, over, tiled=True) if over else p
    return (p[:size] if p.shape[0] > size else p).reshape(v.shape)


def gather_again(u, v, p):
    """The same, written so that it is not taken for the first."""
    over, size = axes(u, v.expert), math.prod(v.shape)
    p = jax.lax.all_gather(p, over).reshape(-1) if over else p
    return (p[:size] if p.shape[0] > size else p).reshape(v.shape)


class Gathered(model.Weights):
    """Weights of which each device is given its part: gathered where they are asked for, those of a layer again in the backward pass."""

    def __init__(self, u, sums, given, dtype, key=None):
        super().__init__(given, dtype, key)
        self.u, self.sums = u, sums

    def __call__(self, *shape, expert=False, adapter=False):
        assert self.given is not None
        v = model.Weight(shape, expert)
        whole = lambda p: gather(self.u, v, p)
        pull = jax.custom_vjp(whole)
        pull.defvjp(lambda p: (whole(p), None), lambda _, g: (self._scattered(v, g),))
        return pull(next(self.given)).astype(self.dtype)

    def _scattered(self, v, g):
        return scatter(self.u, v.expert, g.astype(self.sums)).astype(g.dtype)

    def like(self, given, key):
        return Gathered(self.u, self.sums, given, self.dtype, key)

    def through(self, layer, tree, remat):
        """What the backward pass needs is kept, but for the weights."""
        if remat:
            return super().through(layer, tree, remat)
        made = {}

        def run(x, parts, key):
            return forward(x, parts, key)[0]

        def forward(x, parts, key):
            whole = [gather(self.u, v, p) for v, p in zip(tree, parts)]
            y, pull = jax.vjp(lambda x, whole: layer(model.Weights(whole, self.dtype, key), x), x, whole)
            kept, made["form"] = jax.tree.flatten(pull)
            number = {id(w): i for i, w in enumerate(whole)}
            made["weights"] = [number.get(id(v)) for v in kept]
            return y, ([v for v, i in zip(kept, made["weights"]) if i is None], parts)

        def backward(kept, g):
            rest, parts = iter(kept[0]), kept[1]
            pull = jax.tree.unflatten(made["form"], [next(rest) if i is None else gather_again(self.u, tree[i], parts[i]) for i in made["weights"]])
            inner, found = pull(g)
            return inner, [self._scattered(v, g) for v, g in zip(tree, found)], None

        layer_of = jax.custom_vjp(run)
        layer_of.defvjp(forward, backward)
        return layer_of
