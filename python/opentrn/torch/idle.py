# SPDX-License-Identifier: Apache-2.0
"""Modules that torch.compile was asked to compile for us and of which Dynamo captured nothing.

Dynamo passes over frames of torch's own modules: of DistributedDataParallel around a bare nn.Sequential none is left, and the model
runs on the CPU without a word. When a program is made, the compiled modules that are being called at that moment are known to have
one (`note`). A module whose code was captured for another of the same make has none of its own and is not idle either, so what is
kept is what modules are made of.
"""

import gc
import sys
import types

import torch
from torch._dynamo.eval_frame import OptimizedModule

from opentrn.torch.optimizer import is_ours

_captured: set[tuple[type, ...]] = set()


def _make(module):
    """What a module is made of: the types of all in it, itself first."""
    return tuple(type(m) for m in module.modules())


def _callback(module):
    """Dynamo's, of a module that was compiled; None: it was not."""
    if isinstance(module, OptimizedModule):
        return module.dynamo_ctx.callback
    call = module._compiled_call_impl  # module.compile(…)
    if call is None or not getattr(call, "__closure__", None):
        return None
    return dict(zip(call.__code__.co_freevars, (c.cell_contents for c in call.__closure__), strict=True)).get("callback")


def note():
    """A device program was compiled: for whom, the stack tells."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        module = frame.f_locals.get("self") if frame.f_code.co_name in ("__call__", "_wrapped_call_impl") else None
        if isinstance(module, torch.nn.Module) and _callback(module) is not None:
            _captured.add(_make(module))
        frame = frame.f_back


def clear():
    _captured.clear()


def _title(module):
    inner = getattr(module, "_orig_mod", module)
    wrapped = inner.module if isinstance(inner, torch.nn.parallel.DistributedDataParallel) else None
    return f"{type(inner).__name__}({type(wrapped).__name__})" if wrapped is not None else type(inner).__name__


def modules():
    """Names of compiled modules without a device program."""
    found = [m for m in gc.get_objects() if issubclass(type(m), torch.nn.Module)]  # asking a weak reference would raise
    return [
        _title(m)
        for m in found
        if is_ours(_callback(m)) and _make(m) not in _captured
    ]
