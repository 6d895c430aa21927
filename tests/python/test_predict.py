# SPDX-License-Identifier: Apache-2.0
"""opentrn predict: steps composed of priced layers against whole ones, layouts, memory, and what is refused."""

import contextlib
import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from conftest import OTRN, ROOT

sys.path.insert(0, str(ROOT / "python"))
from opentrn import _library
from opentrn._predict import command, compose, config, groups, layout, machines, money, page, price, roof, search, size, spec
from opentrn._predict.fault import Fault

LLAMA = dict(model_type="llama", hidden_size=512, intermediate_size=1024, num_hidden_layers=6, num_attention_heads=8, num_key_value_heads=8, vocab_size=2048)
CONFIGS = {
    "llama": LLAMA,
    "gpt2": dict(model_type="gpt2", n_embd=512, n_layer=6, n_head=8, vocab_size=2048, n_positions=256, resid_pdrop=0.0, attn_pdrop=0.0),
    "bert": dict(model_type="bert", hidden_size=512, num_hidden_layers=6, num_attention_heads=8, intermediate_size=2048, vocab_size=2048),
    "neox": dict(model_type="gpt_neox", hidden_size=512, num_hidden_layers=6, num_attention_heads=8, intermediate_size=2048, vocab_size=2048),
    "qwen": dict(LLAMA, model_type="qwen2", num_key_value_heads=4, tie_word_embeddings=True),
}


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("OTRN_CACHE_DIR", str(tmp_path / "cache"))


def job_of(name, instance="trn1.32xlarge", nodes=1, **more):
    m = config.model(CONFIGS[name]) if isinstance(name, str) else name
    return layout.Job(m, machines.machine(instance), nodes, **{"seq": 256, "global_batch": 64, **more})


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
    for name, size in zip(("SUM", "GATHER"), compose.BUCKETS):
        assert f"#define {name}_BYTES ({size >> 20}u << 20)" in text


def test_whole_stages():
    """Stages of a pipeline likewise."""
    job, x = job_of("llama", global_batch=32), layout.Layout(tp=2, pp=4, dp=4)
    prices = price.Prices(job.machine)
    parts = compose.Parts(job, x, prices)
    for kind in ("first", "middle", "last"):
        close(parts, prices, job, x, kind, 3)


@pytest.mark.parametrize("schedule, chunks", [("gpipe", 1), ("1f1b", 1), ("interleaved", 2)])
@pytest.mark.parametrize("pp, micros", [(2, 8), (4, 16), (8, 32), (4, 200)])
def test_schedule(schedule, chunks, pp, micros):
    """Even stages take what the formulae of the schedules say, and pass on once for each turn of the slowest."""
    x = layout.Layout(pp=pp, schedule=schedule, chunks=chunks)
    waits, passing = compose.pipeline([3.0] * pp, micros, x, 0.125, 0.3)
    assert waits == pytest.approx(3.0 * (pp - 1) / chunks) and passing == pytest.approx(0.25 * (micros * chunks + pp - 1))


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
    assert own < 0.6 * every  # of what is gathered before a product nothing is kept (0.67 with that)
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


@pytest.mark.parametrize(
    "change, text, hint",
    [
        ({"dp": 3}, "is 12 devices; 1 of trn1.32xlarge have 32", "--dp=8"),
        ({"tp": 16, "dp": 2}, "8 heads cannot be shared by tp 16", "--tp=8"),
        ({"micro_batch": 3}, "global batch of 64 cannot be shared", "--global-batch=72"),
        ({"pp": 8, "dp": 1}, "6 layers cannot be 8 stages", "--pp=4 --dp=2"),
        ({"tp": 3, "dp": 10}, "is 30 devices; 1 of trn1.32xlarge have 32", "--tp=4 --dp=8"),
        ({"ep": 2}, "ep 2 needs experts", "--ep=1"),
        ({"zero": 4}, "--zero=4", ""),
    ],
)
def test_refused(change, text, hint):
    with pytest.raises(Fault) as fault:
        layout.check(job_of("llama"), dataclasses.replace(layout.Layout(tp=4, dp=8), **change))
    assert text in str(fault.value) and hint in fault.value.hint


def predict(tmp_path, *words, c=LLAMA):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(c))
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    return subprocess.run([sys.executable, "-m", "opentrn", "predict", str(path), *words], capture_output=True, text=True, env=env)


KEYS = ("step_s tokens_per_s samples_per_s usd_per_1m_tokens mfu comm_share exposed_comm_share bubble_share hbm_peak_bytes fits expected_error compile_s").split()


def test_command(tmp_path):
    words = ["--instance=trn1.32xlarge", "--tp=4", "--pp=1", "--seq=256", "--global-batch=64"]
    ran = predict(tmp_path, *words, "--zero=1", "--recompute=selective", "--precision=bf16", "--dropout=0.1", "--json")
    assert ran.returncode == 0, ran.stderr
    r = json.loads(ran.stdout)
    assert all(r[k] is not None for k in KEYS) and r["layout"]["dp"] == 8
    assert r["step_s"] == pytest.approx(sum(r["seconds"].values())) and r["tokens_per_s"] == pytest.approx(64 * 256 / r["step_s"])
    assert r["usd_per_1m_tokens"] == pytest.approx(21.5 / 3600 / r["tokens_per_s"] * 1e6)
    ran = predict(tmp_path, *words, "--max-comm=0.1%")
    assert ran.returncode == 3 and "more than --max-comm" in ran.stderr and "fits           yes" in ran.stdout


