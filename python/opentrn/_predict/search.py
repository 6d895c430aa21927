# SPDX-License-Identifier: Apache-2.0
"""Layouts of a job, ranked. What the user gave stays; the rest is tried.

Layouts that cannot be the best are left out before anything is compiled: those whose weights, gradients and moments alone do
not fit with what the backward pass needs; those that would have to use the engines better, by a third, than any layout
so far to be among the first; those that gather weights for every micro-batch where the same layout fits without, or in a pipeline
where any does; those that compute layers again which another layout has without; and those whose layers would be too many instructions.
What needs no program that is not priced already is never left out for its time: layers are the same whatever the replicas, stages and
schedule are, and a roof needs none.
"""

import dataclasses
import itertools
import math
from typing import Any

from opentrn._predict.compose import BYTES, least_instructions, pieces, step, too_long, updates
from opentrn._predict.fault import Fault, TooLarge
from opentrn._predict.layout import RECOMPUTE, Layout, check, scheduled
from opentrn._predict.size import model_flops, parameters, work

_TOKENS = 16384  # of a micro-batch, about the most that are tried
_TOGETHER = 12  # programs that are priced beside each other
_LAYER = 1 / 8  # of the instructions that a program may have, those of one layer
_PIECES = (2, 4)  # of an interleaved pipeline's stage
_FULL = 4096  # tokens of a micro-batch, from which on more of them use the engines no better than by _BETTER
_NEAR = 1.15  # times this much apart are told apart when layouts are put in order
_BETTER = 1.33  # how much better than the best so far the engines may be used by a layout that is not priced
BY = {"usd": "usd_per_1m_tokens", "time": "step_s", "memory": "hbm_peak_bytes"}


def _powers(most):
    return [2**i for i in range(most.bit_length()) if 2**i <= most]


