# SPDX-License-Identifier: Apache-2.0
"""Operators that run outside of device programs while somebody looks (opentrn.profile, OTRN_TORCH_REPORT).

What Dynamo does not capture (a frame it gave up, an optimizer nobody compiled, the loss beside a compiled model) runs on the
CPU, and no program's time contains it. A dispatch mode sees each such operator; torch.compile goes on under it and hides what
it captured. Operators on tensors of the device `neuron` are programs or counted by the device itself.
"""

import contextlib
import dataclasses
import functools
import sys
import threading
import types

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode

from opentrn import _profile
from opentrn.torch.places import in_torch_or_ours
from opentrn.torch.program import COLLECTIVES

_MOST = 200_000  # operators that are looked at: of a long training the first steps tell enough
_FREE = {  # they compute nothing
    "aten::empty", "aten::empty_like", "aten::empty_strided", "aten::new_empty", "aten::new_empty_strided", "aten::resize_",
    "aten::set_", "aten::lift_fresh", "aten::_local_scalar_dense", "aten::is_pinned",
}  # fmt: skip


_PLAIN = {torch.Tensor, torch.nn.Parameter}


@dataclasses.dataclass
class Row:
    runs: int = 0
    flops: int = 0


rows: dict[tuple[str, str, bool], Row] = {}  # operator, place, in a backward pass
_inside = threading.local()  # depth of device programs' own calls


@functools.cache
def _computes(op):
    views = any(r.alias_info is not None and not r.alias_info.is_write for r in op._schema.returns)
    return not views and op._schema.name not in _FREE and op.namespace not in (*COLLECTIVES, "profiler")


@functools.cache
def _formula(op):
    from torch.utils.flop_counter import flop_registry

    return flop_registry.get(op.overloadpacket)


def flops_of(op, args, kwargs, out):
    """Of a matrix product or a convolution; 0 for all others."""
    formula = _formula(op) if isinstance(op, torch._ops.OpOverload) else None
    if formula is None:
        return 0
    with contextlib.suppress(Exception):  # nothing that is only told may stop a program
        return int(formula(*args, **kwargs, out_val=out))
    return 0


def user_line():
    """The user's line on the stack, or "" for work that another thread asked for."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and in_torch_or_ours(frame.f_code.co_filename):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}" if frame else ""


def _on_cpu(values):
    """Is the work the CPU's? Tensors of tracing have no memory, those of other devices are not our business."""
    found = [v for v in torch.utils._pytree.tree_leaves(values) if isinstance(v, torch.Tensor)]
    return bool(found) and all(type(t) in _PLAIN and t.device.type == "cpu" for t in found)


class _Watch(TorchDispatchMode):
    @classmethod
    def ignore_compile_internals(cls):
        return True

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if getattr(_inside, "depth", 0) or watching.seen >= _MOST or FakeTensor in types:
            return op(*args, **kwargs)
        if not _PLAIN.issuperset(types):
            return NotImplemented  # a subclass (DTensor) hands the work down: that is seen
        out = op(*args, **kwargs)
        if not _computes(op) or not _on_cpu((args, out)):
            return out
        key = str(op), user_line(), torch._C._current_autograd_node() is not None
        row = rows.setdefault(key, Row())
        row.runs += 1
        row.flops += flops_of(op, args, kwargs, out)
        watching.seen += 1
        return out


class _Watching:
    """begin and end may be nested, and end in another thread than they began: then the mode stays."""

    def __init__(self):
        self.depth = self.seen = 0
        self._modes = []

    def begin(self):
        self.depth += 1
        if self.depth == 1:
            self.seen = 0
            self._modes.append((threading.get_ident(), _Watch()))
            self._modes[-1][1].__enter__()

    def end(self):
        self.depth -= 1
        if self.depth == 0 and self._modes and self._modes[-1][0] == threading.get_ident():
            self._modes.pop()[1].__exit__(None, None, None)


watching = _Watching()


@contextlib.contextmanager
def hidden():
    """Around the call of a device program: what it does is told elsewhere."""
    _inside.depth = getattr(_inside, "depth", 0) + 1
    try:
        yield
    finally:
        _inside.depth -= 1


def found():
    """For opentrn.profile()."""
    why = {False: "eager on the CPU", True: "eager on the CPU, in a backward pass"}
    return [
        _profile.Outside(key, key[0], key[1], why[key[2]], row.runs, row.flops) for key, row in list(rows.items())
    ]


def note():
    if watching.seen < _MOST:
        return []
    return [f"operators outside of device programs were counted up to {_MOST:,}, then no more"]
