# SPDX-License-Identifier: Apache-2.0
"""The device `neuron`: tensors, eager operators as programs, compiled graphs on its tensors."""

import gc
import io
import os
import pathlib
import shutil
import subprocess
import sys
import warnings

import pytest

torch = pytest.importorskip("torch")
if not shutil.which("g++"):
    pytest.skip("the device needs a C++ compiler", allow_module_level=True)
if torch._C._get_privateuse1_backend_name() != "neuron":
    pytest.skip("another package has the device", allow_module_level=True)

import torch.nn.functional as F  # noqa: E402
import opentrn.torch  # noqa: E402
from opentrn.neuron import eager  # noqa: E402
from torch import nn  # noqa: E402


def mlp():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.LayerNorm(32), nn.Dropout(0.1), nn.Linear(32, 4))


def train(device, backend=None, optimizer=torch.optim.AdamW, make=mlp, **given):
    model = make().to(device)
    f = torch.compile(model, backend=backend) if backend else model
    opt = optimizer(model.parameters(), lr=1e-2, **given)
    data = torch.Generator().manual_seed(1)
    losses = []
    for _ in range(5):
        x, y = torch.randn(16, 8, generator=data).to(device), torch.randint(0, 4, (16,), generator=data).to(device)
        opt.zero_grad()
        loss = F.cross_entropy(f(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        losses.append(loss.item())
    return torch.tensor(losses)


def no_dropout():
    model = mlp()
    model[3].p = 0.0
    return model


def test_eager_training_draws_and_computes_what_the_cpu_does():
    before = {h.name: h.runs for h in eager.HOST}
    torch.testing.assert_close(train("neuron"), train("cpu"), rtol=1e-6, atol=1e-6)
    on_host = {h.name for h in eager.HOST if h.runs > before.get(h.name, 0)}
    assert on_host <= {"aten.native_dropout.default"}  # dropout's numbers are the host generator's


@pytest.mark.parametrize("backend", ["neuron", "opentrn"])
def test_compiled_on_its_tensors(backend, fresh):
    expected = train("cpu", make=no_dropout)
    torch.testing.assert_close(train("neuron", backend, make=no_dropout), expected, rtol=1e-6, atol=1e-6)
    assert {"torch.forward", "torch.backward"} <= {g.name for g in fresh.graphs if g.runs == 5}
    assert not fresh.found


@pytest.mark.parametrize("kind,given", [
    ("SGD", {"momentum": 0.9}), ("Adam", {"fused": True}), ("AdamW", {"fused": True, "amsgrad": True}), ("RMSprop", {}),
    ("SGD", {"momentum": 0.9, "nesterov": True, "fused": True}), ("Adagrad", {"fused": True}), ("NAdam", {}),
])  # fmt: skip
def test_optimizers_need_one_program_for_all_steps(kind, given):
    optimizer = getattr(torch.optim, kind)
    train("neuron", optimizer=optimizer, make=no_dropout, **given)
    count = len(eager.PROGRAMS)
    ours = train("neuron", optimizer=optimizer, make=no_dropout, **given)
    assert len(eager.PROGRAMS) == count
    torch.testing.assert_close(ours, train("cpu", optimizer=optimizer, make=no_dropout, **given), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("cell", [nn.LSTM, nn.GRU])
def test_recurrent_cells_and_convolutions(cell):
    def gradients(device):
        torch.manual_seed(0)
        net, rnn = nn.Conv1d(3, 4, 3).to(device), cell(4, 5).to(device)
        out = rnn(net(torch.randn(2, 3, 6).to(device)).permute(2, 0, 1))[0]
        out.square().sum().backward()
        return [p.grad.cpu() for p in (*net.parameters(), *rnn.parameters())]

    for ours, expected in zip(gradients("neuron"), gradients("cpu"), strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-5, atol=1e-6)


def test_views_share_memory_and_in_place_operators_see_them():
    x = torch.arange(12.0).reshape(3, 4).to("neuron")
    x.t()[1] += 10
    x.add_(x[:, :1])  # reads the memory it writes
    y = torch.arange(12.0).reshape(3, 4)
    y.t()[1] += 10
    y.add_(y[:, :1].clone())
    assert torch.equal(x.cpu(), y)
    assert x.view(-1)[1:].data_ptr() == x.data_ptr() + 4
    assert torch.equal(x[x > 10].cpu(), y[y > 10])
    assert torch.equal(torch.topk(x, 2).indices.cpu(), torch.topk(y, 2).indices)


def test_numbers_beside_tensors_have_torchs_types():
    for a in (torch.tensor([1, 2]), torch.tensor(3.0), torch.tensor([True]), torch.tensor([1.5], dtype=torch.bfloat16)):
        for number in (2, 0.1, True):
            ours, expected = a.to("neuron") * number, a * number
            assert ours.dtype == expected.dtype and torch.equal(ours.cpu(), expected)


def test_saved_and_loaded():
    x = torch.arange(6.0).reshape(2, 3).to("neuron")
    file = io.BytesIO()
    torch.save({"x": x, "t": x.t()}, file)
    for where in ("cpu", "neuron", None):
        file.seek(0)
        back = torch.load(file, map_location=where)
        assert back["x"].device.type == (where or "neuron")
        assert torch.equal(back["t"].cpu(), x.t().cpu())


def test_tied_weights_stay_tied():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)
            self.b.weight = self.a.weight

    model = Tied().to("neuron")
    assert model.a.weight is model.b.weight and model.a.weight.is_neuron


def test_autocast():
    x, w = torch.randn(4, 8).to("neuron"), torch.randn(8, 8).to("neuron")
    with torch.autocast("neuron", torch.bfloat16):
        y = x @ w
        assert y.dtype == torch.bfloat16
        assert F.softmax(y, -1).dtype == torch.float32


def test_autocast_leaves_cross_entropy_whole():
    logits, labels = torch.randn(16, 4).bfloat16(), torch.randint(0, 4, (16,))
    with torch.autocast("neuron", dtype=torch.bfloat16):
        loss = F.cross_entropy(logits.to("neuron"), labels.to("neuron"))
    assert loss.item() == pytest.approx(F.cross_entropy(logits.double(), labels).item(), rel=1e-6)


def test_a_gradient_scaler_is_the_devices_work():
    scales = {}
    for device in ("neuron", "cpu"):
        before = {id(h): h.runs for h in eager.HOST}
        weight = torch.full((3,), 2.0, device=device, requires_grad=True)
        opt, scaler = torch.optim.SGD([weight], lr=0.5), torch.amp.GradScaler(device, init_scale=8.0, growth_interval=2)
        scales[device] = []
        for factor in (1.0, torch.inf, 1.0, 1.0, 1.0):
            opt.zero_grad()
            scaler.scale((weight * factor).sum()).backward()
            scaler.step(opt)
            scaler.update()
            scales[device].append((scaler.get_scale(), weight.tolist()))
        assert not [h.name for h in eager.HOST if h.runs > before.get(id(h), 0)]
    assert scales["neuron"] == scales["cpu"] and scales["cpu"][-1] == (8.0, [0.0] * 3)


@pytest.mark.parametrize("norm_first", [False, True])
def test_transformer_layers_in_evaluation(norm_first):
    """torch has them whole, with every kind of mask; a mask of padding does not become a nested tensor."""
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=norm_first, activation="gelu" if norm_first else "relu")
    encoder, attention = nn.TransformerEncoder(layer, 2, enable_nested_tensor=not norm_first).eval(), nn.MultiheadAttention(8, 2, batch_first=True).eval()
    x, late, ends = torch.randn(2, 5, 8), torch.ones(5, 5).triu(1).bool(), torch.tensor([[False] * 5, [False] * 3 + [True] * 2])

    def results(device):
        e, a, v, m, p = encoder.to(device), attention.to(device), x.to(device), late.to(device), ends.to(device)
        with torch.inference_mode():
            found = [e(v), e(v, mask=m), e(v, mask=m, src_key_padding_mask=p), e(v, src_key_padding_mask=p)[~p]]
            found += [*a(v, v, v), *a(v, v, v, key_padding_mask=p, average_attn_weights=False), a(v, v, v, attn_mask=m, need_weights=False)[0]]
        return [t.cpu() for t in found]

    expected, before = results("cpu"), {id(h): h.runs for h in eager.HOST}
    for found, wanted in zip(results("neuron"), expected, strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-6, atol=1e-6)
    assert not [h.name for h in eager.HOST if h.runs > before.get(id(h), 0)]


def test_module_events_random_numbers_and_devices():
    assert torch.accelerator.current_accelerator().type == "neuron"
    assert torch.neuron.device_count() == torch.accelerator.device_count() == 1
    torch.manual_seed(5)
    a = torch.randn(4, device="neuron")
    state = torch.neuron.get_rng_state()
    b = torch.rand(2, device="neuron")
    torch.neuron.set_rng_state(state)
    assert torch.equal(b.cpu(), torch.rand(2, device="neuron").cpu())
    torch.manual_seed(5)
    assert torch.equal(a.cpu(), torch.randn(4))
    begin, end = torch.neuron.Event(enable_timing=True), torch.neuron.Event(enable_timing=True)
    begin.record()
    end.record()
    torch.neuron.synchronize()
    assert begin.elapsed_time(end) >= 0
    with pytest.raises(RuntimeError, match="OPENTRN_DEVICES"):
        torch.ones(1, device="neuron:7")
    gc.collect()  # what others left is gone before the count
    before = torch.neuron.memory_allocated()
    held = torch.empty(1000, device="neuron")
    assert torch.neuron.memory_allocated() == before + held.nbytes


def test_what_the_host_does_is_named():
    assert torch.randperm(3, device="neuron").shape == (3,)
    found = [h for h in eager.HOST if "randperm" in h.name]
    assert found and found[-1].runs >= 1 and found[-1].reason
    assert "randperm" in opentrn.torch.explain() and "on CPU kernels" in opentrn.torch.explain()


def test_tensors_of_the_cpu_are_refused_where_a_gpu_refuses_them(capfd):
    x, y = torch.ones(3, 3, device="neuron"), torch.ones(3, 3)
    for call in (torch.add, torch.matmul, F.linear, torch.maximum, F.mse_loss, lambda a, b: torch.cat([a, b]), lambda a, b: torch.where(a > 0, a, b)):
        for _ in range(2):
            with pytest.raises(RuntimeError, match="same device, but found at least two devices, neuron:0 and cpu"):
                call(x, y)
    assert (x + torch.tensor(2.0)).sum() == 27 and x[torch.tensor([0, 2])].shape == (2, 3)
    with pytest.raises(RuntimeError, match="Expected reduction dim"):
        torch.ones(0, device="neuron").max()
    with pytest.raises(RuntimeError, match="bins must be"):
        torch.histc(x, bins=-1)
    assert "Traceback" not in capfd.readouterr().err


def test_sizes_that_depend_on_values_stay_on_the_device():
    before = {h.name: h.runs for h in eager.HOST}
    x = torch.tensor([3.0, 0.0, 3.0, 1.0, 3.0])
    y = x.to("neuron")
    assert torch.equal(y[y > 0].cpu(), x[x > 0]) and torch.equal(y.nonzero().cpu(), x.nonzero())
    for a, b in zip(torch.unique(x, return_inverse=True, return_counts=True), torch.unique(y, return_inverse=True, return_counts=True)):
        assert torch.equal(b.cpu(), a)
    assert torch.equal(y.long().bincount().cpu(), x.long().bincount())
    assert not [h for h in eager.HOST if h.runs > before.get(h.name, 0)]


def test_old_names_and_tensors_without_dimensions():
    before = {id(h): h.runs for h in eager.HOST}
    x = torch.randn(4, 3, 3)
    x = x @ x.mT + torch.eye(3)
    for upper in (False, True):
        torch.testing.assert_close(torch.cholesky(x.to("neuron"), upper=upper).cpu(), torch.cholesky(x, upper=upper))
    edges = torch.arange(5.0)
    for value in torch.tensor([2.0, 2.5, float("nan")]):
        for right in (False, True):
            assert torch.bucketize(value.to("neuron"), edges.to("neuron"), right=right).cpu() == torch.bucketize(value, edges, right=right)
    assert not [h.name for h in eager.HOST if h.runs > before.get(id(h), 0)]


def test_conjugates_and_empty_tensors():
    x = torch.randn(3, 2, dtype=torch.complex64)
    y = x.to("neuron")
    assert torch.equal(y.conj().cpu(), x.conj()) and torch.equal(y.conj().imag.cpu(), x.conj().imag)
    nothing = torch.zeros(0, 4, device="neuron")
    assert (nothing + 1).shape == (0, 4) and nothing.sum(0).tolist() == [0] * 4
    assert torch.cat([nothing, torch.ones(1, 4, device="neuron")]).tolist() == [[1.0] * 4]
    leaf = torch.ones(3, device="neuron", requires_grad=True)
    torch.sgn(leaf).sum().backward()
    assert leaf.grad.tolist() == [0.0] * 3


def test_products_of_conjugates():
    """Torch leaves a conjugate that is only noted to the kernels of products."""
    x, z = torch.randn(2, 3, 4, 4, dtype=torch.complex64)
    products = [
        lambda a, b: a.mH @ b,
        lambda a, b: b[0] @ a[0].conj(),
        lambda a, b: torch.addmm(a[0].conj(), a[1].mH, b[1]),
        lambda a, b: torch.vdot(a[0, 0], b[0, 0].conj()),
        lambda a, b: a[0].conj().imag @ b[0].imag,
        lambda a, b: torch.bmm(a, b, out=torch.empty_like(a).conj()),
        lambda a, b: b.clone().conj().baddbmm_(a.mH, b),
    ]
    for number, product in enumerate(products):
        torch.testing.assert_close(product(x.to("neuron"), z.to("neuron")).cpu(), product(x, z), msg=f"product {number}")


def test_graphs_of_the_cpu_build_nothing(tmp_path):
    """Dynamo asks for an accelerator's stream; the device's C++ part is for those who have its tensors."""
    code = "import torch, opentrn.torch; torch.compile(torch.nn.Linear(2, 2), backend='opentrn')(torch.ones(1, 2))"
    env = os.environ | {"OTRN_CACHE_DIR": str(tmp_path), "CXX": "false"}  # a compiler that fails
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert not done.returncode and "building" not in done.stderr, done.stderr


@pytest.mark.parametrize("backend", ["gloo", "opentrn"])
def test_barriers_of_the_cpu_build_nothing(tmp_path, backend):
    code = f"""if True:
        import torch.distributed as dist
        dist.init_process_group("{backend}", init_method="file://{tmp_path}/meet", rank=0, world_size=1)
        dist.barrier()
        print("passed")"""
    env = os.environ | {"OTRN_CACHE_DIR": str(tmp_path), "CXX": "false", "GLOO_SOCKET_IFNAME": "lo"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert done.stdout == "passed\n" and "building" not in done.stderr, done.stderr


def test_a_build_that_failed_is_not_tried_again(tmp_path):
    code = """if True:
        import torch
        for _ in range(2):
            try:
                torch.ones(1, device="neuron")
            except RuntimeError as why:
                print("cannot be built" in str(why), "remove it to try again" in str(why))
        print(torch.neuron.is_available())"""
    env = os.environ | {"OTRN_CACHE_DIR": str(tmp_path), "CXX": "false"}
    for times in (1, 0):  # in the process that tried, and in the next one
        done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
        assert done.stderr.count("building the device") == times, done.stderr
        assert done.stdout.split("\n")[:3] == ["True True"] * 2 + ["False"]


def test_a_backward_pass_on_the_cpu_may_come_first(tmp_path):
    """Autograd counts devices once: the device has its place before it is built."""
    code = """if True:
        import torch, opentrn.torch
        for device in ("cpu", "neuron"):
            x = torch.ones(3, device=device, requires_grad=True)
            (x * x).sum().backward()
            print(x.grad.tolist())"""
    env = os.environ | {"OTRN_CACHE_DIR": str(tmp_path), "OPENTRN_DEVICES": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert "building" in done.stderr and done.stdout.split("\n")[:2] == ["[2.0, 2.0, 2.0]"] * 2, done.stderr


def test_a_mesh_takes_the_device_of_its_process():
    """As with a GPU, a script under torchrun that makes a mesh need not choose the device: nobody has used it yet, loaded or not."""
    code = """if True:
        import torch, torch.distributed as dist
        x = torch.ones(2)
        assert not torch.neuron.is_initialized()
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        dist.init_device_mesh("neuron", (1,))
        print(torch.ones(2, device="neuron").device, torch.neuron.is_initialized())"""
    env = os.environ | {"OPENTRN_DEVICES": "2", "LOCAL_RANK": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert done.stdout == "neuron:1 True\n", done.stdout + done.stderr


def test_torch_neuronx_is_there():
    import torch_neuronx

    assert "opentrn" in torch_neuronx.__version__


def test_torch_neuronx_says_what_to_write_instead():
    """What AWS's package has and ours has not, however it is asked for; the page names all of it."""
    import torch_neuronx

    page = (pathlib.Path(__file__).parents[2] / "docs" / "from-neuron.md").read_text()
    assert torch_neuronx.INSTEAD and not [n for n in torch_neuronx.INSTEAD if f"`{n}`" not in page]
    with pytest.raises(AttributeError, match="no trace: torch.compile"):
        _ = torch_neuronx.trace
    with pytest.raises(ImportError, match="no trace: torch.compile"):
        from torch_neuronx import trace  # noqa: F401
    with pytest.raises(ImportError, match="no xla_impl: it belongs to AWS"):
        import torch_neuronx.xla_impl.ops  # noqa: F401
    assert not hasattr(torch_neuronx, "whatever")


def test_a_torch_that_is_too_old(monkeypatch):
    """torch_xla wants one; it has a device of its own, so nobody is told about this one then."""
    import importlib.util

    from opentrn.neuron import autoload

    here = {"torch_xla"}
    monkeypatch.setattr(torch, "__version__", "2.9.0+cpu")
    monkeypatch.setattr(torch._C, "_get_privateuse1_backend_name", lambda: "privateuseone")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: True if name in here else None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        autoload.load()
    here.clear()
    with pytest.warns(UserWarning, match="needs torch 2.13 or newer, this is 2.9.0"):
        autoload.load()


def test_process_groups_are_known_with_the_device():
    """A script under torchrun says nothing of opentrn: torch alone must know what the device's group is."""
    code = """if True:
        import sys, torch, torch.distributed as dist
        assert dist.get_default_backend_for_device(torch.device("neuron", 0)) == "neuron"
        assert "opentrn.torch" not in sys.modules, "the lowerings wait until a group is made"
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_what_pytorchs_own_tests_ask_of_memory_and_masks():
    x = torch.arange(6.0, device="neuron")
    late = torch._lazy_clone(x)
    assert (late + 1).tolist() == [1, 2, 3, 4, 5, 6] and torch._C._is_cow_tensor(late)  # reading copies nothing
    late.add_(1)
    assert x.tolist() == [0, 1, 2, 3, 4, 5] and late.tolist() == [1, 2, 3, 4, 5, 6]
    torch.use_deterministic_algorithms(True)
    try:
        assert torch.empty(3, device="neuron").isnan().all() and (torch.empty(3, dtype=torch.int8, device="neuron") == 127).all()
        assert x.resize_(8).tolist()[:6] == [0, 1, 2, 3, 4, 5] and x[6:].isnan().all()
    finally:
        torch.use_deterministic_algorithms(False)
    with pytest.raises(RuntimeError, match="BoolTensor"):
        x.masked_select(torch.ones(8, dtype=torch.int32, device="neuron"))
    parts = torch.tensor([complex(1, torch.nan), complex(torch.inf, 1), 1 + 1j], device="neuron")
    assert parts.isnan().tolist() == [True, False, False] and parts.isinf().tolist() == [False, True, False]


@pytest.mark.parametrize(
    "call",
    [
        lambda i: torch.div(i, i + 1, out=torch.empty_like(i)),
        lambda i: torch.addcdiv(i, i, i + 1),
        lambda i: i.index_fill_(0, i, 0),
        lambda i: i.put_(i, i),
        lambda i: torch.empty(3, device=i.device).cauchy_(0.0, 0.0),
        lambda i: torch.ones(5, device=i.device).index_put_((i[:2],), i[:2]),
        lambda i: torch.nonzero(i, out=torch.empty([], device=i.device)),
        lambda i: torch.ops.aten._local_scalar_dense(i[:0]),
    ],
)
def test_what_the_cpu_refuses_is_refused(call):
    said = []
    for device in ("cpu", "neuron", "neuron"):  # and not only the first time
        with pytest.raises(RuntimeError) as error:
            call(torch.arange(5, device=device))
        said.append(str(error.value))
    assert said[0] == said[1] == said[2]


def test_looking_for_errors_changes_nothing():
    x = torch.arange(4.0, device="neuron")
    x[:2].add_(x[2:])  # tried on copies, and done once
    assert x.tolist() == [2, 4, 2, 3]
    torch.manual_seed(3)
    first = torch.rand(5, device="neuron").tolist()
    torch.manual_seed(3)
    assert torch.rand(5).tolist() == first and (x.long() % 2).tolist() == [0, 0, 0, 1]
    torch.nonzero(x, out=torch.empty([], dtype=torch.long, device="neuron"))
    with pytest.raises(RuntimeError, match="same device"):
        torch.nonzero(x, out=torch.empty([], dtype=torch.long))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.nn.functional.mse_loss(x, x)


def test_results_lie_as_on_the_cpu():
    x = torch.randn(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    for f in (torch.abs, torch.exp, lambda t, out=None: torch.add(t, t, out=out), lambda t, out=None: torch.mode(t, 1)[0]):
        y = x.to("neuron")
        assert f(y).stride() == f(x).stride() and f(y, out=torch.empty(0, device="neuron")).stride() == f(x, out=torch.empty(0)).stride()
    out = torch.empty(0, device="neuron"), torch.empty(0, dtype=torch.int64, device="neuron")
    assert torch.mode(x.to("neuron"), -1, out=out)[0].cpu().equal(torch.mode(x, -1)[0])


def test_masks_in_torchscript_and_of_bytes():
    @torch.jit.script
    def cut(x):
        x[x < 2] = 1.0
        return x

    assert cut(torch.arange(4.0, device="neuron")).tolist() == [1, 1, 2, 3]
    x = torch.ones(5, 7, 3, device="neuron")
    with pytest.warns(UserWarning, match="torch.uint8 is now deprecated"):
        assert x[torch.tensor([1, 0, 1, 1, 0], dtype=torch.uint8, device="neuron")].shape == (3, 7, 3)


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16, torch.float64, torch.int32, torch.uint8])
def test_order_is_the_cpus(kind):
    """Equal elements stay in their order, zeros of both signs are equal, NaNs of any sign are the largest."""
    x = torch.randn(5, 40).mul(3).round().abs().to(kind)
    if kind.is_floating_point:
        x[:, ::3] *= -1
        x[0, 3], x[1, 2], x[1, 5], x[2, 4], x[2, 9], x[3, 3] = (float(v) for v in ("nan", "-0", "-inf", "-nan", "nan", "inf"))
    for descending in (False, True):
        values, places = x.sort(stable=True, dim=-1, descending=descending)
        found = x.to("neuron").sort(stable=True, dim=-1, descending=descending)
        torch.testing.assert_close(found[0].cpu(), values, rtol=0, atol=0, equal_nan=True)
        assert torch.equal(found[1].cpu(), places)


@pytest.mark.parametrize("shape", [(3, 0), (2, 5), (1000,), (3, 700, 2)])
def test_running_totals(shape):
    x = torch.randn(shape)
    for dim in range(len(shape)):
        exact = x.double().cumsum(dim)
        found = x.to("neuron").cumsum(dim).cpu()
        assert found.shape == x.shape and (not x.numel() or (found - exact).abs().max() < 8e-7 * exact.abs().max())
        assert torch.equal((x > 0).to("neuron").cumsum(dim).cpu(), (x > 0).cumsum(dim))
        assert torch.allclose(x.sign().to("neuron").cumprod(dim).cpu(), x.sign().cumprod(dim))


FABRIC = {  # what the device's part for Lightning touches of it, and no more
    "__init__.py": "",
    "connector.py": """
class Accelerator: pass
class SingleDeviceStrategy:
    def __init__(self, device): self.device = device
class Registry(dict):
    def register(self, name, accelerator, description=""): self[name] = accelerator
ACCELERATOR_REGISTRY = Registry()
class Precision: device = "cuda"
class _Connector:
    _num_nodes_flag = 1
    @staticmethod
    def _choose_auto_accelerator(): return "cpu"
    def _choose_strategy(self): return "ddp"
    def _check_and_init_precision(self): return Precision()
""",
    "strategies/__init__.py": "",
    "strategies/ddp.py": """
class DDPStrategy:
    def _determine_ddp_device_ids(self): return [0]
""",
}


def test_lightning_chooses_the_device(tmp_path, monkeypatch):
    for name, text in FABRIC.items():
        file = tmp_path / "lightning_fabric" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("OPENTRN_DEVICES", "1")
    for name in [n for n in sys.modules if n.split(".")[0] == "lightning_fabric"]:
        monkeypatch.delitem(sys.modules, name)
    from lightning_fabric.connector import ACCELERATOR_REGISTRY, _Connector
    from lightning_fabric.strategies.ddp import DDPStrategy

    connector, ours = _Connector(), ACCELERATOR_REGISTRY["neuron"]
    assert connector._choose_auto_accelerator() == "neuron"
    connector.accelerator = ours()
    connector._parallel_devices = ours.get_parallel_devices(ours.parse_devices(1))
    assert connector._choose_strategy().device == torch.device("neuron", 0)
    assert connector._check_and_init_precision().device == "neuron"
    connector._parallel_devices = ours.get_parallel_devices(ours.parse_devices("0,1"))
    assert connector._choose_strategy() == "ddp" and os.environ["OPENTRN_DEVICES"] == "2"
    strategy = DDPStrategy()
    strategy.root_device = torch.device("neuron", 1)
    assert strategy._determine_ddp_device_ids() is None
    for name in [n for n in sys.modules if n.split(".")[0] == "lightning_fabric"]:
        monkeypatch.delitem(sys.modules, name)  # the real one, where installed, is imported afresh


def test_negative_indices_where_torch_has_them():
    x, last = torch.arange(6.0).reshape(2, 3), torch.tensor([-1])
    for call in (lambda x, i: x.index_fill(1, i, 9.0), lambda x, i: x[i], lambda x, i: x.take(i), lambda x, i: x.put(i, x[0, :1])):
        assert torch.equal(call(x.to("neuron"), last.to("neuron")).cpu(), call(x, last))


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("shape", [(4,), (6, 4), (2, 4, 3)])
def test_cross_entropy_leaves_ignored_labels_out(shape, reduction):
    torch.manual_seed(0)
    x, weight = torch.randn(shape), torch.rand(4)
    target = torch.randint(0, 4, shape[:1] + shape[2:] if len(shape) > 1 else ())
    ignored = int(target.flatten()[-1]) if target.dim() else 2**40  # more than 32 bits hold
    for w in (None, weight):
        want = F.cross_entropy(x, target, w, reduction=reduction, ignore_index=ignored)
        on = [t if t is None else t.to("neuron") for t in (x, target, w)]
        torch.testing.assert_close(F.cross_entropy(*on, reduction=reduction, ignore_index=ignored).cpu(), want)


def test_batch_norm_over_processes_has_its_kernels():
    """The five operators of nn.SyncBatchNorm, two processes' halves joined by hand: a batch norm of the whole."""
    x, weight, bias, grad = torch.randn(6, 3, 4), torch.rand(3) + 0.5, torch.randn(3), torch.randn(6, 3, 4)
    norm = nn.BatchNorm1d(3)
    norm.weight.data, norm.bias.data = weight.clone(), bias.clone()
    whole = x.clone().requires_grad_()
    expected = norm(whole)
    expected.backward(grad)

    before = {h.name: h.runs for h in eager.HOST}
    parts, grads = x.to("neuron").split([2, 4]), grad.to("neuron").split([2, 4])
    weight, bias, counts = weight.to("neuron"), bias.to("neuron"), torch.tensor([8.0, 16.0]).to("neuron")
    mean, invstd = map(torch.stack, zip(*[torch.batch_norm_stats(p, 1e-5) for p in parts], strict=True))
    running = torch.zeros(3).to("neuron"), torch.ones(3).to("neuron")
    mean, invstd = torch.batch_norm_gather_stats_with_counts(parts[0], mean, invstd, *running, 0.1, 1e-5, counts)
    out = [torch.batch_norm_elemt(p, weight, bias, mean, invstd, 1e-5) for p in parts]
    sums = [torch.batch_norm_backward_reduce(g, p, mean, invstd, weight, True, True, True) for g, p in zip(grads, parts, strict=True)]
    dy, dy_xmu, grad_weight, grad_bias = (a + b for a, b in zip(*sums, strict=True))
    back = [torch.batch_norm_backward_elemt(g, p, mean, invstd, weight, dy, dy_xmu, counts.int()) for g, p in zip(grads, parts, strict=True)]
    for ours, theirs in [
        (torch.cat(out), expected.detach()), (torch.cat(back), whole.grad), (grad_weight, norm.weight.grad), (grad_bias, norm.bias.grad),
        (running[0], norm.running_mean), (running[1], norm.running_var),
    ]:  # fmt: skip
        torch.testing.assert_close(ours.cpu(), theirs, rtol=1e-5, atol=1e-6)
    assert before == {h.name: h.runs for h in eager.HOST}


def test_operators_are_prepared_under_dispatch_modes():
    """A mode that is there and not asked (no_dispatch, transforms of torch.func): torch looks for its kernels by other names."""
    from torch.utils.flop_counter import FlopCounterMode

    x = torch.randn(3, 5, device="neuron")
    with FlopCounterMode(display=False) as counted, torch._C._DisableTorchDispatch():
        torch.testing.assert_close(x.cpu().cosh(), x.cosh().cpu())
    with counted:
        torch.testing.assert_close((x @ x.T.contiguous()).cpu(), x.cpu() @ x.cpu().T)
    assert counted.get_total_flops() == 2 * 2 * 3 * 3 * 5


def test_kernels_of_ours_are_not_captured(fresh):
    """A size that depends on values breaks a graph; what the device does for it is not one of the user's frames."""
    x = torch.tensor([0.0, 1.0, 2.0]).to("neuron")
    assert torch.compile(lambda x: torch.nonzero(x).sum() + 1, backend="neuron")(x).item() == 4
    assert not [g for g in fresh.graphs if "sized.py" in getattr(g, "title", "")]
    seen = torch._dynamo.utils.counters["graph_break"]
    assert not [why for why in seen if "sized.py" in why or "Tensor.item" in why], seen


def test_torch_accelerator_tells_memory():
    accelerator, x = torch.accelerator, torch.empty(1000, device="neuron")
    accelerator.reset_peak_memory_stats()
    before = accelerator.memory_allocated()
    y = torch.empty(500, device="neuron")
    assert accelerator.memory_allocated() == torch.neuron.memory_allocated() == before + 2000
    del y
    assert accelerator.memory_allocated() == before and accelerator.max_memory_allocated() == before + 2000
    free, total = accelerator.get_memory_info()
    assert total - free == before and torch.neuron.mem_get_info() == (free, total)
    accelerator.empty_cache()
    accelerator.empty_host_cache()
    assert torch.float32 in accelerator.get_device_capability()["supported_dtypes"]
    x.record_stream(torch.neuron.current_stream())


def test_pinned_memory_is_known():
    x = torch.ones(8)
    pinned = x.pin_memory()
    assert pinned.is_pinned() and pinned[3:].is_pinned() and not x.is_pinned()
    assert torch.equal(pinned.to("neuron", non_blocking=True).cpu(), x)
    assert torch.empty_like(x, pin_memory=True).is_pinned()


def test_a_module_that_moves_keeps_its_tensors():
    layer = nn.Linear(2, 2)
    weight, optimizer = layer.weight, torch.optim.SGD(layer.parameters(), 0.1)
    layer.to("neuron")
    assert layer.weight is weight and weight.is_neuron
    layer(torch.ones(1, 2).to("neuron")).sum().backward()
    grad = weight.grad
    layer.load_state_dict(layer.state_dict())
    assert layer.weight.grad is grad
    before = weight.detach().cpu()
    optimizer.step()
    layer.cpu()
    torch.testing.assert_close(weight.detach(), before - 0.1)


def test_labels_behind_the_last_are_nothing():
    x, labels = torch.tensor([[0.1, 0.2, 0.4, 0.8], [0.5, -0.3, 0.2, 0.9]]), torch.tensor([[3, 0, -1, 1], [-1, -1, 2, 3]])
    for reduction in ("none", "mean", "sum"):
        runs = []
        for device in ("cpu", "neuron"):
            rows = x.detach().to(device, copy=True).requires_grad_()
            loss = F.multilabel_margin_loss(rows, labels.to(device), reduction=reduction)
            loss.sum().backward()
            runs.append((loss.detach().cpu(), rows.grad.cpu()))
        torch.testing.assert_close(*runs)


def test_torch_compile_without_a_backend():
    """Nothing of ours is imported by then, and Inductor has no code for the device."""
    code = """if True:
        import torch
        f = torch.compile(lambda x: x * 2 + 1)
        assert f(torch.arange(3.0, device="neuron")).tolist() == [1, 3, 5]
        import opentrn.torch
        print(opentrn.torch.explain())
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "1 runs" in done.stdout and "(compiled)" in done.stdout


def test_lbfgs_searches_as_on_the_cpu():
    """In fp32 rounding decides how often a line search looks; in fp64 it must look as often."""
    x = torch.randn(20, 4, dtype=torch.float64)

    def calls(device):
        torch.manual_seed(0)
        model, data, seen = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1)).double().to(device), x.to(device), []
        optimizer = torch.optim.LBFGS(model.parameters(), max_iter=6, line_search_fn="strong_wolfe")

        def closure():
            optimizer.zero_grad()
            loss = F.mse_loss(model(data), data.sum(1, keepdim=True).sin())
            loss.backward()
            seen.append(loss.item())
            return loss

        for _ in range(3):
            optimizer.step(closure)
        return torch.tensor(seen)

    torch.testing.assert_close(calls("neuron"), calls("cpu"), rtol=1e-6, atol=0)
