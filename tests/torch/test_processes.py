# SPDX-License-Identifier: Apache-2.0
"""Two processes over gloo, each with a device of its own: DDP, FSDP2, gathered shards and tensor
parallelism equal one process with the whole batch. The ways share the processes: starting torch
twice takes longer than all of them."""

import os
import pathlib
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
WORKER = pathlib.Path(__file__).parent / "worker.py"
WAYS = ("ddp", "fsdp", "simple_fsdp", "tensor_parallel", "collectives")


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """What each rank printed; ranks meet in a file, which needs no free port."""
    meeting = tmp_path_factory.mktemp("gloo") / "meeting"
    workers = [
        subprocess.Popen(
            [sys.executable, WORKER, str(meeting), str(rank), *WAYS],
            env={**os.environ, "GLOO_SOCKET_IFNAME": "lo"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        return [w.communicate(timeout=900)[0] for w in workers]
    finally:
        for w in workers:
            w.kill()


@pytest.mark.parametrize("way", WAYS)
def test_two_processes(way, outputs):
    assert all(f"{way} agrees" in text for text in outputs), "\n".join(outputs)
