# SPDX-License-Identifier: Apache-2.0
"""How a model is cut over a fleet, and which cuts are possible.

Devices are numbered tensor-parallel first, then context-parallel, data-parallel, pipeline, as the training libraries number
them: a tensor-parallel group is neighbours, the stages of a pipeline are far from each other.
"""

import dataclasses
import itertools
import math

from opentrn._predict.fault import Fault
from opentrn._predict.spec import Cut

RECOMPUTE = ("none", "selective", "full")
SCHEDULES = ("1f1b", "gpipe", "interleaved")
ATTENTION = ("flash", "whole", "plain")
# compute, weights as they are stored, sums of gradients
PRECISIONS = {"bf16": ("bf16", "bf16", "bf16"), "amp": ("bf16", "fp32", "fp32"), "fp32": ("fp32", "fp32", "fp32"), "fp8": ("bf16", "bf16", "bf16")}


@dataclasses.dataclass(frozen=True)
class Job:
    """What is trained: the same for every layout."""

    model: object
    machine: object
    nodes: int
    seq: int
    global_batch: int
    precision: str = "bf16"
    optimizer: str = "adamw"
    lora: int = 0
    software: str = "compiled"  # or eager: of machines that are priced by roofs
    as_of: tuple[str, float] | None = None  # month of Neuron's software, and its speed beside the newest; None: the newest


