# SPDX-License-Identifier: Apache-2.0
"""What JAX expects of a backend beyond numbers: its own cache, memory kinds, asynchronous calls, threads."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import SingleDeviceSharding

CODE = """if True:
    import jax, numpy as np, jax.numpy as jnp, logging
    from jax.sharding import NamedSharding, PartitionSpec as P
    jax.config.update("jax_compilation_cache_dir", {folder!r})
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    hits = []
    jax.monitoring.register_event_listener(
        lambda name, **_: hits.append(name) if name.endswith("cache_hits") else None)
    x = np.arange(8, dtype=np.float32)
    y = jax.jit(lambda v: jnp.cos(v) @ v, donate_argnums=0)(x)
    mesh = jax.sharding.Mesh(jax.devices()[:2], "i")
    s = jax.device_put(x, NamedSharding(mesh, P("i")))
    z = jax.jit(lambda v: v * 2)(s)
    assert z.sharding.is_equivalent_to(s.sharding, 1), z.sharding
    w = jax.jit(jax.shard_map(lambda v: jax.lax.psum(v, "i"), mesh=mesh, in_specs=P("i"), out_specs=P()))(s)
    print(len(hits), float(y), np.asarray(z).sum(), np.asarray(w).tolist())"""


def test_persistent_cache(python, tmp_path):
    code = CODE.format(folder=str(tmp_path / "jax"))
    first, second = (python(code, OPENTRN_DEVICES="2") for _ in range(2))
    assert first.stdout.startswith("0 "), first.stderr
    assert len(list((tmp_path / "jax").iterdir())) >= 3
    hits, rest = second.stdout.split(" ", 1)
    assert int(hits) >= 3, second.stderr
    assert rest == first.stdout.split(" ", 1)[1]


def test_memory_kinds(device):
    kinds = {m.kind for m in device.addressable_memories()}
    assert kinds == {"device", "pinned_host"} and device.default_memory().kind == "device"
    x = np.arange(6, dtype=np.float32)
    host = SingleDeviceSharding(device, memory_kind="pinned_host")
    there = jax.device_put(x, host)
    assert there.sharding.memory_kind == "pinned_host"
    back = jax.device_put(there, SingleDeviceSharding(device, memory_kind="device"))
    np.testing.assert_array_equal(np.asarray(back), x)
    out = jax.jit(lambda v: v + 1, out_shardings=host)(x)
    assert out.sharding.memory_kind == "pinned_host"
    np.testing.assert_array_equal(np.asarray(out), x + 1)
    f = jax.jit(lambda v: jax.device_put(v * 2, host), out_shardings=host)
    np.testing.assert_array_equal(np.asarray(f(x)), x * 2)
    used = device.memory_stats()["bytes_in_use"]
    held = jax.device_put(np.zeros(1 << 16, np.float32), host)
    assert device.memory_stats()["bytes_in_use"] == used  # host memory is no HBM
    del held


def test_pinned_arguments(device):
    host = SingleDeviceSharding(device, memory_kind="pinned_host")
    x = jax.device_put(np.arange(4, dtype=np.float32), host)
    f = jax.jit(lambda v: jax.device_put(v, SingleDeviceSharding(device, memory_kind="device")) + 1)
    np.testing.assert_array_equal(np.asarray(f(x)), np.arange(4) + 1)


def test_errors_travel_with_results(python):
    code = """if True:
        import jax, jax.numpy as jnp, numpy as np
        def bad(v):
            raise ValueError("broken")
        y = jax.jit(lambda v: jax.pure_callback(bad, jax.ShapeDtypeStruct((), np.float32), v))(1.0)
        z = jax.jit(lambda v: v + 1)(y)
        try:
            jax.block_until_ready(z)
        except Exception as error:
            print("broken" in str(error), float(jnp.float32(1) + 1))"""
    ran = python(code, OPENTRN_DISPATCH="async")
    assert ran.stdout == "True 2.0\n", ran.stderr


def test_calls_return_before_the_run_is_done(python):
    code = """if True:
        import jax, threading, time, numpy as np
        gate = threading.Event()
        def wait(v):
            gate.wait(600)
            return v
        f = jax.jit(lambda v: jax.pure_callback(wait, jax.ShapeDtypeStruct((), np.float32), v) + 1)
        y = f(np.float32(1))
        z = jax.jit(lambda v: v * 2, donate_argnums=0)(y)
        w = jax.device_put(z, jax.devices()[1])
        print(z.is_ready(), w.is_ready(), y.is_deleted())
        gate.set()
        print(float(w))
        for _ in range(3000):  # the copy may be heard of before what it is made of: both are told by one thread, one after the other
            if not z.is_ready():
                time.sleep(0.01)
        print(z.is_ready())"""
    ran = python(code, OPENTRN_DISPATCH="async", OPENTRN_DEVICES="2")
    assert ran.stdout == "False False True\n4.0\nTrue\n", ran.stderr


def test_many_threads():
    import threading

    f = jax.jit(lambda v, k: (v * k).sum())
    x = np.arange(64, dtype=np.float32)
    wrong = []

    def work(n):
        for i in range(50):
            if float(f(x, np.float32(n + i))) != x.sum() * (n + i):
                wrong.append((n, i))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong
