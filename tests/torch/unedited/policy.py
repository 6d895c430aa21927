# SPDX-License-Identifier: Apache-2.0
"""A policy gradient over episodes of different lengths: a recurrent cell, torch.distributions, normalised advantages."""

import torch
from torch import nn
from torch.distributions import Categorical, Normal

device = torch.accelerator.current_accelerator() or torch.device("cpu")
torch.manual_seed(0)


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.value = nn.GRUCell(6, 16), nn.Linear(16, 1)
        self.choice, self.mean, self.spread = nn.Linear(16, 3), nn.Linear(16, 2), nn.Parameter(torch.zeros(2))

    def forward(self, x, state):
        state = self.cell(x, state)
        force = Normal(self.mean(state), self.spread.exp().expand(len(state), 2))
        return Categorical(logits=self.choice(state)), force, self.value(state).squeeze(-1), state


policy = Policy().to(device)
optimizer = torch.optim.NAdam(policy.parameters(), lr=3e-3)
world = torch.Generator().manual_seed(5)
losses = []
for steps in (5, 9, 3, 7):
    state = torch.zeros(2, 16, device=device)
    chances, values, rewards, spread = [], [], [], []
    for step in range(steps):
        choice, force, value, state = policy(torch.randn(2, 6, generator=world).to(device), state)
        action, pushed = torch.randint(0, 3, (2,), generator=world).to(device), torch.randn(2, 2, generator=world).to(device)
        chances.append(choice.log_prob(action) + force.log_prob(pushed).sum(-1))
        values.append(value)
        spread.append(choice.entropy() + force.entropy().sum(-1))
        rewards.append((action == step % 3).float())
    returns = [torch.zeros(2, device=device)]
    for reward in reversed(rewards):
        returns.insert(0, reward + 0.97 * returns[0])
    returned, valued, chance = torch.stack(returns[:-1]), torch.stack(values), torch.stack(chances)
    better = returned - valued.detach()
    better = (better - better.mean()) / (better.std() + 1e-8)
    ratio = (chance - chance.detach()).exp()
    loss = -torch.min(ratio * better, ratio.clamp(0.8, 1.2) * better).mean()
    loss = loss + nn.functional.smooth_l1_loss(valued, returned) - 0.01 * torch.stack(spread).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(policy.parameters(), 0.5)
    optimizer.step()
    losses.append(loss.item())
print("device", device)
print("losses", losses)
