# SPDX-License-Identifier: Apache-2.0
"""Learning to learn (MAML): gradients through gradients by vmap and grad; per-sample gradients, ensembles, Hessians, jvp."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, grad, hessian, jacrev, jvp, stack_module_state, vmap

device = torch.accelerator.current_accelerator() or torch.device("cpu")
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1)).to(device)
optimizer = torch.optim.Adam(net.parameters(), 1e-2)


def error(weights, x, y):
    return F.mse_loss(functional_call(net, weights, (x,)), y)


def learned(weights, x, y, x_new, y_new):
    for _ in range(2):
        slopes = grad(error)(weights, x, y)
        weights = {name: weights[name] - 0.1 * slopes[name] for name in weights}
    return error(weights, x_new, y_new)


data = torch.Generator().manual_seed(1)
losses = []
for _ in range(4):
    height, phase = torch.rand(5, 1, 1, generator=data) * 4 + 0.1, torch.rand(5, 1, 1, generator=data) * 3
    x = torch.rand(5, 20, 1, generator=data) * 10 - 5
    x, y = x.to(device), (height * (x + phase).sin()).to(device)
    weights = dict(net.named_parameters())
    loss = vmap(learned, (None, 0, 0, 0, 0))(weights, x[:, :10], y[:, :10], x[:, 10:], y[:, 10:]).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())

weights = {name: w.detach() for name, w in net.named_parameters()}
each = vmap(grad(lambda w, a, b: error(w, a[None], b[None])), (None, 0, 0))(weights, x[0], y[0])
losses += [slope.flatten(1).norm(dim=1).max().item() for slope in each.values()]
several = [nn.Sequential(nn.Linear(1, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 1)).to(device) for _ in range(3)]
outs = vmap(lambda w, b: functional_call(several[0], (w, b), (x[0],)))(*stack_module_state(several))
losses.append(outs.square().mean().item())


def height_at(a):
    return functional_call(net, weights, (a,)).sum()


losses.append(jacrev(height_at)(x[0, :3]).square().sum().item())
losses.append(hessian(height_at)(x[0, :3]).square().sum().item())
losses.append(jvp(height_at, (x[0, :3],), (torch.ones(3, 1, device=device),))[1].item())
print("device", device)
print("losses", losses)
