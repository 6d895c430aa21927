# SPDX-License-Identifier: Apache-2.0
"""What mixed precision brings along: a gradient scaler, gathered and clipped gradients, recomputed blocks, averaged weights, one cycle."""

import torch
from torch import nn
from torch.optim import swa_utils
from torch.utils.checkpoint import checkpoint

device = torch.accelerator.current_accelerator() or torch.device("cpu")
torch.manual_seed(0)


def block():
    return nn.Sequential(nn.Conv2d(16, 16, 3, padding=1, groups=4), nn.SiLU(), nn.Conv2d(16, 16, 1), nn.Dropout2d(0.1))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, 16, 3, padding=1), nn.GroupNorm(4, 16)
        self.blocks = nn.ModuleList(block() for _ in range(2))
        self.head = nn.Linear(16, 5)

    def forward(self, x):
        x = self.norm(self.stem(x))
        for part in self.blocks:
            x = x + checkpoint(part, x, use_reentrant=False)
        return self.head(nn.functional.adaptive_avg_pool2d(x, 1).flatten(1))


net = Net().to(device)
average = swa_utils.AveragedModel(net, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.9))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-4)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=6)
scaler = torch.amp.GradScaler(device.type, init_scale=1024.0)
data = torch.Generator().manual_seed(1)
losses = []
for i in range(4):
    x, y = torch.randn(4, 3, 12, 12, generator=data).to(device), torch.randint(0, 5, (4,), generator=data).to(device)
    with torch.autocast(device.type, dtype=torch.bfloat16, enabled=False):
        loss = nn.functional.cross_entropy(net(x), y, label_smoothing=0.1)
    scaler.scale(loss / 2).backward()
    losses.append(loss.item())
    if i % 2:
        scaler.unscale_(optimizer)
        losses.append(nn.utils.clip_grad_norm_(net.parameters(), 1.0).item())
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        schedule.step()
        average.update_parameters(net)
average.eval()
with torch.inference_mode():
    losses.append(average(x).square().mean().item())
print("device", device)
print("losses", losses)
