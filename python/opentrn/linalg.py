# SPDX-License-Identifier: Apache-2.0
"""Matrix decompositions for the device, written with JAX itself.

JAX has no lowering of these primitives for a platform it does not know: it calls LAPACK on the CPU and
vendor libraries on GPUs, or emits custom calls only TPUs understand. Here each is a small program of
ordinary operations. Results follow LAPACK's conventions, so that what JAX builds on top of them stays right.

    geqrf, geqp3, householder_product   Householder reflections, one column at a time
    hessenberg, tridiagonal             the same from both sides
    eigh                                cyclic two-sided Jacobi
    svd                                 one-sided Jacobi (Hestenes), then a QR for an orthonormal U
    tridiagonal_solve                   elimination with row exchanges
    schur, eig                          QR iteration on the Hessenberg form: single shifts, or Francis' double
                                        ones for the real Schur form

The Jacobi methods rotate half of the columns against the other half at once, then move every column one
place on (Brent and Luk, 1985): after n-1 rounds each pair has met once and all are back where they were.
Sources: Golub and Van Loan, Matrix Computations, chapters 5, 7 and 8.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

SWEEPS_MAX = 30  # Jacobi converges quadratically; 6 to 10 sweeps are usual
SHIFTS_PER_EIGENVALUE = 40  # QR iteration; 2 to 3 are usual


def _real(x):
    return jnp.real(x) if jnp.iscomplexobj(x) else x


def _conj(x):
    return jnp.conj(x) if jnp.iscomplexobj(x) else x


def _herm(x):
    return _conj(x).T


def _square(x):
    return x.real**2 + x.imag**2 if jnp.iscomplexobj(x) else x * x


def _eps(x):
    return jnp.finfo(x.dtype).eps


def _matmul(a, b):
    return jnp.matmul(a, b, precision=lax.Precision.HIGHEST)


def _batched(core):
    """A function of one matrix (and vectors) as one of batches of them."""

    def run(first, *rest, **params):
        f = functools.partial(core, **params)
        for _ in range(first.ndim - 2):
            f = jax.vmap(f)
        return f(first, *rest)

    return run


# --- Householder ---------------------------------------------------------------------------------


def _reflector(column, at):
    """v, tau and beta with (I - tau v v^H)^H column = beta e_at below and at `at`; v is 1 at `at`."""
    rows = jnp.arange(column.shape[0])
    below = jnp.where(rows > at, column, 0)
    scale = jnp.max(jnp.abs(column * (rows >= at)))
    scale = jnp.where((scale > 0) & jnp.isfinite(scale), scale, 1)
    alpha = column[at]
    rest = jnp.sum(_square(below / scale))
    length = jnp.sqrt(_square(alpha / scale) + rest) * scale
    flat = rest == 0
    if jnp.iscomplexobj(column):
        flat &= alpha.imag == 0
    beta = jnp.where(flat, _real(alpha), jnp.where(_real(alpha) > 0, -length, length))
    safe = jnp.where(flat, 1, beta)
    tau = jnp.where(flat, 0, (safe - alpha) / safe)
    v = jnp.where(flat, 0, below / jnp.where(flat, 1, alpha - beta)) + (rows == at)
    return v.astype(column.dtype), tau.astype(column.dtype), beta.astype(column.dtype)


def _apply_left(v, tau, a):
    """(I - tau v v^H) a"""
    return a - tau * jnp.outer(v, _matmul(_conj(v), a))


def _apply_right(a, v, tau):
    """a (I - tau v v^H)"""
    return a - tau * jnp.outer(_matmul(a, v), _conj(v))


def _store(a, v, beta, column, at):
    """The column as LAPACK leaves it: beta at `at`, v below."""
    rows = jnp.arange(a.shape[0])
    new = jnp.where(rows == at, beta, jnp.where(rows > at, v, a[:, column]))
    return a.at[:, column].set(new)


@_batched
def geqrf(a):
    k = min(a.shape)

    def step(j, state):
        a, taus = state
        v, tau, beta = _reflector(a[:, j], j)
        a = jnp.where(jnp.arange(a.shape[1]) > j, _apply_left(v, _conj(tau), a), a)
        return _store(a, v, beta, j, j), taus.at[j].set(tau)

    return lax.fori_loop(0, k, step, (a, jnp.zeros(k, a.dtype)))


@_batched
def geqp3(a, jpvt, **_):
    """Columns named by a nonzero jpvt come first, as in LAPACK; numbers given back count from 1."""
    m, n = a.shape
    k = min(m, n)
    fixed = jnp.sum(jpvt != 0)
    order = jnp.argsort(jpvt == 0, stable=True).astype(jpvt.dtype)

    def step(j, state):
        a, order, taus = state
        lengths = jnp.sum(_square(jnp.where(jnp.arange(m)[:, None] >= j, a, 0)), axis=0)
        best = jnp.argmax(jnp.where(jnp.arange(n) >= j, lengths, -1))
        best = jnp.where(j < fixed, j, best)
        swap = jnp.arange(n).at[j].set(best).at[best].set(j)
        a, order = a[:, swap], order[swap]
        v, tau, beta = _reflector(a[:, j], j)
        a = jnp.where(jnp.arange(n) > j, _apply_left(v, _conj(tau), a), a)
        return _store(a, v, beta, j, j), order, taus.at[j].set(tau)

    a, order, taus = lax.fori_loop(0, k, step, (a[:, order], order, jnp.zeros(k, a.dtype)))
    return a, order + 1, taus


def _vector(a, column, at):
    rows = jnp.arange(a.shape[0])
    return jnp.where(rows > at, a[:, column], 0) + (rows == at).astype(a.dtype)


@_batched
def householder_product(a, taus):
    m, n = a.shape
    k = taus.shape[0]

    def step(i, q):
        j = k - 1 - i
        return _apply_left(_vector(a, j, j), taus[j], q)

    return lax.fori_loop(0, k, step, jnp.eye(m, n, dtype=a.dtype))


def _reduce_both_sides(a):
    """a to Hessenberg form, reflectors below the subdiagonal."""
    n = a.shape[0]
    if n < 2:
        return a, jnp.zeros(0, a.dtype)

    def step(j, state):
        a, taus = state
        v, tau, beta = _reflector(a[:, j], j + 1)
        left = jnp.where(jnp.arange(n) > j, _apply_left(v, _conj(tau), a), a)
        rows_kept = _store(left, v, beta, j, j + 1)
        a = jnp.where(jnp.arange(n) > j, _apply_right(rows_kept, v, tau), rows_kept)
        return a, taus.at[j].set(tau)

    return lax.fori_loop(0, n - 1, step, (a, jnp.zeros(n - 1, a.dtype)))


hessenberg = _batched(_reduce_both_sides)


def _hermitian(a, lower):
    half = jnp.tril(a, -1) if lower else jnp.triu(a, 1)
    return half + _herm(half) + jnp.diag(_real(jnp.diagonal(a))).astype(a.dtype)


@_batched
def tridiagonal(a, *, lower):
    if not lower:
        a = a[::-1, ::-1]
    reduced, taus = _reduce_both_sides(_hermitian(a, True))
    d, e = _real(jnp.diagonal(reduced)), _real(jnp.diagonal(reduced, -1))
    kept = jnp.where(jnp.tri(a.shape[0], dtype=bool), reduced, a)
    if not lower:
        return kept[::-1, ::-1], d[::-1], e[::-1], taus[::-1]
    return kept, d, e, taus


# --- Jacobi --------------------------------------------------------------------------------------


def _next_round(x, axis):
    """Every column but the first one place on, around the two halves."""
    h = x.shape[axis] // 2
    part = functools.partial(lax.slice_in_dim, x, axis=axis)
    top = [part(0, 1), part(h, h + 1), part(1, h - 1)] if h > 1 else [part(0, 1)]
    bottom = [part(h + 1, 2 * h), part(h - 1, h)] if h > 1 else [part(1, 2)]
    return lax.concatenate(top + bottom, axis)


def _rotation(app, aqq, apq):
    """c, s, t and the phase that makes apq real, so that the rotated apq is zero."""
    size = jnp.abs(apq)
    none = size == 0
    safe = jnp.where(none, 1, size)
    tau = (aqq - app) / (2 * safe)
    t = jnp.where(tau >= 0, 1, -1) / (jnp.abs(tau) + jnp.sqrt(1 + tau * tau))
    t = jnp.where(none, 0, t)
    c = lax.rsqrt(1 + t * t)
    phase = jnp.where(none, 1, _conj(apq) / safe).astype(apq.dtype)
    return c, t * c, t, phase


def _turn(x, c, s, phase, axis):
    h = x.shape[axis] // 2
    wide = (lambda v: v) if axis == 1 else (lambda v: v[:, None])
    p = lax.slice_in_dim(x, 0, h, axis=axis)
    q = lax.slice_in_dim(x, h, 2 * h, axis=axis) * wide(phase)
    c, s = wide(c), wide(s)
    return lax.concatenate([c * p - s * q, s * p + c * q], axis)


def _even(n):
    return n + n % 2


def _set_pairs(a, app, aqq):
    """Diagonals of the four blocks: what the rotations make them, to the letter."""
    h = a.shape[0] // 2
    i, j = np.arange(2 * h)[:, None], np.arange(2 * h)[None, :]
    a = jnp.where(np.abs(i - j) == h, 0, a)
    return jnp.where(i == j, jnp.concatenate([app, aqq]).astype(a.dtype), a)


def _eigh_round(_, state):
    a, v = state
    h = a.shape[0] // 2
    app, aqq = jnp.split(_real(jnp.diagonal(a)), 2)
    apq = jnp.diagonal(a, h)
    c, s, t, phase = _rotation(app, aqq, apq)
    a = _turn(_turn(a, c, s, phase, 1), c, s, _conj(phase), 0)
    change = t * jnp.abs(apq)
    a = _set_pairs(a, app - change, aqq + change)
    v = _turn(v, c, s, phase, 1)
    return _next_round(_next_round(a, 0), 1), _next_round(v, 1)


def _scale_of(a):
    scale = jnp.max(jnp.abs(a), initial=0)
    return jnp.where((scale > 0) & jnp.isfinite(scale), scale, 1)


@_batched
def eigh(a, *, lower, sort_eigenvalues, subset_by_index, **_):
    n = a.shape[0]
    a = _hermitian(a, lower)
    first, last = subset_by_index or (0, n)
    if n == 0:
        return a, _real(jnp.diagonal(a))
    fine = jnp.all(jnp.isfinite(a))
    scale = _scale_of(a)
    pad = _even(n) - n
    a = jnp.pad(jnp.where(fine, a / scale, 0), ((0, pad), (0, pad)))
    goal = jnp.sum(_square(a)) * _eps(a) ** 2
    off: Any = ~np.eye(n + pad, dtype=bool)

    def more(state):
        a, _, sweep = state
        return (sweep < SWEEPS_MAX) & (jnp.sum(jnp.where(off, _square(a), 0)) > goal)

    def sweep(state):
        a, v, count = state
        a, v = lax.fori_loop(0, max(n + pad - 1, 1), _eigh_round, (a, v))
        return a, v, count + 1

    a, v, _sweeps = lax.while_loop(more, sweep, (a, jnp.eye(n + pad, dtype=a.dtype), 0))
    w, v = _real(jnp.diagonal(a))[:n] * scale, v[:n, :n]
    order = jnp.argsort(w)[first:last]
    bad = jnp.where(fine, 0, jnp.nan)
    return v[:, order] + bad.astype(v.dtype), w[order] + bad.astype(w.dtype)


def _svd_round(_, state):
    w, v, worst = state
    h = w.shape[1] // 2
    p, q = w[:, :h], w[:, h:]
    alpha, beta = jnp.sum(_square(p), axis=0), jnp.sum(_square(q), axis=0)
    gamma = jnp.sum(_conj(p) * q, axis=0)
    bound = jnp.sqrt(alpha) * jnp.sqrt(beta)
    angle = jnp.where(bound > 0, jnp.abs(gamma) / jnp.where(bound > 0, bound, 1), 0)
    gamma = jnp.where(angle > _eps(w) / 4, gamma, 0)
    c, s, _, phase = _rotation(alpha, beta, gamma)
    w, v = _turn(w, c, s, phase, 1), _turn(v, c, s, phase, 1)
    return _next_round(w, 1), _next_round(v, 1), jnp.maximum(worst, jnp.max(angle))


def _svd_tall(a, full_matrices, compute_uv):
    """m >= n. Rotates columns of a until they are orthogonal: a v = u s."""
    m, n = a.shape
    scale = _scale_of(a)
    pad = _even(n) - n
    w = jnp.pad(a / scale, ((0, 0), (0, pad)))
    tolerance = _eps(a) * np.sqrt(max(m, 1))

    def more(state):
        _, _, worst, count = state
        return (count < SWEEPS_MAX) & (worst > tolerance)

    def sweep(state):
        w, v, worst, count = state
        w, v, worst = lax.fori_loop(
            0, max(n + pad - 1, 1), _svd_round, (w, v, jnp.zeros_like(worst))
        )
        return w, v, worst, count + 1

    start = jnp.ones((), _real(a).dtype)
    w, v, _, _ = lax.while_loop(more, sweep, (w, jnp.eye(n + pad, dtype=a.dtype), start, 0))
    w, v = w[:, :n], v[:n, :n]
    s = jnp.sqrt(jnp.sum(_square(w), axis=0))
    order = jnp.argsort(-s)
    s, w, v = s[order], w[:, order], v[:, order]
    if not compute_uv:
        return (s * scale,)
    packed, taus = geqrf(w)
    wide = jnp.pad(packed, ((0, 0), (0, m - n))) if full_matrices else packed
    u = householder_product(wide, taus)
    signs = jnp.where(_real(jnp.diagonal(packed)) < 0, -1, 1).astype(a.dtype)
    u = u.at[:, :n].multiply(signs[:n])
    return s * scale, u, _herm(v)


@_batched
def svd(a, *, full_matrices, compute_uv, subset_by_index, **_):
    m, n = a.shape
    k = min(m, n)
    real = _real(a).dtype
    first, last = subset_by_index or (0, k)
    if k == 0:
        u = jnp.eye(m, m if full_matrices else 0, dtype=a.dtype)
        vh = jnp.eye(n if full_matrices else 0, n, dtype=a.dtype)
        return (jnp.zeros(0, real), u, vh) if compute_uv else (jnp.zeros(0, real),)
    fine = jnp.all(jnp.isfinite(a))
    a = jnp.where(fine, a, 0)
    out = _svd_tall(a if m >= n else _herm(a), full_matrices, compute_uv)
    if compute_uv and m < n:
        out = (out[0], _herm(out[2]), _herm(out[1]))
    bad = jnp.where(fine, 0, jnp.nan)
    out = tuple(x + bad.astype(x.dtype) for x in out)
    if (first, last) == (0, k):
        return out
    return (out[0][first:last],) + tuple(
        (out[1][:, first:last], out[2][first:last]) if compute_uv else ()
    )


# --- QR iteration --------------------------------------------------------------------------------


def _givens(x, y):
    """c (real), s with [c s; -conj(s) c] [x; y] = [r; 0]."""
    ax, ay = jnp.abs(x), jnp.abs(y)
    r = jnp.hypot(ax, ay)
    safe = jnp.where(r > 0, r, 1)
    phase = jnp.where(ax > 0, x / jnp.where(ax > 0, ax, 1), 1)
    return jnp.where(r > 0, ax / safe, 1), jnp.where(r > 0, phase * jnp.conj(y) / safe, 0)


def _shift(h, hi):
    """The eigenvalue of the last active 2 x 2 block that is nearer to its corner (Wilkinson)."""
    a, b = h[hi - 1, hi - 1], h[hi - 1, hi]
    c, d = h[hi, hi - 1], h[hi, hi]
    half = (a - d) / 2
    root = jnp.sqrt(half * half + b * c)
    root = jnp.where(_real(half * jnp.conj(root)) < 0, -root, root)
    below = half + root
    return jnp.where(below == 0, d, d - b * c / jnp.where(below == 0, 1, below))


def _qr_step(h, q, lo, hi, shift):
    """One QR step on rows and columns lo..hi, rotation by rotation (the bulge is one element)."""

    def rotate(k, state):
        h, q, x, y = state
        c, s = _givens(x, y)
        rows = lax.dynamic_slice_in_dim(h, k, 2, 0)
        rows = jnp.stack([c * rows[0] + s * rows[1], -jnp.conj(s) * rows[0] + c * rows[1]])
        h = lax.dynamic_update_slice_in_dim(h, rows, k, 0)

        def turn(m):
            cols = lax.dynamic_slice_in_dim(m, k, 2, 1)
            p, r = cols[:, 0], cols[:, 1]
            cols = jnp.stack([c * p + jnp.conj(s) * r, -s * p + c * r], 1)
            return lax.dynamic_update_slice_in_dim(m, cols, k, 1)

        h, q = turn(h), turn(q)
        n = h.shape[0]
        # h[k, k-1] now holds the next pair's upper part; the pair after it is (k+1, k), (k+2, k)
        return h, q, h[jnp.minimum(k + 1, n - 1), k], h[jnp.minimum(k + 2, n - 1), k]

    x, y = h[lo, lo] - shift, h[lo + 1, lo]
    h, q, _, _ = lax.fori_loop(lo, hi, rotate, (h, q, x, y))
    return h, q


def _hessenberg_with_q(a):
    """h, q with a = q h q^H, and a function that clears subdiagonal elements that count as nothing."""
    n = a.shape[0]
    packed, taus = _reduce_both_sides(a)
    h = jnp.triu(packed, -1)
    q = jnp.eye(n, dtype=a.dtype)
    if n > 1:
        q = q.at[1:, 1:].set(householder_product(packed[1:, :-1], taus))
    eps = _eps(a)
    norm = jnp.maximum(jnp.max(jnp.abs(h)), jnp.finfo(a.dtype).tiny)

    def tidy(h):
        h = jnp.triu(h, -1)
        d = jnp.abs(jnp.diagonal(h))
        near = d[1:] + d[:-1]
        limit = eps * jnp.where(near > 0, near, norm)
        small = jnp.abs(jnp.diagonal(h, -1)) <= limit
        keep = jnp.where(small, 0, jnp.diagonal(h, -1))
        return h.at[jnp.arange(1, h.shape[0]), jnp.arange(h.shape[0] - 1)].set(keep)

    return h, q, tidy


def _francis_step(h, q, lo, hi, trace, det):
    """One double-shift step on rows and columns lo..hi of matrices with one row and column to spare: a bulge of 3 x 3
    is chased down. The last reflection is of two rows; its third component is 0."""

    def reflect(k, state):
        h, q, v = state
        length = jnp.sqrt(jnp.sum(v * v))
        v = v.at[0].add(jnp.where(v[0] < 0, -length, length))
        scale = jnp.sum(v * v)
        v = v * jnp.where(scale > 0, jnp.sqrt(2 / jnp.where(scale > 0, scale, 1)), 0)
        rows = lax.dynamic_slice_in_dim(h, k, 3, 0)
        h = lax.dynamic_update_slice_in_dim(h, rows - jnp.outer(v, v @ rows), k, 0)

        def turn(m):
            cols = lax.dynamic_slice_in_dim(m, k, 3, 1)
            return lax.dynamic_update_slice_in_dim(m, cols - jnp.outer(cols @ v, v), k, 1)

        h, q = turn(h), turn(q)
        below = lax.dynamic_slice(h, (k + 1, k), (3, 1))[:, 0]
        return h, q, below.at[2].set(jnp.where(k + 3 <= hi, below[2], 0))

    a, b, c, d = h[lo, lo], h[lo, lo + 1], h[lo + 1, lo], h[lo + 1, lo + 1]
    v = jnp.stack([a * a + b * c - trace * a + det, c * (a + d - trace), c * h[lo + 2, lo + 1]])
    h, q, _ = lax.fori_loop(lo, hi, reflect, (h, q, v / jnp.maximum(jnp.max(jnp.abs(v)), jnp.finfo(h.dtype).tiny)))
    return h, q


def _standard_rotation(a, b, c, d):
    """c, s that bring [a b; c d] into LAPACK's standard form, and whether its eigenvalues are real."""
    p = (a - d) / 2
    inside = p * p + b * c
    z = p + jnp.where(p < 0, -1, 1) * jnp.sqrt(jnp.maximum(inside, 0))
    tau = jnp.hypot(c, z)
    tau = jnp.where(tau > 0, tau, 1)
    sigma = b + c
    both = jnp.hypot(sigma, a - d)
    both = jnp.where(both > 0, both, 1)
    cs = jnp.sqrt((1 + jnp.abs(sigma) / both) / 2)
    sn = -(p / (both * cs)) * jnp.where(sigma < 0, -1, 1)
    real = inside >= 0
    return jnp.where(real, z / tau, cs), jnp.where(real, c / tau, sn), real


