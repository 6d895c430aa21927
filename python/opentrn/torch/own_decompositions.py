# SPDX-License-Identifier: Apache-2.0
"""Decompositions that torch has not: operators written with others that are lowered."""

from typing import Any

import torch

aten = torch.ops.aten


def _trilinear(x, y, z, expand1, expand2, expand3, sumdim, unroll_dim=1):
    """Products over three tensors, each with dimensions of size one put in, then a sum (nn.Bilinear)."""
    parts = []
    for tensor, places in ((x, expand1), (y, expand2), (z, expand3)):
        for place in sorted(places):
            tensor = tensor.unsqueeze(place)
        parts.append(tensor)
    kind = torch.promote_types(x.dtype, torch.float32)  # one rounding, at the end
    product = parts[0].to(kind) * parts[1].to(kind) * parts[2].to(kind)
    return (product.sum(sumdim) if sumdim else product).to(x.dtype)


def _dropout(x, p, train):
    """What is dropped is chosen to be zero, not multiplied by a flag: one operation, and narrow flags."""
    if not train or p == 0:
        return x, torch.ones_like(x, dtype=torch.bool)
    if not x.is_floating_point():
        raise RuntimeError("result type Float can't be cast to the desired output type Long")
    if p == 1:
        return torch.zeros_like(x), torch.zeros_like(x, dtype=torch.bool)
    kept = torch.rand_like(x) > p
    return torch.where(kept, x * (1.0 / (1.0 - p)), 0.0), kept


def _dropout_backward(gradient, kept, scale):
    return torch.where(kept, gradient * scale, 0.0)


def _embedding_renorm(weight, indices, most, p):
    """The rows that are taken get no longer than that; one that is taken twice is written twice, the same."""
    indices = indices.reshape(-1)
    rows = weight.index_select(0, indices)
    length = torch.linalg.vector_norm(rows, p, 1, keepdim=True)
    return weight.index_put([indices], torch.where(length > most, rows * (most / (length + 1e-7)), rows))


def _dist(x, y, p=2):
    return torch.linalg.vector_norm(x - y, float(p))


def _polar(length, angle):
    return torch.complex(length * angle.cos(), length * angle.sin())


def _angle(x):
    if x.is_complex():
        return torch.atan2(x.imag, x.real)
    if not x.is_floating_point():
        return torch.where(x < 0, torch.pi, 0.0)
    return torch.where(x.isnan(), x, torch.where(x < 0, torch.pi, 0.0).to(x.dtype))


def _nll_loss(x, target, weight, reduction, ignore_index):
    """With labels of 32 bits and a count of floats: torch's own counts in 64, each a pass by itself."""
    dim = min(x.dim() - 1, 1)
    if abs(ignore_index) < 2**31 and x.shape[dim] < 2**31:
        target = target.to(torch.int32)
    counts = target != ignore_index
    place = torch.where(counts, target, 0).unsqueeze(dim)
    if weight is not None:
        shape = [1] * x.dim()
        shape[dim] = weight.shape[0]
        weight = weight.reshape(shape).expand_as(x)
        x = x * weight
    loss = torch.where(counts, -torch.gather(x, dim, place).squeeze(dim), 0)
    if reduction == 0 and x.dim() > 1:
        return loss, x.new_zeros(())
    wide = torch.float32 if counts.numel() < 2**24 else torch.float64
    if weight is None:
        total = counts.to(wide).sum().to(x.dtype)
    else:
        total = torch.where(counts, torch.gather(weight, dim, place).squeeze(dim), 0).sum()
    if reduction == 0:
        return loss, total
    return (loss.sum() if reduction == 2 else loss.sum() / total), total


def _safe_softmax(x, dim, dtype=None):
    """Rows that are masked whole are zeros: their largest says so; torch's own looks at every score again."""
    kind = dtype or x.dtype
    wide = x.to(torch.promote_types(kind, torch.float32))
    most = wide.amax(dim, keepdim=True)
    none = most == -torch.inf
    up = torch.exp(wide - torch.where(none, 0.0, most))
    return (up / torch.where(none, 1.0, up.sum(dim, keepdim=True))).to(kind)


# --- distances between all pairs of rows ----------------------------------------------------------


def _pairs(x1, x2):
    return x1.unsqueeze(-2) - x2.unsqueeze(-3)


def _cdist(x1, x2, p, compute_mode):
    if 0 in x1.shape or 0 in x2.shape:
        return NotImplemented
    return torch.linalg.vector_norm(_pairs(x1, x2), p, dim=-1)


