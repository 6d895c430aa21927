# SPDX-License-Identifier: Apache-2.0
"""Runs a project's own pytest files on JAX's CPU and on opentrn, and says what differs.

    python scripts/jax_suite.py JAX/tests --results=suite.json --sample=0.1
    python scripts/jax_suite.py JAX/tests lax_test api_test --results=suite.json   # whole files
    python scripts/jax_suite.py JAX/tests --results=suite.json --report            # only print

A case that does not pass on the CPU counts for nothing; of those that do, the table says how many
pass here. Cases run in worker processes, many per process. A worker writes a line before and after
each case, so a case that kills its worker or runs over its time is known by name: it is recorded as
such and the next worker goes on after it. Everything known is in the results file, and a run goes
on where the last one ended; --redo=fail runs again what failed on opentrn.

The worker is pytest with this file as its plugin (the second half).
"""

import argparse
import collections
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import zlib

FILES = """lax_test lax_numpy_test lax_numpy_reducers_test lax_numpy_indexing_test lax_scipy_test
lax_control_flow_test lax_autodiff_test nn_test random_lax_test api_test array_test dtypes_test
image_test fft_test linalg_test pmap_test shard_map_test custom_partitioning_test
custom_partitioning_sharding_rule_test layout_test ragged_collective_test shard_alike_test pjit_test
memories_test random_test async_collectives_test""".split()

GOOD = "passed"

# Cases that cannot pass on a device of this kind, and why. They count as not passed.
BY_NATURE = (
    (r"test_buffer_protocol", "jaxlib gives Python's buffer protocol to its own CPU client only"),
    (r"test_platform_dependent_(no_args|multiple)", "the test asks whether the platform's name is cpu"),
    (r"testQrInvalidDtypeCPU", "LAPACK has no QR of 16-bit floats and the test wants the error; we have it"),
    (r"ScipyLinalgTest::testSchur\d", "compared number by number with LAPACK; a Schur form is unique "
     "only up to the order of eigenvalues and signs (what makes it one is tested in LaxLinalgTest)"),
    (r"compiler_options_invalid", "XLA's own options are taken and ignored, whatever their values"),
    (r"test_jit_lower_cost_analysis", "JAX skips it for every plugin; lowered.cost_analysis() works"),
)


