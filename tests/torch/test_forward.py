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
