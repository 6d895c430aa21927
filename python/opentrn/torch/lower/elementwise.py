# SPDX-License-Identifier: Apache-2.0
"""Operators that map elements to elements."""

import math

import torch

from opentrn.torch import dtypes
from opentrn.torch.builder import Value
from opentrn.torch.lower.table import DEVICES, TABLE, NotLowered, find, lowers, operand, promote, work_type

# --- one operand ----------------------------------------------------------------------------------

UNARY = {  # operator: StableHLO operation on the result's type
    "acos": "chlo.acos",
    "acosh": "chlo.acosh",
    "asin": "chlo.asin",
    "asinh": "chlo.asinh",
    "atan": "chlo.atan",
    "atanh": "chlo.atanh",
    "cos": "cosine",
    "cosh": "chlo.cosh",
    "digamma": "chlo.digamma",
    "erf": "chlo.erf",
    "erfc": "chlo.erfc",
    "erfinv": "chlo.erf_inv",
    "exp": "exponential",
    "expm1": "exponential_minus_one",
    "lgamma": "chlo.lgamma",
    "log": "log",
    "log1p": "log_plus_one",
    "neg": "negate",
    "rsqrt": "rsqrt",
    "sigmoid": "logistic",
    "sin": "sine",
    "sinh": "chlo.sinh",
    "sqrt": "sqrt",
    "tan": "tan",
    "tanh": "tanh",
}

ROUNDING = {  # operator: operation; integers are left as they are
    "ceil": "ceil",
    "floor": "floor",
    "round": "round_nearest_even",
}


def _unary(operation):
    def lower(b, out, x):
        return b.unary(operation, b.cast(x, out.dtype))

    return lower


def _rounding(operation):
    def lower(b, out, x):
        return b.unary(operation, x) if x.dtype.is_floating_point else x

    return lower


for _name, _operation in UNARY.items():
    lowers(f"aten.{_name}.default")(_unary(_operation))
for _name, _operation in ROUNDING.items():
    lowers(f"aten.{_name}.default")(_rounding(_operation))


@lowers("aten.abs.default")
def absolute(b, out, x):
    if x.dtype == torch.bool or dtypes.NAMES[x.dtype].startswith("u"):
        return x
    return b.unary("abs", x, out.dtype)


@lowers("aten.sign.default", "aten.sgn.default")
def sign(b, out, x):
    if x.dtype == torch.bool or dtypes.NAMES[x.dtype].startswith("u"):
        return b.cast(b.compare("ne", x, b.constant(0, x.dtype)), x.dtype)
    if not x.dtype.is_floating_point:
        return b.unary("sign", x)
    if x.dtype.is_complex:
        raise NotLowered("the sign of complex numbers")
    return b.select(b.is_nan(x), b.constant(0, x.dtype), b.unary("sign", x))


@lowers("aten.reciprocal.default")
def reciprocal(b, out, x):
    x = b.cast(x, out.dtype)
    return b.div(b.constant(1, out.dtype), x)


@lowers("aten.log2.default")
def log2(b, out, x):
    return _scaled_log(b, out, x, 1 / math.log(2))


@lowers("aten.log10.default")
def log10(b, out, x):
    return _scaled_log(b, out, x, 1 / math.log(10))


def _scaled_log(b, out, x, factor):
    kind = torch.float32 if out.dtype in dtypes.NARROW else out.dtype
    y = b.unary("log", b.cast(x, kind))
    return b.cast(b.mul(y, b.constant(factor, kind)), out.dtype)


@lowers("aten.exp2.default")
def exp2(b, out, x):
    x = b.cast(x, out.dtype)
    return b.binary("power", b.constant(2, out.dtype), x)


@lowers("aten.trunc.default", "aten.fix.default")
def trunc(b, out, x):
    if not x.dtype.is_floating_point:
        return x
    negative = b.compare("lt", x, b.constant(0, x.dtype))
    return b.select(negative, b.unary("ceil", x), b.unary("floor", x))


@lowers("aten.relu.default")
def relu(b, out, x):
    return b.binary("maximum", x, b.constant(0, x.dtype))