def candidates(job, given):
    """Layouts that divide; given: names of Layout with the user's values."""
    m, have = job.model, job.nodes * job.machine.devices
    one = lambda name, values: [given[name]] if given.get(name) is not None else values
    large = sum(parameters(m)) * 16 > job.machine.memory  # with gradients and moments, for one device
    pp = _powers(min(m.layers + m.decoder, 16)) if m.task == "lm" or large else [1]
    tp = _powers(min(m.heads, job.machine.devices)) if m.task != "classes" or large else [1]
    cp = _powers(job.seq // 16384) if m.task == "lm" and job.seq >= 32768 else [1]
    ep = _powers(m.experts) if m.experts else [1]
    fixed = {k: given[k] for k in ("sp", "attention") if given.get(k) is not None}
    # the compiler computes attention's scores again by itself, so none and selective are nearly one program
    recompute = one("recompute", ("selective", "full") if m.task == "lm" else ("none", "full"))
    for a, b, c, e in itertools.product(one("tp", tp), one("pp", pp), one("cp", cp), one("ep", ep)):
        if have % (a * b * c):
            continue
        every = have // (a * b * c)
        for dp, zero, micro, again, schedule in itertools.product(
            one("dp", [every]), one("zero", (0, 1, 3)), one("micro_batch", _micros(job, every)), recompute, schedules(m, b, given)
        ):
            if zero and dp * c == 1 and given.get("zero") is None:  # one replica shares nothing
                continue
            x = Layout(a, b, dp, c, e, zero, micro, again, **fixed, **schedule)
            try:
                check(job, x)
            except Fault:
                continue
            yield x


def _micros(job, dp):
    """Micro-batches that are tried: short sequences fill the engines only together."""
    most = _powers(max(min(max(_TOKENS // job.seq, 4), job.global_batch // dp), 1))[-1]
    return sorted({1, *(max(most // n, 1) for n in (1, 2, 4))})


def _undivided(job, given):
    """Why no layout is possible: the one that is given that forbids all of them alone, else what the batch is shared by."""
    for name in ("ep", "tp", "pp", "cp", "dp", "micro_batch"):
        value, free = given.get(name), {**given, name: None}
        others = sorted({getattr(x, name) for x in candidates(job, free)}, key=lambda v: abs(math.log(v / value))) if value else []
        if others:
            return Fault(f"no layout of {job.nodes} x {job.machine.name} divides this model and batch with --{name.replace('_', '-')}={value}",
                         " or ".join(f"--{name.replace('_', '-')}={v}" for v in sorted(others[:3])))  # fmt: skip
    try:
        x = {k: v for k, v in given.items() if v is not None}
        rest = math.prod(x.get(k, 1) for k in ("tp", "pp", "cp"))
        check(job, Layout(**scheduled({"dp": max(job.nodes * job.machine.devices // rest, 1), **x})))
    except Fault as fault:
        return fault
    return Fault("no layout divides this model and batch", "another --global-batch, or fewer --nodes")


def schedules(m, pp, given):
    """Those of a pipeline, as fields of Layout: what is given, else 1f1b with stages whole, and in pieces where layers divide."""
    told = scheduled({k: given[k] for k in ("schedule", "chunks") if given.get(k) is not None})
    return [{}] if pp == 1 else [told] if told or m.decoder else [{}, *(scheduled({"chunks": n}) for n in _PIECES if m.layers % (n * pp) == 0)]


def least_memory(job, x):
    """Bytes that weights, gradients, moments and activations kept for the backward pass take at least."""
    types, master = x.compiled(job)
    attention, mlp, ends = parameters(job.model)
    experts = mlp / x.ep / (x.tp * x.pp) if job.model.experts else 0.0
    counts = (attention + (0.0 if job.model.experts else mlp)) / (x.tp * x.pp) + (ends / x.tp if x.pp == 1 else ends / x.tp / 2), experts
    count = lambda least: x.parted(counts) if x.zero >= least else sum(counts)
    learns = not job.lora
    held = count(3) * BYTES[types[1]] + learns * count(1) * (12 if master else 2 * BYTES[types[1]])
    grads, kept = learns * count(2) * BYTES[types[2]], _least_kept(job, x)
    return held + (grads + kept if x.micros(job) > 1 or x.pp > 1 else max(grads, kept))  # of one micro-batch they take each other's place


def _least_kept(job, x):
    """A layer's input, or what products made that others read: queries, keys, values, their result, the way up of the MLP."""
    m, cut = job.model, x.cut(job)
    if m.task != "lm" or job.lora:
        return 0.0
    made = (2 * m.heads + 2 * m.kv) * m.head + (0 if m.experts else m.hidden)
    values = m.width / (x.tp if cut.sp else 1) if x.recompute == "full" else made / x.tp
    tokens = x.micro_batch * job.seq / x.cp
    return values * tokens * BYTES[x.compiled(job)[0][0]] * (m.layers // x.pp) * x.in_flight(job, 0)


def least_time(job, x):
    """Seconds that the products take at the peak, with what is computed again and the pipeline's bubble."""
    rate = {"fp32": 0.25, "fp8": 2.0}.get(job.precision, 1.0)
    again = 4 / 3 if x.recompute == "full" else 1.0
    flops = model_flops(job.model, job.seq, job.lora)
    attention = 12.0 * work(job.model, job.seq)[2]
    seconds = (flops - attention / 2) * again * job.global_batch / (x.devices * job.machine.flops * rate)
    return seconds * (1 + (x.pp - 1) / x.micros(job) / x.chunks)


@dataclasses.dataclass
class Found:
    rows: list[tuple[Layout, dict[str, Any]]]  # (layout, prediction), the best first
    tried: int
    pruned_memory: int
    pruned_time: int
    pruned_size: int  # whose programs would be too long
    unfit: int  # priced, and did not fit


def search(job, given, prices, by="usd", told=lambda text: None, keep=10, step=step):
    """The layouts that fit, ranked."""
    if by == "usd" and not job.machine.usd_per_hour:
        raise Fault(f"no price of {job.machine.name} is published, so layouts cannot be ranked by dollars", "--price=USD/h of one machine, or --by=time")
    every = list(candidates(job, given))
    if not every:
        raise _undivided(job, given)
    more = "more --nodes, " if getattr(job.machine, "network", 1) > 0 else ""
    room = [x for x in every if least_memory(job, x) <= job.machine.memory]
    if not room:
        need = min(least_memory(job, x) for x in every)
        raise TooLarge(
            f"weights, gradients, optimizer and what the backward pass needs take {need / 2**30:.1f} GiB or more, in every layout, of a device with "
            f"{job.machine.memory / 2**30:.0f} GiB",
            more + "a larger instance, --zero=3, or a smaller --seq",
        )
    most = _LAYER * getattr(job.machine, "instructions", math.inf)
    short = [x for x in room if least_instructions(job, x) <= most] or [x for x in room if not too_long(job, x)]
    if not short:
        raise too_long(job, min(room, key=lambda x: least_instructions(job, x)))
    found = Found([], 0, len(every) - len(room), 0, len(room) - len(short), 0)
    quick = by != "memory" and given.get("zero") is None  # ZeRO-3 is for those that do not fit
    room = sorted(short, key=lambda x: (quick and x.zero == 3, quick and _gathers_often(x), round(math.log(least_time(job, x), _NEAR)), least_instructions(job, x)))
    full: list[Layout] = []  # layouts that were priced and did not fit
    some: list[Layout] = []  # whose layers are priced
    while room or some:
        more = _next(job, room, some, found, full, by, keep, quick, prices)
        told(f"{found.tried} priced, {len(room) + len(more)} to go")
        if prices is None:
            some, more = more, []
        else:  # updates of those before beside layers of those to come: nobody waits for a few long programs
            prices.all([*(update for x in some for update in updates(job, x, prices)), *(piece for x in more for piece in pieces(job, x))])
        for x in some:
            found.tried += 1
            try:
                result = step(job, x, prices)
            except TooLarge:
                result = {"fits": False}
            if result["fits"]:
                found.rows.append((x, result))
            else:
                full.append(x)
                found.unfit += 1
        found.rows.sort(key=lambda v: (v[1][BY[by]], v[1]["hbm_peak_bytes"]))
        some = more
    if prices is None:
        found.rows = _merged(found.rows)
    if not found.rows:
        raise TooLarge(f"none of {found.tried} layouts fits {job.machine.memory / 2**30:.0f} GiB a device", more + "--zero=3 or --recompute=full")
    return found


def _merged(rows):
    """Rows by a roof, which products of any size reach: of layouts that differ in their micro-batch alone and take the same, the one that holds least;
    `alike` are the micro-batches of the others."""
    out: list[tuple[Layout, dict[str, Any]]] = []
    at: dict[tuple[Layout, float], int] = {}
    for x, r in rows:
        key = (dataclasses.replace(x, micro_batch=0), float(f"{r['step_s']:.6g}"))
        if key not in at:
            at[key] = len(out)
            out.append((x, r))
            continue
        first, best = out[at[key]]
        out[at[key]] = (first, {**best, "alike": sorted([*best.get("alike", ()), x.micro_batch])})
    return out


def _next(job, room, before, found, full, by, keep, quick, prices):
    """Takes from room the layouts to be priced next, and counts those left out; before: not judged yet."""
    some: list[Layout] = []
    new: set[object] = set()  # programs
    while room and (not some or (prices is not None and len(new) < _TOGETHER)):
        if quick and room[0].zero == 3 and any(y.zero < 3 for y in (*before, *some)):
            break  # whether it is needed depends on those
        x = room.pop(0)
        wanted = {p for p in pieces(job, x) if p not in prices.known} if prices is not None else set()
        if any(_holds_less(x, other) for other in full):
            found.pruned_memory += 1
        elif wanted and by != "memory" and ((quick and _gathers_for_nothing(job, x, found.rows)) or _repeats_for_nothing(job, x, found.rows) or _is_late(job, x, found.rows, keep)):
            found.pruned_time += 1
        else:
            some.append(x)
            new |= wanted
    return some


def _is_late(job, x, rows, keep):
    """Would it have to use the engines better, by a good part, than any layout so far, to be among the first?"""
    if len(rows) < keep:
        return False
    best = max(least_time(job, y) / r["step_s"] for y, r in rows)
    return least_time(job, x) / min(_BETTER * best, 1.0) > rows[keep - 1][1]["step_s"]


def _gathers_often(x):
    """ZeRO-3 gathers weights twice in every micro-batch, of which a pipeline has many."""
    return x.zero == 3 and x.pp > 1


def _gathers_for_nothing(job, x, rows):
    """Does the same layout fit without ZeRO-3, or for one in a pipeline any other? With a single micro-batch nothing is gathered more often."""
    return x.zero == 3 and x.micros(job) > 1 and any((x.pp > 1 and not _gathers_often(y)) or (y.zero < 2 and dataclasses.replace(x, zero=y.zero) == y) for y, _ in rows)


def _repeats_for_nothing(job, x, rows):
    """Do the same layers take less in a layout that fits and computes less again: with as large a micro-batch, or with one that is large enough?"""

    def better(y):
        less = RECOMPUTE.index(y.recompute) < RECOMPUTE.index(x.recompute) and (x.tp, x.cp, x.ep) == (y.tp, y.cp, y.ep)
        gain = 1.0 if y.micro_batch == x.micro_batch else _BETTER if y.micro_batch * job.seq >= y.cp * _FULL else math.inf
        return less and gain * least_time(job, y) <= least_time(job, x)

    return any(better(y) for y, _ in rows)


def _holds_less(x, other):
    """Is `other`, which did not fit, the same but for a micro-batch no larger, no more pieces of a stage, and as much computed again?"""
    same = dataclasses.replace(x, micro_batch=other.micro_batch, recompute=other.recompute, schedule=other.schedule, chunks=other.chunks) == other
    return same and other.micro_batch <= x.micro_batch and other.chunks <= x.chunks and RECOMPUTE.index(other.recompute) >= RECOMPUTE.index(x.recompute)


def why(best, other):
    """What makes another layout dearer than the best: the parts of its step that are longer; and which micro-batches take as long."""
    a, b = best["seconds"], other["seconds"]
    more = sorted(((b.get(k, 0) - a.get(k, 0), k) for k in {*a, *b}), reverse=True)
    parts = ", ".join(f"{k.replace('_', ' ')} {d:+.3g} s" for d, k in more[:2] if abs(d) > 0.005 * best["step_s"])
    words = [] if other is best else [parts or "the same"]
    return "; ".join(words + ([f"micro-batch={' or '.join(map(str, other['alike']))} takes as long"] if other.get("alike") else []))
