# SPDX-License-Identifier: Apache-2.0
"""How far steps on GPUs are off: published ones against the roofs of opentrn predict.

    make accuracy
    python3 accuracy/gpus.py --only=h100
    python3 accuracy/gpus.py --fit

gpus.csv has published steps of several GPUs: the shares of peaks that products and attention reach, in chips/accelerators.table, and
three numbers of the software, beside them, are fitted to them. h200.csv has measured steps of one GPU, compiled and eager, each a command
(`opentrn predict CONFIG --instance=h200-1 …`): numbers of launches and of eager software are fitted to those of them that are not held
out; --fit fits them again, from far off, and tells the error of both halves.
"""

import argparse
import csv
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))
from opentrn._predict import command, errors, layout, machines, roof, spec


def rows():
    with open(HERE / "gpus.csv", encoding="utf-8") as file:
        return list(csv.DictReader(v for v in file if not v.startswith("#")))


def step_of(row):
    """(job, layout, prediction) of a published row."""
    n = {k: int(row[k]) for k in ("devices", "layers", "width", "heads", "hidden", "vocab", "seq", "micro-batch", "global-batch", "zero")}
    m = spec.Model("gpt2", n["layers"], n["width"], n["heads"], n["heads"], n["width"] // n["heads"], n["hidden"], n["vocab"], positions=n["seq"])
    machine = machines.machine(row["instance"])
    job = layout.Job(m, machine, max(n["devices"] // machine.devices, 1), n["seq"], n["global-batch"], row["precision"])
    x = layout.Layout(dp=n["devices"], zero=n["zero"], micro_batch=n["micro-batch"], recompute=row["recompute"])
    return job, x, roof.step(job, x)


def predicted(row):
    """Tokens a second of one GPU."""
    return step_of(row)[2]["tokens_per_s"] / int(row["devices"])


def single_rows():
    with open(HERE / "h200.csv", encoding="utf-8") as file:
        return list(csv.DictReader(v for v in file if not v.startswith("#")))


def words(row):
    """What stands behind `opentrn predict`."""
    shape = {"seq": row["seq"], "micro-batch": row["batch"], "global-batch": row["batch"], "precision": row["precision"], "software": row["software"]}
    config = (HERE / "configs" / f"{row['config']}.json").relative_to(HERE.parent)
    return [str(config), f"--instance={row['instance']}", "--tp=1", "--pp=1", *(f"--{k}={v}" for k, v in shape.items())]


def single_of(row):
    """(job, layout, prediction) of a measured row."""
    given = words(row)
    o = command.parser().parse_args([str(HERE.parent / given[0]), *given[1:]])
    job, shape = command.job_of(o)
    x = command.layout_of(job, shape)
    return job, x, roof.step(job, x)


def predicted_single(row):
    """Milliseconds of a step."""
    return 1e3 * single_of(row)[2]["step_s"]


def keep():
    """The errors, where predictions find them."""
    table = [(r, *step_of(r), float(r["published"]) / predicted(r) - 1) for r in rows()]
    table += [(r, *single_of(r), predicted_single(r) / float(r["published"]) - 1) for r in single_rows()]
    errors.keep([{"id": r["id"], "error": round(100 * off, 1), **errors.features(job, x, told)} for r, job, x, told, off in table], errors.ROOFS)


FITTED = ("tensor_s", "kernel_s", "gelu_passes", "eager_logit_bytes", "score_bytes")


def mean(rows):
    found = [abs(predicted_single(r) / float(r["published"]) - 1) for r in rows]
    return 100 * sum(found) / len(found)


def fit():
    """One number after the other by steps that become smaller, from twice and half of what they are."""
    kept, soft = [r for r in single_rows() if r["held"] == "0"], roof.soft()
    for i, name in enumerate(FITTED):
        setattr(soft, name, getattr(soft, name) * (2.0 if i % 2 else 0.5))
    best, width = mean(kept), 0.3
    while width > 0.004:
        before = best
        for name in FITTED:
            at = getattr(soft, name)
            for value in (at * (1 + width), at / (1 + width)):
                setattr(soft, name, value)
                if mean(kept) < best:
                    best, at = mean(kept), value
            setattr(soft, name, at)
        width = width if best < before - 1e-4 else width / 2
    print(", ".join(f"{name} = {getattr(soft, name):.4g}" for name in FITTED))


def singles(every):
    print(f"\n{'':8} {'steps on one GPU, ms':40} {'held':>7} {'measured':>10} {'modelled':>10} {'error':>8}")
    rows = single_rows()
    for row in rows if every else ():
        ours, theirs = predicted_single(row), float(row["published"])
        what = f"{row['config']}, {row['batch']} x {row['seq']}, {row['precision']}, {row['software']}"
        print(f"{row['id']:8} {what:40} {'held' if row['held'] == '1' else '':>7} {theirs:10.5g} {ours:10.5g} {100 * (ours / theirs - 1):+7.1f}%")
    halves = [[r for r in rows if r["held"] == held] for held in "01"]
    print(f"steps on one GPU: mean absolute error {mean(rows):.1f}% over {len(rows)} rows: {mean(halves[0]):.1f}% of the {len(halves[0])} fitted to, {mean(halves[1]):.1f}% of the {len(halves[1])} held out")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="rows whose model, id or instance has it")
    parser.add_argument("--all", action="store_true", help="a line for each row, not only the worst")
    parser.add_argument("--keep", action="store_true", help="write the errors into chips/errors.csv")
    parser.add_argument("--fit", action="store_true", help="fit the numbers of one GPU's software again")
    parser.add_argument("--commands", action="store_true", help="print the rows of one GPU as commands, nothing else")
    o = parser.parse_args()
    if o.commands:
        for row in single_rows():
            print("opentrn predict", *words(row))
        return 0
    if o.keep:
        keep()
        return 0
    if o.fit:
        fit()
        singles(True)
        return 0
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
    if not o.only or o.only in "h200-1":
        singles(o.all)
    return 0


if __name__ == "__main__":
    sys.exit(main())
