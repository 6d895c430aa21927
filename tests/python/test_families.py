# SPDX-License-Identifier: Apache-2.0
"""Six families of models, trained for a few steps in double precision and in the chip's: f32 is as good, and what casts do to gradients is told by layer."""

import json
import subprocess

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import OTRN, ROOT

SMALL = ["--layers=1", "--dim=32", "--heads=2", "--seq=16", "--batch=4", "--patch=4"]
PRECISIONS = ["f64", "f32", "bf16 products", "bf16", "bf16, stochastic", "fp8 products"]


def judged(found):
    rows = {row["precision"]: row for row in found["precisions"]}
    assert list(rows) == PRECISIONS and rows["f64"]["reference"] and not rows["f32"]["worse"]
    assert abs(rows["f32"]["loss"] - rows["f64"]["loss"]) < 1e-4 * abs(rows["f64"]["loss"])
    worst = {name: max(row["gradients"].values()) for name, row in rows.items() if row["gradients"]}
    assert worst["f32"] < 1e-3 < worst["bf16"] and worst["f32"] < worst["bf16 products"] < worst["fp8 products"]
    assert all("first_wrong" in row for row in rows.values() if row["worse"])
    assert all(np.isfinite(row["loss"]) and row["verdict"] for row in rows.values())


@pytest.mark.parametrize("model", ["gpt", "bert", "vit", "mlp"])
def test_of_our_own(model):
    words = ["precision", f"--model={model}", *SMALL, "--steps=3", "--seeds=1", "--json"]
    data = [f"--data={ROOT}/LICENSE"] if model in ("gpt", "bert") else []
    done = subprocess.run([OTRN, *words, *data], capture_output=True, text=True, timeout=300)
    assert done.returncode in (0, 3), done.stderr
    judged(json.loads(done.stdout))


def convolutional(rng):
    params = {"conv": rng.normal(size=(3, 3, 3, 16)) * 0.2, "deep": rng.normal(size=(3, 3, 16, 16)) * 0.1, "out": rng.normal(size=(16, 8)) * 0.2}
    batch = {"x": rng.normal(size=(4, 8, 8, 3)), "y": rng.normal(size=(4, 8))}

    def loss(p, b):
        h = b["x"]
        for name in ("conv", "deep"):
            h = jax.nn.relu(jax.lax.conv_general_dilated(h, p[name], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))
        return jnp.mean((h.mean((1, 2)) @ p["out"] - b["y"]) ** 2)

    return params, batch, loss


def recommender(rng):
    params = {"users": rng.normal(size=(64, 16)) * 0.3, "things": rng.normal(size=(128, 16)) * 0.3, "top": rng.normal(size=(32, 16)) * 0.2, "out": rng.normal(size=(16, 1)) * 0.3}
    batch = {"x": rng.normal(size=(16, 2)), "y": rng.normal(size=(16, 1)), "user": np.arange(16, dtype=np.int32) * 3, "thing": np.arange(16, dtype=np.int32) * 7}

    def loss(p, b):
        both = jnp.concatenate([p["users"][b["user"]] * b["x"][:, :1], p["things"][b["thing"]] * b["x"][:, 1:]], 1)
        return jnp.mean((jnp.tanh(both @ p["top"]) @ p["out"] - b["y"]) ** 2)

    return params, batch, loss


@pytest.mark.parametrize("family", [convolutional, recommender])
def test_of_jax(family):
    import opentrn

    params, batch, loss_of = family(np.random.default_rng(2))
    params, batch = jax.tree.map(lambda a: a.astype(np.float32) if a.dtype == np.float64 else a, (params, batch))

    def step(state, batch):
        loss, grads = jax.value_and_grad(loss_of)(state["params"], batch)
        return {"params": jax.tree.map(lambda p, g: p - 0.1 * g, state["params"], grads)}, loss

    judged(opentrn.validate(step, {"params": params}, batch, steps=3, options=("--cache=off",)))


def test_the_line_that_goes_wrong_is_named():
    """Weights too small for fp8 in one of two products: it is named, with its line."""
    import opentrn

    rng = np.random.default_rng(3)
    state = {"first": rng.integers(-2, 3, (8, 8)).astype(np.float32), "second": rng.normal(size=(8, 4)).astype(np.float32) * 1e-4}
    batch = {"x": rng.integers(-2, 3, (4, 8)).astype(np.float32), "y": rng.normal(size=(4, 4)).astype(np.float32)}

    def step(state, batch):
        def loss_of(state):
            hidden = batch["x"] @ state["first"]
            out = hidden @ state["second"]  # too small
            return jnp.mean(out * batch["y"]) * 1e4

        loss, grads = jax.value_and_grad(loss_of)(state)
        return jax.tree.map(lambda p, g: p - 1e-3 * g, state, grads), loss

    found = opentrn.validate(step, state, batch, steps=2, options=("--cache=off",))
    row = next(row for row in found["precisions"] if row["precision"] == "fp8 products")
    line = next(i for i, text in enumerate(open(__file__), 1) if text.endswith("# too small\n"))
    assert row["worse"] and row["first_wrong"]["operation"] == "dot_general"
    assert (row["first_wrong"]["file"], row["first_wrong"]["line"]) == (__file__, line)
