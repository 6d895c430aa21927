# SPDX-License-Identifier: Apache-2.0
"""Pre-trains a small GPT-2 of Hugging Face on made-up text: python examples/torch/gpt2_pretrain.py

The text is a walk on a small random graph of tokens, so there is something to learn. One graph per
step: forward, backward, AdamW. Ends with what the step would cost on the chip.
"""

import argparse
import math

import torch
from transformers import GPT2Config, GPT2LMHeadModel

import opentrn
import opentrn.torch


def text(vocabulary, branches, batch, length, generator):
    """Every token can be followed by a few others, each as likely."""
    follow = torch.randint(
        0, vocabulary, (vocabulary, branches), generator=torch.Generator().manual_seed(7)
    )
    x = torch.randint(0, vocabulary, (batch,), generator=generator)
    rows = [x]
    for _ in range(length - 1):
        x = follow[x, torch.randint(0, branches, (batch,), generator=generator)]
        rows.append(x)
    return torch.stack(rows, 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--target", default=None, help="trn1, trn2, trn3 or a chip file")
    options = parser.parse_args()
    torch.manual_seed(0)
    vocabulary, branches, batch, length = 128, 4, 8, 64
    config = GPT2Config(
        vocab_size=vocabulary, n_positions=length, n_embd=64, n_layer=2, n_head=4, bos_token_id=0,
        eos_token_id=0, resid_pdrop=0.1, embd_pdrop=0.1, attn_pdrop=0.1,
    )  # fmt: skip
    model = GPT2LMHeadModel(config)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(opt, options.steps)
    step = opentrn.torch.compile_step(model, opt)
    generator = torch.Generator().manual_seed(1)
    tokens = options.steps * batch * length
    with opentrn.profile(options.target, steps=options.steps, tokens=tokens) as profile:
        for i in range(1, options.steps + 1):
            x = text(vocabulary, branches, batch, length, generator)
            loss = step(input_ids=x, labels=x).item()
            schedule.step()
            if i == 1 or i % 10 == 0:
                print(f"step {i:4}  loss {loss:.4f}")
    print(f"the best a model can do is {math.log(branches):.4f}")
    print(profile)
    print(opentrn.torch.explain())


if __name__ == "__main__":
    main()
