# SPDX-License-Identifier: Apache-2.0
"""Plain PyTorch: convolutions, batch norm, pooling, SGD, a checkpoint saved and loaded."""

import io

import torch
from torch import nn

device = torch.accelerator.current_accelerator() or torch.device("cpu")
torch.manual_seed(0)
model = nn.Sequential(
    nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3, groups=4),
    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5),
).to(device)  # fmt: skip
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
data = torch.Generator().manual_seed(1)
losses = []
for i in range(6):
    x, y = torch.randn(8, 3, 12, 12, generator=data).to(device), torch.randint(0, 5, (8,), generator=data).to(device)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    if i == 2:
        file = io.BytesIO()
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
        file.seek(0)
        state = torch.load(file, map_location=device)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
print("device", device)
print("losses", losses)
