# SPDX-License-Identifier: Apache-2.0
"""Do two compilers make the same instructions? For changes of shape that must change no program.

    make same SINCE=beb2bff             # every program below, for each chip and both numbers of cores, beside that commit's
    make same SINCE=HEAD T=conv         # those whose path has conv; the commit before what is not committed yet

Programs are those of tests/, examples/mlir, ../shared/conformance (every tenth) and the steps that `make zoo` has exported (build/zoo/steps). A program is the same when
`otrn dis` writes the same text of it: instructions with their waits, kernels, constants, places. One that has the same instructions in another order is
counted as woven otherwise. What the old compiler refuses the new one has to refuse with the same words. Status 1 when something differs; the first line
that does is shown.
"""

import argparse
import concurrent.futures
import hashlib
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts" / "zoo"))
WAYS = (("trn1", 1), ("trn2", 1), ("trn2", 2), ("trn3", 1), ("trn3", 2))


def programs(build, only):
    steps = [next(f for f in (at / "step.mlirbc", at / "step.mlir") if f.exists()) for at in (build / "zoo" / "steps").glob("*/") if list(at.glob("step.mlir*"))]
    found = [*ROOT.glob("tests/**/*.mlir"), *ROOT.glob("examples/mlir/*.mlir"), *steps]
    conformance = sorted((ROOT.parent / "shared" / "conformance").glob("**/*.mlir"))
    return sorted(p for p in [*found, *conformance[::10]] if any(part in str(p) for part in only.split(",")))


def text(otrn, path, chip, cores, folder):
    """What a compiler makes of a program: its disassembly, or its error."""
    artifact = folder / f"{otrn.parent.parent.name}-{hashlib.sha256(str(path).encode()).hexdigest()[:16]}-{chip}-{cores}.otrn"
    made = subprocess.run([otrn, "compile", path, "-o", artifact, f"--target={chip}", f"--lnc={cores}", "--cache=off"], capture_output=True, text=True)
    if made.returncode or not artifact.exists():
        return re.sub(r"^.*warning.*\n", "", made.stderr, flags=re.M)
    said = subprocess.run([otrn, "dis", artifact], capture_output=True, text=True).stdout
    artifact.unlink()
    return said


def sums(said):
    """Of a program as it is, and of its instructions without waits in any order."""
    lines = sorted(re.sub(r" wait\([^)]*\)", "", line) for line in said.split("\n"))
    return [hashlib.sha256(t.encode()).hexdigest() for t in (said, "\n".join(lines))]


class Known:
    """Checksums of what the old compiler made, kept beside it: it makes the same again."""

    def __init__(self, otrn):
        self.file = otrn.parent / f"same-{hashlib.sha256(otrn.read_bytes()).hexdigest()[:16]}.json"
        self.sums = json.loads(self.file.read_text()) if self.file.exists() else {}

    def of(self, otrn, path, chip, cores, folder):
        key = f"{path} {hashlib.sha256(path.read_bytes()).hexdigest()[:16]} {chip} {cores}"
        if key not in self.sums:
            self.sums[key] = sums(text(otrn, path, chip, cores, folder))
        return self.sums[key]

    def keep(self):
        self.file.write_text(json.dumps(self.sums))


def compare(known, old, new, path, chip, cores, folder):
    after = text(new, path, chip, cores, folder)
    before, now = known.of(old, path, chip, cores, folder), sums(after)
    if before[1] == now[1]:
        return None if before[0] == now[0] else ""
    before = text(old, path, chip, cores, folder)
    pairs = itertools.zip_longest(before.split("\n"), after.split("\n"))
    number, (one, two) = next((i, p) for i, p in enumerate(pairs, 1) if p[0] != p[1])
    return f"{path} {chip} lnc={cores} line {number}\n  - {one}\n  + {two}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--since", required=True, help="a commit, or a path of another otrn")
    parser.add_argument("--only", default="", help="programs whose path has it; comma between several")
    parser.add_argument("--ways", default="", help="of trn1:1,trn2:2 …; all of them")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    o = parser.parse_args()
    if os.access(o.since, os.X_OK) and os.path.isfile(o.since):
        old = pathlib.Path(o.since).resolve()
    else:
        import zoo

        old = zoo.Release(o.since, o.build, o.jobs).otrn.resolve()
    new, ways = (o.build / "otrn").resolve(), [w for w in WAYS if not o.ways or f"{w[0]}:{w[1]}" in o.ways.split(",")]
    known = Known(old)
    work = [(p, *w) for p in programs(o.build, o.only) for w in ways]
    with tempfile.TemporaryDirectory() as tmp, concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
        found = list(pool.map(lambda w: compare(known, old, new, *w, pathlib.Path(tmp)), work))
    differ = [d for d in found if d]
    known.keep()
    print("\n".join(differ[:40]))
    print(f"{len(work)} programs for chips and cores, {found.count('')} woven otherwise, {len(differ)} differ")
    return bool(differ)


if __name__ == "__main__":
    sys.exit(main())
