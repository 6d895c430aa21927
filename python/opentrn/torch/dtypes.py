# SPDX-License-Identifier: Apache-2.0
"""Torch element types and what StableHLO calls them."""

import math

import torch

NAMES = {
    torch.float32: "f32",
    torch.float64: "f64",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.float8_e4m3fn: "f8E4M3FN",
    torch.float8_e5m2: "f8E5M2",
    torch.int8: "i8",
    torch.int16: "i16",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.uint8: "ui8",
    torch.uint16: "ui16",
    torch.uint32: "ui32",
    torch.uint64: "ui64",
    torch.bool: "i1",
    torch.complex64: "complex<f32>",
    torch.complex128: "complex<f64>",
}

NARROW = (torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
_NOT_FINITE = {  # nan, inf, -inf as bits
    torch.float32: ("0x7FC00000", "0x7F800000", "0xFF800000"),
    torch.float64: ("0x7FF8000000000000", "0x7FF0000000000000", "0xFFF0000000000000"),
    torch.float16: ("0x7E00", "0x7C00", "0xFC00"),
    torch.bfloat16: ("0x7FC0", "0x7F80", "0xFF80"),
    torch.float8_e5m2: ("0x7E", "0x7C", "0xFC"),
    torch.float8_e4m3fn: ("0x7F", "0x7F", "0xFF"),
}


def tensor_type(shape, dtype):
    return "tensor<" + "".join(f"{d}x" for d in shape) + NAMES[dtype] + ">"


def is_float(dtype):
    return dtype.is_floating_point


def is_int(dtype):
    return not (dtype.is_floating_point or dtype.is_complex or dtype == torch.bool)


def accumulator(dtype):
    """The type in which eager adds up values of this one."""
    if dtype in NARROW:
        return torch.float32
    return torch.int64 if is_int(dtype) or dtype == torch.bool else dtype


def _float_literal(value, dtype):
    if math.isnan(value):
        return _NOT_FINITE[dtype][0]
    if dtype == torch.float64:
        rounded = value
    else:  # to nearest, as a tensor of that type would hold it
        rounded = torch.tensor(value, dtype=torch.float64).to(dtype).to(torch.float64).item()
    if math.isinf(rounded):
        return _NOT_FINITE[dtype][1 if rounded > 0 else 2]
    return f"{rounded:.17e}"


def literal(value, dtype):
    """One element as StableHLO text."""
    if dtype == torch.bool:
        return "true" if value else "false"
    if dtype.is_complex:
        part = torch.float32 if dtype == torch.complex64 else torch.float64
        value = complex(value)
        return f"({_float_literal(value.real, part)}, {_float_literal(value.imag, part)})"
    if dtype.is_floating_point:
        return _float_literal(float(value), dtype)
    bits = torch.iinfo(dtype).bits
    value = int(value) & ((1 << bits) - 1)
    signed = torch.iinfo(dtype).min < 0 and value >> (bits - 1)
    return str(value - (1 << bits) if signed else value)


def dense(tensor):
    """All elements of a small tensor as a dense literal: hexadecimal bytes, exact for every
    type."""
    tensor = tensor.detach().contiguous()
    if tensor.dtype == torch.bool:
        return _nested(tensor.flatten().tolist(), list(tensor.shape))
    raw = bytes(tensor.reshape(-1).view(torch.uint8).tolist())
    return '"0x' + raw.hex().upper() + '"'


def _nested(values, shape):
    if not shape:
        return "true" if values[0] else "false"
    step = len(values) // shape[0] if shape[0] else 0
    parts = [_nested(values[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])]
    return "[" + ", ".join(parts) + "]"