def test_as_of(tmp_path):
    """The software of a month makes all of a step's time what it was worth then, shares stay; published errors are told with it."""
    sys.path.insert(0, str(ROOT / "accuracy"))
    import software

    at = software.speeds(software.measured(software.published()))
    words = ["--instance=trn1.32xlarge", "--tp=4", "--pp=2", "--seq=256", "--global-batch=64"]
    now, then = (json.loads(predict(tmp_path, *words, *more, "--json").stdout) for more in ([], ["--as-of=2023-10"]))
    assert then["as_of"] == {"month": "2023-09", "speed": pytest.approx(at["2023-09"], abs=5e-4)} and "as_of" not in now and 0.5 < then["as_of"]["speed"] < 1
    longer = {k: pytest.approx(v / then["as_of"]["speed"]) for k, v in now["seconds"].items()}
    assert then["seconds"] == longer and then["step_s"] == pytest.approx(sum(then["seconds"].values()))
    assert then["tokens_per_s"] == pytest.approx(64 * 256 / then["step_s"]) and then["rounds"]["s"][0] > now["rounds"]["s"][0]
    assert all(then[k] == pytest.approx(now[k]) for k in ("comm_share", "exposed_comm_share", "bubble_share", "hbm_peak_bytes"))
    assert "as-of=2023-09" in predict(tmp_path, *words, "--as-of=2023-09").stdout
    for month, instance, text in (("2023-13", "trn1.32xlarge", "a month is needed"), ("2021-01", "trn1.32xlarge", "--as-of=2022-09"), ("2024-09", "trn2.48xlarge", "known of trn1, not of trn2.48xlarge"), ("2024-09", "p5.48xlarge", "not of p5.48xlarge")):
        ran = predict(tmp_path, f"--instance={instance}", "--tp=4", "--pp=1", "--seq=256", f"--as-of={month}")
        assert ran.returncode == 2 and text in ran.stderr and not ran.stdout, ran.stderr


def test_speed_of_software():
    """Speeds of configurations and months that were made up are found again; a month that nothing joins to the newest has none."""
    sys.path.insert(0, str(ROOT / "accuracy"))
    import software

    speed, own = {"2022-01": 0.5, "2023-01": 0.8, "2024-01": 1.0}, {"a": 3.0, "b": 70.0}
    rows = [{"month": m, "what": w, "published": str(own[w] * v)} for w in own for m, v in speed.items() if (w, m) != ("b", "2024-01")]
    assert software.speeds(rows) == pytest.approx(speed)
    apart = [{"month": "2021-01", "what": "c", "published": "9"}, {"month": "2021-02", "what": "c", "published": "9.001"}]
    assert software.speeds(rows + apart) == pytest.approx(speed) and software.measured(apart) == apart[:1]


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


def test_no_price(tmp_path):
    ran = predict(tmp_path, "--instance=trn2u.48xlarge", "--tp=4", "--pp=1", "--seq=256", "--json")
    assert ran.returncode == 0 and json.loads(ran.stdout)["usd_per_1m_tokens"] is None
    ran = predict(tmp_path, "--instance=trn2u.48xlarge", "--seq=256", "--search", "--by=usd")
    assert ran.returncode == 2 and "--price=USD/h" in ran.stderr and not ran.stdout


@pytest.mark.parametrize(
    "words, c, text",
    [
        (["--instance=trn1.32xlarg", "--tp=1", "--pp=1"], LLAMA, "did you mean trn1.32xlarge"),
        (["--instance=trn1.32xlarge"], {"model_type": "mamba"}, 'model_type "mamba" is not known'),
        (["--instance=trn1.32xlarge"], {"model_type": "llama"}, "is missing"),
        (["--instance=trn1.32xlarge", "--tp=0", "--pp=1"], LLAMA, "--tp=0"),
        (["--instance=trn1.32xlarge", "--tp=4", "--pp=1", "--chunks=2"], LLAMA, "--chunks=1, or --pp=2"),
        (["--instance=trn1.32xlarge", "--tp=5", "--pp=1"], LLAMA, "--tp=4 --dp=8"),
        (["--instance=trn1.32xlarge"], {"model_type": "roberta"}, "roberta bert's"),
        (["--instance=trn1.32xlarge", "--tp=4", "--pp=1", "--max-comm=7"], LLAMA, "a share of the step is needed"),
        ([], LLAMA, "--instance"),
        (["--instance=p5.48xlarge"], dict(LLAMA, hidden_size="big"), "numbers are written without quotes"),
        (["--instance=p5.48xlarge"], dict(LLAMA, hidden_size=2048 * 10**7), "is the unit right?"),
        (["--instance=p5.48xlarge"], {"model_type": ["llama"]}, "is not known"),
        (["--instance=p5.48xlarge", "--nodes=99999999999999"], LLAMA, "1000000 at most"),
        (["--instance=p5.48xlarge", "--price=nan"], LLAMA, "dollars an hour above 0"),
        (["--instance=p5.48xlarge", "--days=-1"], LLAMA, "--days=-1: a number above 0"),
        (["--instance=p5.48xlarge", "--days=1", "--mtbf-hours=0"], LLAMA, "--mtbf-hours=0: a number above 0"),
        (["--instance=p5.48xlarge", "--lora=-4"], LLAMA, "a rank above 0"),
        (["--instance=p5.48xlarge", "--tp=8", "--pp=1", "--report=/tmp"], LLAMA, "/tmp is a folder"),
    ],
)
def test_bad_words(tmp_path, words, c, text):
    ran = predict(tmp_path, *words, c=c)
    assert ran.returncode == 2 and text in ran.stderr and not ran.stdout, ran.stderr


