# SPDX-License-Identifier: Apache-2.0
"""Several processes on this host: the same numbers as one with all devices, and errors that name who is to blame.

Each test starts its processes, gives them a limit of time and ends what is left of them."""

import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import sys
import time

import pytest

import opentrn

LIMIT = 180

START = """if True:
    import hashlib, os, sys
    import jax, numpy as np, jax.numpy as jnp
    from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P
    me, count, port = int(os.environ["ME"]), int(os.environ["COUNT"]), os.environ["PORT"]
    if count > 1:
        jax.distributed.initialize("127.0.0.1:" + port, count, me, initialization_timeout=60)
    mesh = jax.make_mesh((len(jax.devices()),), ("x",), axis_types=(AxisType.Auto,))
    def put(a, *spec):
        return jax.make_array_from_callback(a.shape, NamedSharding(mesh, P(*spec)), lambda i: a[i])
    def show(a):
        for s in a.addressable_shards:
            print("shard", s.device.id, hashlib.sha1(np.asarray(s.data).tobytes()).hexdigest(), flush=True)
"""


def free_port():
    """The first of three, from where the system gives none away by itself."""
    while True:
        port = random.SystemRandom().randrange(15000, 30000)
        try:
            for i in range(3):
                with socket.socket() as s:
                    s.bind(("127.0.0.1", port + i))
            return port
        except OSError:
            pass


