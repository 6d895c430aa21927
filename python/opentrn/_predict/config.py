# SPDX-License-Identifier: Apache-2.0
"""A Hugging Face configuration (config.json) as a Model.

Keys that a file leaves out have the values transformers gives them.
"""

import json
import os

from opentrn._predict.fault import Fault
from opentrn._predict.spec import Model

_LLAMA = dict(norm="rms", act="silu", gated=True, places="rotary", bias=False)
_ACTS = {
    "gelu": "erf", "gelu_new": "gelu", "gelu_fast": "gelu", "gelu_pytorch_tanh": "gelu", "relu": "relu", "silu": "silu", "swish": "silu",
}  # fmt: skip


def _act(c, name, usual):
    word = c.get(name, usual)
    if word not in _ACTS:
        raise Fault(f"{name} = {word} is not known", f"known are {', '.join(_ACTS)}")
    return _ACTS[word]


def _llama(c, qkv_bias=None, **more):
    heads, width, bias = c["num_attention_heads"], c["hidden_size"], c.get("attention_bias", False)
    return dict(
        _LLAMA, layers=c["num_hidden_layers"], width=width, heads=heads, kv=c.get("num_key_value_heads") or heads,
        head=c.get("head_dim") or width // heads, hidden=c["intermediate_size"], vocab=c["vocab_size"], tied=c.get("tie_word_embeddings", False),
        act=_act(c, "hidden_act", "silu"), score_dropout=c.get("attention_dropout", 0.0), qkv_bias=bias if qkv_bias is None else qkv_bias,
        out_bias=bias if qkv_bias is None else False, **{"bias": c.get("mlp_bias", False), **more},
    )  # fmt: skip


def _window(c, usual=0):
    return c.get("sliding_window", usual) or 0


def _qwen2(c):
    return _llama(c, qkv_bias=True)


