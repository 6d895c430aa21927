# SPDX-License-Identifier: Apache-2.0
"""What a device program is called in reports: the function it was captured from, its file and line, the shapes of what it is given."""

import contextlib
import contextvars
import os
import re

from opentrn.torch import places
from opentrn.torch.program import is_tensor

_SHAPES = 3  # that a title names


def _shape(value):
    return "x".join(map(str, value.shape)) or "()"


def _kind(node):
    """What AOTAutograd says an argument is, by name: its classes have moved between releases."""
    return type(node.meta.get("desc")).__name__


_given: contextvars.ContextVar[frozenset[int] | None] = contextvars.ContextVar("given", default=None)


def given():
    """Numbers of the arguments that are what a call is made with, of the graph being compiled."""
    return _given.get()


@contextlib.contextmanager
def with_given(numbers):
    before = _given.set(numbers)
    try:
        yield
    finally:
        _given.reset(before)


def captured(module):
    """While a graph of Dynamo's is compiled: its parameters and buffers are not what a call is made with."""
    nodes = [n for n in module.graph.nodes if n.op == "placeholder"]
    return with_given(frozenset(i for i, n in enumerate(nodes) if not re.search("_(parameters|buffers)_", n.name)))


def _is_given(node):
    desc, given = node.meta.get("desc"), _given.get()
    if _kind(node) == "PlainAOTInput" and given is not None:
        return desc.idx in given
    return _kind(node) not in ("ParamAOTInput", "BufferAOTInput")


def _shapes(module):
    """Of what a call is made with; of a backward pass, of the gradients that come in."""
    nodes = [n for n in module.graph.nodes if n.op == "placeholder" and is_tensor(n.meta.get("val"))]
    nodes = [n for n in nodes if _kind(n) == "TangentAOTInput"] or [n for n in nodes if _is_given(n)]
    more = ", …" if len(nodes) > _SHAPES else ""
    return ", ".join(_shape(n.meta["val"]) for n in nodes[:_SHAPES]) + more


def _function(name):
    """Dynamo calls what comes behind a graph break by a name of its own."""
    rest = re.fullmatch(r"torch_dynamo_resume_in_(.+)_at_(\d+)", name)
    return f"{rest[1]} behind line {rest[2]}" if rest else name


def _class(module):
    """Of the first module that a graph without a line of the user's was captured in."""
    for node in module.graph.nodes:
        stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack") or {}
        for _, kind in stack.values():
            return str(getattr(kind, "__name__", kind)).rpartition(".")[2]
    return ""


def of(module):
    """(title, the function alone: programs of one function for different sizes have the same)"""
    file, line, name = places.root_of(module) or ("", 0, _class(module))
    at = f" at {os.path.basename(file)}:{line}" if file else ""
    return f"{_function(name)}{at} ({_shapes(module)})".strip(), (name, file)
