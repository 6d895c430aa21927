# SPDX-License-Identifier: Apache-2.0
"""Random programs on opentrn's chip against JAX's CPU.

    python tests/random/diff_jax.py [PROGRAMS [SEED]]

build/tests/unit/random_test writes programs, inputs and the chip's results; XLA compiles and runs the same text.
Integers and bool must be equal. Floats are compared within a tolerance, since XLA contracts multiply and add and
sums in another order; where the program says a result is not exact the tolerance is wider. A difference prints the
seed and the program's file.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

os.environ["JAX_ENABLE_X64"] = "1" # programs use 64-bit types
os.environ["JAX_PLATFORMS"] = "cpu"
import jax
import ml_dtypes
import numpy as np
from jax._src import compiler, xla_bridge

ROOT = pathlib.Path(__file__).resolve().parents[2]
WIDTH = {2: 2**-6, 4: 2**-16, 8: 2**-40} # relative tolerance by element bytes; XLA works in f32 for the narrow ones


def run_xla(backend, text, args):
    options = compiler.get_compile_options(num_replicas=1, num_partitions=1)
    exe = backend.compile_and_load("module @random {\n" + text + "}", backend.local_devices()[:1], options)
    placed = [jax.device_put(a, jax.devices("cpu")[0]) for a in args]
    return [np.asarray(x[0]) for x in exe.execute_sharded(placed).disassemble_into_single_device_arrays()]


def load(path):
    x = np.load(path)
    if x.dtype.kind == "V":
        x = x.view(ml_dtypes.bfloat16 if x.dtype.itemsize == 2 else np.uint8)
    return x


def close(got, want):
    if got.dtype.kind in "biu":
        return np.array_equal(got, want)
    g, w = got.astype(np.float64), want.astype(np.float64)
    tol = WIDTH[got.dtype.itemsize]
    with np.errstate(invalid="ignore"):
        ok = (g == w) | (np.isnan(g) & np.isnan(w)) | (np.abs(g - w) <= tol * np.maximum(1, np.abs(w)))
    return bool(ok.all())


def check(folder, n):
    """One program; what differs, or an empty string."""
    text = (folder / f"{n}.mlir").read_text()
    number = lambda p: int(p.stem.split("_")[2])
    args = [load(p) for p in sorted(folder.glob(f"{n}_in_*.npy"), key=number)]
    outs = sorted(folder.glob(f"{n}_out_*.npy"), key=number)
    want = run_xla(xla_bridge.get_backend("cpu"), text, args)
    bad = [i for i, (p, w) in enumerate(zip(outs, want)) if not close(load(p), w)]
    if not bad:
        return ""
    return f"results {bad} differ, e.g. {load(outs[bad[0]]).ravel()[:6]} against {want[bad[0]].ravel()[:6]}"


def child(folder, first, count):
    for n in range(first, count):
        print(n, flush=True) # so that the parent knows where a crash happened
        why = check(folder, n)
        if why:
            print(f"- {why}", flush=True)


def main():
    if sys.argv[1:2] == ["--child"]:
        return child(pathlib.Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    failed = skipped = first = 0
    with tempfile.TemporaryDirectory() as folder:
        writer = ROOT / "build/tests/unit/random_test"
        subprocess.run([writer, "write", folder, str(count), str(seed)], check=True, stdout=subprocess.DEVNULL)
        while first < count: # XLA can crash on a program of its own accord (integer division does): go on behind it
            run = subprocess.run([sys.executable, __file__, "--child", folder, str(first), str(count)],
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            for line in run.stdout.splitlines():
                if line.startswith("- "):
                    failed += 1
                    keep = pathlib.Path(f"diff_{seed + at}.mlir")
                    keep.write_text(pathlib.Path(folder, f"{at}.mlir").read_text())
                    print(f"seed {seed + at}: {line[2:]}; {keep}")
                else:
                    at = int(line)
            first = count
            if run.returncode:
                skipped += 1
                first = at + 1
                print(f"seed {seed + at}: XLA itself stopped with status {run.returncode}")
    print(f"{count - failed - skipped} passed, {failed} failed, {skipped} skipped")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
