# SPDX-License-Identifier: Apache-2.0
"""Single operators that models use and PyTorch's own samples (make opinfo) hardly touch."""

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F

import opentrn.torch


def place(text, images):
    """Pieces of one tensor in places of another, as models of text and images do."""
    return text.masked_scatter((torch.arange(6) % 3 == 1)[:, None], images)


def rotate(x, angle):
    """Rotary places by complex numbers."""
    turn = torch.polar(torch.ones_like(angle), angle)
    return torch.view_as_real(torch.view_as_complex(x.unflatten(-1, (-1, 2))) * turn).flatten(-2)


PLACES = torch.tensor([[0, 1, 3], [2, 1, 3], [0, 0, 0], [2, 2, 3], [0, 1, 0]])
CASES = {
    "rotary": (rotate, (2, 5, 8), (5, 4)),
    "masked_scatter": (place, (6, 4), (2, 4)),
    "adaptive_max_pool": (lambda x: F.adaptive_max_pool2d(x, (3, 2)), (2, 3, 7, 5)),
    "max_pool3d": (lambda x: F.max_pool3d(x, 2), (1, 2, 4, 4, 5)),
    "replication_pad": (lambda x: F.pad(x, (1, 2, 0, 3), mode="replicate"), (1, 2, 3, 4)),
    "cdist": (torch.cdist, (2, 5, 3), (2, 4, 3)),
    "cdist 1": (lambda x, y: torch.cdist(x, y, p=1), (5, 3), (4, 3)),
    "cdist 3": (lambda x, y: torch.cdist(x, y, p=3), (5, 3), (4, 3)),
    "bilinear": (F.bilinear, (4, 3), (4, 5), (2, 3, 5), (2,)),
    "as_strided_scatter": (lambda x, y: torch.as_strided_scatter(x, y, (2, 3), (5, 2), 1), (4, 5), (2, 3)),
    "pool of channels last": (lambda x: F.adaptive_avg_pool2d(x.permute(0, 3, 1, 2), 1), (2, 4, 5, 3)),
    "scatter mean": (lambda x, y: x.scatter_reduce(0, PLACES, y, "mean"), (4, 3), (5, 3)),
    "scatter mean without self": (
        lambda x, y: x.scatter_reduce(0, PLACES, y, "mean", include_self=False),
        (4, 3),
        (5, 3),
    ),
    "index_reduce": (lambda x, y: x.index_reduce(0, PLACES[:, 0], y, "amax"), (4, 3), (5, 3)),
    "segments": (lambda x: torch.segment_reduce(x, "mean", lengths=torch.tensor([2, 3, 1])), (6, 4)),
    "weight norm": (lambda v, g: torch._weight_norm_interface(v, g, 0)[0], (4, 3), (4, 1)),
    "logcumsumexp": (lambda x: torch.logcumsumexp(x, 1), (3, 6)),
    "mask written": (lambda x: x.index_put([x > 0], torch.tensor(0.5)), (3, 4)),
}


@pytest.mark.parametrize("name", CASES)
def test_results_and_gradients(name, fresh):
    f, *shapes = CASES[name]
    g = torch.Generator().manual_seed(1)
    given = [torch.randn(shape, generator=g) for shape in shapes]
    results = []
    for run in (f, torch.compile(f, backend="opentrn")):
        leaves = [x.clone().requires_grad_() for x in given]
        y = run(*leaves)
        (y * torch.arange(y.numel()).view(y.shape)).sum().backward()
        results.append((y.detach(), *(x.grad for x in leaves)))
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(b, a, rtol=1e-4, atol=1e-4)
    assert not fresh.found


@pytest.mark.parametrize("right", [False, True])
def test_places_in_sorted_rows(right, fresh):
    def work(edges, values, rows):
        found = torch.searchsorted(rows, values, right=right)
        return torch.bucketize(values, edges, right=right), found

    edges = torch.tensor([-1.0, 0.0, 0.5, 2.0])
    values = torch.tensor([[-2.0, 0.0, 0.5], [2.0, 3.0, float("nan")]])
    rows = torch.stack([edges, edges * 2])
    compiled = torch.compile(work, backend="opentrn")
    for a, b in zip(work(edges, values, rows), compiled(edges, values, rows), strict=True):
        assert torch.equal(a, b)
    assert not fresh.found


