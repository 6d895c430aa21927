# SPDX-License-Identifier: Apache-2.0
"""opentrn's own random numbers: bits from a seed and a stream number, nothing else.

`seed` is an i64[2] tensor drawn on the host once per call; each place in the graph that wants
random numbers has a stream of its own. So recomputing a piece of the graph (activation
checkpointing) gives the same numbers again.
"""

import math

import torch

from opentrn.torch import dtypes
from opentrn.torch.lower.table import full, lowers


_FEW = 4096  # elements, below which a kernel of Philox does it at once
_ROUNDS = ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 0x9E3779B1))  # shift, factor


def _bits(b, seed, stream, shape, dtype):
    """Uniform bits: Philox with the seed as key and the stream in the counter's high half."""
    seed = b.unary("bitcast_convert", seed, torch.uint64)
    key = b.binary("xor", b.slice_dim(seed, 0, 0, 1), b.slice_dim(seed, 0, 1, 2))
    mixed = b.constant((stream * 0x9E3779B97F4A7C15) & (2**64 - 1), torch.uint64, (1,))
    state = b.concatenate([key, b.constant(0, torch.uint64, (1,)), mixed], 0)
    return b.op(
        "rng_bit_generator",
        [state],
        [((3,), torch.uint64), (tuple(shape), dtype)],
        "rng_algorithm = #stablehlo<rng_algorithm PHILOX>",
    )[1]


def _words(b, seed, stream, shape):
    """Uniform words of 32 bits: the element's number and a key of the stream, mixed.

    Three rounds of xor with a key, shift and multiplication (the first two as MurmurHash3 ends), a
    dozen instructions of the engines; Philox gives the keys, 96 bits a stream, and what is too small
    or too large for that.
    """
    count = math.prod(shape)
    if count < _FEW or count >= 2**31:
        return _bits(b, seed, stream, shape, torch.uint32)
    keys = _bits(b, seed, stream, (3,), torch.uint32)
    word = lambda n: b.constant(n, torch.uint32)
    x = b.iota((count,), 0, torch.uint32)
    for i, (down, by) in enumerate(_ROUNDS):
        key = b.reshape(b.slice_dim(keys, 0, i, i + 1), ())
        x = b.binary("xor", x, key)
        x = b.binary("xor", x, b.binary("shift_right_logical", x, word(down)))
        x = b.binary("multiply", x, word(by))
    x = b.binary("xor", x, b.binary("shift_right_logical", x, word(16)))
    return b.reshape(x, tuple(shape))


def _unit(b, seed, stream, shape, kind):
    """Uniform in [0, 1) with every value a multiple of 2^-24 (2^-53 for f64)."""
    wide, keep = (torch.uint64, 53) if kind == torch.float64 else (torch.uint32, 24)
    bits = _words(b, seed, stream, shape) if wide == torch.uint32 else _bits(b, seed, stream, shape, wide)
    size = 64 if wide == torch.uint64 else 32
    top = b.binary("shift_right_logical", bits, b.constant(size - keep, wide))
    return b.mul(b.op("convert", [top], (tuple(shape), kind)), b.constant(2.0**-keep, kind))


def _kind(dtype):
    return torch.float64 if dtype == torch.float64 else torch.float32


@lowers("opentrn.uniform.default")
def uniform(b, out, seed, stream, size, dtype):
    kind = _kind(out.dtype)
    y = _unit(b, seed, stream, out.shape, kind)
    if out.dtype in dtypes.NARROW:  # rounding must not reach 1
        digits = {torch.bfloat16: 8, torch.float16: 11}.get(out.dtype, 3)
        scale = b.constant(2.0**digits, kind)
        y = b.div(b.unary("floor", b.mul(y, scale)), scale)
    return b.cast(y, out.dtype)


@lowers("opentrn.normal.default")
def normal(b, out, seed, stream, size, dtype):
    kind = _kind(out.dtype)
    half = 2.0**-25 if kind == torch.float32 else 2.0**-54  # keeps away from -1
    u = b.add(_unit(b, seed, stream, out.shape, kind), b.constant(half, kind))
    u = b.sub(b.mul(u, b.constant(2, kind)), b.constant(1, kind))
    y = b.mul(b.unary("chlo.erf_inv", u), b.constant(math.sqrt(2), kind))
    return b.cast(y, out.dtype)


@lowers("opentrn.integers.default")
def integers(b, out, seed, stream, low, high, size, dtype):
    bits = _bits(b, seed, stream, out.shape, torch.uint64)
    rest = b.binary("remainder", bits, full(b, high - low, torch.uint64, out.shape))
    y = b.add(b.op("convert", [rest], (rest.shape, torch.int64)), b.constant(low, torch.int64))
    return b.cast(y, out.dtype)
