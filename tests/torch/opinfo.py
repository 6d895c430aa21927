# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own operator samples against the backend: `python tests/torch/opinfo.py [NAME…]`.

Every sample of every operator that is lowered without a CPU fallback runs forward and backward, in
float32 and bfloat16, eager and on the device, and is compared within one pair of tolerances per
type. Prints counts and the failures grouped by reason. OPINFO_SAMPLES limits the samples per
operator.
"""

import collections
import os
import sys
import warnings

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo

import opentrn.torch
from opentrn.torch.backend import aot_function
from opentrn.torch.report import log

LIMIT = int(os.environ.get("OPINFO_SAMPLES", "6"))
TYPES = (torch.float32, torch.bfloat16)
# Results that are random, uninitialised or not a function of the input alone.
SKIP = {
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
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
    return [x for x in torch.utils._pytree.tree_leaves(tree) if isinstance(x, torch.Tensor)]


def _run(compiled, op, sample, backward):
    """Only tensors are arguments of the captured function; the rest is part of it."""
    leaves, spec = torch.utils._pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    at = [i for i, x in enumerate(leaves) if isinstance(x, torch.Tensor)]
    tensors = [leaves[i].detach().clone().requires_grad_(leaves[i].requires_grad) for i in at]

    def function(*given):
        whole = list(leaves)
        for i, x in zip(at, given):
            whole[i] = x
        first, args, kwargs = torch.utils._pytree.tree_unflatten(whole, spec)
        # What is free in a result (signs of singular vectors …) is taken out of it.
        return sample.output_process_fn_grad(op.op(first, *args, **kwargs))

    results = _leaves((aot_function(function) if compiled else function)(*tensors))
    grads = []
    roots = [r for r in results if r.requires_grad and r.is_floating_point()]
    wanted = [x for x in tensors if x.requires_grad]
    if backward and roots and wanted:
        g = torch.Generator().manual_seed(0)
        seeds = [torch.randn(r.shape, generator=g).to(r.dtype) for r in roots]
        grads = list(torch.autograd.grad(roots, wanted, seeds, allow_unused=True))
    return [r.detach() for r in results], grads


def _tolerances(op, dtype):
    # One pair per type: wider for float32 than torch.testing's default, because sums have another
    # order.
    if dtype == torch.bfloat16:
        return {"rtol": 1.6e-2, "atol": 1e-2}
    return {"rtol": 1e-4, "atol": 1e-4}


def _compare(want, got, tolerances):
    for kind, a, b in (("forward", want[0], got[0]), ("gradient", want[1], got[1])):
        if len(a) != len(b):
            return f"{kind}: {len(b)} results instead of {len(a)}"
        for x, y in zip(a, b):
            if (x is None) != (y is None):
                return f"{kind}: a missing result"
            if x is None:
                continue
            try:
                torch.testing.assert_close(y, x, equal_nan=True, **tolerances)
            except AssertionError as error:
                return f"{kind}: " + str(error).splitlines()[0]
    return None


def check(op: OpInfo, dtype, counts, failures):
    backward = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
    try:
        samples = list(op.sample_inputs("cpu", dtype, requires_grad=backward))
    except Exception:
        return
    # Large samples say nothing small ones do not.
    samples = [
        s for s in samples if sum(x.numel() for x in _leaves((s.input, s.args, s.kwargs))) < 20000
    ]
    step = max(1, len(samples) // LIMIT)
    for sample in samples[::step][:LIMIT]:
        try:
            want = _run(False, op, sample, backward)
        except Exception:
            continue  # eager itself refuses
        log.clear()
        try:
            got = _run(True, op, sample, backward)
            why = _compare(want, got, _tolerances(op, dtype))
        except Exception as error:
            said = str(error).strip().splitlines() or [""]
            why = f"{type(error).__name__}: {said[-1][:150]}"
        if why and why.startswith(NOT_CAPTURED):
            counts["not captured"] += 1
            continue
        if log.found:
            counts["with a CPU fallback"] += 1
            failures["fallback " + log.found[0].operator + ": " + log.found[0].reason].add(op.name)
            if not why:
                continue
        counts["run"] += 1
        if why is None:
            counts["equal"] += 1
        else:
            failures[why[:110]].add(f"{op.name} {str(dtype)[6:]}")


def main():
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    names = sys.argv[1:]
    counts, failures = collections.Counter(), collections.defaultdict(set)
    for op in op_db:
        if names and op.name not in names or op.name in SKIP:
            continue
        for dtype in TYPES:
            if dtype in op.supported_dtypes("cpu"):
                check(op, dtype, counts, failures)
    for why, ops in sorted(failures.items(), key=lambda row: -len(row[1])):
        print(f"{len(ops):4} {why}: {', '.join(sorted(ops)[:8])}")
    share = 100 * counts["equal"] / max(1, counts["run"])
    print(f"{dict(counts)}; {share:.2f} % of the samples run on the device equal eager")


if __name__ == "__main__":
    main()
