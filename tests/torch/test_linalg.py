# SPDX-License-Identifier: Apache-2.0
"""Decompositions, solvers and Fourier transforms run on the device: eager's results and
gradients."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("jax")

import opentrn.torch

L = torch.linalg
SQUARE, WIDE, TALL, SPD = "square", "wide", "tall", "positive definite"


def _give(kind):
    g = torch.Generator().manual_seed(len(kind))
    if kind == SPD:
        x = torch.randn(4, 4, generator=g)
        return x @ x.mT + torch.eye(4)
    shape = {SQUARE: (2, 4, 4), WIDE: (3, 5), TALL: (2, 5, 3)}[kind]
    return torch.randn(shape, generator=g)


def _low_rank(a):
    u, s, v = L.svd(a, full_matrices=False)
    return u[..., :2] * s[..., None, :2] @ v[..., :2, :]


def _spectrum(x):
    return torch.stft(x.flatten(), 8, window=torch.hann_window(8), return_complex=True).abs()


CASES = {
    "inv": (L.inv, SQUARE),
    "det": (L.det, SQUARE),
    "slogdet of a transpose": (lambda a: L.slogdet(a.mT), SQUARE),
    "solve": (lambda a: L.solve(a, a.mT[..., :2]), SQUARE),
    "solve from the right": (lambda a: L.solve(a, a[..., :2, :], left=False), SQUARE),
    "triangle": (lambda a: L.solve_triangular(a, a[..., :2], upper=False), SPD),
    "lu": (L.lu, SQUARE),
    "cholesky": (L.cholesky, SPD),
    "cholesky_solve": (lambda a: torch.cholesky_solve(a[:, :2], L.cholesky(a)), SPD),
    "eigvalsh": (L.eigvalsh, SPD),
    "eigh": (lambda a: L.eigh(a)[1].abs(), SPD),
    "svd": (_low_rank, TALL),
    "svdvals": (L.svdvals, WIDE),
    "qr": (L.qr, TALL),
    "pinv": (L.pinv, WIDE),
    "matrix_exp": (torch.matrix_exp, SQUARE),
    "eigvals": (lambda a: L.eigvals(a).abs().sort()[0], SQUARE),
    "rfft": (lambda x: torch.fft.rfft(x).abs(), TALL),
    "fft2 and back": (lambda x: torch.fft.ifft2(torch.fft.fft2(x, norm="ortho")).real, TALL),
    "irfftn": (lambda x: torch.fft.irfftn(torch.fft.rfftn(x), s=(5, 3), dim=(1, 2)), TALL),
    "convolution": (lambda x: torch.fft.irfft(torch.fft.rfft(x, n=8) ** 2, n=8), WIDE),
    "stft": (_spectrum, TALL),
}


def _run(f, x):
    x = x.clone().requires_grad_()
    results = torch.utils._pytree.tree_leaves(f(x))
    sum(r.sin().sum() for r in results if r.requires_grad).backward()
    return [r.detach() for r in results], x.grad


@pytest.mark.parametrize("name", CASES)
def test_as_in_eager(name, fresh):
    f, kind = CASES[name]
    x = _give(kind)
    want, got = _run(f, x), _run(torch.compile(f, backend="opentrn"), x)
    for a, b in zip(want[0], got[0], strict=True):
        torch.testing.assert_close(b, a, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(got[1], want[1], rtol=1e-3, atol=1e-3)
    assert fresh.graphs and not fresh.found


def test_a_singular_matrix_is_told():
    inverse = torch.compile(L.inv, backend="opentrn")
    torch.testing.assert_close(inverse(2 * torch.eye(3)), torch.eye(3) / 2)
    with pytest.raises(Exception, match="singular"):
        inverse(torch.zeros(3, 3))
    with pytest.raises(Exception, match="positive-definite"):
        torch.compile(L.cholesky, backend="opentrn")(-torch.eye(3))
