# SPDX-License-Identifier: Apache-2.0
"""One rank of test_processes.py: `worker.py BACKEND DEVICE FOLDER RANK WORLD WAY…`. DEVICE: where models are, cpu or neuron; `neuron-eager`:
without graphs. Ranks meet in a file of the folder."""

import os
import pathlib
import signal
import sys
import time

import models
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.tensor import Partial, Replicate, Shard, distribute_tensor

import opentrn.torch
from opentrn.torch.report import log

BACKEND, FOLDER, RANK, WORLD, STEPS = sys.argv[1], pathlib.Path(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]), 4
DEVICE, _, EAGER = sys.argv[2].partition("-")
OURS = BACKEND != "gloo"


def batches(name):
    g = torch.Generator().manual_seed(1)
    return [models.ALL[name][1](g) for _ in range(STEPS)]


def mine(batch):
    return tuple(x.chunk(WORLD)[RANK] for x in batch)


def whole(batch):
    return batch


def here(name):
    return models.make(name).to(DEVICE)


def graph(model, **given):
    return model if EAGER else torch.compile(model, backend="opentrn", **given)


def train(name, model, run, part):
    mixed = len({type(p) for p in model.parameters()}) > 1  # DTensors and others: torch has no lists of both
    opt = torch.optim.AdamW(model.parameters(), lr=1e-2, foreach=False if mixed else None)
    device, seen = next(model.parameters()).device, []
    for batch in batches(name):
        opt.zero_grad()
        loss = run(*(x.to(device) for x in part(batch)))
        loss.backward()
        opt.step()
        seen.append(loss.detach())
    return torch.stack(seen)


def check(name, got):
    """got: losses of this rank's part of each batch."""
    on_host = [h.name for h in log.host if h.runs]
    model = models.make(name)
    want = train(name, model, model, whole)
    dist.all_reduce(got)
    print("losses", got.cpu().numpy().tobytes().hex())
    torch.testing.assert_close(got.cpu() / WORLD, want, rtol=1e-6, atol=1e-6)
    assert log.graphs and all(g.runs for g in log.graphs if not getattr(g, "eager", False)), log.graphs
    assert not on_host, on_host


TEXTS = []  # of the programs compiled so far


def inside(collective):
    return any(f"stablehlo.{collective}" in text for text in TEXTS)


def found():
    return [f.operator for f in log.found]


def ddp(mesh):
    """Buckets smaller than the model: Dynamo cuts the graph between them."""
    dist._DEFAULT_FIRST_BUCKET_BYTES = 1 << 10
    wrapped = nn.parallel.DistributedDataParallel(here("mlp"), bucket_cap_mb=0.002)
    check("mlp", train("mlp", wrapped, graph(wrapped), mine))
    assert EAGER or sum(g.name == "torch.backward" for g in log.graphs) > 1, log.graphs
    if OURS:  # the buckets, and their prices
        told = [c for c in log.collectives if c.runs and c.name.startswith("all_reduce")]
        assert len(told) > 1 and all(c.executable.report()["total_us"] > 0 for c in told), told
    if EAGER:
        return
    bare = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(2, 2)).to(DEVICE))
    bare = torch.compile(bare, backend="opentrn")
    bare(torch.ones(1, 2, device=DEVICE))
    text = opentrn.torch.explain()
    assert "1 compiled modules without a device program" in text and "DistributedDataParallel(Sequential)" in text, text


def fsdp(mesh):
    from torch.distributed.fsdp import fully_shard

    sharded = here("gpt")
    for block in sharded.blocks:
        fully_shard(block, mesh=mesh)
        if not EAGER:
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
    model = here("mlp")
    for module in list(model.modules()):
        for name, p in list(module.named_parameters(recurse=False)):
            shard = nn.Parameter(distribute_tensor(p.detach(), mesh, [Shard(0)]))
            setattr(module, name, shard)
            nn.utils.parametrize.register_parametrization(module, name, Gather(), unsafe=True)
    check("mlp", train("mlp", model, graph(model, fullgraph=True), mine))
    names = " ".join(found())
    if EAGER:
        return
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

    split = here("mlp")
    plan = {"net.3": ColwiseParallel(), "net.5": RowwiseParallel()}
    parallelize_module(split, mesh, plan)
    check("mlp", train("mlp", split, graph(split), whole))
    if EAGER:
        return
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


