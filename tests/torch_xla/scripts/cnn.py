# SPDX-License-Identifier: Apache-2.0
"""An image classifier with batch norm, dropout left out, a schedule, and a checkpoint saved by xm.save."""
import io

import torch
import torch.nn.functional as F
import torch_xla
import torch_xla.core.xla_model as xm
from torch import nn


def main():
    device = torch_xla.device()
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3, stride=2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10),
    ).to(device)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    data = torch.Generator().manual_seed(1)
    for _ in range(5):
        with torch_xla.step():
            x, y = torch.randn(8, 3, 16, 16, generator=data).to(device), torch.randint(0, 10, (8,), generator=data).to(device)
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            xm.optimizer_step(optimizer)
            schedule.step()
        print("loss", loss.item())
    saved = io.BytesIO()
    xm.save(model.state_dict(), saved)
    print("loss", sum(v.double().abs().sum().item() for v in torch.load(io.BytesIO(saved.getvalue())).values()))


main()
