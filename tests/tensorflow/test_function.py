# SPDX-License-Identifier: Apache-2.0
"""@opentrn.tensorflow.function: operators, GradientTape loops, what may stand around a function, errors."""

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

import opentrn
import opentrn.tensorflow as ot

R = np.random.default_rng(0)
A, B = R.normal(size=(6, 5)).astype("f"), R.normal(size=(6, 5)).astype("f")
S = (A @ A.T + 6 * np.eye(6)).astype("f")
D = 0.1 * S
I = R.integers(0, 6, 7).astype("i4")
X = R.normal(size=(2, 9, 9, 4)).astype("f")
K = R.normal(size=(3, 3, 4, 6)).astype("f")
C = (A + 1j * B).astype("c8")

FAMILIES = {
    "arithmetic": lambda: (A + B, A - B * tf.constant(2.0), tf.divide(A, B), tf.math.floormod(A, B), tf.math.divide_no_nan(A, B * 0)),
    "functions": lambda: (tf.exp(A), tf.sin(A), tf.tanh(A), tf.sqrt(tf.abs(A)), tf.math.rsqrt(tf.abs(A)), tf.math.log1p(tf.abs(A)), tf.math.expm1(A)),
    "erf": lambda: (tf.math.erf(A), tf.math.erfc(A), tf.math.erfinv(tf.tanh(A))),
    "gamma": lambda: (tf.math.lgamma(tf.abs(A) + 0.5), tf.math.digamma(tf.abs(A) + 0.5)),
    "activations": lambda: (tf.nn.relu(A), tf.nn.gelu(A), tf.nn.softplus(A), tf.nn.silu(A), tf.nn.elu(A), tf.nn.leaky_relu(A)),
    "softmax": lambda: (tf.nn.softmax(A), tf.nn.log_softmax(A), tf.reduce_logsumexp(A, 1)),
    "cross entropy": lambda: (
        tf.nn.sparse_softmax_cross_entropy_with_logits(I[:6] % 5, A),
        tf.nn.sigmoid_cross_entropy_with_logits(tf.cast(B > 0, tf.float32), A),
    ),
    "compare": lambda: (A < B, tf.where(A > B, A, B), tf.logical_and(A > 0, B > 0), tf.clip_by_value(A, -0.5, 0.5)),
    "sums": lambda: (tf.reduce_sum(A, 0), tf.reduce_mean(A), tf.reduce_max(A, 1), tf.reduce_prod(A, 1), tf.reduce_any(A > 0), tf.math.reduce_std(A)),
    "cumulative": lambda: (tf.cumsum(A, 1), tf.cumsum(A, 0, exclusive=True, reverse=True), tf.math.cumprod(A, 1)),
    "argmax": lambda: (tf.argmax(A, 1), tf.argmin(A, 0)),
    "top_k": lambda: tf.math.top_k(A, 3),
    "sort": lambda: (tf.sort(A, 1), tf.argsort(A, 0)),
    "matmul": lambda: (tf.matmul(A, B, transpose_b=True), tf.linalg.matvec(S, A[:, 0]), tf.tensordot(A, B, [[0], [0]])),
    "einsum": lambda: tf.einsum("nhwc,nhwd->ncd", X, X),
    "linalg": lambda: (tf.linalg.cholesky(S), tf.linalg.triangular_solve(S, A), tf.linalg.band_part(S, 1, 0), tf.linalg.trace(S)),
    "solve": lambda: (tf.linalg.cholesky_solve(tf.linalg.cholesky(S), A), tf.linalg.solve(S, A), tf.linalg.inv(S), tf.linalg.qr(A)),
    "fft": lambda: (tf.signal.fft(C), tf.signal.rfft(A), tf.signal.irfft(tf.signal.rfft(S))),
    "complex": lambda: (C * C, tf.math.conj(C), tf.math.real(C), tf.abs(C)),
    "convolution": lambda: (tf.nn.conv2d(X, K, 2, "SAME"), tf.nn.depthwise_conv2d(X, K[..., :1], [1, 1, 1, 1], "VALID")),
    "transposed convolution": lambda: tf.nn.conv2d_transpose(X, tf.transpose(K, [0, 1, 3, 2]), [2, 18, 18, 6], 2),
    "pooling": lambda: (tf.nn.max_pool2d(X, 3, 2, "SAME"), tf.nn.avg_pool2d(X, 3, 2, "SAME")),
    "normalisation": lambda: (tf.nn.moments(X, [0, 1, 2]), tf.nn.l2_normalize(A, 1), tf.nn.local_response_normalization(X)),
    "gather": lambda: (tf.gather(A, I), tf.gather_nd(A, [[0, 1], [2, 3]]), tf.gather(A, I[:3] % 5, axis=1)),
    "scatter": lambda: (tf.scatter_nd(I[:, None], tf.gather(A, I), [6, 5]), tf.tensor_scatter_nd_update(A, [[1], [4]], B[:2])),
    "segments": lambda: (tf.math.unsorted_segment_sum(tf.gather(A, I), I, 6), tf.math.unsorted_segment_max(tf.gather(A, I), I, 6)),
    "one hot": lambda: (tf.one_hot(I, 6), tf.eye(4), tf.range(5), tf.fill([2, 3], 1.5)),
    "shapes": lambda: (tf.reshape(A, [5, 6]), tf.transpose(X, [0, 3, 1, 2]), tf.tile(A, [2, 1]), tf.expand_dims(A, 1), tf.broadcast_to(A[:1], [4, 5])),
    "slices": lambda: (A[1:5:2, ::-1], tf.concat([A, B], 1), tf.stack([A, B]), tf.split(X, 2, 3), tf.pad(A, [[1, 2], [0, 1]]), tf.roll(A, 1, 0)),
    "mirror": lambda: (tf.pad(A, [[1, 2], [2, 1]], "REFLECT"), tf.reverse(A, [0]), tf.image.flip_left_right(X)),
    "resize": lambda: (tf.image.resize(X, [6, 5]), tf.image.resize(X, [18, 18], "nearest")),
    "casts": lambda: (tf.cast(A, tf.bfloat16) * 2, tf.cast(A * 9, tf.int32), tf.bitcast(A, tf.int32), tf.round(A)),
    "bits": lambda: (tf.bitwise.bitwise_and(I, 3), tf.bitwise.left_shift(I, 2), tf.bitwise.invert(I)),
    "random": lambda: (tf.random.stateless_uniform([3, 4], [1, 2]), tf.random.stateless_normal([3, 4], [1, 2])),
    "loops": lambda: tf.while_loop(lambda i, a: i < 5, lambda i, a: (i + 1, tf.sin(a) * 2), [0, A]),
    "branches": lambda: (tf.cond(tf.reduce_sum(A) > 0, lambda: A * 2, lambda: B), tf.switch_case(I[0] % 2, [lambda: A, lambda: B])),
    "scan": lambda: tf.scan(lambda a, x: a * 0.5 + x, A),
}


