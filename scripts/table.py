# SPDX-License-Identifier: Apache-2.0
"""What training steps cost on machines to rent: one table, its numbers told alike by otrn, C and Python.

    make table                                   # GPT-2 124M, BERT-large, ResNet-50 on one device, Llama 1.2B on 32
    .venv/bin/python scripts/table.py --small    # the same models at a few thousand parameters

Steps are exported (examples/jax/export_*.py), compiled for each machine and priced without data, three times: by `otrn prof`,
by a C program (examples/c/price_program.c), and by opentrn.report in Python. Exit status 1 when they differ.
Utilisation is the FLOP of all devices' matrix products over the bf16 peak of their tensor engines in that time; dollars are the
devices' share of the machine's price, whose basis is the last column.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
# model: exporter, unit, units of one run of all devices and options, at full size, and at a small one
SMALL = ["--layers=2", "--width=64", "--heads=8", "--vocab=512"]
MODELS = {
    "GPT-2 124M": ("gpt2", "tokens", (1024, ["--dtype=bf16"]), (64, ["--dtype=bf16", *SMALL, "--seq=64"])),
    "BERT-large": ("bert", "tokens", (1024, ["--dtype=bf16"]), (128, ["--dtype=bf16", *SMALL, "--batch=4", "--seq=32"])),
    "ResNet-50": (
        "resnet50",
        "samples",
        (8, ["--dtype=bfloat16"]),
        (4, ["--dtype=bfloat16", "--batch=4", "--image=32", "--width=8", "--blocks=1,1", "--classes=10"]),
    ),
    "Llama 1.2B": ("llama", "tokens", (8192, []), (128, [*SMALL, "--kv=8", "--hidden=128", "--batch=4", "--seq=32"])),
}
MACHINES = [("trn1.32xlarge", 1), ("trn2.48xlarge", 1), ("trn2.48xlarge", 2)]
KEYS = ("total_us", "devices", "cores_per_device", "machines", "instance", "usd_per_hour", "price_basis", "utilisation")


def run(*args, **more):
    ran = subprocess.run([str(a) for a in args], capture_output=True, text=True, **more)
    if ran.returncode:
        sys.exit(f"{' '.join(map(str, args))}\n{ran.stdout}{ran.stderr}")
    return ran.stdout


def export(name, options, folder):
    program = folder / name / f"{name}.mlir"
    inputs = [] if name == "llama" else ["--no-inputs"]
    script = ROOT / "examples" / "jax" / f"export_{name}.py"
    run(sys.executable, script, f"--out={program.parent}", *inputs, *options, env={**os.environ, "JAX_PLATFORMS": "cpu"})
    return program


def by_otrn(o, program, instance, lnc, count):
    text = run(o.otrn, "prof", program, f"--instance={instance}", f"--lnc={lnc}", f"--tokens={count}", "--json")
    return json.loads(text)


def by_c(o, program, instance, lnc, count):
    """The C program's line as a dict."""
    line = run(o.otrn.parent / "examples" / "c" / "price_program", program, instance, lnc, count)
    number = r"([0-9.e+-]+)"
    found = re.match(
        rf"\S+: (\d+) devices of (\d+) cores on (\d+) x (\S+), {number} us, {number} of the peak, {number} tokens/s, "
        rf"{number} USD/h, {number} USD per 1M runs \((.*)\)",
        line,
    )
    if not found:
        sys.exit(f"price_program printed: {line}")
    devices, cores, machines, name, us, used, _, usd, _, basis = found.groups()
    return {"devices": int(devices), "cores_per_device": int(cores), "machines": int(machines), "instance": name,
            "total_us": float(us), "utilisation": float(used), "usd_per_hour": float(usd), "price_basis": basis}  # fmt: skip


def by_python(o, program, instance, lnc, target):
    import opentrn

    artifact = program.with_suffix(".otrn")
    run(o.otrn, "compile", program, f"--target={target}", f"--lnc={lnc}", "-o", artifact)
    return opentrn.report(artifact.read_bytes(), instance=instance)


def same(a, b):
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b) <= 1e-3 + 1e-6 * abs(a)  # as many digits as are printed
    return a == b


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--only", default="", help="models whose name holds this")
    parser.add_argument("--otrn", type=pathlib.Path, default=ROOT / "build" / "otrn")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build" / "table")
    o = parser.parse_args()
    differ = 0
    print(f"{'model':11} {'machine':14} {'LNC':>3} {'devices':>7} {'time ms':>9} {'a second':>16} {'used':>7} {'USD/h':>8} {'USD per 1M':>10}  price")
    for model, (name, unit, full, small) in MODELS.items():
        if o.only.lower() not in model.lower():
            continue
        count, options = small if o.small else full
        program = export(name, options, o.folder)
        for instance, lnc in MACHINES:
            r = by_otrn(o, program, instance, lnc, count)
            others = {"C": by_c(o, program, instance, lnc, count), "Python": by_python(o, program, instance, lnc, r["target"])}
            for who, told in others.items():
                for key in KEYS:
                    if not same(float(r[key]) if key in ("total_us", "usd_per_hour", "utilisation") else r[key], told[key]):
                        print(f"{model} on {instance}: {key} is {r[key]} for otrn, {told[key]} for {who}")
                        differ = 1
            print(
                f"{model:11} {instance:14} {lnc:3} {r['devices']:7} {r['total_us'] / 1e3:9.3f} "
                f"{r['tokens_per_second']:9,.0f} {unit:>6} {100 * r['utilisation']:5.1f} % {r['usd_per_hour']:8.4f} "
                f"{r['usd_per_million_tokens']:10.4g}  {r['price_basis']}",
                flush=True,
            )
    print("otrn, C and Python " + ("DIFFER" if differ else "tell the same"))
    return differ


if __name__ == "__main__":
    sys.exit(main())