def _schur_real(a):
    n = a.shape[0]
    if n == 0:
        return a, a
    h, q, tidy = _hessenberg_with_q(a)
    spare = max(n + 2, 4) - n  # slices of three rows stay inside
    h, q = (jnp.pad(x, ((0, spare), (0, spare))) for x in (h, q))

    def larger(h):  # where a block of more than two rows ends
        linked = jnp.diagonal(h, -1) != 0
        return jnp.max(jnp.where(linked[:-1] & linked[1:], jnp.arange(2, len(linked) + 1), 0))

    def step(state):
        h, q, count = state
        hi = larger(h)
        linked = jnp.diagonal(h, -1) != 0
        i = jnp.arange(len(linked))
        lo = jnp.max(jnp.where(~linked & (i < hi), i + 1, 0))
        x, y, z, w = h[hi - 1, hi - 1], h[hi - 1, hi], h[hi, hi - 1], h[hi, hi]
        size = jnp.abs(z) + jnp.abs(h[hi - 1, hi - 2])
        odd = count % 11 == 10
        trace, det = jnp.where(odd, 1.5 * size, x + w), jnp.where(odd, size * size, x * w - y * z)
        h, q = _francis_step(h, q, lo, hi, trace, det)
        return tidy(h), q, count + 1

    def more(state):
        return (state[2] < SHIFTS_PER_EIGENVALUE * n) & (larger(state[0]) > 0)

    h, q, _ = lax.while_loop(more, step, (tidy(h), q, 0))

    def standardise(i, state):
        h, q = state
        block = lax.dynamic_slice(h, (i, i), (2, 2))
        c, s, real = _standard_rotation(block[0, 0], block[0, 1], block[1, 0], block[1, 1])
        linked = block[1, 0] != 0
        c, s = jnp.where(linked, c, 1).astype(h.dtype), jnp.where(linked, s, 0).astype(h.dtype)
        g = jnp.stack([jnp.stack([c, s]), jnp.stack([-s, c])])
        rows = lax.dynamic_slice_in_dim(h, i, 2, 0)
        h = lax.dynamic_update_slice_in_dim(h, _matmul(g, rows), i, 0)

        def turn(m):
            cols = lax.dynamic_slice_in_dim(m, i, 2, 1)
            return lax.dynamic_update_slice_in_dim(m, _matmul(cols, g.T), i, 1)

        h, q = turn(h), turn(q)
        middle = (h[i, i] + h[i + 1, i + 1]) / 2  # equal in the standard form of a complex pair
        pair = linked & ~real
        h = h.at[i, i].set(jnp.where(pair, middle, h[i, i]))
        h = h.at[i + 1, i + 1].set(jnp.where(pair, middle, h[i + 1, i + 1]))
        return h.at[i + 1, i].set(jnp.where(pair, h[i + 1, i], 0)), q

    h, q = lax.fori_loop(0, n - 1, standardise, (h, q))
    return jnp.triu(h, -1)[:n, :n], q[:n, :n]


