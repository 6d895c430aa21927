# SPDX-License-Identifier: Apache-2.0
"""All-reduce between processes: inside one, between two of one host by each transport, and Gloo's; in turns.

    python bench/processes_bench.py [BYTES ...]      # microseconds for a call, ratio to one process
    python bench/processes_bench.py bars             # the ratios that are to hold, one line each
    python bench/processes_bench.py layouts          # 8 devices as 1x8, 2x4, 4x2, 8x1
    python bench/processes_bench.py step             # a data parallel step: one process of two devices, two of one
    python bench/processes_bench.py first            # seconds to the end of a first step without a cache: two processes of a job, two alone

Every way has processes of its own, which live through the whole run and work when told, one way after the other, many times. A
call's time is that of a row of calls divided by their number: a single call that begins late would look short. As many calls
go before it, so that the system has put the processes on CPUs of their own. The least of all turns is printed, and the median.
"""

import ctypes.util
import os
import socket
import statistics
import subprocess
import sys
import time

BYTES = [4096, 65536, 1 << 20, 64 << 20]
TURNS = 10
TURN_US = 100000


def jax_worker(me, count, port):
    import jax
    import numpy as np
    from jax.sharding import AxisType, NamedSharding
    from jax.sharding import PartitionSpec as P

    if count > 1:
        jax.distributed.initialize(f"127.0.0.1:{port}", count, me, initialization_timeout=120)
    devices = len(jax.devices())
    mesh = jax.make_mesh((devices,), ("x",), axis_types=(AxisType.Auto,))

    def all_reduce(size):
        n = size // 4
        x = jax.make_array_from_callback((devices * n,), NamedSharding(mesh, P("x")), lambda i: np.ones(n, np.float32))
        f = jax.jit(jax.shard_map(lambda v: jax.lax.psum(v, "x"), mesh=mesh, in_specs=P("x"), out_specs=P()))
        return lambda: jax.block_until_ready(f(x))

    return all_reduce


def jax_step(me, count, port):
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.sharding import AxisType, NamedSharding
    from jax.sharding import PartitionSpec as P

    jax_worker(me, count, port)
    mesh = jax.make_mesh((2,), ("x",), axis_types=(AxisType.Auto,))

    def model(w, x):
        for a, b in w:
            x = x + jnp.tanh(x @ a) @ b
        return jnp.mean(x**2)

    @jax.jit
    def step(w, x):
        return jax.tree.map(lambda p, g: p - 0.01 * g, w, jax.grad(model)(w, x))

    def make(width):
        rng = np.random.default_rng(0)
        put = lambda v, spec: jax.make_array_from_callback(v.shape, NamedSharding(mesh, spec), lambda i: v[i])
        one = lambda *shape: put(rng.normal(size=shape, scale=0.02).astype(np.float32), P())
        state = [[(one(width, 4 * width), one(4 * width, width)) for _ in range(4)]]
        x = put(rng.normal(size=(1024, width)).astype(np.float32), P("x"))

        def run():
            state[0] = jax.block_until_ready(step(state[0], x))

        return run

    return make


