# SPDX-License-Identifier: Apache-2.0
"""opentrn.last_run() and opentrn.profile(): what ran, how often, and its modelled time."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import opentrn

X = np.ones((64, 64), np.float32)


def test_last_run(tmp_path):
    f = jax.jit(lambda x: jnp.tanh(x @ x))
    compiled = f.lower(X).compile()
    jax.block_until_ready(f(X))
    run = opentrn.last_run(trace=tmp_path / "t.json")
    assert run["total_us"] == opentrn.report(compiled)["total_us"] > 0
    assert run["host_us"] > 0 and run["devices"] == 1 and "lambda" in run["name"]
    assert opentrn.last_run("trn1")["target"] == "trn1"
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"]


def test_other_chip():
    """Another chip's time is that of the program compiled for it: trn1's transfers cannot transpose, its array does."""
    x = jnp.ones((512, 512))
    jax.block_until_ready(jax.jit(lambda x, y: x @ y)(x, x))
    mine, other = opentrn.last_run("trn2"), opentrn.last_run("trn1")
    assert other["instructions"]["tensor"] > mine["instructions"]["tensor"]
    assert other["total_us"] < 2 * mine["total_us"]


def test_artifact_on_another_chip():
    """An artifact's time on another chip is that of its program compiled there, whoever is asked."""
    f = jax.jit(lambda x, y: jnp.tanh(x @ y).T @ y)
    x = jnp.ones((256, 256))
    compiled = f.lower(x, x).compile()
    jax.block_until_ready(f(x, x))
    for target in "trn1", "trn2", "trn3":
        told = opentrn.report(compiled, target)
        assert told["total_us"] == opentrn.last_run(target)["total_us"]
        assert told["instructions"] == opentrn.report(f.lower(x, x).as_text().encode(), target)["instructions"]
    kernel = opentrn.artifact(compiled)
    assert opentrn.report(kernel, "trn1") == opentrn.report(compiled, "trn1")


def test_profile():
    f, g = jax.jit(lambda x: x @ x), jax.jit(lambda x: x + 1)
    jax.block_until_ready((f(X), g(X)))
    steps = []
    with opentrn.profile("trn1") as p:
        for _ in range(3):
            y = g(f(X))
            steps.append(p.step())
            assert [runs for _, runs, _ in steps[-1].rows] == [1, 1]
        f(y)
    assert steps[0].total_us == steps[2].total_us > 0
    assert [runs for _, runs, _ in p.rows] == [4, 3]
    assert p.rows[0][2]["target"] == "trn1"
    assert p.usd > 0 and p.engines["tensor"] > 0 and "modelled time" in str(p)
    before = p.total_us
    jax.block_until_ready(f(X))
    assert p.total_us == before  # nothing is recorded outside


def test_off(python):
    code = """if True:
        import jax, opentrn
        jax.block_until_ready(jax.jit(lambda x: x + 1)(1.0))
        print(opentrn.last_run())"""
    assert python(code, OPENTRN_TIMING="off").stdout == "None\n"


def test_eight_processes_compile_once(tmp_path):
    """Started together on an empty cache; the others find what the first has compiled."""
    import os
    import re
    import subprocess
    import sys

    code = "import jax; print(jax.jit(lambda x: x * 3 + 1)(2.0))"
    env = {**os.environ, "OTRN_CACHE": "on", "OTRN_CACHE_DIR": str(tmp_path), "OTRN_VERBOSE": "1"}
    ran = [
        subprocess.Popen(
            [sys.executable, "-c", code], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(8)
    ]
    texts = [p.communicate(timeout=300) for p in ran]
    assert [out for out, _ in texts] == ["7.0\n"] * 8
    found = [re.findall(r"jit__lambda: cache (\w+)", err) for _, err in texts]
    assert sorted(sum(found, [])) == ["hit"] * 7 + ["miss"]
