# SPDX-License-Identifier: Apache-2.0
"""TensorFlow tests; without TensorFlow they are skipped (./dev test-tf installs it and runs them)."""

import os

import pytest

os.environ.setdefault("OTRN_CACHE", "off")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["KERAS_BACKEND"] = "tensorflow"


@pytest.fixture(autouse=True)
def fresh():
    """Each test starts with nothing counted and the same random numbers."""
    pytest.importorskip("tensorflow")
    import keras

    from opentrn.tensorflow.report import log

    keras.utils.set_random_seed(0)
    log.clear()
    yield log
