# SPDX-License-Identifier: Apache-2.0
"""Predicted steps, put together of priced layers, beside the same steps written and compiled whole.

    make composition                  every row; T=llama: those with it in their name
    .venv/bin/python accuracy/composition.py --only=zero=1
    .venv/bin/python accuracy/composition.py --random=20 --seed=7     layouts that nobody chose

A whole step is one program over all devices of the machine (shard_map): micro-batches one after the other, in a loop where there are several, as libraries'
programs begin the next when one is done; their gradients added up, reduced over the replicas or scattered over them, AdamW with clipping, weights gathered again. With ZeRO-3 each device has a part of every weight, gathered where a layer
asks for it, forward and backward. What the host takes to start programs is left out on both sides: the parts are several programs, the whole is one.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import random
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(ROOT / "python"))
from opentrn._predict import compose, config, layout, machines, price  # noqa: E402

LLAMA = dict(model_type="llama", hidden_size=512, intermediate_size=1536, num_hidden_layers=6, num_attention_heads=8, num_key_value_heads=8, vocab_size=4096)
MODELS = {
    "llama": LLAMA,
    "qwen2": dict(LLAMA, model_type="qwen2", num_key_value_heads=4, tie_word_embeddings=True),
    "mistral": dict(LLAMA, model_type="mistral", num_key_value_heads=4, sliding_window=128),
    "mixtral": dict(LLAMA, model_type="mixtral", num_key_value_heads=4, num_local_experts=8),
    "qwen3": dict(LLAMA, model_type="qwen3", num_key_value_heads=4, head_dim=64),
    "gpt2": dict(model_type="gpt2", n_embd=512, n_layer=6, n_head=8, vocab_size=4096, n_positions=512, resid_pdrop=0.0, attn_pdrop=0.0),
    "gpt_neox": dict(LLAMA, model_type="gpt_neox", intermediate_size=2048),
    "bert": dict(LLAMA, model_type="bert", intermediate_size=2048, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0),
    "vit": dict(model_type="vit", hidden_size=512, num_hidden_layers=6, num_attention_heads=8, intermediate_size=2048),
    "t5": dict(model_type="t5", d_model=512, d_kv=64, d_ff=1536, num_layers=6, num_heads=8, vocab_size=4096, dropout_rate=0.0),
}
CHIPS = {"trn1": "trn1.32xlarge", "trn2": "trn2.48xlarge", "trn3": "trn3-gen1-ultraserver"}
BIG = 4  # sequences of a micro-batch
# (layout, micro-batches), for every model that has such a layout
LAYOUTS = [
    (dict(), 1),
    (dict(), 4),
    (dict(zero=1), 1),
    (dict(zero=2), 2),
    (dict(zero=3), 2),
    (dict(tp=2, sp=False), 1),
    (dict(tp=4), 2),
    (dict(tp=2, zero=1, recompute="full"), 2),
    (dict(cp=2), 1),
    (dict(ep=4), 1),
    (dict(tp=2, ep=4, zero=1), 2),
]


LISTED = [name for name in MODELS if name != "qwen3"]  # of the table; drawn layouts are of all


def drawn(only="", count=20, seed=1):
    """Possible layouts by chance: a seed gives the same ones again."""
    draw, seen = random.Random(seed), set()
    some = {"tp": (1, 1, 2, 4), "cp": (1, 1, 1, 2), "ep": (1, 2, 4), "zero": (0, 1, 2, 3), "recompute": ("none", "none", "selective", "full"), "sp": (None, None, False)}
    while len(seen) < count:
        chip, name = draw.choice([*CHIPS]), draw.choice([*MODELS])
        cut = {k: draw.choice(v) for k, v in some.items()}
        cut = {k: v for k, v in cut.items() if v not in (1, 0, None, "none") or (v is False and cut["tp"] > 1)}
        micros = draw.choice((1, 2, 3))
        row = f"{chip} {name} {' '.join(f'{k}={v}' for k, v in cut.items())} micros={micros}"
        if row not in seen and all(word in row for word in only.split(",")) and possible(chip, name, cut, micros):
            seen.add(row)
            yield row, chip, name, cut, micros


def rows(only=""):
    """Every layout that a model can have on trn1; on the others each has some of them."""
    for c, chip in enumerate(CHIPS):
        for i, name in enumerate(LISTED):
            for k, (cut, micros) in enumerate(LAYOUTS):
                row = f"{chip} {name} {' '.join(f'{k}={v}' for k, v in cut.items())} micros={micros}"
                if (c == 0 or (i + k + c) % 4 == 0) and all(word in row for word in only.split(",")) and possible(chip, name, cut, micros):
                    yield row, chip, name, cut, micros


def job_of(chip, name, cut, micros, layers=0, dropout=0.0, **more):
    machine = dataclasses.replace(machines.machine(CHIPS[chip]), dispatch_us=0.0)
    rest = cut.get("tp", 1) * cut.get("cp", 1)
    x = layout.Layout(dp=machine.devices // rest, micro_batch=BIG, **cut)
    m = config.model(MODELS[name])
    m = dataclasses.replace(m, dropout=dropout, score_dropout=dropout, layers=layers or m.layers, decoder=m.decoder and (layers or m.decoder))
    return layout.Job(m, machine, 1, 512, x.dp * BIG * micros, **more), x


def possible(chip, name, cut, micros):
    try:
        layout.check(*job_of(chip, name, cut, micros))
    except layout.Fault:
        return False
    return True


def whole(job, x):
    """The text of a whole step."""
    from opentrn._predict import programs

    types, master = x.compiled(job)
    reach = dataclasses.replace(x.cut(job), replicas=x.dp // x.ep, zero=x.zero)
    return programs.step("whole", job.model.layers, job.model, reach, types, job.optimizer, master, x.micros(job))


PIPELINES = [("llama", 2, 4), ("llama", 4, 4), ("gpt2", 4, 4)]  # stages, micro-batches


def pipeline(job, x, n, micros):
    """The text of a pipeline of stages in the middle of a model, n layers each, as one program that all of them run: in each of its turns a stage takes
    what the one before made in the turn before (GPipe; who has nothing yet computes all the same); JAX writes the way back."""
    import jax
    import jax.numpy as jnp
    from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec

    from opentrn._predict import model, programs

    u, turns = x.cut(job), micros + x.pp - 1
    run, (like,), _, _ = model.piece("middle", n, job.model, u, jnp.bfloat16)
    tree = programs.weights("middle", n, job.model, u, "bf16")

    def stages(params, given):
        made, came = [], given[0]
        for t in range(turns):
            began = jnp.where(jax.lax.axis_index("pp") == 0, given[min(t, micros - 1)], came)
            made.append(run(model.Weights(params, jnp.bfloat16), began))
            came = jax.lax.ppermute(made[-1], "pp", [(i, i + 1) for i in range(x.pp - 1)])
        return made[x.pp - 1 :]

    def step(params, given, back):
        made, pull = jax.vjp(stages, params, given)
        return made, pull(back)

    mesh = AbstractMesh((x.pp,), ("pp",))
    wide = lambda s: jax.ShapeDtypeStruct((x.pp * s[0], *s[1:]), jnp.bfloat16, sharding=NamedSharding(mesh, PartitionSpec("pp")))
    spread = jax.shard_map(step, mesh=mesh, in_specs=PartitionSpec("pp"), out_specs=PartitionSpec("pp"), check_vma=False)
    return programs._lower(spread, ([wide(v.shape) for v in tree], *[[wide(like.shape)] * micros] * 2), {})


def compare_pipeline(name, pp, micros, prices, n=2):
    """(composed, whole) seconds of a pipeline's micro-batches."""
    job, _ = job_of("trn1", name, {}, 1)
    x = layout.Layout(pp=pp, micro_batch=BIG)
    prices = prices.setdefault("trn1", price.Prices(job.machine))
    micro = 1e-6 * prices(("micro", "middle", n, job.model, x.cut(job), x.compiled(job)[0], True))["total_us"]
    x = dataclasses.replace(x, schedule="gpipe")
    return micros * micro + sum(compose.pipeline([micro] * pp, micros, x, compose._passing(job, x, prices), compose.forward_share(job, x, prices))), 1e-6 * priced(job, pipeline(job, x, n, micros))["total_us"]


