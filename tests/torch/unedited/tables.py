# SPDX-License-Identifier: Apache-2.0
"""Word vectors with negative samples: sparse gradients of embeddings, bags of them, rows of a largest length."""

import torch
import torch.nn.functional as F
from torch import nn

device = torch.accelerator.current_accelerator() or torch.device("cpu")
torch.manual_seed(0)
centers, contexts = (nn.Embedding(100, 16, sparse=True).to(device) for _ in range(2))
bags = nn.EmbeddingBag(100, 8, mode="mean", sparse=True).to(device)
short = nn.Embedding(60, 8, sparse=True, max_norm=1.0).to(device)
optimizers = [
    torch.optim.SparseAdam([centers.weight, contexts.weight], 1e-2),
    torch.optim.SGD(bags.parameters(), 0.1),
    torch.optim.Adagrad(short.parameters(), 0.1),
]
data = torch.Generator().manual_seed(1)
often = torch.rand(100, generator=data).pow(0.75)


def drawn(most, count):
    return torch.randint(0, most, (count,), generator=data).to(device)


losses = []
for _ in range(5):
    center, near = centers(drawn(100, 12)), contexts(drawn(100, 12))
    far = contexts(torch.multinomial(often, 60, True, generator=data).view(12, 5).to(device))
    there = F.logsigmoid((center * near).sum(-1))
    not_there = F.logsigmoid(-torch.bmm(far, center.unsqueeze(2)).squeeze(2)).sum(1)
    found = [
        -(there + not_there).mean(),
        bags(drawn(100, 20), torch.tensor([0, 4, 9, 15], device=device)).square().sum(),
        (short(drawn(60, 7)) - 1).square().mean(),
    ]
    for loss, optimizer in zip(found, optimizers):
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
near = F.cosine_similarity(centers.weight[:5, None], centers.weight[None], dim=-1)
losses += near.topk(3).values.flatten().tolist()
print("device", device)
print("losses", losses)
