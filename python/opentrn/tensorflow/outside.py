# SPDX-License-Identifier: Apache-2.0
"""Operators that TensorFlow ran on its CPU while the device /device:NEURON:N was meant: no device program has them.

TensorFlow places what has no kernel for the device on the CPU without a word. While a profile is taken, a callback of
TensorFlow's own sees every eager operator and every call of a function: of the former it knows where the results are, of the
latter which operators have a kernel for the device.
"""

import collections
import functools
import sys
from typing import Any

from tensorflow.core.framework import types_pb2
from tensorflow.python.eager import context
from tensorflow.python.framework import kernels, op_callbacks

from opentrn import _profile
from opentrn.tensorflow.device import NAME, is_meant
from opentrn.tensorflow.places import is_library

_PIPELINE = ("Iterator", "Dataset", "Optional")  # batches come from the host everywhere
_NO_KERNEL = "TensorFlow has no kernel for the device"
_ON_HOST = {2: "the size of its result follows from values", 3: "XLA's kernel has no pivoting"}  # by priority (src/pjrt/tf_host.c)
_LIST = "a list of tensors is no array of a program"
_WHOLE = ("While", "StatelessWhile", "If", "StatelessIf", "Case", "StatelessCase", "For")  # with their functions (src/pjrt/tf_graph.c)
_ASKED = "it was placed there"
_counts: collections.Counter[tuple[str, str]] = collections.Counter()  # (operator, place) -> runs


@functools.cache
def _why(operator: str) -> str:
    """Why the device does not run it; empty where it does. Of operators that XLA does not have whole the plugin has kernels for the host,
    which go before those for the device (src/pjrt/tf_host.c); lists it puts on the CPU (src/pjrt/tf_graph.c)."""
    if "TensorList" in operator:
        return _LIST
    found = [k for k in kernels.get_registered_kernels_for_op(operator).kernel if k.device_type in (NAME, "DEFAULT")]
    return _NO_KERNEL if not found else next((_ON_HOST[k.priority] for k in found if k.priority in _ON_HOST), "")


def _is_outside(operator: str) -> bool:
    return bool(_why(operator)) and not any(word in operator for word in _PIPELINE)


def _here() -> str:
    """The user's line that is being run."""
    frame = sys._getframe(1)
    while frame and is_library(frame.f_code.co_filename):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else ""


def _traced_at(info: Any, node: str) -> str:
    """The user's line a node of a function was made in."""
    trace = info.name_to_trace_id.get(node)
    for frame in (info.frames_by_id[i] for i in reversed(info.traces_by_id[trace].frame_id)) if trace is not None else ():
        if not is_library(info.files[frame.file_index]):
            return f"{info.files[frame.file_index]}:{frame.line}"
    return ""


@functools.cache
def _of_function(name: str) -> dict[tuple[str, str], int]:
    """What one call runs on the CPU; bodies of loops and both branches once."""
    ctx = context.context()
    info = ctx.get_graph_debug_info(name)
    found: collections.Counter[tuple[str, str]] = collections.Counter()
    for node in ctx.get_function_def(name).node_def:
        if node.attr["_XlaMustCompile"].b:
            continue
        if node.op in _WHOLE and not node.attr["_lower_using_switch_merge"].b and types_pb2.DT_INT32 in node.attr["T"].list.type:
            found[node.op, _traced_at(info, node.name)] += 1
            continue
        inner = [f for a in node.attr.values() for f in (a.func, *a.list.func) if f.name]
        for function in inner if "Dataset" not in node.op else ():
            found.update(_of_function(function.name))
        if not inner and (_is_outside(node.op) or "CPU" in node.device):
            found[node.op, _traced_at(info, node.name)] += 1
    return dict(found)


def _is_compiled(name: str) -> bool:
    return context.context().get_function_def(name).attr["_XlaMustCompile"].b


def _seen(op_type: Any, inputs: Any, attrs: Any, outputs: Any, op_name: Any = None, graph: Any = None) -> None:
    if graph is not None or not is_meant():  # is only traced
        return
    operator = op_type.decode() if isinstance(op_type, bytes) else op_type
    if context.context().has_function(operator):
        if not _is_compiled(operator):
            _counts.update(_of_function(operator))
    elif _is_outside(operator):
        _counts[operator, _here()] += 1


_profiles = 0


def begin() -> None:
    global _profiles
    if not _profiles:
        op_callbacks.add_op_callback(_seen)
    _profiles += 1


def end() -> None:
    global _profiles
    _profiles -= 1
    if not _profiles:
        op_callbacks.remove_op_callback(_seen)


def found() -> list[_profile.Outside]:
    """All that was seen so far."""
    return [_profile.Outside(key, key[0], key[1], _why(key[0]) or _ASKED, runs) for key, runs in _counts.items()]
