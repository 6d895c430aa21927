# SPDX-License-Identifier: Apache-2.0
"""Operators that read or write elements at places given by other tensors."""

import math

import torch

from opentrn.torch import dtypes
from opentrn.torch.builder import Value, broadcast_shapes
from opentrn.torch.lower.reduce import total_so_far
from opentrn.torch.lower.table import NotLowered, dim_of, full, highest, lowers, lowest, operand


def _kind(shape):
    """The type of indices into a tensor: transfers by index take 32 bits."""
    return torch.int32 if max(shape, default=0) < 2**31 else torch.int64


def _wrapped(b, index, size, kind):
    """Indices of that type, negative ones counted from the end: index, index_put, index_fill and take have them. To all other
    operators they are out of range."""
    index = b.cast(index, kind)
    negative = b.compare("lt", index, b.constant(0, kind))
    return b.select(negative, b.add(index, b.constant(size, kind)), index)


def _replace(b, old, new):
    return new


def _add(b, old, new):
    return b.add(old, new)


# --- whole slices: index_select, index, index_put -------------------------------------------------


@lowers("aten.index_select.default")
def index_select(b, out, x, dim, index):
    if x.rank == 0:
        return x
    dim = dim_of(dim, x.rank)
    index = b.reshape(b.cast(index, _kind(x.shape)), [index.numel, 1])
    sizes = [1 if i == dim else d for i, d in enumerate(x.shape)]
    kept = [i for i in range(x.rank) if i != dim]
    return b.gather(x, index, sizes, kept, [dim], [dim])


@lowers("aten.embedding.default")
def embedding(b, out, weight, indices, *_, **__):
    index = b.reshape(b.cast(indices, _kind(weight.shape)), [*indices.shape, 1])
    return b.gather(weight, index, [1, weight.shape[1]], [indices.rank], [0], [0])


def _split_indices(b, x, indices):
    """Index tensors as one tensor of coordinates; the dimensions they stand for; their shape."""
    if any(i is not None and i.dtype in (torch.bool, torch.uint8) for i in indices):
        raise NotLowered("a mask as index: the size of the result is not known beforehand")
    dims = [d for d, i in enumerate(indices) if i is not None]
    given = [_wrapped(b, indices[d], x.shape[d], _kind(x.shape)) for d in dims]
    shape = broadcast_shapes(*(g.shape for g in given))
    columns = [b.reshape(b.broadcast(g, shape), (*shape, 1)) for g in given]
    return b.concatenate(columns, len(shape)), dims, shape


def _front(dims):
    """Where the index dimensions stand in the result: in place when the indices are neighbours."""
    neighbours = all(j == i + 1 for i, j in zip(dims, dims[1:], strict=False))
    return dims[0] if neighbours else 0


@lowers("aten.index.Tensor", "aten._unsafe_index.Tensor")
def index(b, out, x, indices):
    coordinates, dims, shape = _split_indices(b, x, indices)
    kept = [i for i in range(x.rank) if i not in dims]
    sizes = [1 if i in dims else d for i, d in enumerate(x.shape)]
    front = _front(dims)
    offset = [i if i < front else i + len(shape) for i in range(len(kept))]
    return b.gather(x, coordinates, sizes, offset, dims, dims)


@lowers("aten.index_put.default", "aten._unsafe_index_put.default")
def index_put(b, out, x, indices, values, accumulate=False):
    coordinates, dims, shape = _split_indices(b, x, indices)
    kept = [i for i in range(x.rank) if i not in dims]
    front = _front(dims)
    window = [i if i < front else i + len(shape) for i in range(len(kept))]
    update = [x.shape[i] for i in kept]
    update = update[:front] + list(shape) + update[front:]
    values = full(b, values, x.dtype, update)
    if accumulate and x.dtype in dtypes.NARROW:
        wide, values = b.cast(x, torch.float32), b.cast(values, torch.float32)
        y = b.scatter(wide, coordinates, values, window, dims, dims, _add)
        return b.cast(y, x.dtype)
    return b.scatter(x, coordinates, values, window, dims, dims, _add if accumulate else _replace)