def _cdist_backward(grad, x1, x2, p, cdist):
    if 0 in x1.shape or 0 in x2.shape:
        return torch.zeros_like(x1)
    away, length = _pairs(x1, x2), cdist.unsqueeze(-1)
    if p == 0:
        slope = torch.zeros_like(away)
    elif p == 1:
        slope = away.sign()
    elif p == float("inf"):
        slope = away.sign() * (away.abs() == length)
    else:
        safe = torch.where(length == 0, 1, length)
        share = away.abs() / safe
        # A power below zero of nothing would be infinite: its sign, zero, decides.
        share = torch.where(away == 0, 0, torch.where(away == 0, 1, share).pow(p - 1))
        slope = torch.where(length == 0, 0, away.sign() * share)
    return (grad.unsqueeze(-1) * slope).sum(-2)


# --- pads and pools -------------------------------------------------------------------------------


def _replication_pad_backward(grad, x, padding):
    """Each border element gets the gradients of its copies, dimension by dimension."""
    count = len(padding) // 2
    for i in range(count):
        dim = x.dim() - 1 - i
        low, high, size = padding[2 * i], padding[2 * i + 1], x.shape[dim]
        places = torch.arange(-low, size + high, device=x.device).clamp(0, size - 1)
        shape = list(grad.shape)
        shape[dim] = size
        grad = torch.zeros(shape, dtype=grad.dtype).index_add(dim, places, grad)
    return grad


def to_places(grad, x, indices, n):
    """Gradients of a pool: added at the places its maxima came from."""
    shape = (*x.shape[: x.dim() - n], -1)
    flat = torch.zeros_like(x).reshape(shape)
    return flat.scatter_add(-1, indices.reshape(shape), grad.reshape(shape)).reshape(x.shape)


def _max_pool3d_backward(grad, x, kernel, stride, padding, dilation, ceil_mode, indices):
    return to_places(grad, x, indices, 3)


