# SPDX-License-Identifier: Apache-2.0
"""Compiled optimizer steps: eager's numbers, one program while the learning rate changes."""

import pytest

torch = pytest.importorskip("torch")

import models

import opentrn.torch

OPTIMIZERS = {
    "adamw": (torch.optim.AdamW, {"lr": 1e-2}),
    "adamw foreach": (torch.optim.AdamW, {"lr": 1e-2, "foreach": True}),
    "adam": (torch.optim.Adam, {"lr": 1e-2}),
    "sgd": (torch.optim.SGD, {"lr": 0.1}),
    "momentum": (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9}),
    "adagrad": (torch.optim.Adagrad, {"lr": 1e-2}),
    "rmsprop": (torch.optim.RMSprop, {"lr": 1e-2}),
}


def _train(kind, options, compiled):
    model = models.make("mlp")
    opt = kind(model.parameters(), **options)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 8)
    step = torch.compile(opt.step, backend="neuron") if compiled else opt.step
    g = torch.Generator().manual_seed(1)
    places = [p.data_ptr() for p in model.parameters()]
    seen = []
    for _ in range(8):
        opt.zero_grad()
        loss = models.run(model, models.ALL["mlp"][1](g))
        loss.backward()
        step()
        schedule.step()
        seen.append(loss.item())
    assert [p.data_ptr() for p in model.parameters()] == places
    assert isinstance(opt.param_groups[0]["lr"], float)
    return seen


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_schedule_without_recompiling(name, fresh):
    kind, options = OPTIMIZERS[name]
    want = _train(kind, options, False)
    got = _train(kind, options, True)
    assert models.worst(want, got) < 1e-5
    # Momentum has a first step of its own, in which its buffers are made.
    assert [g.runs for g in fresh.graphs] == ([1, 7] if name == "momentum" else [8])
    assert not fresh.found
