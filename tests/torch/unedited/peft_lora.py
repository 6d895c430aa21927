# SPDX-License-Identifier: Apache-2.0
"""PEFT: LoRA on a small Llama."""

import torch
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

device = torch.accelerator.current_accelerator() or torch.device("cpu")
torch.manual_seed(0)
config = LlamaConfig(
    vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, max_position_embeddings=64, bos_token_id=1, eos_token_id=2,
)  # fmt: skip
model = get_peft_model(
    LlamaForCausalLM(config), LoraConfig(r=4, target_modules=["q_proj", "v_proj"], lora_dropout=0.0)
).to(device)
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
data = torch.Generator().manual_seed(1)
losses = []
for _ in range(5):
    x = torch.randint(0, 64, (4, 16), generator=data).to(device)
    loss = model(input_ids=x, labels=x).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    losses.append(loss.item())
print("device", device)
print("losses", losses)
