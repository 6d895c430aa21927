# SPDX-License-Identifier: Apache-2.0
"""Processes with a device each: DDP, FSDP2, gathered shards, tensor parallelism and pipelines equal one process with the whole
batch, over our process group and over gloo, with models on the CPU's tensors and on the device `neuron`. The ways share the
processes: starting torch takes longer than all of them. `make ranks` runs every way on 2 and 4 processes, and over sockets."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import opentrn
import pytest

torch = pytest.importorskip("torch")
WORKER = pathlib.Path(__file__).parent / "worker.py"
TRAINED = ("ddp", "fsdp", "simple_fsdp", "tensor_parallel", "pipeline")
WAYS = {  # by backend, device and number of processes
    ("neuron", "cpu", 2): ("every_call", "simple_fsdp", "collectives"),
    ("neuron", "neuron", 2): (*TRAINED, "loaded", "drawn", "batch_norm"),
    ("opentrn", "cpu", 4): ("every_call", "tensor_and_fsdp", "checkpoint"),
    ("gloo", "cpu", 2): ("collectives",),
}
MATRIX = {  # make ranks
    **{("neuron", device, n): TRAINED for device in ("cpu", "neuron", "neuron-eager") for n in (2, 4)},
    **{("opentrn", device, 2): ("tensor_and_fsdp",) for device in ("cpu", "neuron", "neuron-eager")},
    **{("opentrn", device, 4): ("tensor_and_fsdp", "checkpoint") for device in ("cpu", "neuron", "neuron-eager")},
}


def start(backend, device, folder, rank, world, ways, **variables):
    told = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": world, "LOCAL_WORLD_SIZE": world}  # as torchrun tells
    return subprocess.Popen(
        [sys.executable, WORKER, backend, device, str(folder), str(rank), str(world), *ways],
        env={
            **os.environ, **{name: str(value) for name, value in told.items()},
            "GLOO_SOCKET_IFNAME": "lo", "OTRN_CACHE": "off", "OTRN_VERBOSE": "1", **variables,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )  # fmt: skip


def run(backend, device, folder, world, ways, **variables):
    """What each rank printed; ranks meet in a file of the folder, which needs no free port."""
    workers = [start(backend, device, folder, rank, world, ways, **variables) for rank in range(world)]
    try:
        return [w.communicate(timeout=900)[0] for w in workers]
    finally:
        for w in workers:
            w.kill()


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    done, folder = {}, tmp_path_factory.mktemp("ranks")

    def get(*at):
        if at not in done:
            if "loaded" in WAYS[at]:
                get("opentrn", "cpu", 4)  # saves it
            done[at] = run(at[0], at[1], folder, at[2], WAYS[at])
        return done[at]

    return get


@pytest.mark.parametrize("backend, device, world, way", [(*at, way) for at, ways in WAYS.items() for way in ways])
def test_processes(backend, device, world, way, outputs):
    if device == "neuron" and not shutil.which("g++"):
        pytest.skip("the device needs a C++ compiler")
    texts = outputs(backend, device, world)
    assert all(f"{way} agrees" in text for text in texts), "\n".join(texts)


@pytest.mark.skipif(not os.environ.get("ALL_RANKS"), reason="make ranks")
@pytest.mark.parametrize("at", MATRIX, ids=lambda at: "-".join(map(str, at)))
def test_every_way(at, tmp_path):
    """Also over sockets, as between hosts: the same losses to the bit."""
    backend, device, world = at
    seen = []
    for fabric in ("auto", "sockets"):
        (tmp_path / fabric).mkdir()
        texts = run(backend, device, tmp_path / fabric, world, MATRIX[at], OTRN_FABRIC=fabric)
        assert all(f"{way} agrees" in text for text in texts for way in MATRIX[at]), "\n".join(texts)
        seen.append([re.findall("(?m)^losses .*", text) for text in texts])
    assert seen[0] == seen[1] and all(one == seen[0][0] for one in seen[0])


def test_one_process_compiles_for_all(outputs):
    """Programs over all four ranks are compiled once; only those of pairs of ranks are two."""
    texts = [text.partition("every_call agrees")[0] for text in outputs("opentrn", "cpu", 4)]
    compiled, received = (sum(text.count(how) for text in texts) for how in ("cache off", "compiled by another process"))
    assert compiled and received > 2 * compiled, (compiled, received)


def test_a_killed_rank_is_named(tmp_path):
    workers = [start("opentrn", "cpu", tmp_path, rank, 3, ["killed"]) for rank in range(3)]
    try:
        texts = [w.communicate(timeout=900)[0] for w in workers]
    finally:
        for w in workers:
            w.kill()
    assert all("killed agrees" in text for text in texts[:2]), "\n".join(texts)


def test_a_late_rank_is_named(tmp_path):
    """At OTRN_COLL_TIMEOUT; where that is not set it is the limit of init_process_group."""
    texts = run("opentrn", "cpu", tmp_path, 2, ["late"], OTRN_COLL_TIMEOUT="5")
    assert "late agrees" in texts[0], "\n".join(texts)


def test_other_chips_are_refused(tmp_path):
    """Also those that have only the name in common."""
    chip = (pathlib.Path(opentrn.chips_path()) / "trn2.chip").read_text()
    other = tmp_path / "trn2.chip"
    other.write_text(re.sub(r"(?m)^(link_chip_bandwidth_per_core = )(\d+)", lambda m: m[1] + str(int(m[2]) + 1), chip))
    targets = ["trn2", str(other)]
    workers = [start("opentrn", "cpu", tmp_path, rank, 2, [], OTRN_TARGET=targets[rank]) for rank in range(2)]
    texts = [w.communicate(timeout=900)[0] for w in workers]
    assert all(f"process {1 - rank} (host" in text and "has the chip trn2/" in text for rank, text in enumerate(texts)), "\n".join(texts)
