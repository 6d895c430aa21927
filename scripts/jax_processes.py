# SPDX-License-Identifier: Apache-2.0
"""JAX's own tests/multiprocess on its CPU backend and on opentrn, and the share of what passes there that passes here.

    python scripts/jax_processes.py JAX                          # JAX: its sources, of the release that is installed
    python scripts/jax_processes.py JAX array_test --count=4     # some files, on 4 processes only
    python scripts/jax_processes.py JAX --platforms=opentrn      # no share: names what does not pass

A case counts as passed when it passed, or was skipped, in every process and passed in one. Processes have two devices each when there
are two of them, else one. Status 1 when the share is below 90 %.
"""

import argparse
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

FILES = """array_test all_gather_test all_reduce_test all_to_all_test axis_index_test device_id_test host_callback_test key_value_store_test
multihost_utils_test pgle_test pjit_test pmap_test thread_guard_test wait_barrier_test""".split()
BAR = 0.9
LIMIT = 900


def start(tests, file, platform, count, i, port, out):
    devices = "2" if count == 2 else "1"
    env = {**os.environ, "JAX_PLATFORMS": "opentrn,cpu" if platform == "opentrn" else "cpu", "OPENTRN_DEVICES": devices}
    env["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={devices}"
    words = [sys.executable, tests / f"{file}.py", f"--num_processes={count}", f"--multiprocess_test_worker_id={i}"]
    words += [f"--multiprocess_test_controller_address=localhost:{port}", "--heartbeat_timeout=100", "--shutdown_timeout=120"]
    words += ["--barrier_timeout=240", "--initialization_timeout=240"]
    words += ["--jax_cpu_collectives_implementation=gloo"] if platform == "cpu" else []
    return subprocess.Popen(words, env=env, stdout=subprocess.DEVNULL, stderr=out, start_new_session=True)


def cases(folder, tests, file, platform, count):
    """(passed, failed): names of cases."""
    port = random.SystemRandom().randrange(15000, 30000)
    outs = [open(folder / f"{i}", "w+", errors="replace") for i in range(count)]
    running = [start(tests, file, platform, count, i, port, out) for i, out in enumerate(outs)]
    good, bad = set(), set()
    for process, out in zip(running, outs):
        try:
            process.wait(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        out.seek(0)
        text = out.read()
        out.close()
        ran, passed, skipped = (set(re.findall(rf"\[ {word} \] (\S+)", text)) for word in ("RUN     ", "      OK", " SKIPPED"))
        good |= passed - skipped
        bad |= ran - passed - skipped
    return {f"{file} {name}" for name in good - bad}, {f"{file} {name}" for name in bad}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("jax", type=pathlib.Path)
    parser.add_argument("files", nargs="*", default=FILES)
    parser.add_argument("--count", default="2,4", help="processes")
    parser.add_argument("--platforms", default="cpu,opentrn")
    args = parser.parse_args()
    tests, enough = args.jax / "tests" / "multiprocess", True
    with tempfile.TemporaryDirectory() as name:
        for count in map(int, args.count.split(",")):
            found = {}
            for platform in args.platforms.split(","):
                rows = [cases(pathlib.Path(name), tests, file, platform, count) for file in args.files]
                found[platform] = [set().union(*sides) for sides in zip(*rows)]
                print(f"{count} processes, {platform}: {len(found[platform][0])} passed, {len(found[platform][1])} failed", flush=True)
            for case in sorted(found.get("opentrn", [(), ()])[1]):
                print(f"    {case}{' (fails on cpu too)' if case in found.get('cpu', [(), ()])[1] else ''}")
            if len(found) == 2 and found["cpu"][0]:
                share = len(found["cpu"][0] & found["opentrn"][0]) / len(found["cpu"][0])
                enough &= share >= BAR
                print(f"{count} processes: {100 * share:.1f} % of what passes on the CPU backend", flush=True)
                for case in sorted(found["cpu"][0] - found["opentrn"][0]):
                    print(f"    {case}")
    return 0 if enough else 1


if __name__ == "__main__":
    sys.exit(main())
