# SPDX-License-Identifier: Apache-2.0
"""Weights and FLOP of models as they are published: to the last weight, from the keys their configurations have."""

import dataclasses
import sys

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "python"))
from opentrn._predict import config, size, spec


def llama(width, hidden, layers, heads, kv, vocab, kind="llama", **more):
    return dict(model_type=kind, hidden_size=width, intermediate_size=hidden, num_hidden_layers=layers, num_attention_heads=heads, num_key_value_heads=kv, vocab_size=vocab, **more)


def qwen3(*sizes, **more):
    return llama(*sizes, 151936, "qwen3", head_dim=128, attention_bias=False, use_sliding_window=False, max_window_layers=28, **more)


def qwen2(*sizes, **more):
    return llama(*sizes, kind="qwen2", sliding_window=131072, use_sliding_window=False, **more)


def mistral(**more):
    return llama(4096, 14336, 32, 32, 8, 32000, "mistral", sliding_window=4096) | more


def mixtral(**more):
    return llama(4096, 14336, 32, 32, 8, 32000, "mixtral", num_local_experts=8, num_experts_per_tok=2, sliding_window=None) | more


def gpt2(layers, width, heads):
    return dict(model_type="gpt2", n_layer=layers, n_embd=width, n_head=heads, n_positions=1024, n_ctx=1024, vocab_size=50257)


def neox(layers, width, heads, vocab):
    return dict(model_type="gpt_neox", hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads, intermediate_size=4 * width, vocab_size=vocab, rotary_pct=0.25)


def bert(layers, width, heads):
    return dict(model_type="bert", hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads, intermediate_size=4 * width, vocab_size=30522, type_vocab_size=2)


def vit(layers, width, heads, patch):
    return dict(model_type="vit", hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads, intermediate_size=4 * width, patch_size=patch, image_size=224, num_labels=1000)


def t5(layers, width, head, hidden, heads, **more):
    return dict(model_type="t5", num_layers=layers, num_decoder_layers=layers, d_model=width, d_kv=head, d_ff=hidden, num_heads=heads, vocab_size=32128, **more)


