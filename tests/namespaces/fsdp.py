# SPDX-License-Identifier: Apache-2.0
"""A small training step with parameters cut over all devices: `fsdp.py 4` steps, or `fsdp.py endless`. Prints every shard's hash.
`fsdp.py 4 join` begins with jax.distributed, as a program does that a launcher other than otrn launch starts."""

import hashlib
import os
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

if "join" in sys.argv:
    import opentrn.distributed  # noqa: F401  Open MPI 5 and torchrun are known by it

    jax.distributed.initialize()
mesh = jax.make_mesh((len(jax.devices()),), ("x",), axis_types=(AxisType.Auto,))


def put(a, *spec):
    return jax.make_array_from_callback(a.shape, NamedSharding(mesh, P(*spec)), lambda i: a[i])


rng = np.random.default_rng(0)
w = {name: put(rng.standard_normal(shape).astype(np.float32) * 0.1, "x") for name, shape in {"a": (64, 256), "b": (256, 64)}.items()}
x = put(rng.standard_normal((32, 64)).astype(np.float32), "x")
state = {"w": w, "m": jax.tree.map(jnp.zeros_like, w)}


def loss(w, x):
    return ((jnp.tanh(x @ w["a"]) @ w["b"] - x) ** 2).mean()


def step(state, x):
    value, g = jax.value_and_grad(loss)(state["w"], x)
    m = jax.tree.map(lambda m, g: 0.9 * m + g, state["m"], g)
    return {"w": jax.tree.map(lambda w, m: w - 0.1 * m, state["w"], m), "m": m}, value


cut = jax.tree.map(lambda _: NamedSharding(mesh, P("x")), state)
step = jax.jit(step, out_shardings=(cut, NamedSharding(mesh, P())))
endless = sys.argv[1] == "endless"
count = 0
while endless or count < int(sys.argv[1]):
    state, value = step(state, x)
    count += 1
    if count == 1:
        jax.block_until_ready(state)
        print("ready", flush=True)
    if endless:
        jax.block_until_ready(state)
        if count % 20 == 0:
            print("step", count, flush=True)
for leaf, name in zip(jax.tree.leaves(state), ("ma", "mb", "wa", "wb"), strict=True):
    for s in leaf.addressable_shards:
        # One write, so that lines of several processes do not mix.
        os.write(1, f"shard {name} {s.device.id} {hashlib.sha256(np.asarray(s.data).tobytes()).hexdigest()}\n".encode())
