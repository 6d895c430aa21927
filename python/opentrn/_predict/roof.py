# SPDX-License-Identifier: Apache-2.0
"""A step on other accelerators, by a roof for each operation.

Products and attention take FLOP over a share of the peak, what is between them bytes over HBM's bandwidth, what devices tell each
other bytes over links or network beside the work. Shares are the chip's; how often activations and logits go through HBM, and the
host's part of a step, are the training software's: both stand in chips/accelerators.table, fitted to published steps (accuracy/gpus.py).

Software is compiled (operations between products are joined), eager (each is a kernel that reads and writes HBM) or tuned (compiled,
with the vendor's own kernels for attention and fp8, as training libraries have them since 2024). One device
waits for its host where steps are short: launches for each weight and, eager, for each operation of a layer. So do several with experts, unless all
is compiled: routing is many short operations, and how many tokens each expert gets only the device knows. Some of the launching
is beside the device's work, some is not: the two times are joined as the root of their squares' sum.
"""

import dataclasses
import functools
import math
import os
import pathlib
from types import SimpleNamespace

from opentrn import _library
from opentrn._predict.compose import BYTES, SLOWEST, share_of, stages
from opentrn._predict.layout import check
from opentrn._predict.size import adapters, lasting, model_flops, parameters, seen, tokens_of, work

KERNELS, GELU_KERNELS = 10, 24  # of an eager layer, forward and backward: all between its products; gelu by tanh, written out in many
SOFTWARE = ("compiled", "eager", "tuned")


@dataclasses.dataclass(frozen=True)
class Accelerator:
    """As machines.Machine, with what the roofs need."""

    name: str
    chip: str
    chips: int
    devices: int
    cores: int
    flops: float
    flops_fp8: float
    flops_fp32: float
    memory: int
    hbm: float
    link: float
    network: float
    usd_per_hour: float
    basis: str
    products: float
    attention: float
    products_fp8: float

    @property
    def hbm_gb(self):
        return self.hbm / 1e9

    @property
    def fp8(self):
        return "float8_e4m3fn" if self.flops_fp8 > self.flops else ""


def _lines(folder):
    path = pathlib.Path(folder) / "accelerators.table"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else ()
    return [v for v in (line.partition("#")[0].split() for line in lines) if v]


def rows():
    lines = (os.environ.get("OTRN_CHIPS") and _lines(os.environ["OTRN_CHIPS"])) or _lines(_library.chips_path())
    return {v[0]: v for v in lines if v[1:2] != ["="]}


@functools.cache
def _soft(*folders):
    return SimpleNamespace(**{v[0]: float(v[2]) for folder in folders for v in _lines(folder) if v[1:2] == ["="]})


def soft():
    """What training software does on any of them: the table's lines `name = number`; those that a folder's own leaves out are the built-in one's."""
    mine = os.environ.get("OTRN_CHIPS")
    return _soft(str(_library.chips_path()), *([mine] if mine else []))


def machine(name, price=None):
    v = rows()[name]
    n = [float(x) for x in v[2:10]]
    usd, shares = float(v[10]), [float(x) for x in v[14:17]]
    found = Accelerator(
        name, v[1], int(n[0]), int(n[0]), 1, n[1] * 1e12, n[2] * 1e12, n[3] * 1e12, int(n[4] * 2**30), n[5] * 1e9, n[6] * 1e9, n[7] / 8 * 1e9,
        usd, f"{v[11]}, {v[12]}, {v[13]}", *shares,
    )  # fmt: skip
    return dataclasses.replace(found, usd_per_hour=price, basis="your price") if price else found


def _products(job):
    """(FLOP a second of products, of attention's)."""
    a = job.machine
    better, attends = (soft().tuned_products, soft().tuned_attention) if job.software == "tuned" else (1.0, 1.0)
    rate = {"fp8": a.flops_fp8 * a.products_fp8 * better, "fp32": a.flops_fp32 * a.products}.get(job.precision, a.flops * a.products)
    return rate, rate if job.precision == "fp32" else a.flops * min(a.attention * attends, a.products)


def _head_rate(job):
    """Logits are bf16's where layers are fp8's."""
    return _products(job)[0] if job.precision == "fp32" else job.machine.flops * job.machine.products


