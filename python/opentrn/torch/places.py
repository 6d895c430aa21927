# SPDX-License-Identifier: Apache-2.0
"""Which line of the user's program a node of a graph comes from.

Forward nodes carry a stack trace. Gradients taken inside the graph (`torch.autograd.grad`, as compile_step does) would all
carry the one of that call. Autograd numbers its nodes as the forward pass makes them, and FX writes that number (`seq_nr`)
on the nodes it records; so the call is replaced by one that tells FX, while a gradient is computed, the number of the
operation it belongs to (`keep`), and afterwards each gradient node takes over the trace of the forward node of that number
(`settle`).
"""

import contextlib
import os
import re
from typing import Any

import torch
from torch.fx import traceback as fx_traceback

_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')
_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_TORCHS = os.path.dirname(torch.__file__) + os.sep


def in_torch_or_ours(file):
    return file.startswith((_OURS, _TORCHS, "<eval_with_key>")) or file == contextlib.__file__  # FX's code; our decorators


def root_of(module):
    """(file, line, function) where the code of a captured graph begins, or None: the outermost frame of the user's, of torch's own
    modules where no node has another."""
    traces = [_FRAME.findall(n.meta.get("stack_trace") or "") for n in module.graph.nodes]
    for others in ((_OURS, _TORCHS), (_OURS, _TORCHS + "_dynamo" + os.sep)):
        for rows in traces:
            found = next((r for r in rows if not r[0].startswith(others)), None)
            if found:
                return found[0], int(found[1]), found[2]
    return None


def place_of(node):
    """File, line and function of the user's code behind a node, or None. Frames inside torch are only shown when there
    is no other, as for a model made of torch's own modules; ours never."""
    found = [row for row in _FRAME.findall(node.meta.get("stack_trace") or "") if not row[0].startswith(_OURS)]
    found = [row for row in found if not row[0].startswith(_TORCHS)] or found
    return (found[-1][0], int(found[-1][1]), found[-1][2]) if found else None


def _nodes_behind(outputs):
    """Autograd's nodes, each once."""
    left = [t.grad_fn for t in outputs if isinstance(t, torch.Tensor) and t.grad_fn is not None]
    seen = set(left)
    while left:
        node = left.pop()
        yield node
        more = {after for after, _ in node.next_functions if after is not None} - seen
        seen |= more
        left += more


def _begin(number):
    def hook(_gradients):
        fx_traceback.set_grad_fn_seq_nr(number)

    return hook


def _end(_inputs, _outputs):
    fx_traceback.reset_grad_fn_seq_nr()


def _grad(outputs, inputs, *args, **kwargs):
    """torch.autograd.grad; FX records the number of the forward operation with each gradient."""
    handles = []
    for node in _nodes_behind(outputs if isinstance(outputs, (list, tuple)) else [outputs]):
        handles.append(node.register_prehook(_begin(node._sequence_nr())))
        handles.append(node.register_hook(_end))
    try:
        return torch.autograd.grad(outputs, inputs, *args, **kwargs)
    finally:
        for handle in handles:
            handle.remove()


def keep(module):
    """Before a captured graph is taken apart: its calls of autograd keep the places of what they differentiate."""
    for node in module.graph.nodes:
        if node.op == "call_function" and node.target is torch.autograd.grad:
            node.target = _grad
    module.recompile()


def _is_gradient(node):
    return "autograd.grad(" in (node.meta.get("stack_trace") or "")


def settle(module):
    """Gives gradients the stack traces and the modules of the forward operations they belong to."""
    traces: dict[int, str] = {}
    modules: dict[int, Any] = {}
    for node in module.graph.nodes:
        number = node.meta.get("seq_nr")
        if number is not None and not _is_gradient(node) and node.meta.get("stack_trace"):
            traces.setdefault(number, node.meta["stack_trace"])  # later ones of a number made no autograd node
            modules.setdefault(number, node.meta.get("nn_module_stack"))
    for node in module.graph.nodes:
        if not _is_gradient(node):
            continue
        trace, stack = (of.get(node.meta.get("seq_nr")) for of in (traces, modules))
        if trace is None:  # sums of gradients, which autograd makes between its nodes: as what goes in
            inputs = [i for i in node.all_input_nodes if i.meta.get("stack_trace")]
            known = next((i for i in inputs if "autograd.grad(" not in i.meta["stack_trace"]), None)
            trace = known and known.meta["stack_trace"]
            stack = known and (known.meta.get("nn_module_stack") or known.meta.get("fwd_nn_module_stack"))
        node.meta["stack_trace"] = trace or ""
        if stack:
            node.meta["fwd_nn_module_stack"] = stack
