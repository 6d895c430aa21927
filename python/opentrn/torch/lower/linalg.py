# SPDX-License-Identifier: Apache-2.0
"""Decompositions, solvers and Fourier transforms.

Decompositions are JAX programs, those of opentrn.linalg among them: JAX traces one for the shapes
at hand, and its StableHLO becomes functions of our program. Results follow LAPACK's conventions, as
eager's do; signs and phases that are free may differ.
"""

import functools
import math

import torch

from opentrn.torch.builder import Value, ints
from opentrn.torch.lower.table import NotLowered, dim_of, lowers

# --- JAX programs as functions of ours ------------------------------------------------------------

_NUMPY = {
    torch.float32: "float32",
    torch.float64: "float64",
    torch.complex64: "complex64",
    torch.complex128: "complex128",
    torch.int32: "int32",
}


@functools.cache
def _traced(program, names, kinds, params):
    """StableHLO functions of a JAX program; names, kinds: of its tensors."""
    try:
        import jax

        from opentrn import _library, jax_plugin
    except ImportError:
        raise NotLowered("needs JAX, which is not installed") from None
    jax_plugin.initialize()

    def run(*tensors):
        return program(**dict(zip(names, tensors, strict=True)), **dict(params))

    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        given = [jax.ShapeDtypeStruct(shape, _NUMPY[dtype]) for shape, dtype in kinds]
        lowered = jax.jit(run, keep_unused=True).trace(*given).lower(
            lowering_platforms=(_library.option("platform"),)
        )
    head, body = lowered.as_text().split("\n", 1)
    if not head.startswith("module") or "custom_call" in body:
        raise NotLowered("this JAX has no plain program for it")
    return body.rstrip().removesuffix("}").replace("func.func public", "func.func private")


# What is left of a matrix without elements: its determinant, the logarithm of that, its sign.
_OF_NOTHING = {"aten._linalg_det.default": (1,), "aten._linalg_slogdet.default": (1, 0)}


def _of_nothing(b, out, name):
    outs = out if isinstance(out, (tuple, list)) else [out]
    known = _OF_NOTHING.get(name, ())
    values = []
    for i, o in enumerate(outs):
        if math.prod(o.shape) and o.dtype.is_floating_point and i >= len(known):
            raise NotLowered("linear algebra of nothing")
        values.append(b.constant(known[i] if i < len(known) else 0, o.dtype, tuple(o.shape)))
    return values if isinstance(out, (tuple, list)) else values[0]


def program(*names, **fixed):
    """Registers a JAX function for operators. Tensors become its arrays, everything else its
    parameters, by the names of the function's own signature."""

    def register(function):
        own = function.__code__.co_varnames[: function.__code__.co_argcount]

        @lowers(*names)
        def lower(b, out, *args, **kwargs):
            bound = dict(zip(own, args, strict=False)) | kwargs | fixed
            if "turned" in own:  # eager's determinants factor the transpose of a row-major matrix
                bound["turned"] = b.source.is_contiguous() and not out[0].dtype.is_complex
            tensors = {k: v for k, v in bound.items() if isinstance(v, Value)}
            if any(v.dtype not in _NUMPY for v in tensors.values()):
                raise NotLowered("linear algebra in this type")
            if not all(v.numel for v in tensors.values()):
                return _of_nothing(b, out, names[0])
            kinds = tuple((v.shape, v.dtype) for v in tensors.values())
            rest = {k: v for k, v in bound.items() if k in own and k not in tensors}
            text = _traced(function, tuple(tensors), kinds, tuple(rest.items()))
            outs = out if isinstance(out, (tuple, list)) else [out]
            values = b.call(text, list(tensors.values()), [(tuple(o.shape), o.dtype) for o in outs])
            return values if isinstance(out, (tuple, list)) else values[0]

        return function

    return register


def _jax():
    import jax.numpy as jnp
    from jax import lax

    from opentrn import linalg

    return jnp, lax, linalg


def _herm(x):
    jnp = _jax()[0]
    return jnp.conj(jnp.swapaxes(x, -1, -2))


def _triangle(a, b, left, lower, transpose=False, unit=False):
    """Solves with one triangle of a; batches are broadcast."""
    jnp, lax, _ = _jax()
    batch = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a = jnp.broadcast_to(a, batch + a.shape[-2:])
    b = jnp.broadcast_to(b, batch + b.shape[-2:])
    return lax.linalg.triangular_solve(
        a, b, left_side=left, lower=lower, transpose_a=transpose, unit_diagonal=unit
    )


# --- orthogonal decompositions --------------------------------------------------------------------


