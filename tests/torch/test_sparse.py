# SPDX-License-Identifier: Apache-2.0
"""Sparse gradients of embeddings and sparse matrices on the device `neuron`, and several devices."""

import os
import shutil
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
if not shutil.which("g++"):
    pytest.skip("the device needs a C++ compiler", allow_module_level=True)
if torch._C._get_privateuse1_backend_name() != "neuron":
    pytest.skip("another package has the device", allow_module_level=True)

import opentrn.torch  # noqa: E402
from opentrn.neuron import eager, native  # noqa: E402
from torch import nn  # noqa: E402

PLACES = torch.tensor([[1, 2, 2, 5], [0, 5, 1, 9]])


def trained(device, kind, make):
    torch.manual_seed(0)
    table = make().to(device)
    opt = getattr(torch.optim, kind)(table.parameters(), lr=0.1)
    for _ in range(3):
        opt.zero_grad()
        table(PLACES.to(device)).square().sum().backward()
        assert table.weight.grad.is_sparse and table.weight.grad.device.type == device
        opt.step()
    return table.weight.detach().cpu()


TABLES = {
    "embedding": lambda: nn.Embedding(10, 4, sparse=True),
    "no longer than one": lambda: nn.Embedding(10, 4, sparse=True, max_norm=1.0),
    "bags, sums": lambda: nn.EmbeddingBag(10, 4, mode="sum", sparse=True, max_norm=2.0, norm_type=1.0),
    "bags, means": lambda: nn.EmbeddingBag(10, 4, mode="mean", sparse=True, padding_idx=5),
}


@pytest.mark.parametrize("kind", ["SparseAdam", "SGD", "Adagrad"])
@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES)
def test_sparse_embeddings_train_on_the_device(make, kind):
    before = {id(h): h.runs for h in eager.HOST}
    torch.testing.assert_close(trained("neuron", kind, make), trained("cpu", kind, make), rtol=1e-6, atol=1e-6)
    assert not [h.name for h in eager.HOST if h.runs > before.get(id(h), 0)]


def test_bags_have_sparse_gradients_with_weights_and_offsets():
    def gradients(device):
        torch.manual_seed(0)
        bags = nn.EmbeddingBag(10, 4, mode="sum", sparse=True, include_last_offset=True).to(device)
        weights = torch.arange(1.0, 9.0, device=device, requires_grad=True)
        bags(PLACES.reshape(-1).to(device), torch.tensor([0, 3, 3, 8], device=device), weights).square().sum().backward()
        return bags.weight.grad.to_dense().cpu(), weights.grad.cpu()

    torch.testing.assert_close(gradients("neuron"), gradients("cpu"))


