# SPDX-License-Identifier: Apache-2.0
"""Random operators in terms of the words of torch's CPU generator: the device draws what the CPU draws.

A form takes the generator's state beside the operator's own arguments and writes both. The state is the 632 words of 64 bits
that torch.Generator.get_state() gives: the seed; how many words of the twister are left (and whether it was seeded) and how many
were used; its 624 words; behind them the second of two normal numbers (628) and whether it is still there (630).

Torch makes two things of a word: a number of 24 bits (float32 and narrower), and of two words one of 53 bits (float64, and whatever
it computes in float64 before it rounds).
"""

import ctypes
import functools
import math
from collections.abc import Callable
from typing import Any

import torch

from opentrn.torch.lower import NotLowered

aten = torch.ops.aten

_SECOND, _IS_THERE = 628, 630


def _take(state, count, wide):
    """The next count words, or pairs of words, as int64; the generator is behind them then."""
    after, bits = torch.ops.opentrn.twister(state, count, wide)
    state.copy_(after)
    return bits


def _unit(state, count, kind):
    """In [0, 1)."""
    wide = kind == torch.float64
    digits = 53 if wide else 24
    return (_take(state, count, wide) & ((1 << digits) - 1)).to(kind) * 2.0**-digits


def _work(x):
    return torch.promote_types(x.dtype, torch.float32)


def _write(x, values):
    return x.copy_(values.reshape(x.shape).to(x.dtype))


@functools.cache
def _is_plain():
    """Does torch draw flags and exponential numbers from its own generator? Where it was built with MKL, on Intel's processors, these
    are MKL's."""
    g = torch.Generator().manual_seed(0)
    torch.empty(8).bernoulli_(0.5, generator=g)
    return int(g.get_state().view(torch.int64)[2]) == 16


# --- one number for each element ------------------------------------------------------------------


def _uniform(state, x, low=0.0, high=1.0, *, generator=None):
    if low > high:
        raise NotLowered("a range that ends before it begins")
    kind = _work(x)
    low, high = (v if kind == torch.float64 else ctypes.c_float(v).value for v in (low, high))
    values = (_unit(state, x.numel(), kind) * (high - low) + low).to(x.dtype)
    return _write(x, torch.where(values == high, low, values))  # one that was rounded up


def _flags(state, x, p=0.5, *, generator=None):
    if not 0 <= p <= 1:
        raise NotLowered("a chance that is none")
    return _write(x, (_take(state, x.numel(), True) & (2**53 - 1)) < math.ceil(p * 2**53))


def _flags_of(state, x, p, *, generator=None):
    kind = torch.float64 if p.dtype == torch.float64 else torch.float32
    return _write(x, _unit(state, x.numel(), kind) < p.expand(x.shape).reshape(-1).to(kind))


def _by(value):
    """x.f_(parameters): the value of numbers in [0, 1), computed in float64."""

    return lambda state, x, *parameters, generator=None: _write(x, value(_unit(state, x.numel(), torch.float64), *parameters))


def _exponential(u, rate=1.0):
    if rate <= 0:
        raise NotLowered("a rate that is none")
    return -1 / rate * torch.log1p(-u)


def _cauchy(u, median=0.0, sigma=1.0):
    return median + sigma * torch.tan(math.pi * (u - 0.5))


def _geometric(u, p):
    if not 0 < p < 1:
        raise NotLowered("a chance that is none")
    return torch.ceil(u.log() / math.log1p(-p))


# --- integers -------------------------------------------------------------------------------------


def _rest(bits, size):
    """The remainder of 64 bits without a sign."""
    half = torch.bitwise_right_shift(bits, 1) & (2**63 - 1)
    return (half % size * 2 + (bits & 1)) % size


def _integers(state, x, low, high, *, generator=None):
    size = (2**63 - 1 if high is None else high) - low
    exact = 2**24 if x.dtype == torch.float32 else 2**53 if x.dtype == torch.float64 else 2**8 if x.dtype.is_floating_point else 2**63
    if not 0 < size < 2**62 or max(-low, low + size) > exact:
        raise NotLowered("whole numbers of so wide a range")
    wide = size >= 2**28
    bits = _take(state, x.numel(), wide)
    return _write(x, (_rest(bits, size) if wide else bits % size) + low)


_DIGITS = {torch.float64: 53, torch.float32: 24, torch.float16: 11, torch.bfloat16: 8}


def _any_integers(state, x, *, generator=None):
    if x.dtype in _DIGITS:
        bits, size = _take(state, x.numel(), x.dtype == torch.float64), 2 ** _DIGITS[x.dtype] + 1
        return _write(x, _rest(bits, size) if x.dtype == torch.float64 else bits % size)
    most = 1 if x.dtype == torch.bool else torch.iinfo(x.dtype).max
    return _write(x, _take(state, x.numel(), x.dtype == torch.int64) & most)


# --- normal numbers -------------------------------------------------------------------------------


def _pairs(u, v):
    radius = (-2 * torch.log1p(-v)).sqrt()
    return torch.stack([radius * (2 * math.pi * u).cos(), radius * (2 * math.pi * u).sin()], -1)