def _schur_complex(a):
    n = a.shape[0]
    if n == 0:
        return a, a
    h, q, tidy = _hessenberg_with_q(a)

    def more(state):
        h, _, count = state
        return (count < SHIFTS_PER_EIGENVALUE * n) & jnp.any(jnp.diagonal(h, -1) != 0)

    def step(state):
        h, q, count = state
        linked = jnp.diagonal(h, -1) != 0
        i = jnp.arange(n - 1)
        hi = jnp.max(jnp.where(linked, i + 1, 0))
        lo = jnp.max(jnp.where(~linked & (i < hi), i + 1, 0))
        hi1 = jnp.maximum(hi, 1)
        usual = _shift(h, hi1)
        odd = h[hi1, hi1] + jnp.abs(h[hi1, hi1 - 1])
        shift = jnp.where(count % 11 == 10, odd, usual)
        new_h, new_q = _qr_step(h, q, lo, hi, shift)
        return tidy(new_h), new_q, count + 1

    if n > 1:
        h, q, _ = lax.while_loop(more, step, (tidy(h), q, 0))
    return jnp.triu(h), q


@_batched
def schur(a, *, compute_schur_vectors, sort_eig_vals, select_callable):
    if sort_eig_vals or select_callable is not None:
        raise NotImplementedError("opentrn: schur does not sort eigenvalues")
    t, q = (_schur_complex if jnp.iscomplexobj(a) else _schur_real)(a)
    return (t, q) if compute_schur_vectors else (t,)