def _windows(size, wanted):
    """For each of the wanted outputs the elements it looks at, and which of them are real."""
    longest = max(-(-(i + 1) * size // wanted) - i * size // wanted for i in range(wanted))
    out = torch.arange(wanted).unsqueeze(1)
    begin = (out * size).div(wanted, rounding_mode="floor")
    end = (out * size + (size + wanted - 1)).div(wanted, rounding_mode="floor")
    places = begin + torch.arange(longest)
    return places.clamp(max=size - 1), places < end


def _adaptive_max_pool(n):
    def pool(x, wanted):
        if 0 in x.shape or 0 in wanted:
            return NotImplemented
        sizes, lead = x.shape[-n:], x.dim() - n
        y = x
        flat = torch.arange(sizes.numel()).reshape(sizes)
        real: Any = True
        for i, (size, out) in enumerate(zip(sizes, wanted, strict=True)):
            places, inside = _windows(size, out)
            y = y.index_select(lead + 2 * i, places.flatten())
            y = y.unflatten(lead + 2 * i, tuple(places.shape))
            flat = flat.index_select(2 * i, places.flatten()).unflatten(2 * i, tuple(places.shape))
            real = inside if real is True else real[..., None, None] & inside
        # outputs first, the elements of a window last
        order = [*range(0, 2 * n, 2), *range(1, 2 * n, 2)]
        y, flat, real = (
            t.permute(*range(k), *(k + o for o in order)).flatten(k + n)
            for t, k in ((y, lead), (flat, 0), (real, 0))
        )
        y = torch.where(real, y, float("-inf"))
        best = y.argmax(-1, keepdim=True)
        return y.gather(-1, best).squeeze(-1), flat.expand(y.shape).gather(-1, best).squeeze(-1)

    return pool


def _windows_from(sample, size, wanted, kernel):
    """[planes, wanted, kernel]: the elements that each output looks at; a sample for each plane moves all windows but the last."""
    last = torch.full_like(sample, size - kernel, dtype=torch.int64).unsqueeze(-1)
    begin = last
    if wanted > 1:
        alpha = torch.full_like(sample, size - kernel) / (wanted - 1)
        steps = torch.arange(wanted - 1, dtype=sample.dtype, device=sample.device) + sample.unsqueeze(-1)
        begin = (steps * alpha.unsqueeze(-1)).trunc() - (sample * alpha).trunc().unsqueeze(-1)
        begin = torch.cat([begin.to(torch.int64), last], -1)
    return begin.unsqueeze(-1) + torch.arange(kernel, device=sample.device)


def _fractional_max_pool(n):
    def pool(x, kernel, wanted, samples):
        if x.numel() == 0:
            return NotImplemented
        sizes, planes = x.shape[-n:], x.shape[: x.dim() - n]
        y, count = x.reshape(-1, *sizes), planes.numel()
        flat = torch.arange(sizes.numel(), device=x.device).reshape(1, *sizes).expand(y.shape)
        samples = samples.reshape(count, n).flip(1) if n == 2 else samples.reshape(count, n)  # of a plane, the width's comes first
        for i in range(n):
            places = _windows_from(samples[:, i], sizes[i], wanted[i], kernel[i]).reshape(count, *[1] * (2 * i), -1, *[1] * (n - 1 - i))
            shape = [p if d == 1 + 2 * i else s for d, (s, p) in enumerate(zip(y.shape, places.shape, strict=True))]
            y, flat = (t.gather(1 + 2 * i, places.expand(shape)).unflatten(1 + 2 * i, (wanted[i], kernel[i])) for t in (y, flat))
        order = [0, *range(1, 2 * n, 2), *range(2, 2 * n + 1, 2)]  # outputs first, the elements of a window last
        y, flat = (t.permute(order).flatten(n + 1) for t in (y, flat))
        best = y.argmax(-1, keepdim=True)
        return tuple(t.gather(-1, best).reshape(*planes, *wanted) for t in (y, flat))

    return pool


# --- writing at places that tensors name ----------------------------------------------------------


def _wide(x):
    return torch.promote_types(x.dtype, torch.float32) if x.is_floating_point() else x.dtype


def _scatter_mean(x, dim, index, source, reduce, *, include_self=True):
    """Sum and number of what arrives at each place; where nothing does, the number is one."""
    if reduce != "mean":
        return NotImplemented
    join = {"reduce": "sum", "include_self": include_self}
    total = x.to(_wide(x)).scatter_reduce(dim, index, source.to(_wide(x)), **join)
    count = torch.ones_like(total).scatter_reduce(dim, index, torch.ones_like(source, dtype=total.dtype), **join)
    mean = total / count if x.is_floating_point() else total.div(count, rounding_mode="floor")
    return mean.to(x.dtype)


def _index_reduce(x, dim, index, source, reduce, *, include_self=True):
    if x.dim() == 0:
        return _index_reduce(x[None], 0, index, source.reshape(1), reduce, include_self=include_self).squeeze(0)
    shape = [1] * x.dim()
    shape[dim] = index.numel()
    index = index.to(torch.int64).reshape(shape).expand(source.shape)
    return x.scatter_reduce(dim, index, source, reduce, include_self=include_self)


def _put(x, index, source, accumulate=False):
    flat = x.reshape(-1).index_put([index.reshape(-1)], source.reshape(-1), accumulate)
    return flat.reshape(x.shape)


def _index_put(x, indices, values, accumulate=False):
    """A mask as the only index takes the values one after the other."""
    masks = [(i, t) for i, t in enumerate(indices) if t is not None]
    if len(masks) != 1 or masks[0][1].dtype not in (torch.bool, torch.uint8):
        return NotImplemented
    at, mask = masks[0][0], masks[0][1].bool()
    rest = x.shape[at + mask.dim() :]
    mask = mask.reshape(*mask.shape, *[1] * len(rest))
    if values.dim() <= len(rest) or (values.dim() == len(rest) + 1 and values.shape[0] == 1 and not at):
        values = values.reshape(values.shape[-len(rest) :] if rest else ())  # the same for all places
        return torch.where(mask, x + values if accumulate else values.to(x.dtype), x)
    if at or values.shape[1:] != rest:  # the order of the values is not the tensor's
        return NotImplemented
    new = torch.zeros_like(x).masked_scatter(mask.expand(x.shape), values.to(x.dtype).contiguous())
    return x + new if accumulate else torch.where(mask, new, x)


def _index_put_unsafe(x, indices, values, accumulate=False, unsafe=False):
    return aten.index_put.default(x, indices, values, accumulate)


def _nonzero_static(x, *, size, fill_value=-1):
    """Coordinates of the elements that are not zero, moved to the front."""
    if x.dim() == 0 or size == 0 or x.numel() == 0:
        return torch.full((size, x.dim()), fill_value, dtype=torch.int64, device=x.device)
    taken = (x != 0).reshape(-1)
    place = torch.where(taken, taken.to(torch.int64).cumsum(0) - 1, size).clamp(max=size)
    flat = torch.full((size + 1,), -1, dtype=torch.int64, device=x.device)
    flat = flat.scatter(0, place, torch.arange(x.numel(), device=x.device))[:size]
    columns, rest = [], flat
    for n in reversed(x.shape):
        columns.append(torch.where(flat < 0, fill_value, rest % n))
        rest = rest.div(n, rounding_mode="floor")
    return torch.stack(columns[::-1], 1)


# --- sampling -------------------------------------------------------------------------------------


def _unnormalized(x, size, align):
    return (x + 1) / 2 * (size - 1) if align else ((x + 1) * size - 1) / 2


def _reflected(x, low, high):
    """Into the range by turning round at its ends; both are halves of whole numbers."""
    if low == high:
        return torch.zeros_like(x)
    span, low = (high - low) / 2, low / 2
    x = (x - low).abs()
    extra, turns = x.remainder(span), x.div(span, rounding_mode="floor")
    return torch.where(turns % 2 == 0, extra + low, span - extra + low)


def _at(x, size, padding, align):
    """Places in pixels, moved inside where the padding says so: 0 zeros, 1 border, 2 reflection."""
    x = _unnormalized(x, size, align)
    if padding == 2:
        x = _reflected(x, 0, 2 * (size - 1)) if align else _reflected(x, -1, 2 * size - 1)
    return x.clamp(0, size - 1) if padding else x


def _grid_sampler_3d(x, grid, mode, padding, align):
    """mode 0 joins the eight neighbours, 1 takes the nearest."""
    n, channels, *sizes = x.shape
    if 0 in x.shape or 0 in grid.shape:
        return x.new_zeros(n, channels, *grid.shape[1:4])
    flat = x.reshape(n, channels, -1)
    places = [_at(grid[..., 2 - i], size, padding, align) for i, size in enumerate(sizes)]
    low = [p.round() if mode == 1 else p.floor() for p in places]
    total: Any = 0
    for corner in range(1 if mode == 1 else 8):
        weight: Any = 1
        place: Any = 0
        for i, size in enumerate(sizes):
            at = low[i] + (corner >> i & 1)
            weight = weight * ((at >= 0) & (at < size))
            weight = weight if mode == 1 else weight * (1 - (places[i] - at).abs())
            place = place * size + at.clamp(0, size - 1).to(torch.int64)
        place = place.reshape(n, 1, -1).expand(n, channels, -1)
        total = total + flat.gather(2, place).reshape(n, channels, *grid.shape[1:4]) * weight.unsqueeze(1)
    return total.to(x.dtype)


# --- counting -------------------------------------------------------------------------------------


def _histc(x, bins=100, low=0, high=0):
    if bins <= 0:
        raise RuntimeError(f"torch.histc: bins must be above 0, not {bins}")
    x = x.reshape(-1)
    if x.numel() == 0:
        return torch.zeros(bins, dtype=x.dtype, device=x.device)
    if low == high:
        low, high = x.amin(), x.amax()
        same = low == high
        low, high = low - same.to(x.dtype), high + same.to(x.dtype)
    edges = low + (high - low) * torch.arange(bins + 1, dtype=_wide(x), device=x.device) / bins
    edges = torch.where(torch.arange(bins + 1, device=x.device) == bins, high, edges)  # to the bit
    wide = x.to(edges.dtype)
    place = (torch.bucketize(wide, edges, right=True) - 1).clamp(0, bins - 1)
    inside = (wide >= low) & (wide <= high)
    return torch.zeros(bins, dtype=_wide(x), device=x.device).scatter_add(0, place, inside.to(_wide(x))).to(x.dtype)


# --- segments of a dimension ----------------------------------------------------------------------


def _segments(lengths, offsets, n):
    """For each of n elements its segment; those behind the last belong to one more, which is thrown away."""
    ends = lengths.cumsum(-1) if offsets is None else offsets[..., 1:]
    begin = torch.zeros_like(ends[..., :1]) if offsets is None else offsets[..., :1]
    place = torch.arange(n, device=ends.device).expand(*ends.shape[:-1], n).contiguous()
    found = torch.searchsorted(ends.contiguous(), place, right=True)
    return torch.where(place < begin, ends.shape[-1], found), ends.shape[-1]


_START = {"sum": 0.0, "mean": 0.0, "max": float("-inf"), "min": float("inf"), "prod": 1.0}


def _spread(index, x, axis):
    return index.reshape(*index.shape, *[1] * (x.dim() - axis - 1)).expand(*index.shape, *x.shape[axis + 1 :])


def _segment_reduce(x, reduce, *, lengths=None, indices=None, offsets=None, axis=0, unsafe=False, initial=None):
    segment, count = _segments(lengths, offsets, x.shape[axis])
    index = _spread(segment, x, axis)
    shape = list(x.shape)
    shape[axis] = count + 1
    start = _START[reduce] if initial is None else initial
    kind = {"max": "amax", "min": "amin", "mean": "sum"}.get(reduce, reduce)
    y = torch.full(shape, start, dtype=_wide(x), device=x.device).scatter_reduce(axis, index, x.to(_wide(x)), kind)
    y = y.narrow(axis, 0, count)
    if reduce == "mean":
        sizes = _spread(lengths if offsets is None else offsets.diff(dim=-1), y, axis).to(y.dtype)
        empty = float("nan") if initial is None else start
        y = torch.where(sizes == 0, empty, y / torch.where(sizes == 0, 1, sizes))
    return y.to(x.dtype)


def _segment_reduce_backward(
    grad, output, data, reduce, *, lengths=None, offsets=None, axis=0, initial=None
):  # fmt: skip
    segment, count = _segments(lengths, offsets, data.shape[axis])
    index = _spread(segment.clamp(max=count - 1), data, axis)
    inside = _spread(segment < count, data, axis)
    mine, best = grad.gather(axis, index), output.gather(axis, index)
    sizes = lengths if offsets is None else offsets.diff(dim=-1)
    if reduce == "mean":
        mine = mine / _spread(sizes, output, axis).gather(axis, index).to(mine.dtype)
    elif reduce in ("max", "min"):
        equal = (data == best) | (data.isnan() & best.isnan())
        zeros = torch.zeros(output.shape, dtype=mine.dtype, device=mine.device)
        ties = zeros.scatter_add(axis, index, (equal & inside).to(mine.dtype)).gather(axis, index)
        mine = torch.where(equal, mine / ties.clamp(min=1), 0)
    elif reduce == "prod":
        mine = mine * best / data
    return torch.where(inside, mine, 0).to(data.dtype)


# --- products of groups ---------------------------------------------------------------------------


def _in_group(ends, n):
    """[groups, n]: is element n of the group that ends there?"""
    place = torch.arange(n, device=ends.device, dtype=ends.dtype)
    begin = torch.cat([torch.zeros_like(ends[:1]), ends[:-1]])
    return (place >= begin[:, None]) & (place < ends[:, None])


def grouped_mm(x, y, offs=None, bias=None, out_dtype=None):
    """Each group's rows times its own matrix: rows of other groups are zeros, and one product runs over all groups."""
    if offs is None:
        out = torch.matmul(x, y)
    elif x.dim() == 2 and y.dim() == 2:  # the groups cut what is summed over
        mine = _in_group(offs, x.shape[1])
        out = torch.matmul(torch.where(mine[:, None, :], x, 0), y)
    elif x.dim() == 2:  # rows
        mine = _in_group(offs, x.shape[0]).T[:, :, None]
        wide = torch.where(mine, x[:, None, :], 0).reshape(x.shape[0], -1)
        out = torch.matmul(wide, y.reshape(-1, y.shape[2]))
    else:  # columns
        mine = _in_group(offs, y.shape[1])[:, None, :]
        wide = torch.where(mine, y[None], 0).reshape(-1, y.shape[1])
        out = torch.matmul(x.transpose(0, 1).reshape(x.shape[1], -1), wide)
    return (out if bias is None else out + bias).to(out_dtype or x.dtype)


class _Narrowed(torch.autograd.Function):
    """x, whose gradient is rounded to a type."""

    @staticmethod
    def forward(ctx, x, dtype):
        ctx.dtype = dtype
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return grad.to(ctx.dtype).to(grad.dtype), None


def attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    """Of bf16 and fp16 as kernels of attention have it: products are narrow, scores and their softmax fp32. torch's own, written with products, has these fp32 too,
    which takes the tensor engine four times as long."""
    kind = query.device.type
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else query.dtype
    if dtype not in (torch.bfloat16, torch.float16) or query.is_nested:
        return torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
    with torch.autocast(kind, enabled=False):
        query, key, value = (t.to(dtype) for t in (query, key, value))
        if enable_gqa:
            key, value = (t.repeat_interleave(query.shape[-3] // t.shape[-3], -3) for t in (key, value))
        scores = _Narrowed.apply(query.float() @ key.float().mT, dtype) * (query.shape[-1] ** -0.5 if scale is None else scale)
        if is_causal:
            attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=query.device).tril()
        if attn_mask is not None:
            scores = torch.where(attn_mask, scores, -torch.inf) if attn_mask.dtype == torch.bool else scores + attn_mask
        weights = torch.softmax(scores, -1) if attn_mask is None or is_causal else aten._safe_softmax(scores, -1)
        return torch.dropout(weights.to(dtype), dropout_p, True) @ value


def _bucketize(x, edges, **how):
    """Torch's own would ask a tensor without dimensions for its value."""
    return torch._decomp.decomposition_table[aten.bucketize.Tensor](x.reshape(-1), edges, **how).reshape(x.shape)


# --- more gradients, and what is short --------------------------------------------------------------


def _weight_norm_backward(grad, v, g, norms, dim):
    rest = [i for i in range(v.dim()) if i != dim % v.dim()]
    along = (grad * v).sum(rest, keepdim=True)
    shape = along.shape
    g, norms = g.reshape(shape).to(grad.dtype), norms.reshape(shape).to(grad.dtype)
    return g / norms * (grad - v * along / (norms * norms)), (along / norms).reshape(shape)


def _shrink_backward(grad, x, width):
    return torch.where((x >= -width) & (x <= width), 0, grad)


def _pdist(x, p=2.0):
    i, j = torch.triu_indices(x.shape[0], x.shape[0], 1, device=x.device)
    return torch.linalg.vector_norm(x.index_select(0, i) - x.index_select(0, j), p, dim=-1)


def _pdist_backward(grad, x, p, distances):
    if x.shape[0] < 2:
        return torch.zeros_like(x)
    i, j = torch.triu_indices(x.shape[0], x.shape[0], 1, device=x.device)
    square = torch.zeros(x.shape[0], x.shape[0], dtype=x.dtype, device=x.device)
    whole = square.index_put([i, j], grad)
    length = square.index_put([i, j], distances)
    whole, length = whole + whole.T, length + length.T
    return _cdist_backward(whole, x, x, p, length)


def _cholesky_solve(b, factor, upper):
    lower = factor.mH if upper else factor
    y = torch.linalg.solve_triangular(lower, b, upper=False)
    return torch.linalg.solve_triangular(lower.mH, y, upper=True)


def _frexp(x):
    """Mantissa in [0.5, 1) and exponent, by logarithm and then exactly."""
    if x.dtype == torch.float64:
        return NotImplemented
    wide = x.to(torch.float32)
    plain = wide.isfinite() & (wide != 0)
    tiny = plain & (wide.abs() < 2.0**-100)
    wide = torch.where(tiny, wide * 2.0**100, wide)
    bits = wide.view(torch.int32)
    exponent = (torch.bitwise_right_shift(bits, 23) & 255) - 126
    mantissa = ((bits & -2139095041) | (126 << 23)).view(torch.float32)  # all bits but those of the exponent
    exponent = torch.where(plain, exponent - torch.where(tiny, 100, 0), 0).to(torch.int32)
    return torch.where(plain, mantissa, x.to(torch.float32)).to(x.dtype), exponent


def _nanmedian_dim(x, dim, keepdim=False):
    if not x.is_floating_point() or x.dim() == 0:
        return tuple(x.median(dim, keepdim))
    values, places = torch.sort(x, stable=True, dim=dim)  # NaN last
    count = (~x.isnan()).sum(dim, keepdim=True)
    middle = ((count - 1).clamp(min=0)).div(2, rounding_mode="floor")
    value, place = values.gather(dim, middle), places.gather(dim, middle)
    return (value, place) if keepdim else (value.squeeze(dim), place.squeeze(dim))


def _nanmedian(x):
    if x.numel() == 0:
        return torch.full((), float("nan"), dtype=x.dtype, device=x.device)
    return _nanmedian_dim(x.reshape(-1), 0)[0]


def _searchsorted(rows, values, *, out_int32=False, right=False, side=None, sorter=None):
    if sorter is None:
        return NotImplemented
    return torch.searchsorted(rows.gather(-1, sorter), values, out_int32=out_int32, right=right, side=side)


def _searchsorted_number(rows, value, *, out_int32=False, right=False, side=None, sorter=None):
    value = torch.full((), value, dtype=rows.dtype, device=rows.device)
    return torch.searchsorted(rows, value, out_int32=out_int32, right=right, side=side, sorter=sorter)


def _mode(x, dim=-1, keepdim=False):
    """The smallest of the most frequent values, and its last place."""
    if x.dim() == 0 or x.numel() == 0:
        return x.clone(), torch.zeros(x.shape, dtype=torch.int64, device=x.device)
    values, places = x.sort(dim=dim, stable=True)
    n = x.shape[dim]
    new = values != values.roll(1, dim)
    run = new.to(torch.int64).narrow(dim, 1, n - 1).cumsum(dim)
    run = torch.cat([torch.zeros_like(places.narrow(dim, 0, 1)), run], dim)
    count = torch.zeros_like(run).scatter_add(dim, run, torch.ones_like(run))
    best = count.argmax(dim, keepdim=True)
    last = (torch.where(run <= best, 1, 0).sum(dim, keepdim=True) - 1).clamp(min=0)
    value, place = values.gather(dim, last), places.gather(dim, last)
    return (value, place) if keepdim else (value.squeeze(dim), place.squeeze(dim))


def _matrix_exp(x):
    """Types that JAX has no program for, in float32."""
    return aten.linalg_matrix_exp.default(x.float()).to(x.dtype) if x.dtype in _NARROW else NotImplemented


_NARROW = (torch.float16, torch.bfloat16)


# --- antialiased resampling: a product with a matrix for each dimension -------------------------------


def _near(x):
    return (1 - x.abs()).clamp(min=0)


def _cubic(x):
    x, a = x.abs(), -0.5
    inner = ((a + 2) * x - (a + 3)) * x * x + 1
    outer = ((x - 5) * x + 8) * x * a - 4 * a
    return torch.where(x < 1, inner, torch.where(x < 2, outer, 0))


def _resampling(size, wanted, align, scale, reach, weight, like):
    """[wanted, size]: what each output takes of each input."""
    if align:
        step = (size - 1) / (wanted - 1) if wanted > 1 else 0.0
    else:
        step = 1 / scale if scale is not None and scale > 0 else size / wanted
    wide = max(step, 1.0)
    center = step * (torch.arange(wanted, dtype=like.dtype, device=like.device) + 0.5)[:, None]
    place = torch.arange(size, dtype=like.dtype, device=like.device)
    low = (center - reach * wide + 0.5).trunc().clamp(min=0)
    high = (center + reach * wide + 0.5).trunc()
    share = torch.where((place >= low) & (place < high), weight((place - center + 0.5) / wide), 0)
    return share / share.sum(1, keepdim=True)


def _antialiased(reach, weight, backward=False):
    def call(x, output_size, *rest):
        input_size, rest = (rest[0], rest[1:]) if backward else (x.shape, rest)
        align, scale_h, scale_w = (*rest, None, None)[:3]  # left out where they are none
        wide = x.to(_wide(x))
        rows = _resampling(input_size[2], output_size[0], align, scale_h, reach, weight, wide)
        columns = _resampling(input_size[3], output_size[1], align, scale_w, reach, weight, wide)
        if backward:
            rows, columns = rows.T, columns.T
        return torch.matmul(rows, torch.matmul(wide, columns.T)).to(x.dtype)

    return call


def _ends_of_rows(rows, size, *, out_int32=False):
    """Of sorted places of a sparse matrix: how many are in the rows before each (COO to CSR)."""
    return torch.searchsorted(rows, torch.arange(size + 1, device=rows.device, dtype=rows.dtype), out_int32=out_int32)


def _places_of_rows(ends, columns, *, out_int32=False, transpose=False):
    """The rows (or, transposed, columns) of the places, and the others: CSR to COO."""
    if ends.dim() > 1:
        raise NotImplementedError("matrices in a batch")
    kind = torch.int32 if out_int32 else torch.int64
    count = torch.arange(columns.shape[0], device=ends.device, dtype=ends.dtype)
    found = [torch.searchsorted(ends, count, right=True) - 1, columns]
    return torch.stack([t.to(kind) for t in (reversed(found) if transpose else found)])


def label_margins(x, target):
    """For each row, target and class how far the class comes within one of the target (0 where there is no such pair), the targets'
    places, and which classes are targets. Targets end at the first that is -1, what stands behind is nothing."""
    rows, labels = torch.atleast_2d(x), torch.atleast_2d(target)
    real = (labels >= 0).to(torch.int64).cumprod(1).bool()
    place = torch.where(real, labels, 0)
    among = (torch.where(real, labels, -1)[:, :, None] == torch.arange(rows.shape[1], device=x.device)).any(1)
    margins = (1 - rows.gather(1, place)[:, :, None] + rows[:, None, :]).clamp(min=0)
    return torch.where(real[:, :, None] & ~among[:, None, :], margins, 0), place, among


def _multilabel_margin(x, target, reduction):
    """torch's own takes what stands behind the last target for the first class."""
    margins, _, among = label_margins(x, target)
    each = margins.sum((1, 2)) / margins.shape[2]
    loss = each.mean() if reduction == 1 else each.sum() if reduction == 2 else each.reshape(x.shape[:-1])
    return loss, among.to(x.dtype).reshape(target.shape)


OWN = {
    aten.multilabel_margin_loss_forward.default: _multilabel_margin,
    aten._convert_indices_from_coo_to_csr.default: _ends_of_rows,
    aten._convert_indices_from_csr_to_coo.default: _places_of_rows,
    aten.mode.default: _mode,
    aten.linalg_matrix_exp.default: _matrix_exp,
    aten._upsample_bilinear2d_aa.default: _antialiased(1, _near),
    aten._upsample_bilinear2d_aa_backward.default: _antialiased(1, _near, backward=True),
    aten._upsample_bicubic2d_aa.default: _antialiased(2, _cubic),
    aten._upsample_bicubic2d_aa_backward.default: _antialiased(2, _cubic, backward=True),
    aten.nanmedian.dim: _nanmedian_dim,
    aten.nanmedian.default: _nanmedian,
    aten.searchsorted.Tensor: _searchsorted,
    aten.searchsorted.Scalar: _searchsorted_number,
    aten.scatter_reduce.two: _scatter_mean,
    aten.index_reduce.default: _index_reduce,
    aten.put.default: _put,
    aten.index_put.default: _index_put,
    aten._index_put_impl.default: _index_put_unsafe,
    aten.nonzero_static.default: _nonzero_static,
    aten.grid_sampler_3d.default: _grid_sampler_3d,
    aten.histc.default: _histc,
    aten.segment_reduce.default: _segment_reduce,
    aten._segment_reduce_backward.default: _segment_reduce_backward,
    aten._grouped_mm.default: grouped_mm,
    aten.bucketize.Tensor: _bucketize,
    aten._weight_norm_interface_backward.default: _weight_norm_backward,
    aten.hardshrink_backward.default: _shrink_backward,
    aten.softshrink_backward.default: _shrink_backward,
    aten._pdist_forward.default: _pdist,
    aten._pdist_backward.default: _pdist_backward,
    aten._cholesky_solve_helper.default: _cholesky_solve,
    aten.frexp.Tensor: _frexp,
    aten._trilinear.default: _trilinear,
    aten.native_dropout.default: _dropout,
    aten.native_dropout_backward.default: _dropout_backward,
    aten.dist.default: _dist,
    aten.embedding_renorm.default: _embedding_renorm,
    aten._safe_softmax.default: _safe_softmax,
    aten.nll_loss_forward.default: _nll_loss,
    aten.nll_loss2d_forward.default: _nll_loss,
    aten.polar.default: _polar,
    aten.angle.default: _angle,
    aten._cdist_forward.default: _cdist,
    aten._cdist_backward.default: _cdist_backward,
    aten.replication_pad1d_backward.default: _replication_pad_backward,
    aten.replication_pad2d_backward.default: _replication_pad_backward,
    aten.replication_pad3d_backward.default: _replication_pad_backward,
    aten.max_pool3d_with_indices_backward.default: _max_pool3d_backward,
    aten.adaptive_max_pool2d.default: _adaptive_max_pool(2),
    aten.adaptive_max_pool3d.default: _adaptive_max_pool(3),
    aten.fractional_max_pool2d.default: _fractional_max_pool(2),
    aten.fractional_max_pool3d.default: _fractional_max_pool(3),
    aten.adaptive_max_pool2d_backward.default: lambda g, x, i: to_places(g, x, i, 2),
    aten.adaptive_max_pool3d_backward.default: lambda g, x, i: to_places(g, x, i, 3),
}