def _index_write(b, x, dim, index, source, body):
    if x.rank == 0:
        x, source = b.reshape(x, [1]), b.reshape(source, [1])
        return b.reshape(_index_write(b, x, 0, index, source, body), [])
    dim = dim_of(dim, x.rank)
    index = b.reshape(b.cast(index, _kind(x.shape)), [index.numel, 1])
    shape = [index.numel if i == dim else d for i, d in enumerate(x.shape)]
    source = (
        b.reshape(source, shape) if source.numel == math.prod(shape) else b.broadcast(source, shape)
    )
    window = [i for i in range(x.rank) if i != dim]
    return b.scatter(x, index, source, window, [dim], [dim], body)


@lowers("aten.index_add.default")
def index_add(b, out, x, dim, index, source, *, alpha=1):
    if alpha != 1:
        source = b.mul(source, operand(b, alpha, source.dtype))
    return _index_write(b, x, dim, index, source, _add)


@lowers("aten.index_copy.default")
def index_copy(b, out, x, dim, index, source):
    return _index_write(b, x, dim, index, source, _replace)


@lowers("aten.index_fill.int_Scalar", "aten.index_fill.int_Tensor")
def index_fill(b, out, x, dim, index, value):
    size = x.shape[dim_of(dim, x.rank)] if x.rank else 1
    return _index_write(b, x, dim, _wrapped(b, index, size, _kind(x.shape)), operand(b, value, x.dtype), _replace)


@lowers("aten.embedding_dense_backward.default")
def embedding_backward(b, out, grad, indices, rows, padding, by_frequency):
    n = indices.numel
    where = b.reshape(b.cast(indices, _kind([rows])), [n, 1])
    kind = torch.float32 if grad.dtype in dtypes.NARROW else grad.dtype
    width = grad.shape[-1]
    grad = b.cast(b.reshape(grad, [n, width]), kind)
    if padding >= 0:
        real = b.compare("ne", where, b.constant(padding, where.dtype))
        grad = b.select(b.broadcast(real, (n, width)), grad, b.constant(0, kind))
    if by_frequency:
        ones = b.constant(1, kind, (n,))
        counts = b.scatter(b.constant(0, kind, (rows,)), where, ones, [], [0], [0], _add)
        mine = b.gather(counts, where, [1], [], [0], [0])
        grad = b.div(grad, b.reshape(mine, [n, 1]))
    zeros = b.constant(0, kind, (rows, width))
    return b.cast(b.scatter(zeros, where, grad, [1], [0], [0], _add), out.dtype)


# --- single elements: gather, scatter, take -------------------------------------------------------


def _along(b, x, dim, index):
    """Where each element of index points: (indices, dimensions they speak of, dimensions that go along with them). Dimensions of
    the same size go along, as in JAX: such a gather can be cut over devices; of others the element's own coordinate is written."""
    same = [i for i in range(x.rank) if i != dim and index.shape[i] == x.shape[i]]
    told, kind = [i for i in range(x.rank) if i not in same], _kind(x.shape)
    columns = [b.cast(index, kind) if i == dim else b.iota(index.shape, i, kind) for i in told]
    return b.concatenate([b.reshape(c, (*index.shape, 1)) for c in columns], index.rank), told, same


def _flat(b, x, index, *more):
    """0-dimensional tensors as vectors of one element."""
    if x.rank and index.rank:
        return (x, index, *more)
    return tuple(
        b.reshape(v, [1]) if isinstance(v, Value) and v.rank == 0 else v for v in (x, index, *more)
    )