def test_does_not_fit(tmp_path):
    c = dict(LLAMA, hidden_size=2048, intermediate_size=8192, num_hidden_layers=40, num_attention_heads=16, num_key_value_heads=16)
    ran = predict(tmp_path, "--instance=trn1.2xlarge", "--tp=1", "--pp=1", "--seq=256", "--json", c=c)
    r = json.loads(ran.stdout)
    assert ran.returncode == 0 and not r["fits"] and r["hbm_peak_bytes"] > 2**34 and r["knob"]


def test_search():
    job = job_of("llama", seq=128)
    prices = price.Prices(job.machine)
    found = search.search(job, {"micro_batch": 1, "recompute": "none", "tp": None, "pp": None}, prices, "time")
    times = [r["step_s"] for _, r in found.rows]
    assert found.tried == len(times) > 4 and times == sorted(times)
    every = {x.text() for x in search.candidates(job, {"micro_batch": 1, "recompute": "none"})}
    assert {x.text() for x, _ in found.rows} <= every
    for x, r in found.rows:
        assert search.least_time(job, x) < r["step_s"] and search.least_memory(job, x) <= r["hbm_peak_bytes"]
    x, r = next((x, r) for x, r in found.rows if x.zero == 1 and x.pp == 1)  # what was left out beside it takes longer
    more = dataclasses.replace(x, zero=3)
    assert more.text() in every - {y.text() for y, _ in found.rows} and compose.step(job, more, prices)["step_s"] > r["step_s"]


@pytest.mark.parametrize("given, by, fits", [({}, "time", 0), ({}, "memory", 0), ({"zero": 3}, "time", 0), ({}, "time", 3)])
def test_search_tries_zero_3_in_pipelines(given, by, fits):
    """Where it is asked for, or where nothing else fits."""
    found = lambda job, x, prices: {"fits": x.zero >= fits and (fits == 0 or x.pp > 1), "step_s": 1.0, "hbm_peak_bytes": 2}

    class Unpriced:  # every layout needs programs of its own
        known: dict = {}

        def all(self, wanted):
            pass

        def __call__(self, what):
            raise Fault("not priced")

    rows = search.search(job_of("llama", seq=128), {"micro_batch": 1, **given}, Unpriced(), by, step=found).rows
    tried = sum(x.zero == 3 and x.pp > 1 for x, _ in rows)
    assert tried > 4 if by == "memory" or fits == 3 or "zero" in given else not tried


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


def test_function():
    import jax
    import jax.numpy as jnp
    import opentrn
    from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec

    mesh = AbstractMesh((4,), ("data",))
    at = lambda shape, *spec: jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=NamedSharding(mesh, PartitionSpec(*spec)))
    loss = lambda w, x: (jnp.tanh(x @ w).astype(jnp.float32) ** 2).sum()
    step = lambda w, x: w - 0.01 * jax.grad(loss)(w, x)
    r = opentrn.predict(step, at((512, 512)), at((1024, 512), "data"), instance="trn1.2xlarge", nodes=2, samples=1024)
    assert all(k in r for k in KEYS) and r["devices"] == 4 and r["comm_share"] > 0 and r["samples_per_s"] == pytest.approx(1024 / r["step_s"])
    with pytest.raises(ValueError, match="program of 4 devices; 3 of trn1.2xlarge have 6; --nodes=2"):
        opentrn.predict(step, at((512, 512)), at((1024, 512), "data"), instance="trn1.2xlarge", nodes=3)
    with pytest.raises(ValueError, match="without a mesh"):
        plain = jax.ShapeDtypeStruct((512, 512), jnp.bfloat16)
        opentrn.predict(step, plain, plain, instance="trn1.2xlarge", nodes=2)


KINDS = {
    "mixtral": (dict(LLAMA, model_type="mixtral", num_local_experts=8), dict(tp=2, ep=4)),
    "mistral": (dict(LLAMA, model_type="mistral", sliding_window=64), dict(tp=8)),
    "qwen3": (dict(LLAMA, model_type="qwen3", head_dim=64, num_key_value_heads=2), dict(tp=2)),
    "qwen3_moe": (dict(LLAMA, model_type="qwen3_moe", num_experts=8, num_experts_per_tok=2, moe_intermediate_size=256), dict(tp=2)),
    "gpt_neox": (CONFIGS["neox"], dict(tp=4)),
    "bert": (CONFIGS["bert"], dict(tp=1)),
    "vit": (dict(model_type="vit", hidden_size=256, num_hidden_layers=6, num_attention_heads=4, intermediate_size=512), dict(tp=1)),
    "t5": (dict(model_type="t5", num_layers=6), dict(tp=2)),
    "context": (LLAMA, dict(tp=2, cp=2)),
}


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