def _is_plain(job, x):
    """Do scores pass through HBM? Compilers write out attention with a mask, as encoders have it; eager has a kernel for all."""
    return x.attention == "plain" or (x.attention is None and job.model.task == "mlm" and job.software == "compiled" and x.devices == 1)


def _inner(m):
    """Features of a layer's MLP that pass through HBM, in those of one without a gate."""
    return m.hidden * (1.5 if m.gated else 1.0) * (1.25 * m.chosen if m.experts else 1.0)


def parts(job, x, share=1.0, last=True):
    """Seconds of a micro-batch on a device with a share of the layers and, last, the head, by operation, and of what is beside it."""
    m, a, t = job.model, job.machine, x.micro_batch * tokens_of(job.model, job.seq) / x.cp
    layers, ends, pairs, late = (x.micro_batch / (x.cp * x.tp) * v for v in (*work(m, job.seq), lasting(m, job.seq)))
    deep = share * (m.layers + m.decoder)
    full, learn = x.recompute == "full", 4 if job.lora else 6
    rate, attend = _products(job)
    widened, size = job.software == "eager" and job.precision != "fp32", BYTES[x.types(job)[0][0]]
    again = 4 / 3 if full else 1.0
    out = {
        "products": (learn * layers + 2 * full * (layers - late) + (6 + 2 * full) * adapters(m, job.lora) * t / x.tp) * share / rate,
        "head": learn * ends / _head_rate(job) if last else 0.0,
        "attention": (14 + 4 * full) * pairs * seen(m, job.seq) * share / attend,  # the backward pass makes scores again
        "between": deep * t * (m.width + _inner(m) / 4) / 2 * size * soft().passes * again / x.tp / a.hbm,
        "logits": ends / m.width * (soft().eager_logit_bytes if widened else soft().logit_bytes) / a.hbm if last and m.task != "classes" else 0.0,
    }
    if widened and m.act == "gelu":
        out["between"] += deep * t * m.hidden * 4 * soft().gelu_passes / x.tp / a.hbm
    if _is_plain(job, x):
        out["scores"] = pairs / m.head * share * soft().score_bytes * again / a.hbm
    if m.experts:  # rows are brought together by expert and back, forward and backward, each time read and written; beside that to and from what is sent
        out["routing"] = deep * 1.25 * m.chosen * t * m.width * size * (16 if x.ep > 1 else 8) * again / x.tp / a.hbm
    if x.tp > 1:  # two sums forward and two backward, each scattered and gathered
        out["tensor_parallel"] = (5 if full else 4) * deep * 2 * t * m.width * 2 * (1 - 1 / x.tp) / _rate(job, x.tp, 1)
    if x.ep > 1:  # to the experts and back
        out["experts"] = (5 if full else 4) * deep * 1.25 * m.chosen * t * m.width * size / x.tp * (1 - 1 / x.ep) / _rate(job, x.ep, x.tp * x.cp)
    if x.cp > 1:  # keys and values go round, forward, backward, and their gradients: beside attention
        round_trip = 3 * deep * 2 * max(m.kv / x.tp, 1) * m.head * t * (x.cp - 1) * size / _rate(job, x.cp, x.tp)
        out["context"] = max(round_trip - out["attention"], 0.0)
    if m.experts and job.software != "compiled":
        device = sum(out.values())
        out["launching"] = math.hypot(device, deep * soft().experts_s) - device
    return out


BESIDE = ("tensor_parallel", "experts", "context")  # of the parts, those that are talk


def weights(m):
    """How many weights and vectors beside them a model has."""
    each = (2 if m.norm == "layer" else 1) * 2 + (4 if m.kind != "gpt2" else 2) + (3 if m.gated else 2)
    biases = (4 if m.kind != "gpt2" else 2) + (3 if m.gated else 2) if m.bias else 3 if m.qkv_bias else 0
    return (m.layers + m.decoder) * (each + biases)


def launches(job, micros):
    """Seconds that the host launches a step of one device."""
    m = job.model
    alone = (KERNELS + (GELU_KERNELS if m.act == "gelu" else 0)) * (m.layers + m.decoder) if job.software == "eager" else 0
    return micros * (weights(m) * soft().tensor_s + alone * soft().kernel_s)


