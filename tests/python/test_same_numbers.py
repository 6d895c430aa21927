# SPDX-License-Identifier: Apache-2.0
"""One program has one time: `otrn prof --json`, the C interface, opentrn.report, last_run and profile agree."""

import json
import subprocess

import jax
import jax.numpy as jnp
import opentrn
import pytest
from conftest import OTRN
from opentrn import _runtime

KEYS = ("total_us", "flops", "hbm_bytes", "hbm_peak_bytes")


def _loss(w, x):
    return jnp.mean(jax.nn.softmax(jnp.tanh(x @ w["a"]) @ w["b"]))


@pytest.mark.parametrize("target", ["trn1", "trn2", "trn3"])
def test_same_numbers(target, tmp_path):
    step = jax.jit(jax.value_and_grad(_loss))
    args = ({"a": jnp.ones((96, 128)), "b": jnp.ones((128, 32))}, jnp.ones((64, 96)))
    lowered = step.lower(*args)
    text = lowered.as_text().encode()
    (tmp_path / "step.mlir").write_bytes(text)
    jax.block_until_ready(step(*args))
    with opentrn.profile(target) as p:
        jax.block_until_ready(step(*args))
    (_, runs, profiled), *more = p.rows
    assert runs == 1 and not more
    answers = {
        "C": _runtime.Environment(cache="off", target=target).compile(text, "step").report(),
        "C, another target": _runtime.Environment(cache="off").compile(text, "step").report(target),
        "report of text": opentrn.report(text, target),
        "report of what JAX compiled": opentrn.report(lowered.compile(), target),
        "last_run": opentrn.last_run(target),
        "profile": profiled,
        "otrn": json.loads(
            subprocess.run(
                [OTRN, "prof", tmp_path / "step.mlir", f"--target={target}", "--json", "--cache=off"],
                capture_output=True, text=True, check=True, timeout=600,
            ).stdout
        ),
    }  # fmt: skip
    for who, answer in answers.items():
        for key in KEYS:
            assert answer[key] == pytest.approx(answers["C"][key], rel=1e-6, abs=1e-3), (who, key)
