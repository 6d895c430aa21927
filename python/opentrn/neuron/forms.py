# SPDX-License-Identifier: Apache-2.0
"""Operators that only devices meet, in terms of those that graphs have: copies, lists, convolutions and recurrent cells
that torch hands to a device whole."""

from collections.abc import Callable
from typing import Any

import torch

from opentrn.torch import decompositions
from opentrn.torch.own_decompositions import to_places

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


def _running_best(scan):
    def call(x, values, indices, dim):
        best, where = scan(x, dim)
        values.copy_(best)
        indices.copy_(where)

    return call


# --- a gradient scaler ----------------------------------------------------------------------------


def _unscale(grads, found_inf, factor):
    for g in grads:
        found_inf.copy_(torch.maximum(found_inf, (~g.isfinite()).any().to(found_inf.dtype)))
        g.copy_(g * factor)


def _update_scale(scale, tracker, found_inf, growth, backoff, interval):
    good = tracker + 1
    grown = scale * growth
    full = good == interval
    scale.copy_(torch.where(found_inf != 0, scale * backoff, torch.where(full & grown.isfinite(), grown, scale)))
    tracker.copy_(torch.where((found_inf != 0) | full, 0, good))
    return scale


# --- batch norm over several processes ------------------------------------------------------------


def _channels(x, value):
    """A value for each channel beside x, in the type sums are made in."""
    return value.to(_wide(x)).reshape(1, -1, *[1] * (x.dim() - 2))


def _wide(x):
    return torch.promote_types(x.dtype, torch.float32)


def _channel_sums(x):
    return x.sum([d for d in range(x.dim()) if d != 1])


def _channel_stats(x, eps):
    x = x.to(_wide(x))
    count = x.numel() // x.shape[1]
    mean = _channel_sums(x) / count
    return mean, (_channel_sums((x - _channels(x, mean)).square()) / count + eps).rsqrt()


def _normalized(x, weight, bias, mean, invstd, eps):
    out = (x.to(_wide(x)) - _channels(x, mean)) * _channels(x, invstd)
    out = out if weight is None else out * _channels(x, weight)
    out = out if bias is None else out + _channels(x, bias)
    return out.to(x.dtype)


def _joined_stats(x, mean, invstd, running_mean, running_var, momentum, eps, counts):
    """Of the rows that the processes sent."""
    counts = counts.to(mean.dtype).reshape(-1, 1)
    total = counts.sum()
    whole = (mean * counts).sum(0) / total
    spread = ((invstd.reciprocal().square() - eps + (mean - whole).square()) * counts).sum(0)
    if running_mean is not None:
        running_mean.copy_(running_mean * (1 - momentum) + whole * momentum)
    if running_var is not None:
        running_var.copy_(running_var * (1 - momentum) + spread / (total - 1) * momentum)
    return whole, (spread / total + eps).rsqrt()


def _normalized_sums(grad, x, mean, invstd, weight, input_g, weight_g, bias_g):
    wide = grad.to(_wide(x))
    sums, products = _channel_sums(wide), _channel_sums(wide * (x.to(_wide(x)) - _channels(x, mean)))
    kind = mean.dtype if weight is None else weight.dtype
    given = (sums, products) if input_g else (None, None)
    return *given, (products * invstd).to(kind) if weight_g else None, sums.to(kind) if bias_g else None


def _normalized_backward(grad, x, mean, invstd, weight, sums, products, counts):
    total = counts.sum().to(_wide(x))
    slope = invstd.square() * products / total
    out = grad.to(_wide(x)) - _channels(x, sums / total) - (x.to(_wide(x)) - _channels(x, mean)) * _channels(x, slope)
    out = out * _channels(x, invstd)
    return (out if weight is None else out * _channels(x, weight)).to(x.dtype)


# --- layers of torch.nn in evaluation, which torch hands to a device whole --------------------------


def _hidden(mask, kind, scores):
    """What a mask (of pairs of places, of places, or of both, in torch's order) leaves out of the scores."""
    shape = {0: (1, 1, *mask.shape[-2:]), 1: (scores.shape[0], 1, 1, mask.shape[-1])}.get(kind, scores.shape)
    return mask.bool().reshape(shape)


