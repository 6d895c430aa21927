# SPDX-License-Identifier: Apache-2.0
"""Every test sees two backends: opentrn, the default, and JAX's CPU to compare with."""

import os
import pathlib
import signal
import subprocess
import sys

os.environ["JAX_PLATFORMS"] = "opentrn,cpu"
os.environ.setdefault("OPENTRN_DEVICES", "8")  # more than a chip of trn2 has: some tests need them
os.environ["OTRN_CACHE"] = "off"  # tests that want it turn it on in a process of their own

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # from a shell in the background; tests of Ctrl-C, and programs they start, need it
    signal.signal(signal.SIGINT, signal.default_int_handler)

import jax
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
OTRN = ROOT / "build" / "otrn"
sys.path.insert(0, str(ROOT / "examples" / "jax"))


@pytest.fixture(scope="session")
def device():
    return jax.devices()[0]


@pytest.fixture(scope="session")
def cpu():
    return jax.devices("cpu")[0]


@pytest.fixture
def x64():
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)


@pytest.fixture
def python():
    """Runs Python code in a process of its own, with other variables in its environment."""

    def run(code, **variables):
        env = {**os.environ, **{k: v for k, v in variables.items() if v is not None}}
        for k, v in variables.items():
            if v is None:
                env.pop(k, None)
        return subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=300
        )

    return run
