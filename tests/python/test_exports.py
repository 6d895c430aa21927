# SPDX-License-Identifier: Apache-2.0
"""Exported training steps: small ones beside JAX's CPU, full ones by what is left on GpSimd."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from conftest import OTRN, ROOT

SMALL_NET = ["--batch=4", "--image=32", "--width=8", "--blocks=1,1", "--classes=10"]
SMALL_RECOMMENDER = ["--batch=32", "--tables=3", "--rows=50", "--width=8", "--bottom=16", "--top=16"]


def export(name, folder, *options):
    script = ROOT / "examples" / "jax" / f"export_{name}.py"
    env = {**os.environ, "JAX_PLATFORMS": "cpu"}
    subprocess.run([sys.executable, script, f"--out={folder}", *options], env=env, check=True, timeout=300)
    return folder / f"{name}.mlir"


def otrn(*args):
    if not OTRN.exists():
        pytest.skip("build/otrn is not there")
    ran = subprocess.run([OTRN, *args], capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.parametrize(
    "name, options",
    [
        ("resnet50", [*SMALL_NET]),
        ("resnet50", [*SMALL_NET, "--layout=NCHW"]),
        ("dlrm", [*SMALL_RECOMMENDER]),
        ("dlrm", [*SMALL_RECOMMENDER, "--bag=3", "--optimizer=sgd"]),
    ],
)
def test_a_step_is_that_of_the_cpu(name, options, tmp_path):
    program = export(name, tmp_path, "--cpu", *options)
    inputs = [f"--input={p}" for p in sorted(tmp_path.glob(f"{name}_in_*.npy"))]
    otrn("run", program, *inputs, f"--output={tmp_path / 'out'}")
    want = [np.load(p) for p in sorted(tmp_path.glob(f"{name}_out_*.npy"))]
    got = [np.load(tmp_path / "out" / f"result_{i}.npy") for i in range(len(want))]
    assert abs(got[-1] - want[-1]) <= 1e-5 * abs(want[-1])  # the loss
    for g, w in zip(got, want):
        np.testing.assert_allclose(g, w, rtol=2e-5, atol=2e-5 * np.abs(w).max() + 1e-7)


def test_a_step_tells_lines_layers_and_arguments(tmp_path):
    small = ["--batch=1", "--seq=32", "--layers=2", "--width=32", "--heads=2", "--vocab=64", "--no-inputs"]
    program = export("gpt2", tmp_path, *small)
    layers = otrn("prof", program, "--group=layer", "--cache=off")
    assert all(name in layers for name in ("layer0", "layer1", "optimizer")), layers
    assert "export_gpt2.py:" in otrn("prof", program.with_suffix(".mlirbc"), "--cache=off")
    otrn("compile", program, "-o", tmp_path / "gpt2.otrn", "--cache=off")
    assert "\"params['layers'][1]['up']['w']\"" in otrn("dis", tmp_path / "gpt2.otrn")


def test_models_in_small(tmp_path):
    """What `make models` does at full size; also that it can tell a wrong result."""
    if not OTRN.exists():
        pytest.skip("build/otrn is not there")
    script = [sys.executable, ROOT / "scripts" / "models.py"]
    ran = subprocess.run([*script, "--small", "--only=1x1024,bert,dlrm", "--keep", f"--folder={tmp_path}", f"--otrn={OTRN}"], capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0 and "agree" in ran.stdout, ran.stdout + ran.stderr
    wrong = tmp_path / "dlrm-512" / "chip" / "result_3.npy"
    np.save(wrong, np.load(wrong) * np.float32(1.001))
    ran = subprocess.run([*script, "--compare", tmp_path / "dlrm-512", "dlrm", "fp32"], capture_output=True, text=True, timeout=600)
    assert len(json.loads(ran.stdout)["bad"]) == 1, ran.stdout + ran.stderr


@pytest.mark.parametrize("name, options", [("resnet50", []), ("resnet50", ["--layout=NCHW"]), ("dlrm", [])])
def test_gpsimd_has_little_to_do(name, options, tmp_path):
    program = export(name, tmp_path, "--no-inputs", *options)
    report = json.loads(otrn("prof", program, "--json"))
    assert report["engines"]["gpsimd"]["busy_us"] <= 0.1 * report["total_us"]


def test_table(tmp_path):
    """The table of machines at a small size: otrn, C and Python tell the same of every model, the one over 32 devices too."""
    program = OTRN.parent / "examples" / "c" / "price_program"
    if not program.exists():
        pytest.skip("the C example is not built")
    table = [sys.executable, ROOT / "scripts" / "table.py", "--small", f"--otrn={OTRN}", f"--folder={tmp_path}"]
    ran = subprocess.run(table, capture_output=True, text=True, timeout=900)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.splitlines()[-1] == "otrn, C and Python tell the same"
    rows = [line for line in ran.stdout.splitlines() if "32xlarge" in line or "48xlarge" in line]
    assert len(rows) == 12 and all("on demand, us-east-1" in row for row in rows)
    llama = [row.split() for row in rows if row.startswith("Llama")]
    assert [row[4] for row in llama] == ["32"] * 3  # devices
    assert [float(row[10]) for row in llama] == [21.5, 21.491, 42.982]  # USD/h: all of a trn1, a quarter and a half of a trn2
