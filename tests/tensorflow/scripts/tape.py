# SPDX-License-Identifier: Apache-2.0
"""A loop of one's own: tf.data, tf.function, GradientTape, a Keras optimizer."""

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(3)
r = np.random.default_rng(3)
x, y = r.normal(size=(24, 10)).astype("float32"), r.normal(size=(24, 1)).astype("float32")
data = tf.data.Dataset.from_tensor_slices((x, y)).batch(8)
model = keras.Sequential([keras.layers.Dense(16, activation="tanh"), keras.layers.Dense(1)])
model.build((None, 10))
model.set_weights([0.3 * r.normal(size=w.shape) for w in model.get_weights()])  # equal on every device
optimizer = keras.optimizers.SGD(0.05, momentum=0.9)


@tf.function
def step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
    variables = model.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    return loss


for _ in range(2):
    for a, b in data:
        loss = step(a, b)
        print("loss", float(loss))
print(loss.device)