def test_rows_of_experts_are_moved():
    """A row for each expert that a token goes to, read and written on the way there, on the way back, and twice as often where it is sent."""
    m = config.model(dict(LLAMA, model_type="mixtral", num_local_experts=8))
    job = job_of(m, instance="p5.48xlarge")
    here, sent = (roof.parts(job, layout.Layout(dp=8, ep=ep))["routing"] for ep in (1, 8))
    assert here == pytest.approx(m.layers * 1.25 * m.chosen * 256 * m.width * 2 * 8 / job.machine.hbm) and sent == pytest.approx(2 * here)
    assert "routing" not in roof.parts(job_of("llama", instance="p5.48xlarge"), layout.Layout(dp=8))


def test_experts_wait_for_their_host():
    """What routing launches takes as long for few tokens as for many, so that few wait for it; what is compiled whole waits for nobody, nor do layers without experts."""
    m = config.model(dict(LLAMA, model_type="mixtral", num_local_experts=8))
    share = lambda software, micro, m=m: (lambda told: told.get("launching", 0.0) / sum(told.values()))(
        roof.parts(job_of(m, instance="p5.48xlarge", software=software), layout.Layout(dp=8, ep=8, micro_batch=micro) if m.experts else layout.Layout(dp=8)))  # fmt: skip
    assert share("tuned", 1) > 0.9 > 0.05 > share("tuned", 4096) > 0 == share("compiled", 1) == share("tuned", 1, config.model(LLAMA))
    few = roof.parts(job_of(m, instance="p5.48xlarge", software="tuned"), layout.Layout(dp=8, ep=8))
    alone = sum(v for k, v in few.items() if k != "launching")
    assert sum(few.values()) == pytest.approx((alone**2 + (m.layers * roof.soft().experts_s) ** 2) ** 0.5)


