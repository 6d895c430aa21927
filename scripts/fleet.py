# SPDX-License-Identifier: Apache-2.0
"""Parallel training programs over several layouts of the same 8 devices: every shard of parameters and optimizer state equal to the
bit, and what their collectives carry beside XLA's.

    python scripts/fleet.py                                  # all programs at 1x8, 2x4, 4x2, 8x1 and 3+5 processes
    python scripts/fleet.py --only=tp,moe --layouts=3+5      # some of them
    python scripts/fleet.py --wire                           # bytes on the wire and collectives, beside XLA's and the bars

The programs are ../shared/fleet/par.py (skipped where that is absent). Status 1 when something differs or is above its bar.
"""

import argparse
import os
import pathlib
import random
import socket
import subprocess
import sys
import tempfile

PROGRAMS = "dp fsdp fsdp_act zero1 fsdp_scan tp dptp tpsp cp ring pp moe moe_auto".split()
LAYOUTS = "2x4 4x2 8x1 3+5".split()  # processes x devices, or devices of each
DEVICES = 8
LIMIT = 900
MB = 1e6
WIRE_MB = {"tpsp": 25, "moe_auto": 15}  # at most
COLLECTIVES = {"dp": 3}  # at most
TRIPS = {"ring": (DEVICES // 2,), "pp": (7, 1), "fsdp_scan": (2,)}  # of loops that do not tell them, from the outermost in


def source(shared):
    """par.py, whose processes all have the same number of devices, with a number for each."""
    text = (shared / "par.py").read_text()
    same = 'str(n // int(os.environ["NPROC"]))'
    assert same in text
    return text.replace(same, 'os.environ["HERE"]')


def free_port():
    while True:
        port = random.SystemRandom().randrange(15000, 30000)
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


def environment(program, **more):
    layers = {"LAYERS": "4"} if program == "pp" else {}
    return {**os.environ, "OTRN_CACHE": "off", "BATCH": "16", **layers, **more}


def run(folder, program, counts):
    """Lines `SHARD …` of all processes, sorted; None and what went wrong."""
    small = {"HASH": "1", "WIDTH": "128", "SEQ": "64", "STEPS": "2"}
    job = {"NPROC": str(len(counts)), "PORT": str(free_port())} if len(counts) > 1 else {}
    running = []
    for i, here in enumerate(counts):
        env = environment(program, **small, **job, PROC=str(i), HERE=str(here))
        out = open(folder / f"{program}.{i}", "w+")
        running.append((subprocess.Popen([sys.executable, folder / "par.py", program, str(DEVICES)], env=env, stdout=out, stderr=out), out))
    lines, bad = [], ""
    for process, out in running:
        try:
            status = process.wait(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            status = process.wait()
        out.seek(0)
        text = out.read()
        out.close()
        lines += [line for line in text.splitlines() if "SHARD" in line]
        bad = bad or (f"status {status}: {text[-800:]}" if status else "")
    return (None, bad) if bad else (sorted(lines), "")


def counts_of(layout):
    if "x" in layout:
        processes, devices = map(int, layout.split("x"))
        return [devices] * processes
    return [int(n) for n in layout.split("+")]


def matrix(folder, programs, layouts):
    good = True
    for program in programs:
        one, why = run(folder, program, [DEVICES])
        if not one:
            print(f"FAIL {program} 1x{DEVICES}: {why or 'no shards'}", flush=True)
            good = False
            continue
        for layout in layouts:
            got, why = run(folder, program, counts_of(layout))
            same = got == one
            good &= same
            print(f"{'ok' if same else 'FAIL'} {program} {layout}: {len(one)} shards{' equal to the bit' if same else ' differ ' + why}", flush=True)
    return good


def wire(folder, programs):
    sys.path.insert(0, str(folder))
    from coll import collectives  # beside par.py: counts in a program's HLO text

    good = True
    for program in programs:
        found = {}
        for where in ("", "--cpu"):
            words = [sys.executable, folder / "par.py", program, str(DEVICES), *([where] if where else [])]
            text = folder / "program.txt"
            out = subprocess.run(words, env=environment(program, RUN="0", DUMP=str(text)), capture_output=True, text=True, timeout=LIMIT)
            if out.returncode:
                print(f"FAIL {program} {where}: {out.stderr[-600:]}", flush=True)
                break
            kinds = collectives(text.read_text(), DEVICES, TRIPS.get(program, (1,))).values()
            found[where] = (sum(k[0] for k in kinds), sum(k[2] for k in kinds) / MB)
        if len(found) < 2:
            good = False
            continue
        (count, mb), (xla_count, xla_mb) = found[""], found["--cpu"]
        ok = mb <= xla_mb * 1.001 and mb <= WIRE_MB.get(program, mb) and count <= COLLECTIVES.get(program, count)
        good &= ok
        print(f"{'ok' if ok else 'FAIL'} {program}: {count} collectives, {mb:.1f} MB; XLA {xla_count}, {xla_mb:.1f} MB", flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--shared", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2] / "shared" / "fleet")
    parser.add_argument("--only", default=",".join(PROGRAMS))
    parser.add_argument("--layouts", default=",".join(LAYOUTS))
    parser.add_argument("--wire", action="store_true")
    args = parser.parse_args()
    if not (args.shared / "par.py").exists():
        print(f"skipped: {args.shared} has no programs")
        return 0
    programs = args.only.split(",")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "par.py").write_text(source(args.shared))
        (folder / "coll.py").write_text((args.shared / "coll.py").read_text())
        return 0 if (wire(folder, programs) if args.wire else matrix(folder, programs, args.layouts.split(","))) else 1


if __name__ == "__main__":
    sys.exit(main())
