# SPDX-License-Identifier: Apache-2.0
"""One rank of test_processes.py: `worker.py ddp|fsdp|collectives`."""

import copy
import os
import sys

import models
import torch
import torch.distributed as dist

import opentrn.torch
from opentrn.torch.report import log

MODEL = "gpt" if sys.argv[1] == "fsdp" else "mlp"
RANK, WORLD, STEPS = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), 4


def batches():
    g = torch.Generator().manual_seed(1)
    return [models.ALL[MODEL][1](g) for _ in range(STEPS)]


def mine(batch):
    return tuple(x.chunk(WORLD)[RANK] for x in batch)


def train(model, run, part):
    opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
    seen = []
    for batch in batches():
        opt.zero_grad()
        loss = run(*part(batch))
        loss.backward()
        opt.step()
        seen.append(loss.detach())
    return torch.stack(seen)


def check(got, model):
    want = train(model, model, lambda batch: batch)
    dist.all_reduce(got)
    torch.testing.assert_close(got / WORLD, want, rtol=1e-5, atol=1e-6)
    assert log.graphs and all(g.runs for g in log.graphs), log.graphs
    print("agrees")


def ddp(model):
    wrapped = torch.nn.parallel.DistributedDataParallel(copy.deepcopy(model))
    check(train(wrapped, torch.compile(wrapped, backend="opentrn"), mine), model)


def fsdp(model):
    from torch.distributed.fsdp import fully_shard

    sharded = copy.deepcopy(model)
    for block in sharded.blocks:
        fully_shard(block)
        block.compile(backend="opentrn")
    fully_shard(sharded)
    check(train(sharded, sharded, mine), model)


def collectives(model):
    """Gradients of a graph that holds an all-reduce and an all-gather itself."""
    from torch.distributed._functional_collectives import all_gather_tensor, all_reduce

    def work(x, w):
        y = torch.tanh(x @ w)
        total = all_reduce(y.sum(0), "sum", list(range(WORLD)))
        rows = all_gather_tensor(y, 0, list(range(WORLD)))
        return total * 2, rows + 1

    w = torch.randn(3, 5, generator=torch.Generator().manual_seed(3))
    x = torch.randn(4, 3, generator=torch.Generator().manual_seed(4))
    with torch.no_grad():
        total, rows = torch.compile(work, backend="opentrn")(x.chunk(WORLD)[RANK], w)
    y = torch.tanh(x @ w)
    torch.testing.assert_close(total, y.sum(0) * 2, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(rows, y + 1, rtol=1e-5, atol=1e-5)
    assert len(log.graphs) == 2 and any("all_reduce" in f.operator for f in log.found)
    print("agrees")


torch.set_num_threads(1)
dist.init_process_group("gloo")
{"ddp": ddp, "fsdp": fsdp, "collectives": collectives}[sys.argv[1]](models.make(MODEL))
dist.destroy_process_group()
