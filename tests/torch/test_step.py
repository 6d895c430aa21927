# SPDX-License-Identifier: Apache-2.0
"""One graph per training step, and the same step as files for `otrn`."""

import copy
import json
import subprocess

import pytest

torch = pytest.importorskip("torch")

import models
from conftest import ROOT
from lacking import gamma, gamma_slope

import opentrn.torch
from opentrn.torch import compile_step, export_step

O = torch.optim
OPTIMIZERS = {
    "adadelta": (O.Adadelta, {"lr": 0.5, "weight_decay": 0.1}),
    "adafactor": (O.Adafactor, {"lr": 1e-2, "weight_decay": 0.1, "d": 1.5}),
    "adagrad": (O.Adagrad, {"lr": 1e-2, "initial_accumulator_value": 0.3, "lr_decay": 0.1}),
    "adamax": (O.Adamax, {"lr": 1e-2, "foreach": True}),
    "adamw": (O.AdamW, {"lr": 1e-2}),
    "amsgrad": (O.Adam, {"lr": 1e-2, "amsgrad": True, "fused": True}),
    "averaged": (O.ASGD, {"lr": 0.1, "t0": 3}),
    "dampened": (O.SGD, {"lr": 0.1, "momentum": 0.9, "dampening": 0.5}),
    "momentum": (O.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    "nadam": (O.NAdam, {"lr": 1e-2, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    "radam": (O.RAdam, {"lr": 1e-2}),
    "rmsprop": (O.RMSprop, {"lr": 1e-3, "momentum": 0.9, "centered": True}),
    "rprop": (O.Rprop, {"lr": 1e-2, "etas": (0.4, 1.3)}),
    "sgd": (O.SGD, {"lr": 0.1, "maximize": True}),
}


def _losses(name, kind, options, compiled):
    model = models.make(name)
    opt = kind(model.parameters(), **options)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 6)
    step = compile_step(model, opt)
    g = torch.Generator().manual_seed(1)
    seen = []
    for _ in range(6):
        batch = models.ALL[name][1](g)
        if compiled:
            loss = step(*batch)
        else:
            opt.zero_grad()
            loss = model(*batch)
            loss.backward()
            opt.step()
        schedule.step()
        seen.append(loss.item())
    return seen, opt.state_dict()


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_one_graph(optimizer, fresh):
    (want, old), (got, new) = (_losses("mlp", *OPTIMIZERS[optimizer], c) for c in (False, True))
    assert models.worst(want, got) < 1e-5
    # With dampening the first step is one of its own, in which the buffers are made.
    assert [g.runs for g in fresh.graphs] == ([1, 5] if optimizer == "dampened" else [6]) and not fresh.found
    assert new["state"].keys() == old["state"].keys()
    for p, state in old["state"].items():
        assert new["state"][p].keys() == state.keys()
        for key, value in state.items():
            # Centered RMSprop divides by a small difference of two averages: single elements scatter.
            torch.testing.assert_close(new["state"][p][key], value, rtol=1e-4, atol=1e-5)


def test_every_optimizer():
    """Each class of torch.optim is compared above, but Muon, which is below, or refused with its reason."""
    every = {kind for kind in vars(O).values() if isinstance(kind, type) and issubclass(kind, O.Optimizer)}
    refused = {O.LBFGS: "as often as the data ask for", O.SparseAdam: "takes sparse gradients"}
    assert every == {kind for kind, _ in OPTIMIZERS.values()} | {O.Muon, O.Optimizer} | set(refused)
    net = torch.nn.Linear(4, 2)
    for kind, reason in refused.items():
        with pytest.raises(TypeError, match=rf"{kind.__name__} .*{reason}.*Compile the two apart"):
            compile_step(net, kind(net.parameters()))


def test_muon_beside_adamw(fresh):
    """As its authors use it: matrices by Muon, the rest by AdamW, here in a step each; counts are as exact as eager's numbers of Python."""
    ran, x, y = [], torch.randn(32, 6), torch.randn(32, 3)
    for compiled in (False, True):
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
        for kind, dims in ((O.RAdam, 1), (O.Muon, 2)):
            opt = kind([p for p in net.parameters() if p.dim() == dims], lr=1e-2)
            step = compile_step(net, opt, torch.nn.functional.mse_loss)
            for _ in range(7):
                if compiled:
                    step(x, y)
                    continue
                opt.zero_grad()
                torch.nn.functional.mse_loss(net(x), y).backward()
                opt.step()
        ran.append([p.detach() for p in net.parameters()])
    for want, got in zip(*ran, strict=True):
        bits = 6 if want.dim() == 2 else 20  # Muon turns its matrices in bf16
        assert (got - want).abs().max() <= 2.0**-bits * 7e-2  # of seven steps
    assert [g.runs for g in fresh.graphs] == [7, 7]


def test_clipped(fresh):
    """max_norm is torch.nn.utils.clip_grad_norm_ between backward and step; plain SGD, so that a scale shows."""
    ran, g = [], torch.Generator().manual_seed(1)
    batch = models.ALL["mlp"][1](g)
    for compiled in (False, True):
        model = models.make("mlp")
        opt = torch.optim.SGD(model.parameters(), lr=1.0)
        step = compile_step(model, opt, max_norm=0.05)
        for _ in range(3):
            if compiled:
                step(*batch)
                continue
            opt.zero_grad()
            model(*batch).backward()
            assert torch.nn.utils.clip_grad_norm_(model.parameters(), 0.05) > 0.1  # else nothing is clipped
            opt.step()
        ran.append([p.detach() for p in model.parameters()])
    for want, got in zip(*ran, strict=True):
        torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-6)
    assert [g.runs for g in fresh.graphs] == [3]
    with pytest.raises(ValueError, match="max_norm=-1.0: gradients are clipped to a norm above 0"):
        compile_step(model, opt, max_norm=-1.0)


def test_many_exports_in_one_process(tmp_path):
    """A batch size each: files have the sizes of their example, and Dynamo does not give up at the ninth."""
    for n in range(2, 13):
        model = torch.nn.Linear(4, 4)
        batch = torch.zeros(n, 4), torch.zeros(n, 4)
        told = export_step(model, torch.optim.AdamW(model.parameters()), batch, tmp_path, loss_fn=torch.nn.functional.mse_loss, inputs=False, max_norm=1.0)
        assert [a["shape"] for a in told["arguments"] if a["kind"] == "input"] == [[n, 4]] * 2


def test_softmax_of_masked_rows():
    """A query that sees no key gets zeros, and its gradients are none; nobody looks at the scores a second time for it."""
    from opentrn.torch.own_decompositions import OWN

    g = torch.Generator().manual_seed(2)
    for kind in (torch.float32, torch.bfloat16):
        x = torch.randn(3, 5, 7, generator=g).to(kind)
        x[0, 1], x[2, 4, 3:], x[1, 2, 0] = -torch.inf, -torch.inf, torch.nan
        want, got = (f(x, -1) for f in (torch.ops.aten._safe_softmax, OWN[torch.ops.aten._safe_softmax.default]))
        torch.testing.assert_close(got, want, equal_nan=True)
        assert (got[0, 1] == 0).all() and got.dtype == kind
    shape = torch.compile(torch.nn.functional.scaled_dot_product_attention, backend="opentrn")
    q, k, v = (torch.randn(2, 3, 8, 4, generator=g, requires_grad=True) for _ in range(3))
    mask = torch.ones(8, 8, dtype=torch.bool).tril()
    mask[5] = False
    ran = []
    for f in (torch.nn.functional.scaled_dot_product_attention, shape):
        out = f(q, k, v, attn_mask=mask)
        ran.append([out, *torch.autograd.grad(out.square().sum(), (q, k, v))])
    for want, got in zip(*ran, strict=True):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("cast", [False, True], ids=["bf16", "autocast"])
def test_attention_of_bf16(cast):
    """Products are of bf16, scores and softmax fp32: with large scores, too, as close to fp64 as the CPU's kernel is."""

    def attend(q, k, v, **how):
        with torch.autocast("cpu", torch.bfloat16, enabled=cast):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, **how)

    g = torch.Generator().manual_seed(2)
    ran = torch.compile(attend, backend="opentrn")
    for how in ({"is_causal": True}, {"attn_mask": torch.randn(32, 32, generator=g), "scale": 0.3}):
        whole = [(x * torch.randn(2, 4, 32, 16, generator=g)).bfloat16() for x in (8, 3, 3)]
        found = []
        for f, kind in ((torch.nn.functional.scaled_dot_product_attention, torch.float64), (attend, None), (ran, None)):
            given = [t.to(kind or (torch.float32 if cast else torch.bfloat16)).requires_grad_() for t in whole]
            how = {k: v.to(given[0].dtype) if k == "attn_mask" else v for k, v in how.items()}
            out = f(*given, **how)
            found.append([t.double() for t in (out, *torch.autograd.grad(out.double().square().sum(), given))])
        far = [[float((x - y).norm() / y.norm()) for x, y in zip(own, found[0])] for own in found[1:]]
        assert all(ours < 1.5 * cpu for cpu, ours in zip(*far)), far


