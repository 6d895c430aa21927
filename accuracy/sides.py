# SPDX-License-Identifier: Apache-2.0
"""One step predicted from three sides: a configuration, a JAX function, a PyTorch module with a plan.

    .venv/bin/python accuracy/sides.py                          every row; --only=trn2,bert: those with these words in their name
    .venv/bin/python accuracy/sides.py --large                  at a size that people train

The three are one program: the same layers and types, AdamW with clipping, and the attention that the module has (a configuration's own choice for
encoders is older, docs/predict.md). Over dp x tp devices of one machine.
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
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel  # noqa: E402

import opentrn  # noqa: E402
from opentrn._predict import compose, config, layout, machines, price  # noqa: E402
from opentrn.torch import export_step  # noqa: E402


@dataclasses.dataclass(frozen=True)
class Size:
    width: int = 1024
    heads: int = 16
    layers: int = 2
    vocab: int = 4096
    seq: int = 256
    batch: int = 8  # sequences of a replica

    def hidden(self, name):
        return 11 * self.width // 4 if name == "llama" else 4 * self.width


TESTS, LARGE = Size(), Size(2048, 16, 4, 32000, 1024, 4)
MODELS, LAYOUTS = ("llama", "gpt2", "bert"), ((2, 1), (1, 2), (2, 2))


def config_of(name, s):
    alike = dict(hidden_size=s.width, intermediate_size=s.hidden(name), num_hidden_layers=s.layers, num_attention_heads=s.heads, vocab_size=s.vocab)
    if name == "llama":
        return {"model_type": name, **alike}
    if name == "bert":
        return {"model_type": name, **alike, "max_position_embeddings": s.seq, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    return dict(model_type=name, n_embd=s.width, n_layer=s.layers, n_head=s.heads, vocab_size=s.vocab, n_positions=s.seq, resid_pdrop=0.0, attn_pdrop=0.0)


def loss(logits, targets):
    """In fp32, whatever the model's type, as transformers has it."""
    return F.cross_entropy(logits.flatten(0, -2).float(), targets.flatten())


class Attention(torch.nn.Module):
    def __init__(self, s, bias):
        super().__init__()
        self.heads = s.heads
        self.q, self.k, self.v, self.o = (torch.nn.Linear(s.width, s.width, bias=bias) for _ in range(4))

    def forward(self, x, turn=lambda t: t, mask=None, causal=True):
        q, k, v = (f(x).unflatten(-1, (self.heads, -1)) for f in (self.q, self.k, self.v))
        q, k, v = (t.transpose(1, 2) for t in (turn(q), turn(k), v))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal)
        return self.o(y.transpose(1, 2).flatten(2))


class LlamaLayer(torch.nn.Module):
    def __init__(self, s):
        super().__init__()
        self.norms = torch.nn.ModuleList(torch.nn.RMSNorm(s.width, eps=1e-5) for _ in range(2))
        self.attention = Attention(s, False)
        self.gate, self.up = (torch.nn.Linear(s.width, s.hidden("llama"), bias=False) for _ in range(2))
        self.down = torch.nn.Linear(s.hidden("llama"), s.width, bias=False)

    def forward(self, x, turn):
        x = x + self.attention(self.norms[0](x), turn)
        h = self.norms[1](x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Llama(torch.nn.Module):
    def __init__(self, s):
        super().__init__()
        self.embed, self.layers = torch.nn.Embedding(s.vocab, s.width), torch.nn.ModuleList(LlamaLayer(s) for _ in range(s.layers))
        self.norm, self.head = torch.nn.RMSNorm(s.width, eps=1e-5), torch.nn.Linear(s.width, s.vocab, bias=False)
        half = s.width // s.heads // 2
        angle = torch.arange(s.seq)[:, None] / 10000 ** (torch.arange(half) / half)
        self.register_buffer("cos", angle.cos()[None, :, None])
        self.register_buffer("sin", angle.sin()[None, :, None])

    def forward(self, tokens, targets):
        def turn(t):
            a, b = t.chunk(2, -1)
            return torch.cat([a * self.cos - b * self.sin, b * self.cos + a * self.sin], -1)

        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x, turn)
        return loss(self.head(self.norm(x)), targets)


class Mlp(torch.nn.Module):
    def __init__(self, s, act):
        super().__init__()
        self.up, self.down, self.act = torch.nn.Linear(s.width, 4 * s.width), torch.nn.Linear(4 * s.width, s.width), act

    def forward(self, x):
        return self.down(F.gelu(self.up(x), approximate=self.act))


class GptLayer(torch.nn.Module):
    def __init__(self, s):
        super().__init__()
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(s.width) for _ in range(2))
        self.attention, self.mlp = Attention(s, True), Mlp(s, "tanh")

    def forward(self, x):
        x = x + self.attention(self.norms[0](x))
        return x + self.mlp(self.norms[1](x))


class Gpt(torch.nn.Module):
    def __init__(self, s):
        super().__init__()
        self.embed, self.places = torch.nn.Embedding(s.vocab, s.width), torch.nn.Embedding(s.seq, s.width)
        self.layers, self.norm = torch.nn.ModuleList(GptLayer(s) for _ in range(s.layers)), torch.nn.LayerNorm(s.width)

    def forward(self, tokens, targets):
        x = self.embed(tokens) + self.places.weight
        for layer in self.layers:
            x = layer(x)
        return loss(F.linear(self.norm(x), self.embed.weight), targets)


class BertLayer(torch.nn.Module):
    def __init__(self, s):
        super().__init__()
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(s.width) for _ in range(2))
        self.attention, self.mlp = Attention(s, True), Mlp(s, "none")

    def forward(self, x, mask):
        x = self.norms[0](x + self.attention(x, mask=mask, causal=False))
        return self.norms[1](x + self.mlp(x))


