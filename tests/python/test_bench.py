# SPDX-License-Identifier: Apache-2.0
"""A contestant of a benchmark that dies is named, and the others go on."""

import argparse
import importlib.util
import pathlib
import sys

FILE = pathlib.Path(__file__).resolve().parents[2] / "bench" / "gpt2_bench.py"
LIVES = "import sys\nfor line in sys.stdin: print('[0.5, 0.4, 1.0]', flush=True)"
DIES = "import sys; sys.stdin.readline(); sys.exit('RuntimeError: mkldnn_bf16 device check failed')"
DIES_LATER = "print('[0.5, 0.4, 1.0]', flush=True)\n" + DIES


def contest(monkeypatch, scripts):
    spec = importlib.util.spec_from_file_location("gpt2_bench", FILE)
    bench = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bench)
    monkeypatch.setattr(bench, "has_torch", lambda: True)
    monkeypatch.setattr(bench, "profile", lambda o, dtype: None)
    monkeypatch.setattr(bench, "command", lambda o, name, dtype: [sys.executable, "-c", scripts[name]])
    return bench.contest(argparse.Namespace(batch=1, seq=8, rounds=3), "bf16")


def test_a_contestant_dies(monkeypatch, capsys):
    assert contest(monkeypatch, {"opentrn": LIVES, "jax": LIVES, "torch": DIES}) == 1  # as quick as jax, the bar is two
    out = capsys.readouterr().out
    assert "bf16 torch died (status 1): RuntimeError: mkldnn_bf16 device check failed" in out
    assert "opentrn is  1.00 of better's speed" in out


def test_one_dies_in_the_middle(monkeypatch, capsys):
    contest(monkeypatch, {"opentrn": LIVES, "jax": DIES_LATER, "torch": LIVES})
    out = capsys.readouterr().out
    assert "bf16 jax died" in out and "torch " in out


def test_all_others_die(monkeypatch, capsys):
    assert contest(monkeypatch, {"opentrn": LIVES, "jax": DIES, "torch": DIES}) == 0
    assert capsys.readouterr().out.count("died") == 2


def test_we_die(monkeypatch, capsys):
    assert contest(monkeypatch, {"opentrn": DIES, "jax": LIVES, "torch": LIVES}) == 1
    assert "bf16 opentrn died" in capsys.readouterr().out
