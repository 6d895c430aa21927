# SPDX-License-Identifier: Apache-2.0
"""Keras models on `fit`: losses, weights and predictions beside those of TensorFlow's own XLA."""

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")
import keras
from keras import layers

import opentrn
import opentrn.tensorflow

N, BATCH = 22, 8  # the last batch is a partial one


def images():
    r = np.random.default_rng(0)
    return r.normal(size=(N, 8, 8, 3)).astype("f"), r.integers(0, 4, N)


def rows():
    r = np.random.default_rng(0)
    return r.normal(size=(N, 12)).astype("f"), r.integers(0, 4, N)


def words():
    r = np.random.default_rng(0)
    return r.integers(0, 30, (N, 6)), r.integers(0, 4, N)


def signals():
    r = np.random.default_rng(0)
    return r.normal(size=(N, 6, 5)).astype("f"), r.integers(0, 4, N)


def classify(model, optimizer="adam"):
    model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"], jit_compile=True)
    return model


def mlp():
    return classify(keras.Sequential([layers.Dense(16, activation="gelu"), layers.Dropout(0.2), layers.Dense(4)])), rows()


def cnn():
    net = [
        layers.Conv2D(6, 3, padding="same"),
        layers.BatchNormalization(),
        layers.ReLU(),
        layers.DepthwiseConv2D(3, strides=2),
        layers.MaxPooling2D(2),
        layers.GlobalAveragePooling2D(),
        layers.Dense(4),
    ]
    return classify(keras.Sequential(net), keras.optimizers.SGD(0.05, momentum=0.9)), images()


def attention():
    x = i = keras.Input((6,), dtype="int64")
    x = layers.Embedding(30, 8)(x)
    x = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, 4)(x, x, use_causal_mask=True))
    return classify(keras.Model(i, layers.Dense(4)(layers.GlobalAveragePooling1D()(x))), keras.optimizers.AdamW(1e-2)), words()


def lstm():
    return classify(keras.Sequential([layers.LSTM(7, return_sequences=True), layers.LSTM(5), layers.Dense(4)]), "rmsprop"), signals()


def gru():
    return classify(keras.Sequential([layers.Bidirectional(layers.GRU(6)), layers.Dense(4)])), signals()


def embedding():
    net = [layers.Embedding(30, 8), layers.Flatten(), layers.Dense(4, kernel_regularizer="l2")]
    return classify(keras.Sequential(net), "adam"), words()


def residual():
    x = i = keras.Input((8, 8, 3))
    x = layers.Conv2D(6, 1)(x)
    for _ in range(2):
        y = layers.Conv2D(6, 3, padding="same", activation="relu")(x)
        x = layers.Add()([x, layers.LayerNormalization()(y)])
    return classify(keras.Model(i, layers.Dense(4)(layers.GlobalMaxPooling2D()(x))), keras.optimizers.Lion(1e-3)), images()


def autoencoder():
    net = [
        layers.Conv2D(4, 3, strides=2, padding="same", activation="elu"),
        layers.Conv2DTranspose(4, 3, strides=2, padding="same", activation="elu"),
        layers.UpSampling2D(1),
        layers.Conv2D(3, 3, padding="same"),
    ]
    model = keras.Sequential(net)
    model.compile(keras.optimizers.Nadam(1e-2), "mse", metrics=["mae"], jit_compile=True)
    x, _ = images()
    return model, (x, x)


def two_inputs():
    a, b = keras.Input((12,), name="a"), keras.Input((6, 5), name="b")
    x = layers.Concatenate()([layers.Dense(5, activation="tanh")(a), layers.Conv1D(5, 3)(b)[:, 0]])
    model = keras.Model({"a": a, "b": b}, [layers.Dense(4, name="k")(x), layers.Dense(1, name="v")(x)])
    loss = {"k": keras.losses.SparseCategoricalCrossentropy(from_logits=True), "v": "huber"}
    model.compile("adam", loss, loss_weights={"k": 1.0, "v": 0.5}, jit_compile=True)
    (first, y), (second, _) = rows(), signals()
    return model, ({"a": first, "b": second}, {"k": y, "v": first[:, :1]})


class Clipped(keras.Model):
    """A train_step of its own."""

    def __init__(self):
        super().__init__()
        self.one, self.two = layers.Dense(9, activation="silu"), layers.Dense(4)
        self.tracker = keras.metrics.Mean("loss")

    def call(self, x, training=False):
        return self.two(self.one(x))

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(keras.losses.sparse_categorical_crossentropy(y, self(x, training=True), from_logits=True))
        gradients = tape.gradient(loss, self.trainable_variables)
        gradients, _ = tf.clip_by_global_norm(gradients, 0.5)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        self.tracker.update_state(loss)
        return {"loss": self.tracker.result()}


