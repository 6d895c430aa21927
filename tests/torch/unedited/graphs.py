# SPDX-License-Identifier: Apache-2.0
"""A graph network: attention over edges by scatters, means of neighbours, readouts, masks, another number of edges in each step."""

import torch
import torch.nn.functional as F
from torch import nn

device = torch.accelerator.current_accelerator() or torch.device("cpu")
torch.manual_seed(0)


class Attention(nn.Module):
    def __init__(self, width, out, heads):
        super().__init__()
        self.values = nn.Linear(width, heads * out, bias=False)
        self.left, self.right = (nn.Parameter(0.3 * torch.randn(heads, out)) for _ in range(2))

    def forward(self, x, edges):
        (heads, out), (source, target) = self.left.shape, edges
        h = self.values(x).view(-1, heads, out)
        score = F.leaky_relu((h * self.left).sum(-1)[source] + (h * self.right).sum(-1)[target], 0.2)
        most = score.new_full((len(x), heads), float("-inf")).scatter_reduce(0, target[:, None].expand(-1, heads), score, "amax")
        weight = (score - most[target]).exp()
        total = torch.zeros_like(most).index_add(0, target, weight)
        messages = h[source] * (weight / total[target]).unsqueeze(-1)
        return torch.zeros_like(h).scatter_add(0, target[:, None, None].expand_as(messages), messages).flatten(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm = Attention(12, 8, 2), nn.LayerNorm(16)
        self.own, self.others, self.last = nn.Linear(16, 16), nn.Linear(16, 16), nn.Linear(16, 4)

    def forward(self, x, edges, graph):
        x = F.elu(self.norm(self.first(x, edges)))
        mean = torch.zeros_like(x).scatter_reduce(0, edges[1, :, None].expand(-1, 16), x[edges[0]], "mean", include_self=False)
        x = F.relu(self.own(x) + self.others(mean))
        whole = x.new_zeros(3, 16).index_reduce(0, graph, x, "mean", include_self=False)
        return self.last(x), self.last(whole)


nodes = 30
net = Net().to(device)
optimizer = torch.optim.NAdam(net.parameters(), 1e-2)
data = torch.Generator().manual_seed(1)
x, graph = torch.randn(nodes, 12, generator=data).to(device), (torch.arange(nodes) // 10).to(device)
labels, known = torch.randint(0, 4, (nodes,), generator=data).to(device), (torch.rand(nodes, generator=data) < 0.6).to(device)
losses = []
for step in range(5):
    edges = torch.cat([torch.randint(0, nodes, (2, 60 + step), generator=data), torch.arange(nodes).repeat(2, 1)], 1).to(device)
    each, whole = net(x, edges, graph)
    loss = F.cross_entropy(each[known], labels[known]) + whole.logsumexp(-1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
matrix = torch.sparse_coo_tensor(edges, torch.ones(edges.shape[1], device=device), (nodes, nodes), check_invariants=True)
losses.append(torch.sparse.mm(matrix.coalesce(), x).square().sum().item())
print("device", device)
print("losses", losses)
