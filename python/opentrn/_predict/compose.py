# SPDX-License-Identifier: Apache-2.0
"""A step out of its parts, each priced as the program a device runs:

    micro-batches x (forward, backward, gradients added up)     one program; layers repeated, see Line
    + pipeline: filling and draining, activations passed on     rounds of the slowest stage
    + gradients reduced over the data-parallel replicas         one collective over all bytes, behind the last micro-batch
    + the optimizer                                             one program over what a device updates
    + with ZeRO-1 and 2, weights gathered                       one collective

With ZeRO-2 gradients are scattered in each micro-batch, with ZeRO-3 weights are gathered before each layer too, forward and
backward: layer by layer beside the work, what is longer than the work shows.
"""

import math

from opentrn._predict.layout import check

BYTES = {"bf16": 2, "fp32": 4}
_BUCKET = 2**30
LAYERS = 3  # of the longer piece: the second layer alone may be a few percent quicker than those behind it
# Of a step, for each doubling of machines: what waiting for the slowest takes. From one to sixteen machines with the same software
# published BERT-large steps grow by 4 to 20 % (9 in the mean) and GPT3's by 2 to 8 %, which are its reduction's.
_SLOWEST = 0.011
_HLO = {"bf16": "bf16", "fp32": "f32"}


class Line:
    """Anything of a piece with n layers, from pieces with one and with LAYERS: a layer more costs what those behind the first do."""

    def __init__(self, one, more, base=None):
        each, rest = divmod(more - one, LAYERS - 1)
        self.base, self.layer = (one if base is None else base), (more - one) / (LAYERS - 1) if rest else each  # counts stay whole

    def __call__(self, n):
        return self.base + (n - 1) * self.layer

    def least(self, n):
        """Of what is measured on a busy host: a layer more takes no less."""
        return self.base + (n - 1) * max(self.layer, 0)


def _kinds(x):
    return ("whole",) if x.pp == 1 else ("first", "middle", "last")


def _piece(job, x, kind, n):
    return ("micro", kind, n, job.model, x.cut(job), x.types(job)[0], x.micros(job) > 1 or x.pp > 1)


def pieces(job, x):
    """Programs of a micro-batch that a layout needs."""
    out = [_piece(job, x, kind, 1) for kind in _kinds(x)]
    return [*out, _piece(job, x, "whole" if x.pp == 1 else "middle", LAYERS)]


def _size(shape):
    return math.prod(shape)


def _update(job, x, record):
    """The optimizer over all weights of a piece that learn."""
    types, master = x.types(job)
    return ("update", tuple(tuple(s) for s, _, frozen in record["weights"] if not frozen), job.optimizer, types, master)


