# SPDX-License-Identifier: Apache-2.0
"""What saving costs a run: GPT-2 124M in `otrn train`, whose state has 1.5 GB, with and without checkpoints, in turns.

    python bench/save_bench.py [--every=10] [--rounds=4] [--periods=1] [--folder=DIR] [--seq=64]

A save every `--every` steps. Compared are `--periods` times as many steps, each time from the copy of the state on and while its files
are written, with the same steps of a run that saves nothing: all their time, of each step the least of the rounds, because steps alike
differ by a sixth on a machine with neighbours. The steps before the first save, beside which the memory for the copy is found, once in a
run, are told apart. So is processor time, with what threads wait in. Bar: 1.05 of the time. Exit status 1 above.
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
    """Seconds of each step; processor seconds of the whole run."""
    words = [o.otrn, "train", "--layers=12", "--dim=768", "--heads=12", "--vocab=50257", f"--seq={o.seq}", "--batch=4",
             f"--steps={(1 + o.periods) * o.every}", "--sample=0", f"--data={folder}/tokens.bin", f"--log={folder}/log"]  # fmt: skip
    if saves:
        words += [f"--checkpoint={folder}/run", f"--checkpoint-every={o.every}", "--keep=1"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = [row["seconds"] for row in map(json.loads, open(folder / "log")) if "seconds" in row]
    subprocess.run(["rm", "-rf", folder / "run"], check=True)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--periods", type=int, default=1)
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
    least = {saves: [min(steps) for steps in zip(*(t[0] for t in times[saves]))] for saves in times}
    cpu, cpu_saving = (statistics.median(t[1] for t in times[saves]) for saves in times)
    plain, saving = (sum(least[saves][o.every :]) for saves in times)
    begin, begin_saving = (sum(least[saves][: o.every]) for saves in times)
    ratio, cost = saving / plain, (saving - plain) / o.periods
    print(f"{o.periods * o.every} steps: {plain:.2f} s without, {saving:.2f} s with a save of 1.5 GB every {o.every}: ratio {ratio:.3f}; "
          f"{cost:+.2f} s a save, so every 100 steps {1 + cost * o.periods * o.every / (100 * plain):.4f}")  # fmt: skip
    print(f"steps before the first save: {begin:.2f} and {begin_saving:.2f} s")
    print(f"processor time of whole runs: {cpu:.2f} and {cpu_saving:.2f} s, so {(cpu_saving - cpu) / (1 + o.periods):.2f} s a save with all that it needs")
    return 0 if ratio <= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
