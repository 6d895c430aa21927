# SPDX-License-Identifier: Apache-2.0
"""The HTML report from Python, and the device's plane in jax.profiler's traces."""

import gzip
import json

import jax
import jax.numpy as jnp
import pytest

import opentrn


def step(w, x):
    with jax.named_scope("layer_0"):
        h = jnp.tanh(x @ w)
    with jax.named_scope("layer_1"):
        h = h @ w
    return w - 0.01 * h.sum(), (h * h).mean()


@pytest.fixture
def program():
    return jax.jit(step), jnp.ones((256, 256)) * 0.01, jnp.ones((256, 256))


def test_profile_report(program, tmp_path):
    f, w, x = program
    with opentrn.profile() as p:
        for _ in range(2):
            w, loss = f(w, x)
        loss.block_until_ready()
    p.report(tmp_path / "p.html")
    page = (tmp_path / "p.html").read_text()
    parts = ("Critical path", "By layer", "layer_0", "layer_1", "Roofline", "What ran", "jit_step", "USD/h", "Hints", "products in bf16")
    for part in parts:
        assert part in page, part
    assert "http" not in page and "<!-- extra -->" not in page
    with pytest.raises(ValueError, match="html"):
        p.report(tmp_path / "p.txt")


def test_nothing_ran(tmp_path):
    with opentrn.profile() as p:
        pass
    with pytest.raises(RuntimeError, match="nothing ran"):
        p.report(tmp_path / "p.html")


def test_training_report(program, tmp_path):
    f, w, x = program
    with opentrn.training("<b>mine</b>", steps=4, samples=256, goal=0.5) as run:
        for _ in range(4):
            w, loss = f(w, x)
            run.step(loss)
    run.report(tmp_path / "t.html")
    page = (tmp_path / "t.html").read_text()
    assert "loss by step" in page and "<polyline" in page and "On each chip" in page and "trn1" in page
    assert "&lt;b&gt;mine" in page and "<b>mine" not in page


def test_last_run_page(program, tmp_path):
    f, w, x = program
    f(w, x)[1].block_until_ready()
    opentrn.last_run(trace=tmp_path / "l.html")
    assert "Critical path" in (tmp_path / "l.html").read_text()
    opentrn.last_run(trace=tmp_path / "l.json.gz")
    trace = json.loads(gzip.decompress((tmp_path / "l.json.gz").read_bytes()))
    assert any(e["ph"] == "s" for e in trace["traceEvents"])


def test_device_plane(program, tmp_path):
    """jax.profiler.trace has a plane of the device: each run with its engines, at the time it ran."""
    f, w, x = program
    w, loss = f(w, x)
    loss.block_until_ready()
    with jax.profiler.trace(str(tmp_path)):
        for _ in range(3):
            w, loss = f(w, x)
        loss.block_until_ready()
    (path,) = tmp_path.glob("**/*.trace.json.gz")
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    planes = {e["pid"]: e["args"]["name"] for e in events if e.get("name") == "process_name"}
    (device,) = [pid for pid, name in planes.items() if "opentrn" in name]
    lines = {e["tid"]: e["args"]["name"] for e in events if e.get("name") == "thread_name" and e["pid"] == device}
    slices = [e for e in events if e.get("ph") == "X" and e["pid"] == device]
    runs = [e for e in slices if lines[e["tid"]] == "programs"]
    assert [e["name"] for e in runs] == ["jit_step"] * 3
    assert abs(runs[0]["dur"] - opentrn.last_run()["total_us"]) < 0.01 * runs[0]["dur"]
    tensor = [e for e in slices if lines[e["tid"]] == "tensor"]
    assert {"jit(step)/layer_0/dot_general", "jit(step)/layer_1/dot_general"} <= {e["name"] for e in tensor}
    for e in tensor:  # inside one of the runs
        assert any(r["ts"] - 1e-3 <= e["ts"] <= r["ts"] + r["dur"] for r in runs)


def test_next_profile_is_empty(program, tmp_path):
    f, w, x = program
    f(w, x)[1].block_until_ready()
    with jax.profiler.trace(str(tmp_path)):
        pass
    (path,) = tmp_path.glob("**/*.trace.json.gz")
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    assert not [e for e in events if "opentrn" in str(e.get("args", {}).get("name", ""))]
