# SPDX-License-Identifier: Apache-2.0
"""Weights that were marked as cut, and the optimizer's state of them, which nobody marked, are cut after every step."""

import numpy as np
import torch
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.distributed.spmd as xs
import torch_xla.runtime as xr
from torch_xla.distributed.spmd.xla_sharded_tensor import XLAShardedTensor

xr.use_spmd()
mesh = xs.Mesh(np.arange(4), (2, 2), ("data", "model"))
device = torch_xla.device()
model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Tanh(), torch.nn.Linear(32, 8)).to(device)
first, second = model[0].weight, model[2].weight
xs.mark_sharding(first, mesh, ("model", None))
xs.mark_sharding(second, mesh, (None, "model"))
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
x = torch.randn(8, 16).to(device)
xs.mark_sharding(x, mesh, ("data", None))
for _ in range(3):
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()
    torch_xla.sync()
xm.wait_device_ops()
state = optimizer.state
for tensor, part in (first, (16, 16)), (second, (8, 16)), (state[first]["exp_avg"], (16, 16)), (state[second]["exp_avg_sq"], (8, 16)), (model[2].bias, (8,)):
    shapes = [tuple(shard.data.shape) for shard in XLAShardedTensor(tensor).local_shards]
    assert shapes == [part] * 4, shapes
    print("loss", np.prod(part))

part = xs.enable_manual_sharding(torch.arange(64.0).reshape(8, 8).to(torch_xla.device()), ("all", None), mesh=xs.Mesh(np.arange(4), (4,), ("all",)))
own = part.global_tensor * 2 + part.global_tensor.sum(0, keepdim=True)  # of two rows each
whole = xs.disable_manual_sharding(own, ("all", None), (8, 8), mesh=xs.Mesh(np.arange(4), (4,), ("all",))).global_tensor
assert own.shape == (2, 8) and whole.sum().item() == 4 * sum(range(64))
