# SPDX-License-Identifier: Apache-2.0
"""A JAX training step as files, for `otrn train`: StableHLO, a manifest that names everything, first values."""

import json
import os
import pathlib
from collections.abc import Callable
from typing import Any


def _rows(tree: Any, kind: Callable[[str], str]) -> list[tuple[dict[str, Any], Any]]:
    import jax
    import numpy as np

    rows = []
    for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
        if hasattr(leaf, "dtype") and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.extended):
            raise TypeError(
                "opentrn.export_step: typed random keys cannot be saved; use jax.random.PRNGKey"
            )
        name = jax.tree_util.keystr(path, simple=True, separator=".")
        array = np.asarray(leaf)
        row = {
            "kind": kind(name),
            "name": name,
            "shape": list(array.shape),
            "type": str(array.dtype),
        }
        rows.append((row, array))
    return rows


def _placed(state: Any, batch: Any) -> Any:
    """The mesh that the arrays lie on, and where the new state and the loss lie; None and None on one device."""
    import jax
    from jax.sharding import NamedSharding, PartitionSpec

    def named(leaf: Any) -> Any:
        found = getattr(leaf, "sharding", None)
        return found if isinstance(found, NamedSharding) and found.num_devices > 1 else None

    meshes = {s.mesh for s in map(named, jax.tree.leaves((state, batch))) if s is not None}
    if len(meshes) > 1:
        raise ValueError("opentrn.export_step: state and batch lie on several meshes")
    if not meshes:
        return None, None
    mesh = meshes.pop()
    whole = NamedSharding(mesh, PartitionSpec())
    return mesh, (jax.tree.map(lambda leaf: named(leaf) or whole, state), whole)


def export_step(
    step: Callable[..., Any],
    state: Any,
    batch: Any,
    path: str | os.PathLike[str],
    inputs: bool = True,
) -> dict[str, Any]:
    """Writes step.mlir, manifest.json and, unless inputs is False, in_000.npy, … into the folder `path`.

    step(state, batch) gives the new state, of the same structure, and the loss. state is what a run keeps and a
    checkpoint holds; leaves under a key or field `params` are its parameters. batch is what each step takes.
    `otrn train PATH` trains it; `otrn compile`, `run` and `prof` take step.mlir. Returns the manifest.

    Arrays with a NamedSharding make it a step over their mesh's devices: `otrn train` runs it on so many, in one process
    or several, and files and checkpoints hold whole arrays. The new state lies as the state does.
    """
    import jax
    import numpy as np

    mesh, out = _placed(state, batch)
    lowered = jax.jit(step, donate_argnums=0, keep_unused=True, out_shardings=out).lower(state, batch)
    new, loss = jax.eval_shape(step, state, batch)
    if jax.tree.structure(new) != jax.tree.structure(state):
        raise ValueError("opentrn.export_step: the step's new state has another structure than its state")
    if jax.tree.structure(loss) != jax.tree.structure(0) or loss.shape:
        raise ValueError("opentrn.export_step: step(state, batch) must give the new state and one loss")
    kept = _rows(state, lambda name: "parameter" if "params" in name.split(".") else "state")
    taken = _rows(batch, lambda name: "input")
    for row, _ in taken:
        row["name"] = f"batch.{row['name']}".rstrip(".")
    folder = pathlib.Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    for i, (row, array) in enumerate(kept + taken):
        if inputs:
            row["file"] = f"in_{i:03}.npy"
            np.save(folder / row["file"], array)
    fields = ("kind", "name", "shape", "type")
    results = [{k: row[k] for k in fields} | {"replaces": i} for i, (row, _) in enumerate(kept)]
    results.append({"kind": "loss", "name": "loss", "shape": [], "type": str(loss.dtype)})
    manifest: dict[str, Any] = {
        "program": "step.mlir",
        "arguments": [row for row, _ in kept + taken],
        "results": results,
    }
    if mesh is not None:
        manifest["mesh"] = dict(mesh.shape)
    (folder / "step.mlir").write_text(lowered.as_text(debug_info=True))
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
    return manifest


def _double(tree: Any) -> Any:
    """Floats of f32 as f64; all else as it is."""
    import jax
    import numpy as np

    return jax.tree.map(
        lambda x: np.asarray(x, np.float64) if np.asarray(x).dtype == np.float32 else np.asarray(x), tree
    )


def validate(
    step: Callable[..., Any],
    state: Any,
    batch: Any,
    steps: int = 20,
    data: str | os.PathLike[str] | None = None,
    options: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Is this step, as export_step takes it, good enough in the precisions the chip computes fast in?

    Makes the steps in double precision (JAX's x64, which the step must follow: types from its arguments), f32, bf16 and
    fp8, on `batch` again and again or on the file `data`, and compares (`otrn precision`). Returns what `otrn precision
    --json` prints: of each of "precisions" the losses, "gradients" by parameter, "worse" and a "verdict",
    and of one that is worse "first_wrong": the operation, file and line whose cast makes the gradients wrong.
    """
    import subprocess
    import sys
    import tempfile

    import jax

    with tempfile.TemporaryDirectory() as folder:
        export_step(step, state, batch, folder)
        with jax.enable_x64(True):
            export_step(step, _double(state), _double(batch), os.path.join(folder, "f64"))
        words = ["precision", folder, f"--steps={steps}", "--seeds=1", "--json", *options]
        if data is not None:
            words.append(f"--data={os.fspath(data)}")
        command = [sys.executable, "-m", "opentrn", *words]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 3):
        raise RuntimeError(f"opentrn.validate: {done.stderr.strip()}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found
