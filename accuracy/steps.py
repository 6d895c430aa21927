# SPDX-License-Identifier: Apache-2.0
"""How far whole training steps are off: published ones on trn1, predicted from their configurations and compared.

    make accuracy
    .venv/bin/python accuracy/steps.py --only=gpt3

Each row of steps.csv is a command, `opentrn predict CONFIG --instance=… …`, which --commands prints: what is compared here is what
it says, with the software of the day it was published on (--as-of, accuracy/software.py). --keep writes the errors where predictions find them (chips/errors.csv). Without JAX (.venv) rows are skipped.
"""

import argparse
import csv
import json
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(ROOT / "python"))
INSTANCE = "trn1.32xlarge"
WORDS = ("nodes", "tp", "pp", "zero", "seq", "micro-batch", "global-batch", "recompute", "precision", "optimizer", "as-of")
ASSUMED = """assumed where the sources are silent: BERT drops a tenth (its published configuration), drawn from rbg keys, GPT3 and Llama nothing;
BERT's logits are of all positions; GPT3 and Llama have three products for queries, keys and values and one for a gated MLP's way up, and cut
activations between a layer's products by position (--sp); gradients are clipped with AdamW; a reduction begins behind the last micro-batch, in the
compiler's buckets; fp32 products are fp32; 16-node fp32 rows have the micro-batch of the one-node rows; data come for nothing; attention is what --attention says without
being given; for each doubling of machines 1.1 % of the step is waiting for the slowest; a row without a date has the newest software."""


def rows(only=""):
    with open(HERE / "steps.csv", encoding="utf-8") as file:
        every = list(csv.DictReader(v for v in file if not v.startswith("#")))
    return [r for r in every if only in r["config"] or only == r["id"]]


def words(row):
    """What stands behind `opentrn predict`."""
    config = (HERE / "configs" / f"{row['config']}.json").relative_to(ROOT)
    return [str(config), f"--instance={INSTANCE}", *(f"--{k}={row[k]}" for k in WORDS if row[k])]


def predicted(row, prices):
    """The prediction of a row, and what errors.csv keeps of it."""
    from opentrn._predict import command, errors

    given = words(row)
    o = command.parser().parse_args([str(ROOT / given[0]), *given[1:]])
    job, shape = command.job_of(o)
    x = command.layout_of(job, shape)
    if prices.get(job.machine) is None:
        prices[job.machine] = command.Prices(job.machine)
    result = command.predict(job, x, prices[job.machine])
    return result, errors.features(job, x, result)


def unseen(table):
    """Errors where what a month's software is worth is told by other configurations' figures alone."""
    import software

    pages = software.published()
    what = {r["id"]: r["what"] for r in pages}
    for row in table:
        here = row["as_of"]
        if here:
            others = software.speeds(software.measured([r for r in pages if r["what"] != what[row["id"]]]))
            speed = others[max(m for m in others if m <= here["month"])]
            yield 100 * (row["published"] / row["modelled"] * here["speed"] / speed - 1)
        else:
            yield row["error"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="rows whose configuration or id has it")
    parser.add_argument("--json", default="")
    parser.add_argument("--commands", action="store_true", help="print the rows as commands, nothing else")
    parser.add_argument("--keep", action="store_true")
    o = parser.parse_args()
    if o.commands:
        for row in rows(o.only):
            print("opentrn predict", *words(row))
        return 0
    try:
        import jax  # noqa: F401
    except ImportError:
        print("skipped whole steps: no JAX in this Python (./dev setup makes .venv)")
        return 0
    os.environ.setdefault("OTRN_CACHE_DIR", str(ROOT / "build" / "steps"))
    found, table, prices = [], [], {}
    print(f"{'':8} {'whole steps, sequences a second':34} {'nodes':>5} {'published':>10} {'modelled':>10} {'error':>8}  step s = parts")
    for row in rows(o.only):
        result, at = predicted(row, prices)
        ours, theirs = result["samples_per_s"], float(row["published"])
        error = 100 * (theirs / ours - 1)  # of the step's time
        found.append(abs(error))
        told = " + ".join(f"{v:.4g} {k.replace('_', ' ')}" for k, v in result["seconds"].items())
        print(f"{row['id']:8} {row['what']:34} {row['nodes']:>5} {theirs:10.5g} {ours:10.5g} {error:+7.1f}%  {result['step_s']:.4g} = {told}", flush=True)
        table.append({"id": row["id"], "published": theirs, "modelled": ours, "error": round(error, 1), "seconds": result["seconds"], "as_of": result.get("as_of"), **at})
    print(f"\n{ASSUMED}\n")
    print(f"whole steps: mean absolute error of the time {sum(found) / len(found):.1f}% over {len(found)} rows, worst {max(found):.1f}%")
    off = [abs(v) for v in unseen(table)]
    print(f"with a month's software told by the other configurations alone: {sum(off) / len(off):.1f}%, worst {max(off):.1f}%")
    if o.json:
        pathlib.Path(o.json).write_text(json.dumps(table, indent=1))
    if o.keep:
        from opentrn._predict import errors

        errors.keep(table, {"trn1"})
    return 0


if __name__ == "__main__":
    sys.exit(main())
