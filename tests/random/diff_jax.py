# SPDX-License-Identifier: Apache-2.0
"""Random programs on opentrn's chip against JAX's CPU.

    python tests/random/diff_jax.py [PROGRAMS [SEED]]
    python tests/random/diff_jax.py --minutes M [SEED]
    python tests/random/diff_jax.py --differs FILE SEED     succeeds when the two differ on this program

build/tests/unit/random_test writes programs, inputs and the chip's results; XLA compiles and runs the same text. Integers and bool
must be equal. Floats are compared within a tolerance, since XLA contracts multiply and add and sums in another order. A difference
prints the seed and the program's file, and is reduced by `otrn reduce` with --differs as its test. Programs that XLA refuses or
that stop it are counted apart.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import time

os.environ["JAX_ENABLE_X64"] = "1" # programs use 64-bit types
os.environ["JAX_PLATFORMS"] = "cpu"
import ml_dtypes
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("BUILD", ROOT / "build"))
WRITER = BUILD / "tests/unit/random_test"
WIDTH = {2: 2**-6, 4: 2**-16, 8: 2**-40} # relative tolerance by element bytes; XLA works in f32 for the narrow ones
BATCH = 200 # programs written at a time


def dtype_of(name):
    """numpy's type for StableHLO's name."""
    special = {"i1": np.bool_, "bf16": ml_dtypes.bfloat16, "complex<f32>": np.complex64, "complex<f64>": np.complex128,
               "i2": ml_dtypes.int2, "i4": ml_dtypes.int4, "ui2": ml_dtypes.uint2, "ui4": ml_dtypes.uint4}
    if name in special:
        return np.dtype(special[name])
    if "E" in name: # f8E4M3FN is float8_e4m3fn
        return np.dtype(getattr(ml_dtypes, f"float{name[1]}_{name[2:].lower()}"))
    return np.dtype(name.replace("ui", "uint") if name[0] == "u" else name.replace("i", "int") if name[0] == "i" else "float" + name[1:])


def run_xla(text, args):
    import jax
    from jax._src import compiler, xla_bridge
    backend = xla_bridge.get_backend("cpu")
    options = compiler.get_compile_options(num_replicas=1, num_partitions=1)
    text = text if text.startswith("module") else "module @random {\n" + text + "}"
    exe = backend.compile_and_load(text, backend.local_devices()[:1], options)
    placed = [jax.device_put(a, jax.devices("cpu")[0]) for a in args]
    return [np.asarray(x[0]) for x in exe.execute_sharded(placed).disassemble_into_single_device_arrays()]


def load(path):
    x, want = np.load(path), dtype_of(path.stem.split("_", 3)[3])
    return x if x.dtype == want else x.view(want)


def close(got, want):
    if got.dtype.kind == "c":
        return close(got.real, want.real) and close(got.imag, want.imag)
    if got.dtype.kind in "biu" or got.dtype.name.startswith(("int", "uint")):
        return np.array_equal(got.astype(np.int64), want.astype(np.int64)) # 64-bit patterns survive the cast
    g, w = got.astype(np.float64), want.astype(np.float64)
    if got.dtype.itemsize == 1: # both sides round once: the neighbour at most
        tol = 2.0 ** -ml_dtypes.finfo(got.dtype).nmant
        least = float(ml_dtypes.finfo(got.dtype).smallest_subnormal)
    else:
        tol, least = WIDTH[got.dtype.itemsize], 1
    with np.errstate(invalid="ignore"):
        ok = (g == w) | (np.isnan(g) & np.isnan(w)) | (np.abs(g - w) <= np.maximum(tol * np.maximum(least, np.abs(w)), least * (tol if least == 1 else 1)))
    return bool(ok.all())


def only_nan(got, want):
    """They are apart only where XLA has a NaN and the chip has not."""
    if got.dtype.kind != "f" and got.dtype.name != "bfloat16":
        return False
    nan = np.isnan(want.astype(np.float64)) & ~np.isnan(got.astype(np.float64))
    return close(np.where(nan, 0, got).astype(got.dtype), np.where(nan, 0, want).astype(want.dtype))


def check(folder, n):
    """One program; what differs, or an empty string."""
    text = (folder / f"{n}.mlir").read_text()
    number = lambda p: int(p.stem.split("_")[2])
    args = [load(p) for p in sorted(folder.glob(f"{n}_in_*.npy"), key=number)]
    outs = sorted(folder.glob(f"{n}_out_*.npy"), key=number)
    try:
        want = run_xla(text, args)
    except Exception as e: # XLA refuses it, with a reason
        return "XLA: " + str(e).strip().splitlines()[0][:120]
    bad = [i for i, (p, w) in enumerate(zip(outs, want)) if not close(load(p), w)]
    if not bad:
        return ""
    if "stablehlo.atan2" in text and all(only_nan(load(outs[i]), want[i]) for i in bad):
        return "known: atan2(0, 0) of f32 is NaN in XLA unless it is folded, and 0 by definition"
    return f"results {bad} differ, e.g. {load(outs[bad[0]]).ravel()[:6]} against {want[bad[0]].ravel()[:6]}"


def child(folder, first, count):
    for n in range(first, count):
        print(n, flush=True) # so that the parent knows where a crash happened
        why = check(folder, n)
        if why:
            print(f"- {why}", flush=True)


def differs(path, seed):
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run([WRITER, "run", path, seed, folder], stdout=subprocess.DEVNULL)
        why = run.returncode == 0 and check(pathlib.Path(folder), 0)
        return 0 if why and not why.startswith(("XLA: ", "known: ")) else 1


class Totals:
    programs = different = known = refused = stopped = 0


def reduce(keep, seed):
    small = keep.with_name(keep.stem + "_small.mlir")
    test = f"{sys.executable} {__file__} --differs %s {seed}"
    run = subprocess.run([BUILD / "otrn", "reduce", keep, f"--test={test}", "-o", small], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    print(f"  {'not reduced' if run.returncode else 'reduced'}: {small}", flush=True)


def run_batch(count, seed, totals):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([WRITER, "write", folder, str(count), str(seed)], check=True, stdout=subprocess.DEVNULL)
        first = 0
        while first < count: # XLA can crash on a program of its own accord (integer division does): go on behind it
            run = subprocess.run([sys.executable, __file__, "--child", folder, str(first), str(count)],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            if run.returncode == 1: # an exception of ours
                sys.exit(run.stderr)
            for line in run.stdout.splitlines():
                if line.startswith("- XLA: "):
                    totals.refused += 1
                elif line.startswith("- known: "):
                    totals.known += 1
                    print(f"seed {seed + at}: {line[2:]}", flush=True)
                elif line.startswith("- "):
                    totals.different += 1
                    keep = pathlib.Path(f"diff_{seed + at}.mlir")
                    keep.write_text(pathlib.Path(folder, f"{at}.mlir").read_text())
                    print(f"seed {seed + at}: {line[2:]}; {keep}", flush=True)
                    reduce(keep, seed + at)
                else:
                    at = int(line)
            first = count
            if run.returncode:
                totals.stopped += 1
                first = at + 1
        totals.programs += count


def main():
    args = sys.argv[1:]
    if args[:1] == ["--child"]:
        return child(pathlib.Path(args[1]), int(args[2]), int(args[3]))
    if args[:1] == ["--differs"]:
        return differs(args[1], args[2])
    minutes = float(args[1]) if args[:1] == ["--minutes"] else 0
    count = int(args[0]) if args and not minutes else 100
    seed = int(args[-1]) if len(args) > (2 if minutes else 1) else 1
    totals, begin = Totals(), time.time()
    while time.time() - begin < 60 * minutes if minutes else totals.programs < count:
        run_batch(BATCH if minutes else count, seed + totals.programs, totals)
    print(f"chip and JAX CPU: {totals.programs} programs from seed {seed}, {totals.different} differences without an explanation, {totals.known} with; "
          f"XLA refused {totals.refused} more and stopped itself at {totals.stopped}")
    return totals.different > 0


if __name__ == "__main__":
    sys.exit(main())
