# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own operator samples on opentrn: `python tests/torch/opinfo.py [--road=device|graph] [NAME…]`.

Two roads. device: tensors of the device `neuron`, eager, as `.to("neuron")` gives them. graph: each operator captured
and compiled, as by torch.compile. Samples of every operator run forward and backward, in float32 and bfloat16 (others
where an operator has neither), and are compared with the CPU within one pair of tolerances per type; bfloat16 that
differs from the CPU's, with the CPU's float32. Prints how many
ran on the device alone and equal the CPU's, then, most frequent first, what kept the others from it.

OPINFO_SAMPLES limits the samples per operator (6), OPINFO_SEED draws which; OPINFO_PART=2/5 takes the second of five
parts.
"""

import argparse
import collections
import os
import random
import warnings

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree

from opentrn.torch.capture import aot_function
from opentrn.torch.report import log

LIMIT = int(os.environ.get("OPINFO_SAMPLES", "6"))
SEED = int(os.environ.get("OPINFO_SEED", "1"))
TYPES = (torch.float32, torch.bfloat16)
OTHERS = (torch.int64, torch.bool, torch.complex64, torch.float64)  # one of them, for operators with none of TYPES
# Results that are uninitialised.
EMPTY = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"}
# Results that are random: a graph draws other numbers than eager does.
RANDOM = {
    "rand_like",
    "randn",
    "randn_like",
    "randint",
    "randint_like",
    "bernoulli",
    "multinomial",
    "normal",
    "uniform",
    "exponential",
    "cauchy",
    "geometric",
    "log_normal",
    "randperm",
    "nn.functional.dropout",
    "nn.functional.dropout2d",
    "nn.functional.dropout3d",
    "nn.functional.alpha_dropout",
    "nn.functional.feature_alpha_dropout",
    "nn.functional.rrelu",
    "nn.functional.multi_head_attention_forward",
    "nn.functional.scaled_dot_product_attention",
    "nn.functional.fractional_max_pool2d",
    "nn.functional.fractional_max_pool3d",
    "nn.functional.gumbel_softmax",
    "svd_lowrank",
    "pca_lowrank",
}

# Sizes that depend on data: torch.compile cuts the graph there and the operator runs on the CPU.
NOT_CAPTURED = ("DynamicOutputShape", "DataDependentOutput", "GuardOnDataDependent")


def _leaves(tree):
    return [x for x in pytree.tree_leaves(tree) if isinstance(x, torch.Tensor)]


# Arguments that torch wants on the CPU whatever the device.
ON_CPU = {"tensor_split": torch.int64}


def _fresh(x, device):
    """An argument of a run of its own; not as a leaf, so that operators in place may write it."""
    if not isinstance(x, torch.Tensor):
        return device if x in ("cpu", torch.device("cpu")) and isinstance(x, (str, torch.device)) else x
    return x.detach().clone().to(device).requires_grad_(x.requires_grad)


def _gradients(results, wanted):
    """With seeds that are the same on every road."""
    roots = [r for r in results if r.requires_grad and (r.is_floating_point() or r.is_complex())]
    if not roots or not wanted:
        return []
    g = torch.Generator().manual_seed(0)
    seeds = [torch.randn(r.shape, generator=g).to(r.dtype).to(r.device) for r in roots]
    return list(torch.autograd.grad(roots, wanted, seeds, allow_unused=True))


def _run(road, op, sample, backward):
    """(results, gradients). Only tensors are arguments of the function; the rest is part of it."""
    torch.manual_seed(SEED)
    leaves, spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    stays = lambda x: isinstance(x, torch.Tensor) and ON_CPU.get(op.name) == x.dtype
    leaves = [_fresh(x, "neuron" if road == "device" and not stays(x) else "cpu") for x in leaves]
    at = [i for i, x in enumerate(leaves) if isinstance(x, torch.Tensor)]
    tensors = [leaves[i] for i in at]

    def function(*given):
        whole = list(leaves)
        for i, x in zip(at, given):
            whole[i] = x
        first, args, kwargs = pytree.tree_unflatten(whole, spec)
        # What is free in a result (signs of singular vectors …) is taken out of it.
        return sample.output_process_fn_grad(op.op(first, *args, **kwargs))

    results = _leaves((aot_function(function) if road == "graph" else function)(*tensors))
    grads = _gradients(results, [x for x in tensors if x.requires_grad]) if backward else []
    return [r.detach() for r in results], grads


def _in_float32(sample):
    widen = lambda x: x.detach().float().requires_grad_(x.requires_grad) if x.dtype == torch.bfloat16 else x
    change = lambda x: widen(x) if isinstance(x, torch.Tensor) else torch.float32 if x == torch.bfloat16 else x
    first, args, kwargs = pytree.tree_map(change, (sample.input, sample.args, sample.kwargs))
    return SampleInput(first, args=args, kwargs=kwargs, output_process_fn_grad=sample.output_process_fn_grad)


# One pair per type: wider for float32 than torch.testing's default, because sums have another order.
_TOLERANCES = {torch.bfloat16: {"rtol": 1.6e-2, "atol": 1e-2}}


def _compare(op, want, got, dtype):
    for kind, a, b in (("forward", want[0], got[0]), ("gradient", want[1], got[1])):
        if len(a) != len(b):
            return f"{kind}: {len(b)} results instead of {len(a)}"
        for x, y in zip(a, b):
            if (x is None) != (y is None):
                return f"{kind}: a missing result"
            if x is None:
                continue
            if op.name in EMPTY:
                x, y = torch.zeros_like(x), torch.zeros_like(y)
            try:
                y = y.cpu()
                tolerances = _TOLERANCES.get(dtype, {"rtol": 1e-4, "atol": 1e-4})
                torch.testing.assert_close(y, x.to(y.dtype), equal_nan=True, **tolerances)
            except AssertionError as error:
                return f"{kind}: " + str(error).splitlines()[0]
    return None


def _off_device():
    """How often each operator ran on the CPU: (name, reason) -> runs."""
    rows: collections.Counter[tuple[str, str]] = collections.Counter()
    for one in log.host:
        rows[one.name, one.reason] += one.runs
    rows.update({(f.operator, f.reason): 1 for f in log.found})
    return rows


class Count:
    """What became of the samples."""

    def __init__(self, limit=LIMIT):
        self.limit = limit
        self.samples, self.good, self.not_captured = 0, 0, 0
        self.wrong = collections.defaultdict(set)  # reason -> operators of OpInfo
        self.off = collections.defaultdict(list)  # (operator, reason) -> operators of OpInfo, one for each sample

    def sample(self, road, op, dtype, sample, backward):
        try:
            want = _run("cpu", op, sample, backward)
        except Exception:
            return  # eager itself refuses
        log.clear()
        before = _off_device()
        try:
            got = _run(road, op, sample, backward)
            why = _compare(op, want, got, dtype)
            if why and dtype == torch.bfloat16:  # eager rounds between the parts of an operator: what is right?
                why = _compare(op, _run("cpu", op, _in_float32(sample), backward), got, dtype)
        except Exception as error:
            said = str(error).strip().splitlines() or [""]
            why = f"{type(error).__name__}: {said[-1][:150]}"
        if road == "graph" and why and why.startswith(NOT_CAPTURED):
            self.not_captured += 1
            return
        off = _off_device() - before
        self.samples += 1
        self.good += not why and not off
        for row in off:
            self.off[row].append(op.name)
        if why:
            self.wrong[why[:110]].add(f"{op.name} {str(dtype)[6:]}")

    def operator(self, road, op: OpInfo, dtype):
        backward = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
        torch.manual_seed(SEED)  # the same samples whatever ran before
        try:
            samples = list(op.sample_inputs("cpu", dtype, requires_grad=backward))
        except Exception:
            return
        # Large samples say nothing small ones do not.
        samples = [s for s in samples if sum(x.numel() for x in _leaves((s.input, s.args, s.kwargs))) < 20000]
        if len(samples) > self.limit:
            samples = random.Random(f"{SEED} {op.name} {dtype}").sample(samples, self.limit)
        for sample in samples:
            self.sample(road, op, dtype, sample, backward)

    def print(self, road):
        for (name, why), ops in sorted(self.off.items(), key=lambda row: -len(row[1])):
            print(f"{len(ops):4} on the CPU: {name}: {why[:150]} ({', '.join(sorted(set(ops))[:6])})")
        for why, ops in sorted(self.wrong.items(), key=lambda row: -len(row[1])):
            print(f"{len(ops):4} differ: {why}: {', '.join(sorted(ops)[:8])}")
        share = 100 * self.good / max(1, self.samples)
        print(f"{road}: {self.good} of {self.samples} samples equal the CPU's and ran on the device alone: {share:.2f} %")
        if self.not_captured:
            print(f"{self.not_captured} more have sizes that depend on values, which no graph captures")


def types_of(op):
    there = op.supported_dtypes("cpu")
    return [t for t in TYPES if t in there] or [t for t in OTHERS if t in there][:1]


def chosen(road, names):
    part, parts = map(int, os.environ.get("OPINFO_PART", "1/1").split("/"))
    skip = set() if road == "device" else RANDOM | EMPTY
    ops = [op for op in op_db if (not names or op.name in names) and op.name not in skip]
    return ops[part - 1 :: parts]


def main():
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser()
    parser.add_argument("--road", choices=["device", "graph"], default="device")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    print(f"OPINFO_SAMPLES={LIMIT} OPINFO_SEED={SEED}")
    count = Count()
    for op in chosen(given.road, given.names):
        for dtype in types_of(op):
            count.operator(given.road, op, dtype)
    count.print(given.road)


if __name__ == "__main__":
    main()
