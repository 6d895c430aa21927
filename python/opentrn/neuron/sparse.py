# SPDX-License-Identifier: Apache-2.0
"""Sparse tensors on the device, as embeddings with sparse=True have for gradients: device.cpp gives torch their description
(indices and values, both tensors of the device), and this the operators that gradients and optimizers need, in those of dense
tensors."""

import torch
from torch import library as torch_library


def _make(indices, values, shape, coalesced):
    return torch.sparse_coo_tensor(indices, values, shape, is_coalesced=coalesced, check_invariants=False)


def _coalesce(x):
    indices, values = x._indices(), x._values()
    sizes = x.shape[: x.sparse_dim()]
    flat = torch.zeros(indices.shape[1], dtype=torch.int64, device=x.device)
    for d, size in enumerate(sizes):
        flat = flat * size + indices[d]
    found, inverse = torch.unique(flat, return_inverse=True)
    total = torch.zeros((found.shape[0], *values.shape[1:]), dtype=values.dtype, device=x.device).index_add_(0, inverse, values)
    rows: list[torch.Tensor] = []
    for size in reversed(sizes):
        rows.insert(0, found % size)
        found = found // size
    return _make(torch.stack(rows), total, x.shape, True)


def _add_(x, y, *, alpha=1):
    if x.is_sparse:
        return x.copy_(_add(x, y, alpha=alpha))
    return x.index_put_(tuple(y._indices()), (y._values() * alpha).to(x.dtype), accumulate=True)


def _add(x, y, *, alpha=1):
    if not x.is_sparse:
        return _add_(x.clone(), y, alpha=alpha)
    if not y.is_sparse:
        raise NotImplementedError("opentrn: a dense tensor added to a sparse one; add the sparse one to the dense one")
    indices = torch.cat([x._indices(), y._indices()], 1)
    return _make(indices, torch.cat([x._values(), y._values() * alpha]), x.shape, False)


def _mask(x, mask):
    return _make(mask._indices().clone(), x[tuple(mask._indices())], mask.shape, mask.is_coalesced())


def _scaled(x, factor):
    return _make(x._indices(), x._values() * factor, x.shape, x.is_coalesced())


_KERNELS = {
    "_coalesce": _coalesce,
    "add.Tensor": _add,
    "add_.Tensor": _add_,
    "sparse_mask": _mask,
    "mul.Tensor": lambda x, y: _scaled(x, y) if x.is_sparse else _scaled(y, x),
    "mul_.Tensor": lambda x, y: x.copy_(_scaled(x, y)),
    "div.Tensor": lambda x, y: _scaled(x, 1 / y),
    "neg": lambda x: _scaled(x, -1),
}


def install():
    """Gives torch the kernels; they are there as long as what is returned."""
    library = torch_library.Library("aten", "IMPL")
    for name, kernel in _KERNELS.items():
        library.impl(name, kernel, "SparsePrivateUse1")
    return library
