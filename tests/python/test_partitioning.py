# SPDX-License-Identifier: Apache-2.0
"""What users say themselves about how a program is cut and what is sent: custom_partitioning, ragged_all_to_all."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

pytestmark = pytest.mark.skipif(len(jax.devices()) < 8, reason="needs eight devices")


@pytest.fixture(scope="module")
def mesh():
    return jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2, devices=jax.devices()[:8])


def row_sums(seen):
    """Sums along rows and the rows' mean, computed from parts of rows and columns."""

    @custom_partitioning
    def sums(a):
        return a.sum(1), a.mean(1)

    def partition(mesh, args, results):
        shardings = jax.tree.map(lambda s: s.sharding, args)
        rows, columns = shardings[0].spec
        seen.append((rows, columns))
        axes = tuple(a for a in (columns,) if a)

        def part(a):
            total = a.sum(1)
            total = jax.lax.psum(total, axes) if axes else total
            return total, total / args[0].shape[1]

        out = NamedSharding(mesh, P(rows))
        return mesh, part, (out, out), shardings

    sums.def_partition(partition, sharding_rule="i j -> i, i", reduction_factors=("j",))
    return sums


def cut(mesh, spec, shape=(8, 12)):
    a = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    return a, jax.device_put(a, NamedSharding(mesh, spec))


@pytest.mark.parametrize("spec", [P("x", "y"), P("y", None), P(None, "x"), P()])
def test_partitioner_is_told_how_values_lie(mesh, spec):
    seen = []
    a, parts = cut(mesh, spec)
    total, mean = jax.jit(row_sums(seen))(parts)
    np.testing.assert_array_equal(total, a.sum(1))
    np.testing.assert_allclose(mean, a.mean(1), rtol=1e-6)
    assert seen == [(*spec, None, None)[:2]]
    assert total.sharding.is_equivalent_to(NamedSharding(mesh, P(*spec[:1])), 1)


def test_the_program_of_each_device_has_only_what_the_partitioner_wants(mesh):
    _, parts = cut(mesh, P("x", None))
    text = jax.jit(row_sums([])).lower(parts).compile().as_text()
    assert "all-gather" not in text and "all-reduce" not in text
    _, parts = cut(mesh, P("x", "y"))
    text = jax.jit(row_sums([])).lower(parts).compile().as_text()
    assert "all-gather" not in text and "all-reduce" in text


def test_inside_a_loop_with_a_gradient_around(mesh):
    @jax.custom_vjp
    def doubled(a):
        return twice(a)

    @custom_partitioning
    def twice(a):
        return 2 * a

    def partition(mesh, args, result):
        return mesh, lambda a: a + a, result.sharding, (result.sharding,)

    twice.def_partition(partition, sharding_rule="i -> i")
    doubled.defvjp(lambda a: (twice(a), None), lambda _, g: (twice(g),))

    def loss(a):
        return jax.lax.fori_loop(0, 3, lambda _, v: v, jax.lax.scan(lambda v, _: (doubled(v), None), a, None, 3)[0]).sum()

    a, parts = cut(mesh, P("x"), (16,))
    value, gradient = jax.jit(jax.value_and_grad(loss))(parts)
    assert value == 8 * a.sum()
    np.testing.assert_array_equal(gradient, np.full(16, 8))


def test_an_error_of_the_partitioner_reaches_the_caller(mesh):
    @custom_partitioning
    def same(a):
        return a

    def partition(mesh, args, result):
        raise KeyError("nobody home")

    same.def_partition(partition, sharding_rule="i -> i")
    _, parts = cut(mesh, P("x"), (16,))
    with pytest.raises(Exception, match="nobody home"):
        jax.jit(same)(parts)


def test_the_cache_knows_the_answer_not_the_question(python, tmp_path):
    code = """
import jax, jax.numpy as jnp, numpy as np
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((8,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
@custom_partitioning
def f(a): return a
f.def_partition(lambda mesh, args, result: (mesh, lambda a: a * TIMES, result.sharding, (result.sharding,)), sharding_rule="i -> i")
print(np.asarray(jax.jit(f)(jax.device_put(jnp.ones(8), NamedSharding(mesh, P("x")))))[0])
"""
    for times in (2, 3):
        done = python(code.replace("TIMES", str(times)), OTRN_CACHE="on", OTRN_CACHE_DIR=str(tmp_path), OPENTRN_DEVICES="8")
        assert done.stdout.split() == [f"{times}.0"], done.stderr


# --- ragged_all_to_all -------------------------------------------------------------------------------


def ragged(mesh, axis, groups, pieces, rng):
    """Each device sends `pieces` runs of rows to each of its group; the second value is numpy's answer."""
    n, size = mesh.shape[axis], len(groups[0])
    sizes = rng.integers(0, 4, (n, size * pieces)).astype(np.int32)
    starts = np.zeros_like(sizes)
    starts[:, 1:] = np.cumsum(sizes, 1)[:, :-1]
    rows, room = 4 * size * pieces, 4 * size * pieces + 3
    operand = rng.standard_normal((n, rows, 2)).astype(np.float32)
    output = np.full((n, room, 2), -1, np.float32)
    places, arrivals, want = np.zeros_like(sizes), np.zeros_like(sizes), output.copy()
    for group in groups:
        for j, to in enumerate(group):
            at = 1
            for i, sender in enumerate(group):
                for k in range(pieces):
                    e = j * pieces + k
                    places[sender, e], arrivals[to, i * pieces + k] = at, sizes[sender, e]
                    want[to, at : at + sizes[sender, e]] = operand[sender, starts[sender, e] :][: sizes[sender, e]]
                    at += sizes[sender, e]
    return (operand, output, starts, sizes, places, arrivals), want


@pytest.mark.parametrize("pieces, groups", [(1, None), (2, None), (1, [[0, 2, 1, 3], [7, 4, 5, 6]])])
def test_ragged_rows_go_where_they_are_sent(pieces, groups):
    mesh = jax.make_mesh((8,), ("i",), axis_types=(AxisType.Auto,), devices=jax.devices()[:8])
    args, want = ragged(mesh, "i", groups or [list(range(8))], pieces, np.random.default_rng(pieces))

    def send(*args):
        out = jax.lax.ragged_all_to_all(*(a[0] for a in args), axis_name="i", axis_index_groups=groups)
        return out[None]

    f = jax.jit(jax.shard_map(send, mesh=mesh, in_specs=P("i"), out_specs=P("i"), check_vma=False))
    np.testing.assert_array_equal(f(*args), want)


def test_shardings_inside_a_program_are_told(mesh):
    told = []

    def f(x):
        y = jnp.sin(x)
        jax.debug.inspect_array_sharding(y, callback=lambda s: told.append(("y", s.spec)))
        z = y @ y.T
        jax.debug.inspect_array_sharding(z, callback=lambda s: told.append(("z", s.spec)))
        return z.sum()

    x = jnp.asarray(np.random.default_rng(0).standard_normal((8, 8)), jnp.float32)
    cut = jax.device_put(x, NamedSharding(mesh, P("x", "y")))
    assert float(jax.jit(f)(cut)) == pytest.approx(float((jnp.sin(x) @ jnp.sin(x).T).sum()), rel=1e-4, abs=1e-4)
    assert told == [("y", P("x", "y")), ("z", P("x"))]
    parts = jax.shard_map(lambda a: (jax.debug.inspect_array_sharding(a, callback=told.append), a + 1)[1],
                          mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))  # fmt: skip
    np.testing.assert_array_equal(jax.jit(parts)(cut), x + 1)
    assert told[2].spec == P()
