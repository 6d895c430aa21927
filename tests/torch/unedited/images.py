# SPDX-License-Identifier: Apache-2.0
"""A residual net on images: blocks with batch norm, channels_last, momentum and decay, label smoothing, autograd's
accuracy of the first five, automatic mixed precision switched off."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width, out, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(width, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out), nn.ReLU(inplace=True),
            nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out),
        )  # fmt: skip
        self.short = nn.Identity() if stride == 1 else nn.Sequential(nn.Conv2d(width, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        return torch.relu(self.body(x) + self.short(x))


device = torch.accelerator.current_accelerator() or torch.device("cpu")
torch.manual_seed(0)
model = nn.Sequential(
    nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1),
    Block(8, 8, 1), Block(8, 16, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10),
).to(device, memory_format=torch.channels_last)  # fmt: skip
criterion = nn.CrossEntropyLoss(label_smoothing=0.1).to(device)
optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 4)
data = torch.Generator().manual_seed(1)
losses = []
for _ in range(4):
    x = torch.randn(8, 3, 32, 32, generator=data).to(device, memory_format=torch.channels_last, non_blocking=True)
    y = torch.randint(0, 10, (8,), generator=data).to(device, non_blocking=True)
    with torch.autocast(device.type, enabled=False):
        out = model(x)
        loss = criterion(out, y)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    scheduler.step()
    right = out.topk(5, 1).indices.eq(y[:, None]).any(1).float().mean()
    losses += [loss.item(), 1 + right.item()]
print("device", device)
print("losses", losses)