@lowers("aten.logical_not.default")
def logical_not(b, out, x):
    return b.logical_not(b.cast(x, torch.bool))


@lowers("aten.bitwise_not.default")
def bitwise_not(b, out, x):
    return b.unary("not", x)


def _of_parts(b, x, ask):
    """Is it so for a number, or for one of the parts of a complex one? Never for an integer."""
    if x.dtype.is_complex:
        return b.logical_or(ask(b.real(x)), ask(b.imag(x)))
    return ask(x) if x.dtype.is_floating_point else b.constant(False, torch.bool, x.shape)


@lowers("aten.isnan.default")
def isnan(b, out, x):
    return _of_parts(b, x, b.is_nan)


@lowers("aten.isinf.default")
def isinf(b, out, x):
    return _of_parts(b, x, lambda part: b.compare("eq", b.unary("abs", part), b.constant(math.inf, part.dtype)))


@lowers("aten.isfinite.default")
def isfinite(b, out, x):
    if not x.dtype.is_floating_point:
        return b.constant(True, torch.bool, x.shape)
    return b.unary("is_finite", x, torch.bool)


@lowers("aten.signbit.default")
def signbit(b, out, x):
    return _sign_bit(b, x)


_BITS_OF = {
    torch.float64: torch.int64,
    torch.float32: torch.int32,
    torch.float16: torch.int16,
    torch.bfloat16: torch.int16,
}


def _sign_bit(b, x):
    if x.dtype == torch.bool:
        return b.constant(False, torch.bool, x.shape)
    if x.dtype.is_floating_point:
        x = b.unary("bitcast_convert", x, _BITS_OF[x.dtype])
    return b.compare("lt", x, b.constant(0, x.dtype))


@lowers("aten.copysign.Tensor", "aten.copysign.Scalar")
def copysign(b, out, x, y):
    x, y = operand(b, x, out.dtype), operand(b, y, out.dtype)
    size = b.unary("abs", x)
    return b.select(_sign_bit(b, y), b.neg(size), size)


@lowers(
    "aten.clone.default",
    "aten.alias.default",
    "aten.detach.default",
    "aten.lift_fresh_copy.default",
    "aten.contiguous.default",
    "aten.positive.default",
    "prims.device_put.default",
    "aten.resolve_conj.default",
    "aten.resolve_neg.default",
)
def same(b, out, x, *_, **__):
    return x


@lowers("aten._to_copy.default", "aten.to.dtype", "prims.convert_element_type.default")
def convert(b, out, x, *_, **__):
    if out.layout != torch.strided or out.device.type not in DEVICES:
        raise NotLowered(f"a move to {out.device} with layout {out.layout}")
    return b.cast(x, out.dtype)


@lowers("aten.copy.default")
def copy(b, out, x, source, non_blocking=False):
    return b.broadcast(b.cast(source, out.dtype), x.shape)


@lowers("aten.view.dtype")
def view_dtype(b, out, x, dtype):
    if x.dtype.itemsize != dtype.itemsize or torch.bool in (x.dtype, dtype):
        raise NotLowered("a view as a type of another size")
    return b.unary("bitcast_convert", x, dtype)


# --- two operands ---------------------------------------------------------------------------------


def _pair(b, out, x, y):
    kind = work_type(out.dtype, x, y)
    return operand(b, x, kind), operand(b, y, kind)


def _scaled(b, y, alpha):
    return y if alpha == 1 else b.mul(y, operand(b, alpha, y.dtype))


@lowers("aten.add.Tensor", "aten.add.Scalar")
def add(b, out, x, y, alpha=1):
    if alpha != 1:
        kind = torch.float32 if out.dtype in dtypes.NARROW else out.dtype
        x, y = operand(b, x, kind), operand(b, y, kind)
    else:
        x, y = _pair(b, out, x, y)
    return b.cast(b.add(x, _scaled(b, y, alpha)), out.dtype)


