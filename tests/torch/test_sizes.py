# SPDX-License-Identifier: Apache-2.0
"""Sizes that change: one trace, a program per size, nothing on the CPU."""

import pytest

torch = pytest.importorskip("torch")

import opentrn.torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils._pytree import tree_leaves as leaves_of  # noqa: E402


class Block(nn.Module):
    """Attention over a sequence of any length, dropout, and an average whose divisor is the length."""

    def __init__(self):
        super().__init__()
        self.embed, self.norm = nn.Embedding(50, 16), nn.LayerNorm(16)
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)
        self.head = nn.Linear(16, 50)

    def forward(self, x):
        h = self.embed(x)
        mask = torch.full((x.shape[1], x.shape[1]), float("-inf"), device=x.device).triu(1)
        h = h + self.attention(*[self.norm(h)] * 3, attn_mask=mask, need_weights=False)[0]
        return self.head(h).sum(1) / x.shape[1]


def losses(model, forward, lengths):
    data = torch.Generator().manual_seed(1)
    out = []
    for n in lengths:
        x = torch.randint(0, 50, (2, n), generator=data)
        model.zero_grad()
        loss = nn.functional.cross_entropy(forward(x), x[:, 0])
        loss.backward()
        out += [loss.detach(), model.embed.weight.grad.clone()]
    return out


def test_lengths_share_a_trace(fresh):
    model, lengths = Block(), [3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 4, 7]  # more than Dynamo's limit of 8
    expected = losses(model, model, lengths)
    ours = losses(model, torch.compile(model, backend="opentrn"), lengths)
    for a, b in zip(ours, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=2e-5, atol=1e-6)
    assert not fresh.found and sum(g.runs for g in fresh.graphs if g.name == "torch.forward") == len(lengths)
    assert not [row for row in opentrn.torch.report.recompiles() if __file__ in row[0]]


def traces():
    return torch._dynamo.utils.counters["stats"]["unique_graphs"]


def test_sizes_that_happen_to_be_equal(fresh):
    f = torch.compile(lambda x: x.cumsum(1) * x.shape[0], backend="neuron")
    for shape in ((4, 4), (4, 6), (7, 5), (3, 3)):
        x = torch.randn(*shape)
        torch.testing.assert_close(f(x), x.cumsum(1) * shape[0])
    assert traces() == 1


def test_sizes_that_a_model_asks_about(fresh):
    def function(x, y):
        z = x * 2 if x.shape[0] > 5 else x - 1
        return [z[i] + y for i in range(x.shape[1])], torch.cat([z, z[: x.shape[0] // 2]])

    f = torch.compile(function, backend="opentrn")
    for shape in ((4, 3), (5, 3), (6, 3), (9, 3), (4, 2)):
        x, y = torch.randn(*shape), torch.randn(shape[1])
        for ours, expected in zip(leaves_of(f(x, y)), leaves_of(function(x, y)), strict=True):
            torch.testing.assert_close(ours, expected)
    assert traces() == 3  # as many as its branches


def test_sizes_of_other_backends_and_fixed_ones(fresh):
    function = lambda x: torch.tanh(x) + 1
    for compiled in (
        torch.compile(function, backend="eager"),  # as ever: the second one is traced with its size left open
        torch.compile(function, backend="opentrn", dynamic=False),
    ):
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        for n in (4, 5, 5):
            compiled(torch.ones(n, 3))
        assert traces() == 2


def test_marked(fresh):
    before = len(opentrn.torch.report.recompiles())
    f = torch.compile(lambda x: torch.tanh(x) * x.shape[0] + torch.arange(x.shape[0]).unsqueeze(1), backend="opentrn")
    for n in range(2, 16):
        x = torch.randn(n, 4)
        torch._dynamo.mark_dynamic(x, 0)
        torch.testing.assert_close(f(x), torch.tanh(x) * n + torch.arange(n).unsqueeze(1))
    assert not fresh.found and len(fresh.graphs) == 14
    assert len(opentrn.torch.report.recompiles()) == before  # one trace, from the first size on


def test_random_numbers_and_writes(fresh):
    before = len(opentrn.torch.report.recompiles())
    total = torch.zeros(4)

    @torch.compile(backend="opentrn", dynamic=True)
    def f(x):
        total.add_(x.sum(0))
        return nn.functional.dropout(x, 0.5)

    for n in (64, 65, 66):
        y = f(torch.ones(n, 4))
        assert y.shape == (n, 4) and set(y.unique().tolist()) == {0.0, 2.0}
    assert torch.equal(total, torch.full((4,), 195.0)) and not fresh.found
    assert len(opentrn.torch.report.recompiles()) == before


def test_dropout_does_not_tie_a_trace_to_its_size(fresh):
    model = nn.Sequential(nn.Embedding(50, 8), nn.Dropout(0.2), nn.Linear(8, 4))
    f = torch.compile(lambda x: model(x).sum() + torch.randint(x.shape[1], (2,)).sum(), backend="opentrn")
    before = len(opentrn.torch.report.recompiles())
    for n in range(3, 15):
        f(torch.zeros(2, n, dtype=torch.int64)).backward()
    assert len(opentrn.torch.report.recompiles()) == before
    assert not fresh.found and sum(g.runs for g in fresh.graphs if g.name == "torch.forward") == 12


def test_compile_step_with_a_last_smaller_batch(fresh):
    model = nn.Linear(4, 2)
    step = opentrn.torch.compile_step(model, torch.optim.AdamW(model.parameters()), nn.functional.mse_loss)
    for n in (8, 8, 3, 5, 8):
        assert step(torch.ones(n, 4), torch.zeros(n, 2)).isfinite()
    assert not fresh.found


@pytest.mark.parametrize("dynamic", [None, False])
def test_traces_are_not_slowed_down(monkeypatch, dynamic):
    """By Python's collector, and with sizes left open by torch's memory of what operators gave."""
    import gc

    from opentrn.torch import capture

    seen = []

    def taken(module, inputs):
        seen.append((gc.isenabled(), torch._guards.TracingContext.get().fake_mode.cache_enabled))
        return module.forward

    monkeypatch.setattr("torch._dynamo.backends.common.aot_autograd", lambda **_: taken)
    monkeypatch.setattr(capture, "_usual", capture.make)
    assert torch.compile(lambda x: x.sin(), backend="opentrn", dynamic=dynamic)(torch.zeros(3)).sum() == 0
    assert seen == [(False, dynamic is False)] and gc.isenabled()
