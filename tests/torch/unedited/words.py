# SPDX-License-Identifier: Apache-2.0
"""A language model over words: a recurrent net or (--transformer) an encoder with a mask, tied weights, truncated
backpropagation, clipping, and an update written by hand."""

import math
import sys

import torch
from torch import nn

WORDS, WIDTH, LENGTH, BATCH = 24, 16, 6, 4


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.rnn = nn.Embedding(WORDS, WIDTH), nn.GRU(WIDTH, WIDTH, 2, dropout=0.2)
        self.decoder = nn.Linear(WIDTH, WORDS)
        self.decoder.weight = self.encoder.weight

    def forward(self, x, hidden):
        y, hidden = self.rnn(self.encoder(x), hidden)
        return self.decoder(y), hidden


class Attentive(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.place = nn.Embedding(WORDS, WIDTH), nn.Parameter(torch.randn(LENGTH, 1, WIDTH) / 10)
        layer = nn.TransformerEncoderLayer(WIDTH, 2, 32, dropout=0.1)
        self.layers, self.decoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(WIDTH, WORDS)

    def forward(self, x, hidden):
        mask = nn.Transformer.generate_square_subsequent_mask(len(x), device=x.device)
        y = self.encoder(x) * math.sqrt(WIDTH) + self.place[: len(x)]
        return self.decoder(self.layers(y, mask=mask, is_causal=True)), hidden


device = torch.accelerator.current_accelerator() or torch.device("cpu")
torch.manual_seed(0)
model = (Attentive() if "--transformer" in sys.argv else Recurrent()).to(device)
text = torch.randint(0, WORDS, (LENGTH * 5 + 1, BATCH), generator=torch.Generator().manual_seed(1)).to(device)
losses, hidden = [], None
for i in range(0, len(text) - 1, LENGTH):
    x, y = text[i : i + LENGTH], text[i + 1 : i + 1 + LENGTH].reshape(-1)
    model.zero_grad()
    out, hidden = model(x, hidden)
    hidden = hidden if hidden is None else hidden.detach()
    loss = nn.functional.cross_entropy(out.view(-1, WORDS), y)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.25)
    for p in model.parameters():
        p.data.add_(p.grad, alpha=-0.5)
    losses.append(loss.item())
print("device", device)
print("losses", losses)
