# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of bytecode_fuzz.c (portable and raw bytecode) and xla_fuzz.c: python tests/fuzz/data/make.py (needs jax, optax)."""
import os
import pathlib
import re

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
os.environ["JAX_PLATFORMS"] = "cpu"
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
from jax._src.interpreters.mlir import make_ir_context
from jax._src.lib import _jax
from jaxlib.mlir import ir, passmanager
from jaxlib.mlir.dialects import mhlo

HERE = pathlib.Path(__file__).parent


def raw(name, module):
    with open(HERE / f"{name}.raw.mlirbc", "wb") as f:
        module.operation.write_bytecode(f)


def save(name, f, *args, **options):
    text = jax.jit(f, **options).lower(*args).as_text(debug_info=True)
    text = re.sub(r'"[^"]*/site-packages/', '"', text.replace(__file__, "make.py"))
    with make_ir_context():
        module = ir.Module.parse(text)
        artifact = _jax.mlir.serialize_portable_artifact(module, "1.13.0", True)
        (HERE / f"{name}.mlirbc").write_bytes(artifact)
        raw(name, ir.Module.parse(text))
    plain = jax.jit(f, **options).lower(*args).as_text()  # without the places of this machine
    if "sdy." not in plain:
        hlo = _jax.mlir.mlir_module_to_xla_computation(plain, use_tuple_args=False, return_tuple=False)
        (HERE.parent / "hlo").mkdir(exist_ok=True)
        (HERE.parent / "hlo" / f"{name}.hlo.pb").write_bytes(hlo.as_serialized_hlo_module_proto())


def train(w, state, x, y):
    def loss(w):
        h = jax.nn.relu(x @ w["a"])
        return optax.softmax_cross_entropy_with_integer_labels(h @ w["b"], y).mean()

    value, grad = jax.value_and_grad(loss)(w)
    update, state = optax.sgd(0.1, momentum=0.9).update(grad, state, w)
    return optax.apply_updates(w, update), state, value


def constants(x):
    odd = np.array([1, 0, 1, 1, 0, 0, 1, 1, 1], bool)
    return (x & odd, np.array([True, False]), jnp.asarray([1, -2, 3], jnp.int4),
            np.arange(5, dtype=np.uint16), np.array([1 + 2j, 3j], np.complex64),
            np.float16([1, 2]), jnp.asarray([0.5, 4], jnp.float8_e4m3fn), np.ones((4, 5), np.float32))


def main():
    w = {"a": jnp.ones((6, 5)), "b": jnp.ones((5, 3))}
    save("train", train, w, optax.sgd(0.1, momentum=0.9).init(w), jnp.ones((4, 6)),
         jnp.zeros(4, jnp.int32), donate_argnums=(0, 1))
    save("constants", constants, jnp.zeros(9, bool))
    save("loop", lambda x: lax.scan(lambda c, i: (c * i + x, jnp.sort(c)), x, jnp.arange(5.0)),
         jnp.ones(4))
    save("scatter", lambda x, i: (x.at[i].add(1.0), x[i], jax.scipy.special.erf(x)),
         jnp.zeros((8, 3)), jnp.zeros(4, jnp.int32))
    save("branches", lambda x, i: lax.switch(i, [
        lambda v: v + x, lambda v: lax.while_loop(lambda c: c.sum() < 9, lambda c: c + x, v),
        lambda v: jax.random.normal(jax.random.key(1), (8,))], x * 3), jnp.zeros(8), 0)
    mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("x", "y"))
    put = lambda a: jax.device_put(a, NamedSharding(mesh, P("x", "y")))
    save("sharded", lambda a, b: lax.with_sharding_constraint(
        a @ b, NamedSharding(mesh, P("x", None))) * 2, put(jnp.ones((8, 8))), put(jnp.ones((8, 8))))
    with make_ir_context():  # XLA's dialect, by its own conversion
        module = ir.Module.parse(jax.jit(train).lower(w, optax.sgd(0.1, momentum=0.9).init(w), jnp.ones((4, 6)), jnp.zeros(4, jnp.int32)).as_text())
        mhlo.register_mhlo_passes()
        passmanager.PassManager.parse("builtin.module(stablehlo-legalize-to-hlo)").run(module.operation)
        raw("mhlo", module)


main()