def test_tied_weights_and_buffers(fresh):
    for name in ("gpt", "resnet"):
        want, got = (
            _losses(name, torch.optim.AdamW, {"lr": 1e-3}, compiled)[0]
            for compiled in (False, True)
        )
        assert models.worst(want, got) < 1e-5


def test_loss_functions():
    net = torch.nn.Linear(4, 3)
    x, y = torch.randn(5, 4), torch.randint(0, 3, (5,))
    want = torch.nn.functional.cross_entropy(net(x), y).item()
    for loss_fn in (
        torch.nn.functional.cross_entropy,
        lambda model, x, y: torch.nn.functional.cross_entropy(model(x), y),
    ):
        own = copy.deepcopy(net)
        step = compile_step(own, torch.optim.SGD(own.parameters(), lr=0.1), loss_fn)
        assert step(x, y).item() == pytest.approx(want, rel=1e-6)
        assert step(x, y).item() < want


def test_export(tmp_path):
    model = models.make("mlp")
    before = copy.deepcopy(model.state_dict())
    opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
    batch = models.ALL["mlp"][1](torch.Generator().manual_seed(1))
    manifest = export_step(model, opt, batch, tmp_path)
    for key, value in model.state_dict().items():
        assert torch.equal(value, before[key])  # exporting runs nothing
    assert json.loads((tmp_path / "manifest.json").read_text()) == manifest
    kinds = [a["kind"] for a in manifest["arguments"]]
    assert kinds.count("parameter") == len(before) and kinds.count("input") == 2
    assert kinds.count("learning_rate") == 1 and kinds.count("state") == 3 * len(before)
    assert [r["kind"] for r in manifest["results"]].count("loss") == 1
    otrn = ROOT / "build" / "otrn"
    files = ",".join(str(tmp_path / a["file"]) for a in manifest["arguments"])
    at = [r["kind"] for r in manifest["results"]].index("loss")
    out = subprocess.run(
        [otrn, "run", tmp_path / "step.mlir", f"--input={files}"], capture_output=True, text=True
    )
    assert out.returncode == 0, out.stderr
    line = next(x for x in out.stdout.splitlines() if x.startswith(f"result {at}:"))
    assert float(line.split(":")[-1]) == pytest.approx(model(*batch).item(), rel=1e-5)
    assert (
        subprocess.run([otrn, "prof", tmp_path / "step.mlir"], capture_output=True).returncode == 0
    )


