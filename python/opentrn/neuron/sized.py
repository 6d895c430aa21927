# SPDX-License-Identifier: Apache-2.0
"""Operators whose results' sizes depend on values: the device computes the largest result that there may be and how much
of it is real, the host reads that number, and the result is the front of what was computed. So new values are no new
programs."""

import torch
from torch import library as torch_library

aten = torch.ops.aten


def _front(x, taken):
    """Elements of the vector x that the mask takes."""
    if not x.numel():
        return x
    places = aten.nonzero_static.default(taken, size=taken.numel(), fill_value=0)[:, 0]
    return x.index_select(0, places)[: int(taken.sum())]


def _nonzero(x):
    if not x.dim() or not x.numel():
        count = int((x != 0).sum()) if x.numel() else 0
        return torch.zeros((count, x.dim()), dtype=torch.int64, device=x.device)
    found = aten.nonzero_static.default(x, size=x.numel(), fill_value=0)
    return found[: int((x != 0).sum())]


def _masked_select(x, mask):
    if mask.dtype != torch.bool:
        raise RuntimeError(f"masked_select: expected BoolTensor for mask, not {mask.dtype}")
    x, mask = torch.broadcast_tensors(x, mask)
    return _front(x.reshape(-1), mask.reshape(-1))


def _repeat_interleave(repeats, output_size=None):
    ends = repeats.cumsum(0)
    total, least = torch.stack([ends[-1], repeats.min()]).tolist() if ends.numel() and output_size is None else (output_size or 0, 0)
    if least < 0:
        raise RuntimeError("repeats can not be negative")
    places = torch.arange(total, device=repeats.device, dtype=ends.dtype)
    if not total:
        return places.to(repeats.dtype)
    return torch.searchsorted(ends, places, right=True).to(repeats.dtype)


def _bincount(x, weights=None, minlength=0):
    if x.dtype.is_floating_point or x.dtype.is_complex or x.dtype == torch.bool:
        raise NotImplementedError(f"bincount of {x.dtype}")
    least, most = torch.stack(x.aminmax()).tolist() if x.dim() == 1 and x.numel() else (0, -1)
    if (x.dim() != 1 and x.numel()) or least < 0:
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    size = max(most + 1, int(minlength))
    kind = torch.int64 if weights is None else weights.dtype if weights.dtype == torch.float32 else torch.float64
    ones = torch.ones_like(x, dtype=kind) if weights is None else weights.to(kind)
    return torch.zeros(size, dtype=kind, device=x.device).scatter_add_(0, x.to(torch.int64), ones)


# --- unique ---------------------------------------------------------------------------------------


def _runs(rows, order):
    """(first of each run of equal rows, for each element the number of its run, lengths of the runs)"""
    n = rows.shape[0]
    new = torch.ones(n, dtype=torch.bool, device=rows.device)
    if n > 1:
        new[1:] = (rows[1:] != rows[:-1]).reshape(n - 1, -1).any(1)
    number = new.to(torch.int64).cumsum(0) - 1
    first = _front(torch.arange(n, device=rows.device), new)
    inverse = number if order is None else torch.empty_like(number).scatter_(0, order, number)
    return first, inverse, torch.zeros_like(number).scatter_add_(0, number, torch.ones_like(number))[: len(first)]


def _unique_of_rows(rows, sort):
    order = None
    if sort and rows.shape[0]:
        order = torch.arange(rows.shape[0], device=rows.device)
        for column in reversed(rows.reshape(rows.shape[0], -1).unbind(1)):
            order = order[column[order].sort(stable=True).indices]
        rows = rows[order]
    first, inverse, counts = _runs(rows, order)
    return rows.index_select(0, first), inverse, counts


def _unique(x, sort, dim):
    if dim is None:
        values, inverse, counts = _unique_of_rows(x.reshape(-1), sort)
        return values, inverse.reshape(x.shape), counts
    values, inverse, counts = _unique_of_rows(x.movedim(dim, 0), sort)
    return values.movedim(0, dim), inverse, counts


def _wanted(found, inverse, counts):
    none = found[1].new_empty(0)
    return found[0], found[1] if inverse else none, found[2] if counts else none


def _unique2(x, sorted=True, return_inverse=False, return_counts=False):
    return _wanted(_unique(x, True, None), return_inverse, return_counts)


def _unique_dim(x, dim, sorted=True, return_inverse=False, return_counts=False):
    return _wanted(_unique(x, True, dim), True, True)


def _unique_consecutive(x, return_inverse=False, return_counts=False, dim=None):
    return _wanted(_unique(x, False, dim), return_inverse, return_counts)


_KERNELS = {
    "nonzero": _nonzero,
    "masked_select": _masked_select,
    "repeat_interleave.Tensor": _repeat_interleave,
    "bincount": _bincount,
    "_unique": lambda x, sorted=True, return_inverse=False: _unique2(x, True, return_inverse)[:2],
    "_unique2": _unique2,
    "unique_dim": _unique_dim,
    "unique_consecutive": _unique_consecutive,
}


def install():
    """Gives torch the kernels; they are there as long as what is returned."""
    library = torch_library.Library("aten", "IMPL")
    for name, kernel in _KERNELS.items():
        library.impl(name, torch._disable_dynamo(kernel), "PrivateUse1")
    return library
