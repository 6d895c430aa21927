# SPDX-License-Identifier: Apache-2.0
"""Layouts of a job, ranked. What the user gave stays; the rest is tried.

Layouts that cannot be the best are left out before anything is compiled: those whose weights, gradients and moments alone do
not fit, and those whose products alone, at the tensor engines' peak, take longer than a step already found.
"""

import dataclasses
import itertools

from opentrn._predict.compose import BYTES, model_flops, step
from opentrn._predict.fault import Fault, TooLarge
from opentrn._predict.layout import RECOMPUTE, Layout, check

BY = {"usd": "usd_per_1m_tokens", "time": "step_s", "memory": "hbm_peak_bytes"}


def _powers(most):
    return [2**i for i in range(most.bit_length()) if 2**i <= most]


def candidates(job, given):
    """Layouts that divide; given: names of Layout with the user's values."""
    m, have = job.model, job.nodes * job.machine.devices
    one = lambda name, values: [given[name]] if given.get(name) is not None else values
    pp = _powers(min(m.layers, 16)) if m.task == "lm" else [1]
    tp = _powers(min(m.heads, job.machine.devices)) if m.task != "classes" else [1]
    cp = _powers(job.seq // 16384) if m.task == "lm" and job.seq >= 32768 else [1]
    ep = _powers(m.experts) if m.experts else [1]
    fixed = {k: given[k] for k in ("sp", "schedule", "chunks") if given.get(k) is not None}
    recompute = one("recompute", RECOMPUTE if m.task == "lm" else ("none", "full"))
    for a, b, c, e in itertools.product(one("tp", tp), one("pp", pp), one("cp", cp), one("ep", ep)):
        if have % (a * b * c):
            continue
        for dp, zero, micro, again in itertools.product(
            one("dp", [have // (a * b * c)]), one("zero", (0, 1, 3)), one("micro_batch", (1, 2, 4, 8)), recompute
        ):
            x = Layout(a, b, dp, c, e, zero if dp * c > 1 or given.get("zero") is not None else 0, micro, again, **fixed)
            try:
                check(job, x)
            except Fault:
                continue
            yield x


def parameters(m):
    """Weights of a model, without small vectors."""
    attention = m.width * m.head * (2 * m.heads + 2 * m.kv)
    mlp = (3 if m.gated else 2) * m.width * m.hidden
    layers = m.layers + m.decoder
    return layers * attention, layers * mlp * max(m.experts, 1), m.vocab * m.width * (1 if m.tied else 2)


def least_memory(job, x):
    """Bytes that weights, gradients and moments take at least."""
    types, master = x.types(job)
    attention, mlp, ends = parameters(job.model)
    count = (attention + mlp / x.ep) / (x.tp * x.pp) + (ends / x.tp if x.pp == 1 else ends / x.tp / 2)
    share = x.dp * x.cp
    learned = 0.0 if job.lora else count
    held = count * BYTES[types[1]] / (share if x.zero == 3 else 1) + learned * BYTES[types[2]] / (share if x.zero > 1 else 1)
    return held + learned * (8 + 4 * master) / (share if x.zero else 1)


def least_time(job, x):
    """Seconds that the products take at the peak, with what is computed again and the pipeline's bubble."""
    rate = 0.25 if job.precision == "fp32" else 1.0
    again = 4 / 3 if x.recompute == "full" else 1.0
    flops = model_flops(dataclasses.replace(job.model, vocab=job.model.vocab), job.seq)
    attention = 12.0 * (job.model.layers + job.model.decoder) * job.model.heads * job.model.head * job.seq**2
    seconds = (flops - attention / 2) * again * job.global_batch / (x.devices * job.machine.flops * rate)
    return seconds * (1 + (x.pp - 1) / x.micros(job) / x.chunks)


@dataclasses.dataclass
class Found:
    rows: list  # (layout, prediction), the best first
    tried: int
    pruned_memory: int
    pruned_time: int
    unfit: int  # priced, and did not fit


def search(job, given, prices, by="usd", told=lambda text: None, keep=10):
    """The layouts that fit, ranked."""
    if by == "usd" and not job.machine.usd_per_hour:
        raise Fault(f"no price of {job.machine.name} is published, so layouts cannot be ranked by dollars", "--price=USD/h of one machine, or --by=time")
    every = list(candidates(job, given))
    if not every:
        raise Fault("no layout divides this model and batch", "another --global-batch, or fewer --nodes")
    room = [x for x in every if least_memory(job, x) <= job.machine.memory]
    if not room:
        need = min(least_memory(job, x) for x in every)
        raise Fault(
            f"weights, gradients and optimizer take {need / 2**30:.1f} GiB of a device with {job.machine.memory / 2**30:.0f} GiB in every layout",
            "more --nodes, a larger instance, or --zero=3",
        )
    found = Found([], 0, len(every) - len(room), 0, 0)
    room.sort(key=lambda x: (least_time(job, x), x.recompute != "selective"))
    for x in room:
        best = [r["step_s"] for _, r in found.rows[:keep]]
        if by != "memory" and len(best) == keep and least_time(job, x) > best[-1]:
            found.pruned_time += 1
            continue
        told(f"{found.tried} of {len(room)}: {x.text()}")
        found.tried += 1
        try:
            result = step(job, x, prices)
        except TooLarge:
            result = {"fits": False}
        if not result["fits"]:
            found.unfit += 1
            continue
        found.rows.append((x, result))
        found.rows.sort(key=lambda v: v[1][BY[by]])
    if not found.rows:
        raise Fault(f"none of {found.tried} layouts fits {job.machine.memory / 2**30:.0f} GiB a device", "more --nodes, --zero=3 or --recompute=full")
    return found


def why(best, other):
    """What makes another layout dearer than the best: the parts of its step that are longer."""
    a, b = best["seconds"], other["seconds"]
    more = sorted(((b.get(k, 0) - a.get(k, 0), k) for k in {*a, *b}), reverse=True)
    return ", ".join(f"{k.replace('_', ' ')} {d:+.3g} s" for d, k in more[:2] if abs(d) > 0.005 * best["step_s"]) or "the same"
