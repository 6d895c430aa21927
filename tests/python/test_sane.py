# SPDX-License-Identifier: Apache-2.0
"""What must hold of any prediction: nine families of models, pairs of layouts, what the change between them may do.

CI tries a few of them, drawn by a seed it prints (SANE_SEED=N draws others), on trn1 and all on a GPU's roofs; `make sane` tries all.
"""

import dataclasses
import os
import random
import sys

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "python"))
from opentrn._predict import command, config, layout, machines, price, size

WIDE = dict(hidden_size=1024, intermediate_size=2816, num_hidden_layers=8, num_attention_heads=16, vocab_size=8192)
FAMILIES = {
    "llama": dict(WIDE, model_type="llama", num_key_value_heads=8),
    "qwen": dict(WIDE, model_type="qwen2", num_key_value_heads=4, tie_word_embeddings=True),
    "mistral": dict(WIDE, model_type="mistral", num_key_value_heads=8, sliding_window=256),
    "mixtral": dict(WIDE, model_type="mixtral", num_key_value_heads=8, num_local_experts=8),
    "gpt2": dict(model_type="gpt2", n_embd=1024, n_layer=8, n_head=16, vocab_size=8192, n_positions=512, resid_pdrop=0.0, attn_pdrop=0.0),
    "gpt-neox": dict(WIDE, model_type="gpt_neox", intermediate_size=4096),
    "bert": dict(WIDE, model_type="bert", intermediate_size=4096),
    "vit": dict(model_type="vit", hidden_size=768, num_hidden_layers=8, num_attention_heads=12, intermediate_size=3072),
    "t5": dict(model_type="t5", d_model=1024, d_kv=64, d_ff=2816, num_layers=8, num_heads=16, vocab_size=8192),
}
DECODERS = tuple(k for k in FAMILIES if k not in ("bert", "vit", "t5"))


class Case:
    """One family on a machine; asked for a layout it predicts it, and holds what it says to what any must."""

    def __init__(self, family, machine, prices=None):
        self.m, self.machine, self.prices, self.tp = config.model(FAMILIES[family]), machine, prices, 2

    def __call__(self, nodes=1, batch=None, precision="bf16", lora=0, dropout=None, **cut):
        m = self.m if dropout is None else dataclasses.replace(self.m, dropout=dropout, score_dropout=dropout)
        rest = cut.get("tp", self.tp) * cut.get("pp", 1) * cut.get("cp", 1)
        dp = nodes * self.machine.devices // rest
        job = layout.Job(m, self.machine, nodes, 512, batch or 8 * dp, precision, "adamw", lora)
        x = layout.Layout(**{"tp": self.tp, "dp": dp, **cut})
        r = command.predict(job, x, self.prices)
        tokens = job.global_batch * (job.seq if m.task != "classes" else 1)
        assert r["step_s"] * r["tokens_per_s"] == pytest.approx(tokens) and r["step_s"] == pytest.approx(sum(r["seconds"].values()))
        done = size.model_flops(m, job.seq, lora) * job.global_batch
        assert r["mfu"] == pytest.approx(done / (r["step_s"] * x.devices * self.machine.flops)) and r["step_s"] * x.devices * self.machine.flops > done
        assert r["usd_per_1m_tokens"] == pytest.approx(nodes * self.machine.usd_per_hour / 3600 * r["step_s"] / tokens * 1e6)
        assert all(v >= 0 for v in (*r["seconds"].values(), *r["memory"].values())) and 0 < r["mfu"] < 1
        assert 0 <= r["exposed_comm_share"] <= r["comm_share"] <= 1 and 0 <= r["bubble_share"] < 1
        assert r["hbm_peak_bytes"] == sum(r["memory"].values()) and r["fits"] == (r["hbm_peak_bytes"] <= r["hbm_bytes"])
        return r


def rises(values, slack=0.01):
    return all(b >= a * (1 - slack) for a, b in zip(values, values[1:]))


# Each takes a case; what it says holds of every family it is tried on


def zero_holds_less(at):
    every = [at(zero=z) for z in range(4)]
    assert rises([-r["hbm_peak_bytes"] for r in every], -0.01), [r["memory"] for r in every]
    assert rises([r["step_s"] for r in every[1:]], 0.02), [r["seconds"] for r in every]