def _rate(job, ranks, apart):
    """Bytes a second of a device in a collective of ranks, `apart` devices from each other: links inside a machine; beyond, the
    network, which the groups that have a part in the machine share."""
    a = job.machine
    return a.link if ranks * apart <= a.devices else min(a.link, soft().rails * a.network / min(a.devices, apart))


def _held(job, x, kind):
    """Weights of a device with this stage of the model, and those that learn; each as (those of no expert, experts')."""
    m, lines = job.model, stages(job.model, x)
    attention, mlp, ends = parameters(m)
    n, crossed = max(n for k, n in lines if k == kind), m.decoder > 0 and kind not in ("whole", "first", "middle")  # a decoder's layers attend twice
    share = n / (m.layers if kind == "whole" else m.layers + m.decoder)
    attends = n * (1 + crossed) / (m.layers + 2 * m.decoder) if x.pp > 1 else share
    here = {"whole": 1.0, "second": 1.0, "middle": 0.0, "write": 0.0}.get(kind, 1.0 if m.tied else 0.5)
    experts = mlp / x.ep * share / x.tp if m.experts else 0.0
    count = (attention * attends + (0.0 if m.experts else mlp * share)) / x.tp + ends * here / x.tp, experts
    return count, (adapters(m, job.lora) * attends / x.tp, 0.0) if job.lora else count


def step(job, x):
    check(job, x)
    m, a, micros = job.model, job.machine, x.micros(job)
    line = stages(m, x)
    held = {kind: _held(job, x, kind) for kind, _ in line}
    count, learned = max(held.values(), key=lambda v: sum(v[0]))
    works = [parts(job, x, share_of(m, kind, n), kind in ("whole", "last", "second")) for kind, n in line]
    rounds = [sum(w.values()) for w in works]
    slow = max(range(len(line)), key=lambda s: rounds[s])
    busy, work_here = rounds[slow], works[slow]
    types, master = x.types(job)
    sent = lambda counts, rate: sum(n * (1 - 1 / x.replicas(e)) / rate(e) for e, n in enumerate(counts))
    meet = lambda expert: _rate(job, x.replicas(expert), x.tp * (x.ep if expert else 1))
    shared = {3: [2 * (2 * n + t) for n, t in zip(count, learned)], 2: [BYTES[types[2]] * t for t in learned]}.get(x.zero, ())  # bytes of weights and gradients in each micro-batch
    comm = sent(shared, meet)
    # Gathering and scattering kernels take the processors that products need: what passes over links costs its time, what the network takes is beside the work
    late = max(comm - busy, soft().stall * sent(shared, lambda _: a.link))
    seconds = {"micro_batches": micros * busy, "sharding": micros * late, "bubble": (sum(rounds) - busy + (x.pp - 1) * late) / x.chunks}
    if x.pp > 1:  # every device of a machine passes on at once
        apart = x.tp * x.cp * x.dp
        seconds["passing_on"] = 2 * (micros + x.pp - 1) * x.chunks * x.micro_batch * job.seq / x.cp * m.width * 2 / x.tp / _rate(job, 2, apart)
    told = {0: 2 * BYTES[types[2]], 1: BYTES[types[2]] + BYTES[types[1]], 2: BYTES[types[1]]}.get(x.zero, 0)  # gradients there, gradients or weights back
    whole = sent([told * t for t in learned], meet)
    seconds["reduction"] = max(whole - busy / 2, 0.0)  # beside the last backward pass
    seconds["optimizer"] = (x.parted(learned) if x.zero else sum(learned)) * 28 / a.hbm
    device = sum(seconds.values())
    seconds["host"] = soft().host_s if x.devices > 1 else math.hypot(device, launches(job, micros)) - device
    seconds["waiting"] = SLOWEST * math.log2(job.nodes) * sum(seconds.values())
    seconds = {k: v for k, v in seconds.items() if v}
    beside = sum(work_here.get(k, 0.0) for k in BESIDE)
    talk = micros * (comm + beside) + seconds.get("passing_on", 0) + whole
    shown = micros * (late + beside) + seconds.get("passing_on", 0) + seconds.get("reduction", 0)
    told = _told(job, x, seconds, work_here, talk, shown) | {"intensity": _intensity(job, work_here)}
    told["collectives"] = {k: v for k, v in {
        **{k: micros * work_here.get(k, 0.0) for k in BESIDE}, "weights_and_gradients": micros * comm + whole, "passing_on": seconds.get("passing_on", 0.0)
    }.items() if v}  # fmt: skip
    there = 1 / (4 if x.recompute == "full" else 3)  # of products and their gradients
    return told | ({"rounds": {"s": [r + late for r in rounds], "forward_share": there, "passing_s": 0.0}} if x.pp > 1 else {})


