# SPDX-License-Identifier: Apache-2.0
"""Steps composed of priced layers: beside whole ones, in stages and schedules, what they hold, and the programs and prices they are made of."""

import contextlib
import dataclasses
import pathlib
import shutil
import sys

import pytest
from conftest import ROOT
from jobs import CONFIGS, KINDS, LLAMA, job_of, own_cache  # noqa: F401

from opentrn import _library
from opentrn._predict import command, compose, config, groups, layout, machines, price, search, size, spec
from opentrn._predict.fault import Fault

# (model, layout, batch of all replicas): layers repeated in ways a layout can have them; whole steps below
WHOLE = [(name, dict(dp=32, micro_batch=2 if name != "qwen" else 1), 64) for name in CONFIGS]
WHOLE += [("llama", dict(tp=2, dp=16, recompute=again, sp=True), 64) for again in ("full", "selective")]


def close(parts, prices, job, x, kind, n):
    """Everything of a piece with n layers, composed, within 2 % of its program compiled whole."""
    for key, far in (("total_us", 0.02), ("hbm_peak_bytes", 0.02), ("instructions", 0.02)):
        whole = prices(compose._piece(job, x, kind, n))[key]
        assert parts.micro(kind, key)(n) == pytest.approx(whole, rel=far), (kind, key)


@pytest.mark.parametrize("name, cut, batch", WHOLE, ids=lambda v: v if isinstance(v, str) else " ".join(f"{k}={w}" for k, w in v.items()) if isinstance(v, dict) else str(v))
def test_whole(name, cut, batch):
    """Layers repeated are what the program with all of them takes."""
    job, x = job_of(name, global_batch=batch), layout.Layout(**cut)
    prices = price.Prices(job.machine)
    parts = compose.Parts(job, x, prices)
    close(parts, prices, job, x, "whole", 6)


WHOLE = ["trn1,llama,zero=1 micros=1", "trn1,gpt2,zero=3", "trn1,mixtral ep=4", "trn1,mixtral tp=2 ep=4"]
WHOLE += ["trn2,gpt_neox zero=1", "trn2,mixtral  micros=1", "trn2,mistral  micros=4"]  # two cores, and sums that they share


@pytest.mark.parametrize("only", WHOLE)
def test_whole_steps(only):
    """Steps put together take what they do as one program, and as much memory: some of accuracy/composition.py."""
    sys.path.insert(0, str(ROOT / "accuracy"))
    import composition

    ((_, *what),) = composition.rows(only)
    ours, theirs = composition.compare(*what, {})
    assert 1e6 * ours["step_s"] == pytest.approx(theirs["total_us"], rel=0.02)
    assert ours["hbm_peak_bytes"] == pytest.approx(theirs["hbm_peak_bytes"], rel=0.02)


@pytest.mark.parametrize("row", [
    ("trn1", "gpt_neox", dict(zero=3), 3, {}),  # every other layer closes a bucket
    ("trn2", "mixtral", dict(cp=2, ep=4, recompute="full"), 1, {}),  # the last sums are beside the update
    ("trn2", "llama", dict(tp=2, zero=1), 1, dict(lora=8)),
    ("trn1", "llama", dict(zero=1), 2, dict(precision="amp", dropout=0.1)),
], ids=str)  # fmt: skip
def test_whole_steps_of_more_layers(row):
    """The same of eleven layers, which no piece has: what one more costs holds over them."""
    sys.path.insert(0, str(ROOT / "accuracy"))
    import composition

    *what, more = row
    ours, theirs = composition.compare(*what, {}, layers=11, **more)
    assert 1e6 * ours["step_s"] == pytest.approx(theirs["total_us"], rel=0.02)
    assert ours["hbm_peak_bytes"] == pytest.approx(theirs["hbm_peak_bytes"], rel=0.03)


def test_gradients_take_the_place_of_what_dies():
    """Of layers that are computed again little is kept, so the gradients of a step's only micro-batch need room of their own."""
    sys.path.insert(0, str(ROOT / "accuracy"))
    import composition

    ours, theirs = composition.compare("trn3", "gpt_neox", dict(recompute="full"), 1, {})
    assert ours["hbm_peak_bytes"] == pytest.approx(theirs["hbm_peak_bytes"], rel=0.03)


