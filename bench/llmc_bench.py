# SPDX-License-Identifier: Apache-2.0
"""`otrn train` of GPT-2 124M beside llm.c's CPU program, in turns: tokens per second on this host.

    git clone https://github.com/karpathy/llm.c /tmp/llm.c && cd /tmp/llm.c
    gcc -Ofast -march=native -fopenmp -DOMP train_gpt2.c -lm -o /tmp/gpt2_64                        # T is in the source
    sed 's/int T = 64;/int T = 256;/' train_gpt2.c > t256.c && gcc -Ofast -march=native -fopenmp -DOMP t256.c -lm -o /tmp/gpt2_256
    python bench/llmc_bench.py 64=/tmp/gpt2_64 256=/tmp/gpt2_256 [--rounds=3] [--steps=3] [--cast=none,matmult]

Batch 4, forward, backward, AdamW; ours also clips. Weights and tokens are made here, in the form that program reads: time does not
depend on them. A round runs each contestant once, for a first step that is not counted and `--steps` that are; printed are
medians over all rounds, of wall time and of processor time, and the ratio in tokens per second. Bar: 1.5. Exit status 1 below.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
BAR, BATCH = 1.5, 4
VOCAB, PADDED, LAYERS, WIDTH, LONGEST = 50257, 50304, 12, 768, 1024


def inputs(folder):
    import numpy as np

    rng = np.random.default_rng(0)
    square = LAYERS * WIDTH * WIDTH
    norm = [(LAYERS * WIDTH, 0, 1), (LAYERS * WIDTH, 0, 0)]  # count, deviation, mean
    sizes = [(PADDED * WIDTH, 0.02, 0), (LONGEST * WIDTH, 0.02, 0), *norm, (3 * square, 0.02, 0), (3 * LAYERS * WIDTH, 0, 0),
             (square, 0.004, 0), (LAYERS * WIDTH, 0, 0), *norm, (4 * square, 0.02, 0), (4 * LAYERS * WIDTH, 0, 0),
             (4 * square, 0.004, 0), (LAYERS * WIDTH, 0, 0), (WIDTH, 0, 1), (WIDTH, 0, 0)]
    head = np.zeros(256, "<i4")
    head[:8] = 20240326, 3, LONGEST, VOCAB, LAYERS, 12, WIDTH, PADDED
    with open(folder / "gpt2_124M.bin", "wb") as f:
        f.write(head.tobytes())
        for count, deviation, mean in sizes:
            f.write((rng.standard_normal(count, dtype="f4") * np.float32(deviation) + np.float32(mean)).tobytes())
    data = folder / "dev" / "data" / "tinyshakespeare"
    data.mkdir(parents=True)
    head[:8] = 20240520, 1, 100000, 0, 0, 0, 0, 0
    for name in "train", "val":
        (data / f"tiny_shakespeare_{name}.bin").write_bytes(head.tobytes() + rng.integers(0, VOCAB, 100000, dtype="<u2").tobytes())
    return data / "tiny_shakespeare_train.bin"


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def timed(command, folder, is_step, steps):
    """Wall and processor seconds between lines that end a step; the program is ended behind the last."""
    p = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    marks, said = [], []
    for line in p.stdout:
        said.append(line)
        if is_step(line):
            marks.append((time.perf_counter(), cpu_seconds(p.pid)))
        if len(marks) > steps:
            break
    p.kill()
    p.wait()
    if len(marks) <= steps:
        sys.exit(f"{command[0]} ended before its step {steps}:\n{''.join(said[-20:])}")
    return [(b[0] - a[0], b[1] - a[1]) for a, b in zip(marks, marks[1:])]


def theirs(o, folder, binary, seq, steps):
    return timed(["stdbuf", "-oL", binary], folder, lambda line: line.startswith("step ") and "took" in line, steps)


def ours(o, folder, tokens, seq, cast, steps):
    words = [str(o.otrn), "train", "--layers=12", "--heads=12", f"--dim={WIDTH}", f"--vocab={VOCAB}", f"--seq={seq}", f"--batch={BATCH}",
             f"--steps={steps + 1}", "--sample=0", f"--data={tokens}", f"--auto-cast={cast}", "--weight-decay=0", "--warmup=0"]
    return timed(words, folder, lambda line: line.startswith("otrn: step "), steps)


def contest(o, folder, tokens, seq, binary):
    names = ["llm.c", *o.cast.split(",")]
    times = {name: [] for name in names}
    for _ in range(o.rounds):
        times["llm.c"] += theirs(o, folder, binary, seq, o.steps)
        for name in names[1:]:
            times[name] += ours(o, folder, tokens, seq, name, o.steps)
    medians = {name: [statistics.median(t[k] for t in times[name]) for k in (0, 1)] for name in names}
    ratios = []
    for name in names:
        wall, cpu = medians[name]
        ratio, cpu_ratio = medians["llm.c"][0] / wall, medians["llm.c"][1] / cpu
        label = {"llm.c": "llm.c", "none": "otrn fp32", "matmult": "otrn bf16 products"}.get(name, name)
        print(f"B={BATCH} T={seq:<4} {label:18} {BATCH * seq / wall:8.1f} tokens/s  {wall:7.3f} s/step  {cpu:7.3f} CPU s/step"
              + (f"  ratio {ratio:.2f} (CPU {cpu_ratio:.2f})" if name != "llm.c" else ""), flush=True)
        if name != "llm.c":
            ratios.append(ratio)
    return max(ratios)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binaries", nargs="+", metavar="SEQ=PATH", help="llm.c's program compiled for so many tokens")
    parser.add_argument("--otrn", type=pathlib.Path, default=ROOT / "build" / "otrn")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--cast", default="none,matmult", help="values of --auto-cast")
    o = parser.parse_args()
    good = True
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/tmp")) as folder:
        folder = pathlib.Path(folder)
        tokens = inputs(folder)
        for pair in o.binaries:
            seq, _, binary = pair.partition("=")
            good &= contest(o, folder, tokens, int(seq), str(pathlib.Path(binary).resolve())) >= BAR
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