@pytest.mark.parametrize("recompute", ["none", "full"])
def test_positions_are_cut(recompute):
    """What lies between products, and a layer's input, is whole on each device of a tensor-parallel group unless positions are cut, on accelerators too."""
    job = job_of("llama", instance="p5.48xlarge")
    alone, cut, whole = (roof.step(job, layout.Layout(tp=tp, dp=8 // tp, recompute=recompute, sp=sp))["memory"]["activations"] for tp, sp in ((1, None), (8, True), (8, False)))
    assert cut == pytest.approx(alone / 8, rel=0.01)
    assert whole == alone if recompute == "full" else cut < whole < alone


def test_accelerators(tmp_path):
    """Roofs of other machines: as published, and the same words for them."""
    sys.path.insert(0, str(ROOT / "accuracy"))
    import gpus

    errors = [abs(float(r["published"]) / gpus.predicted(r) - 1) for r in gpus.rows()]
    assert len(errors) > 80 and sum(errors) / len(errors) < 0.12
    rows = gpus.single_rows()
    held = [r for r in rows if r["held"] == "1"]
    assert len(rows) == 17 and len(held) == 7 and gpus.mean(rows) < 12 and gpus.mean(held) < 12
    ran = predict(tmp_path, "--instance=p5.48xlarge", "--nodes=2", "--tp=8", "--pp=1", "--seq=256", "--json")
    r = json.loads(ran.stdout)
    assert ran.returncode == 0 and all(r[k] is not None for k in KEYS) and r["layout"]["dp"] == 2
    ran = predict(tmp_path, "--instance=p5en.48xlarge", "--seq=256", "--global-batch=64")
    assert ran.returncode == 0 and "layouts priced" in ran.stdout


def test_page(tmp_path):
    """One file that needs nothing else, and the same numbers beside it; nothing where it cannot be written."""
    words = ["--instance=trn1.32xlarge", "--tp=4", "--pp=2", "--seq=256", "--global-batch=64", "--days=14"]
    ran = predict(tmp_path, *words, f"--report={tmp_path / 'page.html'}", "--json")
    assert ran.returncode == 0, ran.stderr
    r, page = json.loads(ran.stdout), (tmp_path / "page.html").read_text()
    assert f"{r['step_s']:.4g} s" in page and "http" not in page and "<script" not in page and "nan" not in page
    assert [h in page for h in ("A step", "Engines", "Memory of a device", "Collectives", "Roofs", "Costs")] == [True] * 6
    beside = json.loads((tmp_path / "page.json").read_text())
    assert beside["step_s"] == r["step_s"] and beside["run"]["days"] == 14 and (tmp_path / "page.csv").read_text().count("\n") == 2
    ran = predict(tmp_path, *words, f"--report={tmp_path / 'none' / 'page.html'}")
    assert ran.returncode == 2 and not list(tmp_path.glob("*.part"))


def test_steps_published_elsewhere(tmp_path):
    """GPUs and TPUs: rows that numbers are fitted to, and rows that none is."""
    sys.path.insert(0, str(ROOT / "accuracy"))
    import others

    others.configs(tmp_path)
    off: dict[bool, list[float]] = {True: [], False: []}
    for row in others.rows():
        if "=trn" not in row["words"]:
            job, told = others.predicted(row, tmp_path, {})
            off[bool(row["fitted"])].append(abs(float(row["published"]) / told["tokens_per_s"] - 1))
            assert told["expected_error"] is not None
    assert [len(v) for v in off.values()] == [38, 164] and all(sum(v) / len(v) < 0.12 for v in off.values())


def test_what_nobody_compiled_costs_no_compiling(tmp_path):
    """Text and page of a GPU say which software they tell of, and nothing of compiling or a cache, which is not priced."""
    shape = ["--instance=p5.48xlarge", "--tp=1", "--pp=1", "--seq=256", "--global-batch=64"]
    quick, usual = (predict(tmp_path, *shape, f"--software={k}").stdout for k in ("tuned", "compiled"))
    assert "software=tuned" in quick and "software=compiled" in usual and "compiling      not priced" in quick
    assert "expected error not known" not in quick + usual and "expected error not known" in predict(tmp_path, "--instance=mi300x-8", *shape[1:]).stdout
    ran = predict(tmp_path, *shape, "--days=14", f"--report={tmp_path / 'page.html'}")
    assert ran.returncode == 0 and "goodput" in ran.stdout and "cache" not in ran.stdout, ran
    page = (tmp_path / "page.html").read_text()
    assert ", compiled software;" in page and "without a cache" not in page


def test_alone(tmp_path):
    """What has no network has no page of more machines, and more of them is no advice."""
    words = ["--instance=h200-1", "--seq=256", "--global-batch=8"]
    ran = predict(tmp_path, *words, f"--report={tmp_path / 'page.html'}")
    assert ran.returncode == 0 and "Fewer and more machines" not in (tmp_path / "page.html").read_text(), ran
    large = dict(LLAMA, hidden_size=8192, num_attention_heads=64, num_key_value_heads=64, intermediate_size=28672, num_hidden_layers=80)
    ran = predict(tmp_path, *words, "--tp=1", "--pp=1", c=large)
    assert ran.returncode == 0 and "fits           no" in ran.stdout and "--nodes" not in ran.stdout, ran
    ran = predict(tmp_path, *words, c=large)
    assert ran.returncode == 2 and "141 GiB" in ran.stderr and "hint: a larger instance" in ran.stderr, ran


def test_parts_have_colours_of_their_own():
    """Whatever their order, and beside those whose colour is the same in every picture."""
    from opentrn._predict import page

    for parts in (("weights", "optimizer", "gradients", "activations", "work"), ("input", "micro_batches", "bubble", "reduction"), ("all_reduce", "all_gather")):
        keys = re.findall(r"class=key style=.background:([^;']*?)[;'\"]", page._bar({k: 1.0 for k in parts}, "GiB"))
        assert len(keys) == len({*keys}) == len(parts), (parts, keys)


def test_page_of_a_gpu_has_a_roof():
    """The micro-batch is below the roof, at the FLOP a second that its operations give."""
    job, x = job_of("llama", "p5.48xlarge"), layout.Layout(dp=8)
    told = roof.step(job, x)
    at = told["intensity"]
    assert at["flops_per_s"] == pytest.approx(at["flops"] / sum(told["operations"].values())) and at["flops_per_s"] < min(job.machine.flops, at["flops"] / at["hbm_bytes"] * job.machine.hbm)
    assert f">{at['flops_per_s'] / 1e12:.0f} TFLOP/s at" in page._roof(told, job)


def test_page_roof():
    """The roof is that of the products' type."""

    at = {"intensity": {"flops": 1e12, "hbm_bytes": 5e9, "flops_per_s": 1e14}}
    for kind, peak in (("bf16", 1), ("fp8", 2)):
        job = job_of("llama", "trn2.48xlarge", precision=kind)
        assert f">{peak * job.machine.flops / 1e12:.0f} TFLOP/s, {kind}<" in page._roof(at, job)


def test_money(tmp_path):
    from opentrn._predict import money

    r = {"nodes": 64, "tokens_per_s": 1e6, "usd_per_hour": 3600.0, "compile_s": 100.0}
    run = money.run_of(r, money.Run(starts=10), tokens=1e12)
    assert run["usd"] == pytest.approx(run["days"] * 86400) and run["days"] * 86400 > 1e6 and 0.9 < run["goodput"] < 1
    shares = [money.goodput(money.Run(every_s=run["checkpoint_every_s"] * f), 64)[0] for f in (0.5, 1, 2)]
    assert max(shares) == shares[1]  # as often as loses least
    assert money.saved(r, money.Run(starts=10), 14) == pytest.approx(900)
    assert money.measured("p5.48xlarge:98000tok/s") == ("p5.48xlarge", 98000, "tok/s")
    shares = {"comm_share": 0.2, "exposed_comm_share": 0.1, "bubble_share": 0.6}
    told = {"step_s": 2.0, "tokens_per_s": 50.0, "samples_per_s": 5.0, "mfu": 0.4, "usd_per_1m_tokens": 8.0, **shares}
    for value, unit in ((100.0, "tok/s"), (10.0, "samples/s"), (1000.0, "ms"), (1.0, "s")):
        now = money.replaced(told, value, unit)
        assert (now["step_s"], now["tokens_per_s"], now["samples_per_s"], now["mfu"], now["usd_per_1m_tokens"]) == (1.0, 100.0, 10.0, 0.8, 4.0)
        assert (now["comm_share"], now["exposed_comm_share"], now["bubble_share"], now["predicted_s"]) == (0.4, 0.2, 1.0, 2.0)  # seconds as they were
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA))
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    opentrn = lambda *words: subprocess.run([sys.executable, "-m", "opentrn", *words], capture_output=True, text=True, env=env)
    shape = ["--tp=8", "--pp=1", "--seq=256", "--global-batch=64"]
    ran = opentrn("bakeoff", str(path), "--instance=p5.48xlarge,p4d.24xlarge", "--nodes=2", *shape, "--measured=p4d.24xlarge:98000tok/s", "--json")
    a, b = json.loads(ran.stdout)
    assert b["tokens_per_s"] == 98000 and a["break_even_usd_per_hour"] == pytest.approx(55.04)
    assert b["break_even_usd_per_hour"] * 2 / 3600 / 98000 * 1e6 == pytest.approx(a["usd_per_1m_tokens"])
    more = a["sensitivity"]
    assert more["--precision=bf16"] == 0 and more["--precision=fp32"] < 0 and more["twice the batch"] > more["half the batch"]
    assert set(b["sensitivity"].values()) == {"measured"}
    assert opentrn("cost", str(path), "--instance=p5.48xlarge", *shape).returncode == 2
    ran = opentrn("cost", str(path), "--instance=mi300x-8", *shape, "--days=14")
    assert ran.returncode == 2 and "--price=USD/h" in ran.stderr
    ran = opentrn("cost", str(path), "--instance=p5.48xlarge", *shape, "--days=14", "--json")
    assert json.loads(ran.stdout)["usd"] == pytest.approx(55.04 * 24 * 14)
    ran = opentrn("cost", str(path), "--instance=p5.48xlarge", *shape, "--tokens=1e9", "--epoch-tokens=2.5e8", "--json")
    found = json.loads(ran.stdout)
    assert found["epochs"] == 4 and found["usd_per_epoch"] == pytest.approx(found["usd"] / 4)
    assert opentrn("cost", str(path), "--instance=p5.48xlarge", *shape, "--days=1", "--epoch-tokens=0").returncode == 2
    assert opentrn("predict", str(path), "--instance=p5.48xlarge", *shape, "--measured=fast").returncode == 2


@pytest.mark.parametrize("nodes, mtbf_hours, pause", [(64, 4000, 60), (1024, 4000, 60), (4096, 4000, 60), (16, 500, 300)])
def test_goodput(nodes, mtbf_hours, pause):
    """What is told of days is what they are, event by event: work, pauses, failures at any time, what is done again."""
    import random

    from opentrn._predict import money

    run, draw = money.Run(mtbf_hours, pause), random.Random(19)
    share, every = money.goodput(run, nodes)
    mean, now, kept = mtbf_hours * 3600 / nodes, 0.0, 0.0
    fails = draw.expovariate(1 / mean)
    while now < 20000 * mean:
        if now + every + pause < fails:
            now, kept = now + every + pause, kept + every
            continue
        now = fails
        while fails <= now:  # until it is up again without another
            fails = now + draw.expovariate(1 / mean)
            if fails < now + money.RESTART_S:
                now = fails
        now += money.RESTART_S
    assert kept / now == pytest.approx(share, rel=0.01)
    assert all(money.goodput(money.Run(mtbf_hours, pause, every * f), nodes)[0] < share for f in (0.8, 1.25))


def trained(draw, days, compile_s, nodes, mtbf_hours, pause, every):
    """Seconds of work that a run of days keeps, event by event: each machine fails on its own, at any time; the last interval is saved when the run ends."""
    clocks = [draw.expovariate(1 / (mtbf_hours * 3600)) for _ in range(nodes)]  # when each fails next
    now, kept, end = compile_s, 0.0, days * 86400
    while now < end:
        fails = min(clocks)
        if fails < now:  # before it trained, or while it started again
            clocks[clocks.index(fails)] = fails + draw.expovariate(1 / (mtbf_hours * 3600))
            now = max(now, fails + money.RESTART_S)
        elif min(now + every + pause, end) <= fails:
            kept += min(every, end - now)
            now += every + pause
        else:  # what it did since is lost
            now = fails + money.RESTART_S
            clocks[clocks.index(fails)] = fails + draw.expovariate(1 / (mtbf_hours * 3600))
    return kept


@pytest.mark.parametrize("days, nodes, mtbf_hours, pause", [(14, 64, 1000, 60), (14, 16, 400, 300), (60, 4, 200, 30)])
def test_goodput_of_a_run(days, nodes, mtbf_hours, pause):
    """What a run of days trains, and what a token of it costs, by the configuration's command and by the program's: both as in 200 runs of single machines."""
    import random

    r = {"nodes": nodes, "tokens_per_s": 1000.0, "usd_per_hour": 21.5 * nodes, "compile_s": 900.0}
    run = money.Run(mtbf_hours, pause)
    told, draw = money.run_of(r, run, days=days), random.Random(5)
    kept = [trained(draw, days, r["compile_s"], nodes, mtbf_hours, pause, told["checkpoint_every_s"]) for _ in range(200)]
    lost = lambda seconds: 1 - seconds / (days * 86400)
    assert lost(told["tokens"] / 1000) == pytest.approx(lost(sum(kept) / len(kept)), rel=0.08)
    assert told["usd_per_1m_tokens"] == pytest.approx(told["usd"] / (sum(kept) / len(kept) * 1000) * 1e6, rel=0.01)
    words = ["cost", str(ROOT / "tests" / "spmd" / "product.mlir"), "--instance=trn1.2xlarge", "--nodes=2", "--tokens=64", f"--days={days}"]
    ran = subprocess.run([OTRN, *words, f"--mtbf-hours={mtbf_hours * 2 / nodes}", f"--checkpoint-s={pause}", "--json"], capture_output=True, text=True)
    same = json.loads(ran.stdout)  # machines that fail as often together
    assert [same[k] for k in ("goodput", "checkpoint_every_s")] == [pytest.approx(told[k], rel=1e-6) for k in ("goodput", "checkpoint_every_s")]


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


def test_cache_folder(monkeypatch):
    """An empty variable is none, as for the library."""
    from opentrn import _library

    monkeypatch.setenv("HOME", "/h")
    for name, value, wanted in (("OTRN_CACHE_DIR", "", "/h/.cache/opentrn"), ("XDG_CACHE_HOME", "", "/h/.cache/opentrn"), ("XDG_CACHE_HOME", "/x", "/x/opentrn"), ("OTRN_CACHE_DIR", "/c", "/c")):
        monkeypatch.setenv(name, value)
        assert str(_library.cache_path()) == wanted


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


def test_no_collective_is_exposed_for_longer_than_it_takes():
    """What of collectives is not hidden is shared out over their kinds, and adds up; here two run beside each other on the two cores of a device."""
    import jax
    import jax.numpy as jnp
    import opentrn
    from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec

    mesh = AbstractMesh((2, 4), ("dp", "tp"))
    arg = lambda shape, *spec: jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=NamedSharding(mesh, PartitionSpec(*spec)))
    loss = lambda w, x: ((jax.nn.gelu(x @ w[0]) @ w[1]).astype(jnp.float32) ** 2).mean()
    step = lambda w, x: jax.tree.map(lambda p, g: p - 0.01 * g, w, jax.grad(loss)(w, x))
    told = opentrn.predict(step, [arg((2048, 8192), None, "tp"), arg((8192, 2048), "tp", None)], arg((4096, 2048), "dp"), instance="trn2.48xlarge", samples=4096)
    kinds = told["comm"]["kinds"]
    assert len(kinds) == 2 and all(k["exposed_us"] <= k["busy_us"] * 1.00001 for k in kinds), kinds
    assert sum(k["exposed_us"] for k in kinds) == pytest.approx(told["comm"]["exposed_us"], rel=1e-4)


