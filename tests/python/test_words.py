# SPDX-License-Identifier: Apache-2.0
"""What people type at `opentrn predict`, `cost` and `bakeoff`, and what they look at: wrong words, wrong files, the page."""

import json
import os
import re
import subprocess
import sys

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "python"))
from opentrn._predict import command, compose, config, layout, machines, money, page, plots, price, progress, roof, search, text
from opentrn._predict.fault import Fault

SMALL = dict(model_type="llama", hidden_size=256, intermediate_size=512, num_attention_heads=8, num_key_value_heads=4, num_hidden_layers=4, vocab_size=1024)
GPU = ["--instance=p4d.24xlarge", "--nodes=4", "--tp=2", "--pp=1", "--seq=128"]

WRONG = [
    (["--max-comm="], "--max-comm=: a share of the step is needed"),
    (["--max-comm=0.25%%"], "--max-comm=0.25%%: a share of the step is needed"),
    (["--price=trn2.48xlarge:3"], "whose price is it?"),
    (["--report="], "a file is needed"),
    (["--report=."], "a file is needed"),
    (["--report=page.json"], "--report=page.html"),
    (["--report=page"], "--report=page.html"),
    (["--report=-"], "a page's name ends in .html"),
    (["--report=no/such/page.html"], "there is no folder no/such"),
    (["--report=pipe"], "pipe is no plain file"),
    (["--lora=1000000000"], "at most the model's width"),
    (["--seq=2000000000"], "a layer alone is"),
    (["--instance=trn1.32xlarge,p5.48xlarge"], "bakeoff compares several"),
    (["--nodes=1_0"], "--nodes: '1_0' is no whole number"),
    (["--nodes=\u0664"], "is no whole number"),
    (["--nodes= 4"], "--nodes: ' 4' is no whole number"),
    (["--tp=1e3"], "--tp: '1e3' is no whole number"),
    (["--seq=" + "9" * 5000], "is too large"),
    (["--days=0x10"], "--days: '0x10' is no number"),
    (["--days=nan"], "--days: 'nan' is no number"),
    (["--micro=1"], "did you mean --micro-batch?"),
    (["--glob=3"], "did you mean --global-batch?"),
    (["--epoch-tokens=1e9"], "how long is it?"),
    (["--schedule=1f1b", "--chunks=4"], "only an interleaved pipeline has several"),
]


