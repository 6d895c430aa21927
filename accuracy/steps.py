# SPDX-License-Identifier: Apache-2.0
"""How far whole training steps are off: published ones on trn1 rebuilt, priced and compared.

    make accuracy
    .venv/bin/python accuracy/steps.py --only=gpt3

A step is what one device executes between two updates, priced in parts by `otrn prof` and added up, since one part begins when the
one before has ended, each with what its dispatch costs:

    micro-batches x (forward, backward, gradients added up)     one program for a device, or for a tensor-parallel group of them
    + gradients reduced over the data-parallel replicas         one collective over all bytes, replicas spread over the nodes
    + the optimizer                                             one program, over the device's own weights
    + with ZeRO-1, weights gathered                             one collective

A pipeline of p stages runs micro-batches + p - 1 rounds of its slowest stage, the one with the head, and a round passes activations on.
steps.csv has the figures; MODELS says how each was built, ASSUMED what its source leaves open. Layers are repeated, as the tracing
front ends hand them over. Files and their making are those of scripts/zoo; without JAX (.venv) rows are skipped.
"""

import argparse
import concurrent.futures
import csv
import hashlib
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(ROOT / "scripts" / "zoo"))
TARGET = "trn1"
INSTANCE = "trn1.32xlarge"

BERT = dict(layers=24, width=1024, heads=16, vocab=30522, act="erf", task="mlm", post=True, dropout=10)
GPT3 = dict(layers=32, width=4096, heads=32, vocab=50304, seq=2048, remat="full", fused=True)
LLAMA = dict(layers=32, width=4096, heads=32, hidden=11008, vocab=32000, seq=4096, norm="rms", act="swiglu", places="rotary",
             bias=False, tied=False, fused=True)  # fmt: skip
BF16 = dict(compute="bf16", store="bf16", sums="bf16")  # BF16+SR: weights and gradients bf16, moments fp32
FP32 = dict(compute="fp32", store="fp32", sums="fp32")
AMP = dict(compute="bf16", store="fp32", sums="fp32")
# model: configuration, types, tensor-parallel devices, stages, ZeRO-1
MODELS = {
    "bert ph1 bf16": (dict(BERT, seq=128, batch=16), BF16, 1, 1, False),
    "bert ph1 amp": (dict(BERT, seq=128, batch=16), AMP, 1, 1, False),
    "bert ph1 fp32": (dict(BERT, seq=128, batch=8), FP32, 1, 1, False),
    "bert ph2 bf16": (dict(BERT, seq=512, batch=2), BF16, 1, 1, False),
    "bert ph2 fp32": (dict(BERT, seq=512, batch=1), FP32, 1, 1, False),
    "gpt3": (GPT3, BF16, 8, 1, False),
    "llama full": (dict(LLAMA, remat="full"), BF16, 8, 1, False),
    "llama zero": (dict(LLAMA, remat="attention"), dict(BF16, sums="fp32"), 8, 1, True),
    "llama pipeline": (dict(LLAMA, layers=8, remat="full", task="stage"), BF16, 8, 4, False),
}
ASSUMED = """assumed where the sources are silent: BERT drops a tenth (its published configuration), drawn from rbg keys, GPT3 and Llama nothing;
BERT's logits are of all positions; GPT3 and Llama have one product for queries, keys and values, and one for a gated MLP's way up; gradients are clipped with AdamW; a reduction is one collective, not hidden behind anything; fp32
products are fp32; 16-node fp32 rows have the micro-batch of the one-node rows; data come for nothing."""


# Programs


