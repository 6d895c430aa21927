# SPDX-License-Identifier: Apache-2.0
"""What test_keras.py runs in a process of its own: `keras_program.py FOLDER`. Every function is one
check of Keras on the device, against the CPU where numbers are compared."""

import os
import pathlib
import sys

os.environ["KERAS_BACKEND"] = "jax"
os.environ["JAX_PLATFORMS"] = "opentrn,cpu"

import jax
import keras
import numpy as np

import opentrn

FOLDER = pathlib.Path(sys.argv[1])
DEVICE, CPU = jax.devices()[0], jax.devices("cpu")[0]
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(64, 8)).astype("float32"), RNG.integers(0, 4, 64)


def network():
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [
            keras.layers.Dense(16, activation="relu"),
            keras.layers.BatchNormalization(),
            keras.layers.Dense(4, dtype="float32"),
        ]
    )
    model.compile(
        optimizer=keras.optimizers.Adam(1e-2),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    return model


def fit(model, **options):
    options = {"epochs": 3, "batch_size": 16, "shuffle": False, "verbose": 0, **options}
    return model.fit(X, Y, **options).history


def losses(device, **options):
    with jax.default_device(device):
        return fit(network(), **options)["loss"]


def same_losses():
    np.testing.assert_allclose(losses(DEVICE), losses(CPU), rtol=1e-5)


def callbacks():
    """A schedule, an early end, a log, a checkpoint and a function of the user's."""
    seen = []
    rates = keras.callbacks.LearningRateScheduler(lambda epoch, rate: 1e-2 * 0.5**epoch)
    stop = keras.callbacks.EarlyStopping(monitor="loss", min_delta=100.0, patience=2)
    path = FOLDER / "best.keras"
    best = keras.callbacks.ModelCheckpoint(path, monitor="loss", save_best_only=True)
    own = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: seen.append(logs["loss"]))
    log = keras.callbacks.CSVLogger(FOLDER / "log.csv")
    given = [rates, stop, best, own, log]
    history = fit(network(), epochs=9, callbacks=given, validation_split=0.25)
    assert len(seen) == 3 and len(history["val_loss"]) == 3  # patience ran out
    assert history["loss"] == seen
    np.testing.assert_allclose(history["learning_rate"], [1e-2, 5e-3, 2.5e-3], rtol=1e-6)
    assert len((FOLDER / "log.csv").read_text().splitlines()) == 4
    assert path.exists()


def mixed_precision():
    keras.mixed_precision.set_global_policy("mixed_bfloat16")
    try:
        model = network()
        history = fit(model, epochs=4)
        dense = model.layers[0]
        assert dense.compute_dtype == "bfloat16" and dense.kernel.dtype == "float32"
        assert history["loss"][-1] < history["loss"][0]
        np.testing.assert_allclose(history["loss"], losses(CPU, epochs=4), rtol=2e-2)
    finally:
        keras.mixed_precision.set_global_policy("float32")


def save_and_load():
    """A loaded model predicts the same and trains on as the first one would."""
    model = network()
    fit(model)
    model.save(FOLDER / "model.keras")
    loaded = keras.saving.load_model(FOLDER / "model.keras")
    np.testing.assert_array_equal(model.predict(X, verbose=0), loaded.predict(X, verbose=0))
    np.testing.assert_allclose(fit(model)["loss"], fit(loaded)["loss"], rtol=1e-6)
    model.save_weights(FOLDER / "model.weights.h5")
    other = network()
    fit(other, epochs=1)
    other.load_weights(FOLDER / "model.weights.h5")
    np.testing.assert_array_equal(model.predict(X, verbose=0), other.predict(X, verbose=0))


def profile():
    model = network()
    fit(model)
    with opentrn.profile("trn1", samples=3 * 64) as p:
        fit(model)
    assert any("train_step" in name and runs == 12 for name, runs, _ in p.rows), p.rows
    assert p.steps == 12, p  # not the runs of Keras's helpers, which are more
    text = str(p)
    assert "trn1" in text and "modelled time per step" in text and "per 1M samples" in text


def example():
    sys.path.insert(0, "examples/keras")
    import vit

    vit.main(["--epochs=2", "--samples=128"])


def main():
    assert DEVICE.platform == "opentrn"
    for check in (same_losses, callbacks, mixed_precision, save_and_load, profile, example):
        check()
        print(check.__name__, "holds", flush=True)


main()