def _triangular_eigenvectors(t):
    """Columns x with t x = t[j, j] x, by substitution upwards, all columns at once."""
    n = t.shape[0]
    w = jnp.diagonal(t)
    least = jnp.maximum(_eps(t) * jnp.max(jnp.abs(t)), jnp.finfo(t.dtype).tiny)

    def row(i, x):
        k = n - 1 - i
        right = -_matmul(jnp.where(jnp.arange(n) > k, t[k], 0), x)
        gap = t[k, k] - w
        gap = jnp.where(jnp.abs(gap) < least, least.astype(t.dtype), gap)
        new = jnp.where(jnp.arange(n) > k, right / gap, jnp.where(jnp.arange(n) == k, 1, 0))
        return x.at[k].set(new)

    return lax.fori_loop(0, n, row, jnp.zeros_like(t))


def _unit_columns(x):
    """Columns of length 1 whose largest element is real and positive, as LAPACK leaves them."""
    length = jnp.sqrt(jnp.sum(_square(x), axis=0))
    x = x / jnp.where(length > 0, length, 1)
    if not x.size:
        return x
    largest = jnp.take_along_axis(x, jnp.argmax(_square(x), axis=0)[None], axis=0)
    size = jnp.abs(largest)
    return x * jnp.where(size > 0, _conj(largest) / jnp.where(size > 0, size, 1), 1)


