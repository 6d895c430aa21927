# SPDX-License-Identifier: Apache-2.0
"""Training step of GPT-2 124M (forward, backward, clipping, AdamW) on opentrn beside JAX's CPU and PyTorch eager.

    python bench/gpt2_bench.py [--dtype=fp32|bf16|both] [--batch=1] [--seq=1024] [--rounds=3]

Each contestant is a process of its own that waits while another one runs; steps alternate, and printed are medians
over the rounds: tokens per second, and opentrn's over each other's. One that dies (PyTorch's bf16 is refused by some hosts) is
named, with its last words, and the others go on. Bars: fp32 0.9 of PyTorch and 2.0 of JAX's CPU,
bf16 2.0 of the better of the two. Then one more step of opentrn tells where its host time went by kind of instruction, what
its multipliers can do on all threads (an FMA probe in the same run), and what share of that the products reached.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
BARS = {"fp32": {"torch": 0.9, "jax": 2.0}, "bf16": {"better": 2.0}}


# --- contestants: made once, then one step per line on stdin -------------------------------------------------


def jax_step(o, platform):
    os.environ["JAX_PLATFORMS"] = f"{platform},cpu" if platform != "cpu" else "cpu"
    sys.path.insert(0, str(ROOT / "examples" / "jax"))
    import export_gpt2
    import jax
    import jax.numpy as jnp
    import numpy as np
    import optax

    shape = argparse.Namespace(batch=o.batch, seq=o.seq, layers=12, width=768, heads=12, vocab=50257, dropout=0)
    rng = np.random.default_rng(0)
    params = export_gpt2.init(rng, shape)
    text = rng.integers(0, shape.vocab, (o.batch, o.seq + 1), dtype=np.int32)
    optimizer = optax.adamw(3e-4, b2=0.95, weight_decay=0.1)
    dtype = {"fp32": jnp.float32, "bf16": jnp.bfloat16}[o.dtype]

    def step(params, state, tokens, targets):
        loss, grads = jax.value_and_grad(export_gpt2.loss_fn)(params, tokens, targets, shape, dtype, lambda x: x)
        norm = jnp.sqrt(sum((g * g).sum() for g in jax.tree.leaves(grads)))
        grads = jax.tree.map(lambda g: g * jnp.minimum(1.0, 1.0 / norm), grads)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, loss

    device = jax.devices(platform)[0]
    state = jax.device_put((params, optimizer.init(params)), device)
    text = jax.device_put((text[:, :-1], text[:, 1:]), device)
    run = jax.jit(step, donate_argnums=(0, 1))

    def one():
        nonlocal state
        *state, loss = run(*state, *text)
        return float(loss)

    return one


def torch_step(o):
    import torch
    import torch.nn.functional as F
    from torch import nn

    torch.manual_seed(0)
    width, heads, layers, vocab = 768, 12, 12, 50257

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            b, s, d = x.shape
            q, k, v = (t.view(b, s, heads, d // heads).transpose(1, 2) for t in self.qkv(self.ln1(x)).split(width, 2))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.proj(y.transpose(1, 2).reshape(b, s, d))
            return x + self.down(F.gelu(self.up(self.ln2(x)), approximate="tanh"))

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.wte, self.wpe = nn.Embedding(vocab, width), nn.Embedding(o.seq, width)
            self.blocks, self.ln = nn.ModuleList(Block() for _ in range(layers)), nn.LayerNorm(width)
            nn.init.normal_(self.wte.weight, std=0.02)

        def forward(self, tokens, targets):
            x = self.wte(tokens) + self.wpe(torch.arange(o.seq))
            for block in self.blocks:
                x = block(x)
            logits = self.ln(x) @ self.wte.weight.T
            return F.cross_entropy(logits.float().view(-1, vocab), targets.reshape(-1))

    model = Gpt()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1)
    text = torch.randint(0, vocab, (o.batch, o.seq + 1))

    def one():
        with torch.autocast("cpu", torch.bfloat16, enabled=o.dtype == "bf16"):
            loss = model(text[:, :-1], text[:, 1:])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    return one


def contestant(o):
    step = torch_step(o) if o.worker == "torch" else jax_step(o, {"opentrn": "opentrn", "jax": "cpu"}[o.worker])
    step()
    for line in sys.stdin:
        begin, cpu = time.perf_counter(), time.process_time()
        loss = step()
        print(json.dumps([time.perf_counter() - begin, time.process_time() - cpu, loss]), flush=True)


# --- the contest -----------------------------------------------------------------------------------------------


def command(o, name, dtype):
    return [sys.executable, __file__, f"--worker={name}", f"--dtype={dtype}", f"--batch={o.batch}", f"--seq={o.seq}"]


def start(o, name, dtype, **more):
    return subprocess.Popen(command(o, name, dtype), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **more)


def ask(p):
    """Seconds, seconds of CPU and loss of a step; None when the contestant has died."""
    try:
        p.stdin.write("step\n")
        p.stdin.flush()
        return json.loads(p.stdout.readline() or "null")
    except OSError:
        return None


def bury(p, name, dtype):
    """Says who died and of what: the last line it wrote."""
    p.stdout.close()
    status = p.wait()
    p.stderr.seek(0)
    last = ([line.strip() for line in p.stderr if line.strip()] or ["without a word"])[-1]
    print(f"{dtype} {name} died (status {status}): {last}", flush=True)


def profile(o, dtype):
    p = start(o, "opentrn", dtype, stderr=subprocess.PIPE, env=dict(os.environ, OTRN_HOST_PROFILE="on"))
    _, err = p.communicate("step\n")
    lines = [line for line in err.splitlines() if line.startswith("host: ")]
    last = max((i for i, line in enumerate(lines) if " s on " in line), default=len(lines))
    print("\n".join(f"{dtype} {line}" for line in lines[last:]), flush=True)


def has_torch():
    return subprocess.run([sys.executable, "-c", "import torch"], stderr=subprocess.DEVNULL).returncode == 0


def contest(o, dtype):
    names = [n for n in ("opentrn", "jax", "torch") if n != "torch" or has_torch()]
    if "torch" not in names:
        print("skipped PyTorch: it is not installed (./dev test-torch installs it)")
    runs, times = {}, {n: [] for n in names}
    for n in names:
        err = tempfile.TemporaryFile("w+")
        runs[n] = start(o, n, dtype, stderr=err)
        runs[n].stderr = err
    for i in range(1 + o.rounds):  # the first answer comes when a contestant is made and has compiled
        for n in [n for n in names if n in runs]:
            answer = ask(runs[n])
            if answer is None:
                bury(runs.pop(n), n, dtype)
            elif i:
                times[n].append(answer)
    for p in runs.values():
        p.stdin.close()
        p.wait()
    names = [n for n in names if n in runs]  # those that are left
    if "opentrn" not in names:
        return 1
    profile(o, dtype)
    tokens = o.batch * o.seq
    for n in names:
        wall, cpu = (statistics.median(t[i] for t in times[n]) for i in (0, 1))
        print(f"{dtype} {o.batch}x{o.seq} {n:8} {tokens / wall:7.1f} tokens/s  ({wall:6.2f} s, {cpu:6.2f} s of CPU)", flush=True)
    ratio = {n: statistics.median(t[0] / u[0] for t, u in zip(times[n], times["opentrn"])) for n in names[1:]}
    if ratio:
        ratio["better"] = min(ratio.values())
    missed = 0
    for n, bar in BARS[dtype].items():
        if n in ratio:
            missed += ratio[n] < bar
            print(f"{dtype} opentrn is {ratio[n]:5.2f} of {n}'s speed, bar {bar}  {'ok' if ratio[n] >= bar else 'below the bar'}", flush=True)
    return missed


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--dtype", choices=("fp32", "bf16", "both"), default="both")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--seq", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--worker", choices=("opentrn", "jax", "torch"), help=argparse.SUPPRESS)
    o = parser.parse_args()
    if o.worker:
        contestant(o)
    else:
        print(f"{sum(contest(o, d) for d in (('fp32', 'bf16') if o.dtype == 'both' else (o.dtype,)))} below the bar")


if __name__ == "__main__":
    main()
