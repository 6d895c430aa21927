# SPDX-License-Identifier: Apache-2.0
"""Published steps that nobody gave us: how far `opentrn predict` is off on them, machine by machine.

    .venv/bin/python accuracy/others.py                    # GPUs and TPUs: roofs, a few seconds
    .venv/bin/python accuracy/others.py --only=trn1 --all  # compiled: minutes
    .venv/bin/python accuracy/others.py --only=qwen --commands

Each row of others.csv is a command with a configuration of others.json, which --configs=FOLDER writes as files.
"""

import argparse
import collections
import csv
import json
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))
from opentrn._predict import command, errors, layout
from opentrn._predict.fault import Fault


def rows(only=""):
    with open(HERE / "others.csv", encoding="utf-8") as file:
        every = list(csv.DictReader(v for v in file if not v.startswith("#")))
    return [r for r in every if only in f"{r['what']} {r['config']} {r['words']}"]


def configs(folder):
    for name, fields in json.loads((HERE / "others.json").read_text(encoding="utf-8")).items():
        (pathlib.Path(folder) / f"{name}.json").write_text(json.dumps(fields, indent=1) + "\n", encoding="utf-8")


def predicted(row, folder, prices):
    """The prediction of a row, by the command's own way."""
    o = command.parser().parse_args([f"{folder}/{row['config']}.json", *row["words"].split()])
    job, shape = command.job_of(o)
    if job.machine not in prices:
        prices[job.machine] = command.Prices(job.machine) if "trn" in job.machine.name else None
    return job, command.predict(job, command.layout_of(job, shape), prices[job.machine])


def off(row, told):
    """How much longer the published step took than the predicted one, as a share."""
    return float(row["published"]) / told["tokens_per_s"] - 1


def table():
    """Rows of accelerators as chips/errors.csv keeps them."""
    with tempfile.TemporaryDirectory() as folder:
        configs(folder)
        for row in rows():
            if "=trn" not in row["words"]:
                job, told = predicted(row, folder, {})
                at = errors.features(job, layout.Layout(**told["layout"]), told)
                yield {"error": f"{100 * off(row, told):.1f}", **at, "sort": errors.sort(job)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="rows whose name, configuration or words have it; without it all but Trainium's")
    parser.add_argument("--all", action="store_true", help="a line for each row")
    parser.add_argument("--commands", action="store_true", help="print the rows as commands, nothing else")
    parser.add_argument("--keep", action="store_true", help="write the errors of accelerators into chips/errors.csv")
    parser.add_argument("--configs", default="", help="write the configurations into this folder, nothing else")
    o = parser.parse_args()
    if o.configs:
        return configs(o.configs)
    if o.keep:
        errors.keep_others(list(table()))
        return 0
    wanted = [r for r in rows(o.only) if o.only or "=trn" not in r["words"]]
    if o.commands:
        print("\n".join(f"opentrn predict {r['config']}.json {r['words']}" for r in wanted))
        return 0
    found, prices = collections.defaultdict(list), {}
    with tempfile.TemporaryDirectory() as folder:
        configs(folder)
        for row in wanted:
            try:
                job, told = predicted(row, folder, prices)
            except Fault as fault:
                print(f"{row['what']:28} {fault}")
                continue
            error = 100 * off(row, told)
            found[row["what"].split()[0].partition("-")[0], job.machine.name, row["fitted"]].append(error)
            if o.all:
                fits = "" if told["fits"] else "  said not to fit"
                print(f"{row['what']:28} {job.nodes:4} x {job.machine.name:17} {float(row['published']):10.5g} {told['tokens_per_s']:10.5g} {error:+7.1f}%{fits}", flush=True)
    for (what, name, fitted), offs in found.items():
        mean, most = sum(map(abs, offs)) / len(offs), max(offs, key=abs)
        print(f"{what:10} {name:17} {len(offs):4} rows, mean absolute error {mean:5.1f}%, mean {sum(offs) / len(offs):+6.1f}%, worst {most:+6.1f}%  {fitted}")
    for name in ("", "fitted"):
        every = [abs(v) for (_, _, fitted), offs in found.items() if fitted == name for v in offs]
        if every:
            print(f"{'fitted to' if name else 'not fitted to'}: mean absolute error {sum(every) / len(every):.1f}% over {len(every)} rows")
    return 0


if __name__ == "__main__":
    sys.exit(main())
