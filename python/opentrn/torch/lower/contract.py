# SPDX-License-Identifier: Apache-2.0
"""Matrix products, convolutions and pools."""

import math

import torch

from opentrn.torch import dtypes
from opentrn.torch.lower.table import NotLowered, dim_of, lowers, lowest

# --- products -------------------------------------------------------------------------------------


@lowers("aten.mm.default")
def mm(b, out, x, y):
    return b.dot_general(x, y, ([1], [0]))


@lowers("aten.bmm.default")
def bmm(b, out, x, y):
    return b.dot_general(x, y, ([2], [1]), ([0], [0]))


@lowers("aten.dot.default", "aten.vdot.default")
def dot(b, out, x, y):
    return b.dot_general(x, y, ([0], [0]))


@lowers("aten.mv.default")
def mv(b, out, x, y):
    return b.dot_general(x, y, ([1], [0]))


def _addmm(product):
    def lower(b, out, x, y, z, *, beta=1, alpha=1):
        kind = torch.float32 if out.dtype in dtypes.NARROW else out.dtype
        total = b.cast(product(b, out, y, z), kind)
        if alpha != 1:
            total = b.mul(total, b.constant(alpha, kind))
        if beta != 0:
            x = b.cast(x, kind)
            x = x if beta == 1 else b.mul(x, b.constant(beta, kind))
            total = b.add(b.broadcast(x, total.shape), total)
        return b.cast(total, out.dtype)

    return lower


lowers("aten.addmm.default")(_addmm(mm))
lowers("aten.baddbmm.default")(_addmm(bmm))
lowers("aten.addmv.default")(_addmm(mv))


@lowers("aten.linalg_cross.default")
def cross(b, out, x, y, *, dim=-1):
    kind = torch.float32 if out.dtype in dtypes.NARROW else out.dtype
    x, y = (b.broadcast(b.cast(v, kind), tuple(out.shape)) for v in (x, y))
    dim = dim_of(dim, x.rank)

    def turned(v, by):
        """Components 1, 2, 0 for by = 1 and 2, 0, 1 for by = 2."""
        return b.concatenate([b.slice_dim(v, dim, by, 3), b.slice_dim(v, dim, 0, by)], dim)

    y = b.sub(b.mul(turned(x, 1), turned(y, 2)), b.mul(turned(x, 2), turned(y, 1)))
    return b.cast(y, out.dtype)


@lowers("aten.addbmm.default")
def addbmm(b, out, x, y, z, *, beta=1, alpha=1):
    def product(b, out, y, z):
        return b.dot_general(y, z, ([0, 2], [0, 1]))

    return _addmm(product)(b, out, x, y, z, beta=beta, alpha=alpha)


# --- convolutions ---------------------------------------------------------------------------------


def _each(values, n):
    values = [values] if isinstance(values, int) else list(values)
    return values * n if len(values) == 1 else values


