# SPDX-License-Identifier: Apache-2.0
"""Two processes over gloo, each with a device of its own: DDP and FSDP2 equal one process with the whole
batch, and collectives inside a graph run between device programs."""

import os
import pathlib
import socket
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
WORKER = pathlib.Path(__file__).parent / "worker.py"


def _free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@pytest.mark.parametrize("way", ["ddp", "fsdp", "collectives"])
def test_two_processes(way):
    env = {
        **os.environ,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(_free_port()),
        "WORLD_SIZE": "2",
    }
    workers = [
        subprocess.Popen(
            [sys.executable, WORKER, way],
            env={**env, "RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(2)
    ]
    outputs = [w.communicate(timeout=300)[0] for w in workers]
    assert all(w.returncode == 0 for w in workers), "\n".join(outputs)
    assert all("agrees" in text for text in outputs)
