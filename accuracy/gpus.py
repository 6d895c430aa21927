# SPDX-License-Identifier: Apache-2.0
"""How far steps on GPUs are off: published ones against the roofs of opentrn predict.

    make accuracy
    python3 accuracy/gpus.py --only=h100

The shares of peaks that products and attention reach, in chips/accelerators.table, and three numbers of the software, in roof.py, are
fitted to these rows.
"""

import argparse
import csv
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))
from opentrn._predict import layout, machines, roof, spec


def rows():
    with open(HERE / "gpus.csv", encoding="utf-8") as file:
        return list(csv.DictReader(v for v in file if not v.startswith("#")))


def predicted(row):
    """Tokens a second of one GPU."""
    n = {k: int(row[k]) for k in ("devices", "layers", "width", "heads", "hidden", "vocab", "seq", "micro-batch", "global-batch", "zero")}
    m = spec.Model("gpt2", n["layers"], n["width"], n["heads"], n["heads"], n["width"] // n["heads"], n["hidden"], n["vocab"], positions=n["seq"])
    machine = machines.machine(row["instance"])
    job = layout.Job(m, machine, max(n["devices"] // machine.devices, 1), n["seq"], n["global-batch"], row["precision"])
    x = layout.Layout(dp=n["devices"], zero=n["zero"], micro_batch=n["micro-batch"], recompute=row["recompute"])
    return roof.step(job, x)["tokens_per_s"] / n["devices"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="rows whose model, id or instance has it")
    parser.add_argument("--all", action="store_true", help="a line for each row, not only the worst")
    o = parser.parse_args()
    found = []
    for row in rows():
        if o.only in row["what"] or o.only == row["id"] or o.only in row["instance"]:
            ours, theirs = predicted(row), float(row["published"])
            found.append((100 * (theirs / ours - 1), row, ours))
    shown = found if o.all else sorted(found, key=lambda v: -abs(v[0]))[:6]
    print(f"{'':8} {'steps on GPUs, tokens a second of one':40} {'devices':>7} {'published':>10} {'modelled':>10} {'error':>8}")
    for error, row, ours in shown:
        print(f"{row['id']:8} {row['what'] + ', ' + row['seq'] + ', ' + row['instance']:40} {row['devices']:>7} {row['published']:>10} {ours:10.6g} {error:+7.1f}%")
    errors = [abs(v[0]) for v in found]
    print(f"steps on GPUs: mean absolute error of the time {sum(errors) / len(errors):.1f}% over {len(errors)} rows, worst {max(errors):.1f}%")
    return 0


if __name__ == "__main__":
    sys.exit(main())