@lowers("aten.gather.default")
def gather(b, out, x, dim, index, *, sparse_grad=False):
    if sparse_grad:
        raise NotLowered("a gather whose gradient is sparse")
    x, index = _flat(b, x, index)
    dim = dim_of(dim, x.rank)
    at, told, same = _along(b, x, dim, index)
    y = b.gather(x, at, [1] * x.rank, [], told, told, same, same)
    return b.reshape(y, out.shape)


def _scatter(b, out, x, dim, index, source, body, kind=None):
    x, index, source = _flat(b, x, index, source)
    dim = dim_of(dim, x.rank)
    if isinstance(source, Value) and source.rank:
        source = b.slice(source, [0] * index.rank, index.shape)
    kind = kind or x.dtype
    update = full(b, source, kind, index.shape)
    at, told, same = _along(b, x, dim, index)
    y = b.scatter(b.cast(x, kind), at, update, [], told, told, body, same, same)
    return b.reshape(b.cast(y, x.dtype), out.shape)


def _wide(dtype):
    return torch.float32 if dtype in dtypes.NARROW else dtype


@lowers("aten.scatter.src", "aten.scatter.value")
def scatter(b, out, x, dim, index, source):
    return _scatter(b, out, x, dim, index, source, _replace)


@lowers("aten.scatter_add.default")
def scatter_add(b, out, x, dim, index, source):
    return _scatter(b, out, x, dim, index, source, _add, _wide(x.dtype))


_JOIN = {
    "sum": lambda b, u, v: b.add(u, v),
    "add": lambda b, u, v: b.add(u, v),
    "prod": lambda b, u, v: b.mul(u, v),
    "multiply": lambda b, u, v: b.mul(u, v),
    "amax": lambda b, u, v: b.binary("maximum", u, v),
    "amin": lambda b, u, v: b.binary("minimum", u, v),
}


@lowers("aten.scatter.reduce", "aten.scatter.value_reduce")
def scatter_reduce_old(b, out, x, dim, index, source, *, reduce):
    return _scatter(b, out, x, dim, index, source, _JOIN[reduce], _wide(x.dtype))


@lowers("aten.scatter_reduce.two")
def scatter_reduce(b, out, x, dim, index, source, reduce, *, include_self=True):
    if reduce == "mean" or x.dtype == torch.bool:
        raise NotLowered(f"scatter_reduce with {reduce}")
    kind = _wide(x.dtype)
    start = x
    if not include_self:
        neutral = {"sum": 0, "prod": 1, "amax": lowest(kind), "amin": highest(kind)}[reduce]
        start = _scatter(b, x, x, dim, index, b.constant(neutral, x.dtype), _replace)
    return _scatter(b, out, start, dim, index, source, _JOIN[reduce], kind)


@lowers("aten.take.default")
def take(b, out, x, index):
    where = b.reshape(_wrapped(b, index, x.numel, _kind([x.numel])), [*index.shape, 1])
    return b.gather(b.reshape(x, [x.numel]), where, [1], [], [0], [0])


# --- masks and sorted rows ------------------------------------------------------------------------


def _ranks(b, mask, shape):
    """For each place the number of places before it that the mask takes; flat, with the mask."""
    mask = b.reshape(b.broadcast(mask, shape), [math.prod(shape)])
    ones = b.cast(mask, torch.int64)
    return mask, b.sub(total_so_far(b, ones, 0, 0, "add"), ones)


@lowers("aten.masked_scatter.default")
def masked_scatter(b, out, x, mask, source):
    """Places the mask takes get the source's elements one after the other."""
    if 0 in out.shape or not source.numel:
        raise NotLowered("a masked scatter of nothing")
    taken, rank = _ranks(b, mask, out.shape)
    last = b.constant(source.numel - 1, torch.int64, rank.shape)
    where = b.reshape(b.binary("minimum", rank, last), [*rank.shape, 1])
    new = b.gather(b.reshape(source, [source.numel]), where, [1], [], [0], [0])
    old = b.reshape(b.broadcast(x, out.shape), rank.shape)
    return b.reshape(b.select(taken, new, old), out.shape)


