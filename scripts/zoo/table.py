# SPDX-License-Identifier: Apache-2.0
"""The training steps of `make zoo`: a name, what makes it, and how.

    exporter   examples/jax/export_NAME.py with these options (the steps of `make models` and of `make table`)
    example    the step that examples/jax/NAME.py trains with, in its default size
    net        a model of nets.py: (batch keywords, model keywords)
    transformer    a configuration of transformer.py

and keywords of weights.lower behind it. Names end in what tells an entry from its like.
"""

import sys

BF16 = dict(compute="bf16")
GPT = dict(layers=6, width=512, heads=8, vocab=16384, seq=512, batch=4)  # for variants of one model
LLAMA = dict(layers=4, width=2048, heads=16, kv=4, hidden=5632, vocab=32000, seq=2048, norm="rms", act="swiglu",
             places="rotary", bias=False, tied=False)  # fmt: skip
BERT = dict(layers=24, width=1024, heads=16, vocab=30522, act="erf", task="mlm", post=True)

EXPORTERS = {
    "gpt2 1x1024 fp32": ("gpt2", ["--batch=1", "--seq=1024"]),
    "gpt2 1x1024 bf16": ("gpt2", ["--batch=1", "--seq=1024", "--dtype=bf16"]),
    "gpt2 4x256 fp32": ("gpt2", ["--batch=4", "--seq=256"]),
    "gpt2 4x256 bf16": ("gpt2", ["--batch=4", "--seq=256", "--dtype=bf16"]),
    "gpt2 1x1024 bf16 threefry": ("gpt2", ["--batch=1", "--seq=1024", "--dtype=bf16", "--dropout=10"]),
    "gpt2 1x1024 bf16 rbg": ("gpt2", ["--batch=1", "--seq=1024", "--dtype=bf16", "--dropout=10", "--prng=rbg"]),
    "bert-large 8x128 fp32": ("bert", []),
    "bert-large 8x128 bf16": ("bert", ["--dtype=bf16"]),
    "bert-large 8x128 fp32 threefry": ("bert", ["--dropout=10"]),
    "bert-large 8x128 fp32 rbg": ("bert", ["--dropout=10", "--prng=rbg"]),
    "vit-s/16 16x224 fp32": ("vit", []),
    "dlrm 512": ("dlrm", []),
    "resnet50 8x224 fp32": ("resnet50", []),
    "resnet50 8x224 bf16": ("resnet50", ["--dtype=bfloat16"]),
    "llama-1b 32 devices": ("llama", []),
    "digits mlp": ("mlp", []),
}
EXAMPLES = ["gpt", "vit", "bert", "dlrm", "pde", "long_context"]
# name: (model, its batch, its sizes), how it is lowered
NETS = {
    "mobilenet-v2 16x224": (("mobilenet", "pictures", {}, {}), dict(optimizer="sgd")),
    "convnext-t 8x224 bf16": (("convnext", "pictures", dict(batch=8), {}), BF16),
    "vgg16 16x64": (("vgg", "pictures", dict(side=64), {}), dict(optimizer="sgd")),
    "mixer-s 16x224 bf16": (("mixer", "pictures", {}, {}), BF16),
    "clip 32 bf16": (("clip", "clip", {}, {}), BF16),
    "unet diffusion 8x64": (("unet", "unet", {}, {}), {}),
    "unet diffusion 8x64 bf16": (("unet", "unet", {}, {}), BF16),
    "dit-s 16x32 bf16 scan": (("dit", "dit", {}, {}), BF16),
    "dit-s 16x32 bf16 unrolled": (("dit", "dit", {}, dict(scan=False)), BF16),
    "vae 64x32 threefry": (("vae", "vae", {}, {}), dict(prng="threefry2x32")),
    "vae 64x32 rbg": (("vae", "vae", {}, {}), dict(prng="rbg")),
    "vq-vae 32x32": (("vq_vae", "vae", dict(batch=32), {}), {}),
    "nerf 1024 rays": (("nerf", "nerf", {}, {}), dict(optimizer="adamw")),
    "lstm 8x128": (("lstm", "tokens", dict(seq=128), {}), dict(optimizer="sgd")),
    "gru seq2seq 16x64": (("gru", "tokens", dict(batch=16, seq=64), {}), {}),
    "mamba 4x256 scan": (("mamba", "tokens", dict(batch=4, seq=256), {}), {}),
    "mamba 4x256 unrolled": (("mamba", "tokens", dict(batch=4, seq=256), dict(scan=False)), {}),
    "lru 4x256": (("lru", "tokens", dict(batch=4, seq=256), {}), {}),
    "complex scan 4x256": (("complex_scan", "tokens", dict(batch=4, seq=256), {}), {}),
    "self-taught 4x256": (("self_taught", "tokens", dict(batch=4, seq=256), {}), dict(optimizer="sgd")),
    "sorted experts 4x256 bf16": (("sorted_experts", "tokens", dict(batch=4, seq=256), {}), BF16),
    "retention 4x1024 bf16": (("linear_attention", "tokens", dict(batch=4, seq=1024), {}), BF16),
    "t5-small 8x512 bf16 scan": (("t5", "tokens", {}, {}), dict(BF16, optimizer="adafactor")),
    "t5-small 8x512 bf16 unrolled": (("t5", "tokens", {}, dict(scan=False)), dict(BF16, optimizer="adafactor")),
    "speech ctc 8x800": (("speech", "speech", {}, {}), {}),
    "graph 4096 nodes": (("graph", "graph", {}, {}), {}),
    "word vectors 8192": (("words", "words", {}, {}), dict(optimizer="sgd")),
    "two towers 4096": (("towers", "towers", {}, {}), {}),
    "ppo 4096": (("ppo", "ppo", {}, {}), {}),
    "q-learning 64x84": (("atari", "atari", {}, {}), {}),
}
TRANSFORMERS = {
    "gpt2 1x1024 bf16 scan": (dict(scan=True), BF16),
    "gpt2 1x1024 bf16 unrolled": (dict(), BF16),
    "llama 1x2048 bf16 scan": (dict(LLAMA, scan=True), BF16),
    "llama 1x2048 bf16 unrolled": (LLAMA, BF16),
    "llama 1x2048 bf16 remat": (dict(LLAMA, scan=True, remat="full"), BF16),
    "llama 1x4096 bf16": (dict(LLAMA, seq=4096, layers=2, remat="attention"), BF16),
    "mistral 1x2048 window": (dict(LLAMA, layers=2, window=512), BF16),
    "gpt-neox 1x2048 bf16": (dict(LLAMA, layers=4, kv=0, hidden=8192, norm="layer", act="gelu", bias=True, parallel=True), BF16),
    "mixture 1x1024 bf16": (dict(LLAMA, layers=2, width=1024, seq=1024, hidden=2048, experts=8), BF16),
    "bert-large ph1 16x128 scan": (dict(BERT, seq=128, batch=16, scan=True), dict(BF16, store="bf16")),
    "bert-large ph1 16x128 unrolled": (dict(BERT, seq=128, batch=16), dict(BF16, store="bf16")),
    "bert-large ph1 16x128 micro": (dict(BERT, seq=128, batch=16), dict(BF16, store="bf16", optimizer=None)),
    "bert-large ph2 2x512 unrolled": (dict(BERT, seq=512, batch=2), dict(BF16, store="bf16", optimizer="lamb")),
    "vit-b/16 8x224 bf16 scan": (dict(task="classes", seq=224, batch=8, scan=True), BF16),
    "vit-b/16 8x224 bf16 unrolled": (dict(task="classes", seq=224, batch=8), BF16),
    "small gpt sgd": (GPT, dict(BF16, optimizer="sgd")),
    "small gpt adamw clipped": (GPT, dict(BF16, optimizer="adamw clipped")),
    "small gpt lion": (GPT, dict(BF16, optimizer="lion")),
    "small gpt adafactor": (GPT, dict(BF16, optimizer="adafactor")),
    "small gpt muon": (GPT, dict(BF16, optimizer="muon")),
    "small gpt fp32": (GPT, {}),
    "small gpt all bf16": (GPT, dict(BF16, store="bf16")),
    "small gpt dropout threefry": (dict(GPT, dropout=10), dict(BF16, prng="threefry2x32")),
    "small gpt dropout rbg": (dict(GPT, dropout=10), dict(BF16, prng="rbg")),
    "small gpt dropout rbg scan": (dict(GPT, dropout=10, scan=True), dict(BF16, prng="rbg")),
    "small gpt 4 micro-batches": (GPT, dict(BF16, micro=4)),
}


