# SPDX-License-Identifier: Apache-2.0
"""The search over layouts: what it leaves out is never the best, what costs nothing to price is priced, schedules hold what they are said to."""

import csv
import dataclasses
import html.parser
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest
from conftest import ROOT
from test_sane import FAMILIES

sys.path.insert(0, str(ROOT / "python"))
from opentrn._predict import command, compose, config, layout, machines, page, price, roof, search, size, text
from opentrn._predict.fault import Fault, TooLarge

SMALL = dict(FAMILIES["llama"], hidden_size=256, intermediate_size=512, num_attention_heads=8, num_key_value_heads=4, num_hidden_layers=4, vocab_size=1024)


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("OTRN_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))


def every(job, given, by, prices):
    """All layouts that fit, priced without leaving any out."""
    rows = []
    for x in search.candidates(job, given):
        try:
            r = command.step(job, x, prices)
        except TooLarge:
            continue
        if r["fits"]:
            rows.append((r[search.BY[by]], x))
    return sorted(rows, key=lambda v: v[0])


@pytest.mark.parametrize("by", ["usd", "time", "memory"])
@pytest.mark.parametrize(
    "family, instance, nodes",
    [("llama", "p5.48xlarge", 1), ("mixtral", "p5.48xlarge", 4), ("gpt2", "p4d.24xlarge", 16), ("gpt-neox", "p4de.24xlarge", 2), ("bert", "p5.48xlarge", 2)],
)
def test_best_is_not_left_out(family, instance, nodes, by):
    m = dataclasses.replace(config.model(FAMILIES[family]), layers=48, width=6144, heads=48, kv=48, head=128, hidden=24576)  # too large for one
    job = layout.Job(m, machines.machine(instance), nodes, 512, 64 * nodes)
    found, best = search.search(job, {}, None, by, step=command.step), every(job, {}, by, None)
    assert found.rows[0][1][search.BY[by]] == pytest.approx(best[0][0], rel=1e-9)
    assert found.tried + found.pruned_memory + found.pruned_time + found.pruned_size == len(list(search.candidates(job, {})))


def test_best_of_programs_is_not_left_out():
    """The same of programs that are compiled; and none that costs nothing is left out."""
    job = layout.Job(config.model(SMALL), machines.machine("trn1.32xlarge"), 1, 128, 64)
    given, prices = {"micro_batch": 1, "recompute": "none", "tp": 4}, price.Prices(machines.machine("trn1.32xlarge"))
    found = search.search(job, given, prices, "time", keep=1)
    made, tried = prices.made, {x for x, _ in found.rows}
    free = [x for x in search.candidates(job, given) if x.zero < 2 and all(p in prices.known for p in compose.pieces(job, x))]
    assert made and free and {*free} <= tried
    assert found.rows[0][1]["step_s"] == pytest.approx(every(job, given, "time", prices)[0][0], rel=1e-9)


@pytest.mark.parametrize("pp, micros, chunks", [(4, 16, 1), (4, 16, 2), (8, 8, 4), (8, 2, 1), (2, 64, 2)])
def test_what_a_stage_holds(pp, micros, chunks):
    """Counted in the order of its work: forward passes without their backward pass."""
    job = layout.Job(config.model(SMALL), machines.machine("p5.48xlarge"), 1, 128, micros)
    for schedule in ("gpipe",) if chunks == 1 and pp == 4 else ("1f1b" if chunks == 1 else "interleaved",):
        x = layout.Layout(pp=pp, schedule=schedule, chunks=chunks)
        for stage in range(pp):
            held = most = 0
            for what, _, _ in compose._turns(stage, pp, micros, schedule, chunks):
                held += 1 if what == "f" else -1
                most = max(most, held)
            assert x.in_flight(job, stage) == most / chunks and held == 0


def test_schedules():
    m = config.model(SMALL)
    assert search.schedules(m, 2, {}) == [{}, {"chunks": 2, "schedule": "interleaved"}] and search.schedules(m, 4, {}) == search.schedules(m, 1, {}) == [{}]
    assert [v.get("chunks", 1) for v in search.schedules(dataclasses.replace(m, layers=24), 2, {})] == [1, 2, 4]
    assert search.schedules(m, 2, {"schedule": "gpipe"}) == [{"schedule": "gpipe"}] and search.schedules(m, 1, {"schedule": "interleaved"}) == [{}]
    assert search.schedules(m, 2, {"schedule": "interleaved"}) == [{"schedule": "interleaved", "chunks": 2}]


def test_heads_share_a_width():
    with pytest.raises(Fault, match="a width of 250 cannot be shared by 8 heads"):
        config.model(dict(SMALL, hidden_size=250))
    assert config.model(dict(SMALL, hidden_size=250, head_dim=32)).head == 32


def test_folder_of_a_model(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(SMALL))
    assert config.read(str(tmp_path)) == config.read(str(tmp_path / "config.json"))


ON_GPUS = ["--instance=p5.48xlarge", "--nodes=2", "--tp=8", "--pp=1", "--seq=256", "--global-batch=64"]


@pytest.mark.parametrize("name", ["predict", "cost"])
def test_talk_is_flagged(name, tmp_path, capsys):
    """--max-comm in text, data and page, with a status of its own."""
    (tmp_path / "config.json").write_text(json.dumps(SMALL))
    words = [str(tmp_path / "config.json"), *ON_GPUS, "--json", "--days=1", f"--report={tmp_path / 'page.html'}"]
    for most, over in (("0.1%", True), ("100%", False)):
        assert command.main([*words, f"--max-comm={most}"], name) == (3 if over else 0)
        told = capsys.readouterr()
        for r in (json.loads(told.out), json.loads((tmp_path / "page.json").read_text())):
            assert r["max_comm_exceeded"] is over and r["max_comm"] == pytest.approx(0.001 if over else 1)
        assert ("more than --max-comm=0.1%" in told.err) is over and ("(--max-comm)" in (tmp_path / "page.html").read_text()) is over


@pytest.mark.parametrize("name", ["predict", "cost"])
def test_one_machine_is_priced(name, tmp_path, capsys):
    (tmp_path / "config.json").write_text(json.dumps(SMALL))
    assert command.main([str(tmp_path), "--instance=p5.48xlarge,p4d.24xlarge", "--days=3"], name) == 2
    assert "bakeoff compares several\n  hint: opentrn bakeoff" in capsys.readouterr().err


def test_bakeoff_by_hand(tmp_path, capsys):
    """Three machines, prices of our own for two: dollars, break-even and sensitivity from their parts."""
    (tmp_path / "config.json").write_text(json.dumps(SMALL))
    words = [str(tmp_path / "config.json"), "--instance=p5.48xlarge,p4d.24xlarge,mi300x-8", *ON_GPUS[1:], f"--report={tmp_path / 'page.html'}"]
    assert command.main([*words, "--price=p5.48xlarge:30,mi300x-8:12.5", "--json"], "bakeoff") == 0
    rows = json.loads(capsys.readouterr().out)
    for r, usd in zip(rows, (30.0, machines.machine("p4d.24xlarge").usd_per_hour, 12.5)):
        tokens = 64 * 256
        assert r["usd_per_1m_tokens"] == pytest.approx(2 * usd / 3600 * r["step_s"] / tokens * 1e6)
        even = r["break_even_usd_per_hour"]  # at which a million tokens cost what they do on the first
        assert 2 * even / 3600 * r["step_s"] / tokens * 1e6 == pytest.approx(rows[0]["usd_per_1m_tokens"])
    assert rows[0]["break_even_usd_per_hour"] == pytest.approx(30) and [r["price_basis"] for r in rows][::2] == ["your price"] * 2
    twice = command.main([*words[:1], "--instance=p5.48xlarge", *ON_GPUS[1:-1], "--global-batch=128", "--json"])
    r = json.loads(capsys.readouterr().out)
    assert twice == 0 and rows[0]["sensitivity"]["twice the batch"] == pytest.approx(r["tokens_per_s"] / rows[0]["tokens_per_s"] - 1)
    text = (tmp_path / "page.html").read_text()
    assert all(name in text for name in ("p5.48xlarge", "p4d.24xlarge", "mi300x-8", "Break-even", "zero=0", "twice the batch"))
    assert json.loads((tmp_path / "page.json").read_text())[1]["instance"] == "p4d.24xlarge" and len((tmp_path / "page.csv").read_text().splitlines()) == 4


def _opentrn(words, before=(), **more):
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python"), **more.pop("env", {})}
    return subprocess.Popen([*before, sys.executable, "-m", "opentrn", *words], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)


def _children(group):
    """Processes of a group that still run."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            found.append(stat.parent.name)
    return found


def test_ctrl_c_ends_all_of_it(tmp_path):
    """While programs are priced: a line, status 130, nobody left over, nothing half written; what was priced is kept."""
    (tmp_path / "config.json").write_text(json.dumps(SMALL))
    (tmp_path / "work").mkdir()
    room = tmp_path / "tmp"
    room.mkdir()
    words = ["predict", str(tmp_path / "config.json"), "--instance=trn1.32xlarge", "--search", "--seq=512", "--global-batch=64", f"--report={tmp_path / 'work' / 'page.html'}"]
    ran = _opentrn(words, env={"OTRN_CACHE_DIR": str(tmp_path / "cache"), "TMPDIR": str(room)}, start_new_session=True)
    kept = tmp_path / "cache" / "predict"
    end = time.monotonic() + 240
    while not (kept.is_dir() and len(list(kept.glob("*.json"))) > 1) and ran.poll() is None and time.monotonic() < end:
        time.sleep(0.05)
    os.killpg(ran.pid, signal.SIGINT)
    out, err = ran.communicate(timeout=120)
    assert (ran.returncode, out) == (130, "") and err.splitlines()[-1] == "opentrn: interrupted; programs priced so far are in the cache", err
    assert not _children(ran.pid) and not list(room.iterdir()) and not list((tmp_path / "work").iterdir())
    assert all(json.loads(path.read_text()) for path in kept.iterdir())


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM], ids=lambda v: v.name)
def test_an_end_in_a_destructor_is_none_too_few(how, monkeypatch, capsys):
    """Python swallows what a destructor raises, the KeyboardInterrupt of a signal too."""

    class Torn:
        def __del__(self):
            signal.raise_signal(how)
            for _ in range(1000):  # where a signal's exception is raised
                pass

    def run(_):
        Torn()
        time.sleep(60)

    monkeypatch.setattr(command, "run", run)
    begin, before = time.monotonic(), signal.getsignal(signal.SIGTERM)
    assert command.main([]) == 130 and time.monotonic() - begin < 30
    assert signal.getsignal(signal.SIGTERM) is before and capsys.readouterr().err.endswith("opentrn: interrupted; programs priced so far are in the cache\n")


def test_without_room_or_home(tmp_path):
    """A disk without room for the page, no home, and a cache that cannot be written: told in a line, or done without."""
    (tmp_path / "config.json").write_text(json.dumps(SMALL))
    words = ["predict", str(tmp_path / "config.json"), *ON_GPUS]
    small = ("sh", "-c", 'ulimit -f 8; exec "$@"', "sh")  # no file grows beyond 8 blocks
    ran = _opentrn([*words, f"--report={tmp_path / 'page.html'}"], before=small)
    out, err = ran.communicate(timeout=120)
    assert ran.returncode == 2 and "page.html: File too large" in err and "disk with room" in err and not out
    assert os.listdir(tmp_path) == ["config.json"]
    on_chip = ["predict", str(tmp_path / "config.json"), "--instance=trn1.2xlarge", "--tp=2", "--pp=1", "--seq=128", "--global-batch=1"]
    ran = _opentrn(on_chip, before=small)
    out, err = ran.communicate(timeout=240)
    assert ran.returncode == 2 and "File too large" in err and "TMPDIR names a folder" in err and len(err.splitlines()) == 2, err
    for env in ({"HOME": "/no/such/home", "OTRN_CACHE_DIR": "", "XDG_CACHE_HOME": ""}, {"OTRN_CACHE_DIR": "/proc/no"}):
        ran = _opentrn(on_chip, env=env)
        out, err = ran.communicate(timeout=240)
        assert ran.returncode == 0 and "fits           yes" in out, err


def test_price_is_whole_or_absent(tmp_path, monkeypatch):
    """Ctrl-C between a price's writing and its name, and a disk without room: nothing of it stays."""
    prices = price.Prices(machines.machine("trn1.32xlarge"))
    prices.folder = tmp_path
    for error in (KeyboardInterrupt, OSError(28, "No space left on device")):
        with monkeypatch.context() as patch:
            patch.setattr(pathlib.Path, "rename", lambda *_: (_ for _ in ()).throw(error))
            try:
                prices._write(("what",), {"total_us": 1.0})
            except KeyboardInterrupt:
                pass
        assert not list(tmp_path.iterdir())
    assert prices.folder is None


def test_page_is_whole_or_absent(tmp_path, monkeypatch):
    """The third file cannot be written: the two before it are not there either."""
    real = pathlib.Path.write_text

    def full(self, text, **words):
        if self.name == "page.csv.part":
            raise OSError(28, "No space left on device", str(self))
        return real(self, text, **words)

    monkeypatch.setattr(pathlib.Path, "write_text", full)
    with pytest.raises(Fault, match="No space left"):
        page._put(tmp_path / "page.html", "page", {}, [{"a": 1}])
    assert not list(tmp_path.iterdir())


def test_first_ten_on_a_gpu_differ():
    """By a roof micro-batches of any size are as quick: such layouts are one row, which names the others' micro-batches."""
    job = layout.Job(config.model(FAMILIES["llama"]), machines.machine("p5.48xlarge"), 2, 4096, 64)
    found = search.search(job, {}, None, step=lambda job, x, prices: roof.step(job, x))
    rows = found.rows[:10]
    assert len({(*dataclasses.astuple(dataclasses.replace(x, micro_batch=0)), f"{r['step_s']:.6g}") for x, r in rows}) == 10
    first, best = rows[0]
    for n in best["alike"]:
        other = roof.step(job, dataclasses.replace(first, micro_batch=n))
        assert other["step_s"] == pytest.approx(best["step_s"], rel=1e-6) and other["hbm_peak_bytes"] >= best["hbm_peak_bytes"]
    assert "takes as long" in search.why(best, best) and "as long" not in search.why(best, {**rows[1][1], "alike": []})


def test_what_is_tried():
    """Micro-batches of short sequences are large ones too; encoders are cut into stages, and pictures' models at all, where one device cannot hold them."""
    def tried(name, what, nodes=1, seq=512, **larger):
        m = dataclasses.replace(config.model(FAMILIES[name]), **larger)
        return sorted({getattr(x, what) for x in search.candidates(layout.Job(m, machines.machine("trn1.32xlarge"), nodes, size.tokens_of(m, seq), 4096), {})})

    assert tried("llama", "micro_batch", seq=4096) == [1, 2, 4] and tried("bert", "micro_batch") == [1, 8, 16, 32] and tried("bert", "micro_batch", nodes=32) == [1, 2, 4, 8, 16, 32]
    large = dict(layers=48, width=6144, heads=48, kv=48, head=128, hidden=24576)
    for name in ("bert", "vit", "t5"):
        assert tried(name, "pp") == [1] and tried(name, "pp", **large | (dict(decoder=48) if name == "t5" else {})) == [1, 2, 4, 8, 16]
    assert tried("vit", "tp") == [1] and tried("vit", "tp", **large) == [1, 2, 4, 8, 16]


class _Shown(html.parser.HTMLParser):
    """What a page shows, by its headings: words of each card, cell of a table and line of a picture."""

    def __init__(self, page):
        super().__init__()
        self.rows, self.at, self.inside = {"": []}, "", None
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        if tag in ("h1", "h2", "td", "th", "text", "b", "p", "style", "title", "i", "span"):
            self.inside = tag if dict(attrs).get("class") != "key" else self.inside
        if tag in ("tr", "svg", "p") or dict(attrs).get("class") == "card":
            self.rows[self.at].append([])

    def handle_data(self, data):
        if self.inside == "h2":
            self.at = data.partition(", as predicted")[0]
            self.rows[self.at] = []
        elif self.inside in ("td", "text", "b", "span", "p") and self.rows[self.at]:
            self.rows[self.at][-1].append(data)


def _same_numbers(folder):
    """Every table, card and bar of page.html says what page.json and page.csv have."""
    r, rows = json.loads((folder / "page.json").read_text()), _Shown((folder / "page.html").read_text()).rows
    sheet = list(csv.DictReader((folder / "page.csv").read_text().splitlines()))
    number, seconds = text.number, text.seconds

    def bars(values, heading, unit="s"):
        total = sum(values.values())
        times, unit = text.unit(total) if unit == "s" else (1.0, unit)
        want = [[f"{number(v * times)} {unit}", f"{100 * v / total:.1f} %"] for v in values.values()]
        assert [row[1:] for row in rows[heading] if len(row) == 3 and row[2].endswith(" %")] == want, heading

    cards = {row[1]: row[0] for row in rows[""] if len(row) == 2}
    shown = {"tokens a second": number(r["tokens_per_s"]), "of the bf16 peak": f"{100 * r['mfu']:.1f} %", "pipeline bubble": f"{100 * r['bubble_share']:.1f} %"}
    shown[f"collectives, {100 * r['exposed_comm_share']:.1f} % not hidden"] = f"{100 * r['comm_share']:.1f} %"
    shown[f"of {r['hbm_bytes'] / 2**30:.4g} GiB a device: {'fits' if r['fits'] else 'does not fit'}"] = f"{r['hbm_peak_bytes'] / 2**30:.1f} GiB"
    assert shown.items() <= cards.items() and next(v for k, v in cards.items() if k.startswith("a step,")) == seconds(r["step_s"])
    assert len(cards) == 8
    bars(r["seconds"], "A step")
    bars({k: v / 2**30 for k, v in r["memory"].items()}, "Memory of a device", "GiB")
    if r["collectives"]:
        bars(r["collectives"], "Collectives")
        assert rows["Collectives"][0][0].startswith(f"{100 * r['comm_share']:.1f} % of the step")
    if r.get("engines"):
        assert [v for row in rows["Engines in a micro-batch"] for v in row if v.endswith("%")] == [f"{100 * v:.1f} %" for v in r["engines"].values()]
    else:
        bars(r["operations"], "A micro-batch")
    own = next(v["tokens_per_s"] / v["nodes"] for v in r["scaling"] if v["nodes"] == r["nodes"])
    if not r.get("measured"):
        assert own == pytest.approx(r["tokens_per_s"] / r["nodes"])
    assert [row for row in rows["Fewer and more machines"] if len(row) == 7][-len(r["scaling"]) :] == [
        [f"{v['nodes']:,}", f"{r['global_batch'] * v['nodes'] // r['nodes']:,}", seconds(v["step_s"]), number(v["tokens_per_s"]), f"{100 * v['tokens_per_s'] / v['nodes'] / own:.1f} %",
         number(v["usd_per_1m_tokens"]), f"{100 * v['comm_share']:.1f} %"] for v in r["scaling"]
    ]  # fmt: skip
    costs = {row[0]: row[1] for row in rows["Costs"] if len(row) > 1}
    want = {"an hour of all machines": r["usd_per_hour"], "1M tokens": r["usd_per_1m_tokens"], "a day": 24 * r["usd_per_hour"]}
    if "run" in r:
        want |= {"the run": r["run"]["usd"], "1M tokens of the run": r["run"]["usd_per_1m_tokens"], "an epoch": r["run"]["usd_per_epoch"]}
    assert {k: f"{number(v)} USD" for k, v in want.items()}.items() <= costs.items()
    found = r.get("search", {"rows": []})["rows"]
    assert [row[2:6] for row in rows.get("Layouts", []) if len(row) > 5 and row[0].isdigit()] == [[seconds(v["step_s"]), number(v["tokens_per_s"]), number(v["usd_per_1m_tokens"]), f"{v['hbm_peak_bytes'] / 2**30:.1f}"] for v in found]
    assert len(sheet) == max(len(found), 1)
    for k, v in sheet[0].items():
        own = r[k] if k in r else r["layout"][k] if k in r["layout"] else r["seconds"].get(k.removesuffix("_s")) # of a layout that has none of it: nothing
        assert v == ("" if own is None else str(own)), k
    for line, v in zip(sheet, found):
        assert [line[k] for k in ("step_s", "tokens_per_s", "tp", "pp", "dp", "zero", "hbm_peak_bytes")] == [str(v[k]) for k in ("step_s", "tokens_per_s", "tp", "pp", "dp", "zero", "hbm_peak_bytes")]


@pytest.mark.parametrize("words", [
    ["--instance=p5.48xlarge", "--nodes=2", "--search", "--days=10", "--epoch-tokens=1e9", "--starts=3"],
    ["--instance=p5.48xlarge", "--nodes=4", "--tp=2", "--pp=2", "--zero=1", "--measured=p5.48xlarge:400ms", "--max-comm=1%"],
    ["--instance=trn1.32xlarge", "--nodes=2", "--tp=4", "--pp=2", "--zero=1", "--days=10", "--epoch-tokens=1e9"],
], ids=["search", "measured", "programs"])  # fmt: skip
def test_numbers_of_the_page_are_those_beside_it(words, tmp_path, capsys):
    (tmp_path / "config.json").write_text(json.dumps(SMALL))
    assert command.main([str(tmp_path / "config.json"), "--seq=128", "--global-batch=256", f"--report={tmp_path / 'page.html'}", *words]) in (0, 3), capsys.readouterr().err
    _same_numbers(tmp_path)
    page = (tmp_path / "page.html").read_text()
    told = json.loads((tmp_path / "page.json").read_text())
    for key in ("tokens_per_s", "step_s", "usd_per_1m_tokens"):  # and would be seen if they were not
        (tmp_path / "page.json").write_text(json.dumps({**told, key: 1.01 * told[key]}))
        with pytest.raises(AssertionError):
            _same_numbers(tmp_path)
    assert page.count("<script") == page.count("http") == page.count("src=") == page.count("@import") == page.count("url(") == 0