@lowers("aten.masked_scatter_backward.default")
def masked_scatter_backward(b, out, grad, mask, sizes):
    """The source's gradient: what the mask takes, moved to the front."""
    count = math.prod(out.shape)
    if not count or not grad.numel:
        raise NotLowered("a masked scatter of nothing")
    taken, rank = _ranks(b, mask, grad.shape)
    nowhere = b.constant(count, torch.int64, rank.shape)  # such updates are left out
    where = b.reshape(b.select(taken, rank, nowhere), [*rank.shape, 1])
    start = b.constant(0, grad.dtype, [count])
    y = b.scatter(start, where, b.reshape(grad, rank.shape), [], [0], [0], _replace)
    return b.reshape(y, out.shape)


def _places(b, out, rows, values, right):
    """How many elements of the sorted last dimension of rows come before each value."""
    kind = torch.promote_types(rows.dtype, values.dtype)
    n = rows.shape[-1]
    shape = (*out.shape, n)
    own = list(range(rows.rank - 1)) if rows.rank > 1 else []
    rows = b.spread(b.cast(rows, kind), shape, [*own, len(shape) - 1])
    values = b.spread(b.cast(values, kind), shape, range(len(shape) - 1))
    before = b.compare("le" if right else "lt", rows, values)
    if kind.is_floating_point:  # nan is larger than all
        before = b.logical_or(before, b.is_nan(values))
    return b.cast(b.reduce(b.cast(before, torch.int64), 0, [len(shape) - 1], "add"), out.dtype)


@lowers("aten.searchsorted.Tensor")
def searchsorted(b, out, rows, values, *, out_int32=False, right=False, side=None, sorter=None):
    if sorter is not None or 0 in rows.shape or 0 in out.shape:
        raise NotLowered("searchsorted with a sorter, or of nothing")
    return _places(b, out, rows, values, right or side == "right")


@lowers("aten.bucketize.Tensor")
def bucketize(b, out, values, rows, *, out_int32=False, right=False):
    if 0 in rows.shape or 0 in out.shape:
        raise NotLowered("a bucketize of nothing")
    return _places(b, out, rows, values, right)


# --- bags of embeddings ---------------------------------------------------------------------------


def _bag_of(b, count, offsets, nbags):
    """For each of count indices the bag it is in: how many offsets lie at or before it, less
    one."""
    shape = (nbags, count)
    position = b.iota(shape, 1)
    begun = b.compare("ge", position, b.spread(b.cast(offsets, torch.int64), shape, [0]))
    total = b.reduce(b.cast(begun, torch.int64), 0, [0], "add")
    return b.sub(total, b.constant(1, torch.int64))


def _bag_sizes(b, bag, real, nbags):
    where = b.reshape(bag, [bag.shape[0], 1])
    return b.scatter(
        b.constant(0, torch.int64, (nbags,)), where, b.cast(real, torch.int64), [], [0], [0], _add
    )


def _real(b, indices, padding):
    if padding < 0:
        return b.constant(True, torch.bool, indices.shape)
    return b.compare("ne", indices, b.constant(padding, torch.int64))


