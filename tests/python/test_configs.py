# SPDX-License-Identifier: Apache-2.0
"""Configurations as they are found: each key that changes a layer is priced, or refused by its name."""

import dataclasses
import json
import math
import sys

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "python"))
from opentrn._predict import config, size, spec
from opentrn._predict.fault import Fault

LLAMA = dict(model_type="llama", hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, vocab_size=256)
QWEN_MOE = dict(LLAMA, model_type="qwen3_moe", num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32)
NEOX = dict(LLAMA, model_type="gpt_neox")
T5 = dict(model_type="t5", d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, vocab_size=256)
BERT = dict(LLAMA, model_type="bert")
VIT = dict(LLAMA, model_type="vit", image_size=32, patch_size=16)
QWEN = dict(LLAMA, model_type="qwen")
GPT2 = dict(model_type="gpt2", n_embd=64, n_layer=2, n_head=4, vocab_size=256)

PRICED = [  # what changes, and what becomes of the model
    (LLAMA, {}, dict(qkv_bias=False, out_bias=False, bias=False, kv=4, head=16, tied=False, window=0, dropout=0.0, rotary=1.0)),
    (LLAMA, dict(attention_bias=True), dict(qkv_bias=True, out_bias=True, bias=False)),
    (LLAMA, dict(mlp_bias=True), dict(qkv_bias=False, bias=True)),
    (LLAMA, dict(num_key_value_heads=2, head_dim=32, tie_word_embeddings=True), dict(kv=2, head=32, tied=True)),
    (LLAMA, dict(rope_scaling={"rope_type": "llama3", "factor": 8.0}, rope_theta=5e5, pretraining_tp=1), dict(places="rotary", rotary=1.0)),
    (LLAMA, dict(attention_dropout=0.1), dict(score_dropout=0.1, dropout=0.0)),
    (dict(LLAMA, model_type="mistral"), {}, dict(window=4096)),
    (dict(LLAMA, model_type="mistral"), dict(sliding_window=None), dict(window=0)),
    (dict(LLAMA, model_type="mixtral"), dict(sliding_window=128), dict(window=128, experts=8, chosen=2)),
    (QWEN, dict(kv_channels=16, no_bias=True), dict(hidden=64, head=16, qkv_bias=True, out_bias=False, bias=False, tied=False, rotary=1.0)),
    (QWEN, dict(kv_channels=32, attn_dropout_prob=0.2, rotary_pct=0.5), dict(head=32, score_dropout=0.2, rotary=0.5)),
    (dict(LLAMA, model_type="qwen2"), dict(use_sliding_window=False, sliding_window=32768, max_window_layers=28), dict(window=0, qkv_bias=True, out_bias=False)),
    (dict(LLAMA, model_type="qwen3"), dict(layer_types=["full_attention"] * 2, attention_bias=False), dict(qk_norm=True, qkv_bias=False)),
    (QWEN_MOE, dict(mlp_only_layers=[], decoder_sparse_step=1), dict(hidden=32, experts=4, chosen=2, qk_norm=True)),
    (NEOX, {}, dict(rotary=0.25, qkv_bias=True, parallel=True)),
    (NEOX, dict(rotary_pct=1.0, attention_bias=False, use_parallel_residual=False), dict(rotary=1.0, qkv_bias=False, out_bias=False, parallel=False)),
    (NEOX, dict(rope_parameters={"partial_rotary_factor": 0.5}), dict(rotary=0.5)),
    (GPT2, dict(resid_pdrop=0.0, attn_pdrop=0.2, n_inner=100), dict(dropout=0.0, score_dropout=0.2, hidden=100)),
    (BERT, dict(attention_probs_dropout_prob=0.0), dict(dropout=0.1, score_dropout=0.0, post=True)),
    (VIT, dict(qkv_bias=False), dict(qkv_bias=False, bias=True)),
    (T5, dict(feed_forward_proj="gelu"), dict(act="erf", gated=False)),
    (T5, dict(feed_forward_proj="gated-gelu", tie_word_embeddings=False), dict(act="gelu", gated=True, tied=False)),
    (T5, dict(feed_forward_proj="gated-silu"), dict(act="silu", gated=True)),
]
REFUSED = [
    (dict(LLAMA, model_type="qwen2"), dict(use_sliding_window=True, sliding_window=128), "use_sliding_window"),
    (QWEN, dict(no_bias=False), "no_bias"),
    (dict(LLAMA, model_type="qwen3"), dict(layer_types=["full_attention", "sliding_attention"]), "layer_types"),
    (LLAMA, dict(layer_types=["sliding_attention"] * 2), "layer_types"),
    (LLAMA, dict(alibi=True), "alibi"),
    (LLAMA, dict(partial_rotary_factor=0.5), "partial_rotary_factor"),
    (LLAMA, dict(kv_lora_rank=512), "kv_lora_rank"),
    (LLAMA, dict(quantization_config={"bits": 4}), "quantization_config"),
    (LLAMA, dict(hidden_act="laurel"), "laurel"),
    (QWEN_MOE, dict(mlp_only_layers=[0]), "mlp_only_layers"),
    (QWEN_MOE, dict(decoder_sparse_step=2), "decoder_sparse_step"),
    (QWEN_MOE, dict(shared_expert_intermediate_size=64), "shared_expert_intermediate_size"),
    (NEOX, dict(rotary_pct=0.0, partial_rotary_factor=7), "rotary"),
    (BERT, dict(position_embedding_type="relative_key"), "position_embedding_type"),
    (BERT, dict(is_decoder=True), "is_decoder"),
    (GPT2, dict(add_cross_attention=True), "add_cross_attention"),
    (VIT, dict(num_channels=1), "num_channels"),
    (T5, dict(num_decoder_layers=4), "num_decoder_layers"),
    (dict(LLAMA, model_type="deepseek_v3"), dict(n_shared_experts=1), "deepseek_v3"),
    (dict(LLAMA, model_type="bloom"), {}, "bloom"),
    (dict(LLAMA, model_type="gemma3_text"), {}, "gemma3_text"),
]