SCALED = dict(rope_scaling=dict(factor=8.0, rope_type="llama3"), rope_theta=5e5, max_position_embeddings=131072)
MOE = dict(model_type="qwen3_moe", num_experts=128, num_experts_per_tok=8, moe_intermediate_size=768, decoder_sparse_step=1, mlp_only_layers=[])
PUBLISHED = {  # of BERT with both heads it was trained with, of ViT with a thousand classes
    "Llama-2-7B": (llama(4096, 11008, 32, 32, 32, 32000), 6738415616),
    "Llama-2-13B": (llama(5120, 13824, 40, 40, 40, 32000), 13015864320),
    "Llama-2-70B": (llama(8192, 28672, 80, 64, 8, 32000), 68976648192),
    "Llama-3.1-8B": (llama(4096, 14336, 32, 32, 8, 128256, **SCALED), 8030261248),
    "Llama-3.1-70B": (llama(8192, 28672, 80, 64, 8, 128256, **SCALED), 70553706496),
    "Llama-3.1-405B": (llama(16384, 53248, 126, 128, 8, 128256, **SCALED), 405853388800),
    "Llama-3.2-1B": (llama(2048, 8192, 16, 32, 8, 128256, head_dim=64, tie_word_embeddings=True), 1235814400),
    "Llama-3.2-3B": (llama(3072, 8192, 28, 24, 8, 128256, head_dim=128, tie_word_embeddings=True), 3212749824),
    "TinyLlama-1.1B": (llama(2048, 5632, 22, 32, 4, 32000), 1100048384),
    "Qwen-7B": (llama(4096, 22016, 32, 32, 32, 151936, "qwen", kv_channels=128, no_bias=True), 7721324544),
    "Qwen2.5-0.5B": (qwen2(896, 4864, 24, 14, 2, 151936, tie_word_embeddings=True), 494032768),
    "Qwen2.5-7B": (qwen2(3584, 18944, 28, 28, 4, 152064), 7615616512),
    "Qwen2.5-72B": (qwen2(8192, 29568, 80, 64, 8, 152064), 72706203648),
    "Qwen3-0.6B": (qwen3(1024, 3072, 28, 16, 8, tie_word_embeddings=True), 596049920),
    "Qwen3-8B": (qwen3(4096, 12288, 36, 32, 8), 8190735360),
    "Qwen3-32B": (qwen3(5120, 25600, 64, 64, 8), 32762123264),
    "Qwen3-30B-A3B": (qwen3(2048, 6144, 48, 32, 4) | MOE, 30532122624),
    "Mistral-7B": (mistral(), 7241732096),
    "Mistral-Nemo": (mistral(hidden_size=5120, head_dim=128, num_hidden_layers=40, vocab_size=131072, sliding_window=None), 12247782400),
    "Mixtral-8x7B": (mixtral(), 46702792704),
    "Mixtral-8x22B": (mixtral(hidden_size=6144, intermediate_size=16384, num_attention_heads=48, num_hidden_layers=56, vocab_size=32768), 140630071296),
    "GPT-2": (gpt2(12, 768, 12), 124439808),
    "GPT-2 medium": (gpt2(24, 1024, 16), 354823168),
    "GPT-2 large": (gpt2(36, 1280, 20), 774030080),
    "GPT-2 XL": (gpt2(48, 1600, 25), 1557611200),
    "GPT-NeoX-20B": (neox(44, 6144, 64, 50432), 20554567680),
    "Pythia-70M": (neox(6, 512, 8, 50304), 70426624),
    "Pythia-1.4B": (neox(24, 2048, 16, 50304), 1414647808),
    "Pythia-12B": (neox(36, 5120, 40, 50688), 11846072320),
    "BERT-base": (bert(12, 768, 12), 110106428),
    "BERT-large": (bert(24, 1024, 16), 336226108),
    "ViT-B/16": (vit(12, 768, 12, 16), 86567656),
    "ViT-L/16": (vit(24, 1024, 16, 16), 304326632),
    "ViT-H/14": (vit(32, 1280, 16, 14), 632045800),
    "T5-small": (t5(6, 512, 64, 2048, 8), 60506624),
    "T5-base": (t5(12, 768, 64, 3072, 12), 222903552),
    "T5-3B": (t5(24, 1024, 128, 16384, 32), 2851598336),
    "T5-11B": (t5(24, 1024, 128, 65536, 128), 11307321344),
    "Flan-T5-XL": (t5(24, 2048, 64, 5120, 32, feed_forward_proj="gated-gelu", tie_word_embeddings=False), 2849757184),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published(name):
    c, wanted = PUBLISHED[name]
    assert sum(size.parameters(config.model(c))) == wanted


# One of each family, small: what is priced has the weights that are counted
SMALL = {
    "llama": llama(64, 96, 8, 4, 2, 256, head_dim=32, attention_bias=True, mlp_bias=True),
    "qwen2": llama(64, 96, 8, 4, 2, 256, "qwen2", tie_word_embeddings=True),
    "qwen3": llama(64, 96, 8, 4, 2, 256, "qwen3", head_dim=24),
    "qwen3_moe": llama(64, 96, 8, 4, 2, 256, "qwen3_moe", num_experts=8, num_experts_per_tok=2, moe_intermediate_size=48),
    "mixtral": llama(64, 96, 8, 4, 2, 256, "mixtral"),
    "gpt2": dict(gpt2(8, 64, 4), vocab_size=250, n_positions=64),
    "gpt_neox": neox(8, 64, 4, 250),
    "bert": dict(bert(8, 64, 4), vocab_size=250),
    "vit": dict(vit(8, 64, 4, 4), image_size=16, num_labels=10),
    "t5": t5(8, 64, 24, 96, 4),
    "t5 v1.1": t5(8, 64, 24, 96, 4, feed_forward_proj="gated-gelu", tie_word_embeddings=False),
}


def trees(c, **cut):
    from opentrn._predict import programs

    m = config.model(c)
    return m, programs.weights("whole", m.layers, m, spec.Cut(seq=32, **cut), "fp32")


def count(tree):
    total = 0
    for v in tree:
        n = 1
        for d in v.shape:
            n *= d
        total += n
    return total


@pytest.mark.parametrize("name", SMALL)
def test_programs_have_them(name):
    m, tree = trees(SMALL[name])
    assert count(tree) == sum(size.parameters(m))


@pytest.mark.parametrize("name", SMALL)
def test_adapters(name):
    """Only adapters learn, experts and norms among what does not; their weights and FLOP are those that are counted."""
    import jax
    import jax.numpy as jnp
    from opentrn._predict import model
    from test_configs import multiplied

    m, tree = trees(SMALL[name], lora=4)
    assert count(v for v in tree if not v.frozen) == size.adapters(m, 4)
    assert count(v for v in tree if v.frozen) == sum(size.parameters(m))
    m, u = dataclasses.replace(m, dropout=0.0, score_dropout=0.0), spec.Cut(seq=32, lora=4)
    run, batch, _, _ = model.piece("whole", m.layers, m, u, jnp.float32)
    given = [jax.ShapeDtypeStruct(v.shape, jnp.float32) for v in tree]
    learned = [i for i, v in enumerate(tree) if not v.frozen]

    def loss(changing, given, *batch):
        full = list(given)
        for i, v in zip(learned, changing):
            full[i] = v
        return run(model.Weights(full), *batch)

    found = multiplied(jax.make_jaxpr(jax.grad(loss))([given[i] for i in learned], given, *batch).jaxpr)
    if m.experts:  # room that stays empty, forward and backward
        found -= 0.25 * 4 * 3 * m.width * m.hidden * m.chosen * m.layers * u.seq
    if m.task == "span":  # its bias on scores
        found -= 2 * spec.BUCKETS * m.heads * (u.seq**2 + spec.wanted(u.seq) ** 2)
    assert found == pytest.approx(size.model_flops(m, u.seq, 4), rel=0.04)  # the first layer's input needs no gradient
