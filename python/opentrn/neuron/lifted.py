# SPDX-License-Identifier: Apache-2.0
"""Operators whose numbers are arguments of their program: optimizers change them every step.

Each has a form that takes a 0-dimensional tensor where the operator takes a number.
"""

import itertools

import torch

aten = torch.ops.aten

def _add(x, y, alpha=1):
    return x + y * alpha


def _sub(x, y, alpha=1):
    return x - y * alpha


def _addcmul(x, a, b, value=1):
    return x + value * a * b


def _addcdiv(x, a, b, value=1):
    return x + value * a / b


def _lerp(x, end, weight):
    return torch.where(weight.abs() < 0.5, x + weight * (end - x), end - (end - x) * (1 - weight))


_SINGLE = {  # operator and overload: form that takes a tensor for its number
    "add.out": _add,
    "sub.out": _sub,
    "addcmul.out": _addcmul,
    "addcdiv.out": _addcdiv,
    "lerp.Scalar_out": _lerp,
    "fill_.Scalar": lambda x, value: torch.zeros_like(x) + value,
}
_LISTS = {  # foreach operators with one number, or one for each tensor, behind the lists
    "add": lambda x, s: x + s,
    "sub": lambda x, s: x - s,
    "mul": lambda x, s: x * s,
    "div": lambda x, s: x / s,
    "lerp": _lerp,
    "addcmul": _addcmul,
    "addcdiv": _addcdiv,
}


def _one(form):
    def call(x, *rest, out=None, **named):
        out = x if out is None else out
        return out.copy_(form(x, *rest, **named))

    return call


def _each(form, in_place):
    def call(xs, *rest):
        *lists, number = rest
        rows = zip(xs, *lists, number if isinstance(number, (list, tuple)) else itertools.repeat(number))
        values = [form(*row).to(row[0].dtype) for row in rows]
        return [x.copy_(v) for x, v in zip(xs, values, strict=True)] if in_place else values

    return call


def _forms():
    """OpOverload -> function in its place."""
    rows = {}
    for name, form in _SINGLE.items():
        packet, overload = name.split(".")
        rows[getattr(getattr(aten, packet), overload)] = _one(form)
    for name, form in _LISTS.items():
        for in_place in (False, True):
            packet = getattr(aten, f"_foreach_{name}" + "_" * in_place)
            for overload in {"Scalar", "ScalarList"} & set(packet.overloads()):
                rows[getattr(packet, overload)] = _each(form, in_place)
    return rows


LIFTED = _forms()


def install(library):
    """Tells device.cpp."""
    for op in LIFTED:
        library.neuron_lift(op._schema.name.encode(), op._schema.overload_name.encode())
