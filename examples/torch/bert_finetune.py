# SPDX-License-Identifier: Apache-2.0
"""Fine-tunes a small BERT of Hugging Face to tell two kinds of sentences apart:
python examples/torch/bert_finetune.py

The usual loop: torch.compile for the model, torch.compile for the optimizer's step, gradient clipping, a
schedule, autocast to bf16, then evaluation. Weights are random and data is made on the spot.
"""

import argparse

import torch
from transformers import BertConfig, BertForSequenceClassification

import opentrn
import opentrn.torch


def sentences(count, length, generator):
    """Class 1 holds the token 5 before the token 6 somewhere, class 0 holds them the other way."""
    x = torch.randint(10, 100, (count, length), generator=generator)
    y = torch.randint(0, 2, (count,), generator=generator)
    places = torch.stack([torch.randperm(length, generator=generator)[:2] for _ in range(count)])
    first, second = places.min(1).values, places.max(1).values
    rows = torch.arange(count)
    x[rows, first] = torch.where(y == 1, 5, 6)
    x[rows, second] = torch.where(y == 1, 6, 5)
    return x, y


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=80)
    parser.add_argument("--target", default=None, help="trn1, trn2, trn3 or a chip file")
    options = parser.parse_args()
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=100, hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=128, max_position_embeddings=16, num_labels=2,
        problem_type="single_label_classification",
    )  # fmt: skip
    model = BertForSequenceClassification(config)
    compiled = torch.compile(model, backend="opentrn")
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
    step = torch.compile(opt.step, backend="opentrn")
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        opt, 2e-3, total_steps=options.steps, cycle_momentum=False
    )
    generator = torch.Generator().manual_seed(1)
    batch = 32
    with opentrn.profile(
        options.target, steps=options.steps, samples=options.steps * batch
    ) as profile:
        for i in range(1, options.steps + 1):
            x, y = sentences(batch, 16, generator)
            opt.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = compiled(input_ids=x, labels=y).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            step()
            schedule.step()
            if i == 1 or i % 10 == 0:
                print(f"step {i:4}  loss {loss.item():.4f}")
    model.eval()
    x, y = sentences(256, 16, generator)
    with torch.no_grad():
        right = (compiled(input_ids=x).logits.argmax(1) == y).float().mean().item()
    print(f"accuracy on new sentences {right:.3f}")
    print(profile)
    print(opentrn.torch.explain())


if __name__ == "__main__":
    main()
