# SPDX-License-Identifier: Apache-2.0
"""Whole steps of make accuracy: rows as published, programs with the weights they should have, parts that add up."""

import csv
import sys

import pytest
from conftest import OTRN, ROOT

sys.path[:0] = [str(ROOT / "scripts" / "zoo"), str(ROOT / "accuracy")]
import steps

ROWS = list(csv.DictReader(v for v in open(ROOT / "accuracy" / "steps.csv") if not v.startswith("#")))
FACTS = ROOT.parent / "shared" / "facts" / "steps.csv"


def test_rows():
    assert len({r["id"] for r in ROWS}) == len(ROWS) >= 19
    for r in ROWS:
        sizes, _, devices, stages, _ = steps.MODELS[r["built"]]
        assert (sizes["seq"], sizes.get("batch", 1)) == (int(r["seq"]), int(r["batch"])), r["id"]
        assert int(r["nodes"]) * 32 == int(r["workers"]) * devices * stages, r["id"]


@pytest.mark.skipif(not FACTS.exists(), reason="no ../shared/facts")
def test_as_published():
    facts = {f["id"]: f for f in csv.DictReader(open(FACTS))}
    for r in ROWS:
        f = facts[r["id"]]
        batch = int(r["batch"]) * int(r["micro"]) * int(r["workers"])
        value = batch / float(f["value"]) if f["unit"] == "s" else float(f["value"])
        assert float(r["published"]) == pytest.approx(value, rel=1e-5), r["id"]
        assert (f["seq_len"], f["nodes"], int(f["global_batch"])) == (r["seq"], r["nodes"], batch), r["id"]


@pytest.mark.parametrize("name", steps.MODELS)
def test_weights(name):
    import jax
    import transformer
    import weights

    sizes, types, devices, _, _ = steps.MODELS[name]
    tree = weights.collect(*transformer.model(transformer.Config(**sizes)), weights.TYPES[types["compute"]])
    shapes = jax.tree.leaves(weights.local(tree, devices), is_leaf=lambda v: isinstance(v, tuple))
    count = 0
    for shape in shapes:
        size = 1
        for n in shape:
            size *= n
        count += size
    assert steps.weight_count(name) == pytest.approx(count, rel=0.015)  # vectors and places are left out


def test_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(steps, "program", lambda folder, name, part, optimizer="": folder / f"{name} {part} {optimizer}")
    (row,) = (r for r in ROWS if r["built"] == "llama pipeline")
    found = {what: (n, path) for n, path, what in steps.parts(row, tmp_path)}
    assert found["micro-batches"][0] == 32 + 4 - 1 and found["passing on"][0] == 2 * 35
    assert "num_replicas = 1024" in found["reduction"][1].read_text()
    (row,) = (r for r in ROWS if r["built"] == "llama zero")
    found = {what: path.name for _, path, what in steps.parts(row, tmp_path)}
    assert found["reduction"].startswith("reduce_scatter") and found["gathering"].startswith("all_gather")


def test_collective(tmp_path):
    prices = steps.Prices(OTRN)
    near, far = (prices(steps.collective(tmp_path, "all_reduce", 1 << 24, "bf16", n, 8)) for n in (4, 64))
    assert far > near > 0
