# SPDX-License-Identifier: Apache-2.0
"""Operators that join the elements of one or more dimensions: sums, extremes, scans, sorting."""

import math

import torch

from opentrn.torch import dtypes
from opentrn.torch.lower.table import NotLowered, dim_of, dims_of, highest, lowers, lowest


def keep(b, y, x, dims, keepdim):
    if not keepdim:
        return y
    return b.reshape(y, [1 if i in dims else d for i, d in enumerate(x.shape)])


def sum_in(b, x, dims, kind):
    """Sum in this type, 0-dimensional tensors included."""
    return b.sum(b.cast(x, kind), dims)


@lowers("aten.sum.dim_IntList", "aten.sum.default", "prims.sum.default")
def sum_dims(b, out, x, dims=None, keepdim=False, *, dtype=None, output_dtype=None):
    dims = dims_of(dims, x.rank)
    kind = dtypes.accumulator(out.dtype)
    y = keep(b, sum_in(b, x, dims, kind), x, dims, keepdim)
    return b.cast(y, out.dtype)


def _count(x, dims):
    n = 1
    for d in dims:
        n *= x.shape[d]
    return n


@lowers("aten.mean.dim", "aten.mean.default")
def mean(b, out, x, dims=None, keepdim=False, *, dtype=None):
    dims = dims_of(dims, x.rank)
    kind = torch.float32 if out.dtype in dtypes.NARROW else out.dtype
    total = sum_in(b, x, dims, kind)
    y = b.div(total, b.constant(_count(x, dims), kind))
    return b.cast(keep(b, y, x, dims, keepdim), out.dtype)


@lowers("aten.var.correction", "prims.var.default")
def var(b, out, x, dims=None, correction=None, keepdim=False, **_):
    dims = dims_of(dims, x.rank)
    kind = torch.float32 if out.dtype in dtypes.NARROW else out.dtype
    if x.dtype.is_complex:
        raise NotLowered("the variance of complex numbers")
    x = b.cast(x, kind)
    n = _count(x, dims)
    mid = b.div(b.sum(x, dims), b.constant(n, kind))
    away = b.sub(x, keep(b, mid, x, dims, True))
    total = b.sum(b.mul(away, away), dims)
    free = max(0, n - (1 if correction is None else correction))
    y = b.div(total, b.constant(free, kind))
    return b.cast(keep(b, y, x, dims, keepdim), out.dtype)


@lowers("aten.prod.dim_int", "aten.prod.default")
def prod(b, out, x, dim=None, keepdim=False, *, dtype=None):
    dims = dims_of(dim, x.rank)
    kind = dtypes.accumulator(out.dtype)
    x = b.cast(x, kind)
    y = b.reduce(x, 1, dims, "multiply") if dims else x
    return b.cast(keep(b, y, x, dims, keepdim), out.dtype)


@lowers("aten.hash_tensor.default")
def hash_tensor(b, out, x, dims=None, *, keepdim=False, mode=0):
    """All bits of 64 together by exclusive or: of a float those of its double."""
    dims = dims_of(dims, x.rank)
    x = b.cast(x, torch.float64 if x.dtype.is_floating_point else torch.int64)
    bits = b.op("stablehlo.bitcast_convert", [x], [(x.shape, out.dtype)])[0]
    return keep(b, b.reduce(bits, 0, dims, "xor") if dims else bits, x, dims, keepdim)


def _extreme(operation, start):
    def lower(b, out, x, dims=None, keepdim=False):
        dims = dims_of(dims, x.rank)
        if not dims:
            return x
        name = operation
        if x.dtype == torch.bool:
            name = "or" if operation == "maximum" else "and"
        return keep(b, b.reduce(x, start(x.dtype), dims, name), x, dims, keepdim)

    return lower


lowers("aten.amax.default", "aten.max.default")(_extreme("maximum", lowest))
lowers("aten.amin.default", "aten.min.default")(_extreme("minimum", highest))


