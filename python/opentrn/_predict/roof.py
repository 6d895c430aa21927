# SPDX-License-Identifier: Apache-2.0
"""A step on other accelerators, by a roof for each operation.

Products and attention take FLOP over a share of the peak, what is between them bytes over HBM's bandwidth, what devices tell each
other bytes over links or network beside the work. Shares are the chip's; how often activations and logits go through HBM, and the
host's part of a step, are the training software's: both stand in chips/accelerators.table, fitted to published steps (accuracy/gpus.py).

Software is compiled (operations between products are joined) or eager (each is a kernel that reads and writes HBM). One device
waits for its host where steps are short: launches for each weight and, eager, for each operation of a layer. Some of the launching
is beside the device's work, some is not: the two times are joined as the root of their squares' sum.
"""

import dataclasses
import functools
import math
import os
import pathlib
from types import SimpleNamespace

from opentrn import _library
from opentrn._predict.compose import BYTES, model_flops, parameters, stages
from opentrn._predict.layout import check

KERNELS, GELU_KERNELS = 10, 24  # of an eager layer, forward and backward: all between its products; gelu by tanh, written out in many
SOFTWARE = ("compiled", "eager")


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
    rate = {"fp8": a.flops_fp8 * a.products_fp8, "fp32": a.flops_fp32 * a.products}.get(job.precision, a.flops * a.products)
    return rate, rate if job.precision == "fp32" else a.flops * a.attention


def _is_plain(job, x):
    """Do scores pass through HBM? Compilers write out attention with a mask, as encoders have it; eager has a kernel for all."""
    return x.attention == "plain" or (x.attention is None and job.model.task == "mlm" and job.software == "compiled" and x.devices == 1)


