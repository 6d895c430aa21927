# SPDX-License-Identifier: Apache-2.0
"""The device /device:NEURON:0: eager operators, variables, tf.function with and without jit_compile, Keras, beside the CPU."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")
import keras

import opentrn
import opentrn.tensorflow
from opentrn import library_path

NEURON, CPU = "/device:NEURON:0", "/device:CPU:0"
SCRIPTS = pathlib.Path(__file__).parent / "scripts"
R = np.random.default_rng(0)
A = R.normal(size=(6, 6)).astype("f")
I = R.integers(0, 6, (4, 3))


def on(device, f, *args):
    with tf.device(device):
        return f(*args)


def test_there_and_waits_to_be_named():
    assert NEURON in opentrn.tensorflow.load()
    assert on(NEURON, tf.constant, A).device.endswith(NEURON)
    assert "CPU" in tf.constant(A).device


FAMILIES = {
    "matmul": lambda a, i: a @ a,
    "elementwise": lambda a, i: tf.tanh(a) * tf.exp(-tf.abs(a)) + tf.math.erf(a),
    "reduce": lambda a, i: (tf.reduce_sum(a, 1), tf.reduce_max(a), tf.argmax(a, 1)),
    "int32": lambda a, i: tf.range(5) * 2 + tf.constant([1, 2, 3, 4, 5]),
    "shapes": lambda a, i: tf.reshape(tf.transpose(a), tf.constant([4, 9])),
    "slices": lambda a, i: a[1:5:2, ::-1],
    "fill": lambda a, i: tf.fill([2, 3], 2.5) + tf.ones((2, 3)),
    "gather": lambda a, i: tf.gather(a, i),
    "concat": lambda a, i: tf.concat([a, a], 0),
    "cast": lambda a, i: (tf.cast(a * 9, tf.int32), tf.cast(i, tf.float64), tf.cast(a, tf.bfloat16)),
    "top_k": lambda a, i: tf.math.top_k(a, 3),
    "sort": lambda a, i: tf.sort(a, 0),
    "cumsum": lambda a, i: tf.cumsum(a, 1),
    "softmax": lambda a, i: tf.nn.softmax(a),
    "conv": lambda a, i: tf.nn.conv2d(a[None, :, :, None], tf.ones((3, 3, 1, 2)), 1, "SAME"),
    "pool": lambda a, i: tf.nn.max_pool2d(a[None, :, :, None], 2, 2, "VALID"),
    "einsum": lambda a, i: tf.einsum("ij,kj->ik", a, a),
    "where": lambda a, i: tf.where(a > 0, a, 0.0),
    "one_hot": lambda a, i: tf.one_hot(i, 6),
    "segment": lambda a, i: tf.math.unsorted_segment_sum(a, tf.constant([0, 1, 0, 2, 1, 0]), 3),
    "scatter": lambda a, i: tf.tensor_scatter_nd_add(a, tf.constant([[0], [2]]), a[:2]),
    "cholesky": lambda a, i: tf.linalg.cholesky(a @ tf.transpose(a) + 6 * tf.eye(6)),
    "stateless": lambda a, i: tf.random.stateless_uniform((3, 3), [1, 2]),
    "complex": lambda a, i: tf.signal.fft(tf.complex(a, a)),
    "resize": lambda a, i: tf.image.resize(a[None, :, :, None], (4, 4)),
    "avg_pool": lambda a, i: tf.nn.avg_pool2d(a[None, :, :, None], 3, 1, "SAME"),
    "depthwise": lambda a, i: tf.nn.depthwise_conv2d(a[None, :, :, None] * tf.ones((1, 1, 1, 2)), tf.ones((3, 3, 2, 1)), [1, 1, 1, 1], "SAME"),
    "pad": lambda a, i: tf.pad(a, [[1, 2], [0, 1]], mode="REFLECT"),
    "bitwise": lambda a, i: tf.bitwise.bitwise_xor(i, i + 1),
    "cross_entropy": lambda a, i: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=i[:, 0], logits=a[:4]),
    "gather_nd": lambda a, i: tf.gather_nd(a, i[:, :2]),
    "triangular": lambda a, i: tf.linalg.triangular_solve(a + 6 * tf.eye(6), a),
    "lgamma": lambda a, i: tf.math.lgamma(tf.abs(a) + 1),
    "cond": lambda a, i: tf.cond(tf.reduce_sum(a) > 0, lambda: a + 1, lambda: a - 1),
    "round": lambda a, i: (tf.round(a * 3), tf.math.floormod(a, 0.7), tf.sign(a)),
    "activations": lambda a, i: tf.nn.leaky_relu(tf.nn.elu(a) + tf.nn.selu(a) + tf.nn.relu6(a) + tf.nn.swish(a)),
    "qr": lambda a, i: tf.linalg.qr(a[:, :4]),
    "solve": lambda a, i: (tf.linalg.solve(a, a[:, :2]), tf.linalg.inv(a), tf.linalg.expm(a / 6)),
    "eigenvalues": lambda a, i: (tf.linalg.eigvalsh(a), tf.abs(tf.linalg.eigh(a)[1])),
    "unstack": lambda a, i: tf.stack(tf.unstack(a)[::2]),
}


@pytest.mark.parametrize("jit", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("name", FAMILIES)
def test_operators(name, jit):
    def all_of(device, jit_compile):
        with tf.device(device):
            f = tf.function(FAMILIES[name], jit_compile=True) if jit_compile else FAMILIES[name]
            return f(tf.constant(A), tf.constant(I))

    got, want = all_of(NEURON, jit), all_of(CPU, True)  # XLA on both sides
    for a, b in zip(tf.nest.flatten(got), tf.nest.flatten(want), strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape and a.device.endswith(NEURON)
        kind = "c8" if a.dtype.is_complex else "f8"
        np.testing.assert_allclose(a.numpy().astype(kind), b.numpy().astype(kind), rtol=2e-5, atol=2e-5)


def test_variables_and_gradients():
    def run(device, jit):
        with tf.device(device):
            w, n = tf.Variable(A), tf.Variable(0, dtype=tf.int64)  # int32 ones TensorFlow keeps on the host, as for every accelerator
            assert w.device.endswith(device) and n.device.endswith(device)

            def step(x):
                with tf.GradientTape() as tape:
                    loss = tf.reduce_mean((tf.tanh(x @ w) - 1.0) ** 2)
                w.assign_sub(0.1 * tape.gradient(loss, w))
                n.assign_add(1)
                return loss

            f = step if jit is None else tf.function(step, jit_compile=jit)
            return [float(f(tf.constant(A))) for _ in range(4)], w.numpy(), int(n)

    want = run(CPU, None)
    for jit in (None, False, True):
        losses, w, n = run(NEURON, jit)
        np.testing.assert_allclose(losses, want[0], rtol=1e-6)
        np.testing.assert_allclose(w, want[1], rtol=1e-5, atol=1e-6)
        assert n == 4


@pytest.mark.parametrize("jit", [False, True], ids=["eager", "jit"])
def test_stateful_draws_go_on(jit):
    for draw in (
        lambda: tf.random.normal((40,)),
        lambda: tf.random.uniform((40,), maxval=1000, dtype=tf.int32),
        lambda: tf.random.shuffle(tf.range(40.0)),
        lambda: tf.nn.dropout(tf.ones(40), 0.5),
    ):
        with tf.device(NEURON):
            f = tf.function(draw, jit_compile=True) if jit else draw
            a, b = f().numpy(), f().numpy()
        assert not np.array_equal(a, b)
    f = opentrn.tensorflow.function(lambda: tf.random.normal((40,)))
    assert not np.array_equal(f(), f())


@pytest.mark.parametrize("jit", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("optimizer", ["SGD", "Adam", "Adagrad", "RMSprop"])
def test_sparse_updates(optimizer, jit):
    def train(device):
        with tf.device(device):
            table, rule = tf.Variable(A), getattr(keras.optimizers, optimizer)(0.1)
            rule.build([table])

            def step(i):
                with tf.GradientTape() as tape:
                    loss = tf.reduce_sum(tf.gather(table, i) ** 2)
                rule.apply_gradients([(tape.gradient(loss, table), table)])

            f = tf.function(step, jit_compile=jit)
            for _ in range(2):
                f(tf.constant(I))
            return table.numpy()

    np.testing.assert_allclose(train(NEURON), train(CPU), rtol=1e-6, atol=1e-6)


B = tf.constant([1, 2, 2, 0, 1, 0])
SIZED_BY_VALUES = {
    "unique": lambda a: tf.unique(tf.round(tf.reshape(a, [-1]))),
    "unique int64": lambda a: tf.unique(B, tf.int64),
    "boolean_mask": lambda a: tf.boolean_mask(a, a[:, 0] > 0),
    "where": lambda a: tf.where(a > 0.5),
    "where of numbers": lambda a: tf.where(tf.stack([a[0], -a[0] * 0])),  # -0 is zero
    "gather": lambda a: tf.reduce_sum(tf.gather(a, tf.where(a[0] > 0)[:, 0]) ** 2),
    "dynamic_partition": lambda a: tf.dynamic_partition(a, B, 4),
    "repeat": lambda a: tf.repeat(a, B, axis=0),
    "non_max_suppression": lambda a: tf.image.non_max_suppression(tf.abs(a[:, :4]), a[:, 4], 4, 0.3),
    "tridiagonal_solve": lambda a: tf.linalg.tridiagonal_solve(a[:3] * [[1.0], [0.0], [1.0]], tf.transpose(a[3:])),
    "nothing": lambda a: (tf.where(a > 1e9), tf.unique(tf.zeros((0,)))),
}


@pytest.mark.parametrize("traced", [False, True], ids=["eager", "function"])
@pytest.mark.parametrize("name", SIZED_BY_VALUES)
def test_sizes_that_follow_from_values(name, traced):
    """Such an operator runs on the host, what follows it on the device."""
    f = SIZED_BY_VALUES[name]
    f = tf.function(f) if traced else f
    got, want = on(NEURON, f, on(NEURON, tf.constant, A)), on(CPU, f, tf.constant(A))
    for a, b in zip(tf.nest.flatten(got), tf.nest.flatten(want), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6)


def test_sizes_that_follow_from_values_are_told():
    with opentrn.profile("trn2") as p, tf.device(NEURON):
        x = tf.constant(A)
        for _ in range(2):
            tf.reduce_sum(tf.boolean_mask(x, x > 0))
    assert [(o.operator, o.runs, o.why) for o in p.outside] == [("Where", 2, "the size of its result follows from values")]
    assert "test_device.py" in p.outside[0].place


def test_pivoting_is_told():
    with opentrn.profile("trn2") as p, tf.device(NEURON):
        tf.linalg.tridiagonal_solve(tf.constant(A[:3]), tf.constant(A[3]))
    assert [(o.operator, o.runs, o.why) for o in p.outside] == [("TridiagonalSolve", 1, "XLA's kernel has no pivoting")]


TWO = ["/device:NEURON:0", "/device:NEURON:1"]


def mirrored(strategy):
    keras.utils.set_random_seed(1)
    x, y, start = np.tile(A, (4, 1)), np.arange(24) % 4, np.random.default_rng(3)
    with strategy.scope():
        model = keras.Sequential([keras.layers.Input((6,)), keras.layers.Dense(8, "relu"), keras.layers.Dense(4)])
        model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    model.set_weights([start.normal(size=w.shape) * 0.3 for w in model.get_weights()])
    history = model.fit(x, y, batch_size=8, epochs=2, shuffle=False, verbose=0).history
    return history, model.evaluate(x, y, batch_size=10, verbose=0), model.predict(x, verbose=0), model.weights[0].value


def test_mirrored_strategy():
    """Over two devices as on one: the same losses."""
    with opentrn.profile("trn2") as p:
        history, evaluated, predicted, weight = mirrored(tf.distribute.MirroredStrategy(TWO))
    wanted = mirrored(tf.distribute.OneDeviceStrategy("/device:CPU:0"))
    assert sorted(v.device[-8:] for v in weight.values) == ["NEURON:0", "NEURON:1"]
    for name, values in wanted[0].items():
        np.testing.assert_allclose(history[name], values, rtol=1e-6, err_msg=name)
    np.testing.assert_allclose(evaluated, wanted[1], rtol=1e-6)
    np.testing.assert_allclose(predicted, wanted[2], rtol=1e-5, atol=1e-6)
    assert p.steps == 6 and "MirroredStrategy over 2 devices" in str(p)


def test_batch_norm_over_replicas(tmp_path):
    """With statistics over all replicas the losses are those of one device; a saved model is the same."""

    def run(strategy, start):
        with strategy.scope():
            net = [keras.layers.Input((6,)), keras.layers.Dense(8, use_bias=False), keras.layers.BatchNormalization(synchronized=True), keras.layers.Dense(4)]
            model = keras.Sequential(net)
            model.compile(keras.optimizers.SGD(0.1, momentum=0.9), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        model.set_weights(start or model.get_weights())
        start = model.get_weights()
        x = np.tile(A, (4, 1)) + np.arange(24)[:, None] * np.float32(0.1)
        return model, start, x, model.fit(x, np.arange(24) % 4, batch_size=8, epochs=2, shuffle=False, verbose=0).history["loss"]

    _, start, _, want = run(tf.distribute.OneDeviceStrategy("/device:CPU:0"), None)
    model, _, x, got = run(tf.distribute.MirroredStrategy(TWO), start)
    np.testing.assert_allclose(got, want, rtol=1e-6)
    model.save(tmp_path / "m.keras")
    again = keras.saving.load_model(tmp_path / "m.keras")
    np.testing.assert_allclose(again.predict(x, verbose=0), model.predict(x, verbose=0), rtol=1e-5, atol=1e-6)


def test_sums_over_replicas():
    strategy = tf.distribute.MirroredStrategy(TWO)
    ranks = tf.function(lambda: strategy.run(lambda: tf.distribute.get_replica_context().all_reduce("sum", tf.cast(one_of(strategy), tf.float32) + 1)))
    assert [float(v) for v in strategy.experimental_local_results(ranks())] == [3, 3]
    assert float(strategy.reduce("mean", strategy.run(lambda: tf.cast(one_of(strategy), tf.float32)), None)) == 0.5


def one_of(strategy):
    return tf.distribute.get_replica_context().replica_id_in_sync_group


def test_a_strategy_that_names_no_devices():
    assert "CPU" in tf.distribute.MirroredStrategy().extended.worker_devices[0]
    with tf.device(NEURON):  # as where TF_PLUGGABLE_DEVICE_LIBRARY_PATH makes it the device of all
        assert all("NEURON" in d for d in tf.distribute.MirroredStrategy().extended.worker_devices)


def test_collectives_are_refused_with_a_way_out():
    sums = tf.function(lambda x: tf.raw_ops.CollectiveReduceV2(input=x, group_size=2, group_key=1, instance_key=1, ordering_token=[], merge_op="Add", final_op="Id"))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"import opentrn\.tensorflow.*ReductionToOneDevice.*from-tf-keras"):
        on(NEURON, sums, tf.constant(A))


def test_attach_names_what_trains_over_replicas():
    with tf.distribute.MirroredStrategy(TWO).scope():
        model = keras.Sequential([keras.layers.Input((6,)), keras.layers.Dense(4)])
        model.compile("sgd", "mse")
    with pytest.raises(ValueError, match="MirroredStrategy over 2 replicas; train it without attach"):
        opentrn.tensorflow.attach(model)


def rows_once(a):
    return tf.unique(a[0])[0]


def above_zero(a):
    return tf.boolean_mask(a, a > 0)


@pytest.mark.parametrize("f", [rows_once, above_zero])
def test_compiled_sizes_are_refused_by_name(f):
    told = r"(Unique|boolean_mask/Where): a dimension .* known only at run time\s+hint: a program has one size"
    with pytest.raises(tf.errors.UnimplementedError, match=rf'(?s)test_device.py", line {f.__code__.co_firstlineno + 1}, in {f.__name__}.*{told}'):
        on(NEURON, tf.function(f, jit_compile=True), tf.constant(A))


def kept_in_a_list(x):
    w = tf.constant(A)
    with tf.GradientTape() as tape:
        tape.watch(w)
        states, state = tf.TensorArray(tf.float32, size=3), x
        for i in tf.range(3):
            state = tf.tanh(state @ w)
            states = states.write(i, state)
        loss = tf.reduce_mean(states.stack() ** 2)
    return loss, tape.gradient(loss, w)


def spoken(x):
    return tf.nn.ctc_loss(tf.constant([[1, 2], [3, 3]]), tf.stack([x, -x], 1), tf.constant([2, 2]), tf.constant([6, 5]), blank_index=0)


@pytest.mark.parametrize("f, outside", [(kept_in_a_list, "TensorListSetItem"), (spoken, "While")], ids=["TensorArray", "ctc_loss"])
def test_lists_and_whole_loops(f, outside):
    """Of functions without jit_compile: they go to the CPU, what is computed with them stays; reports say so."""
    with opentrn.profile("trn2") as p:
        got = on(NEURON, tf.function(f), tf.constant(A))
    for a, b in zip(tf.nest.flatten(got), tf.nest.flatten(on(CPU, f, tf.constant(A))), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    assert outside in [o.operator for o in p.outside] and any("MatMul" in row[0] or "LogSoftmax" in row[0] for row in p.rows)


def test_copies():
    a = on(NEURON, tf.constant, A)
    assert on(CPU, tf.identity, a).device.endswith(CPU)
    np.testing.assert_array_equal(on(CPU, tf.identity, a), A)
    np.testing.assert_array_equal(on("/device:NEURON:1", tf.identity, a), A)
    v = on(NEURON, tf.Variable, A)
    v.assign(tf.constant(A + 1))  # from the CPU
    np.testing.assert_array_equal(v, A + 1)
    with pytest.raises(tf.errors.InvalidArgumentError):
        on(NEURON, lambda: tf.function(lambda x: tf.strings.as_string(x), jit_compile=True)(tf.constant(A)))


def test_keras():
    def run(device):
        keras.utils.set_random_seed(1)
        with tf.device(device):
            net = [keras.layers.Dense(16, activation="gelu"), keras.layers.Dropout(0.2), keras.layers.Dense(4)]
            model = keras.Sequential(net)
            model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"], jit_compile=True)
            x, y = R0.normal(size=(22, 12)).astype("f"), R0.integers(0, 4, 22)
            history = model.fit(x, y, batch_size=8, epochs=2, verbose=0, validation_data=(x, y)).history
            return history, model.predict(x, verbose=0), model.weights[0].value.device

    R0 = np.random.default_rng(0)
    want = run(CPU)
    R0 = np.random.default_rng(0)
    got = run(NEURON)
    assert got[2].endswith(NEURON)
    for name, values in want[0].items():
        np.testing.assert_allclose(got[0][name], values, rtol=1e-6, atol=1e-6, err_msg=name)
    np.testing.assert_allclose(got[1], want[1], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("jit", [False, True], ids=["operators", "jit"])
def test_profile_of_fit(jit, tmp_path):
    """Programs of the device with names and shapes; steps are the optimizer's, of whatever size."""
    with tf.device(NEURON):
        model = keras.Sequential([keras.layers.Dense(4)])
        model.compile("sgd", "mse", jit_compile=jit)
        model.fit(A, A[:, :4], batch_size=4, verbose=0)
        with opentrn.profile("trn2") as p:
            model.fit(A, A[:, :4], batch_size=4, epochs=2, verbose=0)
    assert p.steps == 4 and p.total_us > 0 and not p.outside
    wanted = "one_step_on_data(4x6xf32, 4x4xf32, " if jit else "MatMul(4x6xf32, 6x4xf32)"  # by the layer that had such a program first
    assert any(wanted in row[0] for row in p.rows), [row[0] for row in p.rows]
    p.report(tmp_path / "page.html")
    assert "/html" in (tmp_path / "page.html").read_text()
    assert "programs of the device /device:NEURON" in opentrn.tensorflow.explain()


