# SPDX-License-Identifier: Apache-2.0
"""Sparse tensors on the device, as embeddings with sparse=True have for gradients: device.cpp gives torch their description
(indices and values, tensors of the device), and this the operators that gradients, optimizers and graph networks need, in those
of dense tensors."""

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


def _from_dense(x, sparse_dim):
    taken = (x != 0).flatten(sparse_dim).any(-1) if sparse_dim < x.dim() else x != 0
    indices = taken.nonzero().t().contiguous()
    return _make(indices, x[tuple(indices)], x.shape, True)


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
    x = x.to_dense() if x.is_sparse else x
    return _make(mask._indices().clone(), x[tuple(mask._indices())], mask.shape, mask.is_coalesced())


def _scaled(x, factor):
    return _make(x._indices(), x._values() * factor, x.shape, x.is_coalesced())


# --- products: lists of places (COO) or rows of them (CSR) ----------------------------------------


def _entries(x):
    """(row, column, value) of each element of a matrix that is there"""
    if x.is_sparse:
        return *x._indices(), x._values()
    if x.layout == torch.sparse_csc:
        columns, rows, values = _entries(x.t())
        return rows, columns, values
    if x.layout != torch.sparse_csr:
        raise NotImplementedError(f"opentrn: a product with a matrix of layout {x.layout}; .to_sparse() or .to_sparse_csr() first")
    rows = torch.arange(x.shape[0], device=x.device).repeat_interleave(x.crow_indices().diff())
    return rows, x.col_indices(), x.values()


def _with_values(x, values):
    return torch.sparse_csr_tensor(x.crow_indices(), x.col_indices(), values, x.shape, check_invariants=False)


def _mm(a, b):
    if a.layout == torch.strided:
        return _mm(b.t(), a.t()).t()
    if b.layout != torch.strided:
        found = _mm(a, b.to_dense())
        return found.to_sparse() if a.is_sparse else found.to_sparse_csr()
    rows, columns, values = _entries(a)
    taken = b.index_select(0, columns) * values.reshape(-1, *[1] * (b.dim() - 1))
    wide = torch.promote_types(taken.dtype, torch.float32) if taken.dtype.is_floating_point else taken.dtype
    return b.new_zeros((a.shape[0], *b.shape[1:]), dtype=wide).index_add_(0, rows, taken.to(wide)).to(taken.dtype)


def _addmm(x, a, b, *, beta=1, alpha=1):
    found = _mm(a, b) if alpha == 1 else _mm(a, b) * alpha
    return found if beta == 0 else found + (x if beta == 1 else x * beta)


def _sampled_addmm(x, a, b, *, beta=1, alpha=1):
    """x, and the product at the places where x has elements"""
    rows, columns, values = _entries(x)
    found = (a.index_select(0, rows) * b.t().index_select(0, columns)).sum(1)
    return _with_values(x, found * alpha + values * beta)


def _mm_reduced(a, b, reduce):
    """a @ b with the mean, the largest or the least of a row's products instead of their sum, and which product each of these was."""
    rows, columns, values = _entries(a)
    taken = b.index_select(0, columns) * values[:, None]
    at = rows[:, None].expand_as(taken)
    wide = torch.promote_types(taken.dtype, torch.float32)
    found = b.new_zeros((a.shape[0], b.shape[1]), dtype=wide).scatter_reduce(0, at, taken.to(wide), reduce, include_self=False).to(b.dtype)
    if reduce in ("sum", "mean") or not len(values):
        return found, columns.new_empty(0)
    number = torch.arange(len(values), device=a.device)[:, None]
    first = torch.where(taken == found.index_select(0, rows), number, len(values))
    return found, torch.full_like(found, len(values), dtype=torch.int64).scatter_reduce(0, at, first, "amin")


def _mm_reduced_backward(a, grad, b, reduce, chosen, wanted):
    rows, columns, values = _entries(a)
    each = grad.index_select(0, rows)  # of each product
    if chosen.numel():
        each = torch.where(chosen.index_select(0, rows) == torch.arange(len(values), device=a.device)[:, None], each, 0)
    elif reduce == "mean":
        each = each / a.crow_indices().diff().index_select(0, rows)[:, None]
    of_values = (each * b.index_select(0, columns)).sum(1)
    return _with_values(a, of_values) if wanted[0] else None, torch.zeros_like(b).index_add_(0, columns, each * values[:, None]) if wanted[1] else None


def _mask_rows(x, mask):
    rows, columns, _ = _entries(mask)
    x = x if x.layout == torch.strided else x.to_dense()
    return _with_values(mask, x[rows, columns])


def _scaled_rows(x, factor):
    return _with_values(x, x.values() * factor) if x.layout == torch.sparse_csr else _scaled_rows(factor, x)


def _into(kernel):
    """The form with out=."""

    def call(*args, out, **named):
        found = kernel(*args, **named)
        return out.resize_(found.shape).copy_(found)

    return call


def _in_place(kernel):
    return lambda x, *args, **named: x.copy_(kernel(x, *args, **named))


_PRODUCTS = {
    "mm": _mm,
    "mv": _mm,
    "addmm": _addmm,
    "addmv": _addmm,
    "addmm_": _in_place(_addmm),
    "addmv_": _in_place(_addmm),
    "mm.out": _into(_mm),
    "addmm.out": _into(_addmm),
    "addmv.out": _into(_addmm),
}
_ROWS = {  # of matrices in rows alone
    "sparse_mask": _mask_rows,
    "mul.Tensor": _scaled_rows,
    "sparse_sampled_addmm": _sampled_addmm,
    "_sparse_mm_reduce_impl": _mm_reduced,
    "_sparse_mm_reduce_impl_backward": _mm_reduced_backward,
}
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
    for name, kernel in (_KERNELS | _PRODUCTS | {"_sparse_sparse_matmul": _mm}).items():
        library.impl(name, torch._disable_dynamo(kernel), "SparsePrivateUse1")
    library.impl("_to_sparse.sparse_dim", torch._disable_dynamo(_from_dense), "PrivateUse1")
    for name, kernel in (_PRODUCTS | _ROWS).items():
        library.impl(name, torch._disable_dynamo(kernel), "SparseCsrPrivateUse1")
    return library
