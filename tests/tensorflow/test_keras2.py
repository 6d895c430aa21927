# SPDX-License-Identifier: Apache-2.0
"""Keras 2 (tf_keras): the same loops, made otherwise."""

import numpy as np
import pytest

pytest.importorskip("tensorflow")
tf_keras = pytest.importorskip("tf_keras")

import opentrn.tensorflow


def test_fit(fresh):
    r = np.random.default_rng(0)
    x, y = r.normal(size=(22, 8, 8, 3)).astype("f"), r.integers(0, 4, 22)

    def run(attached):
        tf_keras.utils.set_random_seed(1)
        layers = tf_keras.layers
        net = [layers.Conv2D(6, 3, activation="relu"), layers.BatchNormalization(), layers.GlobalAveragePooling2D(), layers.Dense(4)]
        model = tf_keras.Sequential(net)
        model.compile("adam", tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"], jit_compile=True)
        if attached:
            opentrn.tensorflow.attach(model)
        history = model.fit(x, y, batch_size=8, epochs=2, verbose=0, validation_data=(x, y)).history
        return history, model.predict(x, verbose=0)

    (want, theirs), (got, ours) = run(False), run(True)
    for name in want:
        np.testing.assert_allclose(got[name], want[name], rtol=1e-6, atol=1e-6, err_msg=name)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
    assert sum(row.runs for row in fresh.rows if "train_step" in row.name) == 6


@pytest.mark.parametrize("optimizer", ["adam", "adagrad"])
def test_words(optimizer, fresh):
    """Rows of an embedding's gradient, a recurrent layer, whose input TensorFlow would put into the program, and class_weight."""
    r = np.random.default_rng(0)
    x, y = r.integers(0, 30, (22, 6)), r.integers(0, 4, 22)

    def run(attached):
        tf_keras.utils.set_random_seed(1)
        layers = tf_keras.layers
        model = tf_keras.Sequential([layers.Embedding(30, 8), layers.GRU(6), layers.Dense(4)])
        model.compile(optimizer, tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=True)
        if attached:
            opentrn.tensorflow.attach(model)
        history = model.fit(x, y, batch_size=8, epochs=2, verbose=0, class_weight={0: 1.0, 1: 2.0, 2: 0.5, 3: 1.0}).history
        return history["loss"], model.get_weights()

    (want, theirs), (got, ours) = run(False), run(True)
    np.testing.assert_allclose(got, want, rtol=1e-6)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=5e-6)
    assert [row.runs for row in fresh.rows] == [4, 2]
