# SPDX-License-Identifier: Apache-2.0
"""Fine-tunes a small BERT of Hugging Face to tell kind sentences from unkind ones:
python examples/torch/bert_finetune.py

The usual loop: torch.compile for the model, torch.compile for the optimizer's step, gradient
clipping, a schedule, autocast to bf16, then evaluation. Weights are random and data is made on the
spot.
"""

import argparse
import sys

import torch
from transformers import BertConfig, BertForSequenceClassification

import opentrn
import opentrn.torch

VOCABULARY, KIND, UNKIND, LENGTH = 100, range(4, 12), range(12, 20), 16
GOAL = 0.3  # a guess has 0.69


def sentences(count, generator):
    """Plain words with five that are kind or unkind; the label says which are more."""
    x = torch.randint(UNKIND.stop, VOCABULARY, (count, LENGTH), generator=generator)
    words = torch.randint(KIND.start, UNKIND.stop, (count, 5), generator=generator)
    places = torch.rand(count, LENGTH, generator=generator).argsort(1)[:, :5]
    y = (words < KIND.stop).sum(1) > 2
    return x.scatter(1, places, words), y.long()


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch", type=int, default=32)
    options = parser.parse_args(arguments)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=VOCABULARY, hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=128, max_position_embeddings=LENGTH, num_labels=2,
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
    with opentrn.training("BERT", options.steps, samples=options.batch, goal=GOAL) as run:
        for _ in range(options.steps):
            x, y = sentences(options.batch, generator)
            opt.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = compiled(input_ids=x, labels=y).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            step()
            schedule.step()
            run.step(loss)
    model.eval()
    x, y = sentences(256, generator)
    with torch.no_grad():
        right = (compiled(input_ids=x).logits.argmax(1) == y).float().mean().item()
    print(f"accuracy on new sentences {right:.3f}")
    print(opentrn.torch.explain())
    return run


if __name__ == "__main__":
    sys.exit(not main().reached)
