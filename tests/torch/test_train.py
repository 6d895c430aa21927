# SPDX-License-Identifier: Apache-2.0
"""`otrn train` against PyTorch: the same weights, data and update."""

import sys

import pytest

torch = pytest.importorskip("torch")

import torch.distributed.checkpoint as dcp
from conftest import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
import gpt_same


def test_gpt_steps_equal_torch(tmp_path):
    """From the checkpoint behind the first step torch.optim.AdamW makes the same five; `make gpt-same` does it with GPT-2 124M and 20."""
    sizes = {"layers": 2, "dim": 32, "heads": 2, "vocab": 256, "seq": 16, "batch": 4}
    assert gpt_same.compare(str(ROOT / "build" / "otrn"), tmp_path, sizes, 5, ["torch"], rate=1e-3) == []


def test_distributed_checkpoint_of_one_process(tmp_path):
    """torch.distributed.checkpoint as it is: what goes on from it has the same bits. Of four processes: test_processes.py."""
    import opentrn.torch

    x, y = torch.randn(8, 16), torch.randint(0, 4, (8,))

    def made():
        torch.manual_seed(1)
        model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Linear(32, 4))
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        return model, optimizer, opentrn.torch.compile_step(model, optimizer, torch.nn.functional.cross_entropy)

    def state(model, optimizer):
        return {"model": model.state_dict(), "optimizer": optimizer.state_dict()}

    model, optimizer, step = made()
    for i in range(4):
        if i == 2:
            dcp.save(state(model, optimizer), checkpoint_id=tmp_path / "saved", no_dist=True)
        step(x, y)
    again, other, step = made()
    step(x, y)  # the optimizer's state has its shapes
    held = state(again, other)
    dcp.load(held, checkpoint_id=tmp_path / "saved", no_dist=True)
    again.load_state_dict(held["model"])
    other.load_state_dict(held["optimizer"])
    for _ in range(2):
        step(x, y)
    for a, b in zip(model.parameters(), again.parameters(), strict=True):
        assert torch.equal(a, b)