@dataclasses.dataclass(frozen=True)
class Layout:
    tp: int = 1
    pp: int = 1
    dp: int = 1
    cp: int = 1
    ep: int = 1
    zero: int = 0
    micro_batch: int = 1
    recompute: str = "none"
    sp: bool | None = None  # sequence parallelism; None: where it is possible
    schedule: str = "1f1b"
    chunks: int = 1  # of layers on a device of an interleaved pipeline
    attention: str | None = None  # None: as published runs of the kind had it

    @property
    def devices(self):
        return self.tp * self.pp * self.dp * self.cp

    def replicas(self, expert=False):
        """Devices that have the same weight: those of ZeRO share what belongs to it. Of an expert's there are fewer."""
        return self.dp * self.cp // (self.ep if expert else 1)

    def parted(self, counts):
        """A device's part, of how many weights of experts and how many others it has."""
        dense, experts = counts
        return dense / self.replicas() + experts / self.replicas(expert=True)

    def micros(self, job):
        return job.global_batch // (self.dp * self.micro_batch)

    def accumulates(self, job):
        """Do micro-batches add their gradients to those before?"""
        return self.micros(job) > 1 or self.pp > 1

    def meets(self, job):
        """Do replicas meet in a micro-batch's program? From ZeRO-2 on in each; where there is but one, it and the update are one program."""
        return self.zero > 1 or not self.accumulates(job)

    def in_flight(self, job, stage):
        """Micro-batches whose activations a stage holds at once; of an interleaved one, pieces of them."""
        micros = self.micros(job)
        if self.schedule == "gpipe":
            return micros
        return turns_ahead(stage, self.pp, micros, self.chunks) / self.chunks

    def cut(self, job):
        """Of a micro-batch's programs."""
        possible = self.tp > 1 and job.model.task == "lm" and job.seq // self.cp % self.tp == 0
        meet = (self.dp // self.ep, self.zero, True) if self.meets(job) else (1, 0, False)
        return Cut(self.tp, self.cp, self.ep, possible if self.sp is None else self.sp, job.seq, self.micro_batch, self.recompute, job.lora, self.attends(job),
                   job.precision == "amp", job.machine.fp8 if job.precision == "fp8" else "", *meet)  # fmt: skip

    def reach(self, job):
        """Of the update, in which replicas meet: how tokens are cut is all the same to it."""
        return Cut(self.tp, self.cp, self.ep, self.cut(job).sp, 2 * self.cp * self.tp, lora=job.lora, replicas=self.dp // self.ep, zero=self.zero, meet=self.meets(job))

    def attends(self, job):
        """Encoders have no fused attention on the chip, and runs that computed whole layers again computed every score: published
        steps are told best so (docs/predict.md)."""
        if self.attention:
            return self.attention
        return "plain" if job.model.task == "mlm" else "whole" if job.model.task == "lm" and self.recompute == "full" else "flash"

    def types(self, job):
        """Types, and whether fp32 weights are kept beside narrow ones: a sharded optimizer has room for them."""
        types = PRECISIONS[job.precision]
        master = self.zero > 0 and types[1] == "bf16"
        return ((types[0], types[1], "fp32") if master else types), master

    def compiled(self, job):
        """The same of programs: gradients that meet no others and are not added up stay as cast products made them."""
        types, master = self.types(job)
        alone = job.precision == "amp" and self.replicas() == 1 and not self.accumulates(job)
        return (*types[:2], types[0]) if alone else types, master

    def text(self):
        words = [f"{k}={getattr(self, k)}" for k in ("tp", "pp", "dp", "cp", "ep") if getattr(self, k) > 1 or k in ("tp", "pp", "dp")]
        words += [f"zero={self.zero}", f"micro-batch={self.micro_batch}", f"recompute={self.recompute}"]
        return " ".join(words + ([f"chunks={self.chunks}"] if self.chunks > 1 else []))


def scheduled(fields):
    """The same with what schedule and chunks say of each other."""
    if fields.get("schedule") == "interleaved" and "chunks" not in fields:
        return {**fields, "chunks": 2}
    return {**fields, "schedule": "interleaved"} if fields.get("chunks", 1) > 1 else fields


def turns_ahead(stage, stages, micros, chunks):
    """Forward passes, of a chunk each, that a stage does before its first backward pass."""
    return min((stages - stage - 1) * (2 if chunks > 1 else 1) + (chunks - 1) * stages + 1, micros * chunks)


def joined(machine, nodes):
    """Several of a machine without a network are no fleet."""
    if nodes > 1 and getattr(machine, "network", 1) <= 0:
        raise Fault(f"{machine.name} has no network, so it is alone", "--nodes=1, or an --instance with a network")


def check(job, x):
    """Raises Fault where a layout is not possible, with what would be."""
    joined(job.machine, job.nodes)
    for name in ("tp", "pp", "dp", "cp", "ep", "micro_batch", "chunks"):
        if getattr(x, name) < 1:
            raise Fault(f"--{name.replace('_', '-')}={getattr(x, name)}: a whole number above 0 is needed")
    if x.zero not in (0, 1, 2, 3):
        raise Fault(f"--zero={x.zero}: 0, 1, 2 or 3")
    try:
        _check_devices(job, x)
        _check_model(job, x, job.model)
    except Fault as fault:
        if not fault.hint:
            fault.hint = nearest(job, x)
        raise
    _check_batch(job, x)


def _check_devices(job, x):
    have = job.nodes * job.machine.devices
    if x.devices != have:
        parts = f"tp {x.tp} x pp {x.pp} x dp {x.dp}" + (f" x cp {x.cp}" if x.cp > 1 else "")
        raise Fault(f"{parts} is {x.devices} devices; {job.nodes} of {job.machine.name} have {have}")


def _check_batch(job, x):
    step = x.dp * x.micro_batch
    if job.global_batch % step:
        near = max((job.global_batch + step // 2) // step, 1) * step
        raise Fault(f"a global batch of {job.global_batch} cannot be shared by dp {x.dp} x micro-batch {x.micro_batch}", f"--global-batch={near}")


def _check_model(job, x, m):
    if job.precision == "fp8" and not job.machine.fp8:
        raise Fault(f"{job.machine.name} multiplies fp8 no quicker than bf16", "--precision=bf16, or an --instance with trn2, trn3, H100 or newer")
    if m.heads % x.tp:
        raise Fault(f"{m.heads} heads cannot be shared by tp {x.tp}")
    if m.kv % x.tp and x.tp % m.kv:
        raise Fault(f"{m.kv} heads of keys cannot be shared by tp {x.tp}")
    if m.hidden % x.tp:
        raise Fault(f"an MLP of {m.hidden} cannot be shared by tp {x.tp}")
    if x.chunks > 1 and m.task == "span":
        raise Fault(f"a pipeline over {m.kind}, an encoder and a decoder, has its stages whole", "--schedule=1f1b --chunks=1")
    if x.chunks > 1 and x.pp == 1:
        raise Fault(f"an interleaved pipeline, of {x.chunks} pieces a stage, has two stages or more, and pp is 1", "--schedule=1f1b --chunks=1, or --pp=2")
    if x.pp > (m.layers + m.decoder) // x.chunks:
        raise Fault(f"{m.layers + m.decoder} layers cannot be {x.pp} stages of {x.chunks}")
    if x.cp > 1 and (m.task != "lm" or job.seq % (2 * x.cp)):
        raise Fault(f"a sequence of {job.seq} cannot be shared by cp {x.cp}" if m.task == "lm" else f"a sequence of {m.kind} that devices share is not modelled")
    if x.ep > 1 and (not m.experts or m.experts % x.ep or x.dp % x.ep):
        raise Fault(f"ep {x.ep} needs experts ({m.kind} has {m.experts}) and data-parallel replicas (dp {x.dp}) that it divides", "" if m.experts else "--ep=1")
    if x.sp and (job.seq // x.cp % x.tp or m.task != "lm"):
        raise Fault(f"a sequence of {job.seq} cannot be shared by tp {x.tp}" if m.task == "lm" else f"activations of {m.kind} are not cut by position", "--sp=off")
    if m.places == "learned" and m.task != "classes" and job.seq > m.positions:
        raise Fault(f"a sequence of {job.seq} is longer than the {m.positions} positions of the model", f"--seq={m.positions}")


def nearest(job, x):
    """The possible layout that is nearest to one that is not, as words; "" where there is none."""
    have, best = job.nodes * job.machine.devices, []
    for tp, cp, pp in itertools.product(_divisors(have, job.model.heads), _divisors(have, x.cp), _divisors(have, min(job.model.layers + job.model.decoder, max(x.pp, 64)))):
        if have % (tp * cp * pp):
            continue
        dp = have // (tp * cp * pp)
        ep = _divisors(math.gcd(dp, job.model.experts or 1), x.ep)[-1]
        y = dataclasses.replace(x, tp=tp, cp=cp, pp=pp, dp=dp, ep=ep, chunks=1 if job.model.decoder or pp == 1 else min(x.chunks, max(job.model.layers // pp, 1)))
        try:
            _check_model(job, y, job.model)
        except Fault:
            continue
        far = sum(w * abs(math.log(getattr(y, k) / getattr(x, k))) for k, w in {"tp": 1, "cp": 1, "pp": 1, "ep": 1, "dp": 0.1}.items())  # dp is what is left over
        best.append((job.global_batch % (dp * y.micro_batch) != 0, round(far, 6), tp, y))
    if not best:
        return ""
    y = min(best, key=lambda v: v[:3])[3]
    return " ".join(f"--{k}={getattr(y, k)}" for k in ("tp", "pp", "dp", "cp", "ep", "chunks") if getattr(y, k) != getattr(x, k))


def _divisors(n, most):
    return [d for d in range(1, min(n, most) + 1) if n % d == 0]
