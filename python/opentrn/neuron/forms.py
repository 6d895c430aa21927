# SPDX-License-Identifier: Apache-2.0
"""Operators that only devices meet, in terms of those that graphs have: copies, lists, convolutions and recurrent cells
that torch hands to a device whole."""

from collections.abc import Callable
from typing import Any

import torch

aten = torch.ops.aten


def _norms(xs, order, dtype):
    return [torch.linalg.vector_norm(x, order, dtype=dtype) for x in xs]


def _convolution_backward(grad, x, weight, *rest):
    return aten.convolution_backward.default(grad, x, weight, [grad.shape[1]], *rest)


def _plus(x, *biases):
    for bias in biases:
        x = x if bias is None else x + bias
    return x


def _lstm(from_input, from_hidden, c, input_bias=None, hidden_bias=None):
    i, f, g, o = _plus(from_input + from_hidden, input_bias, hidden_bias).chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    new = f * c + i * g
    return o * new.tanh(), new, torch.cat([i, f, g, o], 1)


def _lstm_backward(grad_h, grad_c, c, new, kept, has_bias):
    i, f, g, o = kept.chunk(4, 1)
    t = new.tanh()
    grad_h = torch.zeros_like(t) if grad_h is None else grad_h
    inner = grad_h * o * (1 - t * t)
    inner = inner if grad_c is None else inner + grad_c
    gates = [inner * g * i * (1 - i), inner * c * f * (1 - f), inner * i * (1 - g * g), grad_h * t * o * (1 - o)]
    grad = torch.cat(gates, 1)
    return grad, inner * f, grad.sum(0) if has_bias else None


def _gru(from_input, from_hidden, h, input_bias=None, hidden_bias=None):
    xr, xz, xn = _plus(from_input, input_bias).chunk(3, 1)
    hr, hz, hn = _plus(from_hidden, hidden_bias).chunk(3, 1)
    r, z = (xr + hr).sigmoid(), (xz + hz).sigmoid()
    n = (xn + r * hn).tanh()
    return n + z * (h - n), torch.cat([r, z, n, h, hn], 1)


def _gru_backward(grad, kept, has_bias):
    r, z, n, h, hn = kept.chunk(5, 1)
    inner = grad * (1 - z) * (1 - n * n)
    gr, gz = inner * hn * r * (1 - r), grad * (h - n) * z * (1 - z)
    inputs, hidden = torch.cat([gr, gz, inner], 1), torch.cat([gr, gz, inner * r], 1)
    sums = (inputs.sum(0), hidden.sum(0)) if has_bias else (None, None)
    return inputs, hidden, grad * z, *sums


FORMS: dict[torch._ops.OpOverload, Callable[..., Any]] = {
    aten._copy_from.default: lambda x, to, non_blocking=False: to.copy_(x),
    aten._foreach_norm.Scalar: _norms,
    aten.convolution_overrideable.default: aten.convolution.default,
    aten.convolution_backward_overrideable.default: _convolution_backward,
    aten._thnn_fused_lstm_cell.default: _lstm,
    aten._thnn_fused_lstm_cell_backward_impl.default: _lstm_backward,
    aten._thnn_fused_gru_cell.default: _gru,
    aten._thnn_fused_gru_cell_backward.default: _gru_backward,
}
