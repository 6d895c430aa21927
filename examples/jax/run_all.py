# SPDX-License-Identifier: Apache-2.0
"""Trains all examples in their default sizes and prints one table.

python examples/jax/run_all.py                 or ./dev examples
python examples/jax/run_all.py --only=gpt,vit  these; --platform=cpu on JAX's CPU
"""

import importlib
import sys
import time

import common

from opentrn._training import TARGETS

NAMES = ("gpt", "bert", "vit", "dlrm", "long_context", "pde")


def row(name, run, seconds):
    cells = [name, f"{run.loss:.4g}", f"{run.goal:g}", f"{seconds:.0f} s", f"{run.rate:,.0f} {run.what}/s"]
    if run.profile.ran:
        modelled = [run.modelled(t) for t in TARGETS]
        cells += [f"{step_us:,.0f} us" for step_us, _, _ in modelled]
        cells += [f"{usd:.5f}" if usd else "-" for _, _, usd in modelled]
    return cells


def main():
    args = common.arguments(__doc__, only=",".join(NAMES))
    rows = [["example", "loss", "goal", "time", "host"]]
    missed = []
    for name in args.only.split(","):
        print(f"== {name}", flush=True)
        begin = time.perf_counter()
        run = importlib.import_module(name).train()
        rows.append(row(name, run, time.perf_counter() - begin))
        if not run.reached:
            missed.append(name)
    if len(rows[-1]) > len(rows[0]):
        rows[0] += [f"{t} step" for t in TARGETS] + [f"{t} $/1M" for t in TARGETS]
    widths = [max(map(len, column)) for column in zip(*rows)]
    print("\n".join("  ".join(c.rjust(w) for c, w in zip(r, widths)) for r in rows))
    if missed:
        print("MISSED their goals: " + ", ".join(missed))
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