@pytest.mark.parametrize("c, change, wanted", PRICED)
def test_priced(c, change, wanted):
    m = config.model({**c, **change})
    assert {k: getattr(m, k) for k in wanted} == wanted


@pytest.mark.parametrize("c, change, name", REFUSED)
def test_refused_by_name(c, change, name):
    with pytest.raises(Fault, match=name):
        config.model({**c, **change})


def text(c, **cut):
    from opentrn._predict import programs

    m = config.model({**c, "attention_probs_dropout_prob": 0.0} if c["model_type"] == "bert" else c)
    return programs.micro("whole", 1, m, spec.Cut(**{"seq": 32, **cut}), ("bf16", "bf16", "bf16"), True)


def test_what_is_priced_is_in_the_program():
    """Biases are weights, rotary positions turn what they should, windows mask."""
    from opentrn._predict import programs

    count = lambda **more: len(programs.weights("whole", 1, config.model({**LLAMA, **more}), spec.Cut(seq=32)))
    assert count(attention_bias=True) == count() + 4 and count(mlp_bias=True) == count() + 3
    texts = [text(dict(NEOX, rotary_pct=share)) for share in (0.25, 0.5, 1.0)]
    assert ["1x32x1x%dxf32" % half in t for t, half in zip(texts, (2, 4, 8))] == [True] * 3
    assert text(dict(LLAMA, model_type="mixtral", sliding_window=8)) != text(dict(LLAMA, model_type="mixtral"))
    assert "rng_bit_generator" in text(dict(LLAMA, attention_dropout=0.1)) and "rng_bit_generator" not in text(LLAMA)


def multiplied(jaxpr, times=1):
    """FLOP of the products of a jaxpr, as JAX itself tells their shapes."""
    total = 0
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == "dot_general":
            (left, _), _ = eqn.params["dimension_numbers"]
            total += 2 * math.prod(eqn.outvars[0].aval.shape) * math.prod(eqn.invars[0].aval.shape[d] for d in left)
        for inner in eqn.params.values():
            inner = getattr(inner, "jaxpr", inner)
            total += multiplied(inner) if hasattr(inner, "eqns") else 0
    return times * total


@pytest.mark.parametrize("c", [LLAMA, dict(LLAMA, num_key_value_heads=2, head_dim=32), dict(LLAMA, model_type="mixtral"), QWEN_MOE, NEOX, GPT2, BERT, VIT, T5], ids=lambda c: c["model_type"])
def test_flops_of_every_family(c):
    """What mfu counts is three times what the forward products multiply; of a mixture without the room that stays empty."""
    import jax
    import jax.numpy as jnp

    from opentrn._predict import model, programs

    m, u = config.model(c), spec.Cut(seq=512)
    m = dataclasses.replace(m, dropout=0.0, score_dropout=0.0, positions=max(m.positions, 512))
    run, batch, _, _ = model.piece("whole", m.layers, m, u, jnp.float32)
    given = [jax.ShapeDtypeStruct(v.shape, jnp.float32) for v in programs.weights("whole", m.layers, m, u, "fp32")]
    found = multiplied(jax.make_jaxpr(lambda given, *batch: run(model.Weights(given), *batch))(given, *batch).jaxpr)
    if m.experts:
        found -= 0.25 * 2 * 3 * m.width * m.hidden * m.chosen * m.layers * u.seq
    if m.task == "span":  # its bias on scores
        found -= 2 * model.BUCKETS * m.heads * (u.seq**2 + spec.wanted(u.seq) ** 2)
    assert 3 * found == pytest.approx(size.model_flops(m, u.seq), rel=0.01)


