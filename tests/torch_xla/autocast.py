# SPDX-License-Identifier: Apache-2.0
"""Autocast to bf16: sums are accumulated in fp32 and rounded once, so each is the bf16 number next to the exact sum of what was summed."""

import torch
import torch_xla

device = torch_xla.device()
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.Linear(64, 10)).to(device)
with torch.autocast("xla", dtype=torch.bfloat16):
    made = net(torch.randn(16, 32).to(device))
    assert made.dtype == torch.bfloat16
    whole, rows, mean = made.sum(), made.sum(1), made.mean(0)
long = torch.randn(4, 1000).bfloat16().to(device)
cases = {"sum": (whole, made, None), "rows": (rows, made, 1), "long": (long.sum(), long, None), "long rows": (long.sum(1), long, 1)}
torch_xla.sync()
for name, (got, of, dim) in cases.items():
    exact = of.cpu().double().sum(dim) if dim is not None else of.cpu().double().sum()
    error = (got.cpu().double() - exact).abs() / exact.abs()
    assert got.dtype == torch.bfloat16 and float(error.max()) <= 2**-8 * 1.001, (name, error)  # half a unit in the last place
    print("loss", float(error.max()))
