# SPDX-License-Identifier: Apache-2.0
"""The device /device:NEURON:N, through TensorFlow's own interface for pluggable devices.

The library is the plugin (src/pjrt/tensorflow.c). Loaded from here it waits to be named (`with tf.device("/device:NEURON:0")`);
TF_PLUGGABLE_DEVICE_LIBRARY_PATH, which TensorFlow reads when it is imported, makes it the device of everything that names none:

    TF_PLUGGABLE_DEVICE_LIBRARY_PATH=$(python -c 'from opentrn import library_path; print(library_path())') python train.py
"""

import os
import warnings

import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.framework import load_library as _loader

from opentrn._library import library_path

NAME = "NEURON"
_FLAG = "--tf_xla_use_device_api"  # jit_compile goes through PJRT; TensorFlow reads it when it first looks for devices


def is_meant() -> bool:
    """Is what is run or traced now meant for the device?"""
    named = context.context().device_name
    return NAME in named if named else bool(os.environ.get("TF_PLUGGABLE_DEVICE_LIBRARY_PATH"))


def load() -> list[str]:
    """Names of the devices. Loads the plugin unless TensorFlow has; a TensorFlow that lacks what it needs has no such device,
    and a warning says so."""
    flags = os.environ.get("TF_XLA_FLAGS", "")
    if _FLAG not in flags:
        os.environ["TF_XLA_FLAGS"] = f"{flags} {_FLAG}=true".strip()
    devices = tf.config.list_physical_devices(NAME)
    if not devices:
        try:
            _loader.load_pluggable_device_library(os.path.realpath(library_path()))
        except tf.errors.OpError as error:
            warnings.warn(f"opentrn: no device {NAME} in this TensorFlow ({tf.__version__}): {error.message}", stacklevel=3)
        devices = tf.config.list_physical_devices(NAME)
    return [d.name.replace("/physical_", "/") for d in devices]
