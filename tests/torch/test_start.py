# SPDX-License-Identifier: Apache-2.0
"""What a process has when it begins: the modules it imported, the host's threads."""

import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

from opentrn import _runtime  # noqa: E402

LATE = ("torch._dynamo", "torch._functorch.partitioners", "jax")


def test_import_leaves_what_only_graphs_need():
    """And it is not told that there is no device, though torch, which asks for it, comes with us."""
    code = f"import sys, opentrn.torch; print([m for m in {LATE} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout == "[]\n" and "no device" not in run.stderr, run.stderr


def test_dynamo_has_the_backend_whoever_imports_it():
    """Before or after us, with or without the package's entry points."""
    find = "import torch._dynamo; from torch._dynamo.backends import registry; print(registry._COMPILER_FNS['opentrn'] is opentrn.torch.backend)"
    for code in (f"import opentrn.torch; {find}", f"import torch._dynamo, opentrn.torch; {find}"):
        run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
        assert run.stdout == "True\n"


def test_names_come_first():
    """What is asked of the package may be the first that asks for Dynamo."""
    for name in ("export_step", "export_forward", "compile_step", "explain"):
        run = subprocess.run([sys.executable, "-c", f"from opentrn.torch import {name}"], capture_output=True, text=True)
        assert run.returncode == 0, run.stderr


def test_a_profile_ends_what_it_began():
    """PyTorch's programs come with the device's first operator, here inside a profile; the next one still sees what is outside."""
    code = """import opentrn, torch
with opentrn.profile():
    import opentrn.torch
for _ in range(2):
    with opentrn.profile() as p:
        torch.ones(2) + 1
    print([o.operator for o in p.outside])"""
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout == 2 * "['aten.ones.default', 'aten.add.Tensor']\n"


def test_no_operator_is_known_too_late():
    """Dynamo brings prims.fma into graphs, randomness.py our own; who asks for one before it is defined has no lowering for it. So the
    table is the same whichever module comes first."""
    known = "{torch.ops.prims.fma.default, torch.ops.opentrn.uniform.default} <= set(TABLE)"
    found = set()
    for first in ("lower", "report", "capture", "distributed"):
        code = f"import torch, opentrn.torch.{first}, opentrn.torch.capture; from opentrn.torch.lower import TABLE; print({known}, len(TABLE))"
        run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
        found.add(run.stdout)
    assert len(found) == 1 and found.pop().startswith("True "), found


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
