# SPDX-License-Identifier: Apache-2.0
"""The demo's program: training against JAX's CPU, and its step as files for `otrn`."""

import subprocess
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import digits_mlp
import export_common
from conftest import OTRN
from opentrn._training import Training


def test_losses_follow_the_cpu(cpu, device):
    got = digits_mlp.train(device, 40)
    want = digits_mlp.train(cpu, 40)
    np.testing.assert_allclose(got[0], want[0], rtol=digits_mlp.TOLERANCE)
    assert got[0][-1] < got[0][0] / 2


def test_the_same_bits_again(device):
    one, two = (digits_mlp.train(device, 5)[0] for _ in range(2))
    assert one.tobytes() == two.tobytes()


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mlp")
    (images, labels), _ = digits_mlp.data()
    params = digits_mlp.init()
    args = params, digits_mlp.optimizer.init(params), *next(digits_mlp.batches(images, labels, 1))
    args = jax.tree.map(np.asarray, args)
    jitted = jax.jit(digits_mlp.step, keep_unused=True)
    export_common.save(jitted.lower(*args), args, folder, "mlp")
    return folder, [np.asarray(r) for r in jax.tree.leaves(jitted(*args))]


def otrn(command, exported, program, out):
    if not OTRN.exists():
        pytest.skip("build/otrn is not there")
    inputs = [f"--input={p}" for p in sorted(exported.glob("mlp_in_*.npy"))]
    ran = subprocess.run(
        [OTRN, command, exported / program, *inputs, f"--output={out}"],
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    results = sorted(out.glob("result_*.npy"), key=lambda p: int(p.stem.split("_")[1]))
    return [np.load(p) for p in results]


@pytest.mark.parametrize("program", ["mlp.mlir", "mlp.mlirbc"])
def test_otrn_run_gives_the_bits_of_jit(exported, program, tmp_path):
    folder, want = exported
    got = otrn("run", folder, program, tmp_path)
    assert len(got) == len(want)
    for g, w in zip(got, want):
        assert g.tobytes() == w.tobytes()


def test_otrn_eval_is_close(exported, tmp_path):
    folder, want = exported
    for g, w in zip(otrn("eval", folder, "mlp.mlirbc", tmp_path), want):
        np.testing.assert_allclose(g, w, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("batch", [(1, 4), (2, 3), (8,)])
def test_attention_and_its_gradients(batch, cpu, device):
    """Scores, weights and their gradients over several batches, as one block of work each or not."""
    rng = np.random.default_rng(0)
    args = [rng.standard_normal((*batch, 128, 32)).astype(np.float32) for _ in range(4)]

    def attend(q, k, v):
        scores = jnp.einsum("...qd,...kd->...qk", q, k) / np.sqrt(32)
        scores = jnp.where(jnp.tril(jnp.ones((128, 128), bool)), scores, -1e30)
        return jnp.einsum("...qk,...kd->...qd", jax.nn.softmax(scores), v)

    step = jax.jit(jax.grad(lambda q, k, v, w: (attend(q, k, v) * w).sum(), argnums=(0, 1, 2)))
    with jax.default_device(cpu):
        want = step(*args)
    for g, w in zip(step(*args), want):
        np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-5)


def test_notes_are_those_of_every_chip(monkeypatch):
    """A note of one chip shows, one of several once; that a later chip has none, or cannot do it, takes none away."""
    training = Training("model", 3, samples=1)
    training.losses = [3.0, 2.0, 1.0]
    training.profile = types.SimpleNamespace(ran=True, missing=list)
    notes = {"trn1": ["f: a loop counted once"], "trn2": ["f: a loop counted once", "g: another"], "trn3": []}
    monkeypatch.setattr(training, "modelled", lambda target: (1.0, {"tensor": 0.5}, 1.0))
    monkeypatch.setattr(training, "_told", lambda target: ("a price", notes[target]))
    monkeypatch.setattr(training, "_comm", lambda target: [])
    text = str(training)
    assert text.count("note: f: a loop counted once") == text.count("note: g: another") == 1, text