class Results:
    """{platform: {case: [outcome, reason, seconds]}}, saved by rename so that a stop loses nothing."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.of = {"cpu": {}, "opentrn": {}}
        if self.path.exists():
            self.of.update(json.loads(self.path.read_text()))

    def save(self):
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(self.of, indent=0))
        new.replace(self.path)


def chosen(case, seed, share):
    return zlib.crc32(f"{seed}:{case}".encode()) < share * 2**32


class Worker:
    """One pytest process over one file on one platform."""

    def __init__(self, args, results, platform, file):
        self.args, self.results, self.platform, self.file = args, results, platform, file
        self.place = tempfile.TemporaryDirectory(prefix="jax_suite")
        self.log = pathlib.Path(self.place.name) / "log"
        self.log.touch()
        self.read, self.rest, self.running, self.since = 0, b"", None, time.monotonic()
        known = results.of[platform]
        job = {"log": str(self.log), "seed": args.seed, "sample": args.sample, "match": args.match}
        job["done"] = [c for c in known if c.startswith(file)]
        if platform != "cpu":
            job["only"] = [c for c, v in results.of["cpu"].items() if v[0] == GOOD]
        plan = pathlib.Path(self.place.name) / "job"
        plan.write_text(json.dumps(job))
        env = dict(os.environ, JAX_SUITE_JOB=str(plan), JAX_PLATFORMS=platform)
        env.setdefault("JAX_NUM_GENERATED_CASES", "3")
        env.setdefault("JAX_SKIP_SLOW_TESTS", "1")
        env.setdefault("OPENTRN_DEVICES", "8")
        env.setdefault("OTRN_CACHE", "off")  # the compiler is under test, not what it once made
        env.setdefault("JAX_NUM_CPU_DEVICES", "8")
        if platform != "cpu":  # beside it the CPU, as on a machine with a GPU
            env["JAX_PLATFORMS"] = platform + ",cpu"
        here = str(pathlib.Path(__file__).resolve().parent)
        env["PYTHONPATH"] = os.pathsep.join(p for p in (here, env.get("PYTHONPATH")) if p)
        self.out = open(pathlib.Path(self.place.name) / "out", "w+b")
        command = [sys.executable, "-m", "pytest", "-p", "jax_suite", "-p", "no:cacheprovider"]
        command += ["-q", "--no-header", "--rootdir=.", "-x" if args.stop else "--maxfail=0", file]
        self.process = subprocess.Popen(
            command,
            cwd=args.tests,
            env=env,
            stdout=self.out,
            stderr=subprocess.STDOUT,
            process_group=0,
        )

    def poll(self):
        """Takes in what the worker wrote. True while it runs."""
        ended = self.process.poll() is not None
        with open(self.log, "rb") as log:
            log.seek(self.read)
            more = log.read()
        self.read += len(more)
        *lines, self.rest = (self.rest + more).split(b"\n")
        for line in lines:
            case, outcome, reason, seconds = json.loads(line)
            self.since = time.monotonic()
            if outcome == "start":
                self.running = case
            else:
                self.results.of[self.platform][case] = [outcome, reason, seconds]
                self.running = None
        limit = self.args.timeout if self.running else self.args.timeout + 300
        if not ended and time.monotonic() - self.since > limit:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.lost("hang", f"over {limit} s")
            return False
        if ended and self.running:
            self.lost("crash", self.last_words())
        elif ended and self.process.returncode not in (0, 1, 5):
            print(f"{self.platform} {self.file}: pytest ended with {self.process.returncode}")
            print(self.tail(1500))
        return not ended

    def lost(self, how, why):
        if not self.running:
            print(f"{self.platform} {self.file}: no case ran: {how} {why}\n{self.tail(1500)}")
            return
        print(f"{self.platform} {self.running}: {how}: {why}", flush=True)
        self.results.of[self.platform][self.running] = [how, f"{how}: {why}", 0]

    def tail(self, size):
        self.out.flush()
        self.out.seek(0, os.SEEK_END)
        self.out.seek(max(0, self.out.tell() - size))
        return self.out.read().decode(errors="replace")

    def last_words(self):
        text = self.tail(20000)
        fatal = re.search(r"(Fatal Python error: .*|F\d{4} .*|Check failed.*)", text)
        return fatal.group(1)[:200] if fatal else f"exit status {self.process.returncode}"


def run(args, results):
    """The CPU goes first in each file: only what passes there is asked of opentrn."""
    waiting = [(file, p) for file in args.files for p in args.platforms]
    workers, saved = [], time.monotonic()
    while waiting or workers:
        busy = {w.file for w in workers}
        while len(workers) < args.jobs:
            next_one = next((w for w in waiting if w[0] not in busy), None)
            if not next_one:
                break
            waiting.remove(next_one)
            workers.append(Worker(args, results, next_one[1], next_one[0]))
            busy.add(next_one[0])
        before = time.monotonic()
        time.sleep(0.2)
        paused = time.monotonic() - before - 0.2
        for worker in workers:  # somebody may have stopped us all for a while
            worker.since += paused
        for worker in list(workers):
            if worker.poll():
                continue
            workers.remove(worker)
            if worker.running:
                waiting.insert(0, (worker.file, worker.platform))
            else:
                line = table_row(results, worker.file)
                print(f"{worker.platform} ready: {line}", flush=True)
            worker.out.close()
            worker.place.cleanup()
        if time.monotonic() - saved > 5 or not workers:
            results.save()
            saved = time.monotonic()


def table_row(results, file):
    cpu = {c for c, v in results.of["cpu"].items() if c.startswith(file) and v[0] == GOOD}
    mine = {c: v for c, v in results.of["opentrn"].items() if c in cpu}
    good = sum(v[0] == GOOD for v in mine.values())
    dead = sum(v[0] in ("crash", "hang") for v in mine.values())
    share = f"{100 * good / len(mine):6.2f} %" if mine else "       -"
    return f"{file:28} {len(cpu):6} {len(mine):6} {good:6} {share} {dead:4}"


def family(reason):
    """Two failures are alike when their first lines differ in numbers, names and shapes only."""
    line = reason.split("\n")[0]
    line = re.sub(r"0x[0-9a-f]+|\d+(\.\d+)?(e[-+]?\d+)?", "#", line)
    line = re.sub(r"%\w+|\[[^]]*\]|\([^)]*\)|<[^>]*>", "…", line)
    return line[:140]


def report(args, results):
    print(f"\n{'file':28} {'cpu':>6} {'run':>6} {'pass':>6} {'share':>8} {'lost':>4}")
    for file in args.files:
        print(table_row(results, file))
    print(table_row(results, "").replace(" " * 28, f"{'all':28}", 1))
    failed = [
        (case, v)
        for case, v in results.of["opentrn"].items()
        if v[0] != GOOD and results.of["cpu"].get(case, [""])[0] == GOOD
        if case.startswith(tuple(args.files))
    ]
    groups = collections.defaultdict(list)
    for case, v in failed:
        nature = next((why for name, why in BY_NATURE if re.search(name, case)), None)
        reason = f"by nature: {nature}" if nature else f"{v[0]}: {family(v[1])}"
        groups[reason].append((case, v[1]))
    print(f"\n{len(failed)} cases that pass on the CPU do not pass on opentrn, by reason:")
    for name, cases in sorted(groups.items(), key=lambda g: -len(g[1])):
        print(f"{len(cases):5}  {name}")
        for case, reason in cases[: args.show]:
            print(f"           {case}")
            for line in reason.split("\n")[1 : 1 + args.lines]:
                print(f"               {line}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("tests", help="folder with the test files")
    parser.add_argument("files", nargs="*", help="files, without .py; default: JAX's list")
    parser.add_argument("--results", default="jax_suite.json")
    parser.add_argument("--sample", type=float, default=1.0, help="share of the cases to run")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    parser.add_argument("--match", default="", help="only cases whose name this expression finds")
    parser.add_argument("--timeout", type=float, default=120, help="seconds for one case")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--platforms", default="cpu,opentrn")
    parser.add_argument("--redo", choices=["", "fail", "all"], default="", help="forget these first")
    parser.add_argument("--report", action="store_true", help="run nothing")
    parser.add_argument("--show", type=int, default=3, help="cases to name per reason")
    parser.add_argument("--lines", type=int, default=0, help="lines of the error to show for each")
    parser.add_argument("--stop", action="store_true", help="each file ends at its first failure")
    args = parser.parse_args()
    args.files = [f.removesuffix(".py") + ".py" for f in args.files or FILES]
    args.platforms = args.platforms.split(",")
    results = Results(args.results)
    if not args.report:
        for case, v in list(results.of["opentrn"].items()):
            again = args.redo == "all" or (args.redo == "fail" and v[0] != GOOD)
            again = again and chosen(case, args.seed, args.sample)
            if again and case.startswith(tuple(args.files)) and re.search(args.match, case):
                del results.of["opentrn"][case]
        print(f"sample {args.sample}, seed {args.seed}, {args.jobs} workers", flush=True)
        run(args, results)
        results.save()
    report(args, results)


# ---- the worker's side: a pytest plugin -------------------------------------------------------


class Recorder:
    def __init__(self, job):
        self.job = job
        self.log = open(job["log"], "a", buffering=1)
        self.began = 0

    def write(self, case, outcome, reason="", seconds=0):
        self.log.write(json.dumps([case, outcome, reason, round(seconds, 2)]) + "\n")

    def pytest_collection_modifyitems(self, items):
        done, only = set(self.job["done"]), self.job.get("only")
        only = None if only is None else set(only)
        items[:] = [
            item
            for item in items
            if item.nodeid not in done
            and (only is None or item.nodeid in only)
            and chosen(item.nodeid, self.job["seed"], self.job["sample"])
            and re.search(self.job["match"], item.nodeid)
        ]

    def pytest_runtest_logstart(self, nodeid):
        self.began = time.monotonic()
        self.worst = ("passed", "")
        self.write(nodeid, "start")

    def pytest_runtest_logreport(self, report):
        if report.outcome == "failed":
            self.worst = ("failed", reason_of(report))
        elif report.outcome == "skipped" and self.worst[0] == "passed":
            self.worst = ("skipped", str(report.longrepr)[-200:])

    def pytest_runtest_logfinish(self, nodeid):
        self.write(nodeid, *self.worst, time.monotonic() - self.began)


def reason_of(report):
    """The error itself first, then where it was raised."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if not crash:
        return str(report.longrepr)[-600:]
    message = "\n".join(line for line in crash.message.split("\n") if line.strip())
    return f"{message[:1500]}\n{crash.path}:{crash.lineno}"


def run_what_is_meant_for_the_cpu():
    """JAX's tests are skipped by the name of the device unless this flag, which has no variable."""
    import jax
    from jax._src import test_util  # defines it

    assert test_util.device_under_test
    jax.config.update("jax_test_dut", "cpu")


def pytest_configure(config):
    run_what_is_meant_for_the_cpu()
    with open(os.environ["JAX_SUITE_JOB"]) as file:
        config.pluginmanager.register(Recorder(json.load(file)))


if __name__ == "__main__":
    main()