@lowers("aten.sub.Tensor", "aten.sub.Scalar")
def sub(b, out, x, y, alpha=1):
    kind = (
        torch.float32 if out.dtype in dtypes.NARROW and alpha != 1 else work_type(out.dtype, x, y)
    )
    x, y = operand(b, x, kind), operand(b, y, kind)
    return b.cast(b.sub(x, _scaled(b, y, alpha)), out.dtype)


@lowers("aten.rsub.Tensor", "aten.rsub.Scalar")
def rsub(b, out, x, y, alpha=1):
    kind = torch.float32 if out.dtype in dtypes.NARROW else out.dtype
    x, y = operand(b, x, kind), operand(b, y, kind)
    return b.cast(b.sub(y, _scaled(b, x, alpha)), out.dtype)


@lowers("aten.mul.Tensor", "aten.mul.Scalar")
def mul(b, out, x, y):
    x, y = _pair(b, out, x, y)
    return b.cast(b.mul(x, y), out.dtype)


@lowers("aten.div.Tensor", "aten.div.Scalar", "aten.true_divide.Tensor")
def div(b, out, x, y):
    x, y = _pair(b, out, x, y)
    return b.cast(b.div(x, y), out.dtype)


@lowers("prims.div.default")
def prims_div(b, out, x, y):
    x, y = _pair(b, out, x, y)
    return b.cast(b.div(x, y), out.dtype)


@lowers("prims.fma.default")
def fma(b, out, x, y, z):
    """Two roundings, as the engines have it: a fused one exists only in f64, which they lack."""
    kind = work_type(out.dtype, x, y, z)
    x, y, z = (operand(b, v, kind) for v in (x, y, z))
    return b.cast(b.add(b.mul(x, y), z), out.dtype)


def _floor_divide(b, x, y):
    zero = b.constant(0, x.dtype)
    rest = b.binary("remainder", x, y)
    wrong = b.logical_and(
        b.compare("ne", rest, zero),
        b.compare("ne", b.compare("lt", rest, zero), b.compare("lt", y, zero)),
    )
    if not x.dtype.is_floating_point:
        quotient = b.div(x, y)
        return b.sub(quotient, b.cast(wrong, x.dtype))
    # As C's fmod allows it without a rounding that would change the floor.
    quotient = b.div(b.sub(x, rest), y)
    quotient = b.sub(quotient, b.cast(wrong, x.dtype))
    whole = b.unary("floor", quotient)
    up = b.compare("gt", b.sub(quotient, whole), b.constant(0.5, x.dtype))
    whole = b.add(whole, b.cast(up, x.dtype))
    plain = b.div(x, y)
    nought = b.mul(plain, zero)  # keeps the sign of zero
    whole = b.select(b.compare("ne", quotient, zero), whole, nought)
    return b.select(b.compare("eq", y, zero), plain, whole)


def _divide_mode(b, out, x, y, mode):
    if mode is None:
        return div(b, out, x, y)
    kind = torch.float32 if out.dtype in dtypes.NARROW else out.dtype
    x, y = operand(b, x, kind), operand(b, y, kind)
    if mode == "floor":
        return b.cast(_floor_divide(b, x, y), out.dtype)
    quotient = b.div(x, y)
    return b.cast(trunc(b, out, quotient), out.dtype)


@lowers("aten.div.Tensor_mode", "aten.div.Scalar_mode")
def div_mode(b, out, x, y, rounding_mode=None):
    return _divide_mode(b, out, x, y, rounding_mode)


@lowers("aten.floor_divide.default", "aten.floor_divide.Scalar")
def floor_divide(b, out, x, y):
    return _divide_mode(b, out, x, y, "floor")


@lowers("aten.fmod.Tensor", "aten.fmod.Scalar")
def fmod(b, out, x, y):
    x, y = _pair(b, out, x, y)
    return b.cast(b.binary("remainder", x, y), out.dtype)


@lowers("aten.remainder.Tensor", "aten.remainder.Scalar", "aten.remainder.Scalar_Tensor")
def remainder(b, out, x, y):
    kind = torch.float32 if out.dtype in dtypes.NARROW else out.dtype
    x, y = operand(b, x, kind), operand(b, y, kind)
    zero = b.constant(0, kind)
    rest = b.binary("remainder", x, y)
    wrong = b.logical_and(
        b.compare("ne", rest, zero),
        b.compare("ne", b.compare("lt", rest, zero), b.compare("lt", y, zero)),
    )
    return b.cast(b.select(wrong, b.add(rest, y), rest), out.dtype)


