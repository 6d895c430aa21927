# SPDX-License-Identifier: Apache-2.0
"""How far a prediction is off, judging by the published steps nearest to it (errors.csv, which `make accuracy` writes)."""

import csv
import functools
import math
import pathlib

FIELDS = ("id", "chip", "task", "precision", "parameters", "seq", "nodes", "tp", "pp", "zero", "recompute", "error")
_NEAREST = 3


@functools.cache
def _rows():
    path = pathlib.Path(__file__).with_name("errors.csv")
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(v for v in file if not v.startswith("#")))


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


def percent(error):
    return "not known" if error is None else f"{100 * error:.0f} %"


def expected(job, x, result):
    """Mean absolute error of the nearest rows, as a share of the step."""
    if hasattr(job.machine, "products"):  # roofs: the mean of accuracy/gpus.py over the rows they are fitted to; of other chips we have none
        return {"expected_error": 0.05 if job.machine.chip in ("a100", "a100-80", "h100") else None, "expected_error_rows": []}
    at = features(job, x, result)
    near = sorted(_rows(), key=lambda row: distance(row, at))[:_NEAREST]
    return {"expected_error": sum(abs(float(r["error"])) for r in near) / max(len(near), 1) / 100, "expected_error_rows": [r["id"] for r in near]}
