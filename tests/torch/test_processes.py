# SPDX-License-Identifier: Apache-2.0
"""Two processes, each with a device of its own: DDP, FSDP2, gathered shards and tensor
parallelism equal one process with the whole batch, over our process group and over gloo. The ways
share the processes: starting torch takes longer than all of them."""

import os
import pathlib
import re
import subprocess
import sys

import opentrn
import pytest

torch = pytest.importorskip("torch")
WORKER = pathlib.Path(__file__).parent / "worker.py"
WAYS = {
    ("neuron", 2): (
        "every_call", "ddp", "fsdp", "simple_fsdp", "tensor_parallel", "collectives", "pipeline", "checkpoint",
    ),
    ("opentrn", 4): ("every_call", "tensor_and_fsdp"),
    ("gloo", 2): ("collectives",),
}


def start(backend, meeting, rank, world, ways, **variables):
    return subprocess.Popen(
        [sys.executable, WORKER, backend, str(meeting), str(rank), str(world), *ways],
        env={**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OTRN_CACHE": "off", "OTRN_VERBOSE": "1", **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """What each rank printed, by backend and number of processes; ranks meet in a file, which needs no free port."""
    done = {}

    def get(backend, world):
        if (backend, world) not in done:
            meeting = tmp_path_factory.mktemp(backend) / "meeting"
            workers = [start(backend, meeting, rank, world, WAYS[backend, world]) for rank in range(world)]
            try:
                done[backend, world] = [w.communicate(timeout=900)[0] for w in workers]
            finally:
                for w in workers:
                    w.kill()
        return done[backend, world]

    return get


@pytest.mark.parametrize("backend, world, way", [(*at, way) for at, ways in WAYS.items() for way in ways])
def test_processes(backend, world, way, outputs):
    texts = outputs(backend, world)
    assert all(f"{way} agrees" in text for text in texts), "\n".join(texts)


def test_one_process_compiles_for_all(outputs):
    """Programs over all four ranks are compiled once; only those of pairs of ranks are two."""
    texts = [text.partition("every_call agrees")[0] for text in outputs("opentrn", 4)]
    compiled, received = (sum(text.count(how) for text in texts) for how in ("cache off", "compiled by another process"))
    assert compiled and received > 2 * compiled, (compiled, received)


def test_a_killed_rank_is_named(tmp_path):
    workers = [start("opentrn", tmp_path / "meeting", rank, 3, ["killed"]) for rank in range(3)]
    try:
        texts = [w.communicate(timeout=900)[0] for w in workers]
    finally:
        for w in workers:
            w.kill()
    assert all("killed agrees" in text for text in texts[:2]), "\n".join(texts)


def test_other_chips_are_refused(tmp_path):
    """Also those that have only the name in common."""
    chip = (pathlib.Path(opentrn.chips_path()) / "trn2.chip").read_text()
    other = tmp_path / "trn2.chip"
    other.write_text(re.sub(r"(?m)^(link_chip_bandwidth_per_core = )(\d+)", lambda m: m[1] + str(int(m[2]) + 1), chip))
    targets = ["trn2", str(other)]
    workers = [start("opentrn", tmp_path / "meeting", rank, 2, [], OTRN_TARGET=targets[rank]) for rank in range(2)]
    texts = [w.communicate(timeout=900)[0] for w in workers]
    assert all(f"process {1 - rank} (host" in text and "has the chip trn2/" in text for rank, text in enumerate(texts)), "\n".join(texts)
