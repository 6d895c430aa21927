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


# --- distances between all pairs of rows ----------------------------------------------------------


def _pairs(x1, x2):
    return x1.unsqueeze(-2) - x2.unsqueeze(-3)


def _cdist(x1, x2, p, compute_mode):
    if 0 in x1.shape or 0 in x2.shape:
        return NotImplemented
    return torch.linalg.vector_norm(_pairs(x1, x2), p, dim=-1)


def _cdist_backward(grad, x1, x2, p, cdist):
    if 0 in x1.shape or 0 in x2.shape:
        return NotImplemented
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


def _to_places(grad, x, indices, n):
    """Gradients of a pool: added at the places its maxima came from."""
    shape = (*x.shape[: x.dim() - n], -1)
    flat = torch.zeros_like(x).reshape(shape)
    return flat.scatter_add(-1, indices.reshape(shape), grad.reshape(shape)).reshape(x.shape)


def _max_pool3d_backward(grad, x, kernel, stride, padding, dilation, ceil_mode, indices):
    return _to_places(grad, x, indices, 3)


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


OWN = {
    aten._trilinear.default: _trilinear,
    aten.dist.default: _dist,
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
    aten.adaptive_max_pool2d_backward.default: lambda g, x, i: _to_places(g, x, i, 2),
    aten.adaptive_max_pool3d_backward.default: lambda g, x, i: _to_places(g, x, i, 3),
}