@pytest.mark.parametrize("group", range(4))
def test_families(group):
    """Operators beside TensorFlow's own XLA: one program holds a quarter of them, because tracing and compiling take the time."""
    names = list(FAMILIES)[group::4]
    consts = {k: v for k, v in globals().items() if k in "A B S I X K C".split()}

    def all_of(tensors):
        globals().update(tensors)  # the lambdas read them as arguments of the function, not as constants
        try:
            return {name: FAMILIES[name]() for name in names}
        finally:
            globals().update(consts)

    tensors = {k: tf.constant(v) for k, v in consts.items()}
    want = tf.function(all_of, jit_compile=True, autograph=False)(tensors)
    got = ot.function(all_of, autograph=False)(tensors)
    for name in names:
        for a, b in zip(tf.nest.flatten(got[name]), tf.nest.flatten(want[name]), strict=True):
            assert a.dtype == b.dtype and a.shape == b.shape, name
            exact = a.dtype.is_integer or a.dtype == tf.bool
            np.testing.assert_allclose(np.asarray(a).astype("c8" if a.dtype.is_complex else "f8"), np.asarray(b).astype("c8" if b.dtype.is_complex else "f8"),
                                       rtol=0 if exact else 2e-5, atol=0 if exact else 2e-5, err_msg=name)


