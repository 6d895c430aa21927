# SPDX-License-Identifier: Apache-2.0
"""PyTorch tests; without torch they are skipped (./dev test-torch installs it and runs them)."""

import os
import pathlib
import signal
import sys

import pytest

os.environ.setdefault("OTRN_CACHE", "off")
os.environ.setdefault("OMP_NUM_THREADS", "1")
ROOT = pathlib.Path(__file__).resolve().parents[2]
os.environ.setdefault("OTRN_CACHE_DIR", str(ROOT / "build" / "torch-cache"))  # the device's C++ part is kept there
sys.path.insert(0, str(pathlib.Path(__file__).parent))
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # from a shell in the background; tests of Ctrl-C need it
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def fresh():
    """Each test starts with nothing captured and nothing counted."""
    torch = pytest.importorskip("torch")
    from opentrn.torch.report import log

    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    log.clear()
    torch.manual_seed(0)
    yield log


@pytest.fixture
def breaks():
    """How often Dynamo cut a graph so far in this test."""
    import torch

    return lambda: sum(torch._dynamo.utils.counters["graph_break"].values())
