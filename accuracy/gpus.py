# SPDX-License-Identifier: Apache-2.0
"""How far steps on GPUs are off: published ones against the roofs of opentrn predict.

    make accuracy
    python3 accuracy/gpus.py --only=h100
    python3 accuracy/gpus.py --fit

gpus.csv has published steps of several GPUs: the shares of peaks that products and attention reach, in chips/accelerators.table, and
three numbers of the software, beside them, are fitted to them; each model is also told by a fit to all the others. h200.csv has measured
steps of one GPU, compiled and eager, each a command (`opentrn predict CONFIG --instance=h200-1 …`): numbers of launches and of eager
software are fitted to those of them that are not held out; --fit fits them all again, from far off, and tells the error of both halves.
"""

import argparse
import csv
import dataclasses
import functools
import pathlib
import random
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))
from opentrn._predict import command, errors, layout, machines, roof, spec


def rows():
    with open(HERE / "gpus.csv", encoding="utf-8") as file:
        return list(csv.DictReader(v for v in file if not v.startswith("#")))


@functools.cache
def machine(name):
    return machines.machine(name)


def job_of(row):
    """(job, layout) of a published row."""
    n = {k: int(row[k]) for k in ("devices", "layers", "width", "heads", "hidden", "vocab", "seq", "micro-batch", "global-batch", "zero")}
    m = spec.Model("gpt2", n["layers"], n["width"], n["heads"], n["heads"], n["width"] // n["heads"], n["hidden"], n["vocab"], positions=n["seq"])
    on = machine(row["instance"])
    job = layout.Job(m, on, max(n["devices"] // on.devices, 1), n["seq"], n["global-batch"], row["precision"])
    return job, layout.Layout(dp=n["devices"], zero=n["zero"], micro_batch=n["micro-batch"], recompute=row["recompute"], attention=row["attention"] or None)


def step_of(row):
    """(job, layout, prediction) of a published row."""
    job, x = job_of(row)
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


ONE = ("tensor_s", "kernel_s", "gelu_passes", "eager_logit_bytes", "score_bytes")  # fitted to steps of one GPU
ALIKE = {"a100": "a100", "a100-80": "a100", "h100": "h100"}  # chips that have the same shares
SHARES = ("products.a100", "attention.a100", "products.h100", "attention.h100", "products_fp8.h100")
SEVERAL = (*SHARES, "passes", "logit_bytes", "host_s", "stall")  # fitted to steps of several


def mean(rows):
    found = [abs(predicted_single(r) / float(r["published"]) - 1) for r in rows]
    return 100 * sum(found) / len(found)


def descend(numbers, loss):
    """Numbers that lose least, by steps that become smaller: one number alone, or several at once, drawn by a fixed seed (what products
    take and what lies between them nearly make up for each other)."""
    numbers, best, width, draw = dict(numbers), loss(numbers), 0.3, random.Random(19)
    alone = [{name: way} for name in numbers for way in (1, -1)]
    while width > 0.004:
        before = best
        for move in [*alone, *({name: draw.choice((-1, 0, 1)) for name in numbers} for _ in range(60))]:
            tried = {k: v * (1 + width) ** move.get(k, 0) for k, v in numbers.items()}
            now = loss(tried)
            if now < best:
                best, numbers = now, tried
        width = width if best < before - 0.02 else width / 2
    return numbers


def far_off(numbers):
    return {name: v * (1.5 if i % 2 else 1 / 1.5) for i, (name, v) in enumerate(numbers.items())}


def fit_one():
    kept, soft = [r for r in single_rows() if r["held"] == "0"], roof.soft()

    def loss(numbers):
        vars(soft).update(numbers)
        return mean(kept)

    found = descend(far_off({name: getattr(soft, name) for name in ONE}), loss)
    loss(found)
    return found


def loss_of(rows):
    """Mean error of published rows, by numbers; the soft ones stay as they were."""
    soft, jobs = roof.soft(), [(*job_of(r), float(r["published"])) for r in rows]

    def loss(numbers):
        was, off = dict(vars(soft)), 0.0
        vars(soft).update({k: v for k, v in numbers.items() if "." not in k})
        for job, x, theirs in jobs:
            own = {k.partition(".")[0]: v for k, v in numbers.items() if k.endswith("." + ALIKE[job.machine.chip])}
            told = roof.step(dataclasses.replace(job, machine=dataclasses.replace(job.machine, **own)), x)
            off += abs(theirs * x.devices / told["tokens_per_s"] - 1)
        vars(soft).update(was)
        return 100 * off / len(jobs)

    return loss


def now_several():
    """The table's."""
    own = {ALIKE[v[1]]: machine(name) for name, v in roof.rows().items() if v[1] in ALIKE}
    return {k: getattr(own[k.partition(".")[2]], k.partition(".")[0]) if "." in k else getattr(roof.soft(), k) for k in SEVERAL}


def left_out():
    """Each model told by numbers that are fitted to all the others."""
    every, start, total = rows(), now_several(), 0.0
    for what in sorted({r["what"] for r in every}):
        rest, alone = ([r for r in every if (r["what"] == what) == same] for same in (False, True))
        off = loss_of(alone)(descend(far_off(start), loss_of(rest)))
        total += off * len(alone)
        print(f"left out: {what:20} {off:5.1f}% over {len(alone)} rows")
    print(f"steps on GPUs, each model by a fit to the others: mean absolute error {total / len(every):.1f}% over {len(every)} rows")


def fit():
    """All of them, from far off."""
    several = loss_of(rows())
    found = descend(far_off(now_several()), several)
    print(f"{several(found):.2f}%:", end=" ")
    for numbers in (found, fit_one()):
        print(", ".join(f"{name} = {v:.4g}" for name, v in numbers.items()), flush=True)


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
    parser.add_argument("--fit", action="store_true", help="fit all numbers again, print them")
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
    if not o.only:
        left_out()
    if not o.only or o.only in "h200-1":
        singles(o.all)
    return 0


if __name__ == "__main__":
    sys.exit(main())
