# SPDX-License-Identifier: Apache-2.0
"""@function: tf.function whose traces are device programs, one for each set of shapes and Python arguments."""

import functools
import inspect
import re
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.eager.polymorphic_function import compiler_ir

from opentrn import _runtime
from opentrn.tensorflow import rows
from opentrn.tensorflow.places import Places
from opentrn.tensorflow.program import Program, Unsupported
from opentrn.tensorflow.report import log

_SHOWN = 600  # characters of TensorFlow's message
_OUT = (
    "take that operation out of the function (the input pipeline is its place for strings, tables and Python code), or let TensorFlow run the "
    "whole function on the CPU: fallback=True"
)
_INTEGERS = "a tensor decides about shapes, and a program has one shape; pass Python integers: each value gets a program of its own"
_SIZED = "does not follow from the shapes of the inputs"  # what the compiler says of sizes that values decide about
_MASK = (
    "a program has one size; keep all elements and mask them: tf.where(mask, x, 0) and sums divided by tf.reduce_sum(mask) in place of boolean_mask, "
    "tf.math.unsorted_segment_sum or a sort in place of unique; on /device:NEURON:0 without jit_compile such operators run on the host; or let TensorFlow "
    "run the whole function on the CPU: fallback=True"
)
_NODE = re.compile(r"\{\{node ([^}]+)\}\}")


def _is_tensor(value: Any) -> bool:
    return isinstance(value, (tf.Tensor, tf.Variable))


def _leaf_key(leaf: Any) -> Any:
    if isinstance(leaf, tf.Variable):
        return "variable", leaf.ref()
    if isinstance(leaf, tf.Tensor):
        return leaf.dtype, tuple(leaf.shape)
    try:
        hash(leaf)
    except TypeError:
        return "object", id(leaf)
    return type(leaf), leaf


def _shapes(leaves: list[Any]) -> str:
    return ", ".join("x".join(map(str, (*t.shape, t.dtype.name))) for t in leaves if isinstance(t, tf.Tensor))


def _why(error: Exception, concrete: Any) -> str:
    """TensorFlow's message in a line, with the user's place of the node it names."""
    text = str(error).strip()
    node = _NODE.search(text)
    places = Places(concrete.graph)
    place = places.of(node[1]) if node else None
    where = f"{place[0]}:{place[1]}: " if place else ""
    return where + (text.splitlines() or [type(error).__name__])[0][:_SHOWN]


def _refused(what: str, hint: str, error: Exception) -> Unsupported:
    made = Unsupported(f"opentrn: {what}\n  hint: {hint}")
    made.__cause__ = error
    return made


class Function:
    """What @function makes. Call it as the function; `programs` are its traces."""

    def __init__(self, function: Callable[..., Any], fallback: bool = False, name: str | None = None, **options: Any) -> None:
        python = getattr(function, "python_function", function)  # of a tf.function
        self._signature = inspect.signature(python)
        self._traced = tf.function(python, jit_compile=True, **options)
        self._interpreted = tf.function(python, **options)  # where fallback asks for it; traced by its first call
        self._python, self._options = python, options
        self.fallback = fallback
        self.name = name or str(getattr(python, "__name__", type(python).__name__))
        self.programs: dict[Any, Program | str] = {}
        self._bound: Any = weakref.WeakKeyDictionary()
        functools.update_wrapper(self, python, updated=())

    def __get__(self, owner: Any, kind: Any = None) -> "Function":
        """As a method: one for each object, as tf.function has."""
        if owner is None:
            return self
        if owner not in self._bound:
            method = self._python.__get__(owner, kind)
            self._bound[owner] = Function(method, self.fallback, self.name, **self._options)
        bound: Function = self._bound[owner]
        return bound

    def _arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any], list[Any]]:
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        both = tf.nest.map_structure(lambda v: tf.convert_to_tensor(v) if isinstance(v, np.ndarray) else v, (bound.args, bound.kwargs))
        return both[0], both[1], tf.nest.flatten(both, expand_composites=True)

    def _exported(self, concrete: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Of shapes alone where that is possible: given values, TensorFlow puts some of them into the program."""
        given = concrete.inputs[: len(concrete.inputs) - len(concrete.captured_inputs)]
        if given and all(s.dtype != tf.resource and s.shape.is_fully_defined() for s in given):
            return compiler_ir.from_concrete_function(concrete, [tf.TensorSpec(s.shape, s.dtype) for s in given])
        return self._traced.experimental_get_compiler_ir(*args, **kwargs)

    def _compile(self, args: tuple[Any, ...], kwargs: dict[str, Any], leaves: list[Any]) -> Program | str:
        with rows.tracing(), tf.device("CPU"):  # on the device NEURON TensorFlow exports nothing
            concrete = self._traced.get_concrete_function(*args, **kwargs)
        try:
            with tf.device("CPU"):
                text = self._exported(concrete, args, kwargs)(stage="stablehlo")
            return Program(f"{self.name}({_shapes(leaves)})", concrete, text)
        except (tf.errors.OpError, ValueError, TypeError) as error:
            why = _why(error, concrete)
            refused = _refused(f"{self.name}: TensorFlow cannot compile it: {why}", _INTEGERS if "compile-time constant" in why else _OUT, error)
        except Unsupported as error:
            why, refused = str(error).splitlines()[0], error
        except _runtime.Error as error:
            if error.code != "UNSUPPORTED":
                raise
            why = str(error)
            refused = _refused(f"{self.name}: {why}", _MASK if _SIZED in why else _OUT, error)
        if not self.fallback:
            raise refused
        warnings.warn(f"opentrn: {self.name} runs on TensorFlow's CPU: {why}", stacklevel=4)
        return why

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not tf.executing_eagerly():  # inside another function: part of that one
            return self._python(*args, **kwargs)
        args, kwargs, leaves = self._arguments(args, kwargs)
        key = tuple(map(_leaf_key, leaves))
        if key not in self.programs:
            self.programs[key] = self._compile(args, kwargs, leaves)
        program = self.programs[key]
        if isinstance(program, str):
            log.fallbacks[self.name, program] += 1
            return self._interpreted(*args, **kwargs)
        return program([v.handle if isinstance(v, tf.Variable) else v for v in leaves if _is_tensor(v)])


def function(function: Callable[..., Any] | None = None, *, fallback: bool = False, **options: Any) -> Any:
    """Decorator in place of tf.function, or around one. options are tf.function's. fallback: what TensorFlow cannot compile
    runs on its CPU kernels, with a warning, and `explain()` counts it; else that is an error."""
    if function is None:
        return lambda f: Function(f, fallback, **options)
    return Function(function, fallback, **options)
