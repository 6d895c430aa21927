# SPDX-License-Identifier: Apache-2.0
"""make zoo: its table, one step of it exported and priced, and what counts as slower."""

import json
import re
import subprocess
import sys

import pytest
from conftest import OTRN, ROOT

sys.path.insert(0, str(ROOT / "scripts" / "zoo"))
import table
import zoo


def test_table():
    names = [name for name, _, _ in table.entries()]
    assert len(names) >= 40 and len({re.sub(r"\W+", "-", name) for name in names}) == len(names)
    for name, kind, what in table.entries():
        assert all((ROOT / path).exists() for path in table.KINDS[kind][1](what)), name
    for name in names:  # both forms of a model
        assert not name.endswith(" scan") or "rbg" in name or name.replace(" scan", " unrolled") in names, name


def run(tmp_path, *more):
    args = [sys.executable, ROOT / "scripts/zoo/zoo.py", f"--otrn={OTRN}", f"--build={tmp_path}", *more]
    return subprocess.run([str(a) for a in args], capture_output=True, text=True)


def test_prices(tmp_path):
    first = run(tmp_path, "--only=ppo *", "--chips=trn1,trn3", f"--json={tmp_path / 'rows.json'}")
    assert first.returncode == 0 and "exporting ppo" in first.stderr, first.stderr
    rows = json.loads((tmp_path / "rows.json").read_text())
    assert [(r["name"], r["chip"]) for r in rows] == [("ppo 4096", "trn1"), ("ppo 4096", "trn3")]
    assert all(r["us"] > r["roof_us"] > 0 and r["hbm_bytes"] and r["instructions"] for r in rows)
    again = run(tmp_path, "--only=ppo *", "--chips=trn1")
    assert again.returncode == 0 and again.stderr == "" and "sum trn1" in again.stdout


@pytest.mark.parametrize(("today", "clock", "slower"), [(100.0, 50.0, False), (98.0, 200.0, True), (None, 98.0, True), (None, 99.5, False)])
def test_slower(capsys, today, clock, slower):
    class since:
        name = "old"

    row = {"name": "a step", "chip": "trn1", "us": 100.0, "hbm_bytes": 1, "compile_s": 0.1, "since": {"us": clock, "today_us": today}}
    assert zoo.summary([row], since) == slower
    assert f"{int(slower)} of 1 slower" in capsys.readouterr().out
