# SPDX-License-Identifier: Apache-2.0
"""Programs over several devices: shard_map, pmap, jit with shardings, against plain numpy."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

pytestmark = pytest.mark.skipif(len(jax.devices()) < 4, reason="needs four devices")


@pytest.fixture(scope="module")
def mesh():
    return jax.make_mesh(
        (2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2, devices=jax.devices()[:4]
    )


@pytest.fixture
def array():
    return np.random.default_rng(0).normal(size=(8, 12)).astype(np.float32)


def put(array, mesh, *spec):
    return jax.device_put(array, NamedSharding(mesh, P(*spec)))


def test_shards_lie_where_they_should(mesh, array):
    x = put(array, mesh, "x", "y")
    assert {s.data.shape for s in x.addressable_shards} == {(4, 6)}
    np.testing.assert_array_equal(np.asarray(x), array)
    for s in x.addressable_shards:
        np.testing.assert_array_equal(np.asarray(s.data), array[s.index])


def test_shard_map_product(mesh, array):
    w = np.random.default_rng(1).normal(size=(12, 4)).astype(np.float32)

    def body(a, b):
        return jax.lax.psum(a @ b, "y") + jax.lax.axis_index("x")

    f = jax.jit(
        jax.shard_map(
            body, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", None)
        )
    )
    want = array @ w + np.repeat([0, 1], 4)[:, None]
    np.testing.assert_allclose(np.asarray(f(array, w)), want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("axis", ["x", "y"])
def test_partly_manual(mesh, array, axis):
    f = jax.shard_map(
        lambda a: jax.lax.psum(a, axis), mesh=mesh, in_specs=P(axis), out_specs=P(), axis_names={axis}
    )
    got = jax.jit(f)(put(array, mesh, None, "y" if axis == "x" else "x"))
    np.testing.assert_allclose(np.asarray(got), array[:4] + array[4:], rtol=1e-6)


def test_collectives_in_shard_map(array):
    mesh = jax.make_mesh((4,), ("i",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])

    def body(a):  # (2, 12)
        gathered = jax.lax.all_gather(a, "i", axis=0, tiled=True)
        scattered = jax.lax.psum_scatter(gathered, "i", scatter_dimension=0, tiled=True)
        turned = jax.lax.ppermute(a, "i", [(k, (k + 1) % 4) for k in range(4)])
        swapped = jax.lax.all_to_all(a, "i", split_axis=1, concat_axis=0, tiled=True)
        return gathered, scattered, turned, swapped

    f = jax.jit(
        jax.shard_map(
            body,
            mesh=mesh,
            in_specs=P("i"),
            out_specs=(P(None), P("i"), P("i"), P(None, "i")),
            check_vma=False,
        )
    )
    gathered, scattered, turned, swapped = map(np.asarray, f(array))
    np.testing.assert_array_equal(gathered, array)
    np.testing.assert_allclose(scattered, 4 * array, rtol=1e-6)
    np.testing.assert_array_equal(turned, np.roll(array, 2, axis=0))
    np.testing.assert_array_equal(swapped, array)


def test_shard_map_in_a_loop(mesh, array):
    @jax.jit
    def f(x):
        step = jax.shard_map(
            lambda a: a - jax.lax.pmean(a, ("x", "y")), mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y")
        )
        return jax.lax.fori_loop(0, 3, lambda _, v: jnp.cos(step(v)), x)

    def step(v):
        mean = sum(v[i : i + 4, j : j + 6] for i in (0, 4) for j in (0, 6)) / 4
        return np.cos(v - np.tile(mean, (2, 2)))

    want = functools.reduce(lambda v, _: step(v), range(3), array)
    np.testing.assert_allclose(np.asarray(f(put(array, mesh, "x"))), want, rtol=1e-5, atol=1e-5)


def test_jit_with_shardings(mesh, array):
    w = np.random.default_rng(2).normal(size=(12, 16)).astype(np.float32)
    out = NamedSharding(mesh, P(None, "y"))

    @functools.partial(jax.jit, out_shardings=(out, None))
    def f(x, w):
        y = jnp.tanh(x @ w)
        y = jax.lax.with_sharding_constraint(y, NamedSharding(mesh, P("x", "y")))
        return y * 2, jnp.sum(y, axis=0)

    y, total = f(put(array, mesh, "x"), put(w, mesh, None, "y"))
    want = np.tanh(array @ w)
    assert y.sharding.is_equivalent_to(out, 2)
    np.testing.assert_allclose(np.asarray(y), 2 * want, rtol=2e-5, atol=1e-5)
    np.testing.assert_allclose(np.asarray(total), want.sum(0), rtol=2e-5, atol=1e-4)


def test_open_results_keep_the_sharding_of_elementwise_work(mesh, array):
    x = put(array, mesh, "x", "y")
    y = jax.jit(lambda v: jnp.exp(v) * 3 + 1)(x)
    assert y.sharding.is_equivalent_to(x.sharding, 2)
    np.testing.assert_allclose(np.asarray(y), np.exp(array) * 3 + 1, rtol=1e-5)


def test_devices_in_another_order(array):
    devices = np.array(jax.devices()[:4])[[3, 1, 0, 2]]
    mesh = jax.sharding.Mesh(devices, ("i",))
    x = put(array, mesh, "i")
    f = jax.jit(jax.shard_map(lambda a: a * jax.lax.axis_index("i"), mesh=mesh, in_specs=P("i"), out_specs=P("i")))
    np.testing.assert_allclose(np.asarray(f(x)), array * np.repeat(np.arange(4), 2)[:, None])
    np.testing.assert_allclose(np.asarray(jax.jit(lambda v: v.sum())(x)), array.sum(), rtol=1e-4)


def test_pmap(array):
    f = jax.pmap(lambda v: (jax.lax.psum(v, "i"), v + 1), axis_name="i", devices=jax.devices()[:4])
    total, more = f(array[:4])
    np.testing.assert_allclose(np.asarray(total), np.tile(array[:4].sum(0), (4, 1)), rtol=1e-6)
    np.testing.assert_array_equal(np.asarray(more), array[:4] + 1)


def test_donation_of_shards(mesh, array):
    x = put(array, mesh, "x", "y")
    y = jax.jit(lambda v: v + 1, donate_argnums=0)(x)
    assert x.is_deleted()
    np.testing.assert_array_equal(np.asarray(y), array + 1)


def test_data_parallel_training_equals_one_device(mesh):
    rng = np.random.default_rng(3)
    x = rng.normal(size=(16, 6)).astype(np.float32)
    y = rng.normal(size=(16, 1)).astype(np.float32)
    w = {"a": rng.normal(size=(6, 8)).astype(np.float32), "b": rng.normal(size=(8, 1)).astype(np.float32)}

    def loss(w, x, y):
        return jnp.mean((jnp.tanh(x @ w["a"]) @ w["b"] - y) ** 2)

    @jax.jit
    def step(w, x, y):
        value, grad = jax.value_and_grad(loss)(w, x, y)
        return jax.tree.map(lambda p, g: p - 0.1 * g, w, grad), value

    one = jax.device_put((w, x, y), jax.devices()[0])
    many = (put(w, mesh), put(x, mesh, ("x", "y")), put(y, mesh, ("x", "y")))
    w1, wn = one[0], many[0]
    for _ in range(5):
        w1, l1 = step(w1, *one[1:])
        wn, ln = step(wn, *many[1:])
        np.testing.assert_allclose(float(l1), float(ln), rtol=1e-5)


def test_programs_of_their_own(array):
    f = jax.jit(lambda v: v * 2 + 1)
    results = [f(jax.device_put(array + k, d)) for k, d in enumerate(jax.devices())]
    for k, (r, d) in enumerate(zip(results, jax.devices())):
        assert r.devices() == {d}
        np.testing.assert_array_equal(np.asarray(r), (array + k) * 2 + 1)


def test_an_uneven_cut_is_refused(mesh):
    with pytest.raises(ValueError):
        put(np.ones((3, 4), np.float32), mesh, "x")


def test_a_program_without_results(mesh, array):
    seen = []
    f = jax.jit(
        jax.shard_map(
            lambda a: jax.debug.callback(lambda v: seen.append(v.shape), a),
            mesh=mesh,
            in_specs=P("x", "y"),
            out_specs=None,
        )
    )
    f(array)
    jax.effects_barrier()
    assert seen == [(4, 6)] * 4


def test_unreduced_values_are_terms(array):
    """A value left unreduced over an axis: terms come out of a region, go into one, and add up."""
    mesh = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2, devices=jax.devices()[:4])
    with jax.set_mesh(mesh):
        a = jax.device_put(array, P("y", "x"))
        b = jax.device_put(array.T, P("x", None))
        dot = jax.jit(jax.shard_map(jnp.dot, out_specs=P("y", unreduced={"x"})))
        terms = dot(a, b)
        assert terms.sharding.spec.unreduced == {"x"}
        np.testing.assert_allclose(np.asarray(jax.reshard(terms, P("y"))), array @ array.T, rtol=1e-5)
        again = jax.reshard(jnp.arange(8.0), P(unreduced={"x"}))  # one device keeps it
        scatter = jax.shard_map(
            lambda v: jax.lax.psum_scatter(v, "x", tiled=True), out_specs=P("x")
        )
        np.testing.assert_array_equal(np.asarray(scatter(again)), np.arange(8.0))


def test_an_ordered_callback_in_a_region():
    """Its token goes through Shardy's operation, which jaxlib sends with types of its own."""
    from jax.experimental import io_callback

    mesh = jax.make_mesh((4,), ("i",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])

    def f(x):
        io_callback(lambda _: None, (), x, ordered=True)
        return x + 1

    parts = jax.jit(jax.shard_map(f, mesh=mesh, in_specs=P("i"), out_specs=P("i")))
    np.testing.assert_array_equal(parts(jnp.zeros(8)), np.ones(8))
    jax.effects_barrier()