def _intensity(job, work):
    """FLOP of a micro-batch's products, bytes through HBM between them, and FLOP a second."""
    a, (rate, attend) = job.machine, _products(job)
    flops = work["products"] * rate + work["head"] * _head_rate(job) + work["attention"] * attend
    moved = sum(work.get(k, 0.0) for k in ("between", "logits", "scores", "routing")) * a.hbm
    return {"flops": flops, "hbm_bytes": moved, "flops_per_s": flops / sum(work.values())}


def _kept(job, x):
    """Bytes that a layer keeps for the backward pass, of one token: what is between its products is whole on each device where positions are not cut."""
    m, size = job.model, BYTES[x.types(job)[0][0]]
    cut = x.tp if x.cut(job).sp else 1
    if x.recompute == "full":
        return size * m.width / cut
    some = m.chosen * 1.25 if m.experts else 1
    made = 2 * (m.heads + m.kv) * m.head + (3 if m.gated else 2) * m.hidden * some
    between = 4 * m.width * size + (2 * m.width if m.dropout else 0)
    if job.software == "eager" and job.precision == "amp" and m.act == "gelu":
        made += 12 / size * m.hidden  # gelu by tanh, written out: what each of its steps made
    return made * size / x.tp + between / cut + (4 * m.heads / x.tp * tokens_of(m, job.seq) if _is_plain(job, x) else 0)


def _memory(job, x):
    """Of the fullest stage."""
    m, (types, master), most = job.model, x.types(job), {}
    t = x.micro_batch * tokens_of(m, job.seq) / x.cp
    for s, (kind, n) in enumerate(stages(m, x)):
        count, learned = _held(job, x, kind)
        logits = t * m.vocab * (12 if job.precision in ("amp", "fp32") else 6) / x.tp if kind in ("whole", "last", "second") and m.task != "classes" else 0.0
        held = {
            "weights": (x.parted(count) if x.zero == 3 else sum(count)) * BYTES[types[1]],
            "gradients": (x.parted(learned) if x.zero > 1 else sum(learned)) * BYTES[types[2]],
            "optimizer": (x.parted(learned) if x.zero else sum(learned)) * (8 + 4 * master),
            "activations": share_of(m, kind, n) * (m.layers + m.decoder) * _kept(job, x) * t * x.in_flight(job, s),
            "work": logits + 34 * m.width * t / x.tp,
        }
        most = max(most, held, key=lambda v: sum(v.values()))
    return most


def _told(job, x, seconds, work, talk, shown):
    total, a, m = sum(seconds.values()), job.machine, job.model
    tokens = job.global_batch * (job.seq if m.task != "classes" else 1)
    usd = a.usd_per_hour * job.nodes
    held = {k: int(v) for k, v in _memory(job, x).items()}
    return {
        "step_s": total, "tokens_per_s": tokens / total, "samples_per_s": job.global_batch / total, "usd_per_hour": usd or None,
        "usd_per_1m_tokens": usd / 3600 * total / tokens * 1e6 if usd else None, "price_basis": a.basis if usd else "no price is published",
        "mfu": model_flops(m, job.seq, job.lora) * job.global_batch / (total * x.devices * a.flops), "comm_share": min(talk / total, 1.0),
        "exposed_comm_share": min(shown / total, 1.0), "bubble_share": seconds.get("bubble", 0.0) / total, "hbm_peak_bytes": sum(held.values()),
        "hbm_bytes": a.memory, "fits": sum(held.values()) <= a.memory, "memory": held, "compile_s": 0.0, "software": job.software, "micro_batches": x.micros(job),
        "parameters": sum(parameters(m)), "instructions": 0, "seconds": seconds, "operations": work,
        "layout": {k: getattr(x, k) for k in ("tp", "pp", "dp", "cp", "ep", "zero", "micro_batch", "recompute", "schedule", "chunks")} | {"sp": x.cut(job).sp},
    }  # fmt: skip
