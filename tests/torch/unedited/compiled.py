# SPDX-License-Identifier: Apache-2.0
"""TorchNeuron's form: .to("neuron"), torch.compile(backend="neuron"), module.compile."""

import torch
from torch import nn

device = torch.accelerator.current_accelerator() or torch.device("cpu")
backend = "neuron" if device.type == "neuron" else "aot_eager"


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.attention = nn.LayerNorm(32), nn.MultiheadAttention(32, 4, batch_first=True)
        self.feed = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32))

    def forward(self, x):
        h = self.norm(x)
        x = x + self.attention(h, h, h, need_weights=False)[0]
        return x + self.feed(x)


torch.manual_seed(0)
blocks, head = nn.ModuleList(Block() for _ in range(2)).to(device), nn.Linear(32, 4).to(device)
for block in blocks:
    block.compile(backend=backend)
optimizer = torch.optim.AdamW([*blocks.parameters(), *head.parameters()], lr=1e-2)
compiled = torch.compile(head, backend=backend)
data = torch.Generator().manual_seed(1)
losses = []
for n in (8, 8, 8, 5):
    x, y = torch.randn(n, 6, 32, generator=data).to(device), torch.randint(0, 4, (n,), generator=data).to(device)
    optimizer.zero_grad()
    for block in blocks:
        x = block(x)
    loss = nn.functional.cross_entropy(compiled(x.mean(1)), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("device", device)
print("losses", losses)
