# SPDX-License-Identifier: Apache-2.0
"""A forward pass as files: what `torch.export` captured, as StableHLO for `otrn run`, `prof` and `compile`."""

import json
import os
import pathlib
from typing import Any

import torch
from torch.export.graph_signature import InputKind, OutputKind

from opentrn.torch import decompositions, randomness, sizes
from opentrn.torch.capture import plain_attention, replace_calls
from opentrn.torch.export import _save
from opentrn.torch.plan import Plan

_KINDS = {
    InputKind.PARAMETER: "parameter",
    InputKind.BUFFER: "buffer",
    InputKind.CONSTANT_TENSOR: "constant",
    InputKind.USER_INPUT: "input",
}
_WRITTEN = {OutputKind.BUFFER_MUTATION: "buffer", OutputKind.PARAMETER_MUTATION: "parameter", OutputKind.USER_INPUT_MUTATION: "input"}


def _arguments(program):
    """(kind, name, tensor) of each argument of the graph, in order."""
    args, named = program.example_inputs
    given = iter(torch.utils._pytree.tree_leaves((args, named)))
    rows = []
    for spec in program.graph_signature.input_specs:
        if spec.kind not in _KINDS:
            raise ValueError(f"opentrn: an exported program with a {spec.kind.name} argument ({spec.target})")
        if spec.kind == InputKind.USER_INPUT:
            rows.append(("input", spec.arg.name, next(given)))
        else:
            known = program.state_dict if spec.target in program.state_dict else program.constants
            rows.append((_KINDS[spec.kind], spec.target, known[spec.target]))
    return rows


def _settle_sizes(program):
    """Sizes that were left open become those of the example's tensors: a file is a program of given sizes."""
    if sizes.changing(program.graph_module):
        values = [value for *_, value in _arguments(program)]
        program.graph_module.graph = sizes.Specialised(program.graph_module, values).result.graph


def _copy(node, val):
    copy = node.graph.call_function(torch.ops.aten.clone.default, (node,))
    copy.meta.update(node.meta | {"val": val})
    return copy


def _row_major(program):
    """Files hold arguments as their shapes say, whatever strides the example's tensors had."""
    for node in [n for n in program.graph.nodes if n.op == "placeholder"]:
        val = node.meta["val"]
        if isinstance(val, torch.Tensor) and not val.is_contiguous():
            with program.graph.inserting_after(node):
                copy = _copy(node, val)
            node.replace_all_uses_with(copy, delete_user_cb=lambda user, copy=copy: user is not copy)
            node.meta["val"] = val.contiguous()


def _results(program):
    """(kind, name) of each result the program will have: first what the module returned, then what it wrote into in place. Tensors that are
    returned as they came, or twice, become results of their own; what is no tensor has no result."""
    end = next(n for n in program.graph.nodes if n.op == "output")
    specs = list(zip(program.graph_signature.output_specs, end.args[0], strict=True))
    returned = [node for spec, node in specs if spec.kind == OutputKind.USER_OUTPUT]
    tree = torch.utils._pytree.tree_unflatten(list(range(len(returned))), program.call_spec.out_spec)
    paths, _ = torch.utils._pytree.tree_flatten_with_path(tree)
    rows = [("output", torch.utils._pytree.keystr(path), node) for (path, _), node in zip(paths, returned, strict=True)]
    rows += [(_WRITTEN[spec.kind], spec.target, node) for spec, node in specs if spec.kind != OutputKind.USER_OUTPUT]
    rows, nodes = [row for row in rows if isinstance(row[2], torch.fx.Node)], []
    for *_, node in rows:
        val = node.meta["val"]
        with program.graph.inserting_before(end):
            nodes.append(_copy(node, val.contiguous()) if node.op == "placeholder" or node in nodes or not val.is_contiguous() else node)
    end.args = (tuple(nodes),)
    return [row[:2] for row in rows]


def _captured(program, example):
    if isinstance(program, torch.nn.Module):
        args, named = ((), example) if isinstance(example, dict) else (tuple(example or ()), {})
        with torch.no_grad(), plain_attention():
            program = torch.export.export(program, args, named)
    replace_calls(program.graph_module)
    return program.run_decompositions(decompositions.table())


def export_forward(
    program: "torch.export.ExportedProgram | torch.nn.Module",
    path: str | os.PathLike[str],
    example: Any = None,
    inputs: bool = True,
    strict: bool = True,
) -> dict[str, Any]:
    """Writes forward.mlir, manifest.json and, unless inputs is False, in_000.npy, … into the folder `path`.

    program: what torch.export.export gave, or a module with an example of its arguments, a tuple or a dict; open sizes
    (dynamic_shapes) are taken from the example. The manifest
    lists arguments (kind parameter, buffer, constant or input; name, shape, type) and results in order, and is returned. Results
    are what the module returned (kind output; the name tells its place), then buffers and arguments it wrote to, with the argument each replaces.
    strict=False writes an operator the device lacks as a custom call under its own name.
    """
    program = _captured(program, example)
    _settle_sizes(program)
    _row_major(program)
    left = {node.name for node in program.graph.nodes if node.op == "placeholder"}  # a number that was open is none of them any more
    given = [row for row, spec in zip(_arguments(program), program.graph_signature.input_specs, strict=True) if spec.arg.name in left]
    made = _results(program)
    randomness.replace_random(program.graph_module)
    plan = Plan(program.graph_module, "torch.forward", strict=strict, only_text=True)
    written, values = plan.single_program([tensor for *_, tensor in given])
    known = {id(tensor): (kind, name) for kind, name, tensor in given}
    rows = []
    for i, (port, tensor) in enumerate(zip(written.inputs, values, strict=True)):
        kind, name = known.get(id(tensor), ("seed", port.node.name))
        row = {"kind": kind, "name": name, "shape": list(port.shape), "type": str(port.dtype)[6:]}
        rows.append(row | ({"file": f"in_{i:03}.npy"} if inputs else {}))
    results = []
    for (kind, name), port in zip(made, written.outputs, strict=True):
        replaced = {"replaces": i for i, row in enumerate(rows) if kind != "output" and (row["kind"], row["name"]) == (kind, name)}
        results.append({"kind": kind, "name": name, "shape": list(port.shape), "type": str(port.dtype)[6:]} | replaced)
    outside = [{"operator": f.operator, "reason": f.reason, "place": f.place} for f in plan.fallbacks]
    manifest = {"program": "forward.mlir", "arguments": rows, "results": results, "on_the_cpu": outside}
    folder = pathlib.Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    for row, port, tensor in zip(rows if inputs else (), written.inputs, values):
        _save(folder / row["file"], port, tensor)
    (folder / "forward.mlir").write_text(written.named([row["name"] for row in rows]))
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
    return manifest
