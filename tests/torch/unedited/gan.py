# SPDX-License-Identifier: Apache-2.0
"""A GAN: two networks, two optimizers, two schedules, spectral norms, a penalty on the gradient of a gradient."""

import torch
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm

device = torch.accelerator.current_accelerator() or torch.device("cpu")
torch.manual_seed(3)
painter = nn.Sequential(
    nn.ConvTranspose2d(8, 16, 4),
    nn.BatchNorm2d(16),
    nn.ReLU(True),
    nn.ConvTranspose2d(16, 8, 4, 2, 1),
    nn.BatchNorm2d(8),
    nn.ReLU(True),
    nn.ConvTranspose2d(8, 1, 4, 2, 1),
    nn.Tanh(),
).to(device)
critic = nn.Sequential(
    spectral_norm(nn.Conv2d(1, 8, 4, 2, 1)),
    nn.LeakyReLU(0.2, True),
    spectral_norm(nn.Conv2d(8, 16, 4, 2, 1)),
    nn.InstanceNorm2d(16, affine=True),
    nn.LeakyReLU(0.2, True),
    nn.Conv2d(16, 1, 4),
).to(device)
paint, judge = (torch.optim.Adam(net.parameters(), 2e-4, betas=(0.5, 0.999)) for net in (painter, critic))
schedules = [torch.optim.lr_scheduler.StepLR(paint, 1, 0.9), torch.optim.lr_scheduler.ExponentialLR(judge, 0.95)]
score = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(4, device=device), torch.zeros(4, device=device)
data = torch.Generator().manual_seed(0)
losses = []
for _ in range(3):
    real, share = torch.rand(4, 1, 16, 16, generator=data).to(device), torch.rand(4, 1, 1, 1, generator=data).to(device)
    made = painter(torch.randn(4, 8, 1, 1, generator=data).to(device))
    judge.zero_grad()
    judged = score(critic(real).flatten(), ones) + score(critic(made.detach()).flatten(), zeros)
    mixed = (share * real + (1 - share) * made.detach()).requires_grad_()
    (slope,) = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)
    penalty = (slope.flatten(1).norm(dim=1) - 1).pow(2).mean()
    (judged + 10 * penalty).backward()
    judge.step()
    paint.zero_grad()
    painted = score(critic(made).flatten(), ones)
    painted.backward()
    paint.step()
    for schedule in schedules:
        schedule.step()
    losses += [judged.item(), penalty.item(), painted.item()]
print("device", device)
print("losses", losses)