def test_what_ran_outside_is_told():
    @tf.function
    def both(x):
        return tf.strings.length(tf.strings.as_string(x)), x * 2

    with tf.device(NEURON):
        x = tf.constant(A)
        both(x)
        with opentrn.profile("trn2") as p, tf.device(NEURON):
            for _ in range(3):
                both(x)
            tf.strings.as_string(x)
            with tf.device(CPU):
                tf.strings.as_string(A)  # asked for
    found = {(o.operator, o.runs, pathlib.Path(o.place.split(":")[0]).name) for o in p.outside}
    assert found == {("AsString", 3, "test_device.py"), ("StringLength", 3, "test_device.py"), ("AsString", 1, "test_device.py")}
    assert "outside of device programs: 7 runs of 2 operators" in str(p)


@pytest.mark.parametrize("script", sorted(SCRIPTS.glob("*.py")), ids=lambda p: p.stem)
def test_unedited(script):
    """Scripts that say nothing of opentrn, with TensorFlow's own variable for libraries of devices."""

    def losses(**more):
        env = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **more}
        done = subprocess.run([sys.executable, "-W", "ignore", script], env=env, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stdout + done.stderr
        assert ("NEURON" in done.stdout) == bool(more), done.stdout
        return [float(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("loss ")]

    got = losses(TF_PLUGGABLE_DEVICE_LIBRARY_PATH=library_path())
    want = losses()
    assert len(want) >= 3
    np.testing.assert_allclose(got, want, rtol=1e-6)
