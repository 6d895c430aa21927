# SPDX-License-Identifier: Apache-2.0
"""Gradients of embeddings, which TensorFlow has as rows (IndexedSlices), for Keras' optimizers on the device.

Programs have static sizes, and Keras asks for sizes that only a run knows. Optimizers of Keras 2 (tf_keras) join rows that occur
twice; they update untouched rows as with a gradient of zero, so they get the whole gradient instead. Keras 3 does not join rows
(which gives other updates than the whole gradient), but in a division it looks for further rows of the divisor that are zero or
NaN: here all rows of the divisor are further ones, with an index beyond the last where they are neither, which XLA leaves out.
"""

import contextlib
import contextvars
import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from opentrn.tensorflow.device import is_meant

_tracing: contextvars.ContextVar[bool] = contextvars.ContextVar("opentrn_tracing", default=False)


@contextlib.contextmanager
def tracing() -> Iterator[None]:
    """What is traced in the block becomes a device program."""
    install()
    before = _tracing.set(True)
    try:
        yield
    finally:
        _tracing.reset(before)


def _is_meant(rows: Any) -> bool:
    """Are these rows, of a program of the device?"""
    return isinstance(rows, tf.IndexedSlices) and (_tracing.get() or is_meant())


def _whole(gradient: Any) -> Any:
    return tf.convert_to_tensor(gradient) if _is_meant(gradient) else gradient


def _divide(before: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(before)
    def divide(x1: Any, x2: Any) -> Any:
        if not _is_meant(x1) or not isinstance(x2, tf.Tensor) or not x2.shape.rank:
            return before(x1, x2)
        count = tf.cast(tf.shape(x2)[0], x1.indices.dtype)
        strange = tf.reduce_any((x2 == 0) | tf.math.is_nan(x2), axis=tuple(range(1, x2.shape.rank)))
        there = tf.tensor_scatter_nd_update(tf.zeros_like(strange), x1.indices[:, None], tf.ones_like(x1.indices, tf.bool))
        further = tf.where(strange & ~there, tf.range(count, dtype=x1.indices.dtype), count)
        values = [before(x1.values, tf.gather(x2, x1.indices)), before(tf.zeros_like(x2), x2)]
        return tf.IndexedSlices(tf.concat(values, 0), tf.concat([x1.indices, further], 0), x1.dense_shape)

    return divide


def _apply_gradients(before: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(before)
    def apply_gradients(self: Any, grads_and_vars: Any, *args: Any, **kwargs: Any) -> Any:
        if type(self).__module__.startswith("tf_keras."):
            grads_and_vars = [(_whole(g), v) for g, v in grads_and_vars]
        return before(self, grads_and_vars, *args, **kwargs)

    return apply_gradients


_done: set[str] = set()


def install() -> None:
    """For those of the two that are imported by now."""
    optimizers = getattr(sys.modules.get("tf_keras"), "optimizers", None)
    if optimizers is not None and "tf_keras" not in _done:
        _done.add("tf_keras")
        optimizers.Optimizer.apply_gradients = _apply_gradients(optimizers.Optimizer.apply_gradients)
    numpy = sys.modules.get("keras.src.backend.tensorflow.numpy")
    if hasattr(numpy, "divide") and "keras" not in _done:
        _done.add("keras")
        numpy.divide = _divide(numpy.divide)  # type: ignore[union-attr]
