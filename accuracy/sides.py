# SPDX-License-Identifier: Apache-2.0
"""One step predicted from three sides: a Hugging Face configuration, the Transformers module of it with a plan, and the same in plain JAX over a mesh.

    make sides                                    every row, those furthest apart first; T=trn2,bert: those with these words in their name
    .venv/bin/python accuracy/sides.py --only='dp=2 tp=2,amp' --keep=FOLDER      leaves the programs there

The three are one program: the same layers and types, AdamW with clipping, no dropout, the attention that the module has (a configuration's own choice for encoders is older,
docs/predict.md). The module is Transformers' own, made from the same configuration; plain.py knows nothing of how a configuration is priced.
"""

import argparse
import dataclasses
import itertools
import os
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "python"), str(HERE)]
import composition  # noqa: E402
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import plain  # noqa: E402
import torch  # noqa: E402

import opentrn  # noqa: E402
from opentrn._predict import compose, config, layout, machines, price  # noqa: E402
from opentrn._predict.programs import TYPES  # noqa: E402
from opentrn._predict.spec import wanted  # noqa: E402
from opentrn.torch import export_step  # noqa: E402

SEQ, BATCH = 256, 8  # of a replica
_SIZES = dict(hidden_size=1024, num_hidden_layers=2, num_attention_heads=16, vocab_size=4096)
_LLAMA = dict(_SIZES, intermediate_size=2816)
_DRY = dict(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
CONFIGS = {
    "llama": dict(_LLAMA, model_type="llama"),
    "qwen": dict(_LLAMA, model_type="qwen2", num_key_value_heads=4, tie_word_embeddings=True),
    "mistral": dict(_LLAMA, model_type="mistral", num_key_value_heads=4, sliding_window=128),
    "gpt2": dict(model_type="gpt2", n_embd=1024, n_layer=2, n_head=16, vocab_size=4096, n_positions=SEQ, resid_pdrop=0.0, attn_pdrop=0.0, embd_pdrop=0.0),
    "gpt_neox": dict(_SIZES, model_type="gpt_neox", intermediate_size=4096),
    "bert": dict(_SIZES, model_type="bert", intermediate_size=4096, max_position_embeddings=SEQ, **_DRY),
    "vit": dict(model_type="vit", hidden_size=1024, num_hidden_layers=2, num_attention_heads=16, intermediate_size=4096, **_DRY),
    "t5": dict(model_type="t5", d_model=1024, d_kv=64, d_ff=4096, num_layers=2, num_heads=16, vocab_size=4096, dropout_rate=0.0),
}
LAYOUTS = (dict(), dict(dp=2), dict(tp=2), dict(dp=2, tp=2), dict(dp=2, zero=1), dict(dp=2, zero=3))
PRECISIONS = ("fp32", "amp", "bf16")
# Megatron's cuts by what Transformers calls its modules; GPT-2's weights lie the other way round
_COLUMNS = "q_proj k_proj v_proj gate_proj up_proj lm_head embed_out query_key_value dense_h_to_4h query key value intermediate.dense q k v wi fc1 c_attn c_fc".split()
_ROWS = "o_proj down_proj attention.dense dense_4h_to_h output.dense o wo fc2 c_proj".split()
_TABLES = "embed_tokens wte embed_in word_embeddings shared".split()


def batch_of(m, n):
    """Names that Transformers gives a batch of n, and shapes of it, those of JAX in the order of its arguments."""
    whole = lambda *shape: jax.ShapeDtypeStruct(shape, jnp.int32)
    tokens, made = whole(n, SEQ), whole(n, wanted(SEQ))
    return {
        "lm": dict(input_ids=tokens, labels=tokens),
        "mlm": dict(input_ids=tokens, token_type_ids=tokens, attention_mask=tokens, labels=tokens, next_sentence_label=whole(n)),
        "classes": dict(pixel_values=jax.ShapeDtypeStruct((n, 3, m.image, m.image), jnp.float32), labels=whole(n)),
        "span": dict(input_ids=tokens, decoder_input_ids=made, labels=made),
    }[m.task]


def module_of(name, m):
    import transformers

    kind = {"lm": "AutoModelForCausalLM", "mlm": "AutoModelForPreTraining", "classes": "AutoModelForImageClassification", "span": "AutoModelForSeq2SeqLM"}[m.task]
    given = dict(CONFIGS[name])
    made = transformers.AutoConfig.for_model(given.pop("model_type"), **given, **({"num_labels": m.classes} if m.task == "classes" else {}))
    made.use_cache = False
    return getattr(transformers, kind).from_config(made)


class Autocast(torch.nn.Module):
    """A model whose products are bf16, with fp32 weights."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, **batch):
        with torch.autocast("cpu", torch.bfloat16):
            return self.model(**batch)


def plan_of(model, x):
    """How each weight lies: cut over `tp`, and where replicas share them, in parts."""
    plan = {"batch*": ("dp",)} if x.dp > 1 else {}
    for name, p in model.named_parameters():
        owner, last = name.rsplit(".", 1)
        ends = lambda words: x.tp > 1 and any(f".{owner}".endswith(f".{w}") for w in words)
        turned, cut = type(model.get_submodule(owner)).__name__ == "Conv1D", [None] * p.dim()
        if ends(_COLUMNS) or ends(_TABLES) or name.endswith("predictions.bias"):
            cut[p.dim() - 1 if turned else 0] = "tp" if x.tp > 1 else None
        elif ends(_ROWS) and last == "weight":
            cut[0 if turned else 1] = "tp"
        elif ends(("relative_attention_bias",)):
            cut[1] = "tp"
        parts = plain.parted(p.shape, cut, x.dp) if x.zero else cut
        plan |= {f"{name}.exp_avg*": tuple(parts)} if x.zero else {}
        plan |= {name: tuple(parts if x.zero == 3 else cut)} if any(cut) or x.zero == 3 else {}
    return plan


def job_of(name, chip, x, precision):
    machine = dataclasses.replace(machines.machine(composition.CHIPS[chip]), devices=x.dp * x.tp)
    return layout.Job(config.model(CONFIGS[name]), machine, 1, SEQ, x.dp * BATCH, precision)


def layout_of(cut):
    return layout.Layout(**cut, micro_batch=BATCH, sp=False, attention="flash")


def jax_text(name, x, precision):
    m = config.model(CONFIGS[name])
    bias = {k: m.bias if getattr(m, k) is None else getattr(m, k) for k in ("qkv_bias", "out_bias")}
    compute, store, _ = (TYPES[t] for t in layout.PRECISIONS[precision])
    return plain.text(dataclasses.asdict(m) | bias, batch_of(m, x.dp * BATCH).values(), (store, compute), {"dp": x.dp, "tp": x.tp}, x.zero)


def torch_text(name, x, precision, folder):
    m = config.model(CONFIGS[name])
    model = module_of(name, m)
    model = model.to(torch.bfloat16) if precision == "bf16" else Autocast(model) if precision == "amp" else model
    kind = torch.bfloat16 if precision == "bf16" else torch.float32
    batch = {k: torch.zeros(v.shape, dtype=kind if v.dtype == jnp.float32 else torch.long) for k, v in batch_of(m, x.dp * BATCH).items()}
    export_step(model, torch.optim.AdamW(model.parameters()), batch, folder, inputs=False, mesh={"dp": x.dp, "tp": x.tp}, plan=plan_of(model, x), max_norm=1.0)
    return (pathlib.Path(folder) / "step.mlir").read_text(encoding="utf-8")


def steps(only=""):
    """(name of a step, what it is, chips it is priced for): those with a row that has all words."""
    for name, cut, precision in itertools.product(CONFIGS, LAYOUTS, PRECISIONS):
        if cut.get("zero") and precision == "bf16":
            continue  # fp32 weights beside bf16 ones: no optimizer of torch's or optax's has them
        step = f"{name} {' '.join(f'{k}={v}' for k, v in cut.items())} {precision}".replace("  ", " ")
        chips = [c for c in composition.CHIPS if all(f" {w} " in f" {c} {step} " for w in filter(None, only.split(",")))]
        if chips:
            yield step, (name, cut, precision), chips


def three(chips, name, cut, precision, folder):
    """For each chip what each side tells: of the configuration, of JAX, of PyTorch."""
    x, folder = layout_of(cut), pathlib.Path(folder)
    written = {"jax": jax_text(name, x, precision), "torch": torch_text(name, x, precision, folder)}
    for side, text in written.items():
        (folder / f"{side}.mlir").write_text(text, encoding="utf-8")
    for chip in chips:
        job = job_of(name, chip, x, precision)
        yield chip, [compose.step(job, x, price.Prices(job.machine)), *(composition.priced(job, t) for t in written.values())]


def seconds(told):
    return [told[0]["step_s"], *(1e-6 * t["step_us"] for t in told[1:])]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="rows whose name has all of these words, separated by commas")
    parser.add_argument("--keep", metavar="FOLDER", help="leave the programs there")
    o = parser.parse_args()
    os.environ.setdefault("OTRN_CACHE_DIR", str(HERE.parent / "build" / "composition"))
    line = lambda row, times, apart: f"{row:36} {times[0]:14.1f} {times[1]:12.1f} {times[2]:12.1f} {apart:8.2f}"
    found = []
    for step, what, chips in steps(o.only):
        with tempfile.TemporaryDirectory() as own:
            folder = pathlib.Path(o.keep or own) / step.replace(" ", "-")
            folder.mkdir(parents=True, exist_ok=True)
            for chip, told in three(chips, *what, folder=folder):
                times = [1e6 * t for t in seconds(told)]
                found.append((100 * (max(times) / min(times) - 1), f"{chip} {step}", times))
                print(line(found[-1][1], times, found[-1][0]), flush=True)
    print(f"\n{'furthest apart first':36} {'configuration':>14} {'JAX':>12} {'PyTorch us':>12} {'apart %':>8}")
    for apart, row, times in sorted(found, reverse=True):
        print(line(row, times, apart))
    if found:
        apart = [v[0] for v in found]
        print(f"{len(apart)} steps: {sum(apart) / len(apart):.2f} % apart in the mean, {max(apart):.2f} % at most, {sum(v > 5 for v in apart)} more than 5 %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