@lowers("aten._embedding_bag.default", "aten._embedding_bag_forward_only.default")
def embedding_bag(
    b,
    out,
    weight,
    indices,
    offsets,
    by_frequency=False,
    mode=0,
    sparse=False,
    per_sample=None,
    include_last=False,
    padding=-1,
):
    if mode == 2:
        raise NotLowered("embedding bags with the largest element")
    n, width = indices.shape[0], weight.shape[1]
    nbags = out[0].shape[0]
    offsets = b.slice_dim(offsets, 0, 0, nbags)
    indices = b.cast(indices, torch.int64)
    bag, real = _bag_of(b, n, offsets, nbags), _real(b, indices, padding)
    kind = _wide(weight.dtype)
    rows = b.gather(weight, b.reshape(indices, [n, 1]), [1, width], [1], [0], [0])
    rows = b.cast(rows, kind)
    if per_sample is not None:
        rows = b.mul(rows, b.reshape(b.cast(per_sample, kind), [n, 1]))
    rows = b.select(b.spread(real, (n, width), [0]), rows, b.constant(0, kind))
    total = b.scatter(
        b.constant(0, kind, (nbags, width)), b.reshape(bag, [n, 1]), rows, [1], [0], [0], _add
    )
    sizes = _bag_sizes(b, bag, real, nbags)
    if mode == 1:
        divisor = b.binary("maximum", b.cast(sizes, kind), b.constant(1, kind))
        total = b.div(total, b.spread(divisor, (nbags, width), [0]))
    shapes = [tuple(o.shape) for o in out]
    kinds = [o.dtype for o in out]
    bags = b.cast(bag, kinds[1]) if shapes[1] == (n,) else b.constant(0, kinds[1], shapes[1])
    sizes = b.cast(sizes, kinds[2]) if shapes[2] == (nbags,) else b.constant(0, kinds[2], shapes[2])
    return [b.cast(total, out[0].dtype), bags, sizes, b.constant(0, kinds[3], shapes[3])]


@lowers("aten._embedding_bag_backward.default")
def embedding_bag_backward(
    b,
    out,
    grad,
    indices,
    offsets,
    offset2bag,
    bag_size,
    maximum,
    rows,
    by_frequency,
    mode,
    sparse,
    per_sample,
    padding=-1,
):
    if sparse or mode == 2 or by_frequency:
        raise NotLowered(
            "gradients of embedding bags that are sparse, largest or scaled by frequency"
        )
    n, (nbags, width) = indices.shape[0], grad.shape
    offsets = b.slice_dim(offsets, 0, 0, min(nbags, offsets.shape[0]))
    indices = b.cast(indices, torch.int64)
    bag, real = _bag_of(b, n, offsets, offsets.shape[0]), _real(b, indices, padding)
    kind = _wide(grad.dtype)
    where = b.reshape(bag, [n, 1])
    mine = b.gather(b.cast(grad, kind), where, [1, width], [1], [0], [0])
    if mode == 1:
        sizes = b.cast(_bag_sizes(b, bag, real, nbags), kind)
        sizes = b.binary("maximum", sizes, b.constant(1, kind))
        mine = b.div(mine, b.reshape(b.gather(sizes, where, [1], [], [0], [0]), [n, 1]))
    if per_sample is not None:
        mine = b.mul(mine, b.reshape(b.cast(per_sample, kind), [n, 1]))
    mine = b.select(b.spread(real, (n, width), [0]), mine, b.constant(0, kind))
    zeros = b.constant(0, kind, (rows, width))
    y = b.scatter(zeros, b.reshape(indices, [n, 1]), mine, [1], [0], [0], _add)
    return b.cast(y, out.dtype)


@lowers("aten._embedding_bag_per_sample_weights_backward.default")
def per_sample_backward(b, out, grad, weight, indices, offsets, offset2bag, mode, padding=-1):
    n, (nbags, width) = indices.shape[0], grad.shape
    indices = b.cast(indices, torch.int64)
    offsets = b.slice_dim(offsets, 0, 0, min(nbags, offsets.shape[0]))
    bag = _bag_of(b, n, offsets, offsets.shape[0])
    kind = _wide(grad.dtype)
    mine = b.gather(b.cast(grad, kind), b.reshape(bag, [n, 1]), [1, width], [1], [0], [0])
    rows = b.gather(b.cast(weight, kind), b.reshape(indices, [n, 1]), [1, width], [1], [0], [0])
    dots = b.sum(b.mul(mine, rows), [1])
    dots = b.select(_real(b, indices, padding), dots, b.constant(0, kind))
    return b.cast(dots, out.dtype)
