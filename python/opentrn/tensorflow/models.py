# SPDX-License-Identifier: Apache-2.0
"""attach(model): Keras' own loops with our programs in them.

fit, evaluate and predict, with all they have around a step (callbacks, metrics, validation, progress), ask the model for a
function that takes the next batch and gives logs or predictions. That is what is replaced, for Keras 3 on its TensorFlow
backend and for Keras 2 (tf_keras).
"""

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from opentrn.tensorflow.function import Function

_KINDS = ("train", "test", "predict")


def _plain(data: Any) -> Any:
    """Keras 3 puts an absent part of a batch into its datasets as an empty Optional."""
    return tf.nest.map_structure(lambda v: None if isinstance(v, tf.experimental.Optional) else v, data)


def _per_call(model: Any) -> int:
    """How many batches one call of the function takes."""
    for name in ("steps_per_execution", "_steps_per_execution"):
        if (value := getattr(model, name, None)) is not None:
            return int(value)
    return 1


def _step(model: Any, kind: str, fallback: bool) -> Function:
    def step(data: Any) -> Any:
        return getattr(model, f"{kind}_step")(data)

    return Function(tf.autograph.experimental.do_not_convert(step), fallback, f"{type(model).__name__}.{kind}_step")


def _joined(kind: str, before: Any, made: Any) -> Any:
    """Of several batches the last logs, or all predictions."""
    if kind != "predict" or before is None:
        return made
    return tf.nest.map_structure(lambda a, b: tf.concat([a, b], 0), before, made)


def _loop(model: Any, kind: str, step: Function) -> Callable[[Any], Any]:
    def run(iterator: Any) -> Any:
        outputs = None
        given = iter(iterator) if isinstance(iterator, list) else iterator  # Keras 3 gives predict a list of batches
        for number in range(_per_call(model)):
            try:
                data = next(given)
            except (StopIteration, tf.errors.OutOfRangeError):
                if not number:
                    raise StopIteration from None
                break
            outputs = _joined(kind, outputs, step(_plain(data)))
            counter = getattr(model, f"_{kind}_counter", None)  # Keras 2 counts batches here
            if counter is not None:
                counter.assign_add(1)
        return outputs

    return run


def _make(model: Any, kind: str, fallback: bool, force: bool = False) -> Any:
    name = f"{kind}_function"
    if getattr(model, name, None) is None or force:
        if model.run_eagerly:
            raise ValueError("opentrn.tensorflow.attach: the model was compiled with run_eagerly=True, which leaves no step to compile; take that out")
        made = _loop(model, kind, _step(model, kind, fallback))
        setattr(model, name, made)
        if kind == "train" and hasattr(model, "train_tf_function"):
            model.train_tf_function = made
    return getattr(model, name)


def _check(model: Any) -> None:
    strategy = getattr(model, "distribute_strategy", None)
    if not all(hasattr(model, f"make_{kind}_function") for kind in _KINDS) or strategy is None:
        raise TypeError(
            "opentrn.tensorflow.attach: a Keras model on the TensorFlow backend is needed (KERAS_BACKEND=tensorflow), "
            f"not {type(model).__module__}.{type(model).__name__}; on the JAX backend Keras needs no call: docs/from-tf-keras.md"
        )
    if strategy.num_replicas_in_sync > 1:
        raise ValueError(
            f"opentrn.tensorflow.attach: the model is distributed by {type(strategy).__name__} over {strategy.num_replicas_in_sync} replicas; "
            "train it without attach, on the devices themselves (MirroredStrategy([\"/device:NEURON:0\", …])), or on Keras' JAX backend: docs/from-tf-keras.md"
        )


def attach(model: Any, fallback: bool = False) -> Any:
    """The model, whose fit, evaluate, predict and *_on_batch run on the device from now on. fallback: as of `function`."""
    _check(model)
    for kind in _KINDS:
        setattr(model, f"make_{kind}_function", functools.partial(_make, model, kind, fallback))
        setattr(model, f"{kind}_function", None)
    return model


def detach(model: Any) -> Any:
    """The model as it was: TensorFlow runs it."""
    for kind in _KINDS:
        if f"make_{kind}_function" in vars(model):
            delattr(model, f"make_{kind}_function")
            setattr(model, f"{kind}_function", None)
    return model
