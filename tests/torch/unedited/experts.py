# SPDX-License-Identifier: Apache-2.0
"""Hugging Face's Mixtral with its own choice of products for its experts."""

import torch
from transformers import MixtralConfig, MixtralForCausalLM

device = torch.accelerator.current_accelerator() or torch.device("cpu")
torch.manual_seed(0)
config = MixtralConfig(
    vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=2, max_position_embeddings=32,
)  # fmt: skip
model = MixtralForCausalLM(config).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
data = torch.Generator().manual_seed(1)
losses = []
for _ in range(4):
    ids = torch.randint(0, 64, (2, 12), generator=data).to(device)
    optimizer.zero_grad()
    loss = model(input_ids=ids, labels=ids).loss
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("device", model.device)
print("losses", losses)