def make(name, part, optimizer, path):
    """Lowers and writes one program."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
    sys.path.insert(0, str(ROOT / "examples" / "jax"))
    import export_common
    import transformer
    import weights

    sizes, types, devices, _, zero = MODELS[name]
    c = transformer.Config(**sizes)
    loss, batch = transformer.model(c)
    if part == "micro":
        prng = "rbg" if c.dropout else None
        lowered = weights.lower_micro(loss, batch, **types, prng=prng, devices=devices, backward_to=0 if c.task == "stage" else None)
    else:
        tree = weights.collect(loss, batch, weights.TYPES[types["compute"]])
        share = 64 if zero else 1
        lowered = weights.lower_update(tree, optimizer, types["store"], types["sums"], zero, devices, share)
    export_common.save(lowered, (), path.parent, path.name, inputs=False)


def program(folder, name, part, optimizer=""):
    """The file of a program, made where it is missing or its sources have changed."""
    seen = hashlib.sha256(repr((MODELS[name], part, optimizer)).encode())
    for source in ("weights.py", "transformer.py"):
        seen.update((ROOT / "scripts" / "zoo" / source).read_bytes())
    path = folder / seen.hexdigest()[:16]
    if not path.with_suffix(".mlir").exists():
        print(f"exporting {name}, {part} {optimizer}", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, __file__, "--make", name, part, optimizer, str(path)], check=True)
    portable = path.with_suffix(".mlirbc")
    return portable if portable.exists() else path.with_suffix(".mlir")


def weight_count(name):
    """Weights of a device, without small vectors."""
    c, _, devices, _, _ = MODELS[name]
    w, hidden, v = c["width"], c.get("hidden", 4 * c["width"]), c["vocab"]
    layer = 4 * w * w + (3 if c.get("act") == "swiglu" else 2) * w * hidden
    tables = v * w * (2 if c.get("tied", True) is False and c.get("task") != "stage" else 1)
    if c.get("task") == "mlm":
        tables += 512 * w + 2 * w * w
    return (c["layers"] * layer + tables) // devices


def collective(folder, kind, count, dtype, ranks, stride):
    """A collective over `ranks` devices, every stride-th of a job."""
    text = (HERE / "collective.mlir").read_text()
    begin = text.index(f"func.func @{kind}(")
    body = text[begin : text.index("\n}\n", begin) + 3].replace(f"@{kind}(", "@main(")
    count = -(-count // ranks) * ranks
    groups = [list(range(g, ranks * stride, stride)) for g in range(stride)]
    body = body.replace("tensor<1xRANKSxi64>", f"tensor<{stride}x{ranks}xi64>")
    for name, value in {"!TYPE": dtype, "GROUP": str(groups), "PART": str(count // ranks), "<Nx": f"<{count}x"}.items():
        body = body.replace(name, value)
    path = folder / f"{kind}-{count}-{dtype}-{ranks}-{stride}.mlir"
    path.write_text(f"module attributes {{mhlo.num_replicas = {ranks * stride} : i32}} {{\n{body}}}\n")
    return path


# Prices


class Prices:
    """Modelled microseconds of programs, each priced once, and dispatched as an execution of its own."""

    def __init__(self, otrn):
        self.otrn, self.known = otrn, {}

    def __call__(self, path):
        if path not in self.known:
            command = [self.otrn, "prof", path, f"--target={TARGET}", f"--instance={INSTANCE}", "--lnc=1", "--cache=off", "--json"]
            ran = subprocess.run([str(a) for a in command], capture_output=True, text=True)
            if ran.returncode:
                sys.exit(f"{' '.join(map(str, command))}\n{ran.stderr}")
            report = json.loads(ran.stdout)
            self.known[path] = report["total_us"] + report["dispatch_us"]
        return self.known[path]


def parts(row, folder):
    """(how often, program, what) of all that a step is made of."""
    name, micro, workers = row["built"], int(row["micro"]), int(row["workers"])
    _, types, devices, stages, zero = MODELS[name]
    count, wide = weight_count(name), {"bf16": "bf16", "fp32": "f32"}
    rounds = micro + stages - 1
    out = [(rounds, program(folder, name, "micro"), "micro-batches")]
    reduce = "reduce_scatter" if zero else "all_reduce"
    stride = devices * stages
    out.append((1, collective(folder, reduce, count, wide[types["sums"]], workers, stride), "reduction"))
    out.append((1, program(folder, name, "update", row["optimizer"]), "optimizer"))
    if zero:
        out.append((1, collective(folder, "all_gather", count, wide[types["store"]], workers, stride), "gathering"))
    if stages > 1:
        sent = int(row["seq"]) * int(row["batch"]) * MODELS[name][0]["width"]
        out.append((2 * rounds, collective(folder, "all_gather", sent, "bf16", 2, devices), "passing on"))
    return out


def main():
    if sys.argv[1:2] == ["--make"]:
        name, part, optimizer, path = sys.argv[2:]
        return make(name, part, optimizer, pathlib.Path(path))
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--otrn", default=str(ROOT / "build" / "otrn"))
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build" / "steps")
    parser.add_argument("--only", default="", help="rows whose model or id has it")
    parser.add_argument("--json", default="")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    o = parser.parse_args()
    try:
        import jax  # noqa: F401
    except ImportError:
        print("skipped whole steps: no JAX in this Python (./dev setup makes .venv)")
        return 0
    o.folder.mkdir(parents=True, exist_ok=True)
    rows = [r for r in csv.DictReader(v for v in open(HERE / "steps.csv") if not v.startswith("#")) if o.only in r["built"] or o.only == r["id"]]
    price, errors, table = Prices(o.otrn), [], []
    needs = {row["id"]: parts(row, o.folder) for row in rows}
    with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
        list(pool.map(price, dict.fromkeys(path for part in needs.values() for _, path, _ in part)))
    print(f"{'':8} {'whole steps, sequences a second':34} {'nodes':>5} {'published':>10} {'modelled':>10} {'error':>8}  step s = parts")
    for row in rows:
        seconds = {what: n * price(path) * 1e-6 for n, path, what in needs[row["id"]]}
        step = sum(seconds.values())
        ours, theirs = int(row["batch"]) * int(row["micro"]) * int(row["workers"]) / step, float(row["published"])
        error = 100 * (theirs / ours - 1)  # of the step's time
        errors.append(abs(error))
        told = " + ".join(f"{v:.4g} {k}" for k, v in seconds.items())
        print(f"{row['id']:8} {row['what']:34} {row['nodes']:>5} {theirs:10.5g} {ours:10.5g} {error:+7.1f}%  {step:.4g} = {told}", flush=True)
        table.append({"id": row["id"], "published": theirs, "modelled": ours, "error": error, "seconds": seconds})
    print(f"\n{ASSUMED}\n")
    print(f"whole steps: mean absolute error of the time {sum(errors) / len(errors):.1f}% over {len(errors)} rows, worst {max(errors):.1f}%")
    if o.json:
        pathlib.Path(o.json).write_text(json.dumps(table, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