def custom_step():
    model = Clipped()
    model.compile("adam", jit_compile=True)
    return model, rows()


def adagrad():
    net = [layers.Embedding(30, 8), layers.Flatten(), layers.Dense(4)]
    return classify(keras.Sequential(net), "adagrad"), words()


def masked():
    """Words of different lengths: what is behind a sentence's end does not count."""
    net = [layers.Embedding(30, 6, mask_zero=True), layers.Bidirectional(layers.LSTM(5, return_sequences=True), merge_mode="sum"), layers.GRU(4), layers.Dense(4)]
    x, y = words()
    return classify(keras.Sequential(net), "nadam"), (np.where(np.arange(6) < 2 + np.arange(N)[:, None] % 5, x, 0), y)


def frames():
    net = [layers.ConvLSTM2D(3, 3, padding="same"), layers.GroupNormalization(3), layers.Conv2DTranspose(2, 3, strides=2), layers.Flatten(), layers.Dense(4)]
    r = np.random.default_rng(0)
    return classify(keras.Sequential(net), keras.optimizers.Lion(1e-3)), (r.normal(size=(N, 3, 6, 6, 2)).astype("f"), r.integers(0, 4, N))


@keras.saving.register_keras_serializable()
class Noisy(layers.Layer):
    """Another layer in training than else, with a state and a loss of its own."""

    def __init__(self, units):
        super().__init__()
        self.units, self.draws = units, keras.random.SeedGenerator(7)

    def build(self, shape):
        self.w = self.add_weight(shape=(shape[-1], self.units), initializer="he_normal")
        self.calls = self.add_weight(shape=(), initializer="zeros", trainable=False)

    def call(self, x, training=None):
        if training:
            x = x + 0.1 * keras.random.normal(keras.ops.shape(x), seed=self.draws)
            self.calls.assign_add(1.0)
        self.add_loss(1e-3 * keras.ops.sum(keras.ops.square(self.w)))
        return keras.ops.matmul(x, self.w)


def noisy():
    return classify(keras.Sequential([Noisy(8), layers.PReLU(), layers.GaussianDropout(0.1), Noisy(4)]), "adamax"), rows()


MODELS = [adagrad, mlp, cnn, attention, lstm, gru, embedding, residual, autoencoder, two_inputs, custom_step, masked, frames, noisy]


def fitted(make, attached, **options):
    keras.utils.set_random_seed(1)
    model, (x, y) = make()
    if attached:
        opentrn.tensorflow.attach(model)
    history = model.fit(x, y, batch_size=BATCH, epochs=2, verbose=0, shuffle=True, **options)
    return model, history.history, x


@pytest.mark.parametrize("make", MODELS, ids=lambda f: f.__name__)
def test_fit(make, fresh):
    theirs, want, x = fitted(make, False)
    ours, got, _ = fitted(make, True)
    assert got.keys() == want.keys()
    for name, values in want.items():
        # Keras weighs the batches of an output's own loss by their static size, which TensorFlow's trace does not have
        if make is not two_inputs or name == "loss":
            np.testing.assert_allclose(got[name], values, rtol=1e-6, atol=1e-6, err_msg=name)
    for a, b in zip(ours.weights, theirs.weights, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=2e-5, atol=5e-6, err_msg=a.path)
    assert [row.runs for row in fresh.rows] == [4, 2]  # whole batches and the partial one
    for a, b in zip(
        tf.nest.flatten(ours.predict(x, batch_size=BATCH, verbose=0)), tf.nest.flatten(theirs.predict(x, batch_size=BATCH, verbose=0)), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=5e-6)
    assert not fresh.fallbacks


def deep_attention():
    x = i = keras.Input((12,), dtype="int64")
    x = layers.Embedding(40, 16)(x)
    for _ in range(2):
        x = layers.LayerNormalization()(x + layers.MultiHeadAttention(4, 4)(x, x))
        x = layers.LayerNormalization()(x + layers.Dense(16)(layers.Dense(32, "gelu")(x)))
    return keras.Model(i, layers.Dense(4)(layers.GlobalAveragePooling1D()(x)))


