# SPDX-License-Identifier: Apache-2.0
"""One traced function as a device program.

TensorFlow's program takes the tensors given to the function and then what the function captured, variables by value; it
gives the function's results and then the new values of the variables it wrote. Tensors are used where TensorFlow has them;
results are written into new tensors, which the variables take over without a copy. Readers of an old value keep it.
"""

import itertools
import re
from typing import Any

import numpy as np
import tensorflow as tf

from opentrn import _runtime
from opentrn.tensorflow.places import Places
from opentrn.tensorflow.report import log

_ALIAS = re.compile(r"parameter_number = (\d+) : i64\}, output_index = array<i64(?:: (\d+))?>")
_NAMES = {
    "float32": "f32",
    "float64": "f64",
    "float16": "f16",
    "bfloat16": "bf16",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "ui8",
    "uint16": "ui16",
    "uint32": "ui32",
    "uint64": "ui64",
    "bool": "i1",
    "complex64": "complex<f32>",
    "complex128": "complex<f64>",
}
_WAYS = 10000  # in which inputs may have been left out, looked at
_DTYPES = {name: tf.as_dtype(tensorflows) for tensorflows, name in _NAMES.items()}


class Unsupported(RuntimeError):
    """What TensorFlow cannot hand over as a program, with the line it stands in and what to do."""


def _head(text: str) -> str:
    """The module's own attributes: what stands before its first function."""
    return text[: text.index("func.func")]


def _memory(tensor: Any) -> np.ndarray[Any, Any]:
    """A tensor's own memory; of a scalar, which TensorFlow only gives by value, a copy."""
    return np.asarray(tensor._numpy(), order="C")


def _empty(dtype: Any, shape: tuple[int, ...]) -> tuple[Any, np.ndarray[Any, Any]]:
    """A tensor that is not made yet where it is a scalar, and its memory."""
    if not shape:
        return None, np.empty((), dtype.as_numpy_dtype)
    tensor = tf.raw_ops.Empty(shape=shape, dtype=dtype, init=False)
    return tensor, tensor._numpy()


def _at(array: np.ndarray[Any, Any]) -> tuple[int, int]:
    return array.__array_interface__["data"][0], array.nbytes


def _same(symbol: Any, kind: tuple[Any, tuple[int, ...]]) -> bool:
    return symbol.dtype == tf.resource or (symbol.dtype == kind[0] and symbol.shape.is_compatible_with(kind[1]))


def _kept(concrete: Any, takes: list[Any]) -> list[int]:
    """Which of the function's inputs are arguments of the program: TensorFlow leaves out integers that decide about shapes,
    and puts their values in."""
    symbols = concrete.inputs
    first = len(symbols) - len(concrete.captured_inputs)
    loose = [i for i, s in enumerate(symbols) if s.dtype.is_integer]
    ways = []
    for left_out in itertools.islice(itertools.combinations(loose, len(symbols) - len(takes)), _WAYS) if len(takes) <= len(symbols) else ():
        kept = [i for i in range(len(symbols)) if i not in left_out]
        if all(map(_same, (symbols[i] for i in kept), takes)):
            ways.append((left_out, kept))
    if len(ways) == 1 and all(i >= first for i in ways[0][0]):
        return ways[0][1]
    names = [symbols[i].name.split(":")[0] for i in loose if i < first]
    raise Unsupported(
        f"opentrn: integer tensors among the inputs ({', '.join(names) or 'captured ones'}) decide about shapes, and a program has one shape\n"
        "  hint: pass Python integers: each value gets a program of its own"
    )


class Program:
    """Callable with the function's tensors in order."""

    def __init__(self, name: str, concrete: Any, text: str) -> None:
        self.concrete = concrete
        self.places = Places(concrete.graph)
        self.text = self.places.write(text)
        with tf.init_scope():
            self.executable = _runtime.default_environment().compile(self.text.encode(), name)
        self.row = log.add(name, self.executable)
        self.captured = list(concrete.captured_inputs)
        self._takes = [(_DTYPES[kind], shape) for kind, shape in self.executable.arg_types()]
        self._gives = [(_DTYPES[kind], shape) for kind, shape in self.executable.result_types()]
        self._outputs = tf.nest.flatten(concrete.structured_outputs, expand_composites=True)
        aliases = _ALIAS.findall(_head(text))
        self._written = {int(result or 0): int(argument) for argument, result in aliases}
        self._kept = _kept(concrete, self._takes)
        if sum(o is not None for o in self._outputs) + len(self._written) != len(self._gives):
            raise RuntimeError(f"opentrn: {name}: TensorFlow's program gives {len(self._gives)} results, of which we know {len(self._written)} as variables")

    def _value(self, number: int, given: Any) -> np.ndarray[Any, Any]:
        if given.dtype == tf.resource:
            given = tf.raw_ops.ReadVariableOp(resource=given, dtype=self._takes[number][0])
        return _memory(given)

    def __call__(self, tensors: list[Any]) -> Any:
        given = [*tensors, *self.captured]
        given = [given[i] for i in self._kept]
        inputs = [self._value(i, t) for i, t in enumerate(given)]
        results = [_empty(dtype, shape) for dtype, shape in self._gives]
        self.executable.run([_at(a) for a in inputs], [_at(a) for _, a in results])
        self.row.runs += 1
        made = [tf.constant(a) if t is None else t for t, a in results]
        for result, argument in self._written.items():
            tf.raw_ops.AssignVariableOp(resource=given[argument], value=made[result])
        returned = iter(t for i, t in enumerate(made) if i not in self._written)
        flat = [None if o is None else next(returned) for o in self._outputs]
        return tf.nest.pack_sequence_as(self.concrete.structured_outputs, flat, expand_composites=True)
