# SPDX-License-Identifier: Apache-2.0
"""Single operators that models use and PyTorch's own samples (make opinfo) hardly touch."""

import pytest

torch = pytest.importorskip("torch")

import opentrn.torch


def test_masked_scatter(fresh):
    """Pieces of one tensor put into the places of another, as models of text and images do."""

    def place(text, images):
        mask = (torch.arange(6) % 3 == 1)[:, None]
        return (text.masked_scatter(mask, images) * torch.arange(24.0).view(6, 4)).sum()

    given = torch.randn(6, 4), torch.randn(2, 4)
    results = []
    for run in (place, torch.compile(place, backend="opentrn")):
        leaves = [x.clone().requires_grad_() for x in given]
        loss = run(*leaves)
        loss.backward()
        results.append((loss.detach(), *(x.grad for x in leaves)))
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(b, a)
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
