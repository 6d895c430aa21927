# SPDX-License-Identifier: Apache-2.0
"""Operators that move elements without changing them, and those that make tensors out of
nothing."""

import math

import torch

from opentrn.torch import dtypes
from opentrn.torch.lower.table import NotLowered, dim_of, dims_of, full, lowers, operand


@lowers(
    "aten.view.default",
    "aten.reshape.default",
    "aten._unsafe_view.default",
    "aten._reshape_alias.default",
    "aten.view_copy.default",
    "aten.unsqueeze.default",
    "aten.squeeze.default",
    "aten.squeeze.dim",
    "aten.squeeze.dims",
    "aten.flatten.using_ints",
)
def reshape(b, out, x, *_):
    return b.reshape(x, out.shape)


@lowers("aten.permute.default", "aten.permute_copy.default", "prims.transpose.default")
def permute(b, out, x, dims):
    return b.transpose(x, [dim_of(d, x.rank) for d in dims])


@lowers("aten.transpose.int")
def transpose(b, out, x, first, second):
    order = list(range(x.rank))
    if order:
        first, second = dim_of(first, x.rank), dim_of(second, x.rank)
        order[first], order[second] = order[second], order[first]
    return b.transpose(x, order)


@lowers("aten.t.default")
def t(b, out, x):
    return b.transpose(x, reversed(range(x.rank)))


@lowers("aten.expand.default")
def expand(b, out, x, size, *, implicit=False):
    return b.broadcast(x, out.shape)


@lowers("prims.broadcast_in_dim.default")
def broadcast_in_dim(b, out, x, shape, dims):
    return b.spread(x, out.shape, dims)


@lowers("aten.repeat.default")
def repeat(b, out, x, repeats):
    rank = len(repeats)
    shape = (1,) * (rank - x.rank) + x.shape
    pairs = [d for r, s in zip(repeats, shape, strict=True) for d in (r, s)]
    x = b.spread(b.reshape(x, shape), pairs, range(1, 2 * rank, 2))
    return b.reshape(x, out.shape)


def _range(start, stop, size):
    start = 0 if start is None else start
    stop = size if stop is None else stop
    start = max(0, min(size, start + size if start < 0 else start))
    stop = max(start, min(size, stop + size if stop < 0 else stop))
    return start, stop


@lowers("aten.slice.Tensor")
def slice_tensor(b, out, x, dim=0, start=None, end=None, step=1):
    dim = dim_of(dim, x.rank)
    start, end = _range(start, end, x.shape[dim])
    return b.slice_dim(x, dim, start, end, step)


@lowers("aten.select.int")
def select(b, out, x, dim, index):
    dim = dim_of(dim, x.rank)
    index = dim_of(index, x.shape[dim])
    return b.reshape(b.slice_dim(x, dim, index, index + 1), out.shape)


def _place(b, x, part, dim, start, stop, step):
    """x with part written at start, start + step, … of one dimension."""
    n = x.shape[dim]
    if part.numel == 0:
        return x
    if step == 1:
        pieces = [b.slice_dim(x, dim, 0, start), part, b.slice_dim(x, dim, stop, n)]
        return b.concatenate([p for p in pieces if p.shape[dim]], dim)
    low, inside = [0] * x.rank, [0] * x.rank
    low[dim], inside[dim] = start, step - 1
    high = [0] * x.rank
    high[dim] = n - start - (part.shape[dim] - 1) * step - 1
    moved = b.pad(part, b.constant(0, x.dtype), low, high, inside)
    ones = b.constant(True, torch.bool, part.shape)
    mask = b.pad(ones, b.constant(False, torch.bool), low, high, inside)
    return b.select(mask, moved, x)


