# SPDX-License-Identifier: Apache-2.0
"""Text from a small language model on inf2: trained with PyTorch, exported with torch.export, run by `otrn` alone.

    python examples/torch/generate_inf2.py [--steps=150] [--tokens=24]

The forward pass of a fixed window becomes forward.mlir; each token is one `otrn run --target=inf2` of it, which compiles it once and
takes it from the cache afterwards. At the end: what one token costs on inf2 by the model of the chip.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
from torch import nn

import opentrn.torch

TEXT = "the quick brown fox jumps over the lazy dog. "
WINDOW = 16


class Model(nn.Module):
    def __init__(self, letters, width=64):
        super().__init__()
        self.embed, self.place = nn.Embedding(letters, width), nn.Parameter(torch.randn(WINDOW, width) * 0.02)
        self.mix = nn.MultiheadAttention(width, 4, batch_first=True)
        self.norm, self.more = nn.LayerNorm(width), nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.head = nn.Linear(width, letters)
        self.register_buffer("mask", torch.full((WINDOW, WINDOW), float("-inf")).triu(1))

    def forward(self, x):
        h = self.embed(x) + self.place
        h = h + self.mix(h, h, h, attn_mask=self.mask, need_weights=False)[0]
        return self.head(h + self.more(self.norm(h)))


def train(model, data, steps):
    loss_of = lambda out, y: nn.functional.cross_entropy(out.flatten(0, 1), y.flatten())
    step = opentrn.torch.compile_step(model, torch.optim.AdamW(model.parameters(), lr=3e-3), loss_of)
    draw = torch.Generator().manual_seed(1)
    for i in range(steps):
        at = torch.randint(len(data) - WINDOW - 1, (16,), generator=draw)
        rows = torch.stack([data[j : j + WINDOW + 1] for j in at])
        loss = step(rows[:, :-1].contiguous(), rows[:, 1:].contiguous())
    print(f"loss {loss.item():.3f} after {steps} steps")


def otrn(*words):
    return subprocess.run([sys.executable, "-m", "opentrn", *words], check=True, capture_output=True, text=True).stdout


def generate(folder, manifest, tokens, start):
    """Greedy: the window moves along by one letter for each run."""
    rows = list(start)
    number = next(i for i, a in enumerate(manifest["arguments"]) if a["kind"] == "input")
    inputs = ",".join(str(folder / f"in_{i:03}.npy") for i in range(len(manifest["arguments"])))
    for _ in range(tokens):
        np.save(folder / f"in_{number:03}.npy", np.array([rows[-WINDOW:]], dtype=np.int64))
        otrn("run", str(folder / "forward.mlir"), "--target=inf2", f"--input={inputs}", f"--output={folder}")
        rows.append(int(np.load(folder / "result_0.npy")[0, -1].argmax()))
    return rows[len(start) :]


def main(words=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--tokens", type=int, default=24)
    o = parser.parse_args(words)
    torch.manual_seed(0)
    letters = sorted(set(TEXT))
    data = torch.tensor([letters.index(c) for c in TEXT * 8])
    model = Model(len(letters))
    train(model, data, o.steps)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        exported = torch.export.export(model.eval(), (data[None, :WINDOW],))
        manifest = opentrn.torch.export_forward(exported, folder)
        found = generate(folder, manifest, o.tokens, data[:WINDOW].tolist())
        print(repr(TEXT[:WINDOW]), "->", repr("".join(letters[i] for i in found)))
        told = otrn("prof", str(folder / "forward.mlir"), "--target=inf2").splitlines()
        print("\n".join(line for line in told if line.startswith(("target", "modelled time", "cost"))))


if __name__ == "__main__":
    main()
