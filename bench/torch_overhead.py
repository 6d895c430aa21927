# SPDX-License-Identifier: Apache-2.0
"""Host time of one compiled forward and backward of a small GPT without the device's own work,
beside a backend that does nothing but make outputs."""

import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "torch"))
try:
    import torch
except ImportError:
    print("skipped: no PyTorch (./dev test-torch installs it)")
    raise SystemExit from None

import models
from functorch.compile import min_cut_rematerialization_partition
from torch._dynamo.backends.common import aot_autograd

import opentrn.torch
from opentrn.torch import decompositions, plan


def null_compiler(module, example_inputs):
    outputs = next(n for n in module.graph.nodes if n.op == "output").args[0]
    values = [n.meta["val"] if n is not None else None for n in outputs]
    shapes = [
        (v.shape, v.stride(), v.dtype) if isinstance(v, torch.Tensor) else None for v in values
    ]

    def run(args):
        return [torch.empty_strided(s[0], s[1], dtype=s[2]) if s else None for s in shapes]

    run._boxed_call = True
    return run


null = aot_autograd(  # the same cut between forward and backward as ours
    fw_compiler=null_compiler,
    bw_compiler=null_compiler,
    decompositions=decompositions.table(),
    partition_fn=min_cut_rematerialization_partition,
)


def micros(name, repeats=200, rounds=7):
    torch._dynamo.reset()
    model = models.make("gpt")
    batch = models.ALL["gpt"][1](torch.Generator().manual_seed(1))
    compiled = torch.compile(model, backend=name)
    compiled(*batch).backward()
    best = float("inf")
    for _ in range(rounds):
        begin = time.perf_counter()
        for _ in range(repeats):
            compiled(*batch).backward()
        best = min(best, (time.perf_counter() - begin) / repeats)
    return best * 1e6


def main():
    torch.set_num_threads(1)
    make = plan.DeviceStep.__init__

    def without_work(self, *args):
        make(self, *args)
        self._run = lambda args, results: None

    idle = micros(null)
    whole = micros("opentrn", repeats=20)
    plan.DeviceStep.__init__ = without_work
    ours = micros("opentrn")
    print(
        f"null backend {idle:.0f} us, opentrn without the device {ours:.0f} us "
        f"({ours / idle:.2f} x), with it {whole:.0f} us"
    )


if __name__ == "__main__":
    main()
