# SPDX-License-Identifier: Apache-2.0
"""`otrn top` shows a JAX process while it lives."""

import json
import os
import subprocess
import sys

from conftest import OTRN

CODE = """
import jax, jax.numpy as jnp, sys
for _ in range(3):
    jax.jit(lambda x: x @ x)(jnp.ones((64, 64))).block_until_ready()
print("ran", flush=True)
sys.stdin.read()
"""


def top(folder):
    done = subprocess.run([OTRN, "top", "--json"], capture_output=True, text=True, timeout=60, env={**os.environ, "XDG_RUNTIME_DIR": str(folder)})
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["processes"]


def test_a_jax_process_is_shown(tmp_path):
    with subprocess.Popen([sys.executable, "-c", CODE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}) as run:
        assert run.stdout.readline() == "ran\n"
        (shown,) = [p for p in top(tmp_path) if p["pid"] == run.pid]
        assert shown["runs"] >= 3 and 0 < shown["hbm_bytes"] < shown["hbm_capacity"]
        run.stdin.close()
    assert not [p for p in top(tmp_path) if p["pid"] == run.pid]
