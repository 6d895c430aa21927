# SPDX-License-Identifier: Apache-2.0
"""StableHLO text in the making: values, and one method per operation the lowerings need.

Every operation is written in its generic form, so that there is one writer and no special cases.
"""

import re

import torch

from opentrn.torch import dtypes


class Value:
    """An SSA value: its name in the text, its shape and its torch element type."""

    __slots__ = ("dtype", "name", "shape")

    def __init__(self, name, shape, dtype):
        self.name, self.shape, self.dtype = name, tuple(shape), dtype

    @property
    def rank(self):
        return len(self.shape)

    @property
    def type(self):
        return dtypes.tensor_type(self.shape, self.dtype)

    @property
    def numel(self):
        n = 1
        for d in self.shape:
            n *= d
        return n


class Joined(Value):
    """A value with the first two dimensions of another as one; written where somebody needs it so."""

    __slots__ = ("_builder", "_written", "apart")

    def __init__(self, builder, apart):
        self._written: str = ""
        super().__init__("", (apart.shape[0] * apart.shape[1], *apart.shape[2:]), apart.dtype)
        self._builder, self.apart = builder, apart

    @property
    def name(self):
        if not self._written:
            self._written = self._builder.op("reshape", [self.apart], (self.shape, self.dtype)).name
        return self._written

    @name.setter
    def name(self, text):
        self._written = text


def ints(values):
    values = list(values)
    return "array<i64: " + ", ".join(map(str, values)) + ">" if values else "array<i64>"


def broadcast_shapes(*shapes):
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(s)) + tuple(s) for s in shapes]
    return tuple(next((d for d in column if d != 1), 1) for column in zip(*padded, strict=True))


_DIRECTIONS = {"eq": "EQ", "ne": "NE", "lt": "LT", "le": "LE", "gt": "GT", "ge": "GE"}


