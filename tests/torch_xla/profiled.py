# SPDX-License-Identifier: Apache-2.0
"""opentrn's reports of a training loop of torch_xla."""

import torch
import torch_xla

import opentrn
from opentrn.torch_xla_plugin import explain

device = torch_xla.device()
model = torch.nn.Linear(8, 4).to(device)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
x = torch.randn(3, 8).to(device)
with opentrn.profile("trn2") as p:  # before the first program
    for _ in range(3):
        with torch_xla.step():
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
    print("hist", torch.histc(x.flatten(), 5).cpu().sum().item())
assert p.steps == 3 and p.total_us > 0, p
assert any(name.startswith("SyncTensorsGraph") and "3x8xf32" in name for name, _, _ in p.rows), p.rows
assert [(o.operator, o.runs) for o in p.outside] == [("aten::histc", 1)], p.outside
assert opentrn.last_run()["total_us"] > 0
print(p, explain(), sep="\n")