def test_flops_of_encoder_and_decoder():
    """What mfu counts is what the programs multiply, but for the half of the decoder's scores that a mask leaves out."""
    from opentrn._predict import machines, price, size, spec

    c = {"model_type": "t5", "d_model": 256, "num_layers": 1, "num_heads": 4, "d_kv": 64, "d_ff": 1024, "vocab_size": 1024}
    m = dataclasses.replace(config.model(c), dropout=0.0, score_dropout=0.0)
    record = price.Prices(machines.machine("trn1.32xlarge"))(("micro", "whole", 1, m, spec.Cut(seq=512), ("bf16", "bf16", "bf16"), True))
    assert record["flops"] == pytest.approx(size.model_flops(m, 512), rel=0.1)


def test_interrupted(tmp_path, monkeypatch, capsys):
    """Ctrl-C, while layouts are searched and while the report is written: one line, status 130, no half files."""
    import pathlib

    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIGS["llama"]))
    words = [str(path), "--instance=p5.48xlarge", "--tp=1", "--pp=1", "--seq=256", "--global-batch=64", f"--report={tmp_path / 'page.html'}"]

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    real = pathlib.Path.write_text

    def late(self, text, **words):
        return interrupted() if self.name == "page.csv.part" else real(self, text, **words)

    with monkeypatch.context() as patch:
        patch.setattr(search, "search", interrupted)
        assert command.main([*words, "--search"]) == 130
    monkeypatch.setattr(pathlib.Path, "write_text", late)
    assert command.main(words) == 130
    assert [p.name for p in tmp_path.iterdir()] == ["config.json"]
    assert [line[:21] for line in capsys.readouterr().err.splitlines()] == ["opentrn: interrupted;"] * 2