@program("aten._linalg_svd.default")
def _svd(A, full_matrices=False, compute_uv=True):
    jnp, _, linalg = _jax()
    out = linalg.svd(A, full_matrices=full_matrices, compute_uv=compute_uv, subset_by_index=None)
    if not compute_uv:
        return jnp.zeros(0, A.dtype), out[0], jnp.zeros(0, A.dtype)
    return out[1], out[0], out[2]


@program("aten._linalg_eigh.default")
def _eigh(A, UPLO="L", compute_v=True):
    jnp, _, linalg = _jax()
    v, w = linalg.eigh(A, lower=UPLO == "L", sort_eigenvalues=True, subset_by_index=None)
    return w, v if compute_v else jnp.zeros(0, A.dtype)


@program("aten.linalg_eig.default")
def _eig(A):
    return _jax()[2].eig(A, compute_left_eigenvectors=False, compute_right_eigenvectors=True)


@program("aten._linalg_eigvals.default", "aten.linalg_eigvals.default")
def _eigvals(A):
    return _jax()[2].eig(A, compute_left_eigenvectors=False, compute_right_eigenvectors=False)


@program("aten.linalg_qr.default")
def _qr(A, mode="reduced"):
    jnp, _, linalg = _jax()
    m, n = A.shape[-2:]
    k = min(m, n)
    packed, taus = linalg.geqrf(A)
    rows = m if mode == "complete" else k
    r = jnp.triu(packed[..., :rows, :])
    if mode == "r":
        return jnp.zeros(0, A.dtype), r
    wide = jnp.zeros((*A.shape[:-1], rows), A.dtype).at[..., :k].set(packed[..., :k])
    return linalg.householder_product(wide, taus), r


@program("aten.geqrf.default")
def _geqrf(A):
    return _jax()[2].geqrf(A)


@program("aten.linalg_householder_product.default")
def _householder_product(A, tau):
    return _jax()[2].householder_product(A, tau)


@program("aten.ormqr.default")
def _ormqr(A, tau, C, left=True, transpose=False):
    jnp, _, linalg = _jax()
    m, k = A.shape[-2], tau.shape[-1]
    wide = jnp.zeros((*A.shape[:-1], m), A.dtype).at[..., :k].set(A[..., :k])
    q = linalg.householder_product(wide, tau)
    q = _herm(q) if transpose else q
    return jnp.matmul(q, C) if left else jnp.matmul(C, q)


@program("aten.linalg_pinv.atol_rtol_tensor")
def _pinv(A, atol=None, rtol=None, hermitian=False):
    jnp, _, linalg = _jax()
    if hermitian:
        v, w = linalg.eigh(A, lower=True, sort_eigenvalues=True, subset_by_index=None)
        u, vh, size = v, _herm(v), jnp.abs(w)
    else:
        w, u, vh = linalg.svd(A, full_matrices=False, compute_uv=True, subset_by_index=None)
        size = w
    absolute = jnp.zeros((), w.dtype) if atol is None else atol
    if rtol is None:
        default = jnp.asarray(jnp.finfo(w.dtype).eps * max(A.shape[-2:]), w.dtype)
        rtol = default if atol is None else jnp.where(absolute > 0, 0, default)
    largest = jnp.max(size, axis=-1, initial=0)
    keep = size > jnp.maximum(absolute, rtol * largest)[..., None]
    inverse = jnp.where(keep, 1 / jnp.where(keep, w, 1), 0).astype(A.dtype)
    return jnp.matmul(_herm(vh) * inverse[..., None, :], _herm(u))


# --- Cholesky -------------------------------------------------------------------------------------


def _first_bad(bad):
    """1 + the first place along the last axis that is bad, or 0: LAPACK's info."""
    jnp = _jax()[0]
    return jnp.where(jnp.any(bad, -1), jnp.argmax(bad, -1) + 1, 0).astype(jnp.int32)


@program("aten.linalg_cholesky_ex.default")
def _cholesky_ex(A, upper=False):
    jnp, lax, _ = _jax()
    low = lax.linalg.cholesky(_herm(A) if upper else A, symmetrize_input=False)
    diagonal = jnp.diagonal(low, axis1=-2, axis2=-1)
    return _herm(low) if upper else low, _first_bad(~jnp.isfinite(diagonal))


@program("aten.cholesky_solve.default")
def _cholesky_solve(B, L, upper=False):
    low = _herm(L) if upper else L
    return _triangle(_herm(low), _triangle(low, B, True, True), True, False)


