# SPDX-License-Identifier: Apache-2.0
"""opentrn.predict: a step written in JAX or PyTorch, on a fleet, without running it."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
from typing import Any


def run(words: list[str]) -> subprocess.CompletedProcess[str]:
    """The otrn of this package, as a process of its own."""
    package = str(pathlib.Path(__file__).resolve().parents[2])
    path = os.pathsep.join(v for v in (package, os.environ.get("PYTHONPATH")) if v)
    return subprocess.run(
        [sys.executable, "-m", "opentrn", *words], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}
    )


def _text(step: Any, shapes: tuple[Any, ...], torch_words: dict[str, Any]) -> str:
    given = {k: v for k, v in torch_words.items() if v is not None}
    if hasattr(step, "named_parameters"):
        return _torch_text(step, shapes, given)
    if given:
        raise TypeError(f"opentrn.predict: {', '.join(given)} is for a PyTorch model; a JAX function's arguments have shardings")
    if isinstance(step, (str, os.PathLike)):
        return ""
    if isinstance(step, (bytes, bytearray)):
        raise TypeError("opentrn.predict: a function, or the path of a program, is needed")
    import jax

    traced = (step if hasattr(step, "trace") else jax.jit(step)).trace(*shapes)
    return str(traced.lower(lowering_platforms=("cpu",)).as_text(debug_info=True))


def _torch_text(model: Any, shapes: tuple[Any, ...], given: dict[str, Any]) -> str:
    from opentrn.torch import export_step

    if len(shapes) != 2:
        raise TypeError("opentrn.predict: a PyTorch step is predict(model, optimizer, example, instance=…, mesh=…, plan=…)")
    with tempfile.TemporaryDirectory() as folder:
        export_step(model, *shapes, folder, inputs=False, **given)
        return (pathlib.Path(folder) / "step.mlir").read_text(encoding="utf-8")


def predict(
    step: Any,
    *shapes: Any,
    instance: str,
    nodes: int = 1,
    tokens: float | None = None,
    samples: float | None = None,
    price: float | None = None,
    mesh: Any = None,
    plan: Any = None,
    loss_fn: Any = None,
    max_norm: float | None = None,
) -> dict[str, Any]:
    """What a step takes on `nodes` machines: time, memory, dollars, as `otrn predict --json` tells it.

    step: a function, jitted or not, or the path of a program file. shapes: its arguments, as jax.ShapeDtypeStruct with shardings
    over a mesh (jax.sharding.AbstractMesh needs no devices), or arrays. tokens, samples: of one step of all devices.
    Of PyTorch: predict(model, optimizer, example, …) with mesh, plan, loss_fn and max_norm as opentrn.torch.export_step takes them.
    Raises ValueError where the program and the machines do not go together.
    """
    text = _text(step, shapes, {"mesh": mesh, "plan": plan, "loss_fn": loss_fn, "max_norm": max_norm})
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "step.mlir"
        if text:
            path.write_text(text, encoding="utf-8")
        words = ["predict", str(path) if text else os.fspath(step), f"--instance={instance}", f"--nodes={nodes}", "--json"]
        given = {"tokens": tokens, "samples": samples, "price": price}
        ran = run(words + [f"--{k}={v}" for k, v in given.items() if v is not None])
    if ran.returncode:
        raise ValueError("opentrn.predict: " + ran.stderr.strip().replace("\n  hint: ", "; "))
    return dict(json.loads(ran.stdout))