@pytest.mark.parametrize("words, told", WRONG, ids=lambda v: " ".join(v)[:40] if isinstance(v, list) else "")
def test_wrong_words(words, told, tmp_path, monkeypatch, capsys):
    """Refused before anything is priced, in two lines at most, and nothing is written."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(SMALL))
    os.mkfifo("pipe")
    monkeypatch.setattr(price.Prices, "_prof", lambda *_: pytest.fail("a program was priced"))
    assert command.main(["config.json", "--instance=trn1.32xlarge", "--tp=2", "--pp=1", *words]) == 2
    ran = capsys.readouterr()
    assert told in ran.err and len(ran.err.splitlines()) <= 2 and not ran.out
    assert sorted(os.listdir()) == ["config.json", "pipe"]


def test_a_missing_price_is_told_first(tmp_path, monkeypatch, capsys):
    (tmp_path / "config.json").write_text(json.dumps(SMALL))
    monkeypatch.setattr(price.Prices, "_prof", lambda *_: pytest.fail("a program was priced"))
    assert command.main([str(tmp_path), "--instance=trn2u.48xlarge", "--tp=4", "--pp=1", "--days=3"], "cost") == 2
    assert "no price of trn2u.48xlarge is published" in capsys.readouterr().err


TWO = "p5.48xlarge,p4d.24xlarge"


@pytest.mark.parametrize(
    "instances, words, told",
    [
        ("p5.48xlarge,p5.48xlarge", [], "each once"),
        ("p5.48xlarge", [], "two instances or more"),
        ("p5.48xlarge,p4d", [], "did you mean p4d"),
        (TWO, ["p4d.24xlarge"], "each once"),
        (TWO, ["--price=3"], "whose price"),
        (TWO, ["--price=p5.48xlarge:3,p5.48xlarge:4"], "whose price"),
        (TWO, ["--measured=p5.48xlarge:1e14tok/s"], "times the bf16 peak of the machines"),
        (TWO, ["--measured=p5.48xlarge:1e-300s"], "times the bf16 peak of the machines"),
    ],
)
def test_wrong_bakeoff(instances, words, told, tmp_path, capsys):
    (tmp_path / "config.json").write_text(json.dumps(SMALL))
    assert command.main([str(tmp_path / "config.json"), f"--instance={instances}", "--tp=2", "--pp=1", *words], "bakeoff") == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    "c, words, told",
    [
        ({"model_type": "bert"}, ["--seq=4096"], "longer than the 512 positions of the model\n  hint: --seq=512"),
        (SMALL, ["--nodes=3", "--tp=5", "--global-batch=4"], "3 of p4d.24xlarge have 24"),
        (SMALL, ["--nodes=3", "--tp=5"], "with --tp=5\n  hint: --tp=2 or --tp=4 or --tp=8"),
    ],
)
def test_why_no_layout_is_possible(c, words, told, tmp_path, capsys):
    (tmp_path / "config.json").write_text(json.dumps(c))
    assert command.main([str(tmp_path), "--instance=p4d.24xlarge", *words]) == 2
    assert told in capsys.readouterr().err


def test_a_layout_is_tried_once():
    """One replica shares nothing, whatever ZeRO says."""
    job = layout.Job(config.model(SMALL), machines.machine("p4d.24xlarge"), 1, 128, 8)
    every = list(search.candidates(job, {}))
    assert len(every) == len({*every}) and any(x.dp == 1 for x in every)


def otrn(*words, **more):
    return subprocess.run([sys.executable, "-m", "opentrn", *words], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT / "python")}, **more)


def test_a_full_disk_behind_the_answer(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(SMALL))
    with open("/dev/full", "w") as full:
        ran = subprocess.run([sys.executable, "-m", "opentrn", "predict", str(tmp_path), *GPU], stdout=full, stderr=subprocess.PIPE, text=True,
                             env={**os.environ, "PYTHONPATH": str(ROOT / "python")})  # fmt: skip
    assert ran.returncode == 1 and ran.stderr == "opentrn: error[IO]: standard output: No space left on device\n"


def test_help_is_of_what_was_asked():
    """Of configurations where no program is named, and each command says its own name; of a program it is the library's."""
    for name in ("predict", "cost", "bakeoff"):
        told = otrn(name, "--help").stdout
        assert told.startswith(f"usage: opentrn {name} ") and f"opentrn {name} PROG --help" in " ".join(told.split())
        assert otrn(name, "step.mlir", "--help").stdout.startswith(f"usage: otrn {name} PROG")
    assert "CONFIG.json" in otrn("predict", "--instance=p4d.24xlarge").stderr


def test_help_has_every_option():
    """Words that argparse knows and the help of docs/predict.md are of one table; none is hidden."""
    p = command.parser()
    told = p.format_help()
    for action in p._actions:
        assert action.help and all(v in told for v in action.option_strings)


def test_a_comparison_is_of_one_job(tmp_path, capsys):
    """Machines of 8 devices and of one train the same batch where none is given."""
    (tmp_path / "config.json").write_text(json.dumps(SMALL))
    assert command.main([str(tmp_path), "p5.48xlarge", "--seq=128", "--tp=1", "h200-1", "--json"], "bakeoff") == 0
    a, b = json.loads(capsys.readouterr().out)
    assert a["devices"] != b["devices"] and a["global_batch"] == b["global_batch"]


def row(name, usd, s, error, fits=True):
    return {"instance": name, "fits": fits, "model": "llama", "step_s": s, "usd_per_1m_tokens": usd, "expected_error": error}


def test_verdict():
    a, b, c = row("a", 0.2, 2.0, 0.05), row("b", 0.25, 0.5, 0.05), row("c", 0.1, 0.1, 0.1, fits=False)
    assert money.verdict([a, b, c]) == "a is cheapest: 0.2 USD per 1M tokens, 20.0 % less than b; b is quickest: 0.5 s a step"
    assert "which is within the expected errors" in money.verdict([a, row("b", 0.21, 0.5, None)])
    assert "20.0 % less than d; the expected error of d is not known; b is quickest" in money.verdict([a, b, row("d", 0.25, 1.0, None)][::2] + [row("b", 9.0, 0.5, 0.0)])
    assert money.verdict([c]) == "none of them holds it"
    assert money.verdict([row("a", None, 2.0, 0.1)]) == "a is quickest: 2 s a step; what any of them costs is not known"
    assert money.verdict([b, row("d", None, 9.0, 0.1)]).startswith("b is cheapest and quickest: 0.25 USD per 1M tokens; 0.5 s")


@pytest.mark.parametrize("v, number, seconds", [(0, "0", "0 s"), (2.6e-05, "0.00002600", "26 us"), (0.00435301, "0.004353", "4.353 ms"), (0.5, "0.5", "0.5 s"), (999.96, "1,000", "1,000 s"), (1881917.09, "1,881,917", "1,881,917 s")])
def test_numbers_are_told_as_otrn_tells_them(v, number, seconds):
    """tests/unit/view_test.c has the same rows."""
    assert (text.number(v), text.seconds(v)) == (number, seconds)


