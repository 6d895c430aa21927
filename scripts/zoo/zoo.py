# SPDX-License-Identifier: Apache-2.0
"""Training steps of many kinds, compiled and priced for every chip, beside an earlier release.

    make zoo                            # all steps of table.py on trn1, trn2 and trn3
    make zoo SINCE=ad050a9 T=gpt        # the change since that commit or tag, of those whose name has gpt; exit status 1 when one is slower
    make zoo JSON=zoo.json              # the rows for a program

Steps are exported once (JAX, without data or a run) into build/zoo; the earlier release is built once in build/since-COMMIT and its prices are kept.
Both sides compile for one core. The clock may have changed too: "its clock" is the old release's program priced by itself, "today" the
old program, disassembled by the old release, assembled and priced by today's; the change is counted from the latter wherever it can be made
(a dash where not, then from the former, marked ~). roof: modelled time over what FLOP and HBM bytes of the program alone would take.
"""

import argparse
import concurrent.futures
import fnmatch
import hashlib
import importlib.metadata
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import table

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHIPS = ("trn1", "trn2", "trn3")
SLOWER = 1.01
ENGINES = {"tensor": "tens", "vector": "vect", "scalar": "scal", "gpsimd": "gpsi", "dma_in": "in", "dma_out": "out"}


def run(*args, **more):
    return subprocess.run([str(a) for a in args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)


def must(*args, **more):
    ran = run(*args, **more)
    if ran.returncode:
        sys.exit(f"{' '.join(map(str, args))}\n{ran.stdout}{ran.stderr}")
    return ran.stdout


# Steps as files


def stamp(kind, what):
    """Changes when a step's sources or sizes do."""
    seen = hashlib.sha256(repr((kind, what, importlib.metadata.version("jax"))).encode())
    for path in table.KINDS[kind][1](what):
        seen.update((ROOT / path).read_bytes())
    return seen.hexdigest()[:16]


def place(folder, name):
    return folder / "steps" / re.sub(r"\W+", "-", name)


def export(name, kind, what, folder):
    """Writes a step into its place, as step.mlirbc, or step.mlir where there is no portable form of it."""
    at = place(folder, name)
    at.mkdir(parents=True, exist_ok=True)
    sys.path[:0] = [str(ROOT / "examples" / "jax")] if str(ROOT / "examples" / "jax") not in sys.path else []
    if kind == "exporter":
        script, options = what
        plain = [] if script in ("llama", "mlp") else ["--no-inputs"]
        env = {**os.environ, "JAX_PLATFORMS": "cpu"}
        must(sys.executable, ROOT / "examples" / "jax" / f"export_{script}.py", f"--out={at}", *plain, *options, env=env)
        for old in at.glob(f"{script}.mlir*"):
            old.rename(at / f"step{old.suffix}")
        for data in at.glob("*.npy"):
            data.unlink()
    else:
        import export_common

        export_common.save(table.KINDS[kind][0](what), (), at, "step", inputs=False)
    (at / "stamp").write_text(stamp(kind, what))


def files(rows, folder):
    """The file of each step, exported where it is missing or old."""
    for name, kind, what in rows:
        at = place(folder, name)
        if not (at / "stamp").exists() or (at / "stamp").read_text() != stamp(kind, what):
            os.environ.setdefault("JAX_PLATFORMS", "cpu")
            print(f"exporting {name}", file=sys.stderr, flush=True)
            for old in at.glob("step.*"):
                old.unlink()
            export(name, kind, what, folder)
    portable = lambda at: at / "step.mlirbc" if (at / "step.mlirbc").exists() else at / "step.mlir"
    return {name: portable(place(folder, name)) for name, _, _ in rows}


# Prices


def figures(report):
    roof = max(report["roof"]["compute_us"], report["roof"]["memory_us"])
    return {"us": report["total_us"], "hbm_bytes": report["hbm_bytes"], "roof_us": roof, "flops": report["flops"],
            "busy": {e: report["engines"][e]["busy_us"] / report["total_us"] for e in ENGINES},
            "instructions": sum(e["instructions"] for e in report["engines"].values())}  # fmt: skip


def price(otrn, path, chip, options=(), today=None):
    """What a release makes of a step; with today, also its program on today's clock."""
    with tempfile.TemporaryDirectory() as tmp:
        artifact = pathlib.Path(tmp) / "step.otrn"
        began = time.monotonic()
        ran = run(otrn, "compile", path, "-o", artifact, f"--target={chip}", "--lnc=1", "--cache=off", *options)
        took = time.monotonic() - began
        if ran.returncode:
            return {"error": (ran.stderr or ran.stdout).strip().split("\n")[-1][:200]}
        report = run(otrn, "prof", artifact, "--json", f"--target={chip}")
        if report.returncode:
            return {"error": (report.stderr or report.stdout).strip().split("\n")[-1][:200]}
        row = {**figures(json.loads(report.stdout)), "compile_s": took}
        if today:
            row["today_us"] = repriced(otrn, today, artifact, chip, pathlib.Path(tmp))
        return row


def repriced(otrn, today, artifact, chip, folder):
    """An old program's time on today's clock, or None when today's release does not take it."""
    text = folder / "step.s"
    with open(text, "w") as out:
        if subprocess.run([str(otrn), "dis", str(artifact)], stdout=out, stderr=subprocess.DEVNULL).returncode:
            return None
    report = run(today, "prof", text, "--json", f"--target={chip}", "--lnc=1", "--cache=off")
    return None if report.returncode else json.loads(report.stdout)["total_us"]


class Release:
    """An earlier release, built here, and what it was found to cost."""

    def __init__(self, name, build, jobs):
        self.commit = must("git", "-C", ROOT, "rev-parse", "--short=10", f"{name}^{{commit}}").strip()
        self.name, self.folder = name, build / f"since-{self.commit}"
        self.otrn = self.folder / "build" / "otrn"
        if not self.otrn.exists():
            print(f"building {name} in {self.folder}", file=sys.stderr, flush=True)
            self.folder.mkdir(parents=True, exist_ok=True)
            archive = subprocess.Popen(["git", "-C", str(ROOT), "archive", self.commit], stdout=subprocess.PIPE)
            must("tar", "x", "-C", self.folder, stdin=archive.stdout)
            must("make", "-C", self.folder, f"-j{jobs}", "BUILD=build", "build/otrn", env={**os.environ, "MAKEFLAGS": ""})
        self.clock, self.kept = clock(), self.folder / "zoo.json"
        self.known = json.loads(self.kept.read_text()) if self.kept.exists() else {}

    def price(self, path, chip, today):
        key = f"{hashlib.sha256(path.read_bytes()).hexdigest()[:16]} {chip} {self.clock}"
        if key not in self.known:
            self.known[key] = price(self.otrn, path, chip, today=today)
        return self.known[key]

    def keep(self):
        self.kept.write_text(json.dumps(self.known, indent=1))


def clock():
    """What prices depend on: chip files and the clock's sources. Old programs are priced anew when they change."""
    seen = hashlib.sha256()
    for files in ("chips/*.chip", "src/mach/*.*", "src/clock/*.*"):
        for path in sorted(ROOT.glob(files)):
            seen.update(path.read_bytes())
    return seen.hexdigest()[:12]


# The table


def change(row):
    """Today's time over the old one's, and whether only by the old clock."""
    old = row.get("since")
    if not old or "error" in old or "error" in row:
        return None, False
    return (row["us"] / old["today_us"], False) if old.get("today_us") else (row["us"] / old["us"], True)


def head(since):
    busy = " ".join(f"{short:>4}" for short in ENGINES.values())
    line = f"{'step':31} {'chip':4} {'ms':>10} {'HBM GB':>8} {'roof':>5} {busy} {'kinstr':>8} {'comp s':>6}"
    return line + (f" {'its clock':>10} {'today':>10} {'change':>8}" if since else "")


def line(row):
    begin = f"{row['name'][:31]:31} {row['chip']:4}"
    if "error" in row:
        return f"{begin} {row['error']}"
    busy = " ".join(f"{100 * row['busy'][e]:3.0f}%" for e in ENGINES)
    roof = row["us"] / row["roof_us"] if row["roof_us"] else 0
    text = (f"{begin} {row['us'] / 1e3:10.3f} {row['hbm_bytes'] / 1e9:8.3f} {roof:5.2f} {busy} "
            f"{row['instructions'] / 1e3:8.1f} {row['compile_s']:6.2f}")  # fmt: skip
    old = row.get("since")
    if not old:
        return text
    if "error" in old:
        return f"{text} {old['error'][:60]}"
    today = f"{old['today_us'] / 1e3:10.3f}" if old["today_us"] else f"{'-':>10}"
    ratio, other = change(row)
    return f"{text} {old['us'] / 1e3:10.3f} {today} {100 * (ratio - 1):+7.1f}%{'~' if other else ''}"


def summary(rows, since):
    """The lines at the end; whether anything is wrong."""
    good = [r for r in rows if "error" not in r]
    failed = [r for r in rows if "error" in r]
    print()
    for chip in CHIPS:
        mine = [r for r in good if r["chip"] == chip]
        if not mine:
            continue
        both = [r for r in mine if change(r)[0]]
        text = f"sum {chip}: {sum(r['us'] for r in mine) / 1e3:.1f} ms, {sum(r['hbm_bytes'] for r in mine) / 1e9:.1f} GB, "
        text += f"{len(mine)} steps, {sum(r['compile_s'] for r in mine):.1f} s of compiling"
        if both:
            now, its = sum(r["us"] for r in both), sum(r["since"]["us"] for r in both)
            before = sum(r["us"] / change(r)[0] for r in both)
            text += f"; since {since.name}: {100 * (now / before - 1):+.1f} % ({100 * (now / its - 1):+.1f} % by its clock)"
        print(text)
    ratios = sorted(((change(r)[0], r) for r in good if change(r)[0]), key=lambda at: at[0])
    slower = [r for ratio, r in ratios if ratio > SLOWER]
    if ratios:
        before = sum(r["us"] / ratio for ratio, r in ratios)
        now = sum(r["us"] for _, r in ratios)
        print(f"sum of all: {now / 1e3:.1f} ms since {before / 1e3:.1f} ms, {100 * (now / before - 1):+.1f} %")
        ratio, worst = ratios[-1]
        print(f"worst: {worst['name']} on {worst['chip']}, {100 * (ratio - 1):+.1f} %; {len(slower)} of {len(ratios)} slower by more than 1 %")
    for row in failed:
        print(f"FAILED {row['name']} on {row['chip']}: {row['error']}")
    return bool(slower or failed)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="steps whose name has it, or matches it as a shell pattern; comma between several")
    parser.add_argument("--chips", default=",".join(CHIPS))
    parser.add_argument("--since", default="", help="a commit or tag to compare with")
    parser.add_argument("--options", default="", help="more options of today's otrn compile, blank between")
    parser.add_argument("--json", default="", help="write the rows into this file")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--otrn", type=pathlib.Path, default=ROOT / "build" / "otrn")
    parser.add_argument("--list", action="store_true", help="only the names")
    parser.add_argument("--export", action="store_true", help="only the files")
    o = parser.parse_args()
    wanted = lambda name: any(part in name or fnmatch.fnmatch(name, part) for part in o.only.split(","))
    chosen = [row for row in table.entries() if wanted(row[0])]
    if o.list:
        print("\n".join(name for name, _, _ in chosen))
        return 0
    at = files(chosen, o.build / "zoo")
    if o.export:
        return 0
    since = Release(o.since, o.build, o.jobs) if o.since else None

    def one(name, chip):
        row = {"name": name, "chip": chip, **price(o.otrn, at[name], chip, o.options.split())}
        if since:
            row["since"] = since.price(at[name], chip, o.otrn)
        return row

    print(head(since), flush=True)
    rows = []
    with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
        for row in pool.map(lambda args: one(*args), [(name, chip) for name, _, _ in chosen for chip in o.chips.split(",")]):
            rows.append(row)
            print(line(row), flush=True)
    if since:
        since.keep()
    if o.json:
        pathlib.Path(o.json).write_text(json.dumps(rows, indent=1))
    return int(summary(rows, since))


if __name__ == "__main__":
    sys.exit(main())