@program("aten.cholesky_inverse.default")
def _cholesky_inverse(L, upper=False):
    jnp = _jax()[0]
    unit = jnp.broadcast_to(jnp.eye(L.shape[-1], dtype=L.dtype), L.shape)
    return _cholesky_solve(unit, L, upper)


# --- LU -------------------------------------------------------------------------------------------


def _factor(a):
    """Packed factors, row exchanges counted from 1, order of rows, info."""
    jnp, lax, _ = _jax()
    packed, pivots, order = lax.linalg.lu(a)
    info = _first_bad(jnp.diagonal(packed, axis1=-2, axis2=-1) == 0)
    return packed, pivots + 1, order, info


def _solve_factored(packed, order, b, adjoint):
    """A X = B, or A^H X = B, by the factors of A."""
    jnp = _jax()[0]
    batch = jnp.broadcast_shapes(packed.shape[:-2], b.shape[:-2])
    b = jnp.broadcast_to(b, batch + b.shape[-2:])
    order = jnp.broadcast_to(order, batch + order.shape[-1:])[..., None]
    if adjoint:
        up, low = _herm(jnp.triu(packed)), _herm(packed)
        x = _triangle(low, _triangle(up, b, True, True), True, False, unit=True)
        return jnp.take_along_axis(x, jnp.argsort(order, axis=-2), axis=-2)
    b = jnp.take_along_axis(b, order, axis=-2)
    return _triangle(packed, _triangle(packed, b, True, True, unit=True), True, False)


def _solve_side(packed, order, b, left, adjoint):
    """X A = B is A^H X^H = B^H."""
    if left:
        return _solve_factored(packed, order, b, adjoint)
    return _herm(_solve_factored(packed, order, _herm(b), not adjoint))


@program("aten.linalg_lu_factor_ex.default")
def _lu_factor(A, pivot=True):
    if not pivot:
        raise NotLowered("without row exchanges")
    packed, pivots, _, info = _factor(A)
    return packed, pivots, info


def _unpack(packed, order):
    jnp = _jax()[0]
    m, n = packed.shape[-2:]
    k = min(m, n)
    rows = jnp.arange(m, dtype=order.dtype)
    exchange = (rows[:, None] == order[..., None, :]).astype(packed.dtype)
    low = jnp.tril(packed[..., :, :k], -1) + jnp.eye(m, k, dtype=packed.dtype)
    return exchange, low, jnp.triu(packed[..., :k, :])


@program("aten.linalg_lu.default")
def _lu(A, pivot=True):
    if not pivot:
        raise NotLowered("without row exchanges")
    packed, _, order, _ = _factor(A)
    return _unpack(packed, order)


def _order(pivots, rows):
    jnp, lax, _ = _jax()
    return lax.linalg.lu_pivots_to_permutation(pivots - 1, rows).astype(jnp.int32)


@program("aten.lu_unpack.default")
def _lu_unpack(LU_data, LU_pivots, unpack_data=True, unpack_pivots=True):
    jnp = _jax()[0]
    exchange, low, up = _unpack(LU_data, _order(LU_pivots, LU_data.shape[-2]))
    none = jnp.zeros(0, LU_data.dtype)
    return exchange if unpack_pivots else none, *((low, up) if unpack_data else (none, none))


@program("aten.linalg_lu_solve.default")
def _lu_solve(LU, pivots, B, left=True, adjoint=False):
    return _solve_side(LU, _order(pivots, LU.shape[-1]), B, left, adjoint)


@program("aten.linalg_inv_ex.default")
def _inverse(A):
    jnp = _jax()[0]
    packed, _, order, info = _factor(A)
    unit = jnp.broadcast_to(jnp.eye(A.shape[-1], dtype=A.dtype), A.shape)
    return _solve_factored(packed, order, unit, False), info


@program("aten._linalg_solve_ex.default")
def _solve(A, B, left=True):
    vector = B.ndim == 1 or (B.ndim == A.ndim - 1 and B.shape == A.shape[:-1])
    packed, pivots, order, info = _factor(A)
    x = _solve_side(packed, order, B[..., None] if vector else B, left, False)
    return x[..., 0] if vector else x, packed, pivots, info


def _parity(pivots):
    jnp = _jax()[0]
    places = jnp.arange(1, pivots.shape[-1] + 1)
    return jnp.where(jnp.sum(pivots != places, -1) % 2 == 1, -1, 1)


@program("aten._linalg_det.default")
def _det(A, turned=False):
    jnp = _jax()[0]
    packed, pivots, _, _ = _factor(_herm(A) if turned else A)
    product = jnp.prod(jnp.diagonal(packed, axis1=-2, axis2=-1), -1)
    return product * _parity(pivots).astype(A.dtype), packed, pivots