def test_terms_go_round_a_loop(array):
    """Gradients of small batches add up as terms and are combined once, behind the scan over layers and that over batches."""
    mesh = jax.make_mesh((2,), ("x",), axis_types=(AxisType.Explicit,), devices=jax.devices()[:2])
    rng = np.random.default_rng(7)
    weights = rng.standard_normal((3, 4, 4)).astype(np.float32)
    batches = rng.standard_normal((5, 6, 4)).astype(np.float32)

    def model(w, x):
        x, _ = jax.lax.scan(lambda x, w: (jnp.tanh(jnp.dot(x, w)), None), x, w)
        return jnp.sum(x)

    def summed(w, batches, zero):
        def body(total, x):
            return total + jax.grad(model)(w, x), None

        return jax.lax.scan(body, zero, batches)[0]

    with jax.set_mesh(mesh):

        @jax.jit
        def step(w, batches):
            return jax.reshard(summed(w, batches, jax.reshard(jnp.zeros_like(w), P(unreduced={"x"}))), P())

        args = jax.device_put(weights, P(reduced={"x"})), jax.device_put(batches, P(None, "x", None))
        got = np.asarray(step(*args))
        text = step.lower(*args).compile().as_text()
    with jax.default_device(jax.devices("cpu")[0]):
        want = np.asarray(summed(jnp.asarray(weights), jnp.asarray(batches), jnp.zeros((3, 4, 4))))
    np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-4)
    assert text.count(" all-reduce(") == 1


