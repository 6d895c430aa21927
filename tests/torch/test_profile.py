# SPDX-License-Identifier: Apache-2.0
"""opentrn.profile() around a PyTorch loop."""

import pytest

torch = pytest.importorskip("torch")

import opentrn
import opentrn.torch


def test_profile_counts_what_ran_inside():
    net = torch.nn.Linear(8, 4)
    compiled = torch.compile(net, backend="opentrn")
    compiled(torch.ones(2, 8)).sum().backward()
    with opentrn.profile("trn1", samples=10) as p:
        for _ in range(5):
            compiled(torch.ones(2, 8)).sum().backward()
    assert [(name, runs) for name, runs, _ in p.rows] == [
        ("torch.forward Linear (2x8)", 5),
        ("torch.backward Linear (2x4)", 5),
    ]
    assert p.steps == 5
    assert p.total_us == pytest.approx(sum(5 * r["total_us"] for _, _, r in p.rows))
    assert p.step_us == pytest.approx(p.total_us / 5)
    assert 0 < max(p.engines.values()) <= 1
    assert p.usd_per_million(10) == pytest.approx(p.usd * 1e5)
    text = str(p)
    assert "trn1" in text and "per 1M samples" in text


def test_nothing_ran():
    with opentrn.profile() as p:
        pass
    assert p.steps == 0 and "nothing ran" in str(p)
