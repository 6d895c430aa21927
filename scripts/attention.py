# SPDX-License-Identifier: Apache-2.0
"""Attention as JAX writes it, forward and its gradients, modelled for every chip, beside a published kernel.

    make attention                                  # a table of all; T=causal only lines that contain it
    .venv/bin/python scripts/attention.py --otrn=build/otrn --only=trn1

bf16, heads of 128, 4096 tokens, one core; softmax in fp32. gradient: queries', keys' and values', with the forward pass they need, less
the forward pass alone. The bar is 2.6 times the forward pass for gradients of causal attention, and 1.3 times the published kernel of
accuracy/rows.csv (a0202: one head without a mask on trn1); exit status 1 when one is missed (--bars).
"""

import argparse
import csv
import json
import os
import pathlib
import subprocess
import sys

os.environ["JAX_PLATFORMS"] = "cpu"
import jax
import jax.numpy as jnp
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[1]
CASES = {"causal, 8 heads": (8, True), "causal, 1 head": (1, True), "all, 8 heads": (8, False), "all, 1 head": (1, False)}
CHIPS = ("trn1", "trn2", "trn3")
PUBLISHED = ("a0202", "all, 1 head", "trn1")
TOKENS, SIZE = 4096, 128
GRADIENT_BAR, KERNEL_BAR = 2.6, 1.3


def attention(causal, q, k, v):
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(jnp.float32) / np.float32(np.sqrt(SIZE))
    if causal:
        scores = jnp.where(jnp.tril(jnp.ones((TOKENS, TOKENS), bool)), scores, -jnp.inf)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores).astype(q.dtype), v)


def programs(heads, causal):
    """The text of the forward pass, and of it with its gradients."""
    x = jax.ShapeDtypeStruct((1, TOKENS, heads, SIZE), jnp.bfloat16)
    forward = lambda q, k, v: attention(causal, q, k, v)

    def both(q, k, v, dy):
        y, back = jax.vjp(forward, q, k, v)
        return y, *back(dy)

    return jax.jit(forward).lower(x, x, x).as_text(), jax.jit(both).lower(x, x, x, x).as_text()


def milliseconds(otrn, path, chip):
    ran = subprocess.run([otrn, "prof", path, f"--target={chip}", "--lnc=1", "--cache=off", "--json"], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(ran.stdout)["total_us"] / 1000


def published(row):
    with open(ROOT / "accuracy" / "rows.csv", newline="") as rows:
        line = next(r for r in csv.reader(rows) if r and r[0] == row)
    return float(line[line.index("ms") + 1])


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--otrn", default=str(ROOT / "build" / "otrn"))
    args.add_argument("--folder", default=str(ROOT / "build" / "attention"), type=pathlib.Path)
    args.add_argument("--only", default="")
    args.add_argument("--bars", action="store_true")
    args = args.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    missed = []
    print(f"{'attention':18} {'chip':5} {'forward ms':>10} {'gradient ms':>11} {'ratio':>6}  published kernel")
    for name, (heads, causal) in CASES.items():
        wanted = [c for c in CHIPS if args.only in f"{name} {c}"]
        paths = [args.folder / f"{heads}-{'causal' if causal else 'all'}-{part}.mlir" for part in ("forward", "both")]
        for path, text in zip(paths, programs(heads, causal) if wanted else ()):
            path.write_text(text)
        for chip in wanted:
            forward, both = (milliseconds(args.otrn, p, chip) for p in paths)
            ratio, beside = (both - forward) / forward, ""
            if causal and ratio > GRADIENT_BAR:
                missed.append(f"{name} {chip}: gradients take {ratio:.2f} times the forward pass")
            if PUBLISHED[1:] == (name, chip):
                kernel = published(PUBLISHED[0])
                beside = f"{kernel} ms ({PUBLISHED[0]}): {forward / kernel:.2f} times"
                if forward > KERNEL_BAR * kernel:
                    missed.append(f"{name} {chip}: forward takes {forward / kernel:.2f} times {PUBLISHED[0]}")
            print(f"{name:18} {chip:5} {forward:10.3f} {both - forward:11.3f} {ratio:6.2f}  {beside}".rstrip(), flush=True)
    print("\n".join(["", *missed]) if missed else "every bar is met")
    return 1 if args.bars and missed else 0


if __name__ == "__main__":
    sys.exit(main())
