# SPDX-License-Identifier: Apache-2.0
"""opentrn.last_run() and opentrn.profile(): what ran, how often, and its modelled time."""

import json
import pathlib
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import opentrn
import pytest

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


def test_steps_are_those_of_the_heavy_program():
    """Front ends run small helpers more often than the step."""
    step, helper = jax.jit(lambda x: jnp.tanh(x @ x) @ x), jax.jit(lambda x: x + 1)
    big, small = jnp.ones((256, 256)), jnp.ones(4)
    jax.block_until_ready((step(big), helper(small)))
    with opentrn.profile("trn1") as p:
        for _ in range(3):
            step(big)
            for _ in range(4):
                helper(small)
    assert [runs for _, runs, _ in p.rows] == [3, 12] and p.steps == 3
    assert p.step_us == p.total_us / 3 and "3 steps (runs of jit__lambda)" in str(p)
    p.steps = 6
    assert p.step_us == p.total_us / 6
    with opentrn.profile("trn1") as p:
        for _ in range(2):
            step(big), step(big)
            p.step()
    assert p.steps == 2 and "2 steps," in str(p)


def test_small_numbers_are_told():
    from opentrn._profile import plain

    assert [plain(v, 2) for v in (0.00001234567, 0.5, 12.3456, 123456.7, 0)] == [
        "0.00001235", "0.5000", "12.35", "123,456.70", "0.00",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: opentrn.report(b"x", "trn9"), ValueError, "opentrn.report: .*trn9.*trn1, trn2, trn3"),
        (lambda: opentrn.report(b"x", 2), TypeError, "target is .trn1., .trn2., .trn3. or the path"),
        (lambda: opentrn.report(3), TypeError, r"compiled function is needed, .*not int"),
        (lambda: opentrn.report(b"x", instnce="trn1.2xlarge"), TypeError, "takes instance, price.*instnce"),
        (lambda: opentrn.last_run("trn22"), ValueError, "opentrn.last_run: .*trn22"),
        (lambda: opentrn.profile("tnr1").__enter__(), ValueError, "opentrn.profile: .*tnr1"),
        (lambda: opentrn.profile(steps="3").__enter__(), ValueError, "steps is a number above 0, not '3'"),
        (lambda: opentrn.profile(tokens=0).__enter__(), ValueError, "tokens is a number above 0, not 0"),
        (lambda: opentrn.training("t", steps=-1).__enter__(), ValueError, "opentrn.training: steps is a number"),
        (lambda: opentrn.training("t", 3, goal="low").__enter__(), TypeError, "goal is a number"),
    ],
)
def test_mistakes_in_calls(call, kind, text):
    with pytest.raises(kind, match=text) as caught:
        call()
    assert "\n" not in str(caught.value)


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


def test_loops_are_counted():
    """A loop that ends when its data say so takes as long as it ran; before that, everyone says that it was counted once."""

    @jax.jit
    def until(x, w):
        return jax.lax.while_loop(lambda s: s[0] < 1e3, lambda s: (s[0] * 2, s[1] @ s[1]), (x, w))

    w = jnp.zeros((64, 64))
    compiled = until.lower(1.0, w).compile()
    once = opentrn.report(compiled)
    assert once["unknown_loops"] == 1 and once["assumed_trips"] == 0
    assert opentrn.report(compiled, trips=10)["assumed_trips"] == 10
    jax.block_until_ready(until(1.0, w))
    ten = opentrn.last_run()
    assert ten["counted_loops"] == 1 and ten["unknown_loops"] == 0
    assert ten["total_us"] == opentrn.report(compiled, trips=10)["total_us"] > 5 * once["total_us"]
    with opentrn.profile("trn1") as p:
        jax.block_until_ready(until(200.0, w))
    assert p.total_us == opentrn.report(compiled, "trn1", trips=3)["total_us"]
    assert "note" not in str(p)


def test_dollars_are_of_all_devices():
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    devices = jax.devices()[:4]
    mesh = Mesh(np.array(devices), ("x",))
    x = jax.device_put(jnp.ones((64, 64)), NamedSharding(mesh, PartitionSpec("x")))
    f = jax.jit(lambda x: (x * 2).sum(0))
    jax.block_until_ready(f(x))
    one = jax.jit(lambda x: x.sum(0))
    jax.block_until_ready(one(jnp.ones((64, 64))))
    alone = opentrn.last_run("trn1")
    with opentrn.profile("trn1", tokens=4096) as p:
        jax.block_until_ready(f(x))
    run = opentrn.last_run("trn1")
    assert run["devices"] == 4 and run["machines"] == 1 and run["instance"] == "trn1.32xlarge"
    assert run["usd_per_hour"] == pytest.approx(4 * alone["usd_per_hour"])
    assert run["usd_per_hour"] == pytest.approx(21.5 / 8)
    assert p.usd == pytest.approx(run["usd_per_hour"] * run["total_us"] / 3.6e9)
    assert "4 cores of trn1.32xlarge, 2.6875 USD/h (on demand, us-east-1, 2026-07)" in str(p)
    assert "tokens/s" in str(p) and "per 1M tokens" in str(p)
    mine = opentrn.report(f.lower(x).compile(), instance="trn1.32xlarge", price=64)
    assert mine["target"] == "trn1" and mine["usd_per_hour"] == pytest.approx(8) and "yours" in mine["price_basis"]


def test_a_price_nobody_published():
    f = jax.jit(lambda x: x @ x)
    with opentrn.profile("trn3", tokens=64) as p:
        jax.block_until_ready(f(X))
    assert opentrn.last_run("trn3")["usd_per_hour"] is None
    with pytest.raises(ValueError, match="--price"):
        p.usd
    assert "$" not in str(p) and "no price is published" in str(p)


def test_much_communication_is_a_warning():
    """Above max_comm the operations responsible are named; a wrong share is told where the call is made."""
    P = jax.sharding.PartitionSpec
    program = (pathlib.Path(__file__).parents[1] / "spmd" / "product.mlir").read_bytes()
    with pytest.warns(UserWarning, match=r"collectives take .* reduce_scatter over 2 devices at .*more than max_comm=10 %"):
        assert "reduce_scatter" in opentrn.report(program, "trn1", max_comm="10%")["comm_note"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not opentrn.report(program, "trn1", max_comm=1)["comm_note"]
    with pytest.raises(ValueError, match="max_comm is a share of the step"):
        opentrn.report(program, "trn1", max_comm=25)
    mesh = jax.make_mesh((2,), ("x",), devices=jax.devices()[:2], axis_types=(jax.sharding.AxisType.Auto,))
    f = jax.jit(jax.shard_map(lambda v: jax.lax.psum(v, "x"), mesh=mesh, in_specs=P("x"), out_specs=P()))
    with pytest.warns(UserWarning, match="all_reduce over 2 devices"), opentrn.profile(max_comm=0.01) as p:
        f(np.ones(8, np.float32))
    assert "warning: " in str(p) and "more than max_comm=1 %" in str(p)
