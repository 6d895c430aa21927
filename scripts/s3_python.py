# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of PyTorch and JAX on a real S3 server (`make s3`): training goes on from them with the same bits.

torch.distributed.checkpoint writes there by itself through fsspec, from one process and from two. Orbax (0.12) writes to folders and
refuses s3://: each step that it has finished is copied there, and back. The server is the one that AWS_ENDPOINT_URL and the other
variables name. What is not installed is skipped by name.
"""

import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("AWS_REQUEST_CHECKSUM_CALCULATION", "when_required")  # servers older than 2025 know no others
os.environ.setdefault("AWS_RESPONSE_CHECKSUM_VALIDATION", "when_required")
LIMIT = 300


def missing(*names):
    return [name for name in names if importlib.util.find_spec(name.split(".")[0]) is None]


def torch_made():
    import opentrn.torch
    import torch

    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Linear(32, 4))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    step = opentrn.torch.compile_step(model, optimizer, torch.nn.functional.cross_entropy)
    x, y = torch.randn(8, 16), torch.randint(0, 4, (8,))
    return model, optimizer, lambda: step(x, y)


def torch_one(at):
    """Saved behind step 2 of 4; another model goes on from there."""
    import torch
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint._fsspec_filesystem import FsspecReader, FsspecWriter

    def state(model, optimizer):
        return {"model": model.state_dict(), "optimizer": optimizer.state_dict()}

    model, optimizer, step = torch_made()
    for i in range(4):
        if i == 2:
            dcp.save(state(model, optimizer), storage_writer=FsspecWriter(f"{at}/one"), no_dist=True)
        step()
    again, other, step = torch_made()
    step()  # the optimizer's state has its shapes
    held = state(again, other)
    dcp.load(held, storage_reader=FsspecReader(f"{at}/one"), no_dist=True)
    again.load_state_dict(held["model"])
    other.load_state_dict(held["optimizer"])
    step(), step()
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters(), strict=True))


def torch_two(at):
    """Two processes save their halves; this one loads the whole."""
    import torch
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint._fsspec_filesystem import FsspecReader

    with tempfile.TemporaryDirectory() as folder:
        both = [subprocess.Popen([sys.executable, __file__, "half", at, str(rank), f"{folder}/meet"]) for rank in range(2)]
        try:
            assert [p.wait(timeout=LIMIT) for p in both] == [0, 0]
        finally:
            for p in both:
                p.kill()
    held = {"w": torch.zeros(8, 4)}
    dcp.load(held, storage_reader=FsspecReader(f"{at}/two"), no_dist=True)
    assert torch.equal(held["w"], torch.arange(32.0).reshape(8, 4))


def torch_half(at, rank, meet):
    import torch
    import torch.distributed as dist
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint._fsspec_filesystem import FsspecWriter
    from torch.distributed.tensor import Shard, distribute_tensor

    dist.init_process_group("gloo", init_method=f"file://{meet}", rank=int(rank), world_size=2)
    mesh = dist.init_device_mesh("cpu", (2,))
    dcp.save({"w": distribute_tensor(torch.arange(32.0).reshape(8, 4), mesh, [Shard(0)])}, storage_writer=FsspecWriter(f"{at}/two"))
    dist.destroy_process_group()


def orbax(at):
    """State cut over four devices, saved, copied to the server and back, restored, and trained on."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import orbax.checkpoint as ocp
    import s3fs
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    rows = NamedSharding(Mesh(np.array(jax.devices()[:4]), ("x",)), PartitionSpec("x"))
    step = jax.jit(lambda w: w - 0.1 * jax.grad(lambda w: jnp.sum(jnp.tanh(w) ** 2))(w), out_shardings=rows)
    w = step(jax.device_put(np.random.default_rng(0).normal(size=(8, 16)).astype("f4"), rows))
    files = s3fs.S3FileSystem()
    with tempfile.TemporaryDirectory() as folder:
        with ocp.CheckpointManager(f"{folder}/run") as kept:
            kept.save(1, args=ocp.args.StandardSave({"w": w}))
            kept.wait_until_finished()
        files.put(f"{folder}/run/1/", f"{at}/orbax/1/", recursive=True)
        files.get(f"{at}/orbax/1/", f"{folder}/back/1/", recursive=True)
        with ocp.CheckpointManager(f"{folder}/back") as kept:
            like = {"w": jax.ShapeDtypeStruct(w.shape, w.dtype, sharding=rows)}
            found = kept.restore(1, args=ocp.args.StandardRestore(like))["w"]
    assert found.sharding == rows and np.asarray(step(found)).tobytes() == np.asarray(step(w)).tobytes()


CHECKS = [
    ("torch.distributed.checkpoint, one process", torch_one, ("s3fs", "torch", "opentrn")),
    ("torch.distributed.checkpoint, two processes", torch_two, ("s3fs", "torch")),
    ("Orbax, copied", orbax, ("s3fs", "orbax.checkpoint", "jax", "opentrn")),
]


def main():
    at = f"s3://trn-python-{os.getpid()}"
    if not missing("s3fs"):
        import s3fs

        s3fs.S3FileSystem().mkdir(at)
    for name, check, needs in CHECKS:
        if absent := missing(*needs):
            print(f"skipped {name}: no {', '.join(absent)} here (pip install {' '.join(absent).replace('.', '-')})")
            continue
        check(at)
        print(f"ok {name}", flush=True)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
    if sys.argv[1:2] == ["half"]:
        torch_half(*sys.argv[2:])
    else:
        main()
