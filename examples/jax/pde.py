# SPDX-License-Identifier: Apache-2.0
"""Fits a network to a partial differential equation: heat in a rod, u_t = u_xx / pi^2, from u = sin(pi x).

    python examples/jax/pde.py                  to a loss below 2e-3; prints the distance to the exact solution
    python examples/jax/pde.py --platform=cpu   the same on JAX's CPU

The loss is how far the network is from the equation inside, from 0 at both ends and from the sine at the beginning, at points
drawn anew for every step. Derivatives of the network are JAX's.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

import common
import opentrn

GOAL = 2e-3


class Network(nnx.Module):
    def __init__(self, width, layers, rngs):
        widths = [2] + [width] * layers
        self.layers = nnx.List([nnx.Linear(a, b, rngs=rngs) for a, b in zip(widths, widths[1:])])
        self.last = nnx.Linear(width, 1, rngs=rngs)

    def __call__(self, t, x):
        h = jnp.stack([t, x], -1)
        for layer in self.layers:
            h = nnx.tanh(layer(h))
        return self.last(h)[..., 0]


def loss_fn(model, t, x):
    u = lambda t, x: model(t, x)
    u_t = jax.vmap(jax.grad(u, 0))(t, x)
    u_xx = jax.vmap(jax.grad(jax.grad(u, 1), 1))(t, x)
    inside = ((u_t - u_xx / jnp.pi**2) ** 2).mean()
    ends = (u(t, jnp.zeros_like(t)) ** 2 + u(t, jnp.ones_like(t)) ** 2).mean()
    begin = ((u(jnp.zeros_like(x), x) - jnp.sin(jnp.pi * x)) ** 2).mean()
    return inside + ends + begin


@nnx.jit
def train_step(model, optimizer, t, x):
    loss, grads = nnx.value_and_grad(loss_fn)(model, t, x)
    optimizer.update(model, grads)
    return loss


def train(steps=400, batch=1024, width=64, layers=3, out=None):
    rng = np.random.default_rng(common.SEED)
    model = Network(width, layers, nnx.Rngs(common.SEED))
    schedule = optax.cosine_decay_schedule(5e-3, steps)
    optimizer = nnx.Optimizer(model, optax.adam(schedule), wrt=nnx.Param)
    name = f"PDE, {common.parameters(model) / 1e3:.1f} k parameters, {batch} points a step"
    with opentrn.training(name, steps, samples=batch, goal=GOAL, out=out) as run:
        for _ in range(steps):
            t, x = rng.random((2, batch), np.float32)
            run.step(train_step(model, optimizer, t, x))
    t, x = (a.ravel().astype(np.float32) for a in np.mgrid[0:1:32j, 0:1:32j])
    error = np.abs(np.asarray(nnx.jit(lambda m, t, x: m(t, x))(model, t, x)) - np.exp(-t) * np.sin(np.pi * x))
    print(f"largest distance to the exact solution {error.max():.4f}", file=out)
    return run


if __name__ == "__main__":
    args = common.arguments(__doc__, steps=400, batch=1024, width=64, layers=3)
    run = train(args.steps, args.batch, args.width, args.layers)
    sys.exit(not run.reached)
