# SPDX-License-Identifier: Apache-2.0
"""Operators without a lowering, and things that go wrong: told clearly, tensors intact."""

import signal
import threading

import pytest

torch = pytest.importorskip("torch")

import opentrn.torch
from opentrn.torch import settings


def with_svd(x, w):
    y = x @ w
    s = torch.linalg.svdvals(y)  # runs on the CPU
    return (y * s.sum()).sum()


def test_a_cpu_operator_between_device_programs(fresh):
    x, w = torch.randn(4, 3), torch.randn(3, 3, requires_grad=True)
    v = w.detach().clone().requires_grad_()
    want = with_svd(x, w)
    got = torch.compile(with_svd, backend="opentrn")(x, v)
    want.backward()
    got.backward()
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(v.grad, w.grad, rtol=1e-3, atol=1e-4)
    told = [f for f in fresh.found if "svd" in f.operator]
    assert told and told[0].reason == "no lowering"
    assert told[0].place[0].endswith("test_fallbacks.py") and told[0].place[2] == "with_svd"
    assert fresh.fallbacks[told[0]] == 1
    assert "svd" in opentrn.torch.explain()


def test_strict_makes_it_an_error(monkeypatch):
    monkeypatch.setattr(settings, "strict", True)
    x, w = torch.randn(4, 3), torch.randn(3, 3)
    with pytest.raises(Exception, match=r"svd.*test_fallbacks.py:\d+ in with_svd"):
        torch.compile(with_svd, backend="opentrn")(x, w)


def test_mutations_come_after_everything_that_can_fail(monkeypatch):
    state = torch.ones(3)

    def update(state, x):
        state.add_(1)
        return torch.linalg.inv(x) @ state  # raises for a singular matrix

    compiled = torch.compile(update, backend="opentrn")
    compiled(state, torch.eye(3))
    assert torch.equal(state, torch.full((3,), 2.0))
    with pytest.raises(Exception, match="singular"):
        compiled(state, torch.zeros(3, 3))
    assert torch.equal(state, torch.full((3,), 2.0))


def test_an_exception_in_a_hook_leaves_the_model_whole():
    net = torch.nn.Linear(4, 4)
    before = net.weight.detach().clone()
    compiled = torch.compile(net, backend="opentrn")
    y = compiled(torch.ones(2, 4))
    y.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        y.sum().backward()
    assert torch.equal(net.weight, before) and net.weight.grad is None
    compiled(torch.ones(2, 4)).sum().backward()
    torch.testing.assert_close(net.weight.grad, torch.full((4, 4), 2.0))


def test_ctrl_c_during_a_step():
    net = torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(4)))
    opt = torch.optim.SGD(net.parameters(), lr=0.0)  # a step changes nothing, whole or not at all
    step = opentrn.torch.compile_step(net, opt, lambda model, x: model(x).mean())
    x = torch.randn(64, 256)
    first = step(x).item()
    timer = threading.Timer(0.1, lambda: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        for _ in range(10000):
            step(x)
    timer.join()
    assert step(x).item() == first
    assert all(p.isfinite().all() for p in net.parameters())


def test_breaks_and_recompiles_are_told(fresh):
    def cut(x):
        y = x * 2
        print(end="")
        torch._dynamo.graph_break()
        return y + 1

    f = torch.compile(cut, backend="opentrn")
    f(torch.ones(3))
    f(torch.ones(4))
    text = opentrn.torch.explain()
    assert "graph break" in text and "recompile" in text
    assert "test_fallbacks.py" in text


def test_sizes_not_known_run_on_the_cpu(fresh):
    f = torch.compile(lambda x: torch.tanh(x).sum(0), backend="opentrn", dynamic=True)
    for n in (5, 7):
        x = torch.randn(n, 4)
        torch.testing.assert_close(f(x), torch.tanh(x).sum(0))
    assert fresh.found and all("sizes" in f.reason for f in fresh.found)
