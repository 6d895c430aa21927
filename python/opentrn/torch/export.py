# SPDX-License-Identifier: Apache-2.0
"""A training step as files: StableHLO, a manifest that names everything, inputs."""

import json
import os
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

import torch

from opentrn.torch import randomness, step
from opentrn.torch.capture import make
from opentrn.torch.plan import Plan
from opentrn.torch.shard import Plan as Sharding
from opentrn.torch.shard import sharding


class _Captured(Exception):
    """Ends the call that was made only to see the graph: nothing has run yet."""

    def __init__(self, plan, args):
        self.plan, self.args = plan, args


def _capture(model, opt, loss_fn, batch, named, strict, max_norm):
    def stop(module, example_inputs):
        randomness.replace_random(module)
        plan = Plan(module, "torch.step", strict=strict, only_text=True)

        def run(args):
            raise _Captured(plan, list(args))

        run._boxed_call = True  # type: ignore[attr-defined]
        return run

    whole = step.Step(model, opt, loss_fn, backend=make(stop), max_norm=max_norm, dynamic=False)  # a file has the sizes of its example
    try:
        whole(*batch, **named)
    except _Captured as done:
        return done.plan, done.args, whole
    raise RuntimeError("opentrn: the step was not captured as one graph")


def _names(model, opt, whole, batch, named):
    """Address of a tensor -> (kind, name)."""
    found: dict[int, tuple[str, str]] = {}

    def put(tensor, kind, name):
        if isinstance(tensor, torch.Tensor):
            found.setdefault(tensor.data_ptr(), (kind, name))

    for name, p in model.named_parameters():
        put(p, "parameter", name)
        for key, value in opt.state.get(p, {}).items():
            put(value, "state", f"{name}.{key}")
    for name, buffer in model.named_buffers():
        put(buffer, "buffer", name)
    for i, rate in enumerate(whole._rates):
        put(rate, "learning_rate", f"group{i}.lr")
    leaves, _ = torch.utils._pytree.tree_flatten_with_path((batch, named))
    for path, value in leaves:
        put(value, "input", "batch" + torch.utils._pytree.keystr(path[1:]))
    return found


def _save(path, port, tensor):
    """The tensor's memory as a .npy file; types numpy lacks are saved as their bits."""
    import numpy as np

    tensor = tensor.detach().permute(port.order).contiguous()
    if tensor.dtype in (torch.bfloat16, torch.float16):
        bits = tensor.view(torch.int16).numpy()
        array = bits.view(np.float16) if tensor.dtype == torch.float16 else bits.view("<V2")
    else:
        array = tensor.numpy()
    np.save(path, array)


def _cuts(cut, rows, ports):
    """Of each tensor, in the order its memory has its dimensions."""
    out = []
    for row, port in zip(rows, ports, strict=True):
        names = [row["name"]] + ([row["name"].rpartition(".")[0]] if row["kind"] == "state" else [])
        axes = cut.cuts(names, port.shape)
        row["cuts"] = axes
        out.append(sharding([axes[d] for d in port.order]))
    return out


def _text(program, rows, results, cut):
    """The module; over devices where there is a plan."""
    names = [row["name"] for row in rows]
    if cut is None:
        return program.named(names)
    given, made = _cuts(cut, rows, program.inputs), _cuts(cut, results, program.outputs)
    cut.done()
    return f"{cut.header()}{program.named(names, (given, made))}}}\n"


def export_step(
    model: torch.nn.Module,
    opt: torch.optim.Optimizer,
    example: Any,
    path: str | os.PathLike[str],
    loss_fn: Callable[..., Any] | None = None,
    inputs: bool = True,
    strict: bool = True,
    mesh: Any = None,
    plan: Mapping[str, Any] | None = None,
    max_norm: float | None = None,
) -> dict[str, Any]:
    """Writes step.mlir, manifest.json and, unless inputs is False, in_000.npy, … into the folder
    `path`.

    example: a batch, as a tuple of positional or a dict of named arguments of the step.
    The manifest lists the program's arguments and results in order: kind (parameter, state, buffer,
    input, learning_rate, seed; loss), name, shape, type, and for a result the argument it replaces.
    `otrn compile`, `run` and `prof` take step.mlir. Returns the manifest.

    An operator the device lacks is an error. With strict=False it is written as a custom call under
    its own name and listed in the manifest; `otrn check` then tells each with the user's line.

    mesh: axes and sizes, {"dp": 4, "tp": 8}, or a DeviceMesh: the program is one over so many devices, for `otrn predict`,
    `prof` and `run`. plan: how tensors lie over it (opentrn.torch.shard); the batch is that of all devices.
    max_norm: gradients are clipped to it, as torch.nn.utils.clip_grad_norm_ does.
    """
    if plan is not None and mesh is None:
        raise ValueError("opentrn: a plan needs a mesh: export_step(…, mesh={\"dp\": 2, \"tp\": 4}, plan=…)")
    cut = Sharding(mesh, plan, model) if mesh is not None else None
    batch, named = ((), example) if isinstance(example, dict) else (tuple(example), {})
    captured, args, whole = _capture(model, opt, loss_fn, batch, named, strict, max_norm)
    known = _names(model, opt, whole, batch, named)
    program, values = captured.single_program(args)
    rows = []
    for i, (port, tensor) in enumerate(zip(program.inputs, values, strict=True)):
        kind = "seed" if port.node in captured.cut.seeds else "constant"
        kind, name = known.get(tensor.data_ptr(), (kind, port.node.name))
        row = {"kind": kind, "name": name, "shape": list(port.shape), "type": str(port.dtype)[6:]}
        if inputs:
            row["file"] = f"in_{i:03}.npy"
        rows.append(row)
    results = []
    for port in program.outputs:
        row = {"kind": "loss", "name": "loss"}
        if port.alias is not None:
            row = {k: rows[port.alias][k] for k in ("kind", "name")} | {"replaces": port.alias}
        results.append(row | {"shape": list(port.shape), "type": str(port.dtype)[6:]})
    manifest: dict[str, Any] = {
        "program": "step.mlir",
        "arguments": rows,
        "results": results,
        "on_the_cpu": [
            {"operator": f.operator, "reason": f.reason, "place": f.place} for f in captured.fallbacks
        ],
    }
    if cut is not None:
        manifest["mesh"] = cut.mesh
    text = _text(program, rows, results, cut)
    folder = pathlib.Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    for row, port, tensor in zip(rows if inputs else (), program.inputs, values):
        _save(folder / row["file"], port, tensor)
    (folder / "step.mlir").write_text(text)
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
    return manifest
