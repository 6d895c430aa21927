# SPDX-License-Identifier: Apache-2.0
"""Data parallelism as scripts for torch_xla have it: run alone, or by torchrun with a share of the batch for each process."""

import os
import time

import torch
import torch.distributed as dist
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.distributed.xla_backend

world, rank = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("RANK", 0))
if world > 1:
    dist.init_process_group("xla")
device = xm.xla_device()
torch.manual_seed(0)
x, y = torch.randn(8, 10).chunk(world)[rank], torch.randn(8, 1).chunk(world)[rank]
model = torch.nn.Sequential(torch.nn.Linear(10, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
x, y = x.to(device), y.to(device)
for _ in range(4):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), y)
    loss.backward()
    xm.optimizer_step(optimizer)  # the gradients' mean over the processes
    total = xm.all_reduce(xm.REDUCE_SUM, loss.detach(), scale=1.0 / world)
    torch_xla.sync()
    if rank == 0:
        print("loss", float(total))
time.sleep(rank)  # the others end after process 0, which has the coordinator
