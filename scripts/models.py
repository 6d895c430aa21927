# SPDX-License-Identifier: Apache-2.0
"""Whole training steps on the chip beside JAX's CPU: every loss, every updated parameter, and what it took.

    make models                                              # all of them, about half an hour on two cores, 20 GB of memory and disk
    .venv/bin/python scripts/models.py --only=gpt2 --folder=/tmp/models
    .venv/bin/python scripts/models.py --small               # the same models at a few thousand parameters

A model is exported (examples/jax/export_*.py) with its inputs and what JAX's CPU makes of them, compiled, priced, run on the chip and
compared, one after the other; exit status 1 when one is outside.

The loss must be within 1e-5 of JAX's CPU (fp32; 1e-3 where products are bf16), relative. Every other result, parameters and the
optimizer's moments, must be within the tolerance table (src/hlo/tol.c) of JAX's, the table's relative part counted from the tensor's largest element,
since its elements are sums of terms of that size. Adam's first steps are lr * sign(gradient) almost exactly; where the true gradient is
zero (biases of keys, behind a softmax) or below fp32's noise, that sign is noise in any implementation. So results outside the
table are compared with the same program in float64 (XLA, the text with f32 and bf16 replaced): they count as noise, and pass, when ours are
as far from it as JAX's are (root mean square, up to a factor; second moments, which hold squares, by their roots), or, for parameters, when about as many elements are: one sign more or
less moves the root mean square of a large tensor. Its gradient, the moment of the same name, is compared too.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[1]
TABLE = {"fp32": 2e-5, "bf16": 1.6e-2}  # tol_row in src/hlo/tol.c, relative part
LOSS = {"fp32": 1e-5, "bf16": 1e-3}
NOISE = 2.5  # noise of two implementations is equal only in its order
SIGNS = 3  # elements of a parameter, beside twice those of JAX

# model: exporter, dtype, options of the full size, options of the small one
GPT2_SMALL = ["--layers=2", "--width=64", "--heads=4", "--vocab=311"]
BERT_SMALL = ["--layers=2", "--width=64", "--heads=4", "--vocab=311", "--seq=32", "--batch=4"]
VIT_SMALL = ["--layers=2", "--width=64", "--heads=4", "--image=32", "--batch=4", "--classes=10"]
NET_SMALL = ["--batch=4", "--image=32", "--width=8", "--blocks=1,1", "--classes=10"]
RECOMMENDER_SMALL = ["--batch=32", "--tables=3", "--rows=50", "--width=8", "--bottom=16", "--top=16"]
MODELS = {
    "gpt2 1x1024 fp32": ("gpt2", "fp32", ["--batch=1", "--seq=1024"], [*GPT2_SMALL, "--batch=1", "--seq=128"]),
    "gpt2 1x1024 bf16": ("gpt2", "bf16", ["--batch=1", "--seq=1024", "--dtype=bf16"], [*GPT2_SMALL, "--batch=1", "--seq=128", "--dtype=bf16"]),
    "gpt2 4x256 fp32": ("gpt2", "fp32", ["--batch=4", "--seq=256"], [*GPT2_SMALL, "--batch=4", "--seq=32"]),
    "gpt2 4x256 bf16": ("gpt2", "bf16", ["--batch=4", "--seq=256", "--dtype=bf16"], [*GPT2_SMALL, "--batch=4", "--seq=32", "--dtype=bf16"]),
    "bert-large 8x128": ("bert", "fp32", [], BERT_SMALL),
    "vit-s/16 16x224": ("vit", "fp32", [], VIT_SMALL),
    "gpt2 1x1024 dropout": ("gpt2", "fp32", ["--batch=1", "--seq=1024", "--dropout=10"], [*GPT2_SMALL, "--batch=1", "--seq=256", "--dropout=10"]),
    "bert-large 8x128 dropout": ("bert", "fp32", ["--dropout=10"], [*BERT_SMALL, "--seq=128", "--dropout=10"]),
    "dlrm 512": ("dlrm", "fp32", [], RECOMMENDER_SMALL),
    "resnet50 8x224": ("resnet50", "fp32", [], NET_SMALL),
}


def run(args, **more):
    """Runs a command; its output, wall seconds and peak memory in bytes."""
    began = time.monotonic()
    child = subprocess.Popen([str(a) for a in args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    output = child.stdout.read()
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{' '.join(str(a) for a in args)[:400]}\n{output[-4000:]}\nstatus {child.returncode}")
    return output, time.monotonic() - began, used.ru_maxrss * 1024


def numbered(folder, pattern):
    return sorted(folder.glob(pattern), key=lambda p: int(re.findall(r"\d+", p.stem)[-1]))


def result_names(text):
    return re.findall(r'jax\.result_info = "([^"]*)"', text)


def widened(text):
    """The program with every narrower float as f64."""

    def constant(match):
        body, shape, kind = match.groups()
        bits = {"f32": (np.uint32, np.float32), "bf16": (np.uint16, None)}[kind]

        def wide(raw):
            if kind == "bf16":
                raw = (raw.astype(np.uint32) << 16).astype(np.uint32)
            return raw.view(np.float32).astype(np.float64)

        if body.startswith('"0x'):
            raw = np.frombuffer(bytes.fromhex(body[3:-1]), bits[0])
            return f'dense<"0x{wide(raw).tobytes().hex()}"> : tensor<{shape}f64>'
        number = wide(np.array([int(body, 16)], bits[0]))
        return f"dense<0x{number.view(np.uint64)[0]:016X}> : tensor<{shape}f64>"

    # bits of random numbers are those of f32
    text = re.sub(r"%(\S+) = stablehlo\.bitcast_convert (%\S+) : \((tensor<[^>]*ui32>)\) -> tensor<([^>]*)f32>",
                  r"%narrow_\1 = stablehlo.bitcast_convert \2 : (\3) -> tensor<\4narrow>\n    %\1 = stablehlo.convert %narrow_\1 : (tensor<\4narrow>) -> tensor<\4f32>", text)
    text = re.sub(r'dense<("?0x[0-9A-Fa-f]+"?)> : tensor<([0-9x]*)(b?f(?:32|16))>', constant, text)
    return re.sub(r"(?<=[x<\s])(?:bf16|f32)(?=[>\s,)])", "f64", text).replace("narrow>", "f32>")


def exact(folder, name):
    """Results of the program in float64, one at a time."""
    os.environ["JAX_ENABLE_X64"] = "1"
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax
    from jax._src import compiler, xla_bridge

    backend = xla_bridge.get_backend("cpu")
    options = compiler.get_compile_options(num_replicas=1, num_partitions=1)
    text = widened((folder / f"{name}.mlir").read_text())
    program = backend.compile_and_load(text, backend.local_devices()[:1], options)
    placed = []
    for path in numbered(folder, f"{name}_in_*.npy"):
        leaf = np.load(path)
        placed.append(jax.device_put(leaf.astype(np.float64) if leaf.dtype == np.float32 else leaf, jax.devices("cpu")[0]))
    results = program.execute_sharded(placed).disassemble_into_single_device_arrays()
    del placed
    for i in range(len(results)):
        yield np.asarray(results[i][0])
        results[i] = None


def rms(x):
    return float(np.sqrt(np.mean(np.square(x, dtype=np.float64)))) if x.size else 0.0


def compare(folder, name, dtype):
    """Results of the chip beside JAX's CPU and float64, as a dictionary for the table."""
    names = result_names((folder / f"{name}.mlir").read_text())
    ours = numbered(folder / "chip", "result_*.npy")
    theirs = numbered(folder, f"{name}_out_*.npy")
    assert len(ours) == len(theirs) == len(names), "another number of results"
    worst, worst_noise, tensors, noise, bad = (0, ""), (0, ""), 0, 0, []
    for path, other, label, true in zip(ours, theirs, names, exact(folder, name)):
        got, want = np.load(path), np.load(other)
        assert got.shape == want.shape == true.shape and got.dtype == want.dtype, label
        if got.dtype.kind != "f":
            if not np.array_equal(got, want):
                bad.append(label)
            continue
        tensors += 1
        gap = np.abs(got.astype(np.float64) - want)
        apart = float(gap.max() / (np.abs(want).max() or 1)) if got.size else 0.0
        if not apart <= TABLE[dtype]:  # NaN is outside
            noise += 1
            as_gradient = np.sqrt if ".nu" in label else np.asarray  # squares: twice the noise is four times as far
            near, far = (rms(as_gradient(x.astype(np.float64)) - as_gradient(true)) for x in (got, want))
            ratio = near / (far or 1e-30)
            worst_noise = max(worst_noise, (ratio, label))
            room = TABLE[dtype] * np.abs(true).max()
            out, out_jax = (int((~(np.abs(x - true) <= room)).sum()) for x in (got, want))
            signs = label.startswith("result[0]") and out <= 2 * out_jax + SIGNS and np.isfinite(got).all()
            if not (ratio <= NOISE or signs):
                bad.append(f"{label}: {apart:.1e} of its largest element apart, {ratio:.2f} times JAX's distance to float64 "
                           f"({out} and {out_jax} of {got.size} elements are outside)")
        else:
            worst = max(worst, (apart, label))
    ours, jax_, true = float(got), float(want), float(true)  # the loss is the last
    if not abs(ours - jax_) <= LOSS[dtype] * abs(jax_):
        bad.append(f"loss {ours:.9g}, JAX {jax_:.9g}, float64 {true:.9g}")
    return dict(loss=ours, jax=jax_, exact=true, tensors=tensors, noise=noise, worst=worst, worst_noise=worst_noise, bad=bad)


