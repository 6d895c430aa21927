# SPDX-License-Identifier: Apache-2.0
"""Steps over a mesh: a sharding plan for PyTorch, what it refuses, and steps predicted from three sides."""

import json
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F
from conftest import ROOT
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel

from opentrn.torch import export_step, shard

sys.path.insert(0, str(ROOT / "accuracy"))
import sides

SIDES = [
    ("trn1", "vit", {}, "bf16"),
    ("trn2", "bert", {"dp": 2, "tp": 2}, "fp32"),
    ("trn2", "llama", {}, "fp32"),
    ("trn3", "t5", {}, "fp32"),
]


def _words(what):
    return "-".join(v if isinstance(v, str) else "".join(f"{k}{n}" for k, n in v.items()) or "one" for v in what)


@pytest.mark.parametrize("what", SIDES, ids=_words)
def test_one_step_from_three_sides(what, tmp_path, monkeypatch):
    """From a configuration, from plain JAX over a mesh and from Transformers' module with a plan: within 5 % of each other."""
    monkeypatch.setenv("OTRN_CACHE_DIR", str(tmp_path))
    chip, *rest = what
    ((_, told),) = sides.three([chip], *rest, tmp_path)
    times = sides.seconds(told)
    assert max(times) < 1.05 * min(times), times


class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.table = torch.nn.Linear(8, 16), torch.nn.Linear(16, 8), torch.nn.Embedding(4, 8)

    def forward(self, at, y):
        return F.mse_loss(self.b(torch.tanh(self.a(self.table(at)))), y)


def _small(path, **words):
    torch.manual_seed(3)
    model = Small()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
    return export_step(model, opt, (torch.arange(8) % 4, torch.randn(8, 8)), path, **words)


def _run(path, manifest):
    files = ",".join(str(path / a["file"]) for a in manifest["arguments"])
    ran = subprocess.run([ROOT / "build" / "otrn", "run", path / "step.mlir", f"--input={files}"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return [line for line in ran.stdout.splitlines() if line.startswith("result")]


def test_plan_and_whole_give_the_same_step(tmp_path):
    """Over four devices, cut three ways, a step trains as it does on one; the manifest tells how tensors lie."""
    plan = {"batch*": ("dp",), "a": ColwiseParallel(), "b": RowwiseParallel(), "table.weight": [Shard(0), Replicate()]}
    manifest = _small(tmp_path / "cut", mesh={"dp": 2, "tp": 2}, plan=plan)
    cuts = {a["name"]: a["cuts"] for a in manifest["arguments"]}
    assert cuts["a.weight"] == [["tp"], []] == cuts["a.weight.exp_avg"] and cuts["b.bias"] == [[]] and cuts["a.bias"] == [["tp"]]
    assert cuts["b.weight"] == [[], ["tp"]] and cuts["table.weight"] == [["dp"], []] and cuts["batch[0]"] == [["dp"]]
    assert json.loads((tmp_path / "cut" / "manifest.json").read_text())["mesh"] == {"dp": 2, "tp": 2}
    loss = [r["kind"] for r in manifest["results"]].index("loss")
    one, four = (float(_run(tmp_path / k, m)[loss].split(":")[-1]) for k, m in (("whole", _small(tmp_path / "whole")), ("cut", manifest)))
    assert four == pytest.approx(one, rel=1e-5)


def test_a_plan_trains_in_two_processes(tmp_path):
    """`otrn train` over four devices: in one process and in two the same checkpoint."""
    plan = {"batch*": ("dp",), "a": ColwiseParallel(), "b": RowwiseParallel(), "table.weight": [Shard(0), Replicate()]}
    _small(tmp_path / "cut", mesh={"dp": 2, "tp": 2}, plan=plan)
    otrn, saved = ROOT / "build" / "otrn", []
    for way in [], [otrn, "launch", "-n", "2", "--devices=2"]:
        words = [otrn, "train", tmp_path / "cut", "--steps=3", "--sample=0", f"--checkpoint={tmp_path}/{len(way)}"]
        ran = subprocess.run([*way, *words], capture_output=True, text=True, timeout=300)
        assert ran.returncode == 0, ran.stderr
        saved.append([file.read_bytes() for file in sorted((tmp_path / str(len(way)) / "step-00000003").iterdir())])
    assert saved[0] == saved[1]


def test_indices_are_narrow(tmp_path):
    """PyTorch's indices have 64 bits; transfers by index take 32."""
    _small(tmp_path)
    lines = (tmp_path / "step.mlir").read_text().splitlines()
    moves = [line for line in lines if "stablehlo.gather" in line or "stablehlo.scatter" in line or "}) : (tensor<4x8xf32>, tensor<8x1x" in line]
    assert any("gather" in line for line in moves) and any("scatter" in line for line in moves)
    assert not any("1xi64>" in line for line in moves) and sum("1xi32>" in line for line in moves) == 2


@pytest.mark.parametrize(
    "mesh, plan, text",
    [
        ({"dp": 0}, {}, "axes of one device or more"),
        ({"dp": 2}, {"nothing.*": ("dp",)}, "nothing of the step is called 'nothing.*' in the plan; there are a.weight, a.bias"),
        ({"dp": 2}, {"model.b.bias": ("dp",)}, "did you mean 'b.bias'"),
        ({"dp": 2, "tp": 2}, {"tabel": ColwiseParallel()}, "did you mean 'table'"),
        ({"dp": 2}, {"a.weight": ("tp",)}, "an axis 'tp'; the mesh has dp"),
        ({"dp": 3}, {"batch*": ("dp",)}, r"8 of batch\[0\] \[8\] cannot be cut into 3 parts"),
        ({"dp": 2}, {"a.weight": ("dp", "dp")}, "cuts a.weight twice"),
        ({"dp": 2}, {"a.weight": ("dp", None, None)}, "has 2 dimensions; its plan tells of 3"),
        ({"dp": 2}, {"a.weight": [Shard(0), Shard(1)]}, "has 2 placements; the mesh has 1 axes"),
        ({"dp": 2}, {"a.weight": [Shard(5)]}, "is none of them"),
        ({"dp": 2}, {"a": ColwiseParallel()}, "along the axis 'tp'; the mesh has dp"),
        ({"dp": 2}, {"a.weight": "dp"}, "a tuple with a mesh axis or None"),
    ],
)
def test_bad_plan(mesh, plan, text):
    model = Small()
    shapes = {**{k: p.shape for k, p in model.named_parameters()}, "batch[0]": (8,)}
    with pytest.raises((ValueError, TypeError), match=text):
        found = shard.Plan(mesh, plan, model)
        for name, shape in shapes.items():
            found.cuts([name], shape)
        found.done()


def test_bad_plan_writes_nothing(tmp_path):
    with pytest.raises(ValueError, match="a plan needs a mesh"):
        _small(tmp_path / "out", plan={"batch*": ("dp",)})
    with pytest.raises(ValueError, match="nothing of the step is called"):
        _small(tmp_path / "out", mesh={"dp": 2}, plan={"bach*": ("dp",)})
    assert not (tmp_path / "out").exists()
