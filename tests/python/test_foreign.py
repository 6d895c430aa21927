# SPDX-License-Identifier: Apache-2.0
"""Files of other tools, as those tools write them, are named for what they are (src/read/foreign.c)."""

import gzip
import pickle
import subprocess
import zipfile

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import OTRN


def said(path):
    done = subprocess.run([OTRN, "compile", path], capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.count("error[") == 1 and "\n  hint: " in done.stderr
    return done.stderr


def test_exported_and_jaxpr(tmp_path):
    exported = jax.export.export(jax.jit(lambda x: x + 1))(jnp.ones(3))
    # as Exported.serialize writes it (which needs flatbuffers): offsets, then the module's bytecode
    (tmp_path / "a").write_bytes(b"<\0\0\0" + bytes(240) + exported.mlir_module_serialized + bytes(40))
    assert "this is a serialised jax.export.Exported" in said(tmp_path / "a")
    (tmp_path / "b").write_text(exported.mlir_module())
    assert subprocess.run([OTRN, "compile", tmp_path / "b"]).returncode == 0
    (tmp_path / "c").write_text(str(jax.make_jaxpr(jnp.sin)(1.0)))
    assert "this is a jaxpr" in said(tmp_path / "c")


def test_arrays_and_pickles(tmp_path):
    np.save(tmp_path / "a.npy", np.ones(3))
    np.savez(tmp_path / "b.npz", x=np.ones(3))
    (tmp_path / "c").write_bytes(pickle.dumps({"w": np.ones(3)}))
    (tmp_path / "d").write_bytes(gzip.compress(b"module {}"))
    with zipfile.ZipFile(tmp_path / "e", "w") as archive:
        archive.writestr("read.me", "nothing")
    for name, wanted in {
        "a.npy": "an array (.npy)",
        "b.npz": "an archive of arrays (.npz)",
        "c": "a Python pickle",
        "d": "compressed with gzip",
        "e": "a zip archive",
    }.items():
        assert f"this is {wanted}" in said(tmp_path / name)


def test_pytorch_files(tmp_path):
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(2, 2)
    torch.save(model.state_dict(), tmp_path / "a")
    torch.save(model.state_dict(), tmp_path / "b", _use_new_zipfile_serialization=False)
    torch.export.save(torch.export.export(model, (torch.ones(1, 2),)), tmp_path / "c.pt2")
    for name, wanted in {
        "a": "a PyTorch checkpoint (torch.save)",
        "b": "a Python pickle",
        "c.pt2": "a PyTorch program (torch.export or TorchScript)",
    }.items():
        assert f"this is {wanted}" in said(tmp_path / name)


def test_safetensors(tmp_path):
    numpy = pytest.importorskip("safetensors.numpy")
    numpy.save_file({"w": np.ones(3)}, tmp_path / "a")
    assert "this is a file of weights (safetensors)" in said(tmp_path / "a")
