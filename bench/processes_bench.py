# SPDX-License-Identifier: Apache-2.0
"""All-reduce of two devices: in one process, in two through shared memory, in two through sockets; in turns.

    python bench/processes_bench.py [BYTES ...]      # microseconds, the tenth percentile of the rounds' calls
"""

import os
import socket
import subprocess
import sys
import time

BYTES = [4096, 1 << 20, 64 << 20]
ROUNDS = 3


def worker(me, count, port, sizes):
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.sharding import AxisType, NamedSharding
    from jax.sharding import PartitionSpec as P

    if count > 1:
        jax.distributed.initialize(f"127.0.0.1:{port}", count, me, initialization_timeout=60)
    mesh = jax.make_mesh((2,), ("x",), axis_types=(AxisType.Auto,))
    for size in sizes:
        n = size // 4
        x = jax.make_array_from_callback((2 * n,), NamedSharding(mesh, P("x")), lambda i: np.ones(n, np.float32))
        f = jax.jit(jax.shard_map(lambda v: jax.lax.psum(v, "x"), mesh=mesh, in_specs=P("x"), out_specs=P()))
        times, repeats = [], 200 if size < 1 << 22 else 8
        for i in range(repeats + 5):
            begin = time.perf_counter()
            jax.block_until_ready(f(x))
            if i >= 5:
                times.append(time.perf_counter() - begin)
        if me == 0:
            print(size, sorted(times)[len(times) // 10] * 1e6, flush=True)


def measure(count, sizes, fabric):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    env = {**os.environ, "JAX_PLATFORMS": "opentrn", "OPENTRN_DEVICES": str(2 // count), "OTRN_FABRIC": fabric}
    words = [sys.executable, __file__, "worker"]
    running = [
        subprocess.Popen([*words, str(i), str(count), str(port), *map(str, sizes)], env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for i in range(count)
    ]
    lines = [p.communicate(timeout=300)[0] for p in running][0].splitlines()
    return {int(a): float(b) for a, b in (line.split() for line in lines)}


def main(sizes):
    ways = {"one process": (1, "auto"), "two, shared memory": (2, "auto"), "two, sockets": (2, "sockets")}
    best = {}
    for _ in range(ROUNDS):
        for way, (count, fabric) in ways.items():
            for size, us in measure(count, sizes, fabric).items():
                best[way, size] = min(us, best.get((way, size), us))
    print(f"{'bytes':>10}" + "".join(f"{way:>22}" for way in ways))
    for size in sizes:
        one = best["one process", size]
        print(f"{size:>10}" + "".join(f"{best[way, size]:>14.0f} ({best[way, size] / one:5.2f})" for way in ways))


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        worker(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], [int(s) for s in sys.argv[5:]])
    else:
        main([int(s) for s in sys.argv[1:]] or BYTES)
