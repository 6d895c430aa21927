# SPDX-License-Identifier: Apache-2.0
"""Small models of every kind, and jobs of them, for the tests of predictions."""

import sys

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "python"))
from opentrn._predict import config, layout, machines

LLAMA = dict(model_type="llama", hidden_size=512, intermediate_size=1024, num_hidden_layers=6, num_attention_heads=8, num_key_value_heads=8, vocab_size=2048)
CONFIGS = {
    "llama": LLAMA,
    "gpt2": dict(model_type="gpt2", n_embd=512, n_layer=6, n_head=8, vocab_size=2048, n_positions=256, resid_pdrop=0.0, attn_pdrop=0.0),
    "bert": dict(model_type="bert", hidden_size=512, num_hidden_layers=6, num_attention_heads=8, intermediate_size=2048, vocab_size=2048),
    "neox": dict(model_type="gpt_neox", hidden_size=512, num_hidden_layers=6, num_attention_heads=8, intermediate_size=2048, vocab_size=2048),
    "qwen": dict(LLAMA, model_type="qwen2", num_key_value_heads=4, tie_word_embeddings=True),
}
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


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("OTRN_CACHE_DIR", str(tmp_path / "cache"))


def job_of(name, instance="trn1.32xlarge", nodes=1, **more):
    m = config.model(CONFIGS[name]) if isinstance(name, str) else name
    return layout.Job(m, machines.machine(instance), nodes, **{"seq": 256, "global_batch": 64, **more})
