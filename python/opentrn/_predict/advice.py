# SPDX-License-Identifier: Apache-2.0
"""What would make a job fit that does not: changes tried in earnest, by what they leave in memory.

First one change alone, then two, then more machines with the layouts that hold least there; the first of these that helps is told.
"""

import dataclasses
import itertools

from opentrn._predict import search
from opentrn._predict.fault import Fault
from opentrn._predict.layout import RECOMPUTE, check

_MOST, _FEW = 8, 4  # that are priced: of changes, those that can be quickest; of the layouts of a larger fleet, those that hold least
_GROWN = (2, 4, 8, 16, 32, 64)


def _changes(x):
    """Each as fields of the layout."""
    for again in RECOMPUTE[RECOMPUTE.index(x.recompute) + 1 :]:
        yield {"recompute": again}
    for zero in range(x.zero + 1, 4):
        yield {"zero": zero}
    for n in (x.micro_batch // 2, x.micro_batch // 4, 1):
        if 1 <= n < x.micro_batch:
            yield {"micro_batch": n}
    for k, times in itertools.product(("tp", "pp"), (2, 4, 8)):
        if x.dp % times == 0:
            yield {k: times * getattr(x, k), "dp": x.dp // times}


def _words(x, y):
    names = {k: k.replace("_", "-") for k in ("tp", "pp", "dp", "cp", "ep", "zero", "micro_batch", "recompute")}
    return " ".join(f"--{word}={getattr(y, k)}" for k, word in names.items() if getattr(x, k) != getattr(y, k))


def _told(job, x, words, step):
    """A change that fits; None where it does not."""
    try:
        r = step(job, x)
    except Fault:
        return None
    return {"change": words, "hbm_peak_bytes": r["hbm_peak_bytes"], "step_s": r["step_s"], "nodes": job.nodes} if r["fits"] else None


def _can(job, x):
    try:
        check(job, x)
    except Fault:
        return False
    return search.least_memory(job, x) <= job.machine.memory


def knobs(job, x, step):
    """Changes that make a layout fit, the quickest first; [] where none does."""
    alone = list(_changes(x))
    for change in (alone, [{**a, **b} for a, b in itertools.combinations(alone, 2) if not {*a} & {*b}]):
        tried = [y for y in dict.fromkeys(dataclasses.replace(x, **c) for c in change) if _can(job, y)]
        tried = sorted(tried, key=lambda y: search.least_time(job, y))[:_MOST]
        found = [v for y in tried if (v := _told(job, y, _words(x, y), step))]
        if found:
            return sorted(found, key=lambda v: v["step_s"])
    return grown(job, {}, step, x)


def grown(job, given, step, x=None):
    """The same with more machines: the least number that is enough, of those tried."""
    for times in _GROWN:
        wide = dataclasses.replace(job, nodes=times * job.nodes)
        every = sorted((y for y in search.candidates(wide, given) if _can(wide, y)), key=lambda y: search.least_memory(wide, y))
        for y in every[:_FEW]:
            found = _told(wide, y, " ".join([f"--nodes={wide.nodes}", _words(x, y) if x else " ".join(f"--{v}" for v in y.text().split())]), step)
            if found:
                return [found]
    return []


def told(r):
    """The verdict as words."""
    g = 2**30
    over = f"no: {(r['hbm_peak_bytes'] - r['hbm_bytes']) / g:.2f} GiB too much; "
    if not r["knobs"]:
        return over + "no change that was tried makes it fit"
    one, *others = r["knobs"]
    more = f"; so would {', '.join(v['change'] for v in others[:3])}" if others else ""
    return over + f"{one['change']} would: {one['hbm_peak_bytes'] / g:.2f} GiB, {one['step_s']:.4g} s a step{more}"
