# SPDX-License-Identifier: Apache-2.0
"""The platform: what JAX finds, under which name, and what happens when it cannot start."""

import os
import socket
import subprocess
import sys

import jax
import numpy as np

import opentrn


def test_default_device(device):
    assert device.platform == "opentrn"
    assert jax.default_backend() == "opentrn"
    assert device.device_kind == "trn2"
    assert repr(device) == "opentrn:0"


def test_memories(device):
    assert [m.kind for m in device.addressable_memories()] == ["device", "pinned_host"]
    assert device.default_memory().kind == "device"


def test_memory_kinds_move(device):
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    host = jax.sharding.SingleDeviceSharding(device, memory_kind="pinned_host")
    y = jax.device_put(jax.device_put(x), host)
    assert y.sharding.memory_kind == "pinned_host"
    np.testing.assert_array_equal(y, x)


def test_memory_stats(device):
    before = device.memory_stats()["bytes_in_use"]
    x = jax.device_put(np.zeros(1000, np.float32))
    assert device.memory_stats()["bytes_in_use"] == before + 4000
    assert device.memory_stats()["peak_bytes_in_use"] >= before + 4000
    x.delete()
    assert device.memory_stats()["bytes_in_use"] == before


def test_nothing_changes_for_programs_that_do_not_ask(python):
    ran = python(
        "import jax; print(jax.default_backend(), jax.devices('opentrn')[0])", JAX_PLATFORMS=None
    )
    assert ran.stdout.strip() == "cpu opentrn:0"
    assert "experimental" not in ran.stderr


def test_cpu_survives_a_missing_library(python):
    ran = python(
        "import jax; print(jax.default_backend())",
        JAX_PLATFORMS=None,
        OTRN_PJRT_LIBRARY="/nonexistent.so",
    )
    assert ran.stdout.strip() == "cpu", ran.stderr
    ran = python(
        "import jax; jax.devices()", JAX_PLATFORMS="opentrn", OTRN_PJRT_LIBRARY="/nonexistent.so"
    )
    assert ran.returncode != 0
    assert "/nonexistent.so" in ran.stderr


def test_bad_options_are_errors(python):
    ran = python("import jax; jax.devices()", OPENTRN_DEVICES="2000")
    assert ran.returncode == 1
    assert "option devices is 2000" in ran.stderr
    ran = python("import jax; jax.devices()", OTRN_AUTO_CAST="matmul")
    assert ran.returncode == 1
    last = ran.stderr.splitlines()[-1]  # of the exception, not of something logged before
    assert "OTRN_AUTO_CAST: 'matmul' is not one of none|matmult|all" in last
    ran = python("import jax; print(jax.devices())", OTRN_AUTO_CAST="matmul", JAX_PLATFORMS=None)
    assert "CpuDevice" in ran.stdout
    ran = python("import jax; jax.jit(lambda x: x + 1)(1)", OTRN_TARGET="trn99")
    assert ran.returncode == 1
    assert "trn99" in ran.stderr


def test_several_devices(python):
    code = """if True:
        import jax, numpy as np
        a, b, c = jax.devices()
        x = jax.device_put(np.arange(4.0, dtype=np.float32), b)
        y = jax.device_put(x, c)
        assert x.devices() == {b} and y.devices() == {c}
        z = jax.jit(lambda v: v + 1)(y)
        assert z.devices() == {c}
        print(np.asarray(z).tolist())"""
    ran = python(code, OPENTRN_DEVICES="3")
    assert ran.stdout.strip() == "[1.0, 2.0, 3.0, 4.0]", ran.stderr


PROCESS = """if True:
    import jax
    jax.distributed.initialize("127.0.0.1:{port}", {count}, {index}, initialization_timeout=60)
    print(len(jax.devices()), jax.process_count())"""


def processes(count, **variables):
    """The ends of `count` processes that jax.distributed connects over loopback."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    env = {k: v for k, v in {**os.environ, **variables}.items() if v is not None}
    running = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS.format(port=port, count=count, index=i)],
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for i in range(count)
    ]
    return [(*p.communicate(timeout=300), p.returncode) for p in running]


def test_two_processes_see_all_devices():
    for out, err, status in processes(2, OPENTRN_DEVICES="3"):
        assert (out.split(), status) == (["6", "2"], 0), err


def test_two_processes_elsewhere_are_left_alone():
    for out, err, status in processes(2, JAX_PLATFORMS=None):
        assert (out.split(), status) == (["2", "2"], 0), err


def test_one_process_may_say_so():
    for out, err, status in processes(1, OPENTRN_DEVICES="3"):
        assert (out.split(), status) == (["3", "1"], 0), err


def test_named_neuron(python):
    code = "import jax; print(jax.devices()[0], jax.jit(lambda x: x + 1)(2))"
    ran = python(code, OPENTRN_PLATFORM="neuron", JAX_PLATFORMS="neuron")
    assert ran.stdout.strip() == "neuron:0 3", ran.stderr


def test_library_is_loaded_from_where_it_says():
    with open("/proc/self/maps") as f:
        assert opentrn.library_path() in f.read()


def test_private_names_of_jax_look_as_expected():
    """The two names jax_plugin.py touches; when one moves, this tells before users notice."""
    import dataclasses

    from jax._src import xla_bridge
    from jax._src.interpreters import mlir

    entry = xla_bridge._backend_factories["opentrn"]
    assert dataclasses.is_dataclass(entry)
    assert entry.fail_quietly and not entry.experimental
    assert "opentrn" in mlir._platforms_with_donation