def test_bucket():
    """The compiler's buckets are what pieces are measured by."""
    text = (ROOT / "src" / "pass" / "buckets.c").read_text()
    for name, size in zip(("SUM", "GATHER"), compose.AT_ONCE):
        assert f"#define {name}_BYTES ({size >> 20}u << 20)" in text


def test_whole_stages():
    """Stages of a pipeline likewise."""
    job, x = job_of("llama", global_batch=32), layout.Layout(tp=2, pp=4, dp=4)
    prices = price.Prices(job.machine)
    parts = compose.Parts(job, x, prices)
    for kind in ("first", "middle", "last"):
        close(parts, prices, job, x, kind, 3)


def by_definition(stages, micros, schedule, chunks, passing):
    """Seconds of a pipeline as its schedule is defined: what a device does is behind what it did before and what it needs, and sends are its own time."""
    n, ends = len(stages), {}
    last = n * chunks - 1

    def order(d):
        rounds = [range(g, min(g + n, micros)) for g in range(0, micros, n)]
        there = [("f", m, c) for g in rounds for c in range(chunks) for m in g]
        back = [("b", m, c) for g in rounds for c in reversed(range(chunks)) for m in g]
        warm = len(there) if schedule == "gpipe" else min(n - d - 1 if chunks == 1 else 2 * (n - d - 1) + (chunks - 1) * n, len(there))
        return there[:warm] + [v for pair in zip(there[warm:], back) for v in pair] + back[len(there) - warm :]

    orders = [order(d) for d in range(n)]
    while any(orders):
        for d in range(n):
            while orders[d]:
                what, m, c = orders[d][0]
                s = c * n + d
                need = ("f", m, s - 1) if what == "f" else ("b", m, s + 1) if s < last else ("f", m, s)
                if need[2] >= 0 and need not in ends:
                    break
                sends = s < last if what == "f" else s > 0
                ends[what, m, s] = ends[d] = max(ends.get(d, 0.0), ends.get(need, 0.0)) + stages[d][what == "b"] / chunks + passing * sends
                orders[d].pop(0)
    return max(ends.values())


@pytest.mark.parametrize("schedule, chunks", [("gpipe", 1), ("1f1b", 1), ("interleaved", 2), ("interleaved", 3)])
@pytest.mark.parametrize("pp, micros", [(2, 8), (4, 16), (8, 32), (4, 200), (3, 60)])
def test_schedule(schedule, chunks, pp, micros):
    """Even stages wait as long as the formulae of the schedules say; they and others, with what they pass on, take what the schedules' definitions do."""
    x = layout.Layout(pp=pp, schedule=schedule, chunks=chunks)
    waits, passing = compose.pipeline([3.0] * pp, micros, x, 0.125, 0.3)
    assert waits == pytest.approx(3.0 * (pp - 1) / chunks)
    assert 3.0 * micros + waits + passing == pytest.approx(by_definition([(0.9, 2.1)] * pp, micros, schedule, chunks, 0.125))
    uneven = [(1.0 + 0.1 * (s % 3), 2.0 + 0.2 * (s % 2)) for s in range(pp)]
    assert compose.makespan(uneven, micros, schedule, chunks, 0.05) == pytest.approx(by_definition(uneven, micros, schedule, chunks, 0.05), rel=1e-3)


def test_uneven_stages():
    """The slowest stage sets the pace; what others have left over hides their turns."""
    x = layout.Layout(pp=3)
    assert compose.pipeline([2.0, 3.0, 1.0], 12, x, 0.0, 1 / 3)[0] == pytest.approx(2.0)  # for the first; a round of the last fits beside the second's next turn
    part = compose.pipeline([3.0] * 4, 10, dataclasses.replace(x, pp=4, schedule="interleaved", chunks=2), 0.0, 1 / 3)[0]
    assert part == pytest.approx(3.0 * 3 / 2 + 2 * 3.0)  # two of the last group's four turns are empty


