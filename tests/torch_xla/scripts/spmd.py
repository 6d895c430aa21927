# SPDX-License-Identifier: Apache-2.0
"""Data and tensor parallel over a mesh of all devices, in one process (torch_xla.distributed.spmd)."""
import numpy as np
import torch
import torch.nn.functional as F
import torch_xla
import torch_xla.distributed.spmd as xs
import torch_xla.runtime as xr
from torch import nn


def main():
    xr.use_spmd()
    n = xr.global_runtime_device_count()
    mesh = xs.Mesh(np.arange(n), (max(n // 2, 1), min(n, 2)), ("data", "model"))
    device = torch_xla.device()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 4)).to(device)
    xs.mark_sharding(model[0].weight, mesh, ("model", None))
    xs.mark_sharding(model[2].weight, mesh, (None, "model"))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    data = torch.Generator().manual_seed(1)
    for _ in range(4):
        x, y = torch.randn(8, 16, generator=data).to(device), torch.randint(0, 4, (8,), generator=data).to(device)
        xs.mark_sharding(x, mesh, ("data", None))
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        torch_xla.sync()
        print("loss", loss.item())


main()