def parts(job, x):
    """Seconds of a micro-batch on one device, by operation, and of what is beside it."""
    m, a, t = job.model, job.machine, x.micro_batch * job.seq / x.cp
    if m.task == "classes":
        t = x.micro_batch * ((m.image // m.patch) ** 2 + 1)
    attention, mlp, ends = parameters(m)
    busy = attention + mlp * (m.chosen / m.experts if m.experts else 1)
    layers = (m.layers + m.decoder) / x.pp
    again = {"full": 4 / 3, "selective": 1.0, "none": 1.0}[x.recompute]
    rate, attend = _products(job)
    seq = job.seq if m.task != "classes" else t / x.micro_batch
    seen = (0.5 if m.task == "lm" else 1.0) * (min(m.window / seq, 1.0) if m.window else 1.0)
    pairs = 4 * seq * m.heads * m.head * seen * layers * t * 3 * (3.5 / 3) / x.tp
    widened, size = job.software == "eager" and job.precision != "fp32", BYTES[x.types(job)[0][0]]
    out = {
        "products": 6 * busy / x.pp * t * again / x.tp / rate,
        "head": 6 * m.vocab * m.width * t / x.tp / (rate if job.precision == "fp32" else a.flops * a.products) if m.task != "classes" else 0.0,
        "attention": pairs * (4 / 3 if x.recompute == "full" else 1.0) / attend,
        "between": layers * t * m.width * size * soft().passes * again / x.tp / a.hbm,
        "logits": t * m.vocab * (soft().eager_logit_bytes if widened else soft().logit_bytes) / x.tp / a.hbm if m.task != "classes" else 0.0,
    }
    if widened and m.act == "gelu":
        out["between"] += layers * t * m.hidden * 4 * soft().gelu_passes / x.tp / a.hbm
    if _is_plain(job, x):
        out["scores"] = layers * t * m.heads * seq * soft().score_bytes / x.tp / a.hbm
    if x.tp > 1:  # two sums forward and two backward, each scattered and gathered
        out["tensor_parallel"] = 4 * again * layers * 2 * t * m.width * 2 * (1 - 1 / x.tp) / a.link
    return out


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


def _rate(job, x, ranks):
    """Bytes a second of a device's collective: links inside a machine, its share of the network beyond."""
    a = job.machine
    return a.link if ranks * x.tp <= a.devices else min(a.link, soft().rails * a.network / min(a.devices, x.tp) if x.tp > 1 else soft().rails * a.network)


def step(job, x):
    check(job, x)
    m, a, micros = job.model, job.machine, x.micros(job)
    attention, mlp, ends = parameters(m)
    count = (attention + mlp / x.ep) / (x.tp * x.pp) + ends / x.tp
    ranks = x.dp * x.cp
    work = parts(job, x)
    busy = sum(work.values())
    types, master = x.types(job)
    passes = 3 if x.zero == 3 else 1 if x.zero == 2 else 0
    comm = passes * count * 2 * (1 - 1 / ranks) / _rate(job, x, ranks) if ranks > 1 else 0.0
    late = max(comm - busy, 0.0)
    seconds = {"micro_batches": micros * busy, "sharding": micros * late, "bubble": (x.pp - 1) * (busy + late) / x.chunks}
    if x.pp > 1:
        seconds["passing_on"] = 2 * (micros + x.pp - 1) * x.micro_batch * job.seq / x.cp * m.width * 2 / x.tp / _rate(job, x, a.devices + 1)
    whole = 2 * count * BYTES[types[2]] * (1 - 1 / ranks) / _rate(job, x, ranks) if ranks > 1 and x.zero < 2 else 0.0
    seconds["reduction"] = max(whole - busy / 2, 0.0)  # beside the last backward pass
    seconds["optimizer"] = count * 28 / (ranks if x.zero else 1) / a.hbm
    device = sum(seconds.values())
    seconds["host"] = soft().host_s if x.devices > 1 else math.hypot(device, launches(job, micros)) - device
    seconds = {k: v for k, v in seconds.items() if v}
    talk = micros * (comm + work.get("tensor_parallel", 0)) + seconds.get("passing_on", 0) + whole
    shown = micros * (late + work.get("tensor_parallel", 0)) + seconds.get("passing_on", 0) + seconds.get("reduction", 0)
    return _told(job, x, seconds, work, talk, shown, count)


def _memory(job, x, count):
    m, (types, master), share = job.model, x.types(job), x.dp * x.cp
    t = x.micro_batch * job.seq / x.cp
    layer = {"full": 2 * m.width, "selective": 34 * m.width / 2, "none": 34 * m.width / 2}[x.recompute] / x.tp
    kept = max(n for _, n in stages(m, x)) * layer * t * min(x.micros(job), x.pp)
    return {
        "weights": count * BYTES[types[1]] / (share if x.zero == 3 else 1),
        "gradients": count * BYTES[types[2]] / (share if x.zero > 1 else 1),
        "optimizer": count * (8 + 4 * master) / (share if x.zero else 1),
        "activations": kept,
        "work": t * m.vocab * 6 / x.tp + 34 * m.width * t / x.tp,
    }


def _told(job, x, seconds, work, talk, shown, count):
    total, a, m = sum(seconds.values()), job.machine, job.model
    tokens = job.global_batch * (job.seq if m.task != "classes" else 1)
    usd = a.usd_per_hour * job.nodes * min(1.0, x.devices / (job.nodes * a.devices))
    held = {k: int(v) for k, v in _memory(job, x, count).items()}
    return {
        "step_s": total, "tokens_per_s": tokens / total, "samples_per_s": job.global_batch / total, "usd_per_hour": usd or None,
        "usd_per_1m_tokens": usd / 3600 * total / tokens * 1e6 if usd else None, "price_basis": a.basis if usd else "no price is published",
        "mfu": model_flops(m, job.seq) * job.global_batch / (total * x.devices * a.flops), "comm_share": min(talk / total, 1.0),
        "exposed_comm_share": min(shown / total, 1.0), "bubble_share": seconds.get("bubble", 0.0) / total, "hbm_peak_bytes": sum(held.values()),
        "hbm_bytes": a.memory, "fits": sum(held.values()) <= a.memory, "memory": held, "compile_s": 0.0, "micro_batches": x.micros(job),
        "parameters": sum(parameters(m)), "instructions": 0, "seconds": seconds, "operations": work,
        "layout": {k: getattr(x, k) for k in ("tp", "pp", "dp", "cp", "ep", "zero", "micro_batch", "recompute", "schedule")} | {"sp": x.tp > 1},
    }  # fmt: skip
