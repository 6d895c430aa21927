# SPDX-License-Identifier: Apache-2.0
"""What training programs do around a model: train and eval, accumulation, clipping, autocast,
dropout, checkpointing, channels_last, shapes that change."""

import copy

import pytest

torch = pytest.importorskip("torch")

import models
import torch.nn.functional as F

import opentrn.torch


def _pair(name):
    model = models.make(name)
    ours = copy.deepcopy(model)
    return model, ours, torch.compile(ours, backend="opentrn")


def _grads(model):
    return [p.grad for p in model.parameters()]


def _close(a, b, **tolerances):
    for x, y in zip(a, b, strict=True):
        torch.testing.assert_close(y, x, **(tolerances or {"rtol": 1e-4, "atol": 1e-5}))


def test_train_and_eval_of_one_model(fresh):
    model, ours, compiled = _pair("resnet")
    batch = models.ALL["resnet"][1](torch.Generator().manual_seed(1))
    for m, run in ((model, model), (ours, compiled)):
        m.train()
        models.run(run, batch).backward()
        m.eval()
        with torch.no_grad():
            m.result = models.run(run, batch)
    _close(_grads(model), _grads(ours))
    _close(model.buffers(), ours.buffers())
    _close([model.result], [ours.result])
    assert [g.name for g in fresh.graphs] == ["torch.forward", "torch.backward", "torch.inference"]


def test_accumulation_clipping_schedule():
    def train(model, run):
        opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
        schedule = torch.optim.lr_scheduler.OneCycleLR(opt, 1e-2, total_steps=4)
        g = torch.Generator().manual_seed(1)
        for _ in range(4):
            opt.zero_grad()
            for _ in range(3):
                (models.run(run, models.ALL["mlp"][1](g)) / 3).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            opt.step()
            schedule.step()

    model, ours, compiled = _pair("mlp")
    train(model, model)
    train(ours, compiled)
    _close(model.parameters(), ours.parameters())


def test_autocast(fresh):
    model, ours, compiled = _pair("gpt")
    batch = models.ALL["gpt"][1](torch.Generator().manual_seed(1))
    results = []
    for run in (model, compiled):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = models.run(run, batch)
        loss.backward()
        results.append(loss.item())
    assert results[1] == pytest.approx(results[0], rel=1e-3)
    for a, b in zip(_grads(model), _grads(ours), strict=True):
        assert (a - b).norm() <= 3e-2 * a.norm()
    assert not fresh.found


def test_dropout_is_seeded_and_recomputed():
    batch = models.ALL["gpt"][1](torch.Generator().manual_seed(1))

    def train(checkpoint, seed):
        torch._dynamo.reset()
        torch.manual_seed(0)
        model = models.GPT(dropout=0.5)
        model.checkpoint = checkpoint
        torch.manual_seed(seed)
        loss = torch.compile(model, backend="opentrn")(*batch)
        loss.backward()
        return loss.item(), _grads(model)

    plain, again, other, kept = train(False, 3), train(False, 3), train(False, 4), train(True, 3)
    assert plain[0] == again[0] != other[0]
    assert kept[0] == plain[0]
    _close(plain[1], kept[1], rtol=1e-5, atol=1e-7)


def test_dropout_keeps_its_share():
    drop = torch.compile(lambda x: F.dropout(x, 0.25), backend="opentrn")
    y = drop(torch.ones(100_000))
    assert (y == 0).float().mean().item() == pytest.approx(0.25, abs=0.01)
    assert y.mean().item() == pytest.approx(1, abs=0.02)
    assert not torch.equal(y, drop(torch.ones(100_000)))


def test_random_numbers_have_nothing_in_common():
    """Neighbours, rows above each other and two streams: within four standard deviations of nothing."""
    draw = torch.compile(lambda x: (torch.rand_like(x), torch.rand_like(x)), backend="opentrn")
    one, two = draw(torch.empty(1 << 19))
    assert 0 <= one.min() and one.max() < 1 and one.unique().numel() > 500_000
    n = one.numel()
    for kind in (lambda u: (u - 0.5) * 12**0.5, lambda u: ((u < 0.1).float() - 0.1) / 0.3):
        a, b = kind(one).double(), kind(two).double()
        assert abs(a.mean()) * n**0.5 < 4 and abs((a * b).mean()) * n**0.5 < 4
        for lag in (1, 2, 64, 128, 768, 4096, 65536, 262144):
            assert abs((a[lag:] * a[:-lag]).mean()) * (n - lag) ** 0.5 < 4, lag


def test_strides_as_in_eager():
    conv = torch.nn.Conv2d(3, 4, 3, padding=1).to(memory_format=torch.channels_last)
    x = torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last)
    weight = torch.randn(6, 5)

    def work(x, w):
        return conv(x), w.t() @ w, w.t(), w[1:, ::2] * 2

    want, got = work(x, weight), torch.compile(work, backend="opentrn")(x, weight)
    for a, b in zip(want, got, strict=True):
        torch.testing.assert_close(a, b)
        assert a.stride() == b.stride()
    # Inputs that are parts of larger tensors, and overlapping ones, are read as they are.
    part = torch.randn(8, 10)[1:7, ::2]
    twice = torch.randn(5).expand(6, 5)
    f = torch.compile(lambda a, b: a * b, backend="opentrn")
    torch.testing.assert_close(f(part, twice), part * twice)


def test_mutation_of_a_part_of_a_tensor():
    def work(x):
        x.mul_(2)
        return x.sum()

    base, other = torch.ones(4, 6), torch.ones(4, 6)
    part = base[1:3, ::2]
    total = torch.compile(work, backend="opentrn")(part)
    work(other[1:3, ::2])
    assert torch.equal(base, other) and total == 12


def test_a_second_shape_is_a_second_program(fresh):
    """Sizes are open from the first trace on: each length has a program, and one only."""
    model, ours, compiled = _pair("gpt")
    for length in (16, 8, 16, 8, 16):
        x = torch.randint(0, 64, (2, length), generator=torch.Generator().manual_seed(length))
        torch.testing.assert_close(compiled(x, x), model(x, x))
    assert [g.runs for g in fresh.graphs] == [3, 2]


def test_parameters_stay_where_they_are():
    net = torch.nn.Linear(8, 8)
    opt = torch.optim.AdamW(net.parameters(), lr=0.1)
    step = opentrn.torch.compile_step(net, opt, lambda model, x: model(x).pow(2).mean())
    places = [p.data_ptr() for p in net.parameters()]
    for _ in range(3):
        step(torch.ones(2, 8))
    assert [p.data_ptr() for p in net.parameters()] == places
    assert all(s["exp_avg"].abs().sum() > 0 for s in opt.state.values())
