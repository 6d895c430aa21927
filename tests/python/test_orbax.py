# SPDX-License-Identifier: Apache-2.0
"""Orbax as it is: sharded state saved by one process and by two, restored on other devices, and training goes on with the same bits."""

import pytest
from test_processes import run

pytest.importorskip("orbax.checkpoint")

STEP = """
import logging
logging.disable(logging.WARNING)
import orbax.checkpoint as ocp
folder = os.environ["FOLDER"]
rows, whole = NamedSharding(mesh, P("x")), NamedSharding(mesh, P())
def first():
    rng = np.random.default_rng(0)
    return {"w": put(rng.normal(size=(8, 16)).astype("f4"), "x"), "b": put(np.zeros(16, "f4")), "step": put(np.int32(0))}
@jax.jit
def step(s):
    g = jax.grad(lambda w: jnp.sum(jnp.tanh(w + s["b"]) ** 2))(s["w"])
    return {"w": s["w"] - 0.1 * g, "b": s["b"] + 0.01, "step": s["step"] + 1}
def trained(s, n):
    for _ in range(n):
        s = step(s)
    return s
def tell(s):
    if me == 0:
        print("state", int(s["step"]), hashlib.sha1(np.asarray(jax.jit(lambda a: a, out_shardings=whole)(s["w"])).tobytes()).hexdigest(), flush=True)
    else:
        jax.jit(lambda a: a, out_shardings=whole)(s["w"]).block_until_ready()
"""
SAVE = """
with ocp.CheckpointManager(folder, options=ocp.CheckpointManagerOptions(max_to_keep=2)) as kept:
    s = first()
    for i in range(1, 4):
        s = trained(s, 1)
        kept.save(i, args=ocp.args.StandardSave(s))
    kept.wait_until_finished()
tell(trained(s, 2))
"""
LOAD = """
with ocp.CheckpointManager(folder) as kept:
    like = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=a.sharding), first())
    assert kept.latest_step() == 3 and sorted(kept.all_steps()) == [2, 3]
    s = kept.restore(3, args=ocp.args.StandardRestore(like))
assert s["w"].sharding == rows and int(s["step"]) == 3
tell(trained(s, 2))
"""


def told(devices, folder, code):
    outs = run(STEP + code, devices, FOLDER=str(folder))
    return [line for out in outs for line in out.splitlines() if line.startswith("state ")]


@pytest.mark.parametrize("saved, loaded", [([4], [1, 1]), ([2, 2], [4])])
def test_state_moves_between_processes(saved, loaded, tmp_path):
    before = told(saved, tmp_path / "run", SAVE)
    assert len(before) == 1 and before == told(loaded, tmp_path / "run", LOAD)