@lowers("aten.slice_scatter.default")
def slice_scatter(b, out, x, part, dim=0, start=None, end=None, step=1):
    dim = dim_of(dim, x.rank)
    start, end = _range(start, end, x.shape[dim])
    count = max(0, -(-(end - start) // step))
    shape = [count if i == dim else d for i, d in enumerate(x.shape)]
    return _place(b, x, full(b, part, x.dtype, shape), dim, start, start + count, step)


@lowers("aten.select_scatter.default")
def select_scatter(b, out, x, part, dim, index):
    dim = dim_of(dim, x.rank)
    index = dim_of(index, x.shape[dim])
    shape = [1 if i == dim else d for i, d in enumerate(x.shape)]
    part = b.reshape(b.cast(part, x.dtype), shape)
    return _place(b, x, part, dim, index, index + 1, 1)


@lowers("aten.cat.default")
def cat(b, out, tensors, dim=0):
    dim = dim_of(dim, len(out.shape))
    parts = [b.cast(x, out.dtype) for x in tensors if x.shape != (0,) or len(out.shape) == 1]
    parts = [p for p in parts if p.shape[dim]] or [b.constant(0, out.dtype, out.shape)]
    return b.concatenate(parts, dim)


@lowers("aten.stack.default")
def stack(b, out, tensors, dim=0):
    dim = dim_of(dim, len(out.shape))
    shape = [1 if i == dim else d for i, d in enumerate(out.shape)]
    return b.concatenate([b.reshape(b.cast(x, out.dtype), shape) for x in tensors], dim)


def _pieces(b, x, dim, sizes):
    at, parts = 0, []
    for size in sizes:
        parts.append(b.slice_dim(x, dim, at, at + size))
        at += size
    return parts


@lowers("aten.split_with_sizes.default", "aten.split_with_sizes_copy.default")
def split_with_sizes(b, out, x, sizes, dim=0):
    return _pieces(b, x, dim_of(dim, x.rank), sizes)


@lowers("aten.split.Tensor")
def split(b, out, x, size, dim=0):
    dim = dim_of(dim, x.rank)
    return _pieces(b, x, dim, [o.shape[dim] for o in out])


@lowers("aten.unbind.int")
def unbind(b, out, x, dim=0):
    dim = dim_of(dim, x.rank)
    parts = _pieces(b, x, dim, [1] * x.shape[dim])
    return [b.reshape(p, o.shape) for p, o in zip(parts, out, strict=True)]


@lowers("aten.flip.default")
def flip(b, out, x, dims):
    return b.reverse(x, dims_of(dims, x.rank) if dims else [])


@lowers("aten.constant_pad_nd.default")
def constant_pad(b, out, x, pad, value=0):
    low, high = [0] * x.rank, [0] * x.rank
    for i in range(len(pad) // 2):
        low[x.rank - 1 - i], high[x.rank - 1 - i] = pad[2 * i], pad[2 * i + 1]
    return b.pad(x, operand(b, value, x.dtype), low, high)


def storage_order(shape, strides):
    """Dimensions from the outermost in memory to the innermost, or None when there are gaps or
    overlaps. This decides which tensors the device takes where they lie."""
    order = sorted(range(len(shape)), key=lambda i: (-strides[i], shape[i] != 1, i))
    expected = 1
    for i in reversed(order):
        if shape[i] != 1:
            if strides[i] != expected and math.prod(shape):
                return None
            expected *= shape[i]
    if list(order) != list(range(len(shape))) and all(
        shape[i] == 1 or s == e
        for i, s, e in zip(range(len(shape)), strides, contiguous_strides(shape), strict=True)
    ):
        return list(range(len(shape)))  # only dimensions of size 1 are out of order
    return order


def contiguous_strides(shape):
    strides, step = [], 1
    for d in reversed(shape):
        strides.append(step)
        step *= max(1, d)
    return strides[::-1]


def _memory(b, x):
    """The tensor as its storage has it, one dimension, and the order of dimensions in it."""
    source = b.source  # the fake tensor behind x
    order = storage_order(source.shape, source.stride())
    if order is None or source.storage_offset():
        raise NotLowered("as_strided of a tensor that is itself a part of another")
    return b.reshape(b.transpose(x, order), [x.numel]), order


def _in_memory(b, shape, stride, offset):
    """[*shape, 1]: where each element stands in the storage."""
    where = b.constant(offset, torch.int64, shape)
    for i, step in enumerate(stride):
        along = b.mul(b.iota(shape, i), b.constant(step, torch.int64)) if shape[i] > 1 else None
        where = b.add(where, along) if along is not None else where
    return b.reshape(where, [*shape, 1])


@lowers("aten.as_strided.default")
def as_strided(b, out, x, size, stride, offset=None):
    flat, _ = _memory(b, x)
    offset, shape = offset or 0, tuple(size)
    if list(stride) == contiguous_strides(shape) and offset + math.prod(shape) <= x.numel:
        return b.reshape(b.slice_dim(flat, 0, offset, offset + math.prod(shape)), shape)
    return b.gather(flat, _in_memory(b, shape, stride, offset), [1], [], [0], [0])


@lowers("aten.as_strided_scatter.default")
def as_strided_scatter(b, out, x, part, size, stride, offset=None):
    flat, order = _memory(b, x)
    where = _in_memory(b, tuple(size), stride, offset or 0)
    flat = b.scatter(flat, where, b.cast(part, x.dtype), [], [0], [0], lambda b, old, new: new)
    back = [order.index(i) for i in range(x.rank)]
    return b.transpose(b.reshape(flat, [x.shape[i] for i in order]), back)


@lowers("aten.diagonal.default", "aten.diagonal_copy.default")
def diagonal(b, out, x, offset=0, dim1=0, dim2=1):
    dim1, dim2 = dim_of(dim1, x.rank), dim_of(dim2, x.rank)
    rest = [i for i in range(x.rank) if i not in (dim1, dim2)]
    n = out.shape[-1]
    x = b.transpose(x, [*rest, dim1, dim2])
    row, col = max(0, -offset), max(0, offset)
    x = b.slice_dim(b.slice_dim(x, x.rank - 2, row, row + n), x.rank - 1, col, col + n)
    eye = b.compare("eq", b.iota((n, n), 0), b.iota((n, n), 1))
    kept = b.select(eye, x, b.constant(0, x.dtype))
    return b.reduce(kept, 0, [x.rank - 1], "or" if x.dtype == torch.bool else "add")


@lowers("aten.narrow_copy.default")
def narrow(b, out, x, dim, start, length):
    dim = dim_of(dim, x.rank)
    start = dim_of(start, x.shape[dim])
    return b.slice_dim(x, dim, start, start + length)


@lowers("aten.diagonal_scatter.default")
def diagonal_scatter(b, out, x, part, offset=0, dim1=0, dim2=1):
    dim1, dim2 = dim_of(dim1, x.rank), dim_of(dim2, x.rank)
    rest = [i for i in range(x.rank) if i not in (dim1, dim2)]
    along = b.cast(part, x.dtype)
    if x.shape[dim1] == 0 or x.shape[dim2] == 0 or part.numel == 0:
        return x
    # Each element of the diagonal is spread over its row, then kept where the column fits.
    row, n = max(0, -offset), part.shape[-1]
    low, high = [0] * along.rank, [0] * along.rank
    low[-1], high[-1] = row, x.shape[dim1] - row - n
    along = b.pad(along, b.constant(0, x.dtype), low, high)
    spread = b.spread(along, x.shape, [*rest, dim1])
    rows, cols = b.iota(x.shape, dim1), b.iota(x.shape, dim2)
    hit = b.compare("eq", b.add(rows, b.constant(offset, torch.int64)), cols)
    return b.select(hit, spread, x)


@lowers("aten.unfold.default")
def unfold(b, out, x, dim, size, step):
    if x.rank == 0:
        return b.reshape(x, out.shape)
    dim = dim_of(dim, x.rank)
    count = out.shape[dim]
    parts = [b.slice_dim(x, dim, i, i + (count - 1) * step + 1, step) for i in range(size)]
    parts = [b.reshape(p, (*p.shape, 1)) for p in parts]
    return b.concatenate(parts, x.rank)


# --- tensors out of nothing -----------------------------------------------------------------------


@lowers("aten.full.default", "aten.full_like.default", "aten.new_full.default")
def full_of(b, out, *args, **_):
    if len(args) != 2 and len(args) != 3:
        raise NotLowered("a fill without a number")
    return full(b, args[-1], out.dtype, out.shape)


@lowers("aten.fill.Scalar", "aten.fill.Tensor")
def fill(b, out, x, value):
    return full(b, value, out.dtype, out.shape)


@lowers("aten.scalar_tensor.default")
def scalar_tensor(b, out, value, **_):
    return b.constant(value, out.dtype)


@lowers(
    "aten.zeros.default",
    "aten.zeros_like.default",
    "aten.new_zeros.default",
    "aten.empty.memory_format",
    "aten.empty_like.default",
    "aten.new_empty.default",
    "aten.empty_strided.default",
    "aten.new_empty_strided.default",
    "aten.empty_permuted.default",
)
def zeros(b, out, *_, **__):
    return b.constant(0, out.dtype, out.shape)


@lowers("aten.ones.default", "aten.ones_like.default", "aten.new_ones.default")
def ones(b, out, *_, **__):
    return b.constant(1, out.dtype, out.shape)


@lowers("aten.arange.start_step", "aten.arange.start", "aten.arange.default", "prims.iota.default")
def arange(b, out, *args, start=None, step=None, **_):
    if start is not None:
        first, by = start, step  # prims.iota: length first
    elif len(args) == 1:
        first, by = 0, 1
    else:
        first, by = args[0], args[2] if len(args) > 2 else 1
    whole = dtypes.is_int(out.dtype) and not isinstance(first, float) and not isinstance(by, float)
    kind = torch.int64 if whole else torch.float64
    y = b.mul(b.iota(out.shape, 0, kind), b.constant(by, kind))
    return b.cast(b.add(y, b.constant(first, kind)), out.dtype)
