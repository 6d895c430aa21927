# SPDX-License-Identifier: Apache-2.0
"""How a model is cut over a fleet, and which cuts are possible.

Devices are numbered tensor-parallel first, then context-parallel, data-parallel, pipeline, as the training libraries number
them: a tensor-parallel group is neighbours, the stages of a pipeline are far from each other.
"""

import dataclasses

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

    def micros(self, job):
        return job.global_batch // (self.dp * self.micro_batch)

    def cut(self, job):
        """Of a micro-batch's programs; from ZeRO-2 on replicas meet in each."""
        possible = self.tp > 1 and job.model.task == "lm" and job.seq // self.cp % self.tp == 0
        meet = (self.dp // self.ep, self.zero) if self.zero > 1 else (1, 0)
        return Cut(self.tp, self.cp, self.ep, possible if self.sp is None else self.sp, job.seq, self.micro_batch, self.recompute, job.lora, self.attends(job),
                   job.machine.fp8 if job.precision == "fp8" else "", *meet)  # fmt: skip

    def reach(self, job):
        """Of the update, in which replicas meet: how tokens are cut is all the same to it."""
        return Cut(self.tp, self.cp, self.ep, self.cut(job).sp, 2 * self.cp * self.tp, lora=job.lora, replicas=self.dp // self.ep, zero=self.zero)

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

    def text(self):
        words = [f"{k}={getattr(self, k)}" for k in ("tp", "pp", "dp", "cp", "ep") if getattr(self, k) > 1 or k in ("tp", "pp", "dp")]
        return " ".join([*words, f"zero={self.zero}", f"micro-batch={self.micro_batch}", f"recompute={self.recompute}"])


def check(job, x):
    """Raises Fault where a layout is not possible, with what would be."""
    m, have = job.model, job.nodes * job.machine.devices
    for name in ("tp", "pp", "dp", "cp", "ep", "micro_batch", "chunks"):
        if getattr(x, name) < 1:
            raise Fault(f"--{name.replace('_', '-')}={getattr(x, name)}: a whole number above 0 is needed")
    if x.zero not in (0, 1, 2, 3):
        raise Fault(f"--zero={x.zero}: 0, 1, 2 or 3")
    if x.devices != have:
        rest = x.tp * x.pp * x.cp
        could = f"--dp={have // rest}" if have % rest == 0 else f"tp x pp x cp = {rest} does not divide {have}; choose powers of two"
        parts = f"tp {x.tp} x pp {x.pp} x dp {x.dp}" + (f" x cp {x.cp}" if x.cp > 1 else "")
        raise Fault(f"{parts} is {x.devices} devices; {job.nodes} of {job.machine.name} have {have}", could)
    _check_model(job, x, m)
    step = x.dp * x.micro_batch
    if job.global_batch % step:
        near = max(job.global_batch // step, 1) * step
        raise Fault(f"a global batch of {job.global_batch} cannot be shared by dp {x.dp} x micro-batch {x.micro_batch}", f"--global-batch={near}")


def _check_model(job, x, m):
    if job.precision == "fp8" and not job.machine.fp8:
        raise Fault(f"{job.machine.name} multiplies fp8 no quicker than bf16", "--precision=bf16, or an --instance with trn2, trn3, H100 or newer")
    if m.heads % x.tp:
        raise Fault(f"{m.heads} heads cannot be shared by tp {x.tp}", f"--tp={_divisor(m.heads, x.tp)}")
    if m.kv % x.tp and x.tp % m.kv:
        raise Fault(f"{m.kv} heads of keys cannot be shared by tp {x.tp}", f"--tp={_divisor(m.kv, x.tp)}")
    if m.hidden % x.tp:
        raise Fault(f"an MLP of {m.hidden} cannot be shared by tp {x.tp}", f"--tp={_divisor(m.hidden, x.tp)}")
    if x.pp > 1 and m.task != "lm":
        raise Fault(f"a pipeline over {m.kind} is not modelled", "--pp=1")
    if x.pp > m.layers // x.chunks:
        raise Fault(f"{m.layers} layers cannot be {x.pp} stages of {x.chunks}", f"--pp={m.layers}")
    if x.cp > 1 and (m.task != "lm" or job.seq % (2 * x.cp)):
        raise Fault(f"a sequence of {job.seq} cannot be shared by cp {x.cp}", "--cp=1")
    if x.tp > 1 and m.task == "classes":
        raise Fault(f"tp {x.tp} of {m.kind} is not modelled", "--tp=1")
    if x.ep > 1 and (not m.experts or m.experts % x.ep or x.dp % x.ep):
        raise Fault(
            f"ep {x.ep} needs experts ({m.kind} has {m.experts}) and data-parallel replicas (dp {x.dp}) that it divides", "--ep=1"
        )
    if x.sp and job.seq // x.cp % x.tp:
        raise Fault(f"a sequence of {job.seq} cannot be shared by tp {x.tp}", "--sp=off")
    if m.places == "learned" and m.task != "classes" and job.seq > m.positions:
        raise Fault(f"a sequence of {job.seq} is longer than the {m.positions} positions of the model", f"--seq={m.positions}")


def _divisor(n, most):
    return max(d for d in range(1, most + 1) if n % d == 0)