def test_progress_is_for_terminals(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with progress.Progress() as p:
        p.tell(0, "trn1")
        p.tell(2, "3 of 7 programs priced")
        p.tell(1, "x" * 500)
    told = capsys.readouterr().err.split("\r\033[K")
    assert told[:3] == ["", "trn1", "trn1, 3 of 7 programs priced"] and len(told[3]) < 500 and told[-1] == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False, raising=False)
    with progress.Progress() as p:
        p.tell(0, "trn1")
    assert capsys.readouterr().err == ""


# The page


LARGE = dict(SMALL, hidden_size=4096, intermediate_size=11008, num_attention_heads=32, num_hidden_layers=32)


def told(tp, pp, micro_batches, **more):
    job = layout.Job(config.model(LARGE), machines.machine("p4d.24xlarge"), 4, 128, micro_batches * 32 // tp // pp)
    x = layout.Layout(tp=tp, pp=pp, dp=32 // tp // pp, **more)
    return job, x, {**command.predict(job, x, None), "knobs": []}


def test_the_picture_of_a_pipeline_is_its_schedule():
    _, x, r = told(2, 4, 8)
    rows, alone = plots.turns(r)
    body = sum(v for k, v in r["seconds"].items() if k in ("micro_batches", "bubble", "sharding", "passing_on"))
    assert alone and len(rows) == 4 and all([v[0] for v in row].count("f") == [v[0] for v in row].count("b") == 8 for row in rows)
    assert max(end for row in rows for *_, end in row) == pytest.approx(body)
    assert [what for what, *_ in rows[0]] == [what for what, _, _ in compose._turns(0, 4, 8, "1f1b", 1)]
    for row in rows:
        assert all(a[2] <= b[1] + 1e-12 for a, b in zip(row, row[1:]))  # one after the other
    svg = plots.schedule(r)
    assert svg.count("<title>forward:") == svg.count("<title>backward:") == 32 and "stage 4 of 4" in svg
    most = max(v for _, v in plots._kept(r, x.in_flight(told(2, 4, 8)[0], 0)))
    assert most == 1.0


@pytest.mark.parametrize("tp, pp, micros, more", [(2, 1, 3, {}), (2, 1, 4096, {}), (2, 4, 2048, {}), (2, 2, 4, {"schedule": "interleaved", "chunks": 2}), (2, 4, 4, {"schedule": "gpipe"})])
def test_every_page_is_drawn(tp, pp, micros, more):
    """Whatever the schedule, and of as many micro-batches as nobody could see."""
    job, x, r = told(tp, pp, micros, **more)
    html = page.text(job, x, r, None, page.scaling(job, x, lambda job, x: roof.step(job, x)))
    assert "nan" not in html and "inf" not in html and not re.search(r"[0-9]e[-+]?[0-9]", re.sub(r"<style>.*?</style>", "", html, flags=re.S)) and len(html) < 200000
    for head in ("A step", "A micro-batch", "Memory of a device", "Collectives", "Roofs of a device", "Fewer and more machines", "Costs", "How far it may be off"):
        assert f"<h2>{head}" in html, head
    assert f"<b>{text.seconds(r['step_s'])}</b>" in html and f"<b>{text.number(r['tokens_per_s'])}</b>" in html
    assert "the batch grows with the machines" in html and r["price_basis"] in html


def test_kinds_of_collectives_are_those_of_the_step():
    """By roofs they are what comm_share says; a compiled step has them by kind, of which several go at once."""
    _, _, r = told(2, 4, 8)
    assert sum(r["collectives"].values()) == pytest.approx(r["comm_share"] * r["step_s"])
    job = layout.Job(config.model(SMALL), machines.machine("trn1.32xlarge"), 1, 128, 32)
    r = compose.step(job, layout.Layout(tp=4, dp=8), price.Prices(job.machine))
    assert {"all_reduce", "all_gather", "reduce_scatter"} >= {*r["collectives"]} and sum(r["collectives"].values()) >= 0.99 * r["comm_share"] * r["step_s"]


def test_a_measurement_too_quick_to_be_true():
    _, _, r = told(2, 1, 3)
    assert money.replaced(r, 2 * r["step_s"], "s")["mfu"] == pytest.approx(r["mfu"] / 2)
    with pytest.raises(Fault, match="times the bf16 peak"):
        money.replaced(r, r["step_s"] * r["mfu"] / 3, "s")
