# SPDX-License-Identifier: Apache-2.0
"""Pre-trains a small GPT-2 of Hugging Face on made-up text: python examples/torch/gpt2_pretrain.py

The text is a walk on a small random graph of tokens, so there is something to learn. One graph per
step: forward, backward, AdamW. Ends with what the step would cost on the chip.
"""

import argparse
import math
import sys

import torch
from transformers import GPT2Config, GPT2LMHeadModel

import opentrn
import opentrn.torch


VOCABULARY, BRANCHES, LENGTH = 128, 4, 64
GOAL = 2.2  # a guess has 4.85


def text(batch, generator):
    """Every token can be followed by a few others, each as likely."""
    graph = torch.Generator().manual_seed(7)
    follow = torch.randint(0, VOCABULARY, (VOCABULARY, BRANCHES), generator=graph)
    x = torch.randint(0, VOCABULARY, (batch,), generator=generator)
    rows = [x]
    for _ in range(LENGTH - 1):
        x = follow[x, torch.randint(0, BRANCHES, (batch,), generator=generator)]
        rows.append(x)
    return torch.stack(rows, 1)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch", type=int, default=8)
    options = parser.parse_args(arguments)
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=VOCABULARY, n_positions=LENGTH, n_embd=64, n_layer=2, n_head=4, bos_token_id=0,
        eos_token_id=0, resid_pdrop=0.1, embd_pdrop=0.1, attn_pdrop=0.1,
    )  # fmt: skip
    model = GPT2LMHeadModel(config)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        opt, 1e-2, total_steps=options.steps, cycle_momentum=False
    )
    step = opentrn.torch.compile_step(model, opt)
    generator = torch.Generator().manual_seed(1)
    tokens = options.batch * LENGTH
    with opentrn.training("GPT-2", options.steps, tokens=tokens, goal=GOAL) as run:
        for _ in range(options.steps):
            x = text(options.batch, generator)
            run.step(step(input_ids=x, labels=x))
            schedule.step()
    print(f"the best a model can do is {math.log(BRANCHES):.4f}")
    print(opentrn.torch.explain())
    return run


if __name__ == "__main__":
    sys.exit(not main().reached)