def _minmax(operation):
    def lower(b, out, x, y):
        x, y = operand(b, x, out.dtype), operand(b, y, out.dtype)
        return b.binary(operation, x, y)

    return lower


lowers("aten.maximum.default")(_minmax("maximum"))
lowers("aten.minimum.default")(_minmax("minimum"))


def _ignoring_nan(operation):
    def lower(b, out, x, y):
        x, y = operand(b, x, out.dtype), operand(b, y, out.dtype)
        best = b.binary(operation, x, y)
        if not out.dtype.is_floating_point:
            return best
        return b.select(b.is_nan(x), y, b.select(b.is_nan(y), x, best))

    return lower


lowers("aten.fmax.default")(_ignoring_nan("maximum"))
lowers("aten.fmin.default")(_ignoring_nan("minimum"))


@lowers("aten.atan2.default")
def atan2(b, out, x, y):
    x, y = _pair(b, out, x, y)
    return b.cast(b.binary("atan2", x, y), out.dtype)


@lowers("aten.ldexp.Tensor")
def ldexp(b, out, x, y):
    two = b.constant(2, out.dtype)
    return b.mul(operand(b, x, out.dtype), b.binary("power", two, operand(b, y, out.dtype)))


@lowers("prims.hypot.default", "aten.hypot.default")
def hypot(b, out, x, y):
    """Scaled by the larger side, so that squares neither overflow nor vanish."""
    kind = torch.float32 if out.dtype in dtypes.NARROW else out.dtype
    x, y = (b.unary("abs", operand(b, v, kind)) for v in (x, y))
    large, small = b.binary("maximum", x, y), b.binary("minimum", x, y)
    ratio = b.div(
        small, b.select(b.compare("eq", large, b.constant(0, kind)), b.constant(1, kind), large)
    )
    length = b.mul(large, b.unary("sqrt", b.add(b.mul(ratio, ratio), b.constant(1, kind))))
    return b.cast(length, out.dtype)


@lowers("aten.polygamma.default")
def polygamma(b, out, n, x):
    x = b.cast(x, out.dtype)
    return b.binary("chlo.polygamma", b.constant(n, out.dtype, x.shape), x)


@lowers("aten.round.decimals")
def round_decimals(b, out, x, *, decimals):
    kind = torch.float32 if x.dtype in dtypes.NARROW else x.dtype
    scale = b.constant(10.0 ** abs(decimals), kind)
    go, back = (b.mul, b.div) if decimals >= 0 else (b.div, b.mul)
    y = b.unary("round_nearest_even", go(b.cast(x, kind), scale))
    return b.cast(back(y, scale), out.dtype)


@lowers("aten.nextafter.default")
def nextafter(b, out, x, y):
    return b.binary("chlo.next_after", b.cast(x, out.dtype), b.cast(y, out.dtype))


@lowers("aten.pow.Tensor_Scalar")
def pow_scalar(b, out, x, exponent):
    kind = torch.float32 if out.dtype in dtypes.NARROW else out.dtype
    x = b.cast(x, kind)
    if exponent == 1:
        y = x
    elif exponent in (2, 3):
        y = b.mul(x, x)
        y = b.mul(y, x) if exponent == 3 else y
    elif exponent == 0.5:
        y = b.unary("sqrt", x)
    elif exponent == -0.5:
        y = b.div(b.constant(1, kind), b.unary("sqrt", x))
    elif exponent == -1:
        y = b.div(b.constant(1, kind), x)
    elif exponent == -2:
        y = b.div(b.constant(1, kind), b.mul(x, x))
    else:
        y = b.binary("power", x, operand(b, exponent, kind))
    return b.cast(y, out.dtype)


