# SPDX-License-Identifier: Apache-2.0
"""Accelerate: prepare, accumulation, clipping, a schedule."""

import torch
from accelerate import Accelerator
from torch import nn

accelerator = Accelerator(gradient_accumulation_steps=2)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.SiLU(), nn.Dropout(0.1), nn.Linear(32, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 8)
data = torch.Generator().manual_seed(1)
rows = torch.utils.data.TensorDataset(
    torch.randn(64, 8, generator=data), torch.randint(0, 4, (64,), generator=data)
)
loader = torch.utils.data.DataLoader(rows, batch_size=8)
model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
losses = []
for x, y in loader:
    with accelerator.accumulate(model):
        loss = nn.functional.cross_entropy(model(x), y)
        accelerator.backward(loss)
        if accelerator.sync_gradients:
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
    losses.append(loss.item())
print("device", accelerator.device)
print("losses", losses)
