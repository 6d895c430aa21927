# SPDX-License-Identifier: Apache-2.0
"""A small image classifier in Keras on TensorFlow, trained on the device: pip install opentrn[tensorflow].

The images are stripes of four directions in noise. Nothing but attach() knows of the device; the callback feeds
opentrn.training, whose report tells what the steps would cost on each chip.

    .venv-tf/bin/python examples/tensorflow/cnn.py [--epochs 4]      # ./dev test-tf makes .venv-tf
"""

import argparse
import os
import sys

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
from keras import layers

import opentrn
import opentrn.tensorflow

BATCH, IMAGES, SIZE = 64, 512, 16


def stripes(seed):
    r = np.random.default_rng(seed)
    label = r.integers(0, 4, IMAGES)
    angle = label[:, None, None] * (np.pi / 4)
    y, x = np.mgrid[:SIZE, :SIZE]
    phase = r.uniform(0, 2 * np.pi, (IMAGES, 1, 1))
    images = np.sin((np.cos(angle) * x + np.sin(angle) * y) * 1.2 + phase) + r.normal(size=(IMAGES, SIZE, SIZE))
    return images[..., None].astype("float32"), label


def network():
    net = [layers.Conv2D(16, 3, padding="same"), layers.BatchNormalization(), layers.ReLU(), layers.MaxPooling2D(2)]
    net += [layers.Conv2D(32, 3, padding="same", activation="relu"), layers.GlobalAveragePooling2D(), layers.Dropout(0.1), layers.Dense(4)]
    return keras.Sequential(net)


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--epochs", type=int, default=4)
    epochs = args.parse_args().epochs
    keras.utils.set_random_seed(0)
    model = network()
    model.compile(keras.optimizers.Adam(1e-2), keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    opentrn.tensorflow.attach(model)
    x, y = stripes(0)
    with opentrn.training("stripes", steps=epochs * (IMAGES // BATCH), samples=BATCH, goal=0.9) as run:
        tell = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: run.step(logs["loss"]))
        model.fit(x, y, batch_size=BATCH, epochs=epochs, verbose=0, callbacks=[tell])
    print(opentrn.tensorflow.explain())
    print("accuracy on new images:", model.evaluate(*stripes(1), verbose=0)[1])
    return 0 if run.reached else 1


if __name__ == "__main__":
    sys.exit(main())