def _truth(operation, start):
    def lower(b, out, x, dims=None, keepdim=False):
        # An empty list of dimensions joins nothing here, unlike everywhere else.
        dims = [] if dims is not None and dims == [] else dims_of(dims, x.rank)
        y = b.cast(x, torch.bool)
        y = b.reduce(y, start, dims, operation) if dims else y
        return b.cast(keep(b, y, x, dims, keepdim), out.dtype)

    return lower


lowers("aten.any.default", "aten.any.dim", "aten.any.dims")(_truth("or", False))
lowers("aten.all.default", "aten.all.dim", "aten.all.dims")(_truth("and", True))


def _best(b, x, dim, larger):
    """The extreme along a dimension and where it first stands; NaN counts as the extreme."""
    start = lowest(x.dtype) if larger else highest(x.dtype)
    if x.dtype == torch.bool:
        x = b.cast(x, torch.uint8)
        start = 0 if larger else 255
    where = b.iota(x.shape, dim)
    none = torch.iinfo(torch.int64).max
    direction = "gt" if larger else "lt"

    def body(b, old, new):
        wins = b.compare(direction, new[0], old[0])
        ties = b.compare("eq", new[0], old[0])
        if x.dtype.is_floating_point:
            old_nan, new_nan = b.is_nan(old[0]), b.is_nan(new[0])
            wins = b.logical_or(wins, b.logical_and(new_nan, b.logical_not(old_nan)))
            ties = b.logical_or(ties, b.logical_and(new_nan, old_nan))
        first = b.logical_and(ties, b.compare("lt", new[1], old[1]))
        take = b.logical_or(wins, first)
        return [b.select(take, new[0], old[0]), b.select(take, new[1], old[1])]

    inits = [b.constant(start, x.dtype), b.constant(none, torch.int64)]
    return b.reduce_many([x, where], inits, [dim], body)


def _best_along(b, out, x, dim, keepdim, larger):
    if x.rank == 0:
        return [x, b.constant(0, torch.int64)]
    dim = dim_of(dim, x.rank)
    value, where = _best(b, x, dim, larger)
    value, where = (keep(b, v, x, [dim], keepdim) for v in (value, where))
    return [b.cast(value, out[0].dtype), where]


@lowers("aten.max.dim")
def max_dim(b, out, x, dim, keepdim=False):
    return _best_along(b, out, x, dim, keepdim, True)


@lowers("aten.min.dim")
def min_dim(b, out, x, dim, keepdim=False):
    return _best_along(b, out, x, dim, keepdim, False)


def _argbest(larger):
    def lower(b, out, x, dim=None, keepdim=False):
        if x.rank == 0:
            return b.constant(0, torch.int64, out.shape)
        if dim is None:
            where = _best(b, b.reshape(x, [x.numel]), 0, larger)[1]
            return b.reshape(where, out.shape)
        dim = dim_of(dim, x.rank)
        return keep(b, _best(b, x, dim, larger)[1], x, [dim], keepdim)

    return lower


lowers("aten.argmax.default")(_argbest(True))
lowers("aten.argmin.default")(_argbest(False))


@lowers("aten.linalg_vector_norm.default")
def vector_norm(b, out, x, order=2, dims=None, keepdim=False, *, dtype=None):
    dims = dims_of(dims, x.rank)
    kind = torch.float32 if out.dtype in dtypes.NARROW else out.dtype
    size = b.unary("abs", x, kind if x.dtype.is_complex else x.dtype)
    size = b.cast(size, kind)
    if order == math.inf:
        y = b.reduce(size, lowest(kind), dims, "maximum") if dims else size
    elif order == -math.inf:
        y = b.reduce(size, highest(kind), dims, "minimum") if dims else size
    elif order == 0:
        y = b.sum(b.cast(b.compare("ne", size, b.constant(0, kind)), kind), dims)
    elif order == 1:
        y = b.sum(size, dims)
    elif order == 2:
        y = b.unary("sqrt", b.sum(b.mul(size, size), dims))
    else:
        power = b.binary("power", size, b.constant(order, kind))
        y = b.binary("power", b.sum(power, dims), b.constant(1 / order, kind))
    return b.cast(keep(b, y, x, dims, keepdim), out.dtype)