def test_asynchronous_collectives(array):
    """Begun, then awaited: JAX's futures, sent in a form that the plugin's version of StableHLO has."""
    from jax._src.lax import parallel

    if not hasattr(parallel, "all_gather_start"):
        pytest.skip("this JAX has no asynchronous collectives")
    mesh = jax.make_mesh((4,), ("i",), axis_types=(AxisType.Explicit,), devices=jax.devices()[:4])

    def gathered(x):
        todo = parallel.all_gather_start(x, "i", tiled=True, to="reduced")
        twice = x * 2
        return todo.done(), twice

    with jax.set_mesh(mesh):
        f = jax.jit(jax.shard_map(gathered, out_specs=(P(None, reduced={"i"}), P("i"))))
        whole, twice = f(jax.device_put(array, P("i")))
    np.testing.assert_array_equal(whole, array)
    np.testing.assert_array_equal(twice, array * 2)


def test_values_that_lie_alike():
    from jax.experimental.shard_alike import shard_alike

    mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])
    parts = jax.device_put(np.arange(8.0, dtype=np.float32), NamedSharding(mesh, P("x")))
    for f in (shard_alike, jax.jit(shard_alike)):
        out = f(parts, np.arange(8.0, dtype=np.float32))[1]
        assert out.sharding.is_equivalent_to(parts.sharding, 1)
        np.testing.assert_array_equal(out, np.arange(8.0))


def test_profile_tells_collectives(mesh, array):
    import opentrn

    f = jax.jit(jax.shard_map(lambda a: jax.lax.psum(a, "y"), mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", None)))
    f(array).block_until_ready()
    with opentrn.profile("trn1") as p:
        f(array).block_until_ready()
    (kind,) = p.collectives
    assert (kind["kind"], kind["ranks"], kind["groups"], kind["count"]) == ("all_reduce", 2, 2, 1)
    assert kind["bytes"] == 4 * 6 * 4  # twice a half of the part
    assert kind["file"].endswith("test_many.py") and kind["line"] > 0
    assert 0 < p.exposed_comm_share <= p.comm_share <= 1
    assert kind["busy_us"] == pytest.approx(p.comm_share * p.total_us)
    assert "collectives: " in str(p) and "warning: jit" in str(p) and "all_reduce over 2 devices at test_many.py" in str(p)
    assert "exposed" in str(p)
