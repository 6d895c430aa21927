# SPDX-License-Identifier: Apache-2.0
"""PyTorch's process groups over opentrn's transport: `torch.distributed.init_process_group("opentrn")`, or "neuron".

Sums are device programs of their own, so that they have the bits that the same sum has inside a compiled graph, in every layout
of the processes over hosts. What only moves goes straight between the tensors' memory. Every collective is done when its call returns;
receiving waits until somebody asks for it, because torch starts receives before the sends that answer them.
"""

import atexit
import weakref

import torch
import torch.distributed as dist
from torch.futures import Future

from opentrn import _runtime
from opentrn.torch.builder import Builder, Value
from opentrn.torch.lower import collective
from opentrn.torch.lower.table import NotLowered
from opentrn.torch.program import DEVICES
from opentrn.torch.report import log
from opentrn.torch.world import World, key

_whole: World | None = None  # of the default group
_worlds: weakref.WeakSet[World] = weakref.WeakSet()


def _done(result):
    future = Future()
    future.set_result(result)
    return torch._C._distributed_c10d._create_work_from_future(future)


class _Receive(dist.Work):
    """A receive that was asked for; done when somebody waits for it."""

    def __init__(self, receive, source):
        super().__init__()
        self._receive, self._source = receive, source

    def wait(self, timeout=None):
        receive, self._receive = self._receive, None
        if receive:
            receive()
        return True

    def is_completed(self):
        return self.wait()

    def is_success(self):
        return self._receive is None

    def synchronize(self):
        self.wait()

    def source_rank(self):
        return self._source


def _program(name, shape, dtype, write):
    """A collective as a program of one argument; write(b, x) gives its value."""
    b = Builder()
    x = Value("%arg0", shape, dtype)
    y = write(b, x)
    body = "\n".join(b.lines)
    text = f'func.func public @main(%arg0: {x.type}) -> {y.type} {{\n{body}\n"func.return"({y.name}) : ({y.type}) -> ()\n}}\n'
    return _runtime.default_environment().compile(text.encode(), name)


class _Priced:
    """A collective outside of graphs, as reports see it: the program it would be is made when its price is asked for."""

    cached = False

    def __init__(self, name, make):
        self.name, self._make, self._made = name, make, None

    @property
    def executable(self):
        if self._made is None:
            self._made = self._make()
        return self._made

    def report(self, target=None):
        return self.executable.report(target)

    def write(self, target, path):
        self.executable.write(target, path)


_OPS = {getattr(dist.ReduceOp.RedOpType, name.upper()).value: name for name in collective._FOLDS}
_SMALL = 1 << 16  # bytes of a sum that has memory of its own


def _op_name(given):
    op = getattr(given, "op", given)
    return _OPS.get(op.value) or str(op)


def _memory(tensor):
    return tensor.data_ptr(), tensor.nbytes


def _dense(tensor):
    if tensor.device.type not in DEVICES:
        raise ValueError(f"opentrn: this process group is for tensors of the CPU or the device neuron, not of {tensor.device}")
    return tensor.detach().contiguous()