@_batched
def eig(a, *, compute_left_eigenvectors, compute_right_eigenvectors, **_):
    a = a.astype(jnp.result_type(a, jnp.complex64))
    if not a.size:
        return (a[0:0, 0:0].reshape(0), *(a,) * (compute_left_eigenvectors + compute_right_eigenvectors))
    fine = jnp.all(jnp.isfinite(a))
    t, q = _schur_complex(jnp.where(fine, a, 0))
    bad = jnp.where(fine, 0, jnp.nan).astype(a.dtype)
    out = [jnp.diagonal(t) + bad]
    if compute_left_eigenvectors:
        # x^H t = w x^H: the same substitution on the conjugate transpose, turned around
        flipped = _triangular_eigenvectors(_herm(t)[::-1, ::-1])[::-1, ::-1]
        out.append(_unit_columns(_matmul(q, flipped)) + bad)
    if compute_right_eigenvectors:
        out.append(_unit_columns(_matmul(q, _triangular_eigenvectors(t))) + bad)
    return tuple(out)


# --- tridiagonal systems ---------------------------------------------------------------------------


def _tridiagonal_solve(dl, d, du, b, perturb_singular):
    """Elimination with row exchanges: a pivot row reaches two columns past its diagonal."""

    def eliminate(row, below):
        swap = jnp.abs(below[0]) > jnp.abs(row[0])
        pivot = [jnp.where(swap, x, y) for x, y in zip(below, row, strict=True)]
        other = [jnp.where(swap, y, x) for x, y in zip(below, row, strict=True)]
        factor = other[0] / pivot[0]
        if perturb_singular:
            factor = jnp.where(pivot[0] == 0, 0, factor)
        left = [x - factor * y for x, y in zip(other[1:], pivot[1:], strict=True)]
        return (left[0], left[1], jnp.zeros_like(d[0]), left[2]), tuple(pivot)

    zero = jnp.zeros_like(d[:1])
    du = jnp.concatenate([du[:-1], zero])
    first = (d[0], du[0], zero[0], b[0])
    last, rows = lax.scan(eliminate, first, (dl[1:], d[1:], du[1:], b[1:]))
    u0, u1, u2, y = (jnp.concatenate([x, end[None]]) for x, end in zip(rows, last, strict=True))
    if perturb_singular:
        largest = jnp.max(jnp.abs(jnp.stack([u0, u1, u2])))
        least = jnp.maximum(_eps(d) * largest, jnp.finfo(d.dtype).tiny)
        u0 = jnp.where(jnp.abs(u0) < least, least.astype(d.dtype), u0)

    def substitute(behind, row):
        x1, x2 = behind
        u0, u1, u2, y = row
        x = (y - u1 * x1 - u2 * x2) / u0
        return (x, x1), x

    none = jnp.zeros_like(b[0])
    return lax.scan(substitute, (none, none), (u0, u1, u2, y), reverse=True)[1]


