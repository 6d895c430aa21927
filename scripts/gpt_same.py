# SPDX-License-Identifier: Apache-2.0
"""`otrn train` of a GPT beside JAX and PyTorch on the CPU: the same weights, data and update, every loss and every weight.

    python scripts/gpt_same.py [--steps=20] [--with=jax,torch] [--layers=12 --dim=768 --heads=12 --vocab=50257 --seq=64 --batch=4]

GPT-2 124M when nothing is said (`make gpt-same`). One step is trained and saved; from that checkpoint (weights and both moments) all go on for
`--steps` more. Told are the losses, the largest difference of one, and of each weight how far it is from the others' as a share of
how far it moved. Exit status 1 when a loss differs by more than LOSS or a weight by more than MOVED of its way.

Biases of keys are told and not counted: softmax does not see them, so their gradients are rounding errors, which AdamW makes as large as any.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[1]
LOSS, MOVED = 1e-4, 0.02
RATE, SEED = 3e-4, 3
M64 = (1 << 64) - 1


# --- the order of samples, as src/train/random.h and data.c have it -----------------------------------


def mix(h):
    h = (h ^ h >> 30) * 0xBF58476D1CE4E5B9 & M64
    h = (h ^ h >> 27) * 0x94D049BB133111EB & M64
    return h ^ h >> 31


def random_at(seed, stream, i):
    key = mix((seed * 0x9E3779B97F4A7C15 + mix(stream + 0x632BE59BD9B4E019 & M64)) & M64)
    return mix((key + (i + 1) * 0x9E3779B97F4A7C15) & M64)


def order(seed, epoch, i, count):
    half = 1
    while half < 31 and 1 << 2 * half < count:
        half += 1
    mask = (1 << half) - 1
    while True:
        left, right = i >> half, i & mask
        for round in range(4):
            left, right = right, left ^ (random_at(seed ^ epoch << 32, (1 << 20) + (round << 24), right) & mask)
        i = left << half | right
        if i < count:
            return i


def window(tokens, seed, n, length):
    count = len(tokens) // length - 1
    epoch = n // count
    at = random_at(seed, (1 << 20) + 1, epoch) % length + order(seed, epoch, n % count, count) * length
    return tokens[at : at + length].astype(np.int32)


def batch(tokens, seed, step, rows, seq):
    both = np.stack([window(tokens, seed, step * rows + r, seq + 1) for r in range(rows)])
    return both[:, :-1], both[:, 1:]


def tensors(folder):
    """The safetensors of a checkpoint, read by hand: the format is the point."""
    found = {}
    for path in sorted(folder.glob("*.safetensors")):
        raw = np.memmap(path, np.uint8, "r")
        n = int.from_bytes(raw[:8].tobytes(), "little")
        for name, row in json.loads(raw[8 : 8 + n].tobytes()).items():
            a, b = row["data_offsets"]
            assert row["dtype"] == "F32"
            found[name] = np.frombuffer(raw[8 + n + a : 8 + n + b].tobytes(), np.float32).reshape(row["shape"])
    return found


# --- JAX -------------------------------------------------------------------------------------------------


def jax_dense(p, name, x):
    return x @ p[name + ".weight"] + p[name + ".bias"]


def jax_norm(p, name, x):
    import jax.numpy as jnp

    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / jnp.sqrt(var + 1e-5) * p[name + ".weight"] + p[name + ".bias"]


def jax_loss(p, x, y, layers, heads):
    import jax
    import jax.numpy as jnp

    rows, seq = x.shape
    h = p["tokens.weight"][x] + p["places.weight"]
    mask = jnp.tril(jnp.ones((seq, seq), bool))
    for i in range(layers):
        at = f"layers.{i}"
        n = jax_norm(p, at + ".norm1", h)
        q, k, v = (jax_dense(p, f"{at}.attention.{w}", n).reshape(rows, seq, heads, -1).swapaxes(1, 2) for w in "qkv")
        scores = jnp.where(mask, q @ k.swapaxes(2, 3) / np.sqrt(q.shape[-1]), -1e30)
        mixed = (jax.nn.softmax(scores) @ v).swapaxes(1, 2).reshape(rows, seq, -1)
        h = h + jax_dense(p, at + ".attention.out", mixed)
        wide = jax.nn.gelu(jax_dense(p, at + ".up", jax_norm(p, at + ".norm2", h)), approximate=True)
        h = h + jax_dense(p, at + ".down", wide)
    logits = jax_norm(p, "norm", h) @ p["tokens.weight"].T
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), y[..., None], -1).mean()


def jax_update(p, m, v, g, step, rate):
    import jax.numpy as jnp

    length = jnp.sqrt(sum(jnp.sum(a * a) for a in g.values()))
    g = {k: a * jnp.minimum(1.0, 1.0 / (length + 1e-6)) for k, a in g.items()}
    m = {k: 0.9 * m[k] + 0.1 * g[k] for k in p}
    v = {k: 0.95 * v[k] + 0.05 * g[k] ** 2 for k in p}
    c1, c2 = 1 / (1 - 0.9 ** (step + 1)), 1 / (1 - 0.95 ** (step + 1))
    new = {}
    for k in p:
        by = m[k] * c1 / (jnp.sqrt(v[k] * c2) + 1e-8) + (0.1 * p[k] if p[k].ndim > 1 else 0)
        new[k] = p[k] - rate * by
    return new, m, v


def by_jax(first, names, batches, layers, heads, rate):
    """Losses of the steps from 1 on, and the weights behind them."""
    import jax
    import jax.numpy as jnp

    losses = []
    gradient = jax.jit(jax.value_and_grad(jax_loss), static_argnums=(3, 4))
    update = jax.jit(jax_update, donate_argnums=(0, 1, 2))
    with jax.default_device(jax.local_devices(backend="cpu")[0]):
        p, m, v = ({k: jnp.array(first[k + end]) for k in names} for end in ("", ".m", ".v"))
        for step, (x, y) in enumerate(batches, 1):
            loss, g = gradient(p, x, y, layers, heads)
            losses.append(float(loss))
            p, m, v = update(p, m, v, g, step, rate)
    return losses, {k: np.asarray(p[k]) for k in names}


# --- PyTorch ---------------------------------------------------------------------------------------------


def torch_loss(p, x, y, layers, heads):
    import torch
    import torch.nn.functional as F

    def dense(name, x):
        return F.linear(x, p[name + ".weight"].T, p[name + ".bias"])

    def norm(name, x):
        return F.layer_norm(x, x.shape[-1:], p[name + ".weight"], p[name + ".bias"], 1e-5)

    rows, seq = x.shape
    h = F.embedding(x, p["tokens.weight"]) + p["places.weight"]
    for i in range(layers):
        at = f"layers.{i}"
        n = norm(at + ".norm1", h)
        q, k, v = (dense(f"{at}.attention.{w}", n).view(rows, seq, heads, -1).transpose(1, 2) for w in "qkv")
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(rows, seq, -1)
        h = h + dense(at + ".attention.out", mixed)
        h = h + dense(at + ".down", F.gelu(dense(at + ".up", norm(at + ".norm2", h)), approximate="tanh"))
    logits = norm("norm", h) @ p["tokens.weight"].T
    return F.cross_entropy(logits.flatten(0, 1), y.flatten())


def by_torch(first, names, batches, layers, heads, rate):
    """The same with torch.optim.AdamW and clip_grad_norm_."""
    import torch

    p = {k: torch.tensor(first[k], requires_grad=True) for k in names}
    groups = [{"params": [p[k] for k in names if (p[k].ndim > 1) == wide], "weight_decay": 0.1 * wide} for wide in (True, False)]
    optimizer = torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.95), eps=1e-8)
    for k in names:
        optimizer.state[p[k]] = {"step": torch.tensor(1.0), "exp_avg": torch.tensor(first[k + ".m"]), "exp_avg_sq": torch.tensor(first[k + ".v"])}
    losses = []
    for x, y in batches:
        loss = torch_loss(p, torch.tensor(x, dtype=torch.int64), torch.tensor(y, dtype=torch.int64), layers, heads)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(list(p.values()), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses, {k: p[k].detach().numpy() for k in names}


# --- the comparison --------------------------------------------------------------------------------------

OTHERS = {"jax": by_jax, "torch": by_torch}


def trained(otrn, folder, tokens, sizes, steps, rate):
    """Checkpoint behind the first step, losses of the others, weights behind the last."""
    np.asarray(tokens, "<u2").tofile(folder / "tokens.bin")
    words = [otrn, "train", *(f"--{k}={v}" for k, v in sizes.items()), f"--data={folder}/tokens.bin", "--schedule=constant", "--warmup=0",
             f"--lr={rate}", f"--seed={SEED}", "--sample=0", f"--checkpoint={folder}/run", "--checkpoint-every=1000000", "--keep=0"]
    subprocess.run([*words, "--steps=1"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([*words, f"--steps={steps + 1}", "--resume", f"--log={folder}/log"], check=True, stdout=subprocess.DEVNULL)
    losses = [row["loss"] for row in map(json.loads, open(folder / "log")) if "loss" in row]
    return tensors(folder / "run" / "step-00000001"), losses, tensors(folder / "run" / f"step-{steps + 1:08}")


def compare(otrn, folder, sizes, steps, others, rate=RATE, tell=print):
    """What is wrong, a line each; empty when all is the same within LOSS and MOVED."""
    rng = np.random.default_rng(SEED)
    tokens = (sizes["vocab"] * rng.random(max(20000, 2 * (steps + 2) * sizes["batch"] * (sizes["seq"] + 1))) ** 3).astype(np.uint16)
    begun = time.perf_counter()
    first, losses, last = trained(otrn, folder, tokens, sizes, steps, rate)
    tell(f"otrn train: {steps} steps, loss {losses[0]:.5f} to {losses[-1]:.5f} ({time.perf_counter() - begun:.0f} s)")
    names = [k for k in first if not k.endswith((".m", ".v"))]
    batches = [batch(tokens, SEED, step, sizes["batch"], sizes["seq"]) for step in range(1, steps + 1)]
    wrong = []
    for name in others:
        begun = time.perf_counter()
        theirs, weights = OTHERS[name](first, names, batches, sizes["layers"], sizes["heads"], rate)
        off = [abs(a - b) / abs(b) for a, b in zip(losses, theirs, strict=True)]
        moved = {k: float(np.linalg.norm(last[k] - weights[k]) / np.linalg.norm(weights[k] - first[k])) for k in names}
        seen = {k: v for k, v in moved.items() if not k.endswith(".attention.k.bias")}
        worst = max(seen, key=seen.get)
        tell(f"{name}: losses within {max(off):.2e}, weights within {seen[worst]:.2e} of their way ({worst}); "
             f"biases of keys {max(v for k, v in moved.items() if k not in seen):.2e} ({time.perf_counter() - begun:.0f} s)")
        wrong += [f"{name}: the loss of step {i + 2} is {a:.7f} here and {b:.7f} there" for i, (a, b) in enumerate(zip(losses, theirs)) if off[i] > LOSS]
        wrong += [f"{name}: {k} is {v:.2e} of its way off" for k, v in seen.items() if not v < MOVED]
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    usual = {"layers": 12, "dim": 768, "heads": 12, "vocab": 50257, "seq": 64, "batch": 4}
    for name, value in usual.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--with", dest="others", default="jax,torch")
    parser.add_argument("--otrn", default=str(ROOT / "build" / "otrn"))
    o = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        wrong = compare(o.otrn, pathlib.Path(folder), {k: getattr(o, k) for k in usual}, o.steps, o.others.split(","),
                        tell=lambda text: print(text, flush=True))
    print("\n".join(wrong) if wrong else f"the same within {LOSS} of the losses and {MOVED} of what weights moved")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