def _qwen(c):
    """The first Qwen: its MLP's width counts both halves of the way up."""
    c = dict(c, intermediate_size=c["intermediate_size"] // 2, attention_dropout=c.get("attn_dropout_prob", 0.0), head_dim=c.get("kv_channels"))
    return _llama(c, qkv_bias=True, rotary=c.get("rotary_pct", 1.0))


def _mixtral(c):
    return _llama(c, window=_window(c), experts=c.get("num_local_experts", 8), chosen=c.get("num_experts_per_tok", 2))


def _qwen3_moe(c):
    c = dict(c, intermediate_size=c["moe_intermediate_size"])
    return _llama(c, qk_norm=True, experts=c["num_experts"], chosen=c["num_experts_per_tok"])


def _gpt2(c):
    width = c.get("n_embd", 768)
    return dict(
        layers=c.get("n_layer", 12), width=width, heads=c.get("n_head", 12), kv=c.get("n_head", 12), head=width // c.get("n_head", 12),
        hidden=c.get("n_inner") or 4 * width, vocab=c.get("vocab_size", 50257), positions=c.get("n_positions", 1024),
        act=_act(c, "activation_function", "gelu_new"), dropout=c.get("resid_pdrop", 0.1), score_dropout=c.get("attn_pdrop", 0.1),
        tied=c.get("tie_word_embeddings", True),
    )  # fmt: skip


def _turned(c):
    """Share of a head that rotary positions turn, in either place it can stand; None: not told."""
    return c.get("partial_rotary_factor") or (c.get("rope_parameters") or {}).get("partial_rotary_factor")


def _neox(c):
    heads, width, bias = c["num_attention_heads"], c["hidden_size"], c.get("attention_bias", True)
    share = _turned(c) or c.get("rotary_pct", 0.25)
    return dict(
        layers=c["num_hidden_layers"], width=width, heads=heads, kv=heads, head=width // heads, hidden=c["intermediate_size"],
        vocab=c["vocab_size"], places="rotary", rotary=share, act=_act(c, "hidden_act", "gelu"), parallel=c.get("use_parallel_residual", True),
        tied=c.get("tie_word_embeddings", False), dropout=c.get("hidden_dropout", 0.0), score_dropout=c.get("attention_dropout", 0.0),
        qkv_bias=bias, out_bias=bias,
    )  # fmt: skip


def _bert(c):
    heads, width = c.get("num_attention_heads", 12), c.get("hidden_size", 768)
    return dict(
        layers=c.get("num_hidden_layers", 12), width=width, heads=heads, kv=heads, head=width // heads,
        hidden=c.get("intermediate_size", 3072), vocab=c.get("vocab_size", 30522), positions=c.get("max_position_embeddings", 512),
        act=_act(c, "hidden_act", "gelu"), dropout=c.get("hidden_dropout_prob", 0.1), score_dropout=c.get("attention_probs_dropout_prob", 0.1),
        task="mlm", post=True,
    )  # fmt: skip


def _vit(c):
    heads, width = c.get("num_attention_heads", 12), c.get("hidden_size", 768)
    return dict(
        layers=c.get("num_hidden_layers", 12), width=width, heads=heads, kv=heads, head=width // heads, hidden=c.get("intermediate_size", 3072),
        vocab=1, image=c.get("image_size", 224), patch=c.get("patch_size", 16), classes=len(c.get("id2label", ())) or c.get("num_labels", 1000),
        act=_act(c, "hidden_act", "gelu"), dropout=c.get("hidden_dropout_prob", 0.0), score_dropout=c.get("attention_probs_dropout_prob", 0.0),
        qkv_bias=c.get("qkv_bias", True), task="classes", places="none",
    )  # fmt: skip


def _t5(c):
    way = str(c.get("feed_forward_proj", "relu"))
    act = way.removeprefix("gated-")
    return dict(
        layers=c.get("num_layers", 6), decoder=c.get("num_decoder_layers") or c.get("num_layers", 6), width=c.get("d_model", 512),
        heads=c.get("num_heads", 8), kv=c.get("num_heads", 8), head=c.get("d_kv", 64), hidden=c.get("d_ff", 2048), vocab=c.get("vocab_size", 32128),
        norm="rms", act=_ACTS["gelu_new"] if way == "gated-gelu" else _act({"feed_forward_proj": act}, "feed_forward_proj", act), gated=way != act, places="none", bias=False,
        tied=c.get("tie_word_embeddings", True), dropout=c.get("dropout_rate", 0.1), score_dropout=c.get("dropout_rate", 0.1), task="span",
    )  # fmt: skip


KINDS = {
    "llama": _llama, "mistral": lambda c: _llama(c, window=_window(c, 4096)), "qwen": _qwen, "qwen2": _qwen2, "qwen3": lambda c: _llama(c, qk_norm=True),
    "qwen3_moe": _qwen3_moe, "mixtral": _mixtral, "gpt2": _gpt2, "gpt_neox": _neox, "bert": _bert, "vit": _vit, "t5": _t5, "mt5": _t5,
}  # fmt: skip


# Keys that make the layers others than those that are priced, and what may stand there
_PLAIN = {
    "use_sliding_window": (False, None), "no_bias": (True, None), "alibi": (False, None), "mlp_only_layers": ([], None), "decoder_sparse_step": (1, None),
    "first_k_dense_replace": (0, None), "kv_lora_rank": (None,), "add_cross_attention": (False, None), "is_decoder": (False, None),
    "position_embedding_type": ("absolute", None), "num_channels": (3, None),
    "attn_logit_softcapping": (None,), "final_logit_softcapping": (None,), "quantization_config": (None,), "text_config": (None,),
    "vision_config": (None,), "no_rope_layers": ([], None), "use_qk_norm": (False, None), "qk_layernorm": (False, None),
    "n_shared_experts": (0, None), "num_shared_experts": (0, None), "shared_expert_intermediate_size": (0, None),
}  # fmt: skip


def _check(c, kind, path):
    """Refuses by name what would be priced as something else."""
    for name, plain in _PLAIN.items():
        if name in c and c[name] not in plain:
            raise Fault(f"{path}: {name} = {json.dumps(c[name])[:60]} is not modelled for {kind}", f"priced are models with {name} = {json.dumps(plain[0])}")
    if kind != "gpt_neox" and _turned(c) not in (None, 1):
        raise Fault(f"{path}: partial_rotary_factor = {_turned(c)} is not modelled for {kind}", "model_type gpt_neox has it")
    sorts = {*map(str, c.get("layer_types", ()))}
    if len(sorts) > 1 or sorts - {"full_attention", "sliding_attention"}:
        raise Fault(f"{path}: layer_types has {', '.join(sorted(sorts))}: layers that differ are not modelled", "priced are models whose layers are alike")
    if sorts == {"sliding_attention"} and kind not in ("mistral", "mixtral"):
        raise Fault(f"{path}: layer_types has sliding_attention, which is not modelled for {kind}", "model_type mistral has it")
    if c.get("num_decoder_layers") not in (None, c.get("num_layers", 6)):
        raise Fault(f"{path}: num_decoder_layers = {c['num_decoder_layers']} is not modelled beside num_layers = {c.get('num_layers', 6)}", "as many of both are")


MOST = 2**24  # of anything in a configuration

# What may stand at a key that is read: sizes, shares, switches, words and tables
_SIZES = (
    "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim", "intermediate_size", "moe_intermediate_size", "vocab_size",
    "num_experts", "num_local_experts", "num_experts_per_tok", "max_position_embeddings", "n_embd", "n_layer", "n_head", "n_inner", "n_positions", "image_size",
    "patch_size", "num_labels", "num_layers", "num_decoder_layers", "d_model", "num_heads", "d_kv", "d_ff", "kv_channels",
)  # fmt: skip
_SHARES = ("attention_dropout", "hidden_dropout", "hidden_dropout_prob", "attention_probs_dropout_prob", "resid_pdrop", "attn_pdrop", "dropout_rate", "attn_dropout_prob")
_OTHERS = {
    "a number above 0, 1 at most": (lambda v: _is(v, int, float) and 0 < v <= 1, ("partial_rotary_factor", "rotary_pct")),
    "a whole number": (lambda v: _is(v, int) and 0 <= v <= 2**31, ("sliding_window",)),
    "true or false": (lambda v: isinstance(v, bool), ("tie_word_embeddings", "attention_bias", "mlp_bias", "use_parallel_residual", "qkv_bias")),
    "a word": (lambda v: isinstance(v, str), ("hidden_act", "activation_function", "feed_forward_proj")),
    "a table": (lambda v: isinstance(v, dict), ("rope_parameters", "id2label")),
    "a list": (lambda v: isinstance(v, list), ("layer_types",)),
}  # fmt: skip


def _is(v, *types):
    return isinstance(v, types) and not isinstance(v, bool)


def _told(c):
    """What a file tells: null is as if it were left out, but for a window, of which there is none then. Raises Fault by the file's own key where a value is not what belongs there."""
    c = {k: v for k, v in c.items() if v is not None or k == "sliding_window"}
    for name, v in c.items():
        word = json.dumps(v)
        word = word if len(word) < 40 else word[:36] + " ..."
        if name in _SIZES and not (_is(v, int) and v > 0):
            raise Fault(f"{name} is {word}; a whole number above 0 is needed", "numbers are written without quotes and without a point" if isinstance(v, (str, float)) else "")
        if name in _SIZES and v > MOST:
            raise Fault(f"{name} is {word}, more than {MOST}", "is the unit right? a configuration counts single elements")
        if name in _SHARES and not (_is(v, int, float) and 0 <= v < 1):
            raise Fault(f"{name} is {word}; a share from 0 to below 1 is needed")
        for kind, (holds, names) in _OTHERS.items():
            if name in names and v is not None and not holds(v):
                raise Fault(f"{name} is {word}; {kind} is needed")
    return c


def read(path):
    """The model of a config.json."""
    path = os.path.join(path, "config.json") if os.path.isdir(path) else path  # a model's folder
    try:
        with open(path, encoding="utf-8-sig") as file:
            c = json.load(file)
    except OSError as error:
        raise Fault(f"{path}: {error.strerror}", "the config.json of a Hugging Face model, or its folder") from None
    except UnicodeDecodeError as error:
        raise Fault(f"{path}: not UTF-8: byte {error.start} cannot be read", "a Hugging Face config.json is needed") from None
    except RecursionError:
        raise Fault(f"{path}: nested too deep", "a Hugging Face config.json is needed") from None
    except ValueError as error:
        raise Fault(f"{path}: not JSON: {error}", "a Hugging Face config.json is needed") from None
    return model(c, path)


def model(c, path="configuration"):
    kind = c.get("model_type") if isinstance(c, dict) else None
    if not isinstance(kind, str) or kind not in KINDS:
        raise Fault(f"{path}: {_unknown(c)}", f"known are {', '.join(KINDS)}; a model with the layers of one of these (as phi3 has llama's, roberta bert's) is priced by its name as model_type")
    try:
        c = _told(c)
        _check(c, kind, path)
        found = Model(kind=kind, **KINDS[kind](c))
    except KeyError as error:
        raise Fault(f"{path}: {error.args[0]} is missing", f"a config.json of model_type {kind} has it") from None
    except Fault as fault:
        raise fault if str(fault).startswith(str(path)) else Fault(f"{path}: {fault}", fault.hint) from None
    if found.task != "span" and not c.get("head_dim") and found.width % found.heads:
        raise Fault(f"{path}: a width of {found.width} cannot be shared by {found.heads} heads", "head_dim tells how wide a head is where it is not width / heads")
    if found.heads % found.kv:
        raise Fault(f"{path}: {found.heads} heads cannot share {found.kv} heads of keys and values")
    if found.experts and found.chosen > found.experts:
        raise Fault(f"{path}: num_experts_per_tok is {found.chosen}, more than the {found.experts} experts")
    if found.task == "classes" and found.patch > found.image:
        raise Fault(f"{path}: patch_size is {found.patch}, more than image_size, {found.image}")
    return found


def _unknown(c):
    if not isinstance(c, dict):
        return "a table of keys and values is needed"
    return f"model_type {json.dumps(c['model_type'])[:60]} is not known" if "model_type" in c else "model_type is missing"