def priced(job, text, keep=""):
    """What `otrn prof` says of a program."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(keep or folder) / "step.mlir"
        path.write_text(text, encoding="utf-8")
        ran = price.run(["prof", str(path), f"--instance={job.machine.name}", f"--lnc={job.machine.cores}", "--cache=off", "--json"])
    if ran.returncode:
        raise SystemExit(ran.stderr)
    return json.loads(ran.stdout)


def compare(chip, name, cut, micros, prices, keep="", **more):
    """(composed, whole): seconds and bytes of each."""
    job, x = job_of(chip, name, cut, micros, **more)
    if chip not in prices:
        prices[chip] = price.Prices(job.machine)
    ours = compose.step(job, x, prices[chip])
    theirs = priced(job, whole(job, x), keep)
    return ours, theirs


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="rows whose name has all of these words, separated by commas")
    parser.add_argument("--random", type=int, default=0, metavar="COUNT", help="so many layouts by chance in place of the table")
    parser.add_argument("--seed", type=int, default=1, help="which of them")
    parser.add_argument("--layers", type=int, default=0, help="of each model, in place of 6")
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--lora", type=int, default=0, metavar="RANK")
    parser.add_argument("--precision", default="bf16", choices=tuple(layout.PRECISIONS))
    parser.add_argument("--optimizer", default="adamw", choices=("adamw", "lamb", "sgd"))
    parser.add_argument("--keep", default="", metavar="FOLDER", help="leave the whole program there")
    parser.add_argument("--parts", action="store_true", help="tell what the composed steps are made of")
    o = parser.parse_args()
    os.environ.setdefault("OTRN_CACHE_DIR", str(ROOT / "build" / "composition"))
    print(f"{'':60} {'composed us':>12} {'whole us':>12} {'%':>7} {'MiB':>8} {'MiB':>8} {'%':>7}")
    prices, far, fat = {}, [], []
    more = {k: getattr(o, k) for k in ("layers", "dropout", "lora", "precision", "optimizer")}
    for row, *what in drawn(o.only, o.random, o.seed) if o.random else rows(o.only):
        ours, theirs = compare(*what, prices, o.keep, **more)
        a, b, c, d = 1e6 * ours["step_s"], theirs["total_us"], ours["hbm_peak_bytes"] / 2**20, theirs["hbm_peak_bytes"] / 2**20
        far.append(100 * (a / b - 1))
        fat.append(100 * (c / d - 1))
        print(f"{row:60} {a:12.1f} {b:12.1f} {far[-1]:7.2f} {c:8.1f} {d:8.1f} {fat[-1]:7.2f}", flush=True)
        if o.parts:
            print("    ", " + ".join(f"{1e6 * v:.1f} {k}" for k, v in ours["seconds"].items()), "; whole comm", {k: theirs["comm"][k] for k in ("busy_us", "exposed_us")}, {k: v >> 10 for k, v in ours["memory"].items()})
    for name, pp, micros in PIPELINES if not o.only and not o.random else [r for r in PIPELINES if not o.random and o.only in f"pipeline {r[0]} pp={r[1]}"]:
        a, b = (1e6 * v for v in compare_pipeline(name, pp, micros, prices))
        print(f"{f'trn1 pipeline {name} pp={pp} micros={micros}':60} {a:12.1f} {b:12.1f} {100 * (a / b - 1):7.2f}", flush=True)
    if not far:
        return 0
    size = lambda found: f"{sum(map(abs, found)) / len(found):.2f} % in the mean, {max(map(abs, found)):.2f} % at most"
    print(f"{len(far)} steps: time {size(far)}; memory {size(fat)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
