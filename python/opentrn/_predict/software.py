# SPDX-License-Identifier: Apache-2.0
"""What Neuron's software of a month makes of a step, beside the newest (chips/software.csv, which accuracy/software.py makes of published figures).

A step is priced as our compiler writes it, and what that is worth does not change with the calendar. A published step is of the
software of its day: --as-of says which, and all of the step's time is divided by what that month's was worth.
"""

import csv
import functools
import os
import pathlib
import re

from opentrn import _library
from opentrn._predict.fault import Fault


@functools.cache
def _speeds(folder):
    with open(folder / "software.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(v for v in file if not v.startswith("#")))
    chips = {r["chip"] for r in rows}
    return {c: sorted((r["month"], float(r["speed"])) for r in rows if r["chip"] == c) for c in chips}


def as_of(month, machine):
    """(month of the software there was then, its speed)"""
    known = _speeds(pathlib.Path(os.environ.get("OTRN_CHIPS") or _library.chips_path()))
    if not re.fullmatch(r"20\d\d-(0[1-9]|1[0-2])", month):
        raise Fault(f"--as-of={month}: a month is needed", "--as-of=2024-09")
    at = known.get(machine.chip)
    if at is None:
        raise Fault(f"--as-of={month}: what software was worth is known of {', '.join(sorted(known))}, not of {machine.name}", "leave --as-of out")
    past = [row for row in at if row[0] <= month]
    if not past:
        raise Fault(f"--as-of={month}: the first step was published {at[0][0]}", f"--as-of={at[0][0]}")
    return past[-1]