def test_pipeline_and_sharding():
    """A pipeline has bubbles, ZeRO makes room, and every number that scripts read is there."""
    job = job_of("llama", nodes=1, global_batch=256)
    prices = price.Prices(job.machine)
    flat = compose.step(job, layout.Layout(tp=4, dp=8), prices)
    piped = compose.step(job, layout.Layout(tp=4, pp=2, dp=4), prices)
    assert piped["bubble_share"] > 0 == flat["bubble_share"] and piped["seconds"]["passing_on"] > 0
    assert 0 < flat["exposed_comm_share"] <= flat["comm_share"] < 1
    room = [compose.step(job, layout.Layout(tp=4, dp=8, zero=z), prices)["memory"] for z in range(4)]
    assert room[1]["optimizer"] < room[0]["optimizer"] and room[2]["gradients"] < room[1]["gradients"] and room[3]["weights"] < room[2]["weights"]
    every, own = (compose.step(job, layout.Layout(tp=4, dp=8, sp=sp), prices)["memory"]["activations"] for sp in (False, True))
    assert own < 0.75 * every  # 0.70; of what is gathered before a product nothing is kept (it is a tenth of `every`)
    many = compose.step(job, layout.Layout(tp=4, pp=2, dp=4, schedule="gpipe"), prices)
    assert many["memory"]["activations"] > piped["memory"]["activations"]


def test_stages():
    m = config.model(dict(LLAMA, num_hidden_layers=10))
    assert compose.stages(m, layout.Layout(pp=4)) == [("first", 2), ("middle", 3), ("middle", 3), ("last", 2)]


@pytest.mark.parametrize("kind", ["bert", "vit"])
def test_stages_of_encoders(kind):
    """Stages have the model's weights between them, the last one a table of its own, and each is a program."""
    from opentrn._predict import programs

    m, u, types = config.model(KINDS[kind][0]), spec.Cut(seq=128), ("bf16", "bf16", "fp32")
    count = lambda part, n: sum(compose._size(v.shape) for v in programs.weights(part, n, m, u))
    assert sum(count(part, 1) for part in ("first", "middle", "last")) == count("whole", 3) + (m.vocab * m.width if kind == "bert" else 0)
    assert all(programs.micro(part, 1, m, u, types, True).startswith("module @jit_") for part in ("first", "middle", "last"))