class Part:
    """The optimizer of a device that shares it with replicas: one flat part of all that learns."""

    def __init__(self, parts, kind, key):
        self.parts, self.kind, self.key = parts, kind, key

    def __call__(self, n):
        p, x = self.parts, self.parts.x
        types, master = x.types(p.job)
        ranks = x.dp * x.cp
        mine = p.count(self.kind, False)(n) / ranks + p.count(self.kind, True)(n) / max(ranks // x.ep, 1)
        return p.prices(("update", ((max(math.ceil(mine), 1),),), p.job.optimizer, types, master))[self.key]

    least = __call__


class Parts:
    """What a device of each stage has and does, by number of layers."""

    def __init__(self, job, x, prices):
        self.job, self.x, self.prices = job, x, prices
        prices.all(pieces(job, x))
        slope = "whole" if x.pp == 1 else "middle"
        self.one, self.more = prices(_piece(job, x, slope, 1)), prices(_piece(job, x, slope, LAYERS))
        self.ends = {kind: prices(_piece(job, x, kind, 1)) for kind in _kinds(x)}
        if not x.zero:
            prices.all([_update(job, x, r) for r in (*self.ends.values(), self.one, self.more)])

    def micro(self, kind, key):
        return Line(self.one[key], self.more[key], self.ends[kind][key])

    def update(self, kind, key):
        if self.x.zero:
            return Part(self, kind, key)
        one, more, base = (self.prices(_update(self.job, self.x, r))[key] for r in (self.one, self.more, self.ends[kind]))
        return Line(one, more, base)

    def count(self, kind, expert=None, learned=True):
        """Weights of a device; expert: only those of experts, or only the others."""

        def of(record):
            rows = record["weights"]
            return sum(_size(s) for s, e, frozen in rows if expert in (None, e) and not (learned and frozen))

        return Line(of(self.one), of(self.more), of(self.ends[kind]))


def stages(m, x):
    """(kind, layers) of each stage; those with the ends of the model have the fewest."""
    if x.pp == 1:
        return [("whole", m.layers)]
    least, more = divmod(m.layers, x.pp)
    extra = set(sorted(range(x.pp), key=lambda s: -min(s, x.pp - 1 - s))[:more])
    kinds = ["first"] + ["middle"] * (x.pp - 2) + ["last"]
    return [(kind, least + (s in extra)) for s, kind in enumerate(kinds)]


def _collective(prices, kind, count, dtype, ranks, stride):
    """Microseconds; more than a bucket holds goes in equal buckets."""
    if ranks < 2 or count < 1:
        return 0.0
    buckets = math.ceil(count * BYTES[dtype] / _BUCKET)
    count = math.ceil(count / buckets)
    return buckets * prices(("collective", kind, int(count), _HLO[dtype], ranks, stride))["total_us"] + prices.machine.dispatch_us


def _shared(job, x, p, kind, n, what, dtype):
    """A collective over a stage's gradients or weights: those of experts have fewer replicas."""
    ranks = x.dp * x.cp
    dense = _collective(p.prices, what, p.count(kind, False)(n), dtype, ranks, x.tp)
    return dense + _collective(p.prices, what, p.count(kind, True)(n), dtype, ranks // x.ep, x.tp * x.ep)


def bubble(rounds, chunks):
    """Seconds that the slowest stage waits for the others to fill and drain; rounds: of each stage, a micro-batch there and back."""
    return (sum(rounds) - max(rounds)) / chunks


def step(job, x, prices):
    """All that is told of a layout. Times are seconds."""
    check(job, x)
    p, m = Parts(job, x, prices), x.micros(job)
    types, _ = x.types(job)
    line = stages(job.model, x)
    micro = [(p.micro(kind, "total_us")(n) + job.machine.dispatch_us) * 1e-6 for kind, n in line]
    exposed = [p.micro(kind, "exposed_us")(n) * 1e-6 for kind, n in line]
    busy = [p.micro(kind, "comm_us")(n) * 1e-6 for kind, n in line]
    beside = [_beside(job, x, p, kind, n) for kind, n in line]  # of ZeRO-2 and 3, each micro-batch
    rounds = [t + late for t, (_, late) in zip(micro, beside)]
    slow = max(range(len(line)), key=lambda s: rounds[s])
    fill = bubble(rounds, x.chunks)
    passing = _passing(job, x, prices) * 2 * (m + x.pp - 1) * x.chunks if x.pp > 1 else 0.0
    seconds = {"micro_batches": m * micro[slow], "bubble": fill, "passing_on": passing}
    seconds["sharding"] = m * beside[slow][1]
    kind, n = max(line, key=lambda v: p.count(v[0])(v[1]))
    reduce = "all_reduce" if x.zero == 0 else "reduce_scatter"
    seconds["reduction"] = _shared(job, x, p, kind, n, reduce, types[2]) * 1e-6 if x.zero < 2 else 0.0
    seconds["optimizer"] = (p.update(kind, "total_us")(n) + job.machine.dispatch_us) * 1e-6
    gathered = x.zero in (1, 2)
    seconds["gathering"] = _shared(job, x, p, kind, n, "all_gather", types[1]) * 1e-6 if gathered else 0.0
    seconds["waiting"] = _SLOWEST * math.log2(job.nodes) * sum(seconds.values())
    seconds = {k: v for k, v in seconds.items() if v}
    outside = passing + seconds.get("reduction", 0) + seconds.get("gathering", 0)
    comm = m * (busy[slow] + beside[slow][0]) + outside
    shown = m * (exposed[slow] + beside[slow][1]) + outside
    return _told(job, x, p, line, seconds, comm, shown)


def _beside(job, x, p, kind, n):
    """(seconds of ZeRO's collectives in a micro-batch, those that the work does not hide)."""
    if x.zero < 2:
        return 0.0, 0.0
    types, _ = x.types(job)
    a_layer = p.count(kind).layer / max(p.count(kind)(n), 1)
    scatter = _shared(job, x, p, kind, n, "reduce_scatter", types[2]) * 1e-6
    gather = _shared(job, x, p, kind, n, "all_gather", types[1]) * 1e-6 * 2 if x.zero == 3 else 0.0
    work = p.micro(kind, "total_us")(n) * 1e-6
    first = (scatter + gather) * a_layer  # nothing is beside the first weights and the last gradients
    return scatter + gather, max(scatter + gather - work, first)


def _passing(job, x, prices):
    """Seconds for a micro-batch's activations from one stage to the next."""
    cut = x.cut(job)
    count = x.micro_batch * (job.seq // x.cp) * job.model.width // (x.tp if cut.sp else 1)
    record = prices(("collective", "collective_permute", count, _HLO[x.types(job)[0][0]], 2, x.tp * x.cp * x.dp, prices.machine.devices))
    return (record["total_us"] + prices.machine.dispatch_us) * 1e-6


# What is told


def model_flops(m, seq):
    """FLOP of a sequence, forward and backward, without what is computed again: 6 for each weight of a product and each
    token, 12 for each pair of positions and feature of the heads."""
    if m.task == "classes":
        seq = (m.image // m.patch) ** 2 + 1
    attention = m.width * m.head * (2 * m.heads + 2 * m.kv)
    mlp = (3 if m.gated else 2) * m.width * m.hidden * (m.chosen if m.experts else 1)
    if m.task == "span":
        return _span_flops(m, seq, attention, mlp)
    layers = m.layers
    ends = m.vocab * m.width if m.task != "classes" else m.classes * m.width / seq
    return seq * (6.0 * (layers * (attention + mlp) + ends) + 12.0 * layers * m.heads * m.head * seq)


def wanted(seq):
    """Tokens that a span model's decoder makes of a sequence."""
    return max(seq // 4, 1)


def _span_flops(m, seq, attention, mlp):
    """Of an encoder over the sequence and a decoder over what is wanted, which also attends to the encoder's result."""
    out, pair = wanted(seq), 12.0 * m.heads * m.head
    made = m.layers * (attention + mlp) * seq + m.decoder * (attention + mlp) * out + m.vocab * m.width * out
    across = m.decoder * m.width * m.head * 2 * (m.heads * out + m.kv * seq)
    return 6.0 * (made + across) + pair * (m.layers * seq**2 + m.decoder * out * (out + seq))


def parameters(m):
    """Weights of a model, without small vectors: of attention, of MLPs, of its ends."""
    attention = m.width * m.head * (2 * m.heads + 2 * m.kv)
    mlp = (3 if m.gated else 2) * m.width * m.hidden
    layers = m.layers + m.decoder
    ends = m.vocab * m.width * (1 if m.tied else 2) if m.task != "classes" else (m.classes + 3 * m.patch**2 + (m.image // m.patch) ** 2) * m.width
    if m.task == "mlm":
        ends += m.positions * m.width + 2 * m.width * m.width
    return layers * attention + m.decoder * attention, layers * mlp * max(m.experts, 1), ends


def memory(job, x, p, line):
    """Bytes of the fullest stage's device, by what they are."""
    m, (types, master) = x.micros(job), x.types(job)
    share = x.dp * x.cp
    most: dict[str, float] = {}
    for s, (kind, n) in enumerate(line):
        every, learned = p.count(kind, learned=False)(n), p.count(kind)(n)
        layer, grads = p.count(kind, learned=False).layer, p.count(kind).layer
        accumulated = m > 1 or x.pp > 1
        peak = p.micro(kind, "hbm_peak_bytes")
        kept = max(peak.layer - layer * BYTES[types[1]] - (grads * BYTES[types[2]] if accumulated else 0), 0)
        held = min(m, x.pp - s) if x.schedule != "gpipe" else m
        work = peak(n) - every * BYTES[types[1]] - (learned * BYTES[types[2]] if accumulated else 0) - kept * n
        moments = 8 if job.optimizer != "sgd" else 4
        parts = {
            "weights": every * BYTES[types[1]] / (share if x.zero == 3 else 1),
            "gradients": learned * BYTES[types[2]] / (share if x.zero > 1 else 1),
            "optimizer": learned * (moments + (4 if master else 0)) / (share if x.zero else 1),
            "activations": kept * n * held,
            "work": max(work - (0 if accumulated else learned * BYTES[types[2]]), 0),
        }
        if sum(parts.values()) > sum(most.values()):
            most = parts
    return {k: int(v) for k, v in most.items()}


def _told(job, x, p, line, seconds, comm, shown):
    total, machine, m = sum(seconds.values()), job.machine, job.model
    tokens = job.global_batch * (job.seq if m.task != "classes" else 1)
    usd = machine.usd_per_hour * job.nodes
    held = memory(job, x, p, line)
    compile_s = sum(p.micro(kind, "compile_s").least(n) for kind, n in dict(line).items()) + p.update(line[-1][0], "compile_s").least(line[-1][1])
    return {
        "step_s": total,
        "tokens_per_s": tokens / total,
        "samples_per_s": job.global_batch / total,
        "usd_per_hour": usd or None,
        "usd_per_1m_tokens": usd / 3600 * total / tokens * 1e6 if usd else None,
        "price_basis": machine.basis if usd else "no price is published",
        "mfu": model_flops(m, job.seq) * job.global_batch / (total * x.devices * machine.flops),
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
        "layout": {k: getattr(x, k) for k in ("tp", "pp", "dp", "cp", "ep", "zero", "micro_batch", "recompute", "schedule")} | {"sp": x.cut(job).sp, "attention": x.attends(job)},
    }


def _engines(p, line):
    """Share of a micro-batch that each engine is busy, on the stage with the most layers."""
    kind, n = max(line, key=lambda v: v[1])
    total = p.micro(kind, "total_us")(n)
    busy = {k: Line(p.one["busy_us"][k], p.more["busy_us"][k], p.ends[kind]["busy_us"][k])(n) for k in p.one["busy_us"]}
    return {k: max(v, 0.0) / total for k, v in busy.items()}


def _intensity(p, line):
    """FLOP of a micro-batch's products, bytes through HBM, and FLOP a second."""
    kind, n = max(line, key=lambda v: v[1])
    flops, moved, us = (p.micro(kind, k)(n) for k in ("flops", "hbm_bytes", "total_us"))
    return {"flops": flops, "hbm_bytes": moved, "flops_per_s": flops / us * 1e6}
