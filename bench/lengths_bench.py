# SPDX-License-Identifier: Apache-2.0
"""Twelve sequence lengths of Hugging Face's GPT-2: seconds of the first step of each, forward and backward, with the backend `opentrn`.

    python bench/lengths_bench.py [--layers=2] [--hidden=128] [--parts]

The first length is traced with its size left open; every further one is a program of the same trace, and its time counts: the bar is
0.5 s. Printed too: what Dynamo traced again, operators on the CPU. Exit status 1 above the bar, or with any of these.
--parts: where the time of the further lengths goes, by function (cProfile).
"""

import argparse
import cProfile
import pstats
import sys
import time

try:
    import torch
    import transformers
except ImportError:
    print("skipped: no PyTorch or Transformers (./dev test-torch installs them)")
    raise SystemExit from None

import opentrn.torch
from opentrn.torch import report

BAR = 0.5


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--parts", action="store_true")
    o = parser.parse_args()
    torch.manual_seed(0)
    config = transformers.GPT2Config(n_layer=o.layers, n_embd=o.hidden, n_head=4, vocab_size=1000, n_positions=128)
    model = transformers.GPT2LMHeadModel(config)
    compiled = torch.compile(model, backend="opentrn")
    profile, times = cProfile.Profile(), []
    for i, length in enumerate(range(16, 16 + 12 * 8, 8)):
        x = torch.randint(0, 1000, (2, length))
        if i == 1 and o.parts:
            profile.enable()
        begin = time.perf_counter(), time.process_time()
        compiled(input_ids=x, labels=x, use_cache=False).loss.backward()
        times.append((time.perf_counter() - begin[0], time.process_time() - begin[1]))
        print(f"length {length:3}: {times[-1][0]:6.2f} s, {times[-1][1]:6.2f} s of it on the processor", flush=True)
    profile.disable()
    if o.parts:
        pstats.Stats(profile).sort_stats("cumulative").print_stats(45)
    new = len(report.recompiles())
    worst = max(t[1] for t in times[1:])
    print(f"a further length: {worst:.2f} s of processor at most ({worst / BAR:.2f} of the bar), {new} recompiles, {len(report.log.found)} operators on the CPU")
    return 0 if worst <= BAR and not new and not report.log.found else 1


if __name__ == "__main__":
    sys.exit(main())
