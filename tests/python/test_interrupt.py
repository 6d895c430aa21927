# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C in a run that would never end raises KeyboardInterrupt, a limit ends it with an error, and the next run is right."""

import os
import pathlib
import signal
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

JAX = """
import jax, jax.numpy as jnp
turn = jax.jit(lambda i: jax.lax.while_loop(lambda i: i >= 0, lambda i: (i + 1) & 7, i)).lower(jnp.int32(0)).compile()
add = jax.jit(lambda x: x + x)
float(add(jnp.float32(1)))  # all is loaded
def endless():
    return int(turn(jnp.int32(0)))
def after():
    return float(add(jnp.float32(1.5)))
"""

# The library as opentrn.torch calls it.
LIBRARY = f"""
import ctypes
from opentrn import _runtime
env = _runtime.Environment()
turn = env.compile(open({str(ROOT / "tests/tools/data/endless.mlir")!r}, "rb").read(), "endless.mlir")
text = b"func.func @main(%a: tensor<f32>) -> tensor<f32> {{ %r = stablehlo.add %a, %a : tensor<f32> return %r : tensor<f32> }}"
add = env.compile(text, "add.mlir")
def endless():
    out = ctypes.c_int32()
    turn.run([], [(ctypes.addressof(out), 4)])
def after():
    x, y = ctypes.c_float(1.5), ctypes.c_float()
    add.run([(ctypes.addressof(x), 4)], [(ctypes.addressof(y), 4)])
    return y.value
"""

TAIL = """
import sys, threading, os, signal, time
done = threading.Event()
def press():  # more than once where a busy machine had not begun the run
    while not done.wait(1.5):
        os.kill(os.getpid(), signal.SIGINT)
if sys.argv[1] == "press":
    threading.Thread(target=press, daemon=True).start()
for again in range(2):
    try:
        try:
            endless()
        except RuntimeError as e:  # where another thread ran it, its error comes first
            text = str(e).splitlines()[0]
            if "INTERRUPTED" not in text:
                print("error", text, flush=True)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        done.set()
        print("interrupted", flush=True)
    print("after", after(), flush=True)
    if sys.argv[1] == "press":
        break
"""


def run(script, how, **env):
    out = subprocess.run(
        [sys.executable, "-c", script + TAIL, how],
        env=dict(os.environ, OTRN_CACHE="off", JAX_PLATFORMS="opentrn,cpu", **env),
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert out.returncode == 0, out.stderr[-2000:]
    return out.stdout


@pytest.mark.parametrize("script,env", [(JAX, {"OPENTRN_DISPATCH": "inline"}), (JAX, {}), (LIBRARY, {})],
                         ids=["jax inside the call", "jax behind it", "library"])
def test_interrupt(script, env):
    assert run(script, "press", **env) == "interrupted\nafter 3.0\n"


def test_interrupt_that_nobody_catches():
    """It ends the program as Python does; an error of the run would come first and hide it. Who waits looks for it now and
    then, so on a starved machine it may take more than one try."""
    script = JAX + "import os, signal, threading\nthreading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\nendless()"
    for _ in range(5):
        out = subprocess.run([sys.executable, "-c", script], env=dict(os.environ, OTRN_CACHE="off", JAX_PLATFORMS="opentrn,cpu"),
                             capture_output=True, text=True, timeout=180)  # fmt: skip
        if out.stderr.endswith("KeyboardInterrupt\n"):
            break
    assert out.stderr.endswith("KeyboardInterrupt\n") and out.returncode == -signal.SIGINT, out.stderr[-500:]


@pytest.mark.parametrize("script", [JAX, LIBRARY], ids=["jax", "library"])
def test_limit(script):
    out = run(script, "wait", OTRN_TIMEOUT="1").splitlines()
    assert len(out) == 4 and out[1] == out[3] == "after 3.0"
    assert all("TIMEOUT" in line and "the run's time was over" in line for line in (out[0], out[2]))


def test_command(tmp_path):
    """The program ends by the signal itself: 130 for a shell."""
    p = subprocess.Popen([ROOT / "build" / "otrn", "run", ROOT / "tests/tools/data/endless.mlir"], stderr=subprocess.PIPE)
    try:
        p.wait(2)
    except subprocess.TimeoutExpired:
        p.send_signal(signal.SIGINT)
    assert p.wait(120) == -signal.SIGINT
