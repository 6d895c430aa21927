# SPDX-License-Identifier: Apache-2.0
"""Host time of eager operators on small tensors: device `neuron` beside the CPU, one thread each.

Each operator is called in a loop on both devices by turns, and the smallest time per call counts, so that other work on the
machine disturbs little. Prints a line per operator, then the geometric mean and the largest of the ratios.
"""

import argparse
import math
import time
import timeit

try:
    import torch
except ImportError:
    print("skipped: no PyTorch (./dev test-torch installs it)")
    raise SystemExit from None

F = torch.nn.functional
SIZE = 32


def operators(device):
    g = torch.Generator().manual_seed(1)
    x, y, w = (torch.randn(SIZE, SIZE, generator=g).to(device) for _ in range(3))
    b = torch.randn(SIZE, generator=g).to(device)
    labels = torch.randint(SIZE, (SIZE,), generator=g).to(device)
    leaf = torch.randn(SIZE, SIZE, generator=g).to(device).requires_grad_()
    out = torch.empty_like(x)
    batch, image, filters = torch.stack([x, y]), torch.randn(2, 3, 16, 16, generator=g).to(device), torch.randn(4, 3, 3, 3, generator=g).to(device)
    mask, places, one = x > 0, labels.expand(SIZE, SIZE), x[0, 0]
    parameters = [torch.randn(SIZE, SIZE, generator=g).to(device).requires_grad_() for _ in range(4)]
    for p in parameters:
        p.grad = torch.ones_like(p)
    return {
        "add": lambda: x + y,
        "add number": lambda: x + 1.5,
        "mul in place": lambda: out.mul_(0.5),
        "add row": lambda: x + b,
        "relu": lambda: torch.relu(x),
        "gelu": lambda: F.gelu(x),
        "exp": lambda: x.exp(),
        "where": lambda: torch.where(x > 0, x, y),
        "sum": lambda: x.sum(),
        "mean of rows": lambda: x.mean(-1),
        "softmax": lambda: x.softmax(-1),
        "layer_norm": lambda: F.layer_norm(x, (SIZE,), b, b),
        "matmul": lambda: x @ y,
        "linear": lambda: F.linear(x, w, b),
        "transpose": lambda: x.t(),
        "view": lambda: x.view(-1),
        "copy of a transpose": lambda: x.t().contiguous(),
        "cat": lambda: torch.cat([x, y]),
        "embedding": lambda: F.embedding(labels, w),
        "cross_entropy": lambda: F.cross_entropy(x, labels),
        "zeros": lambda: torch.zeros(SIZE, SIZE, device=device),
        "div": lambda: x / y,
        "masked_fill": lambda: x.masked_fill(mask, 0.0),
        "clamp": lambda: x.clamp(-1, 1),
        "argmax": lambda: x.argmax(-1),
        "sort": lambda: x.sort(-1),
        "cumsum": lambda: x.cumsum(-1),
        "gather": lambda: x.gather(1, places),
        "index_select": lambda: x.index_select(0, labels),
        "batch_norm": lambda: F.batch_norm(x, None, None, b, b, True),
        "dropout": lambda: F.dropout(x, 0.1),
        "bmm": lambda: batch @ batch,
        "conv2d": lambda: F.conv2d(image, filters),
        "mse_loss": lambda: F.mse_loss(x, y),
        "log_softmax": lambda: x.log_softmax(-1),
        "norm": lambda: x.norm(),
        "clone": lambda: x.clone(),
        "item": lambda: one.item(),
        "to the CPU": lambda: x.to("cpu", copy=True),
        "clip_grad_norm_": lambda: torch.nn.utils.clip_grad_norm_(parameters, 1.0),
        "SGD": torch.optim.SGD(parameters, 1e-3, foreach=False).step,
        "AdamW": torch.optim.AdamW(parameters, 1e-3, foreach=False).step,
        "AdamW foreach": torch.optim.AdamW(parameters, 1e-3, foreach=True).step,
        "linear, relu, gradient": lambda: torch.autograd.grad(F.linear(x, leaf, b).relu().sum(), leaf),
    }


def micros(call, seconds):
    count = max(1, int(seconds / max(1e-7, timeit.timeit(call, number=3) / 3)))
    return timeit.timeit(call, number=count, timer=time.process_time) / count * 1e6


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.01, help="of each loop")
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    torch.set_num_threads(1)
    cpu, neuron = operators("cpu"), operators("neuron")
    ratios = []
    for name in cpu:
        if given.only not in name:
            continue
        neuron[name]()  # compiles it
        times = [(micros(cpu[name], given.seconds), micros(neuron[name], given.seconds)) for _ in range(given.rounds)]
        ours, theirs = min(t[1] for t in times), min(t[0] for t in times)
        ratios.append(ours / theirs)
        print(f"{name:24} cpu {theirs:7.2f} us  neuron {ours:7.2f} us  {ours / theirs:6.2f} x")
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"eager operators: {mean:.2f} x the CPU's time (geometric mean of {len(ratios)}), {max(ratios):.2f} x at most")


if __name__ == "__main__":
    main()
