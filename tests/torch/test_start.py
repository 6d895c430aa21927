# SPDX-License-Identifier: Apache-2.0
"""What a process has when it begins: the modules it imported, the host's threads."""

import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

from opentrn import _runtime  # noqa: E402

LATE = ("torch._functorch.partitioners", "torch._dynamo.backends.common", "jax")


def test_import_leaves_what_only_graphs_need():
    code = f"import sys, opentrn.torch; print([m for m in {LATE} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout == "[]\n"


def test_no_operator_is_known_too_late():
    """Dynamo brings this one into graphs; who asks for it before it is defined has no lowering for it."""
    code = "import torch, opentrn.torch; from opentrn.torch.lower import TABLE; print(torch.ops.prims.fma.default in TABLE)"
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout == "True\n"


def test_host_threads_are_pytorchs(monkeypatch):
    """One core for PyTorch is one for the device's host code too; OTRN_THREADS has the last word."""
    asked = []
    monkeypatch.setattr(_runtime, "_default", {})
    monkeypatch.setattr(_runtime, "Environment", lambda **options: asked.append(options))
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    monkeypatch.delenv("OTRN_THREADS", raising=False)
    _runtime.default_environment()
    monkeypatch.setenv("OTRN_THREADS", "2")
    _runtime._default.clear()
    _runtime.default_environment()
    assert asked == [{"threads": 3}, {}]
