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