def test_gradient_tape(fresh):
    """A loop of one's own: variables are updated, old values stay, the line reaches the program's places."""

    def run(decorate):
        w, m = tf.Variable(A), tf.Variable(tf.zeros_like(A))

        @decorate
        def step(x, rate=0.1):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((tf.tanh(x @ w) - 1.0) ** 2)
            g = tape.gradient(loss, w)
            m.assign(0.9 * m + g)
            w.assign_sub(rate * m)
            return loss

        before = w.read_value()
        losses = [float(step(tf.constant(D))) for _ in range(5)] + [float(step(D, rate=0.2))]
        np.testing.assert_array_equal(before, A)
        return losses, w.numpy(), m.numpy(), step

    want, got = run(lambda f: tf.function(f, jit_compile=True)), run(ot.function)
    for a, b in zip(got[:3], want[:3], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    assert [row.runs for row in fresh.rows] == [5, 1]
    program = next(iter(got[3].programs.values()))
    assert "test_function.py" in program.text and "gradient_tape" in program.text
    with opentrn.profile("trn1") as p:
        got[3](D)
    assert p.total_us > 0 and "step(6x6xfloat32)" in str(p)


def test_arguments_and_results():
    v, c = tf.Variable(tf.ones(5)), tf.constant(np.arange(5, dtype="f"))

    class Model:
        @ot.function
        def scaled(self, x, n):
            return x * n

    def check(f, *args, **kwargs):
        got, want = ot.function(f)(*args, **kwargs), tf.function(f, jit_compile=True)(*args, **kwargs)
        tf.nest.assert_same_structure(got, want)
        for a, b in zip(tf.nest.flatten(got), tf.nest.flatten(want), strict=True):
            assert (a is None) == (b is None)
            if a is not None:
                np.testing.assert_allclose(a, b, rtol=1e-6)

    check(lambda x: {"a": (x, None), "b": [x + v, c, tf.constant(3.0)]}, A)
    check(lambda x, y=None, *, z: x - z if y is None else y, A, z=B)
    check(lambda w, x: w * x, v, A)
    np.testing.assert_array_equal(Model().scaled(A, 3), A * 3)
    assert ot.function(lambda x: x + 1)(tf.constant(2.0)).shape == ()


def test_errors(fresh):
    with pytest.raises(ot.Unsupported, match=r"test_function.py:\d+: .*AsString"):
        ot.function(lambda x: tf.strings.as_string(x))(A)
    with pytest.raises(ot.Unsupported, match="pass Python integers"):
        ot.function(lambda x, n: tf.reshape(x, [n, -1]))(A, tf.constant(2))
    with pytest.raises(ot.Unsupported, match=r"test_function.py.*does not follow from the shapes[^\n]*\n  hint: .*tf.where\(mask, x, 0\)"):
        ot.function(lambda x: tf.boolean_mask(x, x > 0))(A)
    with pytest.warns(UserWarning, match="runs on TensorFlow's CPU"):
        np.testing.assert_array_equal(ot.function(lambda x: tf.boolean_mask(x, x > 0), fallback=True)(A), A[A > 0])
    with pytest.warns(UserWarning, match="runs on TensorFlow's CPU"):
        text = ot.function(lambda x: tf.strings.as_string(x), fallback=True)(A)
    assert text.dtype == tf.string and "2 functions that TensorFlow ran on the CPU" in ot.explain()
