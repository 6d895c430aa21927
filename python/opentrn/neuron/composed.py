# SPDX-License-Identifier: Apache-2.0
"""Operators of which torch knows no results' sizes without values (no meta kernel), so that nobody can trace them: a few
programs each."""

import torch
from torch import library as torch_library

aten = torch.ops.aten


# --- histograms -----------------------------------------------------------------------------------


def _ends(x, given, dim):
    """Outer edges of a dimension: given, or those of the data; never the same."""
    if given:
        low, high = float(given[2 * dim]), float(given[2 * dim + 1])
    elif x.shape[0]:
        low, high = float(x[:, dim].min()), float(x[:, dim].max())
    else:
        low, high = 0.0, 1.0
    return (low - 0.5, high + 0.5) if low == high else (low, high)


def _edges(x, bins, given):
    x = x.reshape(-1, x.shape[-1])
    return [torch.linspace(*_ends(x, given, d), n + 1, dtype=x.dtype, device=x.device) for d, n in enumerate(bins)]


def _counts(x, edges, weight, density):
    x = x.reshape(-1, x.shape[-1])
    inside = torch.ones(x.shape[0], dtype=torch.bool, device=x.device)
    flat = torch.zeros(x.shape[0], dtype=torch.int64, device=x.device)
    total = 1
    for d, edge in enumerate(edges):
        column, n = x[:, d].contiguous(), edge.numel() - 1
        inside = inside & (column >= edge[0]) & (column <= edge[-1])
        flat = flat * n + (torch.bucketize(column, edge, right=True) - 1).clamp(0, n - 1)
        total *= n
    each = inside.to(x.dtype) if weight is None else torch.where(inside, weight.reshape(-1).to(x.dtype), 0)
    found = torch.zeros(total, dtype=x.dtype, device=x.device).scatter_add_(0, flat, each)
    found = found.reshape([e.numel() - 1 for e in edges])
    if density:
        found = found / found.sum()
        for d, edge in enumerate(edges):
            found = found / edge.diff().reshape([-1 if i == d else 1 for i in range(len(edges))])
    return found


def _dd_edges(x, bins, *, range=None, weight=None, density=False):
    return _edges(x, bins, range)


def _dd_counted(x, bins, *, range=None, weight=None, density=False):
    return _counts(x, _edges(x, bins, range), weight, density)


def _dd_given(x, bins, *, weight=None, density=False):
    return _counts(x, bins, weight, density)


def _histogram(x, bins=100, *, range=None, weight=None, density=False):
    x = x.reshape(-1, 1)
    edges = _edges(x, [bins], range)
    return _counts(x, edges, weight, density), edges[0]


def _histogram_given(x, bins, *, weight=None, density=False):
    return _counts(x.reshape(-1, 1), [bins], weight, density), bins


# --- losses ---------------------------------------------------------------------------------------


def _multilabel_margin_backward(grad, x, target, reduction, is_target):
    """Every pair of a target and another class that is not a margin of one apart pulls on both."""
    from opentrn.torch.own_decompositions import label_margins  # with Dynamo, when it is first needed

    margins, place, _ = label_margins(x, target)
    pulls = (margins > 0).to(torch.promote_types(x.dtype, torch.float32)) / margins.shape[2]
    out = pulls.sum(1).scatter_add(1, place, -pulls.sum(2))
    out = out / out.shape[0] if reduction == 1 else out
    return (out * (grad.reshape(-1, 1) if grad.dim() else grad)).reshape(x.shape).to(x.dtype)


_KERNELS = {
    "histogram.bin_ct": _histogram,
    "histogram.bins_tensor": _histogram_given,
    "_histogramdd_bin_edges": _dd_edges,
    "_histogramdd_from_bin_cts": _dd_counted,
    "_histogramdd_from_bin_tensors": _dd_given,
    "multilabel_margin_loss_backward": _multilabel_margin_backward,
    "cholesky": lambda x, upper=False: torch.linalg.cholesky(x, upper=upper),
    # nn.TransformerEncoder asks whether to go on with nested tensors, which the device has not: with a mask, then.
    "_nested_tensor_from_mask_left_aligned": lambda x, mask: False,
}


def _sizes_of_geqrf(x):
    return torch.empty_like(x), x.new_empty(*x.shape[:-2], min(x.shape[-2:]))


def install():
    """Gives torch the kernels; they are there as long as what is returned."""
    library = torch_library.Library("aten", "IMPL")
    for name, kernel in _KERNELS.items():
        library.impl(name, torch._disable_dynamo(kernel), "PrivateUse1")
    library.impl("geqrf", _sizes_of_geqrf, "Meta")
    return library
