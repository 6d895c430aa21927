# SPDX-License-Identifier: Apache-2.0
"""Hugging Face generate with its default cache; the "losses" are the tokens."""

import torch
from transformers import LlamaConfig, LlamaForCausalLM

device = torch.accelerator.current_accelerator() or torch.device("cpu")
torch.manual_seed(0)
config = LlamaConfig(
    vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, max_position_embeddings=64, bos_token_id=1, eos_token_id=None, pad_token_id=0,
)  # fmt: skip
model = LlamaForCausalLM(config).to(device).eval()
prompt = torch.randint(3, 64, (2, 7), generator=torch.Generator().manual_seed(1)).to(device)
tokens = model.generate(prompt, max_new_tokens=8, do_sample=False)
print("device", device)
print("losses", tokens.flatten().tolist())
