# SPDX-License-Identifier: Apache-2.0
"""A step out of its parts, each priced as the program a device runs:

    micro-batches x (forward, backward, gradients added up)     one program; layers repeated, see Line
    + pipeline: filling and draining, activations passed on     the schedule, event by event
    + the update                                                one program: gradients reduced over the data-parallel replicas,
                                                                clipped, the optimizer, with ZeRO-1 and 2 weights gathered

With ZeRO-2 gradients are scattered in each micro-batch, with ZeRO-3 weights are gathered before each layer too, forward and
backward: they are in the micro-batch's program, which hides of them what it can.
"""

import dataclasses
import math

from opentrn._predict.fault import Fault, TooLarge
from opentrn._predict.layout import check, turns_ahead
from opentrn._predict.price import KINDS
from opentrn._predict.size import each_product, input_bytes, layer_work, model_flops, pairs, parameters, tokens_of
from opentrn._predict.spec import wanted

BYTES = {"bf16": 2, "fp32": 4}
# Layers of two pieces, the most whose programs are small: the second layer alone may be a few percent quicker than those behind it, and where layers are
# small the memory between what lives grows over the first few.
LAYERS = ((3, 5), (2, 4), (1, 3))
SMALL = 1 << 15  # matrix instructions
AT_ONCE = (25 << 20, 4 << 20)  # bytes of gradients that meet at once, and of weights gathered (src/pass/buckets.c): not every layer fills one
_REPEATS = 8  # layers, the most after which buckets are looked for that are as full again
UPDATED: tuple[tuple[int, ...], ...] = ((4, 8), (2, 4), (1, 2))  # layers of two updates, the most that fit: a few fill a collective's bucket only in part
# Of a step, for each doubling of machines: what waiting for the slowest takes. From one to sixteen machines with the same software
# published BERT-large steps grow by 4 to 20 % (9 in the mean) and GPT3's by 2 to 8 %, which are its reduction's.
SLOWEST = 0.011
HOST = 16e9  # bytes a second from the host's memory to a chip (a figure of NKI's documentation)
_SIMULATED = 8  # micro-batches for each stage, event by event; those behind them go at the slowest stage's pace
_HLO = {"bf16": "bf16", "fp32": "f32"}


class Line:
    """Anything of a piece with n layers, from pieces with few and with many: a layer more costs what those behind the few do."""

    def __init__(self, few, many, sizes, base=None):
        each, rest = divmod(many - few, sizes[1] - sizes[0])
        self.few, self.base = sizes[0], few if base is None else base
        self.layer = (many - few) / (sizes[1] - sizes[0]) if rest else each  # counts stay whole

    def __call__(self, n):
        return self.base + (n - self.few) * self.layer

    def least(self, n):
        """Of what is measured on a busy host: a layer more takes no less."""
        return self.base + (n - self.few) * max(self.layer, 0)


def _kinds(m, x):
    """Those of the stages, and those whose layers tell what a layer costs."""
    every = [kind for kind, _ in stages(m, x)]
    return (*dict.fromkeys([*every, *(_slope(m, kind) for kind in every)]),)


def _slope(m, kind):
    """The kind of stage that has nothing but such layers."""
    return kind if kind == "whole" else "write" if m.decoder and kind not in ("first", "middle") else "middle"


def _piece(job, x, kind, n):
    """The program of a micro-batch; with the update, where there is but one."""
    types, master = x.compiled(job)
    more = (True,) if x.accumulates(job) else (job.optimizer, master)
    return ("micro" if x.accumulates(job) else "step", kind, n, job.model, x.cut(job), types, *more)


def _sizes(job, x):
    """Layers of the two pieces that tell what a layer costs: where gradients meet in them, as many as fill a bucket apart, and both as full at their end
    as the stage is."""
    n = max(n for _, n in stages(job.model, x))
    if not x.meets(job):
        least = least_instructions(job, x)
        return next((pair for pair in LAYERS if pair[1] <= n and pair[1] * least <= SMALL), LAYERS[-1])
    if n <= LAYERS[-1][1]:
        return 1, max(n, 2)
    apart = _repeats(job, x)
    longer = apart * math.ceil(_REPEATS / apart)  # what small layers gather at the end has buckets of many layers
    first, apart = (4, longer) if (4 + 2 * longer) * least_instructions(job, x) <= 2 * SMALL and n > 4 else (2, apart)
    few = first + (n - first) % apart
    few, many = (few, few + apart) if few + apart <= n else (n - 2, n)
    return (few, many) if _held(job, x, many) <= job.machine.memory else LAYERS[-1]


