# SPDX-License-Identifier: Apache-2.0
"""The first step of many virtual devices in one process, and those behind it.

    python bench/devices_bench.py [DEVICES ...]      # 8 and 64 when none are given

A data parallel training step of a small transformer (2 layers of 256, AdamW by hand, donated): seconds, CPU seconds of the program and of
the system, page faults and memory. The step is compiled before; loading and planning it happens once for all devices, so a first step
that takes longer pays for memory. CPU seconds hold on a busy machine too: the last line of each number gives first to second in them.
"""

import functools
import os
import resource
import subprocess
import sys
import time

WIDTH, INNER, VOCABULARY, LENGTH, LAYERS, HEADS = 256, 1024, 512, 128, 2, 8
STEPS = 4


def training(devices):
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.sharding import AxisType, NamedSharding
    from jax.sharding import PartitionSpec as P

    mesh = jax.make_mesh((devices,), ("x",), axis_types=(AxisType.Auto,))
    rng = np.random.default_rng(0)

    def put(a, *spec):
        return jax.make_array_from_callback(a.shape, NamedSharding(mesh, P(*spec)), lambda i: a[i])

    def weight(*shape):
        return (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)

    def norm(x):
        return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5)

    def loss(p, x, y):
        h = p["embed"][x]
        for layer in p["layers"]:
            q, k, v = jnp.moveaxis(jnp.einsum("bsd,dthe->bsthe", norm(h), layer["qkv"]), 2, 0)
            s = jnp.where(jnp.tril(jnp.ones((LENGTH, LENGTH), bool)), jnp.einsum("bqhe,bkhe->bhqk", q, k) / 8, -1e30)
            h = h + jnp.einsum("bhqk,bkhe,hed->bqd", jax.nn.softmax(s), v, layer["out"])
            h = h + jax.nn.gelu(norm(h) @ layer["up"]) @ layer["down"]
        z = norm(h) @ p["head"]
        return (jax.nn.logsumexp(z, -1) - jnp.take_along_axis(z, y[..., None], -1)[..., 0]).mean()

    @functools.partial(jax.jit, donate_argnums=0)
    def step(state, x, y):
        p, m, v = state
        value, g = jax.value_and_grad(loss)(p, x, y)
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
        return (jax.tree.map(lambda p, m, v: p - 1e-3 * m / (jnp.sqrt(v) + 1e-8), p, m, v), m, v), value

    head = WIDTH // HEADS
    layers = [
        {"qkv": weight(WIDTH, 3, HEADS, head), "out": weight(HEADS, head, WIDTH), "up": weight(WIDTH, INNER), "down": weight(INNER, WIDTH)}
        for _ in range(LAYERS)
    ]
    params = {"embed": weight(VOCABULARY, WIDTH), "head": weight(WIDTH, VOCABULARY), "layers": layers}
    state = [jax.tree.map(put, params)] + [jax.tree.map(lambda a: put(np.zeros_like(a)), params) for _ in range(2)]
    x, y = (put(rng.integers(0, VOCABULARY, (devices, LENGTH)), "x") for _ in range(2))
    return step.lower(tuple(state), x, y).compile(), tuple(state), x, y


def worker(devices):
    step, state, x, y = training(devices)
    cpu = []
    for i in range(STEPS):
        before, begin = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
        state, value = step(state, x, y)
        value.block_until_ready()
        took, use = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_SELF)
        user, system = use.ru_utime - before.ru_utime, use.ru_stime - before.ru_stime
        cpu.append(user + system)
        print(
            f"{devices} devices, step {i}: {took:.2f} s; CPU {user:.2f} + {system:.2f} s; "
            f"{use.ru_minflt - before.ru_minflt} faults; {use.ru_maxrss >> 10} MB"
        )
    print(f"{devices} devices: first step {cpu[0] / cpu[1]:.2f} of the second, in CPU seconds", flush=True)


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "worker":
        return worker(int(sys.argv[2]))
    for devices in sys.argv[1:] or ["8", "64"]:
        env = {**os.environ, "OPENTRN_DEVICES": devices, "JAX_PLATFORMS": "opentrn", "OTRN_CACHE": "off"}
        subprocess.run([sys.executable, __file__, "worker", devices], env=env, check=True)


if __name__ == "__main__":
    main()
