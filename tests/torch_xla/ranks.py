# SPDX-License-Identifier: Apache-2.0
"""Programs that differ by rank, as torch_xla traces them: a rank's number has become a constant, a slice, another operation, or (with an argument) another shape."""

import os
import sys

import torch
import torch.distributed as dist
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.distributed.xla_backend

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
dist.init_process_group("xla")
device = xm.xla_device()
x = torch.arange(6.0).reshape(2, 3)
shares = [x * (r + 1) for r in range(world)]
mine = x.to(device) * (rank + 1)


def reduced(share):
    return xm.all_reduce(xm.REDUCE_SUM, share.to(device))


def gathered():
    parts = [torch.zeros(2, 3, device=device) for _ in range(world)]
    dist.all_gather(parts, mine)
    return torch.cat(parts)


def scattered():
    """Of several tensors, as ZeRO-1 does it: a list, a list into others, and by pieces of a size."""
    outs = [torch.zeros(1, 3, device=device), torch.zeros(1, 3, device=device)]
    several = xm.reduce_scatter(xm.REDUCE_SUM, [mine, mine + 1], 0.5, 0, world)
    xm.reduce_scatter(xm.REDUCE_SUM, [mine, mine * 2], 1.0, 0, world, output=outs)
    pieces = xm.reduce_scatter_bucketized(xm.REDUCE_SUM, [mine, mine - 1, mine * 3], 1.0, 0, world, bucket_cap_mb=1)
    return torch.cat([*several, *outs, *pieces])


def linear():
    """A row-parallel layer: each rank has its rows of the weights."""
    weight = torch.ones(3, 4) * torch.arange(1.0, 5.0)
    rows = slice(rank, 3 if rank == world - 1 else rank + 1)
    return reduced(x.to(device)[:, rows] @ weight.to(device)[rows])


if len(sys.argv) > 1:
    sys.exit(str(reduced(torch.ones(2 + rank, 3) + 1).cpu()))  # fails before
cases = {
    "constant": (reduced(x + 3.0 * rank), x * 2 + 3),
    "slice": (reduced(x[rank : rank + 1] * 2), x.sum(0, keepdim=True) * 2),
    "operation": (reduced(torch.sin(x.to(device)) if rank else torch.cos(x.to(device))), torch.sin(x) + torch.cos(x)),
    "all_gather": (xm.all_gather(mine), torch.cat(shares)),
    "all_gather dim": (xm.all_gather(mine, dim=1, pin_layout=False), torch.cat(shares, 1)),
    "dist.all_gather": (gathered(), torch.cat(shares)),
    "reduce_scatter": (xm.reduce_scatter(xm.REDUCE_SUM, mine, 1.0, 0, world), sum(shares)[rank : rank + 1]),
    "reduce_scatter of several": (
        scattered(),
        torch.cat([(sum(shares) * a + b)[rank : rank + 1] for a, b in ((0.5, 0), (0.5, 1), (1, 0), (2, 0), (1, 0), (1, -2), (3, 0))]),
    ),
    "all_gather of several": (torch.cat(xm.all_gather_bucketized([mine, mine + 1], bucket_cap_mb=1)), torch.cat([*shares, *(s + 1 for s in shares)])),
    "permute": (xm.collective_permute(mine, [[0, 1], [1, 0]]), shares[1 - rank]),
    "linear": (linear(), x @ (torch.ones(3, 4) * torch.arange(1.0, 5.0))),
}
torch_xla.sync()
for name, (got, want) in cases.items():
    torch.testing.assert_close(got.cpu(), want, rtol=1e-6, atol=1e-6, msg=lambda text, name=name: f"{name}: {text}")
    if rank == 0:
        print("loss", float(got.sum()))  # as many lines as cases
