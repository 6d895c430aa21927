# SPDX-License-Identifier: Apache-2.0
"""Keras 3 on the JAX backend: fit with callbacks, mixed precision, save and load, in a process of its
own because the backend is chosen at import."""

import os
import subprocess
import sys

import pytest

from importlib.util import find_spec

from conftest import ROOT

PROGRAM = """
import sys
sys.path.insert(0, "examples/keras")
import vit, jax
assert jax.devices()[0].platform == "opentrn"
sys.argv = ["vit", "--epochs=2", "--samples=128"]
accuracy = vit.main()
assert 0 <= accuracy <= 1

import keras, numpy as np
keras.mixed_precision.set_global_policy("float32")

def losses(device):
    keras.utils.set_random_seed(0)
    with jax.default_device(device):
        model = keras.Sequential([keras.layers.Dense(16, activation="relu"), keras.layers.Dense(4)])
        model.compile(optimizer="adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        rng = np.random.default_rng(0)
        x, y = rng.normal(size=(64, 8)).astype("float32"), rng.integers(0, 4, 64)
        return model.fit(x, y, epochs=3, batch_size=16, shuffle=False, verbose=0).history["loss"]

np.testing.assert_allclose(losses(jax.devices()[0]), losses(jax.devices("cpu")[0]), rtol=1e-5)
"""


@pytest.mark.skipif(not (find_spec("keras") and find_spec("jax")), reason="needs keras and jax")
def test_keras():
    env = {**os.environ, "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "opentrn,cpu"}
    out = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=env,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert out.returncode == 0, out.stdout + out.stderr
    assert "loaded again" in out.stdout and "modelled time per step" in out.stdout
