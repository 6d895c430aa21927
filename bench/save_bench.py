# SPDX-License-Identifier: Apache-2.0
"""What saving costs a run: GPT-2 124M in `otrn train`, whose state has 1.5 GB, with and without checkpoints, in turns.

    python bench/save_bench.py [--every=10] [--rounds=3] [--folder=DIR] [--seq=64]

A save every `--every` steps: compared are as many steps, from the copy of the state on, while its file is written, with the same
steps of a run that saves nothing, by wall time and by processor time. Printed is the ratio of the medians, and what it would be with a
checkpoint every 100 steps, the default. Bar: 1.05 of the time. Exit status 1 above.
"""

import argparse
import json
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
BAR = 1.05


def run(o, folder, saves):
    """Seconds of the steps behind the first save; processor seconds of the whole run."""
    words = [o.otrn, "train", "--layers=12", "--dim=768", "--heads=12", "--vocab=50257", f"--seq={o.seq}", "--batch=4", f"--steps={2 * o.every}",
             "--sample=0", f"--data={folder}/tokens.bin", f"--log={folder}/log"]  # fmt: skip
    if saves:
        words += [f"--checkpoint={folder}/run", f"--checkpoint-every={o.every}", "--keep=1"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    rows = [row for row in map(json.loads, open(folder / "log")) if "seconds" in row]
    subprocess.run(["rm", "-rf", folder / "run"], check=True)
    return sum(row["seconds"] for row in rows[o.every :]), after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seq", type=int, default=64)
    parser.add_argument("--folder", default=None, help="where checkpoints go")
    parser.add_argument("--otrn", default=str(ROOT / "build" / "otrn"))
    o = parser.parse_args()
    import numpy as np

    times = {False: [], True: []}
    with tempfile.TemporaryDirectory(dir=o.folder) as folder:
        folder = pathlib.Path(folder)
        np.random.default_rng(0).integers(0, 50257, 100000, dtype="<u2").tofile(folder / "tokens.bin")
        for _ in range(o.rounds):
            for saves in times:
                times[saves].append(run(o, folder, saves))
    (plain, cpu), (saving, cpu_saving) = ([statistics.median(t[k] for t in times[s]) for k in (0, 1)] for s in (False, True))
    ratio, cost = saving / plain, saving - plain
    print(f"{o.every} steps: {plain:.2f} s without, {saving:.2f} s with a save of 1.5 GB: {cost:+.2f} s, ratio {ratio:.3f}; every 100 steps {1 + cost / (100 * plain / o.every):.4f}")
    print(f"processor time of the run and its two saves: {cpu:.2f} and {cpu_saving:.2f} s, so {(cpu_saving - cpu) / 2:.2f} s a save")
    return 0 if ratio <= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