def test_what_the_device_lacks_is_named_with_its_line(tmp_path):
    """In the error, in the manifest, and by `otrn check` on what strict=False writes."""
    net = torch.nn.Linear(4, 4)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)

    def loss(model, x):
        y = gamma(model(x).abs() + 0.5)
        return (y * gamma_slope(x + 0.5)).sum()

    line = loss.__code__.co_firstlineno + 1
    with pytest.raises(Exception, match=rf"gamma\.default at .*test_step\.py:{line} in loss"):
        export_step(net, opt, (torch.ones(2, 4),), tmp_path, loss)
    manifest = export_step(net, opt, (torch.ones(2, 4),), tmp_path, loss, strict=False)
    told = {(row["operator"], row["place"][1]) for row in manifest["on_the_cpu"]}
    assert ("opentrn_tests.gamma.default", line) in told
    assert ("opentrn_tests.gamma_slope.default", line + 1) in told
    out = subprocess.run(
        [ROOT / "build" / "otrn", "check", tmp_path / "step.mlir"], capture_output=True, text=True
    )
    assert out.returncode
    said = out.stdout + out.stderr
    assert f"test_step.py:{line}:1" in said and "@opentrn_tests.gamma.default" in said
    assert f"@opentrn_tests.gamma_slope.default at {__file__}:{line + 1}" in said