@pytest.mark.parametrize("name, instance, zero", [("llama", "p5.48xlarge", 3), ("gpt2", "p4de.24xlarge", 0)])
def test_roofs_of_programs_and_configurations(name, instance, zero, tmp_path):
    """A step given to otrn as a program takes what its configuration does, within 5 %, and both say how far off they may be."""
    sys.path.insert(0, str(ROOT / "accuracy"))
    import roofs

    from opentrn._predict import errors

    sizes = {"llama": dict(hidden_size=2048, num_hidden_layers=12, num_attention_heads=16, num_key_value_heads=16, intermediate_size=5632), "gpt2": dict(n_embd=1024, n_layer=12, n_head=16, n_positions=1024)}
    m = config.model({**CONFIGS[name], **sizes[name], "vocab_size": 32000})
    job, x = job_of(m, instance, seq=1024, global_batch=128), layout.Layout(dp=8, micro_batch=16, zero=zero)
    path = tmp_path / "step.mlir"
    path.write_text(roofs.text(job, x))
    ours, theirs = roof.step(job, x), roofs.told(path, job)
    assert theirs["step_s"] == pytest.approx(ours["step_s"], rel=0.05)
    assert theirs["fits"] and 0 < theirs["expected_error"] < 0.25 and 0 < errors.expected(job, x, ours)["expected_error"] < 0.25
    assert {r["chip"] for r in errors._rows() if r["id"] in theirs["expected_error_rows"]} == {job.machine.chip}


