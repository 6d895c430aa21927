# SPDX-License-Identifier: Apache-2.0
"""How long `otrn train` prepares before its first step when its program is in the cache: 20 second starts of the default model.

    python bench/start_bench.py [--starts=20]

Printed are the quickest, the median and the slowest, in milliseconds. Bar: a median of 50. Exit status 1 above.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
BAR = 50


def start(otrn, folder):
    words = [otrn, "train", "--steps=1", "--sample=0", f"--log={folder}/log", f"--cache-dir={folder}/cache"]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return json.loads(open(f"{folder}/log").readline())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--starts", type=int, default=20)
    parser.add_argument("--otrn", default=str(ROOT / "build" / "otrn"))
    o = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        first = start(o.otrn, folder)
        rows = [start(o.otrn, folder) for _ in range(o.starts)]
    assert not first["cached"] and all(row["cached"] for row in rows)
    times = sorted(row["start_ms"] for row in rows)
    print(f"first start {first['start_ms']:.1f} ms; from the cache {times[0]:.1f} at best, median {statistics.median(times):.1f}, {times[-1]:.1f} at worst")
    return 0 if statistics.median(times) <= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
