# SPDX-License-Identifier: Apache-2.0
"""How Neuron's software changed the speed of trn1: the same configurations, published month after month.

    .venv/bin/python accuracy/software.py           # the table, and how far it tells a figure that it has not seen
    .venv/bin/python accuracy/software.py --keep    # chips/software.csv, which `opentrn predict --as-of=YYYY-MM` reads

A figure is taken for its configuration's own speed times its month's: least squares over the logarithms (software.csv), the newest
month's speed being 1. A figure that a later page repeats was not measured again, and does not count there. No prediction of ours is in it.
"""

import argparse
import csv
import math
import pathlib
import sys

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
KEPT = HERE.parent / "chips" / "software.csv"
CHIP = "trn1"


SAME = 1e-3  # pages round


def published():
    """All figures, page by page."""
    with open(HERE / "software.csv", encoding="utf-8") as file:
        return list(csv.DictReader(v for v in file if not v.startswith("#")))


def measured(pages):
    """Those that their configuration's page before does not have."""
    last, new = {}, []
    for r in pages:
        value = float(r["published"])
        if abs(value / last.get(r["what"], math.inf) - 1) > SAME:
            new.append(r)
        last[r["what"]] = value
    return new


def speeds(found):
    """{month: speed}, of months that share a configuration with the newest one, be it over others."""
    months, whats = sorted({r["month"] for r in found}), sorted({r["what"] for r in found})
    reached, grew = {months[-1]}, True
    while grew:
        here = {r["what"] for r in found if r["month"] in reached}
        more = {r["month"] for r in found if r["what"] in here} - reached
        reached, grew = reached | more, bool(more)
    found, months = [r for r in found if r["month"] in reached], [m for m in months if m in reached]
    free = months[:-1]
    a = np.zeros((len(found), len(free) + len(whats)))
    for line, r in zip(a, found):
        if r["month"] != months[-1]:
            line[free.index(r["month"])] = 1
        line[len(free) + whats.index(r["what"])] = 1
    at = np.linalg.lstsq(a, np.array([math.log(float(r["published"])) for r in found]), rcond=None)[0]
    return {**{m: math.exp(v) for m, v in zip(free, at)}, months[-1]: 1.0}


def unseen(found):
    """Of each configuration with several months: the change from its first figure to its last, as the others alone have it, over its own."""
    for what in sorted({r["what"] for r in found}):
        mine = [r for r in found if r["what"] == what]
        others = speeds([r for r in found if r["what"] != what])
        mine = [r for r in mine if r["month"] in others]
        if len({r["month"] for r in mine}) > 1:
            first, last = mine[0], mine[-1]
            told = others[last["month"]] / others[first["month"]]
            yield what, first["month"], last["month"], float(last["published"]) / float(first["published"]), told


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--keep", action="store_true", help="write chips/software.csv")
    o = parser.parse_args()
    found = measured(published())
    at = speeds(found)
    counts = {m: sum(r["month"] == m for r in found) for m in at}
    for month, speed in at.items():
        print(f"{month} {speed:6.3f} {counts[month]:4} figures")
    print(f"\n{'':72} from    to       published  by the others")
    offs, still = [], []
    for what, first, last, own, told in unseen(found):
        offs.append(abs(math.log(told / own)))
        still.append(abs(math.log(own)))
        print(f"{what[:72]:72} {first} {last} {own:9.3f} {told:9.3f}")
    percent = lambda logs: 100 * (math.exp(sum(logs) / len(logs)) - 1)
    print(f"changes of {len(offs)} configurations told by the others within {percent(offs):.1f} % in the mean; taken for none they are {percent(still):.1f} %")
    if o.keep:
        head = "# SPDX-License-Identifier: Apache-2.0\n# Speed of published training steps by the month of Neuron's software, that of the newest being 1, and how many figures say so: accuracy/software.py --keep.\n"
        KEPT.write_text(head + "chip,month,speed,figures\n" + "".join(f"{CHIP},{m},{v:.3f},{counts[m]}\n" for m, v in at.items()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
