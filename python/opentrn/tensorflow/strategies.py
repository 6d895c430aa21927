# SPDX-License-Identifier: Apache-2.0
"""tf.distribute.MirroredStrategy over several devices /device:NEURON:N of one process.

By default TensorFlow sums gradients with collectives, each replica's part of which would be a program of its own that waits for
the others; XLA has them only as one program over all. So sums go over the first device here, in the order of the replicas:
copies and additions, TensorFlow's own ReductionToOneDevice. A strategy that names no devices takes GPUs, or the CPU; where the
device is meant (`device.is_meant`) it takes all of the device's.
"""

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tensorflow.python.distribute import mirrored_strategy as _mirrored

from opentrn import _profile
from opentrn.tensorflow.device import NAME, is_meant

_most = 0  # devices of a strategy of this process


def _devices(before: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(before)
    def all_local_devices(*args: Any, **kwargs: Any) -> Any:
        found = tf.config.list_logical_devices(NAME) if is_meant() and not tf.config.list_logical_devices("GPU") else []
        return found or before(*args, **kwargs)

    return all_local_devices


def _sums(before: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(before)
    def make(self: Any) -> Any:
        global _most
        made = before(self)
        if not any(NAME in d for d in self._devices):
            return made
        _most = max(_most, len(self._devices))
        return tf.distribute.ReductionToOneDevice()

    return make


def _notes() -> list[str]:
    if _most < 2:
        return []
    return [f"MirroredStrategy over {_most} devices: times are those of all devices, one after the other; copies between them are not contained"]


def install() -> None:
    extended = _mirrored.MirroredExtended
    extended._make_collective_ops_with_fallbacks = _sums(extended._make_collective_ops_with_fallbacks)
    _mirrored.all_local_devices = _devices(_mirrored.all_local_devices)
    _profile.SOURCES.append(_profile.Source(list, notes=_notes))