class Group(dist.ProcessGroup):
    """Ranks of a job. members: the processes of its world, in the group's order."""

    def __init__(self, world, name, members, rank, backend, timeout):
        super().__init__(rank, len(members))
        self.world, self.members, self._name, self._backend = world, members, name, backend
        self._rank, self._size, self._timeout = rank, len(members), timeout
        self.ranks = collective.Ranks(tuple(members), world.processes)
        self._sums, self._counts = {}, {}
        self._small, self._spare = {}, torch.empty(0, dtype=torch.uint8)  # of _room

    # --- who it is --------------------------------------------------------------------------------

    @property
    def group_name(self):
        return self._name

    pg_name = group_name

    def rank(self):
        return self._rank

    def size(self):
        return self._size

    def name(self):
        return self._backend

    getBackendName = name

    supports_splitting = False

    def _get_backend(self, device):
        """torch asks what is behind a group of several backends for a device: one is behind all of ours (init_process_group's device_id)."""
        return self

    def __repr__(self):
        return f"<{self._backend} process group {self._name}: rank {self._rank} of {self._size}>"

    # --- what everything below is made of ---------------------------------------------------------

    def _count(self, kind, tensor, write):
        """One more collective of this kind and size. write: the program it would be."""
        if self._size == 1:
            return
        row = (kind, tensor.dtype, tensor.numel())
        if row not in self._counts:
            name = f"{kind} of {tensor.numel() * tensor.element_size()} bytes by {self._size} ranks"

            def make():
                return _program(name, (count,), dtype, write)

            count, dtype = tensor.numel(), tensor.dtype
            self._counts[row] = log.add_collective(name, _Priced(name, make))
        self._counts[row].runs += 1

    def _exchange(self, op, out, into, channel=()):
        """out, into: (tensor, rank of the group); tensors are dense."""
        rows = [
            [(*_memory(t), self.members[r]) for t, r in side if r != self._rank]
            for side in (out, into)
        ]
        self.world.exchange(key(self._name, *channel), f"group {self._name}", op, *rows, unasked=bool(channel))

    def _sum(self, kind, tensor, op, into):
        """A reduction as a program: the dense tensor in, `into` out."""
        row = (kind, op, tensor.dtype, tensor.numel())
        if row not in self._sums:
            lower = getattr(collective, kind)
            name = f"{kind} of {tensor.nbytes} bytes by {self._size} ranks"
            try:
                made = _program(name, (tensor.numel(),), tensor.dtype, lambda b, x: lower(b, x, op, self.ranks))
            except NotLowered as why:
                raise NotImplementedError(f"opentrn: {kind} has not {why}") from None
            run = self.world.execute_one(made, self._name, self.members, tensor.nbytes, into.nbytes)
            self._sums[row] = run, log.add_collective(name, made)
        run, counted = self._sums[row]
        run(tensor.data_ptr(), into.data_ptr())
        counted.runs += 1

    # --- reductions -------------------------------------------------------------------------------

    def _room(self, x):
        """Memory for a sum, until it is copied: fresh memory would cost more than the sum."""
        size = x.nbytes
        if size <= _SMALL:
            row = x.dtype, x.numel()
            if row not in self._small:
                self._small[row] = torch.empty(x.numel(), dtype=x.dtype)
            return self._small[row]
        if self._spare.nbytes < size:
            self._spare = torch.empty(size, dtype=torch.uint8)
        return self._spare[:size].view(x.dtype)

    def _reduce_one(self, tensor, op):
        x = _dense(tensor)
        if not x.numel() or (self._size == 1 and op != "avg"):
            return x
        y = self._room(x)
        self._sum("all_reduce", x, op, y)
        return y.view(x.shape)

    def allreduce(self, tensors, opts=dist.AllreduceOptions()):
        op = _op_name(opts.reduceOp)
        for tensor in tensors:
            if op != "avg" and self._size > 1 and tensor.is_contiguous() and tensor.device.type in DEVICES and tensor.numel():
                self._sum("all_reduce", tensor, op, tensor)  # in place
            else:
                tensor.detach().copy_(self._reduce_one(tensor, op))
        return _done(tensors) if getattr(opts, "asyncOp", True) else None  # who waits need not be told that it is done

    def allreduce_coalesced(self, tensors, opts=dist.AllreduceCoalescedOptions()):
        self.allreduce(tensors, opts)
        return _done(tensors)

    def reduce(self, tensors, opts=dist.ReduceOptions()):
        for tensor in tensors:
            y = self._reduce_one(tensor, _op_name(opts.reduceOp))
            if self._rank == opts.rootRank:
                tensor.detach().copy_(y)
        return _done(tensors)

    def _reduce_scatter_base(self, out, tensor, opts=dist.ReduceScatterOptions()):
        x, op = _dense(tensor), _op_name(opts.reduceOp)
        if x.numel() != out.numel() * self._size:
            raise ValueError(f"opentrn: reduce_scatter of {x.numel()} elements into {self._size} times {out.numel()}")
        y = torch.empty(out.numel(), dtype=x.dtype)
        if self._size == 1:
            y.copy_(x.reshape(-1))
        elif x.numel():
            self._sum("reduce_scatter", x, op, y)
        out.detach().copy_(y.view_as(out))
        return _done(out)

    def reduce_scatter_single(self, out, tensor, opts=dist.ReduceScatterOptions()):
        return self._reduce_scatter_base(out, tensor, opts)

    def reduce_scatter_tensor_coalesced(self, outs, tensors, opts=dist.ReduceScatterOptions()):
        for out, tensor in zip(outs, tensors, strict=True):
            self._reduce_scatter_base(out, tensor, opts)
        return _done(outs)

    reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced

    def reduce_scatter(self, outs, tensors, opts=dist.ReduceScatterOptions()):
        for out, parts in zip(outs, tensors, strict=True):
            if len({p.numel() for p in parts}) == 1:
                self._reduce_scatter_base(out, torch.cat([_dense(p).reshape(-1) for p in parts]), opts)
                continue
            for r, part in enumerate(parts):
                y = self._reduce_one(part, _op_name(opts.reduceOp))
                if r == self._rank:
                    out.detach().copy_(y.view_as(out))
        return _done(outs)

    # --- moves ------------------------------------------------------------------------------------

    def _gather_all(self, outs, tensor):
        """outs: dense tensors, one for each rank."""
        x = _dense(tensor)
        self._count("all_gather", x, lambda b, v: collective.all_gather(b, v, self.ranks))
        self._exchange("all_gather", [(x, r) for r in range(self._size)], list(zip(outs, range(self._size), strict=True)))
        outs[self._rank].view_as(x).copy_(x)

    def _allgather_base(self, out, tensor, opts=None):
        whole = torch.empty(out.numel(), dtype=out.dtype) if not out.is_contiguous() else out.detach().view(-1)
        self._gather_all(list(whole.chunk(self._size)) if out.numel() else [whole] * self._size, tensor)
        if whole.data_ptr() != out.data_ptr():
            out.detach().copy_(whole.view(out.shape))
        return _done(out)

    def all_gather_single(self, out, tensor, opts=None):
        return self._allgather_base(out, tensor, opts)

    def allgather_into_tensor_coalesced(self, outs, tensors, opts=None):
        for out, tensor in zip(outs, tensors, strict=True):
            self._allgather_base(out, tensor, opts)
        return _done(outs)

    all_gather_single_coalesced = allgather_into_tensor_coalesced

    def _into(self, tensors, receive):
        """receive(dense tensors), then what came goes to those that are not dense."""
        dense = [t.detach() if t.is_contiguous() else torch.empty(t.shape, dtype=t.dtype) for t in tensors]
        receive(dense)
        for t, d in zip(tensors, dense, strict=True):
            if t.data_ptr() != d.data_ptr():
                t.detach().copy_(d)

    def allgather(self, outs, tensors, opts=None):
        for parts, tensor in zip(outs, tensors, strict=True):
            self._into(parts, lambda dense, tensor=tensor: self._gather_all(dense, tensor))
        return _done(outs)

    def allgather_coalesced(self, outs, tensors, opts=None):
        return self.allgather([list(parts) for parts in zip(*outs, strict=True)] if outs else [], tensors, opts)

    def broadcast(self, tensors, opts):
        for tensor in tensors:
            x = _dense(tensor)
            self._count("broadcast", x, lambda b, v: collective.broadcast(b, v, 0, self.ranks))
            if self._rank == opts.rootRank:
                self._exchange("broadcast", [(x, r) for r in range(self._size)], [])
            else:
                self._into([tensor], lambda dense: self._exchange("broadcast", [], [(dense[0], opts.rootRank)]))
        return _done(tensors)

    def scatter(self, outs, tensors, opts):
        for i, out in enumerate(outs):
            if self._rank == opts.rootRank:
                parts = [_dense(t) for t in tensors[i]]
                self._exchange("scatter", list(zip(parts, range(self._size), strict=True)), [])
                out.detach().copy_(parts[self._rank])
            else:
                self._into([out], lambda dense: self._exchange("scatter", [], [(dense[0], opts.rootRank)]))
        return _done(outs)

    def gather(self, outs, tensors, opts):
        for i, tensor in enumerate(tensors):
            x = _dense(tensor)
            if self._rank != opts.rootRank:
                self._exchange("gather", [(x, opts.rootRank)], [])
                continue
            ranks = range(self._size)
            self._into(outs[i], lambda dense: self._exchange("gather", [], list(zip(dense, ranks, strict=True))))
            outs[i][self._rank].detach().copy_(x)
        return _done(outs)

    def alltoall(self, outs, tensors, opts=None):
        parts, ranks = [_dense(t) for t in tensors], range(self._size)

        def receive(dense):
            self._exchange("all_to_all", list(zip(parts, ranks, strict=True)), list(zip(dense, ranks, strict=True)))
            dense[self._rank].copy_(parts[self._rank])

        self._into(outs, receive)
        return _done(outs)

    def alltoall_base(self, out, tensor, out_sizes=(), in_sizes=(), opts=None):
        x = _dense(tensor)
        if not in_sizes and not out_sizes and x.numel():
            self._count("all_to_all", x, lambda b, v: collective.all_to_all(b, v, self.ranks))

        def parts(t, sizes):
            return list(t.split(list(sizes)) if sizes else t.chunk(self._size)) if t.numel() else [t] * self._size

        self._into([out], lambda dense: self.alltoall(parts(dense[0], out_sizes), parts(x, in_sizes)))
        return _done(out)

    def all_to_all_single(self, out, tensor, out_sizes=(), in_sizes=(), opts=None):
        return self.alltoall_base(out, tensor, out_sizes, in_sizes, opts)

    def barrier(self, opts=None):
        mine, others = torch.zeros(1, dtype=torch.uint8), torch.zeros(self._size, 1, dtype=torch.uint8)
        ranks = range(self._size)
        self._exchange("barrier", [(mine, r) for r in ranks], list(zip(others, ranks, strict=True)))
        return _done(None)

    def send(self, tensors, rank, tag=0):
        for tensor in tensors:
            self._exchange("send", [(_dense(tensor), rank)], [], (self._rank, rank, tag))
        return _done(tensors)

    def recv(self, tensors, rank, tag=0):
        def receive():
            for tensor in tensors:
                into = [tensor]
                self._into(into, lambda dense: self._exchange("send", [], [(dense[0], rank)], (rank, self._rank, tag)))

        return _Receive(receive, rank)

    def recv_anysource(self, tensors, tag=0):
        raise NotImplementedError("opentrn: receiving needs the rank it comes from (src=)")

    # --- the rest of what torch asks a group ------------------------------------------------------

    def _set_sequence_number_for_group(self):
        pass

    def _get_sequence_number_for_group(self):
        return 0

    def set_timeout(self, timeout):
        self._timeout = timeout

    def shutdown(self):
        _leave(self.world)

    abort = shutdown