def _held(job, x, n):
    """Bytes of weights, moments and gradients of so many layers, and of the ends, on a device."""
    (attention, mlp, ends), (types, master) = parameters(job.model), x.compiled(job)
    layer = (attention + mlp // x.ep) / (job.model.layers + (x.pp > 1) * job.model.decoder)
    shared = x.replicas() if x.zero else 1
    each = BYTES[types[1]] / (shared if x.zero == 3 else 1) + BYTES[types[2]] / (shared if x.zero > 1 else 1)
    return (n * layer + ends) / x.tp * (each + (0 if job.lora or x.accumulates(job) else (8 + 4 * master) / shared))


def _repeats(job, x):
    """Layers after which the buckets of collectives are as full again, nearly: no two of those between cost the same."""
    types, _ = x.compiled(job)
    sizes = [v / (x.tp * (x.ep if i > 3 else 1)) for i, v in enumerate(each_product(job.model))]
    streams = [_filled([BYTES[types[2]] * v for v in reversed(sizes)], AT_ONCE[0])]
    if x.zero == 3:
        streams.append(_filled([BYTES[types[1]] * v for v in sizes], AT_ONCE[1]))
    differ = lambda k: sum(abs(s[i + k] - s[i]) for s in streams for i in range(_REPEATS)) / _REPEATS
    one = math.ceil(AT_ONCE[0] / (BYTES[types[2]] * sum(sizes)))  # that fill a bucket
    return one if one > _REPEATS else min(range(max(one - 1, 2), _REPEATS + 1), key=lambda k: (round(differ(k), 1), k))


def _filled(sizes, most):
    """How full the open bucket is behind each of many layers."""
    fill, out = 0.0, []
    for _ in range(4 * _REPEATS):
        for v in sizes:
            fill = v if fill + v > most else fill + v
        out.append(fill / most)
    return out[2 * _REPEATS :]


def pieces(job, x):
    """Programs of a micro-batch that a layout needs."""
    few, many = _sizes(job, x)
    kinds = _kinds(job.model, x)
    return [*(_piece(job, x, kind, few) for kind in kinds), *(_piece(job, x, kind, many) for kind in kinds if _slope(job.model, kind) == kind), *([_there(job, x)] if x.pp > 1 else [])]


def _there(job, x):
    """The way there through a layer in the middle; flash attention keeps no scores for the way back."""
    _, kind, n, m, u, types, *_ = _piece(job, x, "middle", _sizes(job, x)[0])
    return ("forward", kind, n, m, dataclasses.replace(u, recompute="selective") if u.recompute == "none" and u.attention == "flash" else u, types)


def _size(shape):
    return math.prod(shape)


def _update(job, x, kind, n):
    """The update of a piece with n layers."""
    types, master = x.compiled(job)
    return ("update", kind, n, job.model, x.reach(job), job.optimizer, types, master, x.accumulates(job))


class Parts:
    """What a device of each stage has and does, by number of layers."""

    def __init__(self, job, x, prices):
        self.job, self.x, self.prices = job, x, prices
        prices.all(pieces(job, x))
        self.sizes = _sizes(job, x)
        self.few, self.many = ({kind: prices(_piece(job, x, kind, n)) for kind in _kinds(job.model, x) if n == self.sizes[0] or _slope(job.model, kind) == kind} for n in self.sizes)

    def line(self, kind, of):
        """Anything that is asked of a piece's record, by layers."""
        slope = _slope(self.job.model, kind)
        return Line(of(self.few[slope]), of(self.many[slope]), self.sizes, of(self.few[kind]))

    def micro(self, kind, key):
        return self.line(kind, lambda record: record[key])

    def updates(self, kind, n):
        """Programs of the update of a stage with n layers: with all of them, or with some and with twice as many."""
        sizes = [pair for pair in UPDATED if 16 * self.count(kind)(min(n, pair[1])) <= self.job.machine.memory] or [(1,)]
        return [_update(self.job, self.x, kind, some) for some in (sizes[0] if n > sizes[0][-1] else (n,))]

    def update(self, kind, n):
        """What is told of the update of a stage with n layers."""
        wanted = self.updates(kind, n)
        self.prices.all(wanted)
        a, b = (self.prices(what) for what in (wanted[0], wanted[-1]))
        few, many = wanted[0][2], wanted[-1][2]
        each = lambda k: (b[k] - a[k]) / (many - few) if many > few else b[k] / many
        told = {k: b[k] + (n - many) * max(each(k), 0) for k in ("total_us", "comm_us", "reducing_us", "gathering_us", "hbm_peak_bytes", "compile_s")}
        return told | {"kinds_us": {k: v * (told["comm_us"] / b["comm_us"] if b["comm_us"] else 1.0) for k, v in b["kinds_us"].items()}}

    def heaviest(self):
        """(kind, layers) of the stage with the most weights."""
        return max(stages(self.job.model, self.x), key=lambda v: self.count(v[0])(v[1]))

    def count(self, kind, learned=True, parted=False):
        """Weights of a device; learned: only those that are; parted: its part, where replicas share them."""

        def of(record):
            counts = [sum(_size(s) for s, expert, frozen in record["weights"] if expert == e and not (learned and frozen)) for e in (False, True)]
            return self.x.parted(counts) if parted else sum(counts)

        return self.line(kind, of)


def stages(m, x):
    """(kind, layers) of each stage; those with the ends of the model have the fewest."""
    if x.pp == 1:
        return [("whole", m.layers)]
    if m.decoder:
        return _span_stages(m, x.pp)
    least, more = divmod(m.layers, x.pp)
    extra = set(sorted(range(x.pp), key=lambda s: -min(s, x.pp - 1 - s))[:more])
    kinds = ["first"] + ["middle"] * (x.pp - 2) + ["last"]
    return [(kind, least + (s in extra)) for s, kind in enumerate(kinds)]


def _span_stages(m, pp):
    """The encoder's, then the decoder's, so that the slowest has least to do."""
    even = lambda n, parts: [n // parts + (s < n % parts) for s in range(parts)]
    each = layer_work(m)
    slowest = lambda a: max(each[0] * -(-m.layers // a), each[1] * -(-m.decoder // (pp - a)))
    first = min(range(max(1, pp - m.decoder), min(m.layers, pp - 1) + 1), key=slowest)
    kinds = ["first"] + ["middle"] * (first - 1) + (["second"] if pp == first + 1 else ["turn"] + ["write"] * (pp - first - 2) + ["last"])
    return [*zip(kinds, even(m.layers, first) + even(m.decoder, pp - first))]


def share_of(m, kind, n):
    """Of the work of all layers, what a stage with n of them has."""
    if kind == "whole" or not m.decoder:
        return n / m.layers
    reads, writes = layer_work(m)
    return n * (reads if kind in ("first", "middle") else writes) / (m.layers * reads + m.decoder * writes)


def updates(job, x, prices):
    """Programs of the update that a layout needs, once its pieces are priced."""
    try:
        p = Parts(job, x, prices)
    except Fault:
        return []
    return p.updates(*p.heaviest())


def _turns(d, n, micros, schedule, chunks):
    """(forward or backward, micro-batch, chunk) in the order in which device d of n does them."""
    ahead = micros * chunks if schedule == "gpipe" else turns_ahead(d, n, micros, chunks)
    turn = [(g * n + i, c) for g in range(-(-micros // n)) for c in range(chunks) for i in range(min(n, micros - g * n))]
    forward, backward = [("f", m, c) for m, c in turn], [("b", m, chunks - 1 - c) for m, c in turn]
    steps = forward[:ahead]
    for f, b in zip([*forward[ahead:], *[None] * ahead], backward):
        steps += [b] if f is None or schedule == "gpipe" else [b, f]
    return steps


def makespan(stages, micros, schedule, chunks=1, passing=0.0, events=None):
    """Seconds of a pipeline, event by event: each device does its work in the schedule's order as soon as what it needs is there, and passes on what it
    made, but for the end of either way. stages: (forward, backward) seconds of each device; chunks: pieces of a device's layers, each a stage of its own.
    events, a list, gets all that is done, as (device, forward or backward, begin, end)."""
    n = len(stages)
    micros = -(-micros // n) * n if chunks > 1 else micros  # interleaved ones take them in groups; one that is not full takes as long
    steady = min(micros, _SIMULATED * n) if events is None else micros
    paces = [(f + passing * (chunks - (d == n - 1)), b + passing * (chunks - (d == 0))) for d, (f, b) in enumerate(stages)]
    slowest = sum(map(max, zip(*paces))) if schedule == "gpipe" else max(map(sum, paces))  # all the way there is before all the way back
    order = [_turns(d, n, steady, schedule, chunks) for d in range(n)]
    done: dict[tuple[str, int, int], float] = {}
    free, at = [0.0] * n, [0] * n
    while any(at[d] < len(order[d]) for d in range(n)):
        before = sum(at)
        for d in range(n):
            while at[d] < len(order[d]):
                what, m, c = order[d][at[d]]
                s, last = c * n + d, n * chunks - 1
                need = (("f", m, s - 1) if s else None) if what == "f" else ("f", m, s) if s == last else ("b", m, s + 1)
                if need and need not in done:
                    break
                begin = max(free[d], done[need]) if need else free[d]
                free[d] = done[what, m, s] = begin + stages[d][what == "b"] / chunks + passing * (s != (last if what == "f" else 0))
                if events is not None:
                    events.append((d, what, begin, free[d]))
                at[d] += 1
        assert sum(at) > before, "the schedule waits for itself"
    return max(free) + (micros - steady) * slowest


def forward_share(job, x, prices):
    """Of a round of a stage in the middle: the way there, with what the way back needs."""
    return min(prices(_there(job, x))["total_us"] / prices(_piece(job, x, "middle", _sizes(job, x)[0]))["total_us"], 1.0)


def pipeline(rounds, micros, x, passing, share):
    """Seconds that the slowest stage waits for the others to fill and drain, and that passing on takes; rounds: of each stage, a micro-batch there and
    back; share: of them there."""
    stages = [(share * r, (1 - share) * r) for r in rounds]
    alone, all_of_it = (makespan(stages, micros, x.schedule, x.chunks, p) for p in (0.0, passing))
    return alone - micros * max(rounds), all_of_it - alone


def least_instructions(job, x):
    """Matrix instructions of a layer, there and back: each multiplies 128 x 128 by 512 columns. Of attention's scores half are masked."""
    m = job.model
    attention, mlp, _ = parameters(m)
    busy = (attention + mlp * (m.chosen / m.experts if m.experts else 1)) / (m.layers + m.decoder)
    share = x.micro_batch / (x.cp * x.tp) / job.machine.cores
    return share * (6 * busy * job.seq / (2 * 128 * 128 * 512) + 3.5 * m.heads * pairs(m, job.seq) / (128 * 512))


def too_long(job, x):
    """The fault of a layout with a layer that no program can hold; None."""
    least, most = least_instructions(job, x), getattr(job.machine, "instructions", math.inf)
    if least <= most:
        return None
    return TooLarge(f"a layer alone is {least:.3g} instructions or more; a program of {job.machine.name} takes {most:.3g}",
                    "a larger --tp or --cp, a smaller --micro-batch or --seq")  # fmt: skip


def step(job, x, prices):
    """All that is told of a layout. Times are seconds."""
    check(job, x)
    if fault := too_long(job, x):
        raise fault
    p, m = Parts(job, x, prices), x.micros(job)
    line = stages(job.model, x)
    update = p.update(*p.heaviest())
    after = (update["total_us"] + job.machine.dispatch_us) * 1e-6
    micro = [(p.micro(kind, "total_us")(n) + job.machine.dispatch_us) * 1e-6 for kind, n in line]
    if not x.accumulates(job):  # one program, of which as much is the update as takes alone
        after = min(after - job.machine.dispatch_us * 1e-6, micro[0])
        micro = [micro[0] - after]
    busy = [p.micro(kind, "comm_us")(n) * 1e-6 for kind, n in line]
    exposed = [min(max(p.micro(kind, "exposed_us")(n) * 1e-6, 0.0), b) for (kind, n), b in zip(line, busy)]  # what a layer more hides may be more than it adds
    slow = max(range(len(line)), key=lambda s: micro[s])
    along, there = (_passing(job, x, prices), forward_share(job, x, prices)) if x.pp > 1 else (0.0, 0.0)
    waits, passing = pipeline(micro, m, x, along, there) if x.pp > 1 else (0.0, 0.0)
    seconds = {"micro_batches": m * micro[slow], "bubble": waits, "passing_on": passing}
    seconds["reduction"], seconds["gathering"] = 1e-6 * update["reducing_us"], 1e-6 * update["gathering_us"]
    seconds["optimizer"] = after - seconds["reduction"] - seconds["gathering"]
    given = m * input_of(job, x)
    seconds["input"] = max(given - sum(seconds.values()), 0.0)  # what comes for the next step comes beside this one
    seconds["waiting"] = SLOWEST * math.log2(job.nodes) * sum(seconds.values())
    seconds = {k: v for k, v in seconds.items() if v}
    comm, shown = m * busy[slow] + passing, m * exposed[slow] + passing
    if x.accumulates(job):
        comm, shown = comm + 1e-6 * update["comm_us"], shown + seconds.get("reduction", 0) + seconds.get("gathering", 0)
    month, speed = job.as_of or ("", 1.0)
    then = lambda table: {k: v / speed for k, v in table.items()}
    told = _told(job, x, p, line, update, then(seconds), comm / speed, shown / speed)
    told["intensity"]["flops_per_s"] *= speed
    told["input_s"] = given
    told["collectives"] = then(_kinds_of(p, line[slow], m, update["kinds_us"] if x.accumulates(job) else {}, passing))
    if month:
        told["as_of"] = {"month": month, "speed": speed}
    return told | ({"rounds": {"s": [v / speed for v in micro], "forward_share": there, "passing_s": along / speed}} if x.pp > 1 else {})


def input_of(job, x):
    """Seconds that a micro-batch takes from the host to a device, beside the chip's other devices."""
    beside = max(job.machine.devices / job.machine.chips, 1)
    return x.micro_batch * input_bytes(job.model, job.seq) / x.cp * beside / HOST


def _kinds_of(p, stage, micros, update, passing):
    """Seconds of a step that each kind of collective takes, hidden or not."""
    kind, n = stage
    seconds = {name: 1e-6 * (micros * max(p.line(kind, lambda record: record["kinds_us"][name])(n), 0.0) + update.get(name, 0.0)) for name in KINDS}
    seconds["collective_permute"] += passing
    return {k: v for k, v in seconds.items() if v}


def _passing(job, x, prices):
    """Seconds for a micro-batch's activations from one stage to the next."""
    cut = x.cut(job)
    tokens = tokens_of(job.model, job.seq) + (wanted(job.seq) if "turn" in dict(stages(job.model, x)) else 0)  # between a decoder's stages, the most
    count = x.micro_batch * (tokens // x.cp) * job.model.width // (x.tp if cut.sp else 1)
    stride = x.tp * x.cp * x.dp
    some = min(stride * (x.pp - 1), prices.machine.devices)  # who passes on at the same time: stages of a machine, which share its links
    record = prices(("collective", "collective_permute", count, "f32" if cut.wide else _HLO[x.compiled(job)[0][0]], 2, stride, some))
    return (record["total_us"] + prices.machine.dispatch_us) * 1e-6


# What is told


def memory(job, x, p, line, update):
    """Bytes of the fullest stage's device, by what they are: of the micro-batches, beside what the optimizer keeps, or of the update."""
    m, (types, master) = x.micros(job), x.compiled(job)
    accumulated = x.accumulates(job)
    most: dict[str, float] = {}
    for s, (kind, n) in enumerate(line):
        stored, added, owned = (p.count(kind, k, parted) for k, parted in ((False, x.zero == 3), (True, x.zero > 0 and x.meets(job)), (True, x.zero > 0)))
        peak, wide, sums = p.micro(kind, "hbm_peak_bytes"), BYTES[types[1]], BYTES[types[2]]
        each = (2 if job.optimizer != "sgd" else 1) * (4 if master else wide) + (4 if master else 0)
        parts = {"weights": stored(n) * wide, "gradients": added(n) * sums, "optimizer": owned(n) * each}
        if accumulated:
            kept, held = max(peak.layer - stored.layer * wide - added.layer * sums, 0), x.in_flight(job, s)
            full = max(peak(n) + parts["optimizer"] + kept * n * (held - 1), sum(parts.values()))
            twice = 0 if x.zero else parts["gradients"]  # their sums take their place
            frozen = stored(n) * wide * (1 - p.count(kind)(n) / p.count(kind, learned=False)(n))
            most_of_it = max(full, update["hbm_peak_bytes"] + frozen - twice)
        else:  # the program of all of it tells; gradients take the place of activations
            kept, held = max(peak.layer - stored.layer * wide - owned.layer * each, 0), 1
            most_of_it = full = max(peak(n), parts["weights"] + parts["optimizer"])
            parts["gradients"] = min(parts["gradients"], full - parts["weights"] - parts["optimizer"])
        parts["activations"] = min(kept * n * held, full - sum(parts.values()))
        parts["work"] = most_of_it - sum(parts.values())
        if sum(parts.values()) > sum(most.values()):
            most = parts
    return {k: int(v) for k, v in most.items()}


def _told(job, x, p, line, update, seconds, comm, shown):
    total, machine, m = sum(seconds.values()), job.machine, job.model
    tokens = job.global_batch * (job.seq if m.task != "classes" else 1)
    usd = machine.usd_per_hour * job.nodes
    held = memory(job, x, p, line, update)
    compile_s = sum(p.micro(kind, "compile_s").least(n) for kind, n in dict(line).items()) + update["compile_s"]
    return {
        "step_s": total,
        "tokens_per_s": tokens / total,
        "samples_per_s": job.global_batch / total,
        "usd_per_hour": usd or None,
        "usd_per_1m_tokens": usd / 3600 * total / tokens * 1e6 if usd else None,
        "price_basis": machine.basis if usd else "no price is published",
        "mfu": model_flops(m, job.seq, job.lora) * job.global_batch / (total * x.devices * machine.flops),
        "comm_share": min(comm / total, 1.0),
        "exposed_comm_share": min(shown / total, 1.0),
        "bubble_share": seconds.get("bubble", 0.0) / total,
        "hbm_peak_bytes": sum(held.values()),
        "hbm_bytes": machine.memory,
        "fits": sum(held.values()) <= machine.memory,
        "memory": held,
        "compile_s": compile_s,
        "micro_batches": x.micros(job),
        "parameters": sum(parameters(m)),
        "instructions": int(max(p.micro(kind, "instructions")(n) for kind, n in line)),
        "engines": _engines(p, line),
        "intensity": _intensity(p, line),
        "seconds": seconds,
        "layout": {k: getattr(x, k) for k in ("tp", "pp", "dp", "cp", "ep", "zero", "micro_batch", "recompute", "schedule", "chunks")} | {"sp": x.cut(job).sp, "attention": x.attends(job)},
    }


def _engines(p, line):
    """Share of a micro-batch that each engine is busy, on the stage with the most layers."""
    kind, n = max(line, key=lambda v: v[1])
    total = p.micro(kind, "total_us")(n)
    busy = {k: p.line(kind, lambda record: record["busy_us"][k])(n) for k in p.few[kind]["busy_us"]}
    return {k: max(v, 0.0) / total for k, v in busy.items()}


def _intensity(p, line):
    """FLOP of a micro-batch's products, bytes through HBM, and FLOP a second."""
    kind, n = max(line, key=lambda v: v[1])
    flops, moved, us = (p.micro(kind, k)(n) for k in ("flops", "hbm_bytes", "total_us"))
    return {"flops": flops, "hbm_bytes": moved, "flops_per_s": flops / us * 1e6}