def one(title, o):
    exporter, dtype, full, small = MODELS[title]
    folder = pathlib.Path(o.folder) / re.sub(r"\W+", "-", title)
    shutil.rmtree(folder, ignore_errors=True)
    env = {**os.environ, "JAX_PLATFORMS": "cpu"}
    script = ROOT / "examples" / "jax" / f"export_{exporter}.py"
    run([sys.executable, script, f"--out={folder}", "--cpu", *(small if o.small else full)], env=env)
    otrn, artifact = o.otrn, folder / "step.otrn"
    _, compile_s, _ = run([otrn, "compile", folder / f"{exporter}.mlir", "-o", artifact, "--cache=off", f"--target={o.target}"])
    report = json.loads(run([otrn, "prof", artifact, "--json"])[0])
    inputs = [f"--input={p}" for p in numbered(folder, f"{exporter}_in_*.npy")]
    text, _, memory = run([otrn, "run", artifact, *inputs, f"--output={folder / 'chip'}", "--host-profile"])
    row = json.loads(run([sys.executable, __file__, "--compare", folder, exporter, dtype])[0])
    busy = {k: v["busy_us"] / report["total_us"] for k, v in report["engines"].items()}
    limit = 1.3 * report["hbm_peak_bytes"] + 300e6
    if memory > limit:
        row["bad"].append(f"host memory {memory / 1e6:.0f} MB, more than {limit / 1e6:.0f} MB")
    row.update(title=title, model_us=report["total_us"], gpsimd=busy["gpsimd"], tensor=busy["tensor"], compile_s=compile_s,
               host_s=float(re.search(r"host: ([0-9.]+) s", text)[1]), memory=memory, planned=report["hbm_peak_bytes"])
    if not o.keep:
        shutil.rmtree(folder)
    return row


