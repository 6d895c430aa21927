# SPDX-License-Identifier: Apache-2.0
"""TensorFlow and Keras (on its TensorFlow backend) on the device.

    @opentrn.tensorflow.function          # instead of @tf.function
    def step(x, y): ...                   # GradientTape, optimizers, loops: all of it one device program

    model.compile("adam", "mse")
    opentrn.tensorflow.attach(model)      # fit, evaluate, predict and the *_on_batch calls run on the device
    model.fit(x, y)

    with tf.device("/device:NEURON:0"):   # or TensorFlow's own way: eager operators, tf.function, fit
        ...

TensorFlow traces and hands over StableHLO; nothing falls back to its CPU kernels unless `fallback=True` asks for it, and
then `explain()` counts and names it. `opentrn.profile()` and `opentrn.training()` see these programs as those of the
other front ends.
"""

from opentrn.tensorflow import rows, strategies
from opentrn.tensorflow.device import load
from opentrn.tensorflow.function import Function, function
from opentrn.tensorflow.models import attach, detach
from opentrn.tensorflow.program import Unsupported
from opentrn.tensorflow.report import explain

__all__ = ["Function", "Unsupported", "attach", "detach", "explain", "function", "load"]

load()
rows.install()
strategies.install()