def test_one_table_of_roofs(tmp_path, monkeypatch):
    """What software does is read from the table by both: nothing of it stands in the code; a folder's own table comes first."""

    job, x = job_of("llama", "p5.48xlarge"), layout.Layout(dp=8)
    before = roof.step(job, x)["seconds"]["host"]
    assert before == roof.soft().host_s
    text = (ROOT / "chips" / "accelerators.table").read_text()
    (tmp_path / "accelerators.table").write_text(text + "host_s = 0.5\nkernel_s = 1\n")
    monkeypatch.setenv("OTRN_CHIPS", str(tmp_path))
    assert roof.step(job, x)["seconds"]["host"] == 0.5
    words = ["predict", str(ROOT / "tests/tools/data/roof.mlir"), "--instance=p5.48xlarge", "--json"]
    ran = subprocess.run([ROOT / "build" / "otrn", *words], capture_output=True, text=True)
    assert json.loads(ran.stdout)["step_s"] == pytest.approx(0.5, rel=0.01)


REFUSED = {
    ("--instance=h200-1", "--nodes=8"): "h200-1 has no network",
    ("--instance=H100",): "did you mean p5.48xlarge?",
    ("--instance=P5.48XLARGE",): "did you mean p5.48xlarge?",
    ("--price=1e300",): "dollars an hour above 0",
    ("--price=nan",): "dollars an hour above 0",
    ("--days=1e15",): "36525 at most",
    ("--days=3", "--tokens=1e9"): "one tells the other",
    ("--days=3", "--starts=0"): "--starts=0",
    ("--top=-1", "--search"): "--top=-1",
    ("--global-batch=99999999999999999999",): "2147483648 at most",
    ("--report=",): "a file is needed",
    ("--instnce=trn1.32xlarge",): "did you mean --instance?",
    ("--quarter",): "there is no option --quarter",
    ("--global-batch=15",): "--global-batch=16",
    ("--measured=p5.48xlarg:3ms",): "did you mean p5.48xlarge?",
    ("--measured=p5.48xlarge:3",): "what a step of it takes",
    ("--measured=p5.48xlarge:infms",): "what a step of it takes",
}


@pytest.mark.parametrize("words", REFUSED, ids=" ".join)
def test_refused_on_roofs(words, tmp_path, capsys):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA))
    assert command.main([str(path), "--instance=p5.48xlarge", "--tp=1", "--pp=1", "--seq=256", *words]) == 2
    assert REFUSED[words] in capsys.readouterr().err


@pytest.mark.parametrize("words, hint", [(["--ep=3"], "--ep=2 or --ep=4"), (["--tp=5"], "--tp=4"), (["--pp=9", "--tp=1"], "--pp=")], ids=lambda v: v[0])
def test_search_that_cannot(words, hint, tmp_path, capsys):
    """Where nothing divides, the word that is the reason is named, with values that do."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**LLAMA, "model_type": "mixtral", "num_local_experts": 8}))
    assert command.main([str(path), "--instance=p5.48xlarge", "--seq=256", "--global-batch=64", "--search", *words]) == 2
    told = capsys.readouterr().err
    assert f"with {words[0]}\n" in told and hint in told, told


def test_verdict_of_each(tmp_path, capsys):
    """A model too large for one machine is still priced on the other; prices are each machine's own."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**LLAMA, "hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 40, "num_attention_heads": 64, "num_key_value_heads": 8}))
    words = [str(path), "--instance=tpu-v5e-8,mi300x-8", "--seq=2048", "--global-batch=64", "--price=mi300x-8:20", "--by=time"]
    assert command.main([*words, "--json"], "bakeoff") == 0
    small, large = json.loads(capsys.readouterr().out)
    assert not small["fits"] and "GiB" in small["why"] and large["fits"] and large["usd_per_hour"] == 20
    assert command.main(words, "bakeoff") == 0 and "tpu-v5e-8          does not fit: " in capsys.readouterr().out
    assert command.main([*words, "--price=20"], "bakeoff") == 2 and "whose price" in capsys.readouterr().err
    assert command.main([*words, "--max-comm=0"], "bakeoff") == 3 and "on mi300x-8, more than --max-comm=0" in capsys.readouterr().err
    alone = [str(path), "--instance=mi300x-8", "--price=20", "--tp=8", "--pp=1", "--seq=2048", "--global-batch=64", "--days=1"]
    assert [command.main([*alone, f"--max-comm={most}"], "cost") for most in ("0", "1")] == [3, 0]


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
