# SPDX-License-Identifier: Apache-2.0
"""Logical cores of two: the same bits as one core, on one device and on several, and quicker."""

import json

import jax
import jax.numpy as jnp
import numpy as np

STEP = """if True:
    import hashlib, json, os
    import jax, jax.numpy as jnp, numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

    mesh = Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("data", "model"))
    put = lambda x, *axes: jax.device_put(x, NamedSharding(mesh, P(*axes)))

    def layer(x, p):
        q, k, v = (jnp.reshape(x @ p[w], (*x.shape[:2], 4, -1)) for w in "qkv")
        s = jax.nn.softmax(jnp.einsum("bthd,bshd->bhts", q, k) / 8)
        x = x + jnp.reshape(jnp.einsum("bhts,bshd->bthd", s, v), x.shape) @ p["o"]
        return x + jnp.tanh(x @ p["up"]) @ p["down"]

    def step(p, x):
        loss, grads = jax.value_and_grad(lambda p: jnp.mean((layer(x, p) - 1) ** 2))(p)
        return loss, jax.tree.map(lambda p, g: p - 0.1 * g, p, grads)

    rng = np.random.default_rng(0)
    n = lambda *s: (0.05 * rng.standard_normal(s)).astype(np.float32)
    p = {w: put(n(256, 256), None, "model") for w in "qkv"}
    p |= {"o": put(n(256, 256), "model"), "up": put(n(256, 512), None, "model"), "down": put(n(512, 256), "model")}
    x = put(n(4, 128, 256), "data")
    step = jax.jit(step, donate_argnums=0).lower(p, x).compile()
    for _ in range(3):
        loss, p = step(p, x)
    bits = hashlib.sha256(b"".join(np.asarray(a).tobytes() for a in jax.tree.leaves((loss, p))))
    print(json.dumps([bits.hexdigest(), step.cost_analysis()["optimal_seconds"]]))"""


def test_devices_of_two_cores_have_the_bits_of_one(python):
    def run(**variables):
        ran = python(STEP, OPENTRN_DEVICES="4", **variables)
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)

    one, two = run(OTRN_LNC="1"), run(OTRN_LNC="2")
    watched = run(OTRN_LNC="2", OTRN_CHECK="on")
    assert one[0] == two[0] == watched[0]
    assert two[1] < 0.9 * one[1]


SEEN = """if True:
    import jax
    d = jax.devices()
    print(len(d), d[0].memory_stats()["bytes_limit"] >> 30, d[0].num_cores)"""


def test_devices_are_logical_cores(python):
    def seen(**variables):
        ran = python(SEEN, OPENTRN_DEVICES=None, **variables)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout.split()

    assert seen() == seen(OTRN_LNC="2") == ["4", "24", "2"]
    assert seen(OTRN_LNC="1") == ["8", "12", "1"]
    assert seen(OTRN_TARGET="trn1") == ["2", "16", "1"]
    assert seen(OTRN_LNC="2", OTRN_INSTANCE="trn2.48xlarge") == ["64", "24", "2"]


def test_an_idle_core_is_not_slower():
    """A program too small to be shared takes what it takes on one core, and runs on one."""
    step = jax.jit(lambda x: jnp.sin(x) + 1)
    x = np.ones(16, np.float32)
    times = [
        step.lower(x).compile({"lnc": lnc}).cost_analysis()["optimal_seconds"] for lnc in ("1", "2")
    ]
    assert times[0] == times[1]


def test_memory_of_both_cores(python):
    """Arguments of 15 GiB fit a logical core of two and not one of one."""
    code = """if True:
        import jax, jax.numpy as jnp
        x = jax.ShapeDtypeStruct((15 << 28,), jnp.float32)
        print(jax.jit(lambda x: x[:8] + 1).lower(x).compile().memory_analysis().argument_size_in_bytes >> 30)"""
    ran = python(code, OTRN_LNC="2")
    assert ran.stdout.strip() == "15", ran.stderr
    ran = python(code, OTRN_LNC="1")
    assert ran.returncode == 1 and "HBM" in ran.stderr
