# SPDX-License-Identifier: Apache-2.0
"""Compile and dispatch time of a small elementwise jit on opentrn, beside JAX's CPU.

Compile: `lowered.compile()` of programs that all differ, so that no cache can help; median.
Dispatch: a call of a compiled function on a small array already on the device; median over many
batches of calls. The backends take turns, so that a busy machine disturbs both alike. Prints one
line per measurement with the bar it is held to; exit status 1 when one is missed.
"""

import gc
import os
import statistics
import sys
import time

os.environ.setdefault("JAX_PLATFORMS", "opentrn,cpu")
os.environ["OTRN_CACHE"] = "off"
import jax
import jax.numpy as jnp
import numpy as np

COMPILE_BAR, DISPATCH_BAR = 0.1, 1 / 0.7  # opentrn's time over the CPU's
PROGRAMS, BATCHES, CALLS = 25, 60, 200


def program(i):
    return lambda x, y: jnp.tanh(x * (i + 1.5) + y) * jnp.exp(-x) + jnp.where(x > y, x - i, y * 0.5)


def compile_seconds(device, i):
    x = jax.device_put(np.linspace(0, 1, 1024, dtype=np.float32), device)
    lowered = jax.jit(program(i)).lower(x, x)
    begin = time.perf_counter()
    lowered.compile()
    return time.perf_counter() - begin


def dispatcher(device):
    x = jax.device_put(np.linspace(0, 1, 64, dtype=np.float32), device)
    f = jax.jit(program(-1))
    f(x, x).block_until_ready()

    def seconds():
        begin = time.perf_counter()
        for _ in range(CALLS):
            y = f(x, x)
        y.block_until_ready()
        return (time.perf_counter() - begin) / CALLS

    return seconds


def line(what, ours, cpu, bar):
    ratio = ours / cpu
    word = "ok" if ratio <= bar else "MISSED"
    times = f"opentrn {ours * 1e6:.1f} us, JAX CPU {cpu * 1e6:.1f} us"
    print(f"{what}: {times}, ratio {ratio:.3f} (bar {bar:g}) {word}")
    return ratio <= bar


def main():
    devices = jax.devices()[0], jax.devices("cpu")[0]
    for d in devices:  # the first compile of a process also starts things up
        compile_seconds(d, 1000)
    gc.collect()
    gc.disable()  # Python's own housekeeping would fall into the timed part now and then
    compiles = [[compile_seconds(d, i) for d in devices] for i in range(PROGRAMS)]
    calls = [dispatcher(d) for d in devices]
    dispatches = [[c() for c in calls] for _ in range(BATCHES)]
    good = line(
        "compile of a small elementwise jit", *map(statistics.median, zip(*compiles)), COMPILE_BAR
    )
    good &= line("dispatch of it", *map(statistics.median, zip(*dispatches)), DISPATCH_BAR)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
