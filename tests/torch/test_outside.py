# SPDX-License-Identifier: Apache-2.0
"""Nothing silent: profile(), explain() and the page tell what no device program contains."""

import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

import opentrn  # noqa: E402
import opentrn.torch  # noqa: E402
from torch import nn  # noqa: E402


@torch._dynamo.disable
def not_captured(x, w):
    return x @ w  # 2*4*3*3 FLOP forward


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(6, 3), nn.Linear(3, 2)
        self.middle = nn.Parameter(torch.eye(3))

    def forward(self, x):
        return self.last(not_captured(self.first(x), self.middle))


def train(model, compiled, sizes):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for n in sizes:
        opt.zero_grad()
        compiled(torch.ones(n, 6)).square().mean().backward()
        opt.step()


def test_operators_outside_of_programs_are_told(tmp_path):
    model = Net()
    with opentrn.profile("trn2") as p:
        train(model, torch.compile(model, backend="opentrn"), [4, 4, 4])
    forward = [o for o in p.outside if o.operator == "aten.mm.default" and o.place.endswith("in not_captured")]
    assert [(o.runs, o.flops) for o in forward] == [(3, 3 * 72)]
    assert f"{__file__}:" in forward[0].place
    backward = [o for o in p.outside if "backward pass" in o.why and o.flops]
    assert sum(o.flops for o in backward) == 3 * 2 * 72
    assert p.steps == 3 and "3 steps (of the optimizer)" in str(p)
    assert "modelled times do not contain them" in str(p) and "aten.mm.default at" in str(p)
    assert "aten.mm.default at" in opentrn.torch.explain()
    p.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "Not in the modelled time" in page and "in not_captured" in page
    assert not any(o.operator.startswith(("aten.addmm", "aten._to_copy")) for o in p.outside)  # the programs' own, and ours


def test_a_profile_ends_and_others_are_its_own():
    with opentrn.profile() as first, opentrn.profile() as second:
        torch.ones(3) + 1
    torch.ones(3) * 2
    with opentrn.profile() as third:
        torch.ones(3) - 1
    told = [{o.operator for o in p.outside} for p in (first, second, third)]
    assert told == [{"aten.ones.default", "aten.add.Tensor"}] * 2 + [{"aten.ones.default", "aten.sub.Tensor"}]
    assert "nothing ran on the device" in str(third) and "aten.sub.Tensor" in str(third)


def test_the_limit_of_recompiles_is_told():
    f = torch.compile(nn.Linear(4, 4), backend="opentrn", dynamic=False)
    with opentrn.profile("trn2") as p:
        for n in range(1, 13):
            f(torch.ones(n, 4))
    assert p.steps == 8  # programs of one function; the other four calls were eager
    assert sum(o.runs for o in p.outside if o.operator == "aten.addmm.default") == 4
    assert "recompile limit of 8 reached" in str(p) and "recompile limit of 8 reached" in opentrn.torch.explain()


def test_sizes_of_one_function_are_steps_of_it():
    model = Net()
    with opentrn.profile("trn2") as p:
        f = torch.compile(lambda x: torch.tanh(x @ x.T), backend="opentrn")
        for n in range(2, 14):
            f(torch.ones(n, 6))
    assert p.steps == 12
    del model


def test_modules_without_a_program_are_told():
    class Box(nn.Sequential):
        forward = torch.compiler.disable(nn.Sequential.forward)  # Dynamo passes over it

    idle = Box(nn.Linear(3, 3), nn.Tanh())
    idle.compile(backend="opentrn")
    with opentrn.profile() as p:
        idle(torch.ones(2, 3))
    assert not p.ran and "Box has no device program" in str(p)
    assert {"aten.addmm.default", "aten.tanh.default"} <= {o.operator for o in p.outside}


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


def _numbers(x):
    for i in range(3):
        yield x * i


def _branch(x):
    return x + 1 if x.sum() > 0 else x - 1


def _broken(x):
    y = x * 2
    torch._dynamo.graph_break()
    return y + 1


@pytest.mark.parametrize("function", [lambda x: sum(_numbers(x)), _branch, Doubled.apply, _broken, lambda x: x.tolist()])
def test_explain_has_words_for_whatever_is_captured(function):
    f = torch.compile(function, backend="opentrn")
    with opentrn.profile() as p:
        f(torch.ones(3, requires_grad=True))
        f(torch.ones(4, requires_grad=True))
    assert str(p) and "device programs" in opentrn.torch.explain()


def test_programs_are_named(fresh):
    def scaled(x, w):
        return x * w

    f = torch.compile(scaled, backend="opentrn")
    for n in (2, 3, 4):
        f(torch.ones(n, 5), torch.ones(5))
    line = scaled.__code__.co_firstlineno + 1
    assert [g.title for g in fresh.graphs] == [
        f"torch.inference scaled at test_outside.py:{line} ({n}x5, 5)" for n in (2, 3, 4)
    ]


def test_a_report_file_counts_from_the_beginning(tmp_path):
    code = "import torch, opentrn.torch; torch.ones(4, 4) @ torch.ones(4, 4)"
    env = os.environ | {"OTRN_TORCH_REPORT": str(tmp_path / "report")}
    subprocess.run([sys.executable, "-c", code], env=env, check=True)
    assert "aten.mm.default" in (tmp_path / "report").read_text()


def test_a_report_file_of_a_script_that_begins_in_a_transform(tmp_path):
    """The device's first operator inside of torch.func: what looks at operators was there before."""
    code = """if True:
        import torch
        x, w = torch.randn(5, 3).to("neuron"), torch.ones(3, 2, requires_grad=True).to("neuron")
        torch.func.vmap(torch.func.grad(lambda a: (a @ w).sin().sum()))(x)
        torch.ones(4, 4) @ torch.ones(4, 4)
    """
    env = os.environ | {"OTRN_TORCH_REPORT": str(tmp_path / "report")}
    subprocess.run([sys.executable, "-c", code], env=env, check=True)
    told = (tmp_path / "report").read_text()
    assert "eager operators, each a program" in told
    assert "aten.mm.default at" in told
