# SPDX-License-Identifier: Apache-2.0
"""A small vision transformer in Keras 3, on the JAX backend and opentrn's device:
python examples/keras/vit.py

Images are noise with a bright square; the class is the quarter it lies in. `model.fit` with
callbacks, mixed precision, saving and loading, as in any Keras program; the two variables below are
all it needs. Ends with what the training steps would cost on the chip.
"""

import os

os.environ.setdefault("KERAS_BACKEND", "jax")
os.environ.setdefault("JAX_PLATFORMS", "opentrn,cpu")

import argparse
import pathlib
import sys
import tempfile

import keras
import numpy as np
from keras import layers

import opentrn

SIZE, PATCH, WIDTH, HEADS, DEPTH, BATCH = 16, 4, 32, 4, 2, 64
GOAL = 0.9  # accuracy; a guess has 0.25


def images(count, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, SIZE, SIZE, 1)).astype("float32")
    y = rng.integers(0, 4, count)
    half = SIZE // 2
    for i, quarter in enumerate(y):
        row, col = (
            rng.integers(0, half - 3, 2) + [quarter // 2 * half, quarter % 2 * half]
        ).tolist()
        x[i, row : row + 4, col : col + 4] += 2
    return x, y


@keras.saving.register_keras_serializable()
class Places(layers.Layer):
    """Adds a learned vector per place."""

    def build(self, shape):
        self.table = self.add_weight(shape=shape[1:], initializer="random_normal")

    def call(self, x):
        return x + keras.ops.cast(self.table, x.dtype)


def vit():
    image = layers.Input((SIZE, SIZE, 1))
    x = layers.Conv2D(WIDTH, PATCH, PATCH)(image)
    x = Places()(layers.Reshape((-1, WIDTH))(x))
    for _ in range(DEPTH):
        h = layers.LayerNormalization()(x)
        x = layers.Add()([x, layers.MultiHeadAttention(HEADS, WIDTH // HEADS)(h, h)])
        h = layers.Dense(2 * WIDTH, activation="gelu")(layers.LayerNormalization()(x))
        x = layers.Add()([x, layers.Dense(WIDTH)(h)])
    x = layers.GlobalAveragePooling1D()(layers.LayerNormalization()(x))
    return keras.Model(image, layers.Dense(4, dtype="float32")(x))


class Progress(keras.callbacks.Callback):
    """Tells opentrn's report about every step."""

    def __init__(self, run):
        super().__init__()
        self.run = run

    def on_train_batch_end(self, batch, logs=None):
        self.run.step(logs["loss"])


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--samples", type=int, default=2048)
    options = parser.parse_args(arguments)
    keras.utils.set_random_seed(0)
    keras.mixed_precision.set_global_policy("mixed_bfloat16")
    model = vit()
    model.compile(
        optimizer=keras.optimizers.AdamW(3e-3),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    train, test = images(options.samples, 1), images(256, 2)
    steps = options.epochs * -(-options.samples // BATCH)
    with tempfile.TemporaryDirectory() as folder:
        best = pathlib.Path(folder) / "best.keras"
        with opentrn.training("ViT", steps, samples=BATCH) as run:
            callbacks = [
                keras.callbacks.ModelCheckpoint(best, save_best_only=True, monitor="val_accuracy"),
                keras.callbacks.ReduceLROnPlateau(patience=2),
                Progress(run),
            ]
            model.fit(
                *train,
                batch_size=BATCH,
                epochs=options.epochs,
                validation_data=test,
                callbacks=callbacks,
                verbose=0,
            )
        loaded = keras.saving.load_model(best)
    loss, accuracy = loaded.evaluate(*test, verbose=0)
    print(f"best model, loaded again: loss {loss:.4f}, accuracy {accuracy:.3f}")
    return accuracy


if __name__ == "__main__":
    sys.exit(main() < GOAL)