@program("aten._linalg_slogdet.default")
def _slogdet(A, turned=False):
    jnp = _jax()[0]
    packed, pivots, _, _ = _factor(_herm(A) if turned else A)
    diagonal = jnp.diagonal(packed, axis1=-2, axis2=-1)
    sign = jnp.prod(jnp.sign(diagonal), -1) * _parity(pivots).astype(A.dtype)
    return sign, jnp.sum(jnp.log(jnp.abs(diagonal)), -1), packed, pivots


# --- triangles, exponentials ----------------------------------------------------------------------


@program("aten.linalg_solve_triangular.default")
def _solve_triangular(A, B, upper, left=True, unitriangular=False):
    return _triangle(A, B, left, not upper, unit=unitriangular)


@program("aten.triangular_solve.default")
def _triangular_solve(B, A, upper=True, transpose=False, unitriangular=False):
    jnp = _jax()[0]
    x = _triangle(A, B, True, not upper, transpose=transpose, unit=unitriangular)
    return x, jnp.broadcast_to(A, x.shape[:-2] + A.shape[-2:])


@program("aten.linalg_matrix_exp.default")
def _matrix_exp(A):
    import jax.scipy.linalg

    return jax.scipy.linalg.expm(A, max_squarings=64)


# --- Fourier transforms ---------------------------------------------------------------------------


def _transform(b, x, kind, dims, lengths, dtype):
    """One-dimensional transforms of each of the dimensions in turn."""
    for dim, length in zip(dims, lengths, strict=True):
        order = [i for i in range(x.rank) if i != dim] + [dim]
        moved = b.transpose(x, order)
        size = length // 2 + 1 if kind == "RFFT" else length
        attributes = f"fft_length = {ints([length])}, fft_type = #stablehlo<fft_type {kind}>"
        moved = b.op("fft", [moved], ((*moved.shape[:-1], size), dtype), attributes)
        back = sorted(range(x.rank), key=order.__getitem__)
        x = b.transpose(moved, back)
    return x


_COMPLEX = {torch.float32: torch.complex64, torch.float64: torch.complex128}
_REAL = {c: r for r, c in _COMPLEX.items()}


def _check(x, allowed):
    if x.dtype not in allowed or 0 in x.shape:
        raise NotLowered("a Fourier transform in this type or of nothing")


def _scale(b, x, count, normalization, inverse):
    """normalization: 0 none, 1 by the root of the count, 2 by the count. The device's inverse
    transform divides by the count itself."""
    factor = (1.0, 1 / math.sqrt(count), 1 / count)[normalization] * (count if inverse else 1)
    return x if factor == 1 else b.mul(x, b.constant(factor, x.dtype))


def _size(shape, dims):
    return math.prod(shape[d] for d in dims)


@lowers("aten._fft_c2c.default")
def fft_c2c(b, out, x, dims, normalization, forward):
    _check(x, _REAL)
    dims = [dim_of(d, x.rank) for d in dims]
    kind = "FFT" if forward else "IFFT"
    y = _transform(b, x, kind, dims, [x.shape[d] for d in dims], x.dtype)
    return _scale(b, y, _size(x.shape, dims), normalization, not forward)


@lowers("aten._fft_r2c.default")
def fft_r2c(b, out, x, dims, normalization, onesided):
    _check(x, _COMPLEX)
    dims, kind = [dim_of(d, x.rank) for d in dims], _COMPLEX[x.dtype]
    count = _size(x.shape, dims)
    if onesided:
        y = _transform(b, x, "RFFT", dims[-1:], [x.shape[dims[-1]]], kind)
        rest = dims[:-1]
    else:
        y, rest = b.complex(x, b.constant(0, x.dtype, x.shape)), dims
    y = _transform(b, y, "FFT", rest, [x.shape[d] for d in rest], kind)
    return _scale(b, y, count, normalization, False)


@lowers("aten._fft_c2r.default")
def fft_c2r(b, out, x, dims, normalization, last_dim_size):
    _check(x, _REAL)
    dims, kind = [dim_of(d, x.rank) for d in dims], _REAL[x.dtype]
    rest, last = dims[:-1], dims[-1]
    y = _transform(b, x, "IFFT", rest, [x.shape[d] for d in rest], x.dtype)
    y = b.slice_dim(y, last, 0, min(y.shape[last], last_dim_size // 2 + 1))
    y = _transform(b, y, "IRFFT", [last], [last_dim_size], kind)
    return _scale(b, y, _size(y.shape, dims), normalization, True)