FILES = [  # what a config.json may have in it, and what is told of it
    ("", "not JSON"),
    ("[]", "a table of keys and values is needed"),
    ("{}", "model_type is missing"),
    ("[" * 200000, "nested too deep"),
    ('{"a":' * 100000, "nested too deep"),
    (json.dumps(LLAMA).encode("utf-16"), "not UTF-8"),
    (dict(LLAMA, hidden_size=float("nan")), "hidden_size is NaN; a whole number above 0 is needed"),
    (dict(LLAMA, hidden_size="64"), "numbers are written without quotes"),
    (dict(LLAMA, hidden_size=None), "hidden_size is missing"),
    (dict(LLAMA, num_hidden_layers=True), "num_hidden_layers is true; a whole number"),
    (dict(LLAMA, num_attention_heads=0), "num_attention_heads is 0"),
    (dict(LLAMA, num_key_value_heads=0), "num_key_value_heads is 0"),
    (dict(LLAMA, num_key_value_heads=[]), "num_key_value_heads is []"),
    (dict(LLAMA, head_dim={}), "head_dim is {}"),
    (dict(LLAMA, vocab_size=10**30), "more than 16777216"),
    (dict(LLAMA, hidden_act="swish2"), "hidden_act = swish2 is not known"),
    (dict(LLAMA, hidden_act=["silu"]), 'hidden_act is ["silu"]; a word is needed'),
    (dict(LLAMA, attention_dropout="x"), "attention_dropout is \"x\"; a share"),
    (dict(LLAMA, attention_dropout=1), "a share from 0 to below 1"),
    (dict(LLAMA, attention_bias="yes"), "true or false is needed"),
    (dict(LLAMA, tie_word_embeddings=2), "true or false is needed"),
    (dict(LLAMA, rope_parameters="x"), "a table is needed"),
    (dict(LLAMA, layer_types="full_attention"), "a list is needed"),
    (dict(LLAMA, model_type="mistral", sliding_window="x"), "sliding_window is \"x\"; a whole number is needed"),
    (dict(LLAMA, model_type="mistral", sliding_window=-5), "sliding_window is -5"),
    (dict(LLAMA, model_type="mixtral", num_local_experts="8"), "num_local_experts is"),
    (dict(LLAMA, model_type="mixtral", num_experts_per_tok=99), "more than the 8 experts"),
    ({"model_type": "vit", "patch_size": 0}, "patch_size is 0"),
    ({"model_type": "vit", "image_size": 10}, "more than image_size"),
    ({"model_type": "vit", "id2label": 7}, "a table is needed"),
    ({"model_type": "t5", "feed_forward_proj": "gated-what"}, "feed_forward_proj = what is not known"),
    ({"model_type": "gpt2", "n_positions": "x"}, 'n_positions is "x"'),
    ({"model_type": "gpt2", "resid_pdrop": 5}, "resid_pdrop is 5"),
    ({"model_type": "bert", "num_attention_heads": 5}, "a width of 768 cannot be shared by 5 heads"),
]


@pytest.mark.parametrize("content, told", FILES, ids=lambda v: str(v)[:40])
def test_wrong_configuration(content, told, tmp_path):
    """By the file's name and its own key, in a line."""
    raw = content if isinstance(content, bytes) else (content if isinstance(content, str) else json.dumps(content)).encode()
    (tmp_path / "config.json").write_bytes(raw)
    with pytest.raises(Fault) as fault:
        config.read(tmp_path)
    assert told in f"{fault.value} {fault.value.hint}" and str(fault.value).startswith(str(tmp_path)) and "\n" not in str(fault.value)


def test_what_a_file_leaves_open(tmp_path):
    """null is as if it were left out, but for a window: there is none then. A mark at the beginning of a file is none of it."""
    assert config.model(dict(LLAMA, num_key_value_heads=None)).kv == 4
    assert config.model(dict(LLAMA, model_type="mistral")).window == 4096 and config.model(dict(LLAMA, model_type="mistral", sliding_window=None)).window == 0
    (tmp_path / "config.json").write_bytes(b"\xef\xbb\xbf" + json.dumps(LLAMA).encode())
    assert config.read(tmp_path).width == 64
