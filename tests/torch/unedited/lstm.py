# SPDX-License-Identifier: Apache-2.0
"""Plain PyTorch: an LSTM language model with a cosine schedule and clipping."""

import torch
from torch import nn

device = torch.accelerator.current_accelerator() or torch.device("cpu")


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.rnn = nn.Embedding(40, 16), nn.LSTM(16, 24, 2, batch_first=True)
        self.head = nn.Linear(24, 40)

    def forward(self, x):
        return self.head(self.rnn(self.embed(x))[0])


torch.manual_seed(0)
model = Model().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 6)
data = torch.Generator().manual_seed(1)
losses = []
for _ in range(6):
    x = torch.randint(0, 40, (4, 9), generator=data).to(device)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    losses.append(loss.item())
print("device", device)
print("losses", losses)
