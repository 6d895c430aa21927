# SPDX-License-Identifier: Apache-2.0
"""A Keras script: a CNN, fit and evaluate."""

import keras
import numpy as np

keras.utils.set_random_seed(3)
r = np.random.default_rng(3)
x, y = r.normal(size=(24, 8, 8, 3)).astype("float32"), r.integers(0, 4, 24)
layers = keras.layers
model = keras.Sequential([layers.Conv2D(6, 3, activation="relu"), layers.MaxPooling2D(2), layers.Flatten(), layers.Dense(4)])
model.compile(keras.optimizers.Adam(1e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
for loss in model.fit(x, y, batch_size=8, epochs=3, verbose=0).history["loss"]:
    print("loss", loss)
print("loss", model.evaluate(x, y, verbose=0))
print(model.weights[0].value.device)