class Bert(torch.nn.Module):
    def __init__(self, s):
        super().__init__()
        self.embed, self.places, self.kinds = torch.nn.Embedding(s.vocab, s.width), torch.nn.Embedding(s.seq, s.width), torch.nn.Embedding(2, s.width)
        self.norm, self.layers = torch.nn.LayerNorm(s.width), torch.nn.ModuleList(BertLayer(s) for _ in range(s.layers))
        self.pool, self.follow = torch.nn.Linear(s.width, s.width), torch.nn.Linear(s.width, 2)
        self.turn, self.turned, self.bias = torch.nn.Linear(s.width, s.width), torch.nn.LayerNorm(s.width), torch.nn.Parameter(torch.zeros(s.vocab))

    def forward(self, tokens, kinds, lengths, targets, follows):
        x = self.norm(self.embed(tokens) + self.places.weight + self.kinds(kinds))
        mask = (torch.arange(tokens.shape[1]) < lengths[:, None])[:, None, None, :]
        for layer in self.layers:
            x = layer(x, mask)
        first = loss(self.follow(torch.tanh(self.pool(x[:, 0]))), follows)
        words = F.linear(self.turned(F.gelu(self.turn(x))), self.embed.weight, self.bias)
        return first + loss(words, targets)


PLAN = {"batch*": ("dp",), "embed.weight": ("tp",), "*attention.[qkv]": ColwiseParallel(), "*attention.o": RowwiseParallel()}
MORE = {
    "llama": {"head": ColwiseParallel(), "*gate": ColwiseParallel(), "*up": ColwiseParallel(), "*down": RowwiseParallel()},
    "gpt2": {"*mlp.up": ColwiseParallel(), "*mlp.down": RowwiseParallel()},
    "bert": {"*mlp.up": ColwiseParallel(), "*mlp.down": RowwiseParallel(), "bias": ("tp",)},
}


class Autocast(torch.nn.Module):
    """A model whose products are bf16, with fp32 weights."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, *batch):
        with torch.autocast("cpu", torch.bfloat16):
            return self.model(*batch)


def job_of(name, s, chip, dp, tp, precision="fp32"):
    machine = dataclasses.replace(machines.machine(composition.CHIPS[chip]), devices=dp * tp)
    job = layout.Job(config.model(config_of(name, s)), machine, 1, s.seq, dp * s.batch, precision)
    return job, layout.Layout(tp=tp, dp=dp, micro_batch=s.batch, sp=False, attention="flash")


def of_configuration(job, x):
    return compose.step(job, x, price.Prices(job.machine))


def of_jax(job, x, folder):
    """The same builder's layers, as one program over the mesh."""
    path = pathlib.Path(folder) / "jax.mlir"
    path.write_text(composition.whole(job, x), encoding="utf-8")
    return opentrn.predict(path, instance=job.machine.name)


def of_torch(name, s, job, x, folder):
    model = {"llama": Llama, "gpt2": Gpt, "bert": Bert}[name](s)
    model = model.to(torch.bfloat16) if job.precision == "bf16" else model
    every, each = torch.zeros(x.dp * s.batch, s.seq, dtype=torch.long), torch.zeros(x.dp * s.batch, dtype=torch.long)
    batch = (every, every, each, every, each) if name == "bert" else (every, every)
    plan, opt = {**PLAN, **MORE[name]}, torch.optim.AdamW(model.parameters())
    if job.precision == "amp":
        model, plan = Autocast(model), {k if k.startswith(("*", "batch")) else f"model.{k}": v for k, v in plan.items()}
    export_step(model, opt, batch, folder, inputs=False, mesh={"dp": x.dp, "tp": x.tp}, plan=plan, max_norm=1.0)
    return opentrn.predict(pathlib.Path(folder) / "step.mlir", instance=job.machine.name)


def rows(only=""):
    for chip, name, (dp, tp), precision in itertools.product(composition.CHIPS, MODELS, LAYOUTS, ("fp32", "amp", "bf16")):
        row = f"{chip} {name} dp={dp} tp={tp} {precision}"
        if all(word in row for word in only.split(",")):
            yield row, (chip, name, dp, tp, precision)


def three(s, chip, name, dp, tp, precision="fp32", folder=None):
    """What each side tells: of the configuration, of JAX, of PyTorch."""
    job, x = job_of(name, s, chip, dp, tp, precision)
    with tempfile.TemporaryDirectory() as own:
        folder = folder or own
        return of_configuration(job, x), of_jax(job, x, folder), of_torch(name, s, job, x, folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="rows whose name has all of these words, separated by commas")
    parser.add_argument("--large", action="store_true", help="layers as people train them")
    parser.add_argument("--keep", metavar="FOLDER", help="leave the programs there")
    o = parser.parse_args()
    os.environ.setdefault("OTRN_CACHE_DIR", str(HERE.parent / "build" / "composition"))
    print(f"{'':36} {'configuration':>14} {'JAX':>12} {'PyTorch us':>12} {'apart %':>8}")
    apart = []
    for row, what in rows(o.only):
        folder = o.keep and pathlib.Path(o.keep) / row.replace(" ", "-")
        if folder:
            folder.mkdir(parents=True, exist_ok=True)
        times = [1e6 * told["step_s"] for told in three(LARGE if o.large else TESTS, *what, folder=folder)]
        apart.append(100 * (max(times) / min(times) - 1))
        print(f"{row:36} {times[0]:14.1f} {times[1]:12.1f} {times[2]:12.1f} {apart[-1]:8.2f}", flush=True)
    if apart:
        print(f"{len(apart)} steps: {sum(apart) / len(apart):.2f} % apart in the mean, {max(apart):.2f} % at most")
    return 0


if __name__ == "__main__":
    sys.exit(main())
