# SPDX-License-Identifier: Apache-2.0
"""A variational autoencoder (drawn noise), then a pair of nets that play against each other, then a policy that samples."""

import torch
from torch import nn
from torch.nn import functional as F

device = torch.accelerator.current_accelerator() or torch.device("cpu")
losses = []


def vae():
    torch.manual_seed(0)
    into, mean, spread, out = (nn.Linear(a, b).to(device) for a, b in ((20, 16), (16, 4), (16, 4), (4, 20)))
    optimizer = torch.optim.Adam([p for m in (into, mean, spread, out) for p in m.parameters()], lr=1e-2)
    for _ in range(4):
        x = torch.rand(8, 20).to(device)
        h = F.relu(into(x))
        mu, log = mean(h), spread(h)
        y = torch.sigmoid(out(mu + torch.randn_like(mu) * torch.exp(0.5 * log)))
        loss = F.binary_cross_entropy(y, x, reduction="sum") - 0.5 * torch.sum(1 + log - mu.pow(2) - log.exp())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())


def adversaries():
    torch.manual_seed(1)
    maker = nn.Sequential(
        nn.ConvTranspose2d(6, 4, 4, 1, 0, bias=False), nn.BatchNorm2d(4), nn.ReLU(True), nn.ConvTranspose2d(4, 1, 4, 2, 1), nn.Tanh()
    ).to(device)
    judge = nn.Sequential(
        nn.Conv2d(1, 4, 4, 2, 1), nn.LeakyReLU(0.2, True), nn.Conv2d(4, 1, 4, 1, 0), nn.Sigmoid(), nn.Flatten(0)
    ).to(device)
    makes, judges = (torch.optim.Adam(m.parameters(), lr=2e-3, betas=(0.5, 0.999)) for m in (maker, judge))
    yes, no = torch.ones(4, device=device), torch.zeros(4, device=device)
    for _ in range(3):
        real, fake = torch.rand(4, 1, 8, 8).to(device), maker(torch.randn(4, 6, 1, 1, device=device))
        judge.zero_grad()
        wrong = F.binary_cross_entropy(judge(real), yes) + F.binary_cross_entropy(judge(fake.detach()), no)
        wrong.backward()
        judges.step()
        maker.zero_grad()
        loss = F.binary_cross_entropy(judge(fake), yes)
        loss.backward()
        makes.step()
        losses.extend([wrong.item(), loss.item()])


def policy():
    torch.manual_seed(2)
    net = nn.Sequential(nn.Linear(4, 12), nn.Dropout(0.3), nn.ReLU(), nn.Linear(12, 2)).to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    for _ in range(3):
        state, kept = torch.randn(4), []
        for _ in range(5):
            chosen = torch.distributions.Categorical(logits=net(state.to(device)))
            action = chosen.sample()
            kept.append(-chosen.log_prob(action))
            state = state * 0.9 + (2 * action.item() - 1) * 0.1
        gains = torch.tensor([0.9**i for i in range(5)]).flip(0).to(device)
        loss = (torch.stack(kept) * (gains - gains.mean()) / (gains.std() + 1e-6)).sum() + 3
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())


vae()
adversaries()
policy()
print("device", device)
print("losses", losses)