def tridiagonal_solve(dl, d, du, b, *, perturb_singular=False, **_):
    f = functools.partial(_tridiagonal_solve, perturb_singular=perturb_singular)
    for _axis in range(d.ndim - 1):
        f = jax.vmap(f)
    return f(dl, d, du, b) if b.size else b


# --- registration --------------------------------------------------------------------------------

_SINGLE = ("householder_product", "tridiagonal_solve", "lu_pivots_to_permutation")
_PRIMITIVES = (
    "geqrf", "geqp3", "householder_product", "hessenberg", "tridiagonal", "eigh", "svd", "schur", "eig",
    "tridiagonal_solve",
)  # fmt: skip


# JAX has these as programs of its own for platforms it does not know, but traces them as part of the user's
# manual region, where their loops do not type.
_JAX_PROGRAMS = {"lu": "_lu_python", "lu_pivots_to_permutation": "_generic_lu_pivots_to_permutation"}


def _own_rules(program):
    """The program traced by JAX's usual rules, whatever the user's program chose for itself."""

    @functools.wraps(program)
    def run(*args, **params):
        with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
            return program(*args, **params)

    return run


def _lowering(program, single):
    """A rule that takes arrays as plain ones: over which manual axes they vary is not its business."""
    from jax._src import core
    from jax._src.interpreters import mlir

    rule = mlir.lower_fun(_own_rules(program), multiple_results=not single)

    def lower(ctx, *args, **params):
        plain = [core.ShapedArray(a.shape, a.dtype) for a in ctx.avals_in]
        return rule(ctx.replace(avals_in=plain), *args, **params)

    return lower


def register(platform):
    """Gives JAX these lowerings for the platform. A JAX that lacks a primitive keeps what it has."""
    from jax._src.interpreters import mlir
    from jax._src.lax import linalg as primitives

    programs = {name: globals()[name] for name in _PRIMITIVES}
    for name, theirs in _JAX_PROGRAMS.items():
        if hasattr(primitives, theirs):
            programs[name] = getattr(primitives, theirs)
    for name, program in programs.items():
        primitive = getattr(primitives, f"{name}_p", None)
        if primitive is not None:
            rule = _lowering(program, name in _SINGLE)
            mlir.register_lowering(primitive, rule, platform=platform)