# --- scans ----------------------------------------------------------------------------------------


def scan(b, x, dim, start, join):
    """Running total in log2(n) steps, each adding what stands 1, 2, 4, … places before."""
    fill = b.constant(start, x.dtype)
    step = 1
    while step < x.shape[dim]:
        head = b.slice_dim(x, dim, 0, x.shape[dim] - step)
        low = [step if i == dim else 0 for i in range(x.rank)]
        x = join(x, b.pad(head, fill, low, [0] * x.rank))
        step *= 2
    return x


BLOCK = 128  # elements that follow each other in a running total: more of them would add up their roundings


def total_so_far(b, x, dim, start, name):
    """A window over all that lies before, which the chip takes as a scan; of a long dimension in blocks, each from the total of those
    before it."""
    n = x.shape[dim]
    if 0 in x.shape:
        return x
    if n <= BLOCK or not (x.dtype.is_floating_point or x.dtype.is_complex):
        window = [n if i == dim else 1 for i in range(x.rank)]
        return b.reduce_window(x, start, window, [1] * x.rank, [1] * x.rank, [(w - 1, 0) for w in window], name)
    only = lambda k: [k if i == dim else 0 for i in range(x.rank)]
    fill, blocks = b.constant(start, x.dtype), -(-n // BLOCK)
    whole = b.pad(x, fill, only(0), only(blocks * BLOCK - n))
    inside = total_so_far(b, b.reshape(whole, [*x.shape[:dim], blocks, BLOCK, *x.shape[dim + 1 :]]), dim + 1, start, name)
    last = b.reshape(b.slice_dim(inside, dim + 1, BLOCK - 1, BLOCK), [*x.shape[:dim], blocks, *x.shape[dim + 1 :]])
    before = b.pad(b.slice_dim(total_so_far(b, last, dim, start, name), dim, 0, blocks - 1), fill, only(1), only(0))
    total = b.binary(name, b.spread(before, inside.shape, [i + (i > dim) for i in range(x.rank)]), inside)
    return b.slice_dim(b.reshape(total, whole.shape), dim, 0, n)


def _running(start, name):
    def lower(b, out, x, dim, *, dtype=None):
        x = b.cast(x, out.dtype)
        if x.rank == 0:
            return x
        kind = torch.float32 if out.dtype in dtypes.NARROW else out.dtype
        return b.cast(total_so_far(b, b.cast(x, kind), dim_of(dim, x.rank), start, name), out.dtype)

    return lower


lowers("aten.cumsum.default")(_running(0, "add"))
lowers("aten.cumprod.default")(_running(1, "multiply"))


@lowers("aten._logcumsumexp.default", "aten.logcumsumexp.default")
def running_log_sum_exp(b, out, x, dim):
    """Each step joins two logarithms of sums; infinities that are equal have no difference to take the exponential of."""
    if x.rank == 0:
        return x
    if x.dtype.is_complex:
        raise NotLowered("logarithms of sums of complex numbers")
    kind = torch.float32 if out.dtype in dtypes.NARROW else out.dtype

    def join(u, v):
        high, low = b.binary("maximum", u, v), b.binary("minimum", u, v)
        away = b.select(b.compare("eq", low, high), b.constant(0, kind), b.sub(low, high))
        more = b.add(high, b.unary("log_plus_one", b.unary("exponential", away)))
        return b.select(b.compare("eq", high, b.constant(float("-inf"), kind)), high, more)

    return b.cast(scan(b, b.cast(x, kind), dim_of(dim, x.rank), float("-inf"), join), out.dtype)


# --- order ----------------------------------------------------------------------------------------


def _sorted(b, x, dim, descending):
    """Values and indices; NaN is larger than everything. Both sides of the comparator are the same function of an element, so the
    chip makes a key of each once."""
    key = b.cast(x, torch.uint8) if x.dtype == torch.bool else x

    def rank(b, v):
        if not key.dtype.is_floating_point:
            return v
        zero, nan = b.constant(0, key.dtype), b.constant(math.nan, key.dtype)
        return b.select(b.is_nan(v), nan, b.select(b.compare("eq", v, zero), zero, v))

    def before(b, u, v):
        return b.compare("gt" if descending else "lt", rank(b, u), rank(b, v), total=True)

    values, where = b.sort([key, b.iota(x.shape, dim)], dim, before)
    return b.cast(values, x.dtype), where


@lowers("aten.sort.default", "aten.sort.stable")
def sort(b, out, x, *args, dim=-1, descending=False, stable=None):
    if args and (args[0] is None or isinstance(args[0], bool)):
        args = args[1:]  # sort.stable has `stable` first
    dim = args[0] if args else dim
    descending = args[1] if len(args) > 1 else descending
    if x.rank == 0:
        return [x, b.constant(0, torch.int64)]
    return list(_sorted(b, x, dim_of(dim, x.rank), descending))


@lowers("aten.topk.default")
def topk(b, out, x, k, dim=-1, largest=True, sorted=True):
    if x.rank == 0:
        return [b.reshape(x, out[0].shape), b.constant(0, torch.int64, out[1].shape)]
    dim = dim_of(dim, x.rank)
    values, where = _sorted(b, x, dim, largest)
    return [b.slice_dim(v, dim, 0, k) for v in (values, where)]


def _middle(b, out, x, dim, keepdim, place, skip_nan=False):
    values, where = _sorted(b, x, dim, False)
    at = [b.slice_dim(v, dim, place, place + 1) for v in (values, where)]
    if x.dtype.is_floating_point and not skip_nan:  # one NaN makes the result NaN; NaNs sort last
        last = [b.slice_dim(v, dim, x.shape[dim] - 1, x.shape[dim]) for v in (values, where)]
        bad = b.is_nan(last[0])
        at = [b.select(bad, end, mid) for end, mid in zip(last, at, strict=True)]
    return [
        v if keepdim else b.reshape(v, [d for i, d in enumerate(x.shape) if i != dim]) for v in at
    ]


@lowers("aten.median.dim")
def median_dim(b, out, x, dim, keepdim=False):
    if x.rank == 0:
        return [x, b.constant(0, torch.int64)]
    dim = dim_of(dim, x.rank)
    return _middle(b, out, x, dim, keepdim, (x.shape[dim] - 1) // 2)


@lowers("aten.median.default")
def median(b, out, x):
    flat = b.reshape(x, [x.numel])
    return _middle(b, out, flat, 0, False, (x.numel - 1) // 2)[0]


@lowers("aten.kthvalue.default")
def kthvalue(b, out, x, k, dim=-1, keepdim=False):
    if x.rank == 0:
        return [x, b.constant(0, torch.int64)]
    return _middle(b, out, x, dim_of(dim, x.rank), keepdim, k - 1, skip_nan=True)


def _running_best(direction):
    def lower(b, out, x, dim):
        """Values and places; a later equal value wins, and so does NaN."""
        if x.rank == 0:
            return [x, b.constant(0, torch.int64)]
        dim = dim_of(dim, x.rank)
        values, places = x, b.iota(x.shape, dim)
        step, none = 1, b.constant(-1, torch.int64)
        while step < x.shape[dim]:
            low = [step if i == dim else 0 for i in range(x.rank)]
            zero = [0] * x.rank
            n = x.shape[dim] - step
            before = b.pad(b.slice_dim(values, dim, 0, n), b.constant(0, x.dtype), low, zero)
            where = b.pad(b.slice_dim(places, dim, 0, n), none, low, zero)
            better = b.compare(direction, before, values)
            if x.dtype.is_floating_point:
                nan = b.logical_and(b.is_nan(before), b.logical_not(b.is_nan(values)))
                better = b.logical_or(better, nan)
            better = b.logical_and(better, b.compare("ge", where, b.constant(0, torch.int64)))
            values, places = b.select(better, before, values), b.select(better, where, places)
            step *= 2
        return [values, places]

    return lower


lowers("aten.cummax.default")(_running_best("gt"))
lowers("aten.cummin.default")(_running_best("lt"))