class Job:
    def __init__(self, code, devices, **variables):
        """A process for each number of devices, running START and the code."""
        env = {**os.environ, "JAX_PLATFORMS": "opentrn,cpu", "COUNT": str(len(devices)), "PORT": str(free_port()), **variables}
        text = START + "".join(f"    {line}\n" for line in code.strip("\n").splitlines())
        self.running = [
            subprocess.Popen(
                [sys.executable, "-c", text],
                env={**env, "ME": str(i), "OPENTRN_DEVICES": str(n)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for i, n in enumerate(devices)
        ]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for p in self.running:
            if p.poll() is None:
                p.kill()
                p.communicate()

    def ends(self):
        """(out, err, status) of each."""
        limit = time.monotonic() + LIMIT
        return [(*p.communicate(timeout=max(1, limit - time.monotonic())), p.returncode) for p in self.running]


def run(code, devices, **variables):
    with Job(code, devices, **variables) as job:
        ends = job.ends()
    assert all(status == 0 for _, _, status in ends), ends[0][1][-2000:] + ends[-1][1][-2000:]
    return [out for out, _, _ in ends]


def shards(code, devices, **variables):
    return sorted(line for out in run(code, devices, **variables) for line in out.splitlines() if line.startswith("shard"))


EVERYTHING = """
import functools
rng = np.random.default_rng(0)
first = rng.standard_normal((64, 32)).astype(np.float32)
x = put(rng.standard_normal((48, 64)).astype(np.float32), "x")
for spec in (P(), P("x")):  # data parallel, fully sharded
    w = put(first, *spec)
    @functools.partial(jax.jit, out_shardings=w.sharding)
    def step(w, x):
        return w - 0.1 * jax.grad(lambda w: (jnp.tanh(x @ w) ** 2).mean())(w)
    for i in range(3):
        w = step(w, x)
    show(w)
a = put(np.arange(64 * 16, dtype=np.float32).reshape(64, 16), "x")
f = functools.partial(jax.shard_map, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
n = len(jax.devices())
show(jax.jit(f(lambda v: jax.lax.all_to_all(v, "x", 1, 0, tiled=True)))(a))
show(jax.jit(f(lambda v: jax.lax.ppermute(v, "x", [(i, (i + 1) % n) for i in range(n - 1)])))(a))
show(jax.jit(f(lambda v: jax.lax.all_gather(v, "x", axis=1).sum(1) * v))(a))
show(jax.jit(f(lambda v: jax.lax.psum_scatter(v, "x", scatter_dimension=1, tiled=True)))(a))
big = put(rng.standard_normal((n, 40000)).astype(np.float32), "x")
show(jax.jit(f(lambda v: jax.lax.psum(v, "x") * v))(big))
huge = put(rng.standard_normal((n, 700001)).astype(np.float32), "x")  # several blocks; messages that are read where they lie
show(jax.jit(f(lambda v: jax.lax.psum(v, "x") * v))(huge))
show(jax.jit(f(lambda v: jax.lax.ppermute(v, "x", [(i, (i + 1) % n) for i in range(n)])))(huge))
square = jax.make_mesh((2, 2), ("a", "b"), axis_types=(AxisType.Auto,) * 2)
b = jax.make_array_from_callback((64, 16), NamedSharding(square, P("a", "b")), lambda i: np.full((32, 8), 0.1 + i[0].start, np.float32))
for axis in "ab":
    g = jax.shard_map(lambda v: jax.lax.psum(v.astype(jnp.bfloat16), axis), mesh=square, in_specs=P("a", "b"), out_specs=P(*({"a", "b"} - {axis})))
    show(jax.jit(g)(b))
"""


def test_same_bits_for_every_layout():
    one = shards(EVERYTHING, [4])
    assert len(one) == 11 * 4
    assert shards(EVERYTHING, [1, 3]) == one
    assert shards(EVERYTHING, [3, 1], OTRN_FABRIC="rings") == one
    assert shards(EVERYTHING, [1, 1, 1, 1], OTRN_FABRIC="sockets") == one


def test_orbax_over_processes(tmp_path):
    """What two processes save, each its shards, one process with both devices loads; and the other way round."""
    pytest.importorskip("orbax.checkpoint")
    code = """
import orbax.checkpoint as ocp
state = {"w": put(np.arange(64.0, dtype=np.float32).reshape(16, 4), "x"), "step": put(np.float32(7))}
like = jax.tree.map(lambda v: jax.ShapeDtypeStruct(v.shape, v.dtype, sharding=v.sharding), state)
with ocp.StandardCheckpointer() as checkpointer:
    if os.environ["WHAT"] == "save":
        checkpointer.save(os.environ["FOLDER"], jax.jit(lambda s: jax.tree.map(lambda v: v * 2, s))(state))
        checkpointer.wait_until_finished()
    else:
        found = checkpointer.restore(os.environ["FOLDER"], like)
        for v, before in zip(jax.tree.leaves(found), jax.tree.leaves(state)):
            assert all((a.data == 2 * b.data).all() for a, b in zip(v.addressable_shards, before.addressable_shards))
            show(v)
"""
    seen = []
    for saves, loads in (([1, 1], [2]), ([2], [1, 1])):
        folder = str(tmp_path / str(len(saves)))
        run(code, saves, WHAT="save", FOLDER=folder)
        seen.append(shards(code, loads, WHAT="load", FOLDER=folder))
    assert len(seen[0]) == 4 and seen[0] == seen[1]


def test_device_put_to_devices_of_other_processes():
    """Arrays of all kinds and sizes go from process 0 to 1, results of a step that still runs among them, and come back."""
    code = """
from jax.sharding import SingleDeviceSharding
def on(process, *spec):
    return NamedSharding(Mesh(np.array(jax.local_devices(process_index=process)), ("x",)), P(*spec))
def check(z, process, *want):
    assert z.is_fully_addressable == (me == process)
    for s in z.addressable_shards:
        np.testing.assert_array_equal(np.asarray(s.data), want[0][s.index])
rng = np.random.default_rng(1)
kinds = [np.arange(64).reshape(8, 8), rng.standard_normal((2, 700001)).astype(np.float32), np.zeros((0, 3)), np.array([True, False]),
         jnp.arange(8, dtype=jnp.int4).reshape(2, 4), np.ones((4, 2), jnp.bfloat16)]
for x in kinds:
    y = jax.device_put(jax.device_put(x, on(0)), on(1))
    check(y, 1, x)
    if len(x):
        check(jax.device_put(jax.device_put(x, on(0, "x")), on(1, "x")), 1, x)
    check(jax.device_put(y, on(0)), 0, x)
step = jax.jit(lambda a: (jnp.sin(a @ a.T) @ a) / 8)
a = rng.standard_normal((256, 256)).astype(np.float32)
here = jax.device_put(a, on(0))
for i in range(3):  # process 0 computes, process 1 goes on with it, process 0 gets it back
    there = jax.device_put(step(here) if me == 0 else here, on(1))
    here = jax.device_put(step(there) if me == 1 else there, on(0))
want = a
for i in range(6):
    want = np.asarray(step(want))
check(here, 0, want)
many = [jax.device_put(np.full(3, i), jax.local_devices(process_index=0)[0]) for i in range(200)]  # more than the queue holds
for i, z in enumerate(jax.device_put(many, SingleDeviceSharding(jax.local_devices(process_index=1)[1]))):
    check(z, 1, np.full(3, i))
print("all right")
"""
    for variables in ({}, {"OTRN_FABRIC": "sockets"}):
        assert all("all right" in out for out in run(code, [2, 2], **variables))


def test_what_failed_is_not_put_elsewhere():
    """A result that could not be computed is an error at both ends, with its sentence; the next transfer goes on."""
    code = """
def bad(a):
    raise ValueError("seventeen is too many")
source, target = (jax.sharding.SingleDeviceSharding(jax.local_devices(process_index=p)[0]) for p in (0, 1))
x = jax.device_put(np.ones(4, np.float32), source)
if me == 0:
    x = jax.jit(lambda a: jax.pure_callback(bad, jax.ShapeDtypeStruct((4,), np.float32), a))(x)
try:
    y = jax.device_put(x, target)
    y.block_until_ready()
    print("came")
except Exception as e:
    print("not:", "seventeen" in str(e), flush=True)
z = jax.device_put(jax.device_put(np.ones(4, np.float32), source), target)
print("then", [float(s.data.sum()) for s in z.addressable_shards])
"""
    zero, one = run(code, [1, 1], OPENTRN_DISPATCH="async")
    assert "not: True" in one and "then [4.0]" in one, (zero, one)
    assert "then []" in zero


PUT = """
source, target = (jax.sharding.SingleDeviceSharding(jax.local_devices(process_index=p)[0]) for p in (0, 1))
def put_there(value):
    return jax.device_put(jax.device_put(np.full(4, value, np.float32), source), target)
jax.block_until_ready(put_there(1.0))
print("ready", flush=True)
sys.stdin.readline()
try:
    jax.block_until_ready(put_there(2.0))
    print("came", flush=True)
except Exception as e:
    print(str(e).replace(chr(10), " "), flush=True)
"""


def test_who_is_late_for_a_device_put_is_named():
    """Process 0 does not bring its part: process 1 gives that up at its limit, and the job goes on."""
    code = PUT + 'print("then", [float(s.data.sum()) for s in put_there(3.0).addressable_shards], flush=True)'
    with Job(code, [1, 1], OTRN_COLL_TIMEOUT="1") as job:
        assert [p.stdout.readline() for p in job.running] == ["ready\n", "ready\n"]
        job.running[1].stdin.write("\n")
        job.running[1].stdin.flush()
        said = job.running[1].stdout.readline()
        job.running[0].stdin.write("\n")
        ends = job.ends()
    assert re.search(r"device_put: .*device 0 to 1 has waited 1 s \(OTRN_COLL_TIMEOUT\); process 0 \(host .*, device 0\)", said), said
    assert "then [12.0]" in ends[1][0] and "then []" in ends[0][0], ends


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_who_is_gone_in_a_device_put_is_named(how):
    """JAX aborts a process whose coordinator, process 0, is gone, at times before the exception is there: stderr has it in any case."""
    with Job(PUT, [1, 1]) as job:
        assert [p.stdout.readline() for p in job.running] == ["ready\n", "ready\n"]
        job.running[1].stdin.write("\n")
        job.running[1].stdin.flush()
        job.running[0].send_signal(how)
        said, err = job.running[1].communicate(timeout=LIMIT)
        job.running[0].kill()
    who = rf"process 0 \(host .*, pid {job.running[0].pid}, device 0\)"
    assert re.search(rf"^otrn: {who}", err, re.M), err[-2000:]
    aborted = job.running[1].returncode == -signal.SIGABRT
    assert re.search(rf"device_put: {who}", said) or (aborted and not said), said


def test_one_process_compiles_for_all():
    """Neither a cache nor a folder in common: the artifact goes from one process to the others."""
    code = """
w, x = put(np.ones((64, 32), np.float32)), put(np.ones((16, 64), np.float32), "x")
show(jax.jit(lambda w, x: w - 0.1 * jax.grad(lambda w: (jnp.tanh(x @ w) ** 2).mean())(w))(w, x))
"""
    with Job(code, [1, 1, 2], OTRN_CACHE="off", OTRN_VERBOSE="1") as job:
        ends = job.ends()
    assert all(status == 0 for _, _, status in ends), ends
    how = [line.split(": ")[2].split(" ,")[0] for _, err, _ in ends for line in err.splitlines() if line.startswith("otrn: jit__lambda")]
    assert sorted(how) == ["cache off", "compiled by another process", "compiled by another process"]
    lines = sorted(line for out, _, _ in ends for line in out.splitlines())
    assert lines == shards(code, [4])


def test_meshes_of_any_order_and_callbacks():
    code = """
    back = Mesh(np.array(jax.devices()[::-1]), ("y",))
    a = jax.make_array_from_callback((4,), NamedSharding(back, P("y")), lambda i: np.arange(4, dtype=np.float32)[i])
    print(float(jax.jit(lambda x: (x * jnp.arange(1.0, 5.0)).sum(), out_shardings=NamedSharding(back, P()))(a)))
    some = Mesh(np.array(jax.devices()[::2]), ("y",))
    a = jax.make_array_from_callback((4,), NamedSharding(some, P("y")), lambda i: np.arange(4, dtype=np.float32)[i])
    print(float(jax.jit(jnp.sum, out_shardings=NamedSharding(some, P()))(a)))
    only = NamedSharding(Mesh(np.array(jax.devices()[2:]), ("y",)), P("y"))
    a = jax.make_array_from_callback((4,), only, lambda i: np.arange(4, dtype=np.float32)[i], dtype=np.float32)
    print(sum(float(s.data.sum()) for s in jax.jit(lambda x: x * 2)(a).addressable_shards))
    def told(x):
        print("called", flush=True)
        return x * 2
    a = put(np.arange(8, dtype=np.float32), "x")
    twice = lambda x: jax.pure_callback(told, jax.ShapeDtypeStruct((), jnp.float32), x.sum()) + x.sum()
    print(float(jax.jit(twice, out_shardings=NamedSharding(mesh, P()))(a)))
    """
    lines = [out.split() for out in run("\n".join(s[4:] for s in code.splitlines()), [2, 2])]
    assert lines[0] == ["20.0", "6.0", "0", "called", "84.0"]
    assert lines[1] == ["20.0", "6.0", "12.0", "84.0"]


DIFFER = """
a = put(np.arange(8, dtype=np.float32), "x")
def mine(x): return (x * 2.0).sum()
def theirs(x): return jnp.cumsum(x).sum() + x.max()
try:
    float(jax.jit(theirs if me else mine)(a))
except Exception as e:
    print(str(e).replace(chr(10), " "))
print(float(jax.jit(jnp.sum)(a)))
"""


def test_different_programs_are_named_and_the_job_goes_on():
    for out in run(DIFFER, [1, 1]):
        error, after = out.splitlines()
        assert "jit_mine" in error and "jit_theirs" in error and "same programs in the same order" in error
        assert after == "28.0"


def test_other_chips_are_refused(tmp_path):
    """Also those that have only the name in common."""
    chip = (pathlib.Path(opentrn.chips_path()) / "trn2.chip").read_text()
    other = tmp_path / "trn2.chip"
    other.write_text(re.sub(r"(?m)^(link_chip_bandwidth_per_core = )(\d+)", lambda m: m[1] + str(int(m[2]) + 1), chip))
    assert other.read_text() != chip
    code = f"import os; os.environ['OTRN_TARGET'] = '{other}' if os.environ['ME'] == '1' else 'trn2'\n"
    with Job("", [1, 1]) as job:
        args = job.running[0].args
    env = {**os.environ, "JAX_PLATFORMS": "opentrn", "COUNT": "2", "PORT": str(free_port()), "OPENTRN_DEVICES": "1"}
    running = [
        subprocess.Popen([*args[:2], code + args[2]], env={**env, "ME": str(i)}, stderr=subprocess.PIPE, text=True) for i in range(2)
    ]
    for i, p in enumerate(running):
        _, err = p.communicate(timeout=LIMIT)
        assert p.returncode != 0
        assert f"process {1 - i} (host" in err and "has the chip trn2/" in err, err[-2000:]


LOOP = """
import time
a = put(np.ones((8, 64, 64), np.float32), "x")
f = jax.jit(lambda x: jnp.tanh(x) + x.sum(0) * 1e-3, out_shardings=NamedSharding(mesh, P("x")))
print("ready", os.getpid(), flush=True)
for i in range(10**9):
    a = f(a)
    jax.block_until_ready(a)
"""


@pytest.mark.parametrize("victim", [0, 1])
@pytest.mark.parametrize("how,within", [(signal.SIGKILL, 10), (signal.SIGSTOP, 15)], ids=["killed", "stopped"])
def test_who_is_gone_is_named(victim, how, within):
    with Job(LOOP, [2, 2]) as job:
        pid = [p.stdout.readline().split() for p in job.running][victim][1]
        time.sleep(1)
        job.running[victim].send_signal(how)
        _, err = job.running[1 - victim].communicate(timeout=60 + within)
        job.running[victim].send_signal(signal.SIGCONT)
    assert job.running[1 - victim].returncode != 0
    first = "0 to 1" if victim == 0 else "2 to 3"
    assert f"process {victim} (host" in err and f"pid {pid}, devices {first})" in err, err[-2000:]
    assert re.search(r"in step \d+ of|between steps, the last \d+", err) and "<string>:" in err, err[-2000:]


BETWEEN = """
a = put(np.ones((8,), np.float32), "x")
f = jax.jit(lambda x: x.sum())
jax.block_until_ready(f(a))
print("ready", flush=True)
sys.stdin.readline()
try:
    jax.block_until_ready(f(a))
except Exception as e:
    print(str(e), flush=True)
"""


def test_who_went_between_steps_is_missed_by_line():
    with Job(BETWEEN, [1, 1]) as job:
        assert [p.stdout.readline() for p in job.running] == ["ready\n", "ready\n"]
        job.running[1].kill()
        job.running[1].wait()
        time.sleep(1)  # so that it is known before the step begins
        out, err = job.running[0].communicate("\n", timeout=LIMIT)
    assert re.search(r"process 1 \(host .* is gone", out) and "<string>:" in out, out + err[-2000:]


@pytest.mark.parametrize(
    "name,variables",
    [
        ("torchrun", {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "RANK": "{me}", "MASTER_PORT": "{port}"}),
        ("ompi5", {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "{me}", "PMIX_NAMESPACE": "job{port}"}),
        ("neuron", {"NEURON_RT_ROOT_COMM_ID": "127.0.0.1:{port}", "NEURON_PJRT_PROCESSES_NUM_DEVICES": "1,2", "NEURON_PJRT_PROCESS_INDEX": "{me}"}),
    ],
)
def test_launchers_variables(name, variables):
    code = "import jax, opentrn.distributed; jax.distributed.initialize(); print(jax.process_index(), len(jax.devices()))"
    port = free_port()
    env = {k: v for k, v in os.environ.items() if k != "OPENTRN_DEVICES" or name != "neuron"}
    env |= {"JAX_PLATFORMS": "opentrn,cpu"} | ({} if name == "neuron" else {"OPENTRN_DEVICES": "2"})
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            env=env | {k: v.format(me=i, port=port) for k, v in variables.items()},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for i in range(2)
    ]
    for i, p in enumerate(running):
        out, err = p.communicate(timeout=LIMIT)
        assert out.split() == [str(i), "3" if name == "neuron" else "4"], err[-2000:]
