# SPDX-License-Identifier: Apache-2.0
"""Hugging Face Trainer, BERT with dropout."""

import sys
import tempfile

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

data = torch.Generator().manual_seed(1)
rows = [
    {"input_ids": torch.randint(0, 64, (16,), generator=data), "labels": torch.randint(0, 3, (), generator=data).item()}
    for _ in range(40)
]
torch.manual_seed(0)
drop = 0.1 if len(sys.argv) == 1 else 0.0  # compiled graphs draw other numbers
config = BertConfig(
    vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, num_labels=3,
    hidden_dropout_prob=drop, attention_probs_dropout_prob=drop,
)  # fmt: skip
model = BertForSequenceClassification(config)
arguments = TrainingArguments(
    tempfile.mkdtemp(), per_device_train_batch_size=8, num_train_epochs=2, logging_steps=1, report_to=[], seed=3,
    save_strategy="epoch", disable_tqdm=True, torch_compile="--compile" in sys.argv,
)  # fmt: skip
trainer = Trainer(model, arguments, train_dataset=rows)
trainer.train()
print("device", model.device)
print("losses", [float(h["loss"]) for h in trainer.state.log_history if "loss" in h])