class Builder:
    def __init__(self):
        self.lines = []
        self.place = ""  # loc(…) of the operations that follow
        self._count = 0
        self._memo = {}  # constants and iotas, written once
        self.ranks = set()  # of other processes and this one, met in collectives
        self.channels = 0  # given to collectives so far
        self.functions = {}  # text of further functions of the program -> name of the first of them

    # --- writing ---------------------------------------------------------------------------------

    def _name(self):
        self._count += 1
        return f"%{self._count}"

    def op(self, name, operands, shapes, attributes="", regions=""):
        """shapes: one (shape, dtype) or a list of them; gives one Value or a list."""
        single = not isinstance(shapes, list)
        results = [Value("", *s) for s in ([shapes] if single else shapes)]
        base = self._name()
        for i, r in enumerate(results):
            r.name = base if len(results) == 1 else f"{base}#{i}"
        head = base if len(results) == 1 else f"{base}:{len(results)}"
        if "." not in name:
            name = "stablehlo." + name
        attributes = f" <{{{attributes}}}>" if attributes else ""
        given = ", ".join(v.name for v in operands)
        types = ", ".join(v.type for v in operands)
        out = ", ".join(r.type for r in results)
        out = out if len(results) == 1 else f"({out})"
        regions = f" ({regions})" if regions else ""
        self.lines.append(
            f'{head} = "{name}"({given}){attributes}{regions} : ({types}) -> {out}{self.place}'
        )
        return results[0] if single else results

    def region(self, dtypes_in, body):
        """A region over scalars: body(builder, values) gives the values it returns."""
        inner = Builder()
        inner._count = self._count
        names = [f"%r{self._count}_{i}" for i in range(len(dtypes_in))]
        values = [Value(n, (), d) for n, d in zip(names, dtypes_in, strict=True)]
        results = body(inner, values)
        self._count = inner._count
        args = ", ".join(f"{v.name}: {v.type}" for v in values)
        given = ", ".join(r.name for r in results)
        types = ", ".join(r.type for r in results)
        lines = [f"^bb0({args}):", *inner.lines, f'"stablehlo.return"({given}) : ({types}) -> ()']
        return "{\n" + "\n".join(lines) + "\n}"

    def call(self, functions, operands, shapes):
        """functions: text of private functions, @main the one that is called."""
        if functions not in self.functions:
            self.functions[functions] = f"f{len(self.functions)}_"
        name = self.functions[functions] + "main"
        return self.op("func.call", operands, list(shapes), f"callee = @{name}")

    def all_functions(self):
        """Text of what was called, each set of functions with names of its own."""
        return "".join(
            re.sub(r"@(\w+)", rf"@{prefix}\1", text) for text, prefix in self.functions.items()
        )

    # --- constants -------------------------------------------------------------------------------

    def _once(self, key, make):
        if key not in self._memo:
            place, self.place = self.place, ""
            self._memo[key] = make()
            self.place = place
        return self._memo[key]

    def constant(self, value, dtype, shape=()):
        """A tensor whose elements are all this number."""
        text = dtypes.literal(value, dtype)
        shape = tuple(shape)
        spread = f"dense<{text}>" if 0 not in shape else "dense<>"

        def make():
            kind = dtypes.tensor_type(shape, dtype)
            return self.op("constant", [], (shape, dtype), f"value = {spread} : {kind}")

        return self._once(("constant", text, dtype, shape), make)

    def tensor(self, tensor):
        """A tensor's elements, written into the program."""
        if tensor.numel() == 0:
            return self.constant(0, tensor.dtype, tensor.shape)
        kind = dtypes.tensor_type(tensor.shape, tensor.dtype)
        value = f"value = dense<{dtypes.dense(tensor)}> : {kind}"
        return self.op("constant", [], (tensor.shape, tensor.dtype), value)

    def iota(self, shape, dim, dtype=torch.int64):
        shape = tuple(shape)
        attribute = f"iota_dimension = {dim} : i64"
        return self._once(
            ("iota", shape, dim, dtype), lambda: self.op("iota", [], (shape, dtype), attribute)
        )

    # --- elementwise -----------------------------------------------------------------------------

    def unary(self, name, x, dtype=None):
        return self.op(name, [x], (x.shape, dtype or x.dtype))

    def binary(self, name, x, y):
        """Operands of one type; shapes are broadcast as numpy does."""
        shape = broadcast_shapes(x.shape, y.shape)
        x, y = self.broadcast(x, shape), self.broadcast(y, shape)
        return self.op(name, [x, y], (shape, x.dtype))

    def add(self, x, y):
        return self.binary("or" if x.dtype == torch.bool else "add", x, y)

    def mul(self, x, y):
        return self.binary("and" if x.dtype == torch.bool else "multiply", x, y)

    def sub(self, x, y):
        return self.binary("subtract", x, y)

    def div(self, x, y):
        return self.binary("divide", x, y)

    def neg(self, x):
        return self.unary("negate", x)

    def logical_not(self, x):
        return self.unary("not", x)

    def logical_and(self, x, y):
        return self.binary("and", x, y)

    def logical_or(self, x, y):
        return self.binary("or", x, y)

    def compare(self, direction, x, y, total=False):
        """total: by the order of all floats, NaNs behind infinity."""
        shape = broadcast_shapes(x.shape, y.shape)
        x, y = self.broadcast(x, shape), self.broadcast(y, shape)
        kind = "TOTALORDER" if total else "FLOAT"
        if not (x.dtype.is_floating_point or x.dtype.is_complex):
            unsigned = x.dtype == torch.bool or dtypes.NAMES[x.dtype].startswith("u")
            kind = "UNSIGNED" if unsigned else "SIGNED"
        attributes = (
            f"compare_type = #stablehlo<comparison_type {kind}>, "
            f"comparison_direction = #stablehlo<comparison_direction {_DIRECTIONS[direction]}>"
        )
        return self.op("compare", [x, y], (shape, torch.bool), attributes)

    def select(self, which, yes, no):
        shape = broadcast_shapes(which.shape, yes.shape, no.shape)
        operands = [self.broadcast(v, shape) for v in (which, yes, no)]
        return self.op("select", operands, (shape, yes.dtype))

    def is_nan(self, x):
        return self.compare("ne", x, x)

    def cast(self, x, dtype):
        if x.dtype == dtype:
            return x
        if dtype == torch.bool:
            return self.compare("ne", x, self.constant(0, x.dtype, x.shape))
        if x.dtype.is_complex and not dtype.is_complex:
            x = self.real(x)
        if x.dtype.is_floating_point and dtypes.is_int(dtype) and dtype != torch.int64:
            # C conversions of eager's CPU: through 64 bits, then the low bits.
            x = self.op("convert", [x], (x.shape, torch.int64))
        if x.dtype == dtype:
            return x
        return self.op("convert", [x], (x.shape, dtype))

    def real(self, x):
        return self.unary("real", x, _part(x.dtype)) if x.dtype.is_complex else x

    def imag(self, x):
        return self.unary("imag", x, _part(x.dtype))

    def complex(self, re, im):
        whole = torch.complex64 if re.dtype == torch.float32 else torch.complex128
        return self.op("complex", [re, im], (re.shape, whole))

    # --- shapes ----------------------------------------------------------------------------------

    def reshape(self, x, shape):
        shape = tuple(shape)
        if x.shape == shape:
            return x
        if isinstance(x, Joined) and x.apart.shape == shape:
            return x.apart
        if x.rank == len(shape) + 1 and x.rank > 2 and x.shape[2:] == shape[1:]:
            return Joined(self, x)
        return self.op("reshape", [x], (shape, x.dtype))

    def transpose(self, x, permutation):
        permutation = list(permutation)
        if permutation == sorted(permutation):
            return x
        if isinstance(x, Joined) and permutation[0] == 0:
            return Joined(self, self.transpose(x.apart, [0, *(p + 1 for p in permutation)]))
        shape = [x.shape[p] for p in permutation]
        return self.op("transpose", [x], (shape, x.dtype), f"permutation = {ints(permutation)}")

    def spread(self, x, shape, dims):
        """broadcast_in_dim: dimension i of x becomes dims[i] of the result."""
        shape, dims = tuple(shape), list(dims)
        if x.shape == shape and dims == list(range(x.rank)):
            return x
        attribute = f"broadcast_dimensions = {ints(dims)}"
        return self.op("broadcast_in_dim", [x], (shape, x.dtype), attribute)

    def broadcast(self, x, shape):
        """As numpy does: dimensions are matched from the right."""
        skip = len(shape) - x.rank
        return self.spread(x, shape, range(skip, len(shape)))

    def slice(self, x, starts, limits, strides=None):
        strides = list(strides or [1] * x.rank)
        shape = [
            max(0, -(-(stop - start) // step))
            for start, stop, step in zip(starts, limits, strides, strict=True)
        ]
        if tuple(shape) == x.shape and all(s == 1 for s in strides):
            return x
        attributes = (
            f"limit_indices = {ints(limits)}, start_indices = {ints(starts)}, "
            f"strides = {ints(strides)}"
        )
        return self.op("slice", [x], (shape, x.dtype), attributes)

    def slice_dim(self, x, dim, start, stop, step=1):
        starts, limits, strides = [0] * x.rank, list(x.shape), [1] * x.rank
        starts[dim], limits[dim], strides[dim] = start, stop, step
        return self.slice(x, starts, limits, strides)

    def pad(self, x, fill, low, high, interior=None):
        interior = list(interior or [0] * x.rank)
        if not (any(low) or any(high) or any(interior)):
            return x
        shape = [
            lo + hi + d + max(0, d - 1) * inside
            for d, lo, hi, inside in zip(x.shape, low, high, interior, strict=True)
        ]
        attributes = (
            f"edge_padding_high = {ints(high)}, edge_padding_low = {ints(low)}, "
            f"interior_padding = {ints(interior)}"
        )
        return self.op("pad", [x, fill], (shape, x.dtype), attributes)

    def concatenate(self, parts, dim):
        if len(parts) == 1:
            return parts[0]
        shape = list(parts[0].shape)
        shape[dim] = sum(p.shape[dim] for p in parts)
        return self.op("concatenate", parts, (shape, parts[0].dtype), f"dimension = {dim} : i64")

    def reverse(self, x, dims):
        dims = list(dims)
        return (
            self.op("reverse", [x], (x.shape, x.dtype), f"dimensions = {ints(dims)}") if dims else x
        )

    # --- regions over elements -------------------------------------------------------------------

    def reduce_many(self, xs, inits, dims, body):
        """body(builder, accumulators, elements) gives the new accumulators."""
        dims = sorted(dims)
        shape = [d for i, d in enumerate(xs[0].shape) if i not in dims]
        kinds = [x.dtype for x in xs]
        n = len(xs)
        region = self.region(kinds + kinds, lambda b, v: body(b, v[:n], v[n:]))
        return self.op(
            "reduce",
            [*xs, *inits],
            [(shape, k) for k in kinds],
            f"dimensions = {ints(dims)}",
            region,
        )

    def reduce(self, x, init, dims, name):
        """name: the StableHLO operation that joins two elements."""
        start = self.constant(init, x.dtype)
        return self.reduce_many(
            [x], [start], dims, lambda b, acc, new: [b.binary(name, acc[0], new[0])]
        )[0]

    def sum(self, x, dims):
        return self.reduce(x, 0, dims, "add") if dims else x

    def reduce_window_many(self, xs, inits, size, strides, dilation, padding, body):
        kinds = [x.dtype for x in xs]
        n = len(xs)
        shape = [
            (d + lo + hi - (w - 1) * dil - 1) // s + 1
            for d, (lo, hi), w, dil, s in zip(
                xs[0].shape, padding, size, dilation, strides, strict=True
            )
        ]
        region = self.region(kinds + kinds, lambda b, v: body(b, v[:n], v[n:]))
        pairs = "[" + ", ".join(f"[{lo}, {hi}]" for lo, hi in padding) + "]"
        attributes = (
            f"padding = dense<{pairs}> : tensor<{len(padding)}x2xi64>, "
            f"window_dilations = {ints(dilation)}, window_dimensions = {ints(size)}, "
            f"window_strides = {ints(strides)}"
        )
        return self.op(
            "reduce_window", [*xs, *inits], [(shape, k) for k in kinds], attributes, region
        )

    def reduce_window(self, x, init, size, strides, dilation, padding, name):
        start = self.constant(init, x.dtype)
        return self.reduce_window_many(
            [x],
            [start],
            size,
            strides,
            dilation,
            padding,
            lambda b, acc, new: [b.binary(name, acc[0], new[0])],
        )[0]

    def sort(self, xs, dim, before, stable=True):
        """before(builder, a, b): a, b are the keys (first operand) of two rows."""
        kinds = [k for x in xs for k in (x.dtype, x.dtype)]
        region = self.region(kinds, lambda b, v: [before(b, v[0], v[1])])
        attributes = f"dimension = {dim} : i64, is_stable = {'true' if stable else 'false'}"
        return self.op("sort", xs, [(x.shape, x.dtype) for x in xs], attributes, region)

    def gather(
        self, x, indices, sizes, offset_dims, collapsed, index_map, operand_batch=(), index_batch=()
    ):
        """index_vector_dim is the last dimension of indices."""
        at = indices.rank - 1
        batch = list(indices.shape[:-1])
        kept = [s for i, s in enumerate(sizes) if i not in collapsed and i not in operand_batch]
        rank = len(batch) + len(kept)
        shape = [None] * rank
        for d, s in zip(offset_dims, kept, strict=True):
            shape[d] = s
        rest = iter(batch)
        shape = [next(rest) if s is None else s for s in shape]
        numbers = [
            f"offset_dims = {list(offset_dims)}",
            f"collapsed_slice_dims = {list(collapsed)}",
        ]
        if operand_batch:
            numbers.append(f"operand_batching_dims = {list(operand_batch)}")
            numbers.append(f"start_indices_batching_dims = {list(index_batch)}")
        numbers.append(f"start_index_map = {list(index_map)}")
        numbers.append(f"index_vector_dim = {at}")
        attributes = (
            f"dimension_numbers = #stablehlo.gather<{', '.join(numbers)}>, "
            f"slice_sizes = {ints(sizes)}"
        )
        return self.op("gather", [x, indices], (shape, x.dtype), attributes)

    def scatter(
        self,
        x,
        indices,
        updates,
        window_dims,
        inserted,
        index_map,
        body,
        input_batch=(),
        index_batch=(),
    ):
        """body(builder, old, new) gives the element written."""
        numbers = [
            f"update_window_dims = {list(window_dims)}",
            f"inserted_window_dims = {list(inserted)}",
        ]
        if input_batch:
            numbers.append(f"input_batching_dims = {list(input_batch)}")
            numbers.append(f"scatter_indices_batching_dims = {list(index_batch)}")
        numbers.append(f"scatter_dims_to_operand_dims = {list(index_map)}")
        numbers.append(f"index_vector_dim = {indices.rank - 1}")
        region = self.region([x.dtype, x.dtype], lambda b, v: [body(b, v[0], v[1])])
        attributes = f"scatter_dimension_numbers = #stablehlo.scatter<{', '.join(numbers)}>"
        return self.op("scatter", [x, indices, updates], (x.shape, x.dtype), attributes, region)

    # --- tensor engine ---------------------------------------------------------------------------

    def dot_general(self, x, y, contract, batch=((), ())):
        """torch's batched products take heads and batch as one dimension, which cannot be cut by heads: where both operands were
        two dimensions the product runs over both."""
        (xc, yc), (xb, yb) = contract, batch
        if list(xb) == list(yb) == [0] and isinstance(x, Joined) and isinstance(y, Joined) and x.apart.shape[:2] == y.apart.shape[:2]:
            return Joined(self, self.dot_general(x.apart, y.apart, ([d + 1 for d in xc], [d + 1 for d in yc]), ([0, 1], [0, 1])))
        free_x = [d for i, d in enumerate(x.shape) if i not in xc and i not in xb]
        free_y = [d for i, d in enumerate(y.shape) if i not in yc and i not in yb]
        shape = [x.shape[i] for i in xb] + free_x + free_y
        numbers = []
        if xb:
            numbers.append(f"lhs_batching_dimensions = {list(xb)}")
            numbers.append(f"rhs_batching_dimensions = {list(yb)}")
        numbers.append(f"lhs_contracting_dimensions = {list(xc)}")
        numbers.append(f"rhs_contracting_dimensions = {list(yc)}")
        attributes = f"dot_dimension_numbers = #stablehlo.dot<{', '.join(numbers)}>"
        return self.op("dot_general", [x, y], (shape, x.dtype), attributes)

    def convolution(
        self, x, w, shape, strides, padding, x_dilation, w_dilation, groups=1, batch_groups=1
    ):
        """x: batch, features, space…; w: output features, input features, space…."""
        space = "".join(f", {i}" for i in range(x.rank - 2))
        pairs = "[" + ", ".join(f"[{lo}, {hi}]" for lo, hi in padding) + "]"
        attributes = (
            f"batch_group_count = {batch_groups} : i64, "
            f"dimension_numbers = #stablehlo.conv<[b, f{space}]x[o, i{space}]->[b, f{space}]>, "
            f"feature_group_count = {groups} : i64, "
            f"lhs_dilation = {ints(x_dilation)}, "
            f"padding = dense<{pairs}> : tensor<{len(padding)}x2xi64>, "
            f"rhs_dilation = {ints(w_dilation)}, window_strides = {ints(strides)}"
        )
        return self.op("convolution", [x, w], (shape, x.dtype), attributes)


def _part(dtype):
    return torch.float32 if dtype == torch.complex64 else torch.float64