HEAD = (f"{'model':17} {'loss':>11} {'JAX CPU':>11} {'apart':>7} {'float64':>11} {'tensors':>7} {'noise':>5} {'worst':>7} {'ratio':>5} "
        f"{'step ms':>8} {'GpSimd':>6} {'tensor':>6} {'comp s':>6} {'host s':>6} {'MB':>5} {'plan':>5}")


def line(r):
    apart = abs(r["loss"] - r["jax"]) / abs(r["jax"])
    return (f"{r['title']:17} {r['loss']:11.7g} {r['jax']:11.7g} {apart:7.0e} {r['exact']:11.7g} {r['tensors']:7} {r['noise']:5} "
            f"{r['worst'][0]:7.0e} {r['worst_noise'][0]:5.2f} {r['model_us'] / 1e3:8.2f} {r['gpsimd']:6.1%} {r['tensor']:6.1%} {r['compile_s']:6.2f} "
            f"{r['host_s']:6.2f} {r['memory'] / 1e6:5.0f} {r['planned'] / 1e6:5.0f}")


def main():
    if sys.argv[1:2] == ["--compare"]:  # a process of its own: float64 takes much memory, and gives it back
        print(json.dumps(compare(pathlib.Path(sys.argv[2]), *sys.argv[3:])))
        return
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="models whose name contains one of these, comma between")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--folder", default=str(ROOT / "build" / "models"), help="for the files, removed afterwards")
    parser.add_argument("--keep", action="store_true", help="leave them")
    parser.add_argument("--otrn", default=str(ROOT / "build" / "otrn"))
    parser.add_argument("--target", default="trn2")
    o = parser.parse_args()
    print(HEAD, flush=True)
    failed = 0
    for title in [t for t in MODELS if any(part in t for part in o.only.split(","))]:
        row = one(title, o)
        print(line(row), flush=True)
        for label in ("worst", "worst_noise"):
            if row[label][1]:
                print(f"    {label.replace('_', ' ')}: {row[label][1]}")
        for why in row["bad"]:
            print(f"    OUTSIDE {why}", flush=True)
        failed += bool(row["bad"])
    print("loss and all parameters agree" if not failed else f"{failed} outside")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
