# SPDX-License-Identifier: Apache-2.0
"""A bigger plain loop: autograd.Function, gradient checkpointing, EMA, clipping, a schedule, gradient accumulation."""

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.checkpoint import checkpoint

device = torch.accelerator.current_accelerator() or torch.device("cpu")


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        return 2 * ctx.saved_tensors[0] * grad


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(8, 16), nn.utils.parametrizations.weight_norm(nn.Linear(16, 3))

    def forward(self, x):
        return self.last(Square.apply(checkpoint(self.first, x, use_reentrant=False)))


torch.manual_seed(0)
model = Model().to(device)
average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.05, total_steps=6)
data = torch.Generator().manual_seed(1)
losses = []
for _ in range(6):
    for _ in range(2):
        x, y = torch.randn(5, 8, generator=data).to(device), torch.randn(5, 3, generator=data).to(device)
        loss = nn.functional.huber_loss(model(x), y) / 2
        loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    schedule.step()
    optimizer.zero_grad()
    average.update_parameters(model)
    losses.append(loss.item())
losses.append(nn.functional.huber_loss(average(x), y).item())
print("device", device)
print("losses", losses)
