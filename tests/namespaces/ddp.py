# SPDX-License-Identifier: Apache-2.0
"""A small DDP step of torch, started by any launcher; each rank prints its rank and the hash of its parameters."""

import hashlib
import os

import torch
import torch.distributed as dist
import torch.nn as nn

import opentrn.torch  # noqa: F401

dist.init_process_group("neuron")
torch.manual_seed(0)
model = nn.parallel.DistributedDataParallel(nn.Linear(32, 32))
opt = torch.optim.AdamW(model.parameters())
for i in range(3):
    x = torch.randn(16, 32, generator=torch.Generator().manual_seed(i)).chunk(dist.get_world_size())[dist.get_rank()]
    opt.zero_grad()
    model(x).square().mean().backward()
    opt.step()
words = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
# One write, so that lines of several ranks do not mix.
os.write(1, f"rank {dist.get_rank()} of {dist.get_world_size()} {hashlib.sha256(words).hexdigest()}\n".encode())
dist.destroy_process_group()
