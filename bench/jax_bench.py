# SPDX-License-Identifier: Apache-2.0
"""Compile and dispatch time of a small elementwise jit on opentrn, beside JAX's CPU.

Compile: `lowered.compile()` of programs that all differ, so that no cache can help; median. Once
with the cache off and once, in a process of its own, with entries written to an empty folder.
Dispatch: a call of a compiled function on a small array already on the device; median over many
batches of calls. The backends take turns, so that a busy machine disturbs both alike. Prints one
line per measurement with the bar it is held to; exit status 1 when one is missed.
"""

import gc
import os
import statistics
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("JAX_PLATFORMS", "opentrn,cpu")
CACHED = "--cached" in sys.argv  # the second process
os.environ["OTRN_CACHE"] = "on" if CACHED else "off"
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
    what = "compile of a small elementwise jit" + ", written to the cache" * CACHED
    good = line(what, *map(statistics.median, zip(*compiles)), COMPILE_BAR)
    return dispatch(devices) and good


def dispatch(devices):
    calls = [dispatcher(d) for d in devices]
    dispatches = [[c() for c in calls] for _ in range(BATCHES)]
    return line("dispatch of it", *map(statistics.median, zip(*dispatches)), DISPATCH_BAR)


def main_cached():
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--cached"]
        return subprocess.run(command, env=dict(os.environ, OTRN_CACHE_DIR=folder)).returncode == 0


if __name__ == "__main__":
    sys.exit(0 if main() and (CACHED or main_cached()) else 1)
