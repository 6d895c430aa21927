# SPDX-License-Identifier: Apache-2.0
"""The table of lowerings: operator -> function that writes it as StableHLO.

A lowering is `f(b, out, *args, **kwargs)`: the builder, what the node gives (a fake tensor with
shape, type and strides, or a tuple of them), and the node's own arguments with tensors replaced by
builder Values. It returns a Value, or a list of them for operators with several results.
`NotLowered` says why this use of an operator stays on the CPU.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch._inductor.inductor_prims  # defines prims.fma, which Dynamo uses

from opentrn.torch import dtypes, randomness  # noqa: F401 (defines operators too)
from opentrn.torch.builder import Value

TABLE: dict[torch._ops.OpOverload, Callable[..., Any]] = {}
DEVICES = ("cpu", "neuron")  # one memory: a program takes the tensors of either where they lie


class NotLowered(Exception):
    pass


def find(name):
    """ "aten.add.Tensor" -> the overload, or None when this torch has no such operator."""
    space, packet, overload = name.split(".")
    try:
        return getattr(getattr(getattr(torch.ops, space), packet), overload)
    except AttributeError:
        return None


def lowers(*names):
    def register(function):
        for name in names:
            target = find(name)
            if target is not None:
                TABLE[target] = function
        return function

    return register


def promote(*operands):
    """The type in which eager would compare or combine these tensors and numbers."""
    stand_ins = [
        torch.empty((1,) * min(x.rank, 1), dtype=x.dtype, device="meta")
        if isinstance(x, Value)
        else x
        for x in operands
    ]
    kind = stand_ins[0]
    if len(stand_ins) == 1:
        return kind.dtype
    result = torch.result_type(stand_ins[0], stand_ins[1])
    for other in stand_ins[2:]:
        result = torch.result_type(torch.empty((1,), dtype=result, device="meta"), other)
    return result


def operand(b, x, dtype):
    """A tensor or a number as a Value of this type."""
    if isinstance(x, Value):
        return b.cast(x, dtype)
    if isinstance(x, complex) and not dtype.is_complex:
        raise NotLowered("a complex number beside a real tensor")
    return b.constant(x, dtype)


def full(b, x, dtype, shape):
    return b.broadcast(operand(b, x, dtype), tuple(shape))


def work_type(dtype, *operands):
    """The type eager computes in: narrow floats with a plain number beside them in f32."""
    if dtype in dtypes.NARROW and not all(
        isinstance(x, Value) and x.dtype == dtype for x in operands
    ):
        return torch.float32
    return dtype


def dim_of(dim, rank):
    return dim + rank if dim < 0 else dim


def dims_of(dims, rank):
    if dims is None or (isinstance(dims, (list, tuple)) and not dims):
        return list(range(rank))
    dims = [dims] if isinstance(dims, int) else dims
    return sorted({dim_of(d, rank) for d in dims}) if rank else []


def lowest(dtype):
    if dtype == torch.bool:
        return False
    return float("-inf") if dtype.is_floating_point else torch.iinfo(dtype).min


def highest(dtype):
    if dtype == torch.bool:
        return True
    return float("inf") if dtype.is_floating_point else torch.iinfo(dtype).max
