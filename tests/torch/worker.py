# SPDX-License-Identifier: Apache-2.0
"""One rank of test_processes.py: `worker.py BACKEND MEETING-FILE RANK WORLD WAY…`."""

import sys

import models
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.tensor import Partial, Replicate, Shard, distribute_tensor

import opentrn.torch
from opentrn.torch.report import log

BACKEND, RANK, WORLD, STEPS = sys.argv[1], int(sys.argv[3]), int(sys.argv[4]), 4
OURS = BACKEND != "gloo"


def batches(name):
    g = torch.Generator().manual_seed(1)
    return [models.ALL[name][1](g) for _ in range(STEPS)]


def mine(batch):
    return tuple(x.chunk(WORLD)[RANK] for x in batch)


def whole(batch):
    return batch


def train(name, model, run, part):
    opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
    seen = []
    for batch in batches(name):
        opt.zero_grad()
        loss = run(*part(batch))
        loss.backward()
        opt.step()
        seen.append(loss.detach())
    return torch.stack(seen)


def check(name, got):
    """got: losses of this rank's part of each batch."""
    model = models.make(name)
    want = train(name, model, model, whole)
    dist.all_reduce(got)
    torch.testing.assert_close(got / WORLD, want, rtol=1e-6, atol=1e-6)
    assert log.graphs and all(g.runs for g in log.graphs), log.graphs


TEXTS = []  # of the programs compiled so far


def inside(collective):
    return any(f"stablehlo.{collective}" in text for text in TEXTS)


def found():
    return [f.operator for f in log.found]


def ddp(mesh):
    """Buckets smaller than the model: Dynamo cuts the graph between them."""
    dist._DEFAULT_FIRST_BUCKET_BYTES = 1 << 10
    wrapped = nn.parallel.DistributedDataParallel(models.make("mlp"), bucket_cap_mb=0.002)
    check("mlp", train("mlp", wrapped, torch.compile(wrapped, backend="opentrn"), mine))
    assert sum(g.name == "torch.backward" for g in log.graphs) > 1, log.graphs


def fsdp(mesh):
    from torch.distributed.fsdp import fully_shard

    sharded = models.make("gpt")
    for block in sharded.blocks:
        fully_shard(block, mesh=mesh)
        block.compile(backend="opentrn")
    fully_shard(sharded, mesh=mesh)
    check("gpt", train("gpt", sharded, sharded, mine))


class Gather(nn.Module):
    """A sharded weight as a whole one; its gradient is averaged and cut again."""

    def forward(self, shard):
        return shard.redistribute(placements=[Replicate()]).to_local(
            grad_placements=[Partial("avg")]
        )


def simple_fsdp(mesh):
    """Weights are shards, gathered inside the one graph of forward and of backward."""
    model = models.make("mlp")
    for module in list(model.modules()):
        for name, p in list(module.named_parameters(recurse=False)):
            shard = nn.Parameter(distribute_tensor(p.detach(), mesh, [Shard(0)]))
            setattr(module, name, shard)
            nn.utils.parametrize.register_parametrization(module, name, Gather(), unsafe=True)
    compiled = torch.compile(model, backend="opentrn", fullgraph=True)
    check("mlp", train("mlp", model, compiled, mine))
    names = " ".join(found())
    if OURS:
        assert not names, names
        assert inside("all_gather") and inside("reduce_scatter"), TEXTS
    else:
        assert "all_gather_into_tensor" in names and "reduce_scatter_tensor" in names, names


def tensor_parallel(mesh):
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    split = models.make("mlp")
    plan = {"net.3": ColwiseParallel(), "net.5": RowwiseParallel()}
    parallelize_module(split, mesh, plan)
    check("mlp", train("mlp", split, torch.compile(split, backend="opentrn"), whole))
    if OURS:
        assert not found() and inside("all_reduce"), found()
    else:
        assert any("all_reduce" in name for name in found()), found()


def collectives(mesh):
    """A graph that holds an all-reduce and an all-gather itself."""
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
    if OURS:
        assert len(log.graphs) == 1 and not found(), found()
        assert inside("all_reduce") and inside("all_gather"), TEXTS
        return
    assert len(log.graphs) == 2 and any("all_reduce" in name for name in found())
    told = [f for f in log.found if "all_reduce" in f.operator][0]
    assert told.reason == "a collective" and told.place[0] == __file__, told


def main():
    torch.set_num_threads(1)
    opentrn.torch.settings.dump = lambda name, text: TEXTS.append(text)
    dist.init_process_group(
        BACKEND, init_method=f"file://{sys.argv[2]}", rank=RANK, world_size=WORLD
    )
    mesh = dist.init_device_mesh("cpu", (WORLD,))
    for way in sys.argv[5:]:
        torch._dynamo.reset()
        log.clear()
        TEXTS.clear()
        globals()[way](mesh)
        print(way, "agrees", flush=True)
    dist.destroy_process_group()


main()
