# SPDX-License-Identifier: Apache-2.0
"""Matrix decompositions on the device: they put the matrix together again, and agree with LAPACK's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

SHAPES = [(1, 1), (2, 2), (5, 5), (6, 6), (7, 4), (4, 7), (3, 1), (2, 3, 5, 4), (0, 3)]
TYPES = [np.float32, np.complex64, np.float64, np.complex128]


def matrix(shape, dtype, seed=0):
    r = np.random.RandomState(seed + sum(shape))
    a = r.randn(*shape)
    if np.issubdtype(dtype, np.complexfloating):
        a = a + 1j * r.randn(*shape)
    return a.astype(dtype)


def near(got, want, dtype, scale=1.0):
    tolerance = 200 * np.finfo(dtype).eps * scale
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=tolerance, atol=tolerance)


def h(x):
    return np.conj(np.swapaxes(np.asarray(x), -1, -2))


def identity_like(q):
    return np.broadcast_to(np.eye(q.shape[-1], dtype=q.dtype), h(q).shape[:-2] + (q.shape[-1],) * 2)


def on(device, f, *args):
    return jax.tree.map(np.asarray, jax.jit(f)(*jax.device_put(args, device)))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("full", [False, True])
def test_svd(shape, dtype, full, device, x64):
    a = matrix(shape, dtype)
    u, s, vh = on(device, lambda a: jnp.linalg.svd(a, full_matrices=full), a)
    k = min(shape[-2:])
    near((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], a, dtype, 10)
    near(h(u) @ u, identity_like(u), dtype)
    near(vh @ h(vh), identity_like(h(vh)), dtype)
    near(s, np.linalg.svd(a, compute_uv=False), dtype, 5)


@pytest.mark.parametrize("rank", [0, 1, 3])
def test_svd_of_low_rank(rank, device):
    a = matrix((7, rank), np.float32) @ matrix((rank, 5), np.float32)
    u, s, vh = on(device, jnp.linalg.svd, a)
    near(u[:, :5] * s @ vh, a, np.float32, 10)
    near(u.T @ u, np.eye(7), np.float32)
    assert (np.abs(s[rank:]) < 1e-5).all()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (5, 5), (8, 8), (2, 3, 4, 4), (0, 0)])
@pytest.mark.parametrize("triangle", ["L", "U"])
def test_eigh(shape, dtype, triangle, device, x64):
    a = matrix(shape, dtype)
    f = lambda a: jnp.linalg.eigh(a, UPLO=triangle, symmetrize_input=False)
    w, v = on(device, f, a)
    half = np.tril(a, -1) if triangle == "L" else np.triu(a, 1)
    full = half + h(half) + np.real(a) * np.eye(shape[-1])
    near(v * w[..., None, :] @ h(v), full, dtype, 10)
    near(h(v) @ v, identity_like(v), dtype)
    near(w, np.linalg.eigvalsh(full), dtype, 10)


def test_eigh_of_equal_eigenvalues_and_nan(device):
    w, v = on(device, jnp.linalg.eigh, np.eye(5, dtype=np.float32) * 3)
    near(w, np.full(5, 3), np.float32)
    near(v @ v.T, np.eye(5), np.float32)
    assert np.isnan(on(device, jnp.linalg.eigvalsh, np.full((3, 3), np.nan, np.float32))).all()


def test_larger(device):
    a = matrix((60, 60), np.float32)
    w, v = on(device, jnp.linalg.eigh, a + a.T)
    near(v * w @ v.T, a + a.T, np.float32, 60)
    near(v.T @ v, np.eye(60), np.float32)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (7, 4), (4, 7), (2, 3, 3)])
def test_qr(shape, dtype, device, cpu, x64):
    a = matrix(shape, dtype)
    for mode in ("reduced", "complete"):
        q, r = on(device, lambda a: jnp.linalg.qr(a, mode=mode), a)
        near(q @ r, a, dtype)
        near(h(q) @ q, identity_like(q), dtype)
        want = on(cpu, lambda a: jnp.linalg.qr(a, mode=mode), a)
        near(q, want[0], dtype, 5)
        near(r, want[1], dtype, 5)


def test_pivoted_qr(device, cpu):
    a = matrix((6, 4), np.float32)
    f = lambda a: jax.scipy.linalg.qr(a, pivoting=True, mode="economic")
    (q, r, p), want = on(device, f, a), on(cpu, f, a)
    near(q @ r, a[:, p], np.float32)
    np.testing.assert_array_equal(p, want[2])
    near(r, want[1], np.float32)


@pytest.mark.parametrize("dtype", TYPES)
def test_hessenberg_and_tridiagonal(dtype, device, cpu, x64):
    a = matrix((6, 6), dtype)
    s = a + h(a)
    near(on(device, jax.lax.linalg.hessenberg, a)[0], on(cpu, jax.lax.linalg.hessenberg, a)[0], dtype, 5)
    for lower in (True, False):
        f = lambda a: jax.lax.linalg.tridiagonal(a, lower=lower)
        _, d, e, _ = on(device, f, s)
        t = np.diag(d) + np.diag(e, 1) + np.diag(e, -1)
        near(np.linalg.eigvalsh(t), np.linalg.eigvalsh(s), dtype, 20)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (6, 6), (2, 4, 4)])
def test_eig(shape, dtype, device, x64):
    a = matrix(shape, dtype)
    w, v = on(device, jnp.linalg.eig, a)
    near(a @ v, v * w[..., None, :], dtype, 50)
    near(np.linalg.norm(v, axis=-2), np.ones(shape[:-1]), dtype)
    near(np.sort(np.abs(w)), np.sort(np.abs(np.linalg.eigvals(a))), dtype, 50)


def test_complex_schur(device):
    a = matrix((6, 6), np.complex64)
    t, q = on(device, lambda a: jax.scipy.linalg.schur(a, output="complex"), a)
    near(q @ t @ h(q), a, np.float32, 20)
    assert not np.tril(t, -1).any()


@pytest.mark.parametrize("n", [0, 1, 2, 3, 8, 20])
def test_real_schur(n, device):
    a = matrix((2, n, n), np.float32)
    a[0] = np.roll(np.eye(n, dtype=np.float32), 1, 0)  # all eigenvalues on a circle
    t, q = on(device, jax.scipy.linalg.schur, a)
    near(q @ t @ h(q), a, np.float32, 40)
    near(q @ h(q), np.broadcast_to(np.eye(n), a.shape), np.float32, 40)
    assert not np.tril(t, -2).any()
    for m, from_ in zip(t, a):
        below = np.diagonal(m, -1)
        assert not (below[1:] * below[:-1]).any()
        for i in np.nonzero(below)[0]:  # a complex pair in standard form
            assert m[i, i] == m[i + 1, i + 1] and m[i, i + 1] * m[i + 1, i] < 0
        got, want = (np.linalg.eigvals(x.astype(np.float64)) for x in (m, from_))
        np.testing.assert_allclose(np.sort(np.abs(got)), np.sort(np.abs(want)), atol=2e-4)


SOLVERS = {
    "solve": lambda a, b: jnp.linalg.solve(a, b),
    "inv": lambda a, b: jnp.linalg.inv(a),
    "det": lambda a, b: jnp.linalg.det(a),
    "slogdet": lambda a, b: jnp.linalg.slogdet(a),
    "pinv": lambda a, b: jnp.linalg.pinv(b),
    "lstsq": lambda a, b: jnp.linalg.lstsq(b, a)[0],
    "rank": lambda a, b: jnp.linalg.matrix_rank(b),
    "cholesky": lambda a, b: jnp.linalg.cholesky(a @ a.T),
    "lu": lambda a, b: jax.scipy.linalg.lu(a),
    "cond": lambda a, b: jnp.linalg.cond(b),
    "expm": lambda a, b: jax.scipy.linalg.expm(a / 8),
    "sqrtm": lambda a, b: jax.scipy.linalg.sqrtm((a @ a.T).astype(jnp.complex64)),
    "polar": lambda a, b: jax.scipy.linalg.polar(a),
    "eigh grad": lambda a, b: jax.grad(lambda a: jnp.sum(jnp.linalg.eigvalsh(a) ** 2))(a + a.T),
    "svd grad": lambda a, b: jax.grad(lambda b: jnp.sum(jnp.linalg.svdvals(b) ** 3))(b),
    "qr grad": lambda a, b: jax.grad(lambda b: jnp.sum(jnp.linalg.qr(b)[1]))(b),
}


@pytest.mark.parametrize("name", SOLVERS)
def test_solvers_agree_with_lapack(name, device, cpu):
    args = matrix((6, 6), np.float32) + 3 * np.eye(6, dtype=np.float32), matrix((6, 3), np.float32)
    for got, want in zip(
        jax.tree.leaves(on(device, SOLVERS[name], *args)), jax.tree.leaves(on(cpu, SOLVERS[name], *args))
    ):
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3 * max(1, np.abs(want).max()))


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("perturb", [False, True])
def test_tridiagonal_solve(dtype, perturb):
    """Diagonals that need row exchanges; what stands past the ends does not count."""
    rng = np.random.default_rng(1)
    dl, d, du = (rng.normal(size=(2, 9)).astype(dtype) for _ in range(3))
    d[:, 3] = 0
    b = rng.normal(size=(2, 9, 2)).astype(dtype)
    x = np.asarray(jax.lax.linalg.tridiagonal_solve(dl, d, du, b, perturb_singular=perturb))
    for k in range(2):
        a = np.diag(d[k]) + np.diag(dl[k, 1:], -1) + np.diag(du[k, :-1], 1)
        np.testing.assert_allclose(a @ x[k], b[k], atol=1e-4)


def test_tridiagonal_solve_of_a_singular_matrix():
    dl, d, du = np.float32([0, 1]), np.float32([1, 3]), np.float32([3, 0])
    b = np.float32([[1], [4]])
    x = jax.lax.linalg.tridiagonal_solve(dl, d, du, b, perturb_singular=True)
    assert np.all(np.isfinite(x)) and np.all(np.abs(x) > 1e6)
    assert not np.all(np.isfinite(jax.lax.linalg.tridiagonal_solve(dl, d, du, b)))


def test_eigenvectors_have_a_real_largest_element():
    a = np.random.default_rng(2).normal(size=(6, 6)).astype(np.float32)
    v = np.asarray(jnp.linalg.eig(a)[1])
    largest = v[np.argmax(np.abs(v), axis=0), np.arange(6)]
    assert np.all(largest.real > 0) and np.all(np.abs(largest.imag) < 1e-6)


def test_strict_programs_may_decompose():
    a = np.eye(3, dtype=np.float32) + 1
    with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
        w = jax.jit(lambda a: jnp.linalg.eigh(a)[0])(a)
    np.testing.assert_allclose(w, [1, 1, 4], atol=1e-5)


@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 0)])
def test_eig_of_nothing(shape):
    w, v = jnp.linalg.eig(np.zeros(shape, np.float32))
    assert w.shape == shape[:-1] and v.shape == shape
