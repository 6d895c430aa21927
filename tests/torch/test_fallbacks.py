# SPDX-License-Identifier: Apache-2.0
"""Operators without a lowering, and things that go wrong: told clearly, tensors intact."""

import copy
import signal
import threading

import pytest

torch = pytest.importorskip("torch")

from lacking import gamma

import opentrn.torch
from opentrn.torch import program, settings


def with_gamma(x, w):
    y = x @ w
    s = gamma(y.abs() + 0.5)  # runs on the CPU
    return (y * s.sum()).sum()


def test_a_cpu_operator_between_device_programs(fresh):
    x, w = torch.randn(4, 3), torch.randn(3, 3, requires_grad=True)
    v = w.detach().clone().requires_grad_()
    want = with_gamma(x, w)
    got = torch.compile(with_gamma, backend="opentrn")(x, v)
    assert list(fresh.fallbacks.values()) == [1]
    want.backward()
    got.backward()
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(v.grad, w.grad, rtol=1e-3, atol=1e-4)
    told = [f for f in fresh.found if "gamma" in f.operator]
    assert told and told[0].reason == "no lowering"
    assert told[0].place[0].endswith("test_fallbacks.py") and told[0].place[2] == "with_gamma"
    assert "gamma" in opentrn.torch.explain()


def test_each_node_is_lowered_once(monkeypatch):
    """Where nothing speaks against the device; else lowerings are tried before the graph is cut."""
    seen, lower = [], program.lower_node
    monkeypatch.setattr(program, "lower_node", lambda b, node, values: seen.append(node) or lower(b, node, values))
    torch.compile(lambda x: (x.exp() @ x).relu(), backend="opentrn")(torch.randn(3, 3))
    assert len(seen) == len(set(seen)) > 2


def test_a_lowering_that_refuses_is_a_reason_too(fresh):
    def pick(x, at):
        return torch.gather(x * 2, 0, at, sparse_grad=True) + 1

    x, at = torch.randn(4, 3), torch.tensor([[0, 1, 3]])
    torch.testing.assert_close(torch.compile(pick, backend="opentrn")(x, at), pick(x, at))
    assert [f.reason for f in fresh.found] == ["a gather whose gradient is sparse"]
    assert list(fresh.fallbacks.values()) == [1]


def test_strict_makes_it_an_error(monkeypatch):
    monkeypatch.setattr(settings, "strict", True)
    x, w = torch.randn(4, 3), torch.randn(3, 3)
    with pytest.raises(Exception, match=r"gamma.*test_fallbacks.py:\d+ in with_gamma"):
        torch.compile(with_gamma, backend="opentrn")(x, w)


def test_training_through_a_cpu_operator_and_new_shapes(fresh):
    """An operator the device lacks, and batches whose size changes: eager's losses and
    parameters."""

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.down = torch.nn.Linear(6, 8), torch.nn.Linear(8, 1)

        def forward(self, x):
            return self.down(gamma(self.up(x).abs() + 0.5)).pow(2).mean()

    def train(model, run):
        opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
        g = torch.Generator().manual_seed(1)
        seen = []
        for rows in (4, 4, 3, 4, 7, 3):
            opt.zero_grad()
            loss = run(torch.randn(rows, 6, generator=g))
            loss.backward()
            opt.step()
            seen.append(loss.item())
        return seen

    model = Net()
    ours = copy.deepcopy(model)
    want, got = train(model, model), train(ours, torch.compile(ours, backend="opentrn"))
    assert got == pytest.approx(want, rel=1e-5)
    for a, b in zip(model.parameters(), ours.parameters(), strict=True):
        torch.testing.assert_close(b, a, rtol=1e-4, atol=1e-6)
    assert sum(f.operator.endswith("gamma.default") for f in fresh.found) == 1
    again = [row for row in opentrn.torch.report.recompiles() if row[0].startswith(f"forward at {__file__}")]
    assert not again  # sizes are open from the first trace on


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