def _some_normal(state, count):
    """In pairs, by two numbers of 53 bits each; what is left of one is kept for whoever draws next."""
    kept, there = state[_SECOND : _SECOND + 1].view(torch.float64), state[_IS_THERE] & (2**32 - 1) != 0
    u = _unit(state, count // 2 * 2, torch.float64)
    if count % 2:  # one pair more where none is left
        more = state.clone()
        u = torch.cat([u, _unit(more, 2, torch.float64)])
        state.copy_(torch.where(there, state, more))
    numbers = _pairs(*u.reshape(-1, 2).unbind(1)).reshape(-1)
    found = torch.where(there, torch.cat([kept, numbers])[:count], numbers[:count])
    is_left = there.logical_xor(torch.tensor(count % 2 == 1))
    state[_SECOND : _SECOND + 1].copy_(numbers[-1:].view(torch.int64))
    state[_IS_THERE].copy_(torch.where(is_left, 1, 0))
    return found


def _many_normal(state, x):
    """In groups of 16, eight lengths before their angles; a last group that is not full is drawn again, over the end of the others."""
    kind, count = _work(x), x.numel()
    whole, rest = count // 16 * 16, count % 16
    first = count if x.dtype == kind else whole  # so many numbers stand before those of the last group
    u = _unit(state, first + (16 if rest else 0), kind)
    groups = torch.cat([u[:whole], u[first:]]).reshape(-1, 2, 8)
    radius, angle = (-2 * (1 - groups[:, 0]).log()).sqrt(), 2 * math.pi * groups[:, 1]
    found = torch.stack([radius * angle.cos(), radius * angle.sin()], 1).reshape(-1)
    return torch.cat([found[: count - 16], found[-16:]]) if rest else found


def _normal(state, x, mean=0.0, std=1.0, *, generator=None):
    if std < 0:
        raise NotLowered("a deviation below zero")
    found = _many_normal(state, x) if x.numel() >= 16 else _some_normal(state, x.numel())
    return _write(x, found * std + mean)


def _log_normal(state, x, mean=1.0, std=2.0, *, generator=None):
    if std <= 0:
        raise NotLowered("a deviation that is none")
    return _write(x, (_some_normal(state, x.numel()) * std + mean).exp())


def _normal_around(state, mean, std=1.0, *, generator=None):
    """mean, std: one of them a tensor at least."""
    tensors = [v for v in (mean, std) if isinstance(v, torch.Tensor)]
    shape = torch.broadcast_shapes(*(t.shape for t in tensors))
    found = _normal(state, torch.empty(shape, dtype=tensors[0].dtype))
    return found * std + mean


# --- what is made of them -------------------------------------------------------------------------


def _dropout(state, x, p, train):
    if not train:
        return x.clone(), torch.ones_like(x, dtype=torch.bool)
    kept = _flags(state, torch.empty(x.shape, dtype=torch.bool), 1 - p)
    return x * kept * (0.0 if p == 1 else 1 / (1 - p)), kept


def _leaky(state, x, noise, lower=0.125, upper=1 / 3, training=False, generator=None):
    if training:
        raise NotLowered("how many numbers it draws depends on values")
    return torch.nn.functional.leaky_relu(x, (lower + upper) / 2)


def _leaky_in_place(state, x, *rest, **named):
    return x.copy_(_leaky(state, x, *rest, **named))


def _multinomial(state, x, count, replacement=False, *, generator=None):
    if not replacement or count == 1:
        order = x / _by(_exponential)(state, torch.empty(x.shape, dtype=x.dtype))
        return order.argmax(-1, keepdim=True) if count == 1 else order.topk(count, -1).indices
    rows = torch.atleast_2d(x)
    ends = rows.cumsum(1)
    u = _unit(state, rows.shape[0] * count, torch.float64).reshape(-1, count).to(x.dtype)
    found = torch.searchsorted(ends / ends[:, -1:], u)
    return found.clamp(max=x.shape[-1] - 1).reshape(*x.shape[:-1], count)


FORMS: dict[torch._ops.OpOverload, Callable[..., Any]] = {
    aten.uniform_.default: _uniform,
    aten.bernoulli_.float: _flags,
    aten.bernoulli_.Tensor: _flags_of,
    aten.exponential_.default: _by(_exponential),
    aten.cauchy_.default: _by(_cauchy),
    aten.geometric_.default: _by(_geometric),
    getattr(aten.random_, "from"): _integers,
    aten.random_.to: lambda state, x, high, *, generator=None: _integers(state, x, 0, high),
    aten.random_.default: _any_integers,
    aten.normal_.default: _normal,
    aten.log_normal_.default: _log_normal,
    aten.normal.Tensor_float: _normal_around,
    aten.normal.float_Tensor: _normal_around,
    aten.normal.Tensor_Tensor: _normal_around,
    aten.native_dropout.default: _dropout,
    aten.rrelu_with_noise.default: _leaky,
    aten.rrelu_with_noise_.default: _leaky_in_place,
    aten.multinomial.default: _multinomial,
}

_OF_LIBRARY = {aten.bernoulli_.float, aten.exponential_.default, aten.native_dropout.default, aten.multinomial.default}


def form_of(op, rows):
    """What is traced in the place of an operator that draws."""
    form = FORMS.get(op)
    if form is None:
        raise NotLowered("random numbers come from the host's generator")
    if op in _OF_LIBRARY and not _is_plain():
        raise NotLowered("this host's MKL has a generator of its own")
    if not all(v.is_contiguous() for _, v in rows if isinstance(v, torch.Tensor)):  # the CPU draws in the order of their memory
        raise NotLowered("random numbers for a tensor that is not in the order of its elements")
    return form

