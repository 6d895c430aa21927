# SPDX-License-Identifier: Apache-2.0
"""opentrn predict: what the command says of layouts, accelerators, money and pages, and what is refused."""

import dataclasses
import json
import os
import re
import subprocess
import sys

import pytest
from conftest import OTRN, ROOT
from jobs import CONFIGS, LLAMA, job_of, own_cache  # noqa: F401

from opentrn._predict import command, compose, config, layout, money, page, price, roof, search
from opentrn._predict.fault import Fault
from opentrn._predict.text import number

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


class Unpriced:
    """Prices of which none is known: every layout needs programs of its own."""

    known: dict = {}

    def all(self, wanted):
        pass

    def __call__(self, what):
        raise Fault("not priced")


@pytest.mark.parametrize("given, by, fits", [({}, "time", 0), ({}, "memory", 0), ({"zero": 3}, "time", 0), ({}, "time", 3)])
def test_search_tries_zero_3_in_pipelines(given, by, fits):
    """Where it is asked for, or where nothing else fits."""
    found = lambda job, x, prices: {"fits": x.zero >= fits and (fits == 0 or x.pp > 1), "step_s": 1.0, "hbm_peak_bytes": 2}
    rows = search.search(job_of("llama", seq=128), {"micro_batch": 1, **given}, Unpriced(), by, step=found).rows
    tried = sum(x.zero == 3 and x.pp > 1 for x, _ in rows)
    assert tried > 4 if by == "memory" or fits == 3 or "zero" in given else not tried


@pytest.mark.parametrize("by, given, wanted", [("time", {}, {1}), ("memory", {}, {1, 2, 4, 8}), ("time", {"recompute": "full"}, {1, 2, 4, 8})], ids=str)
def test_search_computes_again_where_it_must(by, given, wanted, monkeypatch):
    """Where the same layout does not fit without, where it is asked for, or where what it holds is what counts."""
    monkeypatch.setattr(search, "_TOGETHER", 1)  # each is judged before the next is begun
    found = lambda job, x, prices: {"fits": x.recompute == "full" or x.tp > 1, "step_s": search.least_time(job, x), "hbm_peak_bytes": 2}
    rows = search.search(job_of("llama", seq=128), {"micro_batch": 1, "pp": 1, "zero": 1, **given}, Unpriced(), by, step=found).rows
    assert {x.tp for x, _ in rows if x.recompute == "full"} == wanted
    assert {x.tp for x, _ in rows if x.recompute == "selective"} == ({2, 4, 8} if not given else set())


def test_what_is_computed_again_for_nothing():
    """A layout that fits takes less than one with the same layers that computes them again; with fewer sequences at once, where these fill the engines and the
    pipeline waits no longer for it."""
    again = layout.Layout(tp=2, dp=16, zero=1, micro_batch=4, recompute="full")
    less = dataclasses.replace(again, recompute="selective", zero=0)
    for seq, x, skipped in (
        (128, less, True), (128, dataclasses.replace(less, micro_batch=1), False), (4096, dataclasses.replace(less, micro_batch=1), True), (4096, dataclasses.replace(less, tp=4, dp=8), False),
        (4096, dataclasses.replace(less, pp=4, dp=4), False), (128, dataclasses.replace(less, recompute="full"), False),
    ):  # fmt: skip
        assert search._repeats_for_nothing(job_of("llama", seq=seq), again, [(x, {})]) is skipped, (seq, x)


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
    for instance, kind, peak in (("trn2.48xlarge", "bf16", 1), ("trn2.48xlarge", "fp8", 2), ("trn2.48xlarge", "fp32", 1 / 4), ("p5.48xlarge", "fp8", 1979 / 989), ("p5.48xlarge", "fp32", 67 / 989)):
        job = job_of("llama", instance, precision=kind)
        assert f">{number(peak * job.machine.flops / 1e12, 3)} TFLOP/s, {kind}<" in page._roof(at, job)


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


def test_cache_folder(monkeypatch):
    """An empty variable is none, as for the library."""
    from opentrn import _library

    monkeypatch.setenv("HOME", "/h")
    for name, value, wanted in (("OTRN_CACHE_DIR", "", "/h/.cache/opentrn"), ("XDG_CACHE_HOME", "", "/h/.cache/opentrn"), ("XDG_CACHE_HOME", "/x", "/x/opentrn"), ("OTRN_CACHE_DIR", "/c", "/c")):
        monkeypatch.setenv(name, value)
        assert str(_library.cache_path()) == wanted


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
    ("--micro-batch=99999999999",): "--micro-batch=99999999999: a whole number above 0 is needed, 2147483648 at most",
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