def test_gradients_beside_float64():
    """A transformer's gradients are as near to the exact ones as TensorFlow's. (That of a key's bias is zero: what rounding leaves of it Adam
    makes steps of full length of, so weights are no measure there.)"""
    r = np.random.default_rng(0)
    x, y = tf.constant(r.integers(0, 40, (16, 12))), tf.constant(r.integers(0, 4, 16))

    def step(model):
        def gradients(x, y):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(keras.losses.sparse_categorical_crossentropy(y, model(x, training=True), from_logits=True))
            return [tf.convert_to_tensor(g) for g in tape.gradient(loss, model.trainable_variables)]

        return gradients

    single = deep_attention()
    keras.config.set_dtype_policy("float64")
    try:
        double = deep_attention()
        double.set_weights([w.astype("f8") for w in single.get_weights()])
        exact = [g.numpy() for g in step(double)(x, y)]
    finally:
        keras.config.set_dtype_policy("float32")
    ours, theirs = opentrn.tensorflow.function(step(single))(x, y), tf.function(step(single), jit_compile=True)(x, y)
    largest = max(np.abs(g).max() for g in exact)
    for v, got, want, g in zip(single.trainable_variables, ours, theirs, exact, strict=True):
        errors = [np.abs(a.numpy() - g).max() for a in (got, want)]
        assert errors[0] <= 3 * errors[1] + 1e-7 * largest, (v.path, errors)
        assert ("key/bias" in v.path) == (np.abs(g).max() < 1e-12 * largest), v.path


def test_mixed_precision(fresh):
    """bf16 rounds at other places than TensorFlow's XLA, which keeps fused parts in f32."""
    keras.mixed_precision.set_global_policy("mixed_bfloat16")
    try:
        for make in (mlp, cnn, attention):
            _, want, _ = fitted(make, False)
            _, got, _ = fitted(make, True)
            np.testing.assert_allclose(got["loss"], want["loss"], rtol=2e-2)
    finally:
        keras.mixed_precision.set_global_policy("float32")
    assert any("bf16" in row.name or row.runs for row in fresh.rows)


def test_what_fit_has_around_a_step(tmp_path, fresh):
    def run(attached):
        keras.utils.set_random_seed(1)
        model, (x, y) = mlp()
        if attached:
            opentrn.tensorflow.attach(model)
        calls = [
            keras.callbacks.EarlyStopping("loss", patience=0, min_delta=10.0),
            keras.callbacks.LearningRateScheduler(lambda epoch: 0.01 / (epoch + 1)),
            keras.callbacks.ModelCheckpoint(str(tmp_path / f"{attached}.keras")),
        ]
        h = model.fit(x, y, batch_size=BATCH, epochs=5, verbose=0, validation_split=0.3, callbacks=calls, sample_weight=np.linspace(0.5, 1, N))
        return model, h.history, model.evaluate(x, y, batch_size=BATCH, verbose=0), x, y

    theirs, want, metrics, x, y = run(False)
    ours, got, ours_metrics, _, _ = run(True)
    assert len(got["loss"]) == len(want["loss"]) == 2
    for name in want:
        np.testing.assert_allclose(got[name], want[name], rtol=1e-6, atol=1e-6, err_msg=name)
    np.testing.assert_allclose(ours_metrics, metrics, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(ours.train_on_batch(x, y), theirs.train_on_batch(x, y), rtol=1e-6)
    np.testing.assert_allclose(ours.test_on_batch(x, y), theirs.test_on_batch(x, y), rtol=1e-5)
    np.testing.assert_allclose(ours.predict_on_batch(x), theirs.predict_on_batch(x), rtol=1e-4, atol=1e-5)
    ours.save(tmp_path / "m.keras")
    again = keras.saving.load_model(tmp_path / "m.keras")
    np.testing.assert_array_equal(again.get_weights()[0], ours.get_weights()[0])


def test_steps_per_execution(fresh):
    def run(attached):
        keras.utils.set_random_seed(1)
        model, (x, y) = mlp()
        model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), steps_per_execution=2, jit_compile=True)
        if attached:
            opentrn.tensorflow.attach(model)
        return model.fit(x, y, batch_size=BATCH, epochs=2, verbose=0).history["loss"], model.predict(x, batch_size=BATCH, verbose=0)

    (want, theirs), (got, ours) = run(False), run(True)
    np.testing.assert_allclose(got, want, rtol=1e-6)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


def test_profile_and_report(tmp_path, fresh):
    model, (x, y) = mlp()
    opentrn.tensorflow.attach(model)
    with opentrn.profile("trn2") as p:
        model.fit(x, y, batch_size=BATCH, verbose=0)
    assert "Sequential.train_step(8x12xfloat32" in str(p) and p.total_us > 0
    assert "2 device programs" in opentrn.tensorflow.explain()
    assert opentrn.report(fresh.rows[0].executable.artifact(), "trn1")["total_us"] > 0


def test_wrong_models():
    with pytest.raises(TypeError, match="a Keras model on the TensorFlow backend"):
        opentrn.tensorflow.attach(object())
    model, (x, y) = mlp()
    model.compile("adam", "mse", run_eagerly=True)
    opentrn.tensorflow.attach(model)
    with pytest.raises(ValueError, match="run_eagerly"):
        model.fit(x, y, verbose=0)
    opentrn.tensorflow.detach(model)
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(x, y, verbose=0)