def test_stages_of_encoder_and_decoder():
    """A decoder's stages follow an encoder's and have the model's weights with them but for tables of their own; each is a program, and takes what its layers
    do in the whole. As many stages as layers are possible, pieces of stages are refused."""
    from opentrn._predict import programs

    m, u, types = config.model(KINDS["t5"][0]), spec.Cut(seq=128), ("bf16", "bf16", "fp32")
    kinds = lambda pp: [kind for kind, _ in compose.stages(m, layout.Layout(pp=pp))]
    assert kinds(2) == ["first", "second"] and kinds(4) == ["first", "middle", "middle", "second"] and kinds(12) == ["first", *["middle"] * 5, "turn", *["write"] * 4, "last"]
    assert all(sum(n for kind, n in compose.stages(m, layout.Layout(pp=pp)) if (kind in ("first", "middle")) == reads) == 6 for pp in range(2, 13) for reads in (True, False))
    count = lambda part, n: sum(compose._size(v.shape) for v in programs.weights(part, n, m, u))
    near, table = spec.BUCKETS * m.heads, m.vocab * m.width
    assert count("first", 6) + count("second", 6) == count("whole", 6) + table
    assert count("first", 2) + count("middle", 4) + count("turn", 1) + count("write", 3) + count("last", 2) == count("whole", 6) + 3 * near + 2 * table
    assert all(programs.micro(part, 1, m, u, types, True).startswith("module @jit_") for part in ("first", "middle", "turn", "write", "last", "second"))
    job = job_of(m, global_batch=64)
    prices = price.Prices(job.machine)
    whole, cut, deep = (compose.step(job, layout.Layout(tp=4, pp=pp, dp=8 // pp, micro_batch=2), prices) for pp in (1, 2, 4))
    assert sum(cut["rounds"]["s"]) == pytest.approx(sum(deep["rounds"]["s"]), rel=0.1) and cut["bubble_share"] > 0 < deep["bubble_share"]
    assert sum(cut["rounds"]["s"]) == pytest.approx(whole["seconds"]["micro_batches"] / 4, rel=0.1)
    for instance in ("trn1.32xlarge", "p5.48xlarge"):
        found = command.step(job_of(m, instance, global_batch=64), layout.Layout(tp=2, pp=2, dp=machines.machine(instance).devices // 4, micro_batch=2), prices)
        assert found["bubble_share"] > 0
    with pytest.raises(Fault, match="12 layers cannot be 16 stages"):
        layout.check(job, layout.Layout(pp=16, dp=2))
    with pytest.raises(Fault, match="an encoder and a decoder") as fault:
        layout.check(job, layout.Layout(pp=2, dp=16, chunks=2, schedule="interleaved"))
    assert "--chunks=1" in fault.value.hint


def test_forward_share():
    """Of a round there: what the compiled programs tell; computing again makes the way back longer, not the way there."""
    job = job_of("llama", global_batch=128)
    prices = price.Prices(job.machine)
    none, full = (compose.forward_share(job, layout.Layout(pp=2, dp=16, micro_batch=4, recompute=r), prices) for r in ("none", "full"))
    assert 0.15 < full < none < 0.5


def test_cached(monkeypatch):
    job, x = job_of("llama"), layout.Layout(tp=4, dp=8)
    first = price.Prices(job.machine)
    one = compose.step(job, x, first)
    again = price.Prices(job.machine)
    monkeypatch.setattr(again, "_text", lambda what: pytest.fail(f"priced again: {what}"))
    assert compose.step(job, x, again) == one and first.made > 0 == again.made


@pytest.mark.parametrize("change", ["builder", "chip", "jax", "option"])
def test_price_of_another_program(change, tmp_path, monkeypatch):
    """Whatever a program's text or its price depends on is in an entry's name: a changed builder never gets the price of the one before."""
    builder, chips = tmp_path / "_predict", tmp_path / "chips"
    shutil.copytree(pathlib.Path(price.__file__).parent, builder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(_library.chips_path(), chips)
    monkeypatch.setattr(price, "__file__", str(builder / "price.py"))
    monkeypatch.setenv("OTRN_CHIPS", str(chips))
    before = price._maker()
    assert price._maker() == before
    if change == "builder":
        (builder / "size.py").open("a").write("\n")  # model.py asks it how many tokens there are
    elif change == "chip":
        (chips / "trn1.chip").open("a").write("\n")
    elif change == "jax":
        monkeypatch.setattr(price, "_version", lambda name: "0.0")
    else:
        monkeypatch.setenv("OTRN_AUTO_CAST", "matmult")
    assert price._maker() != before


def test_fp8():
    """Products in fp8 are quicker where the chip has two rows a cell, and refused by name where it has not."""
    wide = config.model(dict(LLAMA, hidden_size=2048, intermediate_size=4096, num_attention_heads=16, num_key_value_heads=16))
    x = layout.Layout(tp=1, dp=64, micro_batch=2)
    job = job_of(wide, "trn2.48xlarge", seq=512, global_batch=256)  # two micro-batches: gradients do not meet beside them
    prices = price.Prices(job.machine)
    bf16, fp8 = (prices(compose._piece(dataclasses.replace(job, precision=p), x, "whole", 1)) for p in ("bf16", "fp8"))
    assert 0.5 * bf16["total_us"] < fp8["total_us"] < 0.97 * bf16["total_us"] and fp8["flops"] == pytest.approx(bf16["flops"], rel=0.01)
    for name in ("trn1.32xlarge", "p4d.24xlarge"):
        with pytest.raises(Fault, match=f"{name} multiplies fp8 no quicker than bf16"):
            layout.check(job_of("llama", name, precision="fp8"), layout.Layout(tp=8, dp=machines.machine(name).devices // 8))


def test_large_fleet():
    """A collective over thousands of machines takes no less than over a few, and is priced as quickly."""
    prices = price.Prices(machines.machine("trn2.48xlarge"))
    times = [prices(("collective", "all_reduce", 1 << 24, "bf16", ranks, 32))["total_us"] for ranks in (2, 128, 8192)]
    assert times == sorted(times)
    hops = [prices(("collective", "collective_permute", 1 << 20, "bf16", 2, far))["total_us"] for far in (64, 1 << 17)]
    assert hops[0] == pytest.approx(hops[1])


@pytest.mark.parametrize("cut", [dict(dp=8, tp=4, zero=1), dict(dp=8, tp=4, zero=3), dict(dp=8, cp=2, tp=2, zero=2)], ids=str)
def test_groups_by_axes(cut, monkeypatch):
    """A program that tells groups of devices by axes of the mesh is the one that lists them, to the last digit of its price."""
    job, x = job_of("llama"), layout.Layout(**cut)
    wanted, found = [compose._piece(job, x, "whole", 1), compose._update(job, x, "whole", 1)], []
    prices = price.Prices(job.machine)
    for told in (groups.by_axes, contextlib.nullcontext):
        monkeypatch.setattr(groups, "by_axes", told)
        texts = [prices._text(what) for what in wanted]
        assert all(("mesh_axes" in text) == (told is not contextlib.nullcontext) and "replica_groups" in text for text, _ in texts)
        found.append([{k: v for k, v in prices._prof(*text).items() if k != "compile_s"} for text in texts])
    assert found[0] == found[1]


def test_a_program_of_a_large_fleet_is_short():
    """The update over 262,144 devices is as long as over a few, but for digits; of more than a program can have it says so."""
    texts = []
    for nodes in (1, 4096):
        job = job_of("llama", "trn2.48xlarge", nodes, global_batch=32 * nodes)
        texts.append(price.Prices(job.machine)._text(compose._update(job, layout.Layout(tp=4, dp=16 * nodes, zero=1), "whole", 1))[0])
    assert len(texts[1]) < 1.1 * len(texts[0])
    words = ["--instance=trn2.48xlarge", "--nodes=1000000", "--tp=4", "--pp=1"]
    with pytest.raises(Fault, match="64000000 devices are more than") as fault:
        command.job_of(command.parser().parse_args([str(ROOT / "accuracy/configs/gpt2.json"), *words]))
    assert "--nodes=16384" in fault.value.hint


def test_stages_beside_each_other_share_links():
    prices = price.Prices(machines.machine("trn2.48xlarge"))
    alone, all_of_it = (prices(("collective", "collective_permute", 1 << 24, "bf16", 2, 16, n))["total_us"] for n in (1, 16))
    assert all_of_it > 3 * alone  # four devices of a chip have the links of one


@pytest.mark.parametrize("kind", KINDS)
def test_kinds(kind):
    """Devices of a group have the model's weights between them."""
    from opentrn._predict import programs

    c, cut = KINDS[kind]
    m, u = config.model(c), spec.Cut(**{"ep": 1, **cut}, seq=128)
    u = dataclasses.replace(u, sp=u.tp > 1 and m.task == "lm")
    count = lambda n: sum(compose._size(v.shape) * (u.ep if v.expert else 1) for v in programs.weights("whole", n, m, u)) * u.tp
    whole = count(1) + (m.layers - 1) * (count(2) - count(1))
    assert whole == pytest.approx(sum(size.parameters(m)), rel=0.03)
    assert programs.micro("whole", 1, m, u, ("bf16", "bf16", "fp32"), True).startswith("module @jit_")


@pytest.mark.parametrize("instance", ["trn2.3xlarge", "p5.48xlarge"])
@pytest.mark.parametrize("zero", [1, 3])
def test_experts_have_fewer_replicas(instance, zero):
    """Where each device has its own experts nobody shares their weights and moments with it: ZeRO divides what is not theirs."""
    m = config.model(dict(LLAMA, model_type="mixtral", num_local_experts=8, num_hidden_layers=2))
    job = job_of(m, instance=instance, global_batch=16)
    n = job.machine.devices
    prices, whole = price.Prices(job.machine), layout.Layout(dp=n, ep=n, zero=zero)
    held = [command.step(job, x, prices)["memory"] for x in (whole, dataclasses.replace(whole, ep=1))]
    experts = size.parameters(m)[1] / n
    assert held[0]["optimizer"] > 12 * 0.9 * experts and held[0]["optimizer"] == pytest.approx(held[1]["optimizer"], rel=0.01)  # the same, whoever divides them
    assert (zero < 3) or held[0]["weights"] > 2 * 0.9 * experts
    assert search.least_memory(job, whole) <= sum(held[0].values())


@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_same_from_jax(name):
    """A step written whole in JAX over two replicas takes what its configuration's composition does."""
    import jax
    import jax.numpy as jnp
    import opentrn
    from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec
    from opentrn._predict import model, programs

    sizes = {"llama": dict(hidden_size=1024, num_hidden_layers=3, num_attention_heads=16, num_key_value_heads=16, intermediate_size=2816), "gpt2": dict(n_embd=768, n_layer=4, n_head=12)}
    m, seq, batch = config.model({**CONFIGS[name], **sizes[name], "vocab_size": 8192}), 256, 8
    job = job_of(m, "trn1.2xlarge", seq=seq, global_batch=2 * batch)
    ours = compose.step(job, layout.Layout(dp=2, micro_batch=batch), price.Prices(job.machine))
    run, inputs, _, _ = model.piece("whole", m.layers, m, spec.Cut(seq=seq, batch=2 * batch), jnp.bfloat16)
    tree = programs.weights("whole", m.layers, m, spec.Cut(seq=seq, batch=2 * batch))
    mesh = AbstractMesh((2,), ("data",))
    same, parted = NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, PartitionSpec("data"))
    like = lambda dtype: [jax.ShapeDtypeStruct(v.shape, dtype, sharding=same) for v in tree]

    def step(params, first, second, *inputs):
        loss, grads = jax.value_and_grad(lambda p: run(model.Weights(p, jnp.bfloat16), *inputs))(params)
        wide = [g.astype(jnp.float32) for g in grads]
        scale = jnp.minimum(1.0, 1.0 / jnp.sqrt(sum((g * g).sum() for g in wide)))
        new = [programs._adamw(p.astype(jnp.float32), g * scale, (a, b), 10.0, None) for p, g, a, b in zip(params, wide, first, second)]
        return [p.astype(jnp.bfloat16) for p, _ in new], [s[0] for _, s in new], [s[1] for _, s in new], loss

    jitted = jax.jit(step, donate_argnums=(0, 1, 2), out_shardings=(same, same, same, same))
    inputs = [jax.ShapeDtypeStruct(v.shape, v.dtype, sharding=parted) for v in inputs]
    theirs = opentrn.predict(jitted, like(jnp.bfloat16), like(jnp.float32), like(jnp.float32), *inputs, instance="trn1.2xlarge")
    assert ours["step_s"] == pytest.approx(theirs["step_s"], rel=0.05)


def test_mixture_moves_rows():
    """Experts get their tokens by index: the same, forward and backward, as products with one-hot tables."""
    import jax
    import jax.numpy as jnp

    from opentrn._predict import model, spec

    m, u = spec.Model(width=8, hidden=16, experts=4, chosen=2, act="silu", gated=True), spec.Cut(seq=16)
    with jax.default_device(jax.devices("cpu")[0]):
        shapes = [(8, 4), (4, 8, 16), (4, 8, 16), (4, 16, 8)]
        given = [jax.random.normal(jax.random.key(i), s) for i, s in enumerate(shapes)]
        x = jax.random.normal(jax.random.key(9), (1, 16, 8))

        def by_tables(given, x):
            router, gate, up, down = given
            chance, pick = jax.lax.top_k(jax.nn.softmax(x[0] @ router), 2)
            hot = jax.nn.one_hot(pick, 4)
            place = (jnp.cumsum(hot.reshape(-1, 4), 0).reshape(hot.shape) - 1) * hot
            place = jax.nn.one_hot(place.sum(-1).astype(int), 10) * (place.max(-1) < 10)[..., None]  # a quarter more than 8
            inside = jnp.einsum("td,tke,tkr->erd", x[0], hot, place)
            inside = jnp.einsum("erh,ehd->erd", jax.nn.silu(jnp.einsum("erd,edh->erh", inside, gate)) * jnp.einsum("erd,edh->erh", inside, up), down)
            return jnp.einsum("erd,tk,tke,tkr->td", inside, chance, hot, place)[None]

        moved = lambda given, x: model.mixture(model.Weights(given), x, m, u)
        both = [jax.value_and_grad(lambda g, x: (f(g, x) ** 2).sum(), (0, 1))(given, x) for f in (moved, by_tables)]
    for a, b in zip(*map(jax.tree.leaves, both), strict=True):
        assert jnp.allclose(a, b, rtol=1e-3, atol=1e-3)


def test_wide_window_is_none():
    """A window no narrower than the sequence masks nothing: the same program."""
    from opentrn._predict import programs, spec

    m = spec.Model(kind="mistral", layers=1, width=64, heads=4, kv=2, head=16, hidden=128, vocab=128, norm="rms", places="rotary", bias=False)
    texts = [programs.micro("whole", 1, dataclasses.replace(m, window=w), spec.Cut(seq=32), ("bf16", "bf16", "bf16"), True) for w in (0, 32, 16)]
    assert texts[0] == texts[1] != texts[2]


def test_no_less_than_nothing_is_exposed():
    """Where more layers hide more of collectives than they add, many layers hide all of them."""

    class Hiding(price.Prices):
        def __call__(self, what):
            found = super().__call__(what)
            return {**found, "comm_us": 1e5 * what[2], "exposed_us": 1e5 / what[2]} if what[0] == "micro" else found

    job = job_of(config.model(dict(LLAMA, num_hidden_layers=12)))
    told = compose.step(job, layout.Layout(dp=32, micro_batch=1), Hiding(job.machine))
    assert 0 <= told["exposed_comm_share"] < told["comm_share"]


def test_flops_of_encoder_and_decoder():
    """What mfu counts is what the programs multiply, but for the half of the decoder's scores that a mask leaves out."""
    from opentrn._predict import machines, price, size, spec

    c = {"model_type": "t5", "d_model": 256, "num_layers": 1, "num_heads": 4, "d_kv": 64, "d_ff": 1024, "vocab_size": 1024}
    m = dataclasses.replace(config.model(c), dropout=0.0, score_dropout=0.0)
    record = price.Prices(machines.machine("trn1.32xlarge"))(("micro", "whole", 1, m, spec.Cut(seq=512), ("bf16", "bf16", "bf16"), True))
    assert record["flops"] == pytest.approx(size.model_flops(m, 512), rel=0.1)


@pytest.mark.parametrize("kind", ["llama", "gpt2", "bert", "vit", "t5"])
def test_automatic_casting(kind):
    """With --precision=amp products are of bf16 and what layers add to is fp32, as torch.autocast leaves it."""
    from opentrn._predict import programs

    m = config.model(CONFIGS.get(kind) or KINDS[kind][0])
    texts = [programs.micro("whole", 1, m, spec.Cut(seq=128, wide=wide), ("bf16", "fp32", "fp32"), False) for wide in (False, True)]
    wide = f": tensor<1x{size.tokens_of(m, 128)}x{m.width}xf32>"
    sums = [sum("stablehlo.add" in line and wide in line for line in text.splitlines()) for text in texts]
    products = [[line for line in text.splitlines() if "dot_general" in line and "xf32>, tensor" in line] for text in texts]
    assert sums[1] > sums[0] and not any(products)


def test_input():
    """A step waits for its pictures where they come slower than it computes, and for nothing where they do not."""
    large, few = (config.model(dict(KINDS["vit"][0], num_hidden_layers=1, hidden_size=64, intermediate_size=64, image_size=image, patch_size=image // 2)) for image in (1024, 16))
    slow, quick = (compose.step(job_of(m, "trn2.48xlarge", global_batch=256), layout.Layout(dp=64, micro_batch=4), price.Prices(machines.machine("trn2.48xlarge"))) for m in (large, few))
    assert slow["input_s"] == pytest.approx(4 * 4 * (3 * 1024**2 + 1) * 4 / 16e9) and slow["step_s"] == pytest.approx(slow["input_s"])
    assert "input" not in quick["seconds"] and 0 < quick["input_s"] < quick["step_s"]
    tokens = lambda name: size.input_bytes(config.model(CONFIGS.get(name) or KINDS[name][0]), 128)
    assert (tokens("llama"), tokens("bert"), tokens("t5")) == (1024, 4 * (3 * 128 + 2), 4 * (128 + 64))