@lowers("aten.pow.Tensor_Tensor", "aten.pow.Scalar")
def pow_tensor(b, out, x, y):
    kind = torch.float32 if out.dtype in dtypes.NARROW else out.dtype
    return b.cast(b.binary("power", operand(b, x, kind), operand(b, y, kind)), out.dtype)


def _comparison(direction):
    def lower(b, out, x, y):
        kind = promote(x, y)
        return b.compare(direction, operand(b, x, kind), operand(b, y, kind))

    return lower


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    lowers(f"aten.{_name}.Tensor", f"aten.{_name}.Scalar")(_comparison(_name))


def _logical(operation, as_bool):
    def lower(b, out, x, y):
        kind = torch.bool if as_bool else out.dtype
        return b.binary(operation, operand(b, x, kind), operand(b, y, kind))

    return lower


for _name in ("and", "or", "xor"):
    lowers(f"aten.logical_{_name}.default")(_logical(_name, True))
    lowers(f"aten.bitwise_{_name}.Tensor", f"aten.bitwise_{_name}.Scalar")(_logical(_name, False))


def _shift(operation):
    def lower(b, out, x, y):
        if dtypes.NAMES[out.dtype].startswith("u") and operation == "shift_right_arithmetic":
            return b.binary(
                "shift_right_logical", operand(b, x, out.dtype), operand(b, y, out.dtype)
            )
        return b.binary(operation, operand(b, x, out.dtype), operand(b, y, out.dtype))

    return lower


lowers("aten.bitwise_left_shift.Tensor", "aten.bitwise_left_shift.Tensor_Scalar")(
    _shift("shift_left")
)
lowers("aten.bitwise_right_shift.Tensor", "aten.bitwise_right_shift.Tensor_Scalar")(
    _shift("shift_right_arithmetic")
)


# --- three operands -------------------------------------------------------------------------------


@lowers("aten.where.self", "aten.where.ScalarOther", "aten.where.ScalarSelf", "aten.where.Scalar")
def where(b, out, which, yes, no):
    which = b.cast(which, torch.bool)
    return b.select(which, operand(b, yes, out.dtype), operand(b, no, out.dtype))


@lowers("aten.masked_fill.Scalar", "aten.masked_fill.Tensor")
def masked_fill(b, out, x, mask, value):
    return b.select(mask, operand(b, value, out.dtype), b.cast(x, out.dtype))


def _lower_bound(b, x, low):
    low = operand(b, low, x.dtype)
    return b.binary("maximum", x, low)


@lowers(
    "aten.clamp.default", "aten.clamp.Tensor", "aten.clamp_min.default", "aten.clamp_min.Tensor"
)
def clamp(b, out, x, min=None, max=None):
    kind = work_type(out.dtype, *(v for v in (x, min, max) if v is not None))
    x = b.cast(x, kind)
    if min is not None:
        x = _lower_bound(b, x, min)
    if max is not None:
        x = b.binary("minimum", x, operand(b, max, kind))
    return b.cast(x, out.dtype)


@lowers("aten.clamp_max.default", "aten.clamp_max.Tensor")
def clamp_max(b, out, x, max):
    return clamp(b, out, x, None, max)


@lowers("aten.addcmul.default")
def addcmul(b, out, x, y, z, value=1):
    kind = work_type(out.dtype, x, y, z)
    x, y, z = (operand(b, v, kind) for v in (x, y, z))
    return b.cast(b.add(x, _scaled(b, b.mul(y, z), value)), out.dtype)


@lowers("aten.addcdiv.default")
def addcdiv(b, out, x, y, z, value=1):
    kind = work_type(out.dtype, x, y, z)
    x, y, z = (operand(b, v, kind) for v in (x, y, z))
    return b.cast(b.add(x, _scaled(b, b.div(y, z), value)), out.dtype)