def tensor_and_fsdp(mesh):
    """Two dimensions of ranks: layers cut over one, parameters kept in pieces over the other."""
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    wide = dist.init_device_mesh(DEVICE, (WORLD // 2, 2), mesh_dim_names=("dp", "tp"))
    split = here("mlp")
    parallelize_module(split, wide["tp"], {"net.3": ColwiseParallel(), "net.5": RowwiseParallel()})
    fully_shard(split, mesh=wide["dp"])
    place = wide["dp"].get_local_rank()

    def part(batch):
        return tuple(x.chunk(WORLD // 2)[place] for x in batch)

    check("mlp", train("mlp", split, graph(split), part))


class Half(nn.Module):
    """Layers of a stage of a pipeline."""

    def __init__(self, layers):
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return x


def pipeline(mesh):
    """Each rank has a stage; micro-batches go through by two schedules."""
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

    def make():
        torch.manual_seed(5)
        return [nn.Linear(16, 16) for _ in range(2 * WORLD)]

    g = torch.Generator().manual_seed(1)
    x, y = torch.randn(8, 16, generator=g), torch.randn(8, 16, generator=g)
    loss_fn = nn.functional.mse_loss
    for schedule in (ScheduleGPipe, Schedule1F1B):
        whole = Half(make())
        part = Half(make()[2 * RANK : 2 * RANK + 2]).to(DEVICE)
        run = PipelineStage(graph(part), RANK, WORLD, torch.device(DEVICE))
        steps = schedule(run, n_microbatches=4, loss_fn=loss_fn)
        opts = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (whole, part)]
        for _ in range(2):
            for opt in opts:
                opt.zero_grad()
            losses = []
            if RANK == 0:
                steps.step(x.to(DEVICE))
            elif RANK == WORLD - 1:
                steps.step(target=y.to(DEVICE), losses=losses)
            else:
                steps.step()
            want = loss_fn(whole(x), y)
            want.backward()
            for opt in opts:
                opt.step()
            if losses:
                torch.testing.assert_close(torch.stack(losses).mean().cpu(), want, rtol=1e-6, atol=1e-6)
        for mine, theirs in zip(part.parameters(), Half(whole.layers[2 * RANK : 2 * RANK + 2]).parameters(), strict=True):
            torch.testing.assert_close(mine.cpu(), theirs, rtol=1e-5, atol=1e-6)
    assert log.graphs and not found(), found()


def sharded(mesh):
    from torch.distributed.fsdp import fully_shard

    model = here("mlp")
    fully_shard(model, mesh=mesh)
    return model


def checkpoint(mesh):
    """What these ranks save in pieces one loads whole, and two of them cut another way."""
    import torch.distributed.checkpoint as dcp

    saved = sharded(mesh)
    train("mlp", saved, saved, mine)
    dcp.save(saved.state_dict(), checkpoint_id=FOLDER / "checkpoint")
    want = {name: value.full_tensor().cpu() for name, value in saved.state_dict().items()}
    if RANK == 0:
        torch.save(want, FOLDER / "whole.pt")
    dist.barrier()
    loaded(mesh)
    pair = dist.init_device_mesh(DEVICE, (WORLD // 2, 2), mesh_dim_names=("row", "pair"))["pair"]
    loaded(pair)


def loaded(mesh):
    """What other ranks saved, by one process and by those of the mesh."""
    import torch.distributed.checkpoint as dcp

    want = torch.load(FOLDER / "whole.pt")
    state = {name: torch.zeros_like(value) for name, value in want.items()}
    dcp.load(state, checkpoint_id=FOLDER / "checkpoint", no_dist=True)
    cut = sharded(mesh).state_dict()
    dcp.load(cut, checkpoint_id=FOLDER / "checkpoint", process_group=mesh.get_group())
    for name, value in want.items():
        assert torch.equal(state[name], value) and torch.equal(cut[name].full_tensor().cpu(), value), name


def drawn(mesh):
    """A sharded model made where it is trained: shards have numbers of their own, copies the same, and so has who draws next."""
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import Replicate, distribute_tensor

    with torch.device("meta"):
        model = nn.Sequential(nn.Embedding(6, 4), nn.Linear(4, 6))
    fully_shard(model, mesh=mesh)
    model.to_empty(device=DEVICE)
    given = torch.Generator().manual_seed(7)
    torch.manual_seed(5)
    drawn = []
    for _ in range(2):
        for layer in model:
            layer.reset_parameters()
        copies = distribute_tensor(torch.zeros(6, 4, device=DEVICE), mesh, [Replicate()])
        nn.init.uniform_(copies, generator=given)
        drawn.append([p.full_tensor().detach().cpu() for p in model.parameters()] + [copies.to_local().cpu(), torch.rand(3)])
    for now, then in zip(*drawn, strict=True):
        assert now.flatten().unique().numel() == now.numel() and not torch.equal(now, then)
        others = [None, None]
        dist.all_gather_object(others, now)
        assert torch.equal(*others)
    torch.testing.assert_close(drawn[0][3], torch.rand(6, 4, generator=torch.Generator().manual_seed(7)), rtol=0, atol=0)


def batch_norm(mesh):
    """Batch norm over all ranks: the losses of one process with the whole batch."""
    def make():
        torch.manual_seed(3)
        return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 4))

    def losses(model, x, y):
        opt, seen = torch.optim.SGD(model.parameters(), lr=0.1), []
        for _ in range(STEPS):
            opt.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            opt.step()
            seen.append(loss.detach())
        return torch.stack(seen)

    g = torch.Generator().manual_seed(2)
    batch = torch.randn(16, 3, 8, 8, generator=g), torch.randint(0, 4, (16,), generator=g)
    want = losses(make(), *batch)
    model = nn.parallel.DistributedDataParallel(nn.SyncBatchNorm.convert_sync_batchnorm(make()).to(DEVICE))
    got = losses(model, *(x.to(DEVICE) for x in mine(batch)))
    dist.all_reduce(got)
    torch.testing.assert_close(got.cpu() / WORLD, want, rtol=1e-6, atol=1e-6)


def tree(parts):
    """The canonical order of sums (src/coll/tree.h)."""
    if len(parts) == 1:
        return parts[0]
    half = 1 << (len(parts) - 1).bit_length() - 1
    return tree(parts[:half]) + tree(parts[half:])


def summed(x):
    from torch.distributed._functional_collectives import all_reduce

    return all_reduce(x, "sum", dist.group.WORLD) + 0


def every_call(mesh):
    """Each call of torch.distributed against what it has to give."""
    n, mine_, all_ = WORLD, torch.full((3, 2), float(RANK)), [torch.full((3, 2), float(r)) for r in range(WORLD)]
    for kind in (torch.float32, torch.bfloat16, torch.float64, torch.int64, torch.uint8, torch.int32):
        for op, want in (("SUM", sum(range(1, n + 1))), ("MAX", n), ("MIN", 1), ("AVG", (n + 1) / 2)):
            if op == "AVG" and not kind.is_floating_point:
                continue
            x = torch.full((5,), RANK + 1, dtype=kind)
            dist.all_reduce(x, getattr(dist.ReduceOp, op))
            assert torch.equal(x, torch.full((5,), want).to(kind)), (kind, op, x)
    parts = [torch.randn(1000, generator=torch.Generator().manual_seed(r)) for r in range(n)]
    x, shared = parts[RANK].clone(), torch.empty(1000 // n)
    dist.all_reduce(x)
    assert torch.equal(x, tree(parts))  # the order of sums, to the bit
    large = [torch.randn(700001, generator=torch.Generator().manual_seed(r)) for r in range(n)]  # in slices, three blocks
    y = large[RANK].clone()
    dist.all_reduce(y)
    assert torch.equal(y, tree(large))
    dist.reduce_scatter_tensor(shared, parts[RANK][: 1000 // n * n])
    assert torch.equal(shared, x[: 1000 // n * n].chunk(n)[RANK])
    assert torch.equal(torch.compile(summed, backend="opentrn")(parts[RANK]), x)
    several = [torch.full((3,), float(RANK + i)) for i in range(2)]
    with dist._coalescing_manager():
        for x in several:
            dist.all_reduce(x)
    assert [x[0].item() for x in several] == [sum(range(i, n + i)) for i in range(2)]
    bits = torch.tensor([1 << RANK])
    dist.all_reduce(bits, dist.ReduceOp.BOR)
    assert bits.item() == (1 << n) - 1
    x = mine_.clone().t()  # not dense
    dist.all_reduce(x)
    assert torch.equal(x, sum(all_).t())
    x = mine_.clone()
    dist.reduce(x, 1)
    assert torch.equal(x, sum(all_) if RANK == 1 else mine_)
    got = [torch.empty(2, 3).t() for _ in range(n)]
    dist.all_gather(got, mine_)
    assert all(map(torch.equal, got, all_))
    got = torch.empty(3 * n, 2)
    dist.all_gather_into_tensor(got, mine_)
    assert torch.equal(got, torch.cat(all_))
    got = torch.empty(2)
    dist.reduce_scatter_tensor(got, torch.arange(2.0 * n))
    assert torch.equal(got, torch.arange(2.0) * n + 2 * n * RANK)
    got = torch.empty(2)
    dist.reduce_scatter(got, [torch.full((2,), 1.0 + r) for r in range(n)])
    assert torch.equal(got, torch.full((2,), (1.0 + RANK) * n))
    got = torch.empty(n)
    dist.all_to_all_single(got, torch.arange(n) + 10.0 * RANK)
    assert torch.equal(got, torch.arange(n) * 10.0 + RANK)
    sizes = [r + 1 for r in range(n)]  # rank r gets r + 1 elements from each
    got = torch.empty(n * (RANK + 1))
    dist.all_to_all_single(got, torch.full((sum(sizes),), float(RANK)), [RANK + 1] * n, sizes)
    assert torch.equal(got, torch.arange(float(n)).repeat_interleave(RANK + 1))
    got = [torch.empty(1) for _ in range(n)]
    dist.all_to_all(got, [torch.tensor([r + 10.0 * RANK]) for r in range(n)])
    assert [t.item() for t in got] == [10.0 * r + RANK for r in range(n)]
    x = mine_.clone()
    dist.broadcast(x, 1)
    assert torch.equal(x, all_[1])
    got = torch.empty(3, 2)
    dist.scatter(got, all_ if RANK == 0 else None, 0)
    assert torch.equal(got, mine_)
    got = [torch.empty(3, 2) for _ in range(n)] if RANK == 1 else None
    dist.gather(mine_, got, 1)
    assert got is None or all(map(torch.equal, got, all_))
    said = [None] * n
    dist.all_gather_object(said, {"rank": RANK, "text": "x" * 100 * RANK})
    assert [s["rank"] for s in said] == list(range(n))
    said = ["from rank 0"] if RANK == 0 else [None]
    dist.broadcast_object_list(said, 0)
    assert said == ["from rank 0"]
    # A ring: everybody asks first and sends then, more than fits between two processes.
    big, got = torch.full((1 << 19,), float(RANK)), torch.empty(1 << 19)
    asked = [dist.P2POp(dist.irecv, got, (RANK - 1) % n), dist.P2POp(dist.isend, big, (RANK + 1) % n)]
    for work in dist.batch_isend_irecv(asked):
        work.wait()
    assert got[0] == got[-1] == (RANK - 1) % n
    pairs = [dist.new_group([r, r + 1]) for r in range(0, n - 1, 2)]
    if RANK // 2 < len(pairs):
        x = torch.tensor([float(RANK)])
        dist.all_reduce(x, group=pairs[RANK // 2])
        assert x.item() == 4 * (RANK // 2) + 1, x
    dist.barrier()


def killed(mesh):
    """The last rank ends without a word; the others are told and end, each with the rank's number and pid."""
    pids = [None] * WORLD
    dist.all_gather_object(pids, os.getpid())
    if RANK == WORLD - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    for call in (lambda: dist.all_reduce(torch.ones(3)), lambda: summed(torch.ones(5)), dist.barrier):
        try:
            call()
        except RuntimeError as error:
            assert f"process {WORLD - 1} (host" in str(error) and f"pid {pids[-1]}," in str(error), error
        else:
            raise AssertionError("nobody missed it")


def late(mesh):
    """The last rank does not come: the others give up at their limit, and are told what it does instead."""
    if RANK == WORLD - 1:
        while not os.path.exists(f"{FOLDER}/told{1 - RANK}"):
            time.sleep(0.05)
        return
    try:
        summed(torch.ones(5))
    except RuntimeError as error:
        assert f"process {WORLD - 1} (host" in str(error) and "has waited 5 s" in str(error), error
    else:
        raise AssertionError("nobody was missed")
    finally:
        open(f"{FOLDER}/told{RANK}", "w").close()


def main():
    torch.set_num_threads(1)
    opentrn.torch.settings.dump = lambda name, text: TEXTS.append(text)
    dist.init_process_group(
        BACKEND, init_method=f"file://{FOLDER}/{BACKEND}-{DEVICE}-{WORLD}", rank=RANK, world_size=WORLD
    )
    if DEVICE == "neuron":
        torch.neuron.set_device(RANK)
    mesh = dist.init_device_mesh(DEVICE, (WORLD,))
    for way in sys.argv[6:]:
        torch._dynamo.reset()
        log.clear()
        TEXTS.clear()
        globals()[way](mesh)
        print(way, "agrees", flush=True)
    dist.destroy_process_group()


main()