def _attention(q, k, v, size, heads, weight, bias, out_weight, out_bias, mask=None, need_weights=True, average=True, kind=None):
    parts = [torch.nn.functional.linear(x, w, b) for x, w, b in zip((q, k, v), weight.split(size), bias.split(size), strict=True)]
    q, k, v = (x.unflatten(-1, (heads, size // heads)).transpose(1, 2) for x in parts)
    scores = (q * (size // heads) ** -0.5) @ k.transpose(-1, -2)
    if mask is not None:
        scores = scores.masked_fill(_hidden(mask, kind, scores), -torch.inf)
    shares = scores.softmax(-1)
    out = torch.nn.functional.linear((shares @ v).transpose(1, 2).flatten(2), out_weight, out_bias)
    return out, (shares.mean(1) if average else shares) if need_weights else None


def _encoder_layer(
    x, size, heads, weight, bias, out_weight, out_bias, gelu, norm_first, eps, norm1, norm1_bias, norm2, norm2_bias, ffn1, ffn1_bias, ffn2,
    ffn2_bias, mask=None, kind=None,
):  # fmt: skip
    f = torch.nn.functional

    def attend(x):
        return _attention(x, x, x, size, heads, weight, bias, out_weight, out_bias, mask, False, False, kind)[0]

    def feed(x):
        return f.linear((f.gelu if gelu else f.relu)(f.linear(x, ffn1, ffn1_bias)), ffn2, ffn2_bias)

    def first(x):
        return f.layer_norm(x, [size], norm1, norm1_bias, eps)

    def second(x):
        return f.layer_norm(x, [size], norm2, norm2_bias, eps)

    if norm_first:
        x = x + attend(first(x))
        return x + feed(second(x))
    x = first(x + attend(x))
    return second(x + feed(x))


# --- gradients of what torch takes apart when it captures a graph: those of the parts ----------------


def _parts(op):
    return decompositions.table()[op]


def _resampled_backward(forward):
    """The forward is linear in its input, so any input gives the gradient."""

    def call(grad, output_size, input_size, *rest):
        pull = torch.func.vjp(lambda x: _parts(forward)(x, output_size, *rest), grad.new_zeros(input_size))[1]
        return pull(grad)[0]

    return call


def _sampler_backward(forward):
    def call(grad, x, grid, mode, padding, align, mask):
        pull = torch.func.vjp(lambda x, grid: _parts(forward)(x, grid, mode, padding, align), x, grid)[1]
        return tuple(g if m else None for g, m in zip(pull(grad), mask, strict=True))

    return call


def _loss_backward(forward):
    def call(grad, x, *rest):
        return torch.func.vjp(lambda x: _parts(forward)(x, *rest), x)[1](grad)[0]

    return call


def _pool_backward(n):
    def call(grad, x, kernel, size, indices):
        return to_places(grad, x, indices, n)

    return call


_RESAMPLED = [
    "upsample_linear1d",
    "upsample_bilinear2d",
    "upsample_trilinear3d",
    "upsample_bicubic2d",
    *(f"{name}{n}d" for name in ("upsample_nearest", "_upsample_nearest_exact") for n in (1, 2, 3)),
]

FORMS: dict[torch._ops.OpOverload, Callable[..., Any]] = {
    aten._copy_from.default: lambda x, to, non_blocking=False: to.copy_(x),
    aten._foreach_norm.Scalar: _norms,
    aten.convolution_overrideable.default: aten.convolution.default,
    aten.convolution_backward_overrideable.default: _convolution_backward,
    aten._thnn_fused_lstm_cell.default: _lstm,
    aten._thnn_fused_lstm_cell_backward_impl.default: _lstm_backward,
    aten._thnn_fused_gru_cell.default: _gru,
    aten._thnn_fused_gru_cell_backward.default: _gru_backward,
    aten._amp_foreach_non_finite_check_and_unscale_.default: _unscale,
    aten._amp_update_scale_.default: _update_scale,
    aten._native_multi_head_attention.default: _attention,
    aten._transformer_encoder_layer_fwd.default: _encoder_layer,
    aten.batch_norm_stats.default: _channel_stats,
    aten.batch_norm_elemt.default: _normalized,
    aten.batch_norm_gather_stats_with_counts.default: _joined_stats,
    aten.batch_norm_backward_reduce.default: _normalized_sums,
    aten.batch_norm_backward_elemt.default: _normalized_backward,
    aten._logcumsumexp.default: torch.logcumsumexp,
    aten._cummax_helper.default: _running_best(torch.cummax),
    aten._cummin_helper.default: _running_best(torch.cummin),
    aten.grid_sampler_2d_backward.default: _sampler_backward(aten.grid_sampler_2d.default),
    aten.grid_sampler_3d_backward.default: _sampler_backward(aten.grid_sampler_3d.default),
    aten.multi_margin_loss_backward.default: _loss_backward(aten.multi_margin_loss.default),
    aten.fractional_max_pool2d_backward.default: _pool_backward(2),
    aten.fractional_max_pool3d_backward.default: _pool_backward(3),
    **{
        getattr(aten, f"{name}_backward").default: _resampled_backward(getattr(aten, name).default)
        for name in _RESAMPLED
    },
}


def _into(form):
    """A form without out= arguments as one with them."""

    def call(*args, **named):
        outs = [named.pop(name) for name in list(named) if isinstance(named[name], torch.Tensor) and name in _OUT]
        results = form(*args, **named)
        for out, result in zip(outs, results if isinstance(results, tuple) else [results], strict=True):
            out.copy_(result)
        return tuple(outs) if len(outs) > 1 else outs[0]

    return call


_OUT = ("out", "grad_input")


def form_of(op):
    """What is traced in the place of an operator, or None."""
    found = FORMS.get(op)
    if found is None and any(a.is_out and a.name in _OUT for a in op._schema.arguments):
        packet = getattr(aten, op._schema.name.removeprefix("aten::"), None)
        plain = FORMS.get(getattr(packet, "default", None))
        found = plain and _into(plain)
    return found
