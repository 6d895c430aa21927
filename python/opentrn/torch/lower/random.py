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

_TWISTER = slice(3, 627)  # its words in the state of torch's generator


def _bits(b, seed, stream, shape, dtype):
    """Uniform bits of the chip's generator: the seed and the stream's number are its state."""
    seed = b.unary("bitcast_convert", seed, torch.uint64)
    mixed = b.constant((stream * 0x9E3779B97F4A7C15) & (2**64 - 1), torch.uint64, (1,))
    second = b.binary("xor", b.slice_dim(seed, 0, 1, 2), mixed)
    state = b.concatenate([b.slice_dim(seed, 0, 0, 1), second], 0)
    return b.op(
        "rng_bit_generator",
        [state],
        [((2,), torch.uint64), (tuple(shape), dtype)],
        "rng_algorithm = #stablehlo<rng_algorithm DEFAULT>",
    )[1]


def _unit(b, seed, stream, shape, kind, keep=24):
    """Uniform in [0, 1) with every value a multiple of 2^-keep (2^-53 for f64)."""
    wide, keep = (torch.uint64, 53) if kind == torch.float64 else (torch.uint32, keep)
    bits = _bits(b, seed, stream, shape, wide)
    size = 64 if wide == torch.uint64 else 32
    top = b.binary("shift_right_logical", bits, b.constant(size - keep, wide))
    return b.mul(b.op("convert", [top], (tuple(shape), kind)), b.constant(2.0**-keep, kind))


def _kind(dtype):
    return torch.float64 if dtype == torch.float64 else torch.float32


@lowers("opentrn.uniform.default")
def uniform(b, out, seed, stream, size, dtype):
    keep = {torch.bfloat16: 8, torch.float16: 11}.get(out.dtype, 3 if out.dtype in dtypes.NARROW else 24)
    y = _unit(b, seed, stream, out.shape, _kind(out.dtype), keep)  # rounding would reach 1
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


@lowers("opentrn.twister.default")
def twister(b, out, state, count, wide):
    """Torch counts the words that are left, from 625 down, where the algorithm counts those that were used."""
    part = lambda first, last: b.slice_dim(state, 0, first, last)
    low = b.constant(2**32 - 1, torch.int64, (1,))
    used = b.sub(b.constant(625, torch.int64, (1,)), b.binary("and", part(1, 2), low))
    packed = b.concatenate([b.cast(part(_TWISTER.start, _TWISTER.stop), torch.uint32), b.cast(used, torch.uint32)], 0)
    after, bits = b.op(
        "rng_bit_generator",
        [packed],
        [(packed.shape, torch.uint32), ((count,), torch.uint64 if wide else torch.uint32)],
        "rng_algorithm = #stablehlo<rng_algorithm MERSENNE_TWISTER>",
    )
    after = b.cast(after, torch.int64)
    words, used = b.slice_dim(after, 0, 0, 624), b.slice_dim(after, 0, 624, 625)
    left = b.binary("or", b.sub(part(1, 2), b.binary("and", part(1, 2), low)), b.sub(b.constant(625, torch.int64, (1,)), used))
    whole = b.concatenate([part(0, 1), left, used, words, part(_TWISTER.stop, state.shape[0])], 0)
    return [whole, b.unary("bitcast_convert", bits, torch.int64) if wide else b.cast(bits, torch.int64)]