def first_worker(me, count, port):
    """A step of a deep model, compiled: each time from a program that was not there before."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.sharding import AxisType, NamedSharding
    from jax.sharding import PartitionSpec as P

    jax_worker(me, count, port)
    mesh = jax.make_mesh((len(jax.devices()),), ("x",), axis_types=(AxisType.Auto,))
    put = lambda v, spec: jax.make_array_from_callback(v.shape, NamedSharding(mesh, spec), lambda i: v[i])

    def make(turn):
        def model(w, x):
            for i, (a, b) in enumerate(w):
                x = x + jnp.tanh(x @ a + turn) @ b
                x = x / (1 + i + jnp.sqrt(jnp.mean(x**2, -1, keepdims=True)))
            return jnp.mean(x**2)

        w = [(put(np.full((64, 256), 0.01, np.float32), P()), put(np.full((256, 64), 0.01, np.float32), P())) for _ in range(48)]
        x = put(np.ones((32, 64), np.float32), P("x"))
        return lambda: jax.block_until_ready(jax.jit(jax.grad(model))(w, x))

    return make


def torch_worker(backend):
    """PyTorch's process group; sizes below 0 are all-gathers of so many bytes in all."""

    def start(me, count, port):
        import torch
        import torch.distributed as dist

        if backend != "gloo":
            import opentrn.torch  # noqa: F401
        torch.set_num_threads(1)
        dist.init_process_group(backend, init_method=f"tcp://127.0.0.1:{port}", rank=me, world_size=count)

        def make(size):
            x = torch.ones(abs(size) // 4)
            if size > 0:
                return lambda: dist.all_reduce(x)
            mine = torch.ones(x.numel() // count)
            return lambda: dist.all_gather_into_tensor(x, mine)

        return make

    return start


KINDS = {
    "jax": jax_worker,
    "gloo": torch_worker("gloo"),
    "torch": torch_worker("neuron"),
    "step": jax_step,
    "first": first_worker,
}


def worker(kind, me, count, port):
    make, made = KINDS[kind](me, count, port), {}
    print("ready", flush=True)
    for line in sys.stdin:
        size, calls = map(int, line.split())
        if size not in made:
            made[size] = make(size)
        for _ in range(0 if kind == "first" else calls):
            made[size]()
        begin = time.perf_counter()
        for _ in range(calls):
            made[size]()
        print((time.perf_counter() - begin) / calls * 1e6, flush=True)


class Way:
    def __init__(self, kind, count, devices, **env):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        env = {**os.environ, "JAX_PLATFORMS": "opentrn", "OPENTRN_DEVICES": str(devices), **env}
        words = [sys.executable, __file__, "worker", kind]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
        self.running = [subprocess.Popen([*words, str(i), str(count), str(port)], env=env, **pipes) for i in range(count)]
        self.read()
        self.times = {}

    def read(self):
        return [p.stdout.readline() for p in self.running]

    def turn(self, size):
        for calls in [2] if size in self.times else [2, 2]:
            us = self.run(size, calls)
        self.times.setdefault(size, []).append(self.run(size, max(2, int(TURN_US / us))))

    def ask(self, size, calls):
        for p in self.running:
            p.stdin.write(f"{size} {calls}\n")
            p.stdin.flush()

    def run(self, size, calls):
        self.ask(size, calls)
        return float(self.read()[0])

    def end(self):
        for p in self.running:
            p.stdin.close()
        for p in self.running:
            p.wait(timeout=120)


def turns(ways, sizes):
    for size in sizes:
        for _ in range(TURNS):
            for way in ways.values():
                way.turn(size)
    for way in ways.values():
        way.end()


def measure(ways, sizes):
    turns(ways, sizes)
    first = next(iter(ways.values()))
    print(f"{'':>10}" + "".join(f"{name:>26}" for name in ways))
    for size in sizes:
        cells = [(min(w.times[size]), statistics.median(w.times[size]), min(w.times[size]) / min(first.times[size])) for w in ways.values()]
        print(f"{size:>10}" + "".join(f"{a:>10.0f} {b:>8.0f} {r:6.2f}x" for a, b, r in cells), flush=True)


def first(ways):
    """Each turn is another program, so its number is the size."""
    times = {name: [] for name in ways}
    for turn in range(TURNS):
        for name, all_ in ways.items():
            for way in all_:
                way.ask(turn, 1)
            times[name].append(max(max(map(float, way.read())) for way in all_))
    for name, all_ in ways.items():
        for way in all_:
            way.end()
        print(f"{name:>14}: least {min(times[name]) / 1e6:.2f} s, median {statistics.median(times[name]) / 1e6:.2f} s")


BARS = [  # what, one way, another, size, at most
    ("all-reduce of 4 KB, PyTorch's group / Gloo", "torch", "gloo", 4096, 0.1),
    ("all-reduce of 64 MB, PyTorch's group / Gloo", "torch", "gloo", 64 << 20, 2 / 3),
    ("all-gather of 16 MB, PyTorch's group / Gloo", "torch", "gloo", -(16 << 20), 1.0),
    ("all-reduce of 1 MB, two processes / one", "two", "one", 1 << 20, 1.5),
    ("data parallel step, two processes / one", "2x1", "1x2", 512, 1.1),
]


def bars():
    makers = {
        "torch": lambda: Way("torch", 2, 1), "gloo": lambda: Way("gloo", 2, 0), "one": lambda: Way("jax", 1, 2),
        "two": lambda: Way("jax", 2, 1), "1x2": lambda: Way("step", 1, 2), "2x1": lambda: Way("step", 2, 1),
    }  # fmt: skip
    for what, a, b, size, most in BARS:
        ways = {name: makers[name]() for name in (a, b)}
        turns(ways, [size])
        us = [min(ways[name].times[size]) for name in (a, b)]
        print(f"{what}: {us[0]:.1f} us / {us[1]:.1f} us = {us[0] / us[1]:.2f}, at most {most:.2f}", flush=True)


def libfabric():
    return {"two, libfabric": Way("jax", 2, 1, OTRN_FABRIC="tcp")} if ctypes.util.find_library("fabric") else {}


def gloo():
    try:
        import torch  # noqa: F401
    except ImportError:
        return {}
    return {"two, PyTorch's group": Way("torch", 2, 1), "Gloo": Way("gloo", 2, 0)}


def main(args):
    if args == ["bars"]:
        bars()
    elif args == ["layouts"]:
        measure({f"{n}x{8 // n}": Way("jax", n, 8 // n) for n in (1, 2, 4, 8)}, BYTES[:3])
    elif args == ["first"]:
        first({"a job of two": [Way("first", 2, 1, OTRN_CACHE="off")], "two alone": [Way("first", 1, 1, OTRN_CACHE="off") for _ in range(2)]})
    elif args == ["step"]:
        measure({"1x2": Way("step", 1, 2), "2x1": Way("step", 2, 1)}, [256, 512])
    else:
        ways = {
            "one process": Way("jax", 1, 2),
            "two, shared memory": Way("jax", 2, 1),
            "two, rings only": Way("jax", 2, 1, OTRN_FABRIC="rings"),
            "two, sockets": Way("jax", 2, 1, OTRN_FABRIC="sockets"),
            **libfabric(),
            **gloo(),
        }
        measure(ways, [int(s) for s in args] or BYTES)


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        worker(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
    else:
        main(sys.argv[1:])