def _refuse(*_):
    raise ZeroDivisionError("the user's own")


HOOKS = {  # where a user's function may raise
    "result": lambda net, y: y.register_hook(_refuse),
    "weight": lambda net, y: net.weight.register_hook(_refuse),
    "accumulated": lambda net, y: net.weight.register_post_accumulate_grad_hook(_refuse),
}


@pytest.mark.parametrize("where", HOOKS)
def test_an_exception_in_a_hook_leaves_the_model_whole(where):
    net = torch.nn.Linear(4, 4)
    before = net.weight.detach().clone()
    compiled = torch.compile(net, backend="opentrn")
    y = compiled(torch.ones(2, 4))
    handle = HOOKS[where](net, y)
    with pytest.raises(ZeroDivisionError, match="the user's own"):
        y.sum().backward()
    assert torch.equal(net.weight, before)
    handle.remove()
    net.zero_grad()
    compiled(torch.ones(2, 4)).sum().backward()
    torch.testing.assert_close(net.weight.grad, torch.full((4, 4), 2.0))


def _trainers(name):
    """A model, its optimizer and a function that makes one step on the device."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(*(torch.nn.Linear(128, 128) for _ in range(3)))
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
    if name == "compile_step":
        loss = lambda model, x: model(x).square().mean()  # noqa: E731
        return net, opt, opentrn.torch.compile_step(net, opt, loss)
    compiled = torch.compile(net, backend="opentrn")
    update = torch.compile(opt.step, backend="opentrn")

    def step(x):
        opt.zero_grad()
        compiled(x).square().mean().backward()
        update()

    return net, opt, step


@pytest.mark.parametrize("name", ["compile_step", "three programs"])
def test_ctrl_c_during_a_step(name):
    """Each step has happened or has not: the parameters are those after a whole number of steps."""
    x = torch.randn(64, 128, generator=torch.Generator().manual_seed(1))
    net, opt, step = _trainers(name)
    step(x)
    timer = threading.Timer(0.3, lambda: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        for _ in range(100_000):
            step(x)
    timer.join()
    done = int(opt.state[net[0].weight]["step"])
    assert done > 1
    other, _, again = _trainers(name)
    for _ in range(done):
        again(x)
    for a, b in zip(net.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)
    step(x)  # and on it goes
    assert int(opt.state[net[0].weight]["step"]) == done + 1
    assert isinstance(opt.param_groups[0]["lr"], float)


def test_breaks_and_recompiles_are_told(tmp_path, monkeypatch):
    def cut(x):
        y = x * 2
        print(end="")
        torch._dynamo.graph_break()
        return y + 1

    f = torch.compile(cut, backend="opentrn")
    f(torch.ones(3))
    f(torch.ones(4))  # another size is the same trace's
    assert "recompile" not in opentrn.torch.explain()
    f(torch.ones(4, 4))
    text = opentrn.torch.explain()
    assert "graph break" in text and "recompile" in text
    assert "test_fallbacks.py" in text
    monkeypatch.setattr(settings, "report_file", str(tmp_path / "report"))
    opentrn.torch.report._write_report()  # as at the end of the process
    assert (tmp_path / "report").read_text() == text + "\n"


def test_a_compiled_module_without_a_program_is_named():
    """Dynamo is told to pass over the one module's code; the other, one of torch's own containers, has a program."""

    class Idle(torch.nn.Module):
        @torch.compiler.disable
        def forward(self, x):
            return x.tanh()

    idle = Idle()
    idle.compile(backend="opentrn")
    idle(torch.ones(2, 3))
    text = opentrn.torch.explain()
    assert "compiled modules without a device program" in text and "  Idle:" in text, text
    known = text.count("torch.compile found no code")
    works = torch.compile(torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Sigmoid()), backend="opentrn")
    works(torch.ones(2, 3))
    assert opentrn.torch.explain().count("torch.compile found no code") == known