def more_again_holds_less(at):
    every = [at(recompute=v) for v in layout.RECOMPUTE]
    assert rises([-r["hbm_peak_bytes"] for r in every], -0.01), [r["memory"] for r in every]
    assert rises([r["step_s"] for r in every], 0.02), [r["step_s"] for r in every]


def larger_micro_batches_hold_more(at):
    every = [at(micro_batch=n) for n in (1, 2, 4)]
    kept = [r["memory"]["activations"] for r in every]
    assert rises(kept) and all(b < 2.2 * a for a, b in zip(kept, kept[1:])), kept
    assert rises([-r["step_s"] for r in every], -0.05), [r["seconds"] for r in every]


def nodes_add_no_more_than_they_are(at):
    every = [at(nodes=n) for n in (1, 2, 8)]
    assert rises([r["step_s"] for r in every]), [r["seconds"] for r in every]
    assert every[2]["step_s"] < 1.5 * every[0]["step_s"], [r["seconds"] for r in every]


def adapters_hold_less(at):
    whole, adapters = at(), at(lora=16)
    assert adapters["hbm_peak_bytes"] < whole["hbm_peak_bytes"] and adapters["step_s"] < 1.1 * whole["step_s"]


def dropout_takes_time(at):
    assert rises([at(dropout=d)["step_s"] for d in (0.0, 0.1)])


def schedules_differ_as_they_should(at):
    gpipe, usual, woven = (at(pp=4, schedule=s, chunks=2 if s == "interleaved" else 1) for s in ("gpipe", "1f1b", "interleaved"))
    assert gpipe["memory"]["activations"] >= usual["memory"]["activations"] and gpipe["step_s"] == pytest.approx(usual["step_s"])
    assert 0 < woven["bubble_share"] < usual["bubble_share"] < 1 and usual["seconds"]["bubble"] == pytest.approx(2 * woven["seconds"]["bubble"])


def stages_hold_less(at):
    flat, deep = at(batch=256), at(pp=4, batch=256)
    assert deep["memory"]["weights"] < flat["memory"]["weights"] and deep["step_s"] > flat["step_s"] * 0.9


def context_shares_activations(at):
    one, two = at(recompute="full"), at(cp=2, recompute="full")
    assert two["memory"]["activations"] < one["memory"]["activations"], (one["memory"], two["memory"])


def experts_are_shared(at):
    one, four = at(ep=1), at(ep=4)
    assert four["memory"]["weights"] < 0.5 * one["memory"]["weights"] and four["step_s"] < 1.6 * one["step_s"], (one["seconds"], four["seconds"])


FACTS = [(f, tuple(FAMILIES)) for f in (zero_holds_less, more_again_holds_less, larger_micro_batches_hold_more, nodes_add_no_more_than_they_are, dropout_takes_time)]
FACTS += [(f, DECODERS) for f in (schedules_differ_as_they_should, stages_hold_less, context_shares_activations)]
FACTS += [(adapters_hold_less, DECODERS), (experts_are_shared, ("mixtral",))]
EVERY = [(fact, family) for fact, families in FACTS for family in families]
SEED = int(os.environ.get("SANE_SEED") or 19)
CHOSEN = EVERY if os.environ.get("ALL_SANE") else random.Random(SEED).sample(EVERY, 4)


@pytest.fixture(scope="module")
def prices(tmp_path_factory):
    folder = os.environ.get("OTRN_CACHE_DIR")
    os.environ["OTRN_CACHE_DIR"] = folder or str(tmp_path_factory.mktemp("cache"))
    yield price.Prices(machines.machine("trn1.32xlarge"))
    if folder is None:
        del os.environ["OTRN_CACHE_DIR"]


@pytest.mark.parametrize("fact, family", CHOSEN, ids=lambda v: getattr(v, "__name__", str(v)))
def test_sane(fact, family, prices):
    print(f"SANE_SEED={SEED}")
    fact(Case(family, prices.machine, prices))


@pytest.mark.parametrize("fact, family", EVERY, ids=lambda v: getattr(v, "__name__", str(v)))
def test_sane_roofs(fact, family):
    fact(Case(family, machines.machine("p5.48xlarge")))