def entries():
    """(name, kind, what) of every step, in the order of the table."""
    rows = [(name, "exporter", what) for name, what in EXPORTERS.items()]
    rows += [(f"example {name}", "example", name) for name in EXAMPLES]
    rows += [(name, "transformer", what) for name, what in TRANSFORMERS.items()]
    return rows + [(name, "net", what) for name, what in NETS.items()]


def net(what):
    import nets
    import weights

    (name, batch, sizes, more), how = what
    model = getattr(nets, name)
    return weights.lower(lambda w, *b: model(w, *b, **more), getattr(nets, f"{batch}_batch")(**sizes), **how)


def configured(what):
    import transformer
    import weights

    sizes, how = what
    return weights.lower(*transformer.model(transformer.Config(**sizes)), **how)


def example(name):
    """The step that an example trains with: its own train(), stopped where it would run the first one."""
    import importlib

    class Step(Exception):
        pass

    def stop(*args):
        raise Step(step.lower(*args))

    module = importlib.import_module(name)
    step, module.train_step = module.train_step, stop
    try:
        module.train(out=sys.stderr)
    except Step as found:
        return found.args[0]
    finally:
        module.train_step = step
    raise AssertionError(f"{name} trained without its step")


# kind: what lowers it, and the files that its steps are made from
KINDS = {
    "exporter": (None, lambda what: [f"examples/jax/export_{what[0]}.py", "examples/jax/export_common.py"]),
    "example": (example, lambda what: [f"examples/jax/{what}.py", "examples/jax/common.py"]),
    "transformer": (configured, lambda what: ["scripts/zoo/weights.py", "scripts/zoo/transformer.py"]),
    "net": (net, lambda what: ["scripts/zoo/weights.py", "scripts/zoo/transformer.py", "scripts/zoo/nets.py"]),
}