# What moves data is no part of a graph: Dynamo calls it.
for _name in (
    "allreduce", "allreduce_coalesced", "reduce", "_reduce_scatter_base", "reduce_scatter_single", "reduce_scatter",
    "reduce_scatter_tensor_coalesced", "reduce_scatter_single_coalesced", "_allgather_base", "all_gather_single", "allgather",
    "allgather_coalesced", "allgather_into_tensor_coalesced", "all_gather_single_coalesced", "broadcast", "scatter", "gather",
    "alltoall", "alltoall_base", "all_to_all_single", "barrier", "send", "recv", "recv_anysource",
):  # fmt: skip
    setattr(Group, _name, torch._dynamo.disable(getattr(Group, _name)))


def runner(executable, ranks):
    """For programs with collectives: executable.run with these ranks of the default group's processes."""
    assert _whole is not None
    return _whole.execute(executable, "graph", ranks)


# --- from groups to worlds ------------------------------------------------------------------------


def _leave(world: World):
    global _whole
    if world is _whole:
        _whole = None
        world.close()


@atexit.register
def _leave_all():
    """The others are told that this process has ended, and do not miss it."""
    for world in list(_worlds):
        world.close()


def _create(backend, options, _=None):
    """What torch calls for init_process_group and new_group."""
    global _whole
    ranks = list(options.global_ranks_in_group)
    first = not ranks
    if first:
        _whole = World(options.store, options.group_rank, options.group_size, options.timeout)
        _worlds.add(_whole)
        ranks = list(range(options.group_size))
    world, members = _whole, ranks
    if world is None:  # the default group is another backend's: these ranks are a job of their own
        world, members = World(options.store, options.group_rank, options.group_size, options.timeout), list(range(len(ranks)))
        _worlds.add(world)
    return Group(world, options.group_id, members, options.group_rank, backend, options.timeout)
