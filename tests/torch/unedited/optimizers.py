# SPDX-License-Identifier: Apache-2.0
"""Every optimizer of torch.optim for dense gradients on the same small model, eager."""

import inspect

import torch
from torch import nn

device = torch.accelerator.current_accelerator() or torch.device("cpu")
OPTIMIZERS = [
    o for o in vars(torch.optim).values()
    if inspect.isclass(o) and issubclass(o, torch.optim.Optimizer) and o not in (torch.optim.Optimizer, torch.optim.SparseAdam)
]  # fmt: skip
GIVEN = {"LBFGS": {"max_iter": 2}, "Muon": {"lr": 1e-3}}  # what many steps would make of a rounding is not the subject
losses = []
for make in sorted(OPTIMIZERS, key=lambda o: o.__name__):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(9, 8), nn.Flatten(), nn.Linear(24, 4, bias=False)).to(device)
    optimizer = make(model.parameters(), **{"lr": 1e-2, **GIVEN.get(make.__name__, {})})
    data = torch.Generator().manual_seed(1)
    for _ in range(3):
        x, y = torch.randint(0, 9, (6, 3), generator=data).to(device), torch.randint(0, 4, (6,), generator=data).to(device)

        def step():
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)  # noqa: B023
            loss.backward()
            return loss

        losses.append(float(optimizer.step(step)))
print("device", next(model.parameters()).device)
print("losses", losses)