@lowers("aten.lerp.Scalar", "aten.lerp.Tensor")
def lerp(b, out, x, end, weight):
    """From the nearer end, as eager does it."""
    kind = torch.float32 if out.dtype in dtypes.NARROW else out.dtype
    x, end = operand(b, x, kind), operand(b, end, kind)
    number = None if isinstance(weight, Value) else weight
    weight, step = operand(b, weight, kind), b.sub(end, x)
    near = b.add(x, b.mul(weight, step))
    if number is not None and abs(number) < 0.5:
        return b.cast(near, out.dtype)
    far = b.sub(end, b.mul(step, b.sub(b.constant(1, kind), weight)))
    if number is not None:
        return b.cast(far, out.dtype)
    small = b.compare("lt", b.unary("abs", weight), b.constant(0.5, kind))
    return b.cast(b.select(small, near, far), out.dtype)


# --- complex numbers ------------------------------------------------------------------------------


@lowers("aten.real.default")
def real(b, out, x):
    return b.real(x)


@lowers("aten.imag.default")
def imag(b, out, x):
    return b.imag(x)


@lowers("aten.complex.default")
def make_complex(b, out, re, im):
    shape = tuple(out.shape)
    return b.complex(b.broadcast(re, shape), b.broadcast(im, shape))


@lowers("aten.view_as_real.default", "aten.view_as_real_copy.default")
def view_as_real(b, out, x):
    parts = [b.reshape(part, (*x.shape, 1)) for part in (b.real(x), b.imag(x))]
    return b.concatenate(parts, x.rank)


@lowers("aten.view_as_complex.default", "aten.view_as_complex_copy.default")
def view_as_complex(b, out, x):
    parts = [b.slice_dim(x, x.rank - 1, i, i + 1) for i in range(2)]
    return b.complex(*(b.reshape(part, out.shape) for part in parts))


@lowers("aten._conj.default", "aten._conj_physical.default", "aten.conj_physical.default")
def conj(b, out, x):
    return b.unary("chlo.conj", x) if x.dtype.is_complex else x


# --- lists of tensors, as optimizers use them -----------------------------------------------------

_FOREACH_UNARY = """
    abs neg sqrt rsqrt reciprocal exp log sign tanh sigmoid erf expm1 log1p floor ceil round
""".split()


def _each(function, spread_second):
    """Runs a lowering for each tensor of a list; other lists go along, single values are shared."""

    def lower(b, out, first, *rest, **kwargs):
        count = len(first)
        results = []
        for i in range(count):
            own = [
                r[i]
                if isinstance(r, (list, tuple)) and len(r) == count and k in spread_second
                else r
                for k, r in enumerate(rest)
            ]
            results.append(function(b, out[i], first[i], *own, **kwargs))
        return results

    return lower


def _foreach(packet, overloads, function, spread=(0,)):
    lowers(*(f"aten._foreach_{packet}.{o}" for o in overloads))(_each(function, spread))


for _name in _FOREACH_UNARY:
    _foreach(_name, ["default"], TABLE[find(f"aten.{_name}.default")], ())
for _name, _function in {"add": add, "sub": sub, "mul": mul, "div": div}.items():
    _foreach(_name, ["Scalar", "Tensor"], _function, ())
    _foreach(_name, ["List", "ScalarList"], _function)
for _name, _function in {
    "maximum": TABLE[find("aten.maximum.default")],
    "minimum": TABLE[find("aten.minimum.default")],
    "clamp_max": clamp_max,
    "clamp_min": clamp,
}.items():
    _foreach(_name, ["Scalar"], _function, ())
    _foreach(_name, ["List", "ScalarList"], _function)
_foreach("addcmul", ["Scalar", "ScalarList"], addcmul, (0, 1, 2))
_foreach("addcdiv", ["Scalar", "ScalarList"], addcdiv, (0, 1, 2))
_foreach("lerp", ["Scalar", "List", "ScalarList"], lerp, (0, 1))
_foreach(
    "pow",
    ["Scalar", "List", "ScalarList"],
    lambda b, o, x, y: (pow_tensor if isinstance(y, Value) else pow_scalar)(b, o, x, y),
)
_foreach("copy", ["default"], copy)


@lowers("aten._foreach_pow.ScalarAndTensor")
def foreach_pow_base(b, out, base, exponents):
    return [pow_tensor(b, o, base, e) for o, e in zip(out, exponents, strict=True)]
