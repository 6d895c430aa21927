# SPDX-License-Identifier: Apache-2.0
"""Whole steps of make accuracy: rows as published, each a command of opentrn predict, errors kept for each."""

import csv
import sys

import pytest
from conftest import ROOT

sys.path[:0] = [str(ROOT / "python"), str(ROOT / "accuracy")]
import steps
from opentrn._predict import command, errors, layout, machines, spec

ROWS = steps.rows()
FACTS = ROOT.parent / "shared" / "facts" / "steps.csv"


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r["id"])
def test_commands(row, monkeypatch):
    monkeypatch.chdir(ROOT)
    job, given = command.job_of(command.parser().parse_args(steps.words(row)))
    x = command.layout_of(job, given)
    layout.check(job, x)
    assert command.is_whole(given) and x.devices == 32 * job.nodes


@pytest.mark.skipif(not FACTS.exists(), reason="no ../shared/facts")
def test_as_published():
    facts = {f["id"]: f for f in csv.DictReader(open(FACTS))}
    for r in ROWS:
        f, batch = facts[r["id"]], int(r["global-batch"])
        value = batch / float(f["value"]) if f["unit"] == "s" else float(f["value"])
        assert float(r["published"]) == pytest.approx(value, rel=1e-5), r["id"]
        assert (f["seq_len"], f["nodes"], int(f["global_batch"])) == (r["seq"], r["nodes"], batch), r["id"]


def test_kept():
    """Every given row of a compiler and of roofs has its error in the table, once."""
    import gpus

    given = [*ROWS, *gpus.rows(), *gpus.single_rows()]
    assert [r["id"] for r in errors._rows() if not r["sort"]] == sorted(r["id"] for r in given)
    assert {r["chip"] for r in errors._rows()} == {"trn1", *errors.ROOFS}


def test_kept_of_others():
    """Those nobody gave us likewise, as predictions are now; their errors are expected where they are nearest."""
    import others

    kept, now = [r for r in errors._rows() if r["sort"]], list(others.table())
    assert [(r["chip"], r["sort"], r["error"]) for r in kept] == [(r["chip"], r["sort"], r["error"]) for r in now]
    assert {r["id"][0] for r in kept} == {errors.OTHERS}


@pytest.mark.parametrize("software, experts, sorts", [("compiled", 0, ("", "compiled")), ("tuned", 0, ("tuned",)), ("tuned", 8, ("tuned+experts",))])
def test_expected_of_the_same_sort(software, experts, sorts):
    m = spec.Model(kind="llama", experts=experts, layers=4)
    job = layout.Job(m, machines.machine("p5.48xlarge"), 2, 4096, 64, "fp8", software=software)
    told = errors.expected(job, layout.Layout(dp=16, ep=2 if experts else 1, zero=1), {"parameters": 7e9})
    near = [r for r in errors._rows() if r["id"] in told["expected_error_rows"]]
    assert len(near) == 3 and all(r["chip"] == "h100" and r["sort"] in sorts for r in near)
    assert told["expected_error"] == pytest.approx(sum(abs(float(r["error"])) for r in near) / 300)
