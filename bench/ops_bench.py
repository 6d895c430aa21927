# SPDX-License-Identifier: Apache-2.0
"""Speed of single operations on opentrn's GpSimd kernels beside JAX's CPU, in one run.

Each operation is jitted on both backends and called in turns on the same data; printed is the median over rounds of
CPU time over ours, so 1.0 means as fast and more means faster. Bars: 0.7 in f32, 1.0 in bf16.
"""

import os
import statistics
import sys
import time

os.environ.setdefault("JAX_PLATFORMS", "opentrn,cpu")
import jax
import jax.numpy as jnp
import numpy as np

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 15
BAR = {"f32": 0.7, "bf16": 1.0}

rng = np.random.default_rng(0)
wide = rng.standard_normal((2048, 1024)).astype(np.float32)
rows = rng.standard_normal((32768, 64)).astype(np.float32)
index = rng.integers(0, 32768, 65536).astype(np.int32)
updates = rng.standard_normal((65536, 64)).astype(np.float32)
flat = rng.standard_normal(1 << 20).astype(np.float32)
key = np.array([1, 2], np.uint32)

OPS = {
    "add": (lambda x, y: x + y, (wide, wide)),
    "exp": (jnp.exp, (wide,)),
    "tanh": (jnp.tanh, (wide,)),
    "sum, last axis": (lambda x: x.sum(-1), (wide,)),
    "sum, first axis": (lambda x: x.sum(0), (wide,)),
    "softmax, last axis": (lambda x: jax.nn.softmax(x, axis=-1), (wide,)),
    "transpose": (lambda x: x.T, (wide,)),
    "gather of 64K rows": (lambda t, i: t[i], (rows, index)),
    "scatter-add of 64K rows": (lambda t, i, u: t.at[i].add(u), (rows, index, updates)),
    "sort of 1M": (jnp.sort, (flat,)),
    "cumsum of 1M": (jnp.cumsum, (flat,)),
    "argmax": (lambda x: jnp.argmax(x, -1), (wide,)),
    "threefry of 1M": (lambda k: jax.random.bits(k, (1 << 20,)), (key,)),
}


def seconds(f, args):
    begin = time.perf_counter()
    jax.block_until_ready(f(*args))
    return time.perf_counter() - begin


def main():
    devices = {name: jax.devices(name)[0] for name in ("opentrn", "cpu")}
    missed = 0
    for dtype in ("f32", "bf16"):
        for name, (op, data) in OPS.items():
            if dtype == "bf16" and not any(x.dtype == np.float32 for x in data):
                continue
            cast = lambda x: x.astype(jnp.bfloat16) if dtype == "bf16" and x.dtype == np.float32 else x
            runs = {}
            for where, device in devices.items():
                args = [jax.device_put(cast(x), device) for x in data]
                f = jax.jit(op)
                seconds(f, args), seconds(f, args)
                runs[where] = (f, args)
            times = {where: [] for where in devices}
            for _ in range(ROUNDS):
                for where, (f, args) in runs.items():
                    times[where].append(seconds(f, args))
            ratio = statistics.median(c / o for c, o in zip(times["cpu"], times["opentrn"]))
            ok = ratio >= BAR[dtype]
            missed += not ok
            print(f"{dtype:5} {name:24} {ratio:6.2f} of JAX CPU  ({statistics.median(times['opentrn']) * 1e3:8.2f} ms, "
                  f"CPU {statistics.median(times['cpu']) * 1e3:8.2f} ms)  {'ok' if ok else 'below the bar'}", flush=True)
    print(f"{missed} below the bar")


if __name__ == "__main__":
    main()