def test_histogram(fresh):
    x = torch.randn(40, generator=torch.Generator().manual_seed(3))
    for low, high in ((0, 0), (-1, 1)):
        f = lambda x: torch.histc(x, 7, low, high)  # noqa: B023
        assert torch.equal(torch.compile(f, backend="opentrn")(x), f(x))
    assert not fresh.found


@pytest.mark.parametrize("cut", ["rows", "columns", "inside"])
def test_products_of_groups(cut, fresh):
    """Rows of mixtures of experts, each with its own matrix; one group is empty."""
    shapes = {"rows": ((16, 8), (3, 8, 8)), "columns": ((3, 8, 8), (8, 16)), "inside": ((8, 16), (16, 8))}[cut]
    ends, g = [8, 8, 16], torch.Generator().manual_seed(2)
    x, y = (torch.randn(shape, generator=g, dtype=torch.bfloat16) for shape in shapes)
    parts = [slice(a, b) for a, b in zip([0, *ends], ends)]
    if cut == "rows":
        expected = torch.cat([x[p].float() @ y[i].float() for i, p in enumerate(parts)])
    elif cut == "columns":
        expected = torch.cat([x[i].float() @ y[:, p].float() for i, p in enumerate(parts)], 1)
    else:
        expected = torch.stack([x[:, p].float() @ y[p].float() for p in parts])
    f = torch.compile(lambda *a: torch.ops.aten._grouped_mm.default(*a), backend="opentrn")
    got = f(x, y, torch.tensor(ends, dtype=torch.int32))
    torch.testing.assert_close(got.float(), expected, rtol=1e-2, atol=1e-2)
    assert not fresh.found


def test_special_functions(fresh):
    def work(x, p, n):
        s = torch.special
        around = [s.i0(x), s.i0e(x), s.i1(x), s.i1e(x), s.bessel_j0(x), s.bessel_j1(x), s.erfcx(x), s.spherical_bessel_j0(x)]
        above = [s.bessel_y0(p), s.bessel_y1(p), s.modified_bessel_k0(p), s.scaled_modified_bessel_k1(p)]
        more = [s.zeta(p + 1.5, p), s.ndtri(p / 100), s.chebyshev_polynomial_u(x / 9, n), torch.gcd(n * 6, n * 4 + 2)]
        return [*around, *above, *more]

    x, p, n = torch.linspace(-9, 60, 40), torch.logspace(-3, 1.9, 40), torch.arange(40) % 7
    for a, b in zip(work(x, p, n), torch.compile(work, backend="opentrn")(x, p, n), strict=True):
        torch.testing.assert_close(b, a, rtol=1e-4, atol=1e-4)
    assert not fresh.found


def test_median_without_nan(fresh):
    x = torch.tensor([[3.0, float("nan"), 1.0, 2.0], [5.0, 4.0, 6.0, 7.0]])
    work = lambda x: (*torch.nanmedian(x, 1), torch.nanmedian(x))
    for a, b in zip(work(x), torch.compile(work, backend="opentrn")(x), strict=True):
        assert torch.equal(a, b)
    assert not fresh.found


def test_dropout_chooses():
    """What is dropped is zero whatever it was, forward and backward; what is kept is scaled once."""
    torch.manual_seed(5)
    x = torch.linspace(1, 2, 64 * 128).reshape(64, 128).requires_grad_()
    y = torch.compile(lambda x: torch.nn.functional.dropout(x, 0.25), backend="opentrn")(x)
    kept = y.detach() != 0
    assert 0.7 < kept.float().mean() < 0.8
    assert torch.equal(y.detach()[kept], (x.detach() * (1 / 0.75))[kept])
    y.backward(torch.full_like(y, 3.0))
    assert torch.equal(x.grad, torch.where(kept, 3.0 * (1 / 0.75), 0.0))
    far = torch.compile(lambda x: torch.nn.functional.dropout(x, 0.25), backend="opentrn")(torch.full((64, 128), float("inf")))
    assert not far.isnan().any() and (far == 0).any()
