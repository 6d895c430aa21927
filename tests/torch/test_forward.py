# SPDX-License-Identifier: Apache-2.0
"""A forward pass as files, run by `otrn run`."""

import json
import pathlib
import subprocess

import pytest

torch = pytest.importorskip("torch")

from opentrn.torch import export_forward  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("exported", [False, True])
def test_forward_as_files(exported, tmp_path):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.BatchNorm1d(8), torch.nn.GELU(), torch.nn.Linear(8, 1)).eval()
    x = torch.randn(1, 6)
    program = torch.export.export(model, (x,)) if exported else model
    manifest = export_forward(program, tmp_path, None if exported else (x,))
    assert json.loads((tmp_path / "manifest.json").read_text()) == manifest and not manifest["on_the_cpu"]
    kinds = [a["kind"] for a in manifest["arguments"]]
    assert kinds.count("parameter") == 6 and kinds.count("input") == 1
    files = ",".join(str(tmp_path / a["file"]) for a in manifest["arguments"])
    command = [ROOT / "build" / "otrn", "run", tmp_path / "forward.mlir", "--target=inf2", f"--input={files}"]
    out = subprocess.run(command, capture_output=True, text=True, check=False)
    assert out.returncode == 0, out.stderr
    line = next(row for row in out.stdout.splitlines() if row.startswith("result 0:"))
    assert float(line.split(":")[-1].strip(" []")) == pytest.approx(model(x).item(), rel=1e-5)


class Step(torch.nn.Module):
    """One token with its caches: a buffer, an argument written to and one that is returned; an input with other strides."""

    def __init__(self):
        super().__init__()
        self.mix = torch.nn.Linear(4, 4)
        self.register_buffer("seen", torch.randn(5, 4))

    def forward(self, x, cache, at):
        y = self.mix(x)
        self.seen.index_copy_(0, at, y[:1])
        cache.mul_(2)
        grown = torch.cat([cache, y])
        return y.t() @ y, {"grown": grown, "turned": grown.t(), "x": x, "none": None, "again": grown}


def test_results_are_what_was_returned(tmp_path):
    """In its order and its shapes, by name; then what was written in place."""
    import copy

    np = pytest.importorskip("numpy")
    torch.manual_seed(0)
    model, args = Step().eval(), (torch.randn(4, 4).t(), torch.randn(3, 4), torch.tensor([2]))
    beside, given = copy.deepcopy((model, args))
    manifest = export_forward(model, tmp_path, args)
    with torch.no_grad():
        first, named = beside(*given)
    expected = {"[0]": first, **{f"[1]['{k}']": named[k] for k in ("grown", "turned", "x", "again")}, "seen": beside.seen, "cache": given[1]}
    assert [r["name"] for r in manifest["results"]] == list(expected)
    replaced = [manifest["arguments"][r["replaces"]]["name"] for r in manifest["results"] if r["kind"] != "output"]
    assert replaced == ["seen", "cache"]
    assert np.array_equal(np.load(tmp_path / next(a["file"] for a in manifest["arguments"] if a["name"] == "x")), args[0].numpy())
    command = [ROOT / "build" / "otrn", "run", tmp_path / "forward.mlir", "--target=inf2", f"--output={tmp_path}"]
    out = subprocess.run([*command, *(f"--input={f}" for f in sorted(tmp_path.glob("in_*.npy")))], capture_output=True, text=True, check=False)
    assert out.returncode == 0, out.stderr
    for i, tensor in enumerate(expected.values()):
        np.testing.assert_allclose(np.load(tmp_path / f"result_{i}.npy"), tensor.detach().numpy(), rtol=1e-6, atol=1e-6)


class Pooled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = torch.nn.Linear(4, 3)

    def forward(self, x, scale):
        return self.mix(x).sum(0) * x.shape[0] * scale


def test_open_sizes_are_the_examples(tmp_path):
    torch.manual_seed(0)
    model, x = Pooled(), torch.randn(5, 4)
    program = torch.export.export(model, (x, 3), dynamic_shapes=({0: torch.export.Dim("rows", min=2, max=16)}, None))
    manifest = export_forward(program, tmp_path)
    assert [a["shape"] for a in manifest["arguments"] if a["kind"] == "input"] == [[5, 4]]
    files = ",".join(str(tmp_path / a["file"]) for a in manifest["arguments"])
    command = [ROOT / "build" / "otrn", "run", tmp_path / "forward.mlir", "--target=inf2", f"--input={files}"]
    out = subprocess.run(command, capture_output=True, text=True, check=False)
    assert out.returncode == 0, out.stderr
    line = next(row for row in out.stdout.splitlines() if row.startswith("result 0:"))
    assert [float(v) for v in line.split(":")[-1].strip(" []").split()] == pytest.approx(model(x, 3).tolist(), rel=1e-5)


def test_experts_of_transformers(tmp_path):
    """An operator of Transformers' own, where its experts are captured in fp32."""
    np = pytest.importorskip("numpy")
    pytest.importorskip("transformers.integrations.moe")

    class Experts(torch.nn.Module):
        def forward(self, x, weight, ends):
            return torch.ops.transformers.grouped_mm_fallback(x, weight, ends)

    example = (torch.randn(5, 4), torch.randn(3, 4, 2), torch.tensor([2, 2, 5]))
    manifest = export_forward(Experts(), tmp_path, example)
    assert not manifest["on_the_cpu"]
    command = [ROOT / "build" / "otrn", "run", tmp_path / "forward.mlir", f"--output={tmp_path}"]
    out = subprocess.run([*command, *(f"--input={f}" for f in sorted(tmp_path.glob("in_*.npy")))], capture_output=True, text=True, check=False)
    assert out.returncode == 0, out.stderr
    np.testing.assert_allclose(np.load(tmp_path / "result_0.npy"), Experts()(*example).numpy(), rtol=1e-6, atol=1e-6)