def test_sums_copies_and_dense_forms():
    x = torch.sparse_coo_tensor([[0, 2, 0], [1, 0, 1]], [1.0, 2.0, 3.0], (3, 2), check_invariants=True)
    y = x.to("neuron")
    assert y.device.type == "neuron" and torch.equal(y.to_dense().cpu(), x.to_dense())
    assert torch.equal(y.coalesce().indices().cpu(), x.coalesce().indices())
    assert torch.equal((y + y).to_dense().cpu(), 2 * x.to_dense()) and torch.equal((y * 3).to("cpu").to_dense(), 3 * x.to_dense())
    dense = torch.ones(3, 2, device="neuron").add_(y, alpha=2)
    assert torch.equal(dense.cpu(), 1 + 2 * x.to_dense())


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_a_graph_network_on_a_sparse_matrix(layout):
    """Both kinds of product, with gradients of what is beside the matrix and of its own elements."""
    links = torch.rand(12, 12) * (torch.rand(12, 12) < 0.3)
    x, w = torch.randn(12, 4), torch.randn(4, 3)

    def losses(device):
        a = links.to_sparse(layout=layout).to(device)
        weight = w.to(device).requires_grad_()
        b = links.to_sparse().coalesce().to(device)
        values = b.values().clone().requires_grad_()
        out = torch.sparse.mm(torch.sparse_coo_tensor(b.indices(), values, b.shape), torch.relu(a @ (x.to(device) @ weight)))
        out.square().mean().backward()
        sampled = torch.sparse.sampled_addmm(links.to_sparse_csr().to(device), x.to(device), x.t().to(device), beta=0.5)
        rest = [a @ x[:, 0].to(device), torch.sparse.mm(a, a).to_dense(), sampled.to_dense(), links.to(device).to_sparse(layout=layout).to_dense()]
        return [t.detach().cpu() for t in (out, weight.grad, values.grad, *rest)]

    for found, expected in zip(losses("neuron"), losses("cpu"), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("reduce", ["sum", "mean", "amax", "amin"])
def test_messages_are_joined_in_other_ways_too(reduce):
    """torch.sparse.mm with a reduction, as graph networks have it; a row without elements, and products that are equal."""
    torch.manual_seed(0)
    matrix, x, weight = torch.randn(6, 5) * (torch.rand(6, 5) < 0.5), torch.randn(5, 3), torch.arange(18.0).view(6, 3)
    matrix[2], x[1], matrix[4, 1:3] = 0, x[2], 0.5
    found = []
    before = {id(h): h.runs for h in eager.HOST}
    for device in ("cpu", "neuron"):
        a, b = matrix.to_sparse_csr().to(device).requires_grad_(), x.detach().clone().to(device).requires_grad_()
        y = torch.sparse.mm(a, b, reduce)
        (y * weight.to(device)).sum().backward()
        found.append([t.detach().cpu() for t in (y, a.grad.values(), b.grad)])
    for expected, ours in zip(*found, strict=True):
        torch.testing.assert_close(ours, expected)
    assert not [h.name for h in eager.HOST if h.runs > before.get(id(h), 0)]


def test_products_at_given_places_have_gradients():
    torch.manual_seed(0)
    matrix, left, right = torch.randn(5, 5) * (torch.rand(5, 5) < 0.5), torch.randn(5, 3), torch.randn(3, 5)
    found = []
    for device in ("cpu", "neuron"):
        given = [t.detach().clone().to(device).requires_grad_() for t in (matrix.to_sparse_csr(), left, right)]
        y = torch.sparse.sampled_addmm(*given, alpha=0.6, beta=0.2)
        weight = torch.arange(float(y.values().numel()), device=device)
        y.backward(torch.sparse_csr_tensor(y.crow_indices(), y.col_indices(), weight, y.shape))
        found.append([t.detach().cpu() for t in (y.values(), given[0].grad.values(), given[1].grad, given[2].grad)])
    for expected, ours in zip(*found, strict=True):
        torch.testing.assert_close(ours, expected)


def test_a_compiled_sparse_embedding_has_only_device_programs(fresh):
    table = nn.Embedding(10, 4, sparse=True)
    torch.compile(table, backend="opentrn")(PLACES).sum().backward()
    assert table.weight.grad.is_sparse and not fresh.found
    assert torch.equal(table.weight.grad.to_dense()[5], torch.full((4,), 2.0))


def test_several_devices_when_a_backward_pass_on_the_cpu_comes_first(tmp_path):
    """With nothing built yet. The compiler is one that has the answer already, in two words, as `ccache g++` is."""
    compiler = tmp_path / "compiler"
    compiler.write_text(f"#!/bin/sh\nwhile [ \"$1\" != -o ]; do shift; done\nexec cp '{native.path()}' \"$2\"\n")
    compiler.chmod(0o755)
    native.load()
    code = """if True:
        import torch
        for device in ("cpu", "neuron:1", "neuron"):
            x = torch.ones(3, device=device, requires_grad=True)
            (x * x).sum().backward()
            print(x.grad.tolist(), x.grad.device)
        a = torch.arange(3.0, device="neuron:1")
        print(a.to("neuron:0").device, a[1:].device, (a + 1).device)
        with torch.neuron.device(1):
            print(torch.empty(2, device="neuron").device, torch.neuron.current_stream().device)"""
    env = os.environ | {"OTRN_CACHE_DIR": str(tmp_path), "OPENTRN_DEVICES": "2", "CXX": f"env {compiler}"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [
        "[2.0, 2.0, 2.0] cpu",
        "[2.0, 2.0, 2.0] neuron:1",
        "[2.0, 2.0, 2.0] neuron:0",
        "neuron:0 neuron:1 neuron:1",
        "neuron:1 neuron:1",
    ], done.stderr
    failed = subprocess.run(
        [sys.executable, "-c", "import torch; print(torch.ones(2).sum())"], env=env | {"CXX": "false", "OTRN_CACHE_DIR": str(tmp_path / "other")},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "tensor(2.)" in failed.stdout
