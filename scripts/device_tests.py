# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own tests that are written for any device, on the device `neuron`: the share that passes, and what keeps the others from it.

    python scripts/device_tests.py PYTORCH                             # PYTORCH: its sources, of the release that is installed
    python scripts/device_tests.py PYTORCH test_view_ops --only=view   # another file of PYTORCH/test, tests whose name contains it

A test that fails on the CPU, too, is no test of the device: it is named and left out of the share. Tests run one after the other in a
process of their own, which is started again behind a test that kills it or takes longer than the limit.
"""

import argparse
import collections
import importlib.util
import os
import pathlib
import re
import select
import subprocess
import sys
import tempfile
import unittest
import warnings

LIMIT = 180  # seconds of one test
KINDS = {"PRIVATEUSE1": "device", "NEURON": "device", "CPU": "cpu"}  # what torch puts behind the names of classes


# --- the process that runs them -------------------------------------------------------------------


def tests_of(path, only):
    """name -> test on the device; the same on the CPU, where torch made one."""
    os.environ["PYTORCH_TESTING_DEVICE_ONLY_FOR"] = "privateuse1,cpu"
    sys.path.insert(0, str(path.parent))
    sys.argv = [str(path)]
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = {"device": {}, "cpu": {}}
    for name, group in vars(module).items():
        end = next((k for k in KINDS if name.endswith(k)), None)
        if end and isinstance(group, type) and issubclass(group, unittest.TestCase):
            for method in unittest.TestLoader().getTestCaseNames(group):
                title = re.sub("_(privateuse1|neuron|cpu)(?=_|$)", "", method)
                found[KINDS[end]][f"{name.removesuffix(end)}.{title}"] = group, method
    return {title: (test, found["cpu"].get(title)) for title, test in found["device"].items() if only in title}


def outcome(group, method):
    """(word, why) of one test."""
    result = unittest.TestResult()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        unittest.TestSuite([group(method)]).run(result)
    for word, rows in (("failed", result.errors + result.failures), ("skipped", result.skipped)):
        if rows:
            return word, rows[0][1]
    return ("failed", "was to fail") if result.unexpectedSuccesses else ("passed", "")


def reason(text):
    """The last line of a traceback that says what is wrong; one line for all tests that have it."""
    lines = [line for line in text.splitlines() if re.match(r"(\w+\.)*\w*(Error|Exception|Warning|Lowered)\b", line)]
    return re.sub(r"\d+(\.\d+)?(e-?\d+)?", "N", (lines or text.splitlines() or [""])[0])[:150]


def work(path, only, first):
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what tests print is not for us
    for number, (title, (test, twin)) in enumerate(tests_of(path, only).items()):
        if number < first:
            continue
        print("begins", number, title, sep="\t", file=out)
        word, why = outcome(*test)
        if word == "failed" and twin is not None and outcome(*twin)[0] == "failed":
            word = "failed on the CPU, too"
        print("ends", word, reason(why), sep="\t", file=out)
    print("done", file=out)


# --- the process that counts ----------------------------------------------------------------------


def lines_of(command, said):
    """Lines of a process, as long as each comes within the limit."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, bufsize=0) as process:
        rest, limit = b"", 4 * LIMIT  # until the first: it imports
        while select.select([process.stdout], [], [], limit)[0] and (got := os.read(process.stdout.fileno(), 65536)):
            *whole, rest = (rest + got).split(b"\n")
            yield from (line.decode(errors="replace").split("\t") for line in whole)
            limit = LIMIT
        process.kill()


def run_file(path, only):
    """[(name, word, why)]"""
    rows, first, done = [], 0, False
    while not done:
        running, came = None, False
        with tempfile.TemporaryFile() as said:
            for word, *rest in lines_of([sys.executable, __file__, str(path), f"--only={only}", f"--worker={first}"], said):
                came, done = True, word == "done"
                if word == "begins":
                    first, running = int(rest[0]) + 1, rest[1]
                elif word == "ends":
                    rows.append((running, *rest))
                    running = None
            if not came:
                said.seek(0)
                sys.exit(f"{path}: no test began:\n{said.read()[-2000:].decode(errors='replace')}")
        if running:
            rows.append((running, "failed", f"the process ended, or it takes more than {LIMIT} s"))
    return rows


def tell(name, rows):
    counts = collections.Counter(word for _, word, _ in rows)
    for word in ("failed", "failed on the CPU, too"):
        groups = collections.defaultdict(list)
        for title, how, why in rows:
            if how == word:
                groups[why].append(title.partition(".")[2])
        for why, titles in sorted(groups.items(), key=lambda row: -len(row[1])):
            print(f"{len(titles):4} {word}: {why}: {', '.join(titles[:12])}{' …' if len(titles) > 12 else ''}")
    told = ", ".join(f"{n} {word}" for word, n in counts.most_common())
    counted = counts["passed"] + counts["failed"]
    print(f"{name}: {told}; {100 * counts['passed'] / max(1, counted):.1f} % of {counted} pass", flush=True)
    return counted


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("pytorch", type=pathlib.Path)
    parser.add_argument("files", nargs="*", default=["test_torch"])
    parser.add_argument("--only", default="")
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker is not None:
        return work(args.pytorch, args.only, args.worker)
    good = True
    for name in args.files:
        path = args.pytorch / "test" / f"{name}.py"
        if not path.exists():
            parser.error(f"there is no {path}: PYTORCH is a checkout of github.com/pytorch/pytorch")
        good &= tell(name, run_file(path, args.only)) > 0
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
