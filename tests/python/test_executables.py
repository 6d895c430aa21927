# SPDX-License-Identifier: Apache-2.0
"""Compiled functions: what they tell, how they travel."""

import concurrent.futures

import jax
import jax.numpy as jnp
import numpy as np

import opentrn


def compiled():
    f = lambda w, x: jnp.tanh(x @ w)
    return jax.jit(f).lower(np.ones((64, 32), np.float32), np.ones((16, 64), np.float32)).compile()


def test_cost_analysis():
    cost = compiled().cost_analysis()
    assert cost["flops"] == 2 * 64 * 32 * 16
    assert cost["bytes accessed"] > 0
    assert cost["optimal_seconds"] > 0


def test_cost_of_lowered():
    lowered = jax.jit(lambda w: w @ w).lower(np.ones((32, 32), np.float32))
    assert lowered.cost_analysis()["flops"] == 2 * 32**3


def test_nothing_is_left_of_a_sink():
    def f(x):
        jax.lax.dce_sink(x + 1, prevent_mlir_dce=True)
        return x * 2

    assert jax.jit(f)(3.0) == 6


def test_memory_analysis():
    memory = compiled().memory_analysis()
    assert memory.argument_size_in_bytes >= 4 * (64 * 32 + 16 * 64)
    assert memory.output_size_in_bytes >= 4 * 16 * 32
    assert memory.generated_code_size_in_bytes > 0


def test_report():
    times = {t: opentrn.report(compiled(), t) for t in ("trn1", "trn2", "trn3")}
    for target, r in times.items():
        assert r["target"] == target
        assert r["total_us"] > 0
        assert r["flops"] == 2 * 64 * 32 * 16
        assert sum(r["instructions"].values()) > 0
    assert opentrn.report(opentrn.artifact(compiled()), "trn2") == times["trn2"]
    assert opentrn.report(compiled())["target"] == "trn2"


def test_text():
    assert "tanh" in compiled().as_text()


def test_fingerprints_differ():
    one, two = (jax.jit(lambda x: x + n).lower(1.0).compile().runtime_executable() for n in (1, 2))
    assert one.fingerprint != two.fingerprint


def test_serialise_and_load(device):
    from jax.experimental import serialize_executable

    x = np.arange(6, dtype=np.float32)
    c = jax.jit(lambda x: x * 3).lower(x).compile()
    loaded = serialize_executable.deserialize_and_load(
        *serialize_executable.serialize(c), execution_devices=[device]
    )
    np.testing.assert_array_equal(loaded(x), x * 3)


def test_cache_hit_across_processes(python, tmp_path):
    code = """if True:
        import jax, numpy as np, opentrn
        c = jax.jit(lambda x: x * 17 - 4).lower(np.ones(9, np.float32)).compile()
        print(opentrn.cache_hit(c), float(c(np.ones(9, np.float32))[0]))"""
    ran = [python(code, OTRN_CACHE="on", OTRN_CACHE_DIR=str(tmp_path)) for _ in range(2)]
    assert [r.stdout.strip() for r in ran] == ["False 13.0", "True 13.0"], (
        ran[0].stderr + ran[1].stderr
    )
    off = python(code, OTRN_CACHE="off", OTRN_CACHE_DIR=str(tmp_path))
    assert off.stdout.strip() == "False 13.0"


def test_threads_compile_one_module():
    lowered = jax.jit(lambda x: jnp.where(x > 1, jnp.tanh(x), jnp.cumsum(x))).lower(np.ones(9, np.float32))
    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        compiled = list(threads.map(lambda _: lowered.compile(), range(16)))
    results = [c(np.ones(9, np.float32)) for c in compiled]
    assert all((r == results[0]).all() for r in results)


def test_precision_options():
    """--auto-cast and its kin come with a jit's compiler options; the numbers say they were heard."""
    x = jnp.full((2, 4), 1.001, jnp.float32)
    f = lambda x: x @ x.T
    plain = np.asarray(jax.jit(f)(x))
    cast = np.asarray(jax.jit(f, compiler_options={"auto-cast": "matmult"})(x))
    tf32 = np.asarray(jax.jit(f, compiler_options={"auto-cast": "matmult", "auto-cast-type": "tf32"})(x))
    assert abs(plain[0, 0] - 4 * 1.001**2) < 1e-6
    assert cast[0, 0] == 4.0  # 1.001 is 1 in bf16
    assert plain[0, 0] != tf32[0, 0] != cast[0, 0]


def test_compiled_for_a_machine_that_is_not_there(device):
    """A topology is enough to compile; what comes out is loaded where it is to run."""
    from jax.experimental import serialize_executable, topologies
    from jax.sharding import SingleDeviceSharding

    topology = topologies.get_topology_desc(platform=device.platform, topology_name="trn1")
    assert {d.device_kind for d in topology.devices} == {"trn1"}
    there = SingleDeviceSharding(topology.devices[0])
    f = jax.jit(lambda x: jnp.tanh(x @ x), in_shardings=there, out_shardings=there)
    compiled = f.lower(jax.ShapeDtypeStruct((8, 8), jnp.float32)).compile()
    assert compiled.cost_analysis()["flops"] == 2 * 8**3
    assert compiled.memory_analysis().argument_size_in_bytes == 8 * 8 * 4
    parts = serialize_executable.serialize(compiled)
    loaded = serialize_executable.deserialize_and_load(*parts, execution_devices=[device])
    x = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32)
    np.testing.assert_allclose(loaded(x), np.tanh(x @ x), rtol=1e-5)
