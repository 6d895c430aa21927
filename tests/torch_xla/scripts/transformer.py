# SPDX-License-Identifier: Apache-2.0
"""A small language model as torch_xla's users write it."""
import torch
import torch.nn.functional as F
import torch_xla
import torch_xla.core.xla_model as xm
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        h = self.first(x)
        x = x + self.attention(h, h, h, need_weights=False)[0]
        return x + self.mlp(self.second(x))


def main():
    device = xm.xla_device()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(50, 32), Block(32), Block(32), nn.Linear(32, 50)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    data = torch.Generator().manual_seed(1)
    for _ in range(4):
        tokens = torch.randint(0, 50, (4, 12), generator=data).to(device)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        xm.optimizer_step(optimizer)
        torch_xla.sync()
        print("loss", loss.item())


main()
