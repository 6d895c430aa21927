# SPDX-License-Identifier: Apache-2.0
"""How far a prediction is off, judging by the published steps nearest to it (chips/errors.csv, which accuracy/steps.py, gpus.py and
others.py write with --keep; `otrn` reads the same but for others.py's, and of GPUs the errors of steps given as programs, accuracy/roofs.py's)."""

import csv
import functools
import math
import os
import pathlib

from opentrn import _library

FIELDS = ("id", "chip", "task", "precision", "parameters", "seq", "nodes", "tp", "pp", "zero", "recompute", "error", "program", "sort")
_NEAREST = 3
ROOFS = ("a100", "a100-80", "b200", "h100", "h200", "v5e", "v5p", "v6e")  # chips in it that are priced by roofs
OTHERS = "o"  # begins the names of accuracy/others.py's


def table():
    return pathlib.Path(os.environ.get("OTRN_CHIPS") or _library.chips_path()) / "errors.csv"


def _write(rows):
    lines = [",".join(r[k] for k in (FIELDS if r["sort"] else FIELDS[:-1])) for r in sorted(rows, key=lambda r: r["id"])]
    head = ["# SPDX-License-Identifier: Apache-2.0", "# Errors of predicted steps in percent of the published time; accuracy/steps.py, gpus.py, others.py (with a sort) and (program) roofs.py write them with --keep."]
    table().write_text("\n".join([*head, ",".join(FIELDS), *lines]) + "\n", encoding="utf-8")


def keep(rows, chips):
    """Puts rows in the place of those of these chips."""
    programs = {r["id"]: r["program"] for r in _rows()}
    new = [{k: str({"program": programs.get(r["id"], ""), "sort": "", **r}[k]) for k in FIELDS} for r in rows]
    _write([r for r in _rows() if r["chip"] not in chips or r["sort"]] + new)


def keep_others(rows):
    """Puts rows, each with its sort, in the place of all that have one."""
    new = [{k: str({"program": "", **r, "id": f"{OTHERS}{i:04}"}[k]) for k in FIELDS} for i, r in enumerate(rows, 1)]
    _write([r for r in _rows() if not r["sort"]] + new)


def sort(job):
    """Which software, and whether its model has experts: what some of the published steps were of."""
    return job.software + "+experts" * bool(job.model.experts)


def keep_programs(errors):
    """Errors of rows that were given as programs, by name."""
    _write([{**r, "program": f"{errors[r['id']]:.1f}" if r["id"] in errors else r["program"]} for r in _rows()])


@functools.cache
def _rows():
    with open(table(), encoding="utf-8") as file:
        return [{**r, "program": r.get("program") or "", "sort": r.get("sort") or ""} for r in csv.DictReader(v for v in file if not v.startswith("#"))]


def features(job, x, result):
    return {"chip": job.machine.chip, "task": job.model.task, "precision": job.precision, "parameters": result["parameters"], "seq": job.seq,
            "nodes": job.nodes, "tp": x.tp, "pp": x.pp, "zero": x.zero, "recompute": x.recompute}  # fmt: skip


def distance(row, at):
    """Apart in what changes which parts of the model of time count most."""
    far = 2.0 * (row["chip"] != at["chip"]) + (row["task"] != at["task"]) + (row["precision"] != at["precision"])
    far += 0.3 * (row["recompute"] != at["recompute"]) + 0.5 * ((int(row["zero"]) > 0) != (at["zero"] > 0))
    far += sum((int(row[k]) > 1) != (at[k] > 1) for k in ("tp", "pp"))
    weigh = {"parameters": 0.2, "seq": 0.3, "nodes": 0.1}
    return far + sum(w * abs(math.log2(float(row[k]) / at[k])) for k, w in weigh.items())


def basis(names):
    """Published steps as words, and how far each was off."""
    told = {r["id"]: r for r in _rows()}
    shape = lambda r: f"{float(r['parameters']) / 1e9:.3g}G weights, {r['nodes']} x {r['chip']}, sequences of {r['seq']}, tp={r['tp']} pp={r['pp']}"
    return [f"{name} ({shape(told[name])}): {abs(float(told[name]['error'])):.1f} %" for name in names if name in told]


def percent(error):
    return "not known" if error is None else "under 1 %" if 0 < error < 0.005 else f"{100 * error:.0f} %"


def expected(job, x, result):
    """Mean absolute error of the nearest rows, as a share of the step."""
    at, roofs = features(job, x, result), hasattr(job.machine, "products")
    same = [r for r in _rows() if (r["chip"] in ROOFS) == roofs]  # a compiler's errors say nothing of roofs'
    if roofs:
        same = [r for r in same if r["chip"] == at["chip"]]  # shares of the peaks are the chip's own
    same = [r for r in same if r["sort"].endswith("+experts") == bool(job.model.experts)]
    if not same:
        return {"expected_error": None, "expected_error_rows": []}
    tuned = job.software == "tuned"
    near = sorted(same, key=lambda row: distance(row, at) + 2.0 * (row["sort"].startswith("tuned") != tuned))[:_NEAREST]
    return {"expected_error": sum(abs(float(r["error"])) for r in near) / max(len(near), 1) / 100, "expected_error_rows": [r["id"] for r in near]}
