# SPDX-License-Identifier: Apache-2.0
"""Indices and labels out of range: found with an option, in graphs and by eager operators on the device."""

import os
import shutil
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
import opentrn.torch  # noqa: E402
from opentrn.torch import settings  # noqa: E402

TABLE = torch.arange(12.0).reshape(4, 3)
FIVE = torch.zeros(5)
CALLS = {  # name: (call of one index of three elements, a limit that it must be below, a negative one that is allowed)
    "embedding": (lambda i: F.embedding(i, TABLE), 4, None),
    "cross_entropy": (lambda i: F.cross_entropy(TABLE[:3], i), 3, -100),
    "gather": (lambda i: torch.gather(FIVE, 0, i), 5, None),
    "computed": (lambda i: torch.gather(FIVE, 0, (i * 2).flip(0) // 2), 5, None),
    "index_select": (lambda i: TABLE.index_select(1, i), 3, None),
    "index": (lambda i: TABLE[:, i], 3, -3),
    "scatter": (lambda i: FIVE.scatter(0, i, 1.0), 5, None),
    "scatter_add": (lambda i: FIVE.scatter_add(0, i, torch.ones(3)), 5, None),
    "index_put": (lambda i: FIVE.clone().index_put_((i,), torch.ones(3)), 5, -5),
    "index_add": (lambda i: FIVE.index_add(0, i, torch.ones(3)), 5, None),
    "take": (lambda i: torch.take(TABLE, i), 12, -12),
}


@pytest.mark.parametrize("name", CALLS)
def test_in_graphs(name, monkeypatch):
    call, limit, allowed = CALLS[name]
    monkeypatch.setattr(settings, "check_indices", True)
    f = torch.compile(call, backend="opentrn")
    good = torch.tensor([0, 1, limit - 1 if allowed is None else allowed])
    torch.testing.assert_close(f(good), call(good), rtol=1e-5, atol=1e-6)
    for bad in (limit, (allowed or 0) - 1):
        with pytest.raises(IndexError, match=rf"index {bad} in element \[.*\] of the indices of aten\..* at .*test_indices.py:\d+ in <lambda>"):
            f(torch.tensor([0, bad, 1]))


def test_training_steps_and_positions(monkeypatch):
    monkeypatch.setattr(settings, "check_indices", True)
    model = torch.nn.Sequential(torch.nn.Embedding(7, 4), torch.nn.Flatten(), torch.nn.Linear(8, 3))
    step = opentrn.torch.compile_step(model, torch.optim.SGD(model.parameters(), lr=0.1), F.cross_entropy)
    x, y = torch.tensor([[0, 6], [3, 2]]), torch.tensor([0, 2])
    assert step(x, y).isfinite()
    before = [p.detach().clone() for p in model.parameters()]
    with pytest.raises(IndexError, match=r"index 7 in element \[1, 0\] of the indices of aten.embedding.default at .*from 0 to 6"):
        step(torch.tensor([[0, 6], [7, 2]]), y)
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters()))  # an argument is looked at before anything runs
    with pytest.raises(IndexError, match=r"index 3 in element .* of aten.nll_loss_forward.default"):
        step(x, torch.tensor([0, 3]))


def test_without_the_option_nothing_is_looked_at():
    f = torch.compile(lambda i: F.embedding(i, TABLE), backend="opentrn")
    assert f(torch.tensor([9])).shape == (1, 3)


EAGER = """if True:
    import torch, torch.nn.functional as F
    table, five = torch.arange(12.0).reshape(4, 3).to("neuron"), torch.zeros(5, device="neuron")
    calls = {
        4: lambda i: F.embedding(i, table),
        3: lambda i: F.cross_entropy(table[:3], i),
        5: lambda i: five.scatter_add_(0, i, torch.ones(3, device="neuron")),
        -4: lambda i: table[:, i],
    }
    for limit, call in calls.items():
        call(torch.tensor([0, 1, 2]).to("neuron"))
        call(torch.tensor([0, 1, 2]).to("neuron"))
        try:
            call(torch.tensor([0, limit, 1]).to("neuron"))
        except (IndexError if limit > 0 else RuntimeError) as why:
            print(str(why).replace(chr(10), " "))
    print(five.sum().item())
"""


@pytest.mark.skipif(not shutil.which("g++"), reason="the device needs a C++ compiler")
def test_eager_operators_on_the_device():
    env = os.environ | {"OTRN_TORCH_INDEX": "1"}
    done = subprocess.run([sys.executable, "-c", EAGER], env=env, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert len(lines) == 5, done.stdout + done.stderr
    for limit, name, line in zip((4, 3, 5, -4), ("index_select", "nll_loss_forward", "scatter_add", "index"), lines):
        assert line.startswith(f"opentrn: index {limit} in element [1] of the indices of aten.{name}"), line
        assert "at <string>:" in line, line
    assert float(lines[4]) == 6.0  # the call that failed wrote nothing