def test_gradients_stand_at_the_users_lines(tmp_path):
    """Not in our own step.py: each gradient is at the line of the operation it belongs to."""
    import inspect

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = torch.nn.Linear(32, 64), torch.nn.Linear(64, 8)

        def forward(self, x):
            h = torch.relu(self.a(x))
            return self.b(h)

    def criterion(whatever, x, y):
        return torch.nn.functional.cross_entropy(whatever(x), y)

    net = Net()
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    batch = (torch.randn(16, 32), torch.randint(8, (16,)))
    opentrn.torch.export_step(net, opt, batch, tmp_path, criterion)
    text = (tmp_path / "step.mlir").read_text()
    assert "/step.py" not in text and 'jax.arg_info = "a.weight"' in text
    lines, first = inspect.getsourcelines(Net.forward)
    at = {text.strip(): first + i for i, text in enumerate(lines)}
    products = [row for row in text.splitlines() if "dot_general" in row]
    assert len(products) == 5  # two forward, their weights' gradients, and that of h
    count = lambda line: sum(f'{__file__}":{line}:' in row for row in products)
    assert count(at["h = torch.relu(self.a(x))"]) == 2 and count(at["return self.b(h)"]) == 3
    out = subprocess.run([ROOT / "build" / "otrn", "prof", tmp_path / "step.mlir"], capture_output=True, text=True, check=True)
    assert "test_step.py:" in out.stdout and " step.py:" not in out.stdout


class _Criterion:
    def __call__(self, f, batch):
        return torch.nn.functional.mse_loss(f(batch["x"]), batch["y"])


def _named(f, *, x, y):
    return torch.nn.functional.mse_loss(f(x), y)


def _only_named(*, f, x, y):
    return torch.nn.functional.mse_loss(f(x), y)


FORMS = {  # how the loss is written: (function, positional, named)
    "three parameters": (lambda f, x, y: ((f(x) - y) ** 2).mean(), "xy", ""),
    "prediction and target": (lambda a, b: ((a - b) ** 2).mean(), "xy", ""),
    "a target with defaults": (torch.nn.functional.mse_loss, "xy", ""),
    "a module": (torch.nn.MSELoss(), "xy", ""),
    "an object and a dictionary": (_Criterion(), "d", ""),
    "named arguments": (_named, "", "xy"),
    "all of them named": (_only_named, "", "xy"),
    "any number": (lambda f, *batch: ((f(batch[0]) - batch[1]) ** 2).mean(), "xy", ""),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_a_loss(form):
    loss_fn, places, names = FORMS[form]
    torch.manual_seed(0)
    net = torch.nn.Linear(4, 2)
    values = {"x": torch.randn(8, 4), "y": torch.randn(8, 2)}
    values["d"] = {"x": values["x"], "y": values["y"]}
    want = torch.nn.functional.mse_loss(net(values["x"]), values["y"]).item()
    step = opentrn.torch.compile_step(net, torch.optim.SGD(net.parameters(), lr=0.1), loss_fn)
    got = step(*[values[k] for k in places], **{k: values[k] for k in names})
    assert got.item() == pytest.approx(want, rel=1e-5)


def test_mistakes_in_calls():
    net = torch.nn.Linear(4, 2)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    make = opentrn.torch.compile_step
    for call, kind, text in (
        (lambda: make("net", opt), TypeError, "first argument is the model, a torch.nn.Module, not str"),
        (lambda: make(net, net), TypeError, "second argument is the optimizer.* not Linear"),
        (lambda: make(net, opt, 3), TypeError, "loss_fn is a function, a module or None, not int"),
        (lambda: make(net, type("Mine", (torch.optim.Optimizer,), {})(net.parameters(), {})), TypeError, "Mine is none of them. Compile the two apart"),
        (lambda: make(torch.nn.Linear(4, 2), opt), ValueError, "none of this model's parameters"),
        (lambda: make(net, opt, lambda a: a)(torch.ones(1, 4), torch.ones(1, 2)), TypeError, "fits neither"),
    ):
        with pytest.raises(kind, match=text) as caught:
            call()
        assert "\n" not in str(caught.value)
    with pytest.raises(Exception, match="no options for this backend .targt.*OTRN_"):
        torch.compile(net, backend="opentrn", options={"targt": "trn1"})(torch.ones(1, 4))


def test_names_of_modules(tmp_path):
    """What a module computes carries its path, gradients too: profiles group by it."""

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.h = torch.nn.ModuleList(torch.nn.Linear(32, 32) for _ in range(2))

        def forward(self, x):
            for layer in self.h:
                x = torch.tanh(layer(x))
            return x

    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    step = opentrn.torch.compile_step(net, optimizer, lambda model, x: model(x).square().mean())
    with opentrn.profile() as p:
        step(torch.randn(64, 32))
    p.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "<td>model/h/0" in page and "<td>model/h/1" in page
