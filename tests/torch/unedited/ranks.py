# SPDX-License-Identifier: Apache-2.0
"""Data parallelism under torchrun: DistributedDataParallel, or (--unused) with weights that only some steps use, or (--shard) FSDP2 on
each block and the whole."""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn

there = torch.accelerator.current_accelerator()
if there is not None:
    torch.accelerator.set_device_index(int(os.environ["LOCAL_RANK"]))
device = torch.device("cpu") if there is None else torch.device(there.type, int(os.environ["LOCAL_RANK"]))
dist.init_process_group(dist.get_default_backend_for_device(device))
torch.manual_seed(0)


class Skipped(nn.Module):
    """A layer that every other step goes without."""

    def __init__(self):
        super().__init__()
        self.layer, self.calls = nn.Linear(16, 16), 0

    def forward(self, x):
        self.calls += 1
        return self.layer(x) if self.calls % 2 else x


model = nn.Sequential(*(nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16)) for _ in range(2)), nn.Linear(16, 4))
if "--unused" in sys.argv:
    model.insert(1, Skipped())
model = model.to(device)
if "--shard" in sys.argv:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh(device.type, (dist.get_world_size(),))
    for block in model[:2]:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
else:
    model = nn.parallel.DistributedDataParallel(model, find_unused_parameters="--unused" in sys.argv)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
data = torch.Generator().manual_seed(1 + dist.get_rank())
losses = []
for _ in range(4):
    x, y = torch.randn(6, 16, generator=data).to(device), torch.randint(0, 4, (6,), generator=data).to(device)
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    mean = loss.detach()
    dist.all_reduce(mean)
    losses.append(mean.item() / dist.get_world_size())
if dist.get_rank() == 0:
    print("device", device, flush=True)
    print("losses", losses, flush=True)
dist.destroy_process_group()
