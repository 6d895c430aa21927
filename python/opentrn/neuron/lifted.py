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


# --- whole optimizers: corrections in float64, where 1 - 0.999**step keeps its digits ----------------


def _no_scaler(grad_scale, found_inf):
    if grad_scale is not None or found_inf is not None:
        raise NotImplementedError("a GradScaler inside the optimizer")


def _fused_adam(decoupled):
    def call(
        xs, grads, averages, squares, largest, steps, *, lr, beta1, beta2, weight_decay, eps, amsgrad, maximize,
        grad_scale=None, found_inf=None,
    ):  # fmt: skip
        _no_scaler(grad_scale, found_inf)
        for i, (x, g, m, v, step) in enumerate(zip(xs, grads, averages, squares, steps, strict=True)):
            g = -g if maximize else g
            x1 = x * (1 - lr * weight_decay) if decoupled else x
            g = g if decoupled else g + weight_decay * x
            m.copy_(m + (1 - beta1) * (g - m))
            v.copy_(v * beta2 + (1 - beta2) * g * g)
            if amsgrad:
                largest[i].copy_(torch.maximum(largest[i], v))
            count = step.double()
            denominator = (largest[i] if amsgrad else v).sqrt() / (1 - beta2**count).sqrt() + eps
            x.copy_(x1 - lr / (1 - beta1**count) * m / denominator)

    return call


def _fused_sgd(
    xs, grads, buffers, *, weight_decay, momentum, lr, dampening, nesterov, maximize, is_first_step, grad_scale=None,
    found_inf=None,
):  # fmt: skip
    _no_scaler(grad_scale, found_inf)
    for i, (x, g) in enumerate(zip(xs, grads, strict=True)):
        g = (-g if maximize else g) + weight_decay * x
        if buffers:
            buffers[i].copy_(g if is_first_step else momentum * buffers[i] + (1 - dampening) * g)
            g = g + momentum * buffers[i] if nesterov else buffers[i]
        x.copy_(x - lr * g)


def _fused_adagrad(
    xs, grads, sums, steps, *, lr, lr_decay, weight_decay, eps, maximize, grad_scale=None, found_inf=None
):
    _no_scaler(grad_scale, found_inf)
    for x, g, total, step in zip(xs, grads, sums, steps, strict=True):
        g = (-g if maximize else g) + weight_decay * x
        total.copy_(total + g * g)
        x.copy_(x - lr / (1 + (step.double() - 1) * lr_decay) * g / (total.sqrt() + eps))


_FUSED = {
    "adam_": _fused_adam(False),
    "adamw_": _fused_adam(True),
    "sgd_": _fused_sgd,
    "adagrad_": _fused_adagrad,
}


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
    for name, form in _FUSED.items():
        packet = getattr(aten, f"_fused_{name}")
        rows |= {getattr(packet, overload): form for overload in ("default", "tensor_lr")}
    return rows


LIFTED = _forms()


def install(library):
    """Tells device.cpp."""
    for op in LIFTED:
        library.neuron_lift(op._schema.name.encode(), op._schema.overload_name.encode())
