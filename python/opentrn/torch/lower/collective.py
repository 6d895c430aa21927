# SPDX-License-Identifier: Apache-2.0
"""Collectives over ranks of a process group of ours, inside programs.

A program over several processes is written for as many partitions as there are ranks in the job. Of the groups of its
collectives only this process's counts: others have programs, and groups, of their own. Each has a channel, so that two which
meet in another order are an error. `b.ranks` gathers who is met.
"""

import dataclasses

import torch.distributed as dist

from opentrn.torch.builder import Value
from opentrn.torch.lower.table import NotLowered, lowers

_FOLDS = {
    "sum": lambda b, x, y: b.add(x, y),
    "avg": lambda b, x, y: b.add(x, y),
    "product": lambda b, x, y: b.mul(x, y),
    "max": lambda b, x, y: b.binary("maximum", x, y),
    "min": lambda b, x, y: b.binary("minimum", x, y),
    "band": lambda b, x, y: b.binary("and", x, y),
    "bor": lambda b, x, y: b.binary("or", x, y),
    "bxor": lambda b, x, y: b.binary("xor", x, y),
}


@dataclasses.dataclass(frozen=True)
class Ranks:
    """Who meets, in the group's order, and how many there are in the job."""

    members: tuple[int, ...]
    world: int

    def __len__(self):
        return len(self.members)

    def led_by(self, place):
        """The same with another one first."""
        at = self.members
        return Ranks((at[place], *at[:place], *at[place + 1 :]), self.world)

    def table(self):
        """The group, then the ranks that are not in it, whom it does not concern."""
        n, rest = len(self), [r for r in range(self.world) if r not in self.members]
        rows = [list(self.members), *(rest[i : i + n] for i in range(0, len(rest), n))]
        return [row + [-1] * (n - len(row)) for row in rows]


def _meeting(b, ranks, flat=True):
    """Attributes of a collective of these ranks. flat: the operation has to be told that they count devices."""
    b.ranks.update(ranks.members)
    b.channels += 1
    rows = ranks.table()
    text = (
        f"replica_groups = dense<{rows}> : tensor<{len(rows)}x{len(ranks)}xi64>, "
        f"channel_handle = #stablehlo.channel_handle<handle = {b.channels}, type = 1>"
    )
    return text + ", use_global_device_ids" if flat else text


def _fold(b, x, op):
    if op not in _FOLDS:
        raise NotLowered(f"the reduction {op}")
    return b.region([x.dtype] * 2, lambda inner, v: [_FOLDS[op](inner, v[0], v[1])])


def _mean(b, x, op, ranks):
    return b.div(x, b.constant(len(ranks), x.dtype)) if op == "avg" else x


def all_reduce(b, x, op, ranks):
    region = _fold(b, x, op)
    y = b.op("all_reduce", [x], (x.shape, x.dtype), _meeting(b, ranks), region)
    return _mean(b, y, op, ranks)


def all_gather(b, x, ranks):
    """One behind the other along the first dimension."""
    shape = (x.shape[0] * len(ranks), *x.shape[1:])
    return b.op("all_gather", [x], (shape, x.dtype), f"all_gather_dim = 0 : i64, {_meeting(b, ranks)}")


def reduce_scatter(b, x, op, ranks):
    region, shape = _fold(b, x, op), (x.shape[0] // len(ranks), *x.shape[1:])
    attributes = f"scatter_dimension = 0 : i64, {_meeting(b, ranks)}"
    return _mean(b, b.op("reduce_scatter", [x], (shape, x.dtype), attributes, region), op, ranks)


def all_to_all(b, x, ranks):
    attributes = (
        "split_dimension = 0 : i64, concat_dimension = 0 : i64, "
        f"split_count = {len(ranks)} : i64, {_meeting(b, ranks, flat=False)}"
    )
    return b.op("all_to_all", [x], (x.shape, x.dtype), attributes)


def broadcast(b, x, root, ranks):
    """root: a place among the ranks."""
    return b.op("collective_broadcast", [x], (x.shape, x.dtype), _meeting(b, ranks.led_by(root), flat=False))


# --- torch's functional collectives ---------------------------------------------------------------


def _ranks(name):
    """Of a group with this name, as the job counts them. NotLowered: its data does not go our way."""
    from opentrn.torch.distributed import Group

    group = dist.distributed_c10d._resolve_process_group(name)
    if not isinstance(group, Group):
        raise NotLowered("a collective")
    return group.ranks


@lowers("_c10d_functional.wait_tensor.default")
def _wait(b, out, x):
    return x


def _rows(x, ranks):
    """A tensor that is cut or joined along its first dimension has one."""
    if not x.rank:
        raise NotLowered("a collective of a number")
    if x.shape[0] % len(ranks):
        raise NotLowered("a collective of parts of different sizes")


@lowers("_c10d_functional.all_reduce.default", "_c10d_functional.all_reduce_.default")
def _all_reduce(b, out, x, op, name):
    return all_reduce(b, x, op.lower(), _ranks(name))


@lowers("_c10d_functional.all_reduce_coalesced.default")
def _all_reduce_coalesced(b, out, xs, op, name):
    ranks = _ranks(name)
    return [all_reduce(b, x, op.lower(), ranks) for x in xs]


def _gather_one(b, x, ranks):
    return all_gather(b, x if x.rank else b.reshape(x, (1,)), ranks)


@lowers("_c10d_functional.all_gather_into_tensor.default")
def _all_gather(b, out, x, size, name):
    return _gather_one(b, x, _ranks(name))


@lowers("_c10d_functional.all_gather_into_tensor_coalesced.default")
def _all_gather_coalesced(b, out, xs, size, name):
    ranks = _ranks(name)
    return [_gather_one(b, x, ranks) for x in xs]


def _scatter_one(b, x, op, ranks):
    _rows(x, ranks)
    return reduce_scatter(b, x, op.lower(), ranks)


@lowers("_c10d_functional.reduce_scatter_tensor.default")
def _reduce_scatter(b, out, x, op, size, name):
    return _scatter_one(b, x, op, _ranks(name))


@lowers("_c10d_functional.reduce_scatter_tensor_coalesced.default")
def _reduce_scatter_coalesced(b, out, xs, op, size, name):
    ranks = _ranks(name)
    return [_scatter_one(b, x, op, ranks) for x in xs]


@lowers("_c10d_functional.all_to_all_single.default")
def _all_to_all(b, out, x, out_sizes, in_sizes, name):
    ranks = _ranks(name)
    if any(isinstance(s, Value) or s != x.shape[0] // len(ranks) for s in (*out_sizes, *in_sizes)):
        raise NotLowered("a collective of parts of different sizes")
    _rows(x, ranks)
    return all_to_all(b, x, ranks)


@lowers("_c10d_functional.broadcast.default")
def _broadcast(b, out, x, root, name):
    return broadcast(b, x, root, _ranks(name))


@lowers("_dtensor.shard_dim_alltoall.default")
def _shard_dim(b, out, x, gather_dim, shard_dim, name):
    """Shards along one dimension become shards along another."""
    ranks = _ranks(name)
    if x.shape[shard_dim] % len(ranks):
        raise NotLowered("a collective of parts of different sizes")
    attributes = (
        f"split_dimension = {shard_dim} : i64, concat_dimension = {gather_dim} : i64, "
        f"split_count = {len(ranks)} : i64, {_meeting(b, ranks, flat=False)}"
    )
    return b.op("all_to_all", [x], (tuple(out.shape), x.dtype), attributes)