def _swap_groups(b, w, groups, flip):
    """Weights [in, out/g, …] <-> [out, in/g, …] inside each group; space reversed when flip."""
    first, second, *space = w.shape
    w = b.reshape(w, [groups, first // groups, second, *space])
    w = b.transpose(w, [0, 2, 1, *range(3, w.rank)])
    w = b.reshape(w, [groups * second, first // groups, *space])
    return b.reverse(w, range(2, w.rank)) if flip else w


def _forward(b, x, w, shape, stride, padding, dilation, groups):
    """The high side gets what the result needs, which is less than asked when the stride skips a
    rest."""
    n = x.rank - 2
    pairs = []
    for i in range(n):
        need = (shape[2 + i] - 1) * stride[i] + dilation[i] * (w.shape[2 + i] - 1) + 1
        pairs.append((padding[i], need - x.shape[2 + i] - padding[i]))
    return b.convolution(x, w, shape, stride, pairs, [1] * n, dilation, groups)


def _transposed(b, x, w, shape, stride, padding, dilation, groups):
    """The convolution that runs the other way: inputs are spread apart by the stride. w is
    [in, out/g, …] and shape says how large the result is."""
    n = x.rank - 2
    pairs = []
    for i in range(n):
        reach = dilation[i] * (w.shape[2 + i] - 1)
        low = reach - padding[i]
        spread = (x.shape[2 + i] - 1) * stride[i] + 1
        pairs.append((low, shape[2 + i] - (spread + low - reach)))
    w = _swap_groups(b, w, groups, True)
    return b.convolution(x, w, shape, [1] * n, pairs, stride, dilation, groups)


def _real(*values):
    if any(v.dtype.is_complex for v in values):
        raise NotLowered("a convolution of complex numbers")


@lowers("aten.convolution.default")
def convolution(b, out, x, w, bias, stride, padding, dilation, transposed, output_padding, groups):
    _real(x, w)
    n = x.rank - 2
    if n < 1:
        raise NotLowered("a convolution without a batch")
    stride, padding, dilation = (_each(v, n) for v in (stride, padding, dilation))
    run = _transposed if transposed else _forward
    y = run(b, x, w, tuple(out.shape), stride, padding, dilation, groups)
    if bias is not None:
        y = b.add(y, b.spread(b.cast(bias, y.dtype), y.shape, [1]))
    return y


def _weight_gradient(b, x, grad, w_shape, stride, padding, dilation, groups):
    """Batches become the features that are summed over: x as [C, N, …], grad as the window.
    w_shape is [O, C/g, …]."""
    n = x.rank - 2
    turn = [1, 0, *range(2, x.rank)]
    pairs = []
    for i in range(n):
        reach = (grad.shape[2 + i] - 1) * stride[i] + 1
        wanted = (w_shape[2 + i] - 1) * dilation[i] + reach
        pairs.append((padding[i], wanted - x.shape[2 + i] - padding[i]))
    channels = x.shape[1]
    shape = [channels // groups, w_shape[0], *w_shape[2:]]
    y = b.convolution(
        b.transpose(x, turn),
        b.transpose(grad, turn),
        shape,
        dilation,
        pairs,
        [1] * n,
        stride,
        batch_groups=groups,
    )
    return b.transpose(y, turn)


@lowers("aten.convolution_backward.default")
def convolution_backward(
    b,
    out,
    grad,
    x,
    w,
    bias_sizes,
    stride,
    padding,
    dilation,
    transposed,
    output_padding,
    groups,
    mask,
):
    _real(grad, x, w)
    n = x.rank - 2
    stride, padding, dilation = (_each(v, n) for v in (stride, padding, dilation))
    results = [None, None, None]
    if mask[0]:
        run = _forward if transposed else _transposed
        results[0] = run(b, grad, w, x.shape, stride, padding, dilation, groups)
    if mask[1]:
        # A transposed convolution is the backward of a plain one: x and grad change places.
        pair = (grad, x) if transposed else (x, grad)
        results[1] = _weight_gradient(b, *pair, w.shape, stride, padding, dilation, groups)
    if mask[2]:
        kind = dtypes.accumulator(grad.dtype)
        total = b.sum(b.cast(grad, kind), [0, *range(2, grad.rank)])
        results[2] = b.cast(total, grad.dtype)
    return results


# --- pools ----------------------------------------------------------------------------------------


def _window(x, kernel, stride, padding, dilation, out_shape):
    """Sizes for all dimensions; the high side is padded to what the result needs (ceil_mode)."""
    n = len(kernel)
    skip = x.rank - n
    pairs = [(0, 0)] * skip
    for i in range(n):
        reach = dilation[i] * (kernel[i] - 1) + 1
        need = (out_shape[skip + i] - 1) * stride[i] + reach
        pairs.append((padding[i], max(padding[i], need - x.shape[skip + i] - padding[i])))
    ones = [1] * skip
    return ones + kernel, ones + stride, ones + dilation, pairs


def _pool_arguments(kernel, stride, padding, dilation, n):
    kernel = _each(kernel, n)
    return kernel, _each(stride, n) if stride else kernel, _each(padding, n), _each(dilation, n)


def _crop(b, y, shape):
    return b.slice(y, [0] * y.rank, shape)


@lowers("aten.max_pool2d_with_indices.default", "aten.max_pool3d_with_indices.default")
def max_pool(b, out, x, kernel, stride=(), padding=0, dilation=1, ceil_mode=False):
    n = 2 if "2d" in b.node_name else 3
    kernel, stride, padding, dilation = _pool_arguments(kernel, stride, padding, dilation, n)
    window = _window(x, kernel, stride, padding, dilation, out[0].shape)
    space = x.shape[-n:]
    flat = b.iota((math.prod(space),), 0)
    where = b.spread(b.reshape(flat, space), x.shape, range(x.rank - n, x.rank))

    def body(b, old, new):
        wins = b.compare("gt", new[0], old[0])
        if x.dtype.is_floating_point:
            wins = b.logical_or(wins, b.is_nan(new[0]))
        # The first real element is taken whatever it is; padding has no place.
        real = b.compare("ge", new[1], b.constant(0, torch.int64))
        unset = b.compare("lt", old[1], b.constant(0, torch.int64))
        take = b.logical_and(real, b.logical_or(wins, unset))
        return [b.select(take, new[0], old[0]), b.select(take, new[1], old[1])]

    inits = [b.constant(lowest(x.dtype), x.dtype), b.constant(-1, torch.int64)]
    values, places = b.reduce_window_many([x, where], inits, *window, body)
    return [_crop(b, values, out[0].shape), _crop(b, places, out[0].shape)]


def _divisor(b, x, window, shape, padding, ceil_mode, count_include_pad, override, kind, n):
    """How many elements each window counts: a number, or a tensor when windows differ."""
    size, strides, dilation, pairs = window
    plain = not any(padding) and not ceil_mode
    if override:
        return b.constant(override, kind)
    if plain:
        return b.constant(math.prod(size), kind)
    space = x.shape[-n:]
    ones = b.constant(1, kind, space)
    tail = [v[-n:] for v in (size, strides, dilation)]
    pads = pairs[-n:]
    if count_include_pad:  # padding counts, what ceil_mode adds beyond it does not
        ones = b.constant(1, kind, [d + 2 * p for d, p in zip(space, padding, strict=True)])
        pads = [(0, hi - p) for (lo, hi), p in zip(pads, padding, strict=True)]
    counts = b.reduce_window(ones, 0, *tail, pads, "add")
    counts = b.slice(counts, [0] * n, shape[-n:])
    return b.spread(counts, shape, range(len(shape) - n, len(shape)))


def _avg_setup(b, x, kernel, stride, padding, ceil_mode, include, override, shape, kind):
    n = 2 if "2d" in b.node_name else 3
    kernel, stride, padding, dilation = _pool_arguments(kernel, stride, padding, 1, n)
    window = _window(x, kernel, stride, padding, dilation, shape)
    divisor = _divisor(b, x, window, shape, padding, ceil_mode, include, override, kind, n)
    return window, divisor


@lowers("aten.avg_pool2d.default", "aten.avg_pool3d.default")
def avg_pool(
    b,
    out,
    x,
    kernel,
    stride=(),
    padding=0,
    ceil_mode=False,
    count_include_pad=True,
    divisor_override=None,
):
    kind = dtypes.accumulator(x.dtype)
    window, divisor = _avg_setup(
        b,
        x,
        kernel,
        stride,
        padding,
        ceil_mode,
        count_include_pad,
        divisor_override,
        tuple(out.shape),
        kind,
    )
    total = b.reduce_window(b.cast(x, kind), 0, *window, "add")
    total = _crop(b, total, out.shape)
    return b.cast(b.div(total, divisor), out.dtype)


@lowers("aten.avg_pool2d_backward.default", "aten.avg_pool3d_backward.default")
def avg_pool_backward(
    b, out, grad, x, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override
):
    kind = dtypes.accumulator(grad.dtype)
    window, divisor = _avg_setup(
        b,
        x,
        kernel,
        stride,
        padding,
        ceil_mode,
        count_include_pad,
        divisor_override,
        grad.shape,
        kind,
    )
    size, strides, _, pairs = window
    share = b.div(b.cast(grad, kind), divisor)
    # Spread the gradients apart by the stride, then add up the windows that saw each element.
    low = [s - 1 for s in size]
    inside = [s - 1 for s in strides]
    high = [
        lo + d + w - 1 - (w - 1) - ((g - 1) * s + 1)
        for (lo, _), d, w, g, s in zip(pairs, x.shape, size, grad.shape, strides, strict=True)
    ]
    high = [max(0, h) + w - 1 for h, w in zip(high, size, strict=True)]
    wide = b.pad(share, b.constant(0, kind), low, high, inside)
    ones = [1] * x.rank
    sums = b.reduce_window(wide, 0, size, ones, ones, [(0, 0)] * x.rank, "add")
    starts = [lo for lo, _ in pairs]
    limits = [lo + d for lo, d in zip(starts, x.shape, strict=True)]
    return b.cast(b.slice(sums, starts, limits), out.dtype)


# --- adaptive averages: a matrix per dimension says how much each element counts ------------------


def _shares(b, size, wanted, kind):
    """[wanted, size]: 1 / width where output i covers element j (from floor to ceil of its
    share)."""
    table = torch.zeros(wanted, size, dtype=torch.float64)
    for i in range(wanted):
        begin, end = i * size // wanted, -((-(i + 1) * size) // wanted)
        table[i, begin:end] = 1 / (end - begin)
    return b.tensor(table.to(kind))


def _average(b, x, sizes, kind, back):
    """Contracts the last dimensions with their tables; back: the other way, as gradients go."""
    y, n = b.cast(x, kind), len(sizes)
    for i, (size, wanted) in enumerate(sizes):
        dim = x.rank - n + i
        y = b.dot_general(y, _shares(b, size, wanted, kind), ([dim], [0 if back else 1]))
        order = list(range(y.rank - 1))
        y = b.transpose(y, [*order[:dim], y.rank - 1, *order[dim:]])
    return y


@lowers("aten._adaptive_avg_pool2d.default", "aten._adaptive_avg_pool3d.default")
def adaptive_average(b, out, x, size):
    n = len(size)
    pairs = list(zip(x.shape[-n:], out.shape[-n:], strict=True))
    return b.cast(_average(b, x, pairs, dtypes.accumulator(x.dtype), False), out.dtype)


@lowers("aten._adaptive_avg_pool2d_backward.default", "aten._adaptive_avg_pool3d_backward.default")
def adaptive_average_backward(b, out, grad, x):
    n = 2 if "2d" in b.node_name else 3
    pairs = list(zip(x.shape[-n:], grad.shape[-n:], strict=True))
    return b.cast(_average(b, grad, pairs, dtypes.accumulator(grad.dtype), True), out.dtype)
