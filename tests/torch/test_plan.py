# SPDX-License-Identifier: Apache-2.0
"""Steps over a mesh: a sharding plan for PyTorch, what it refuses, and one Llama predicted from three sides."""

import json
import subprocess

import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F
from conftest import ROOT
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel

import opentrn
from opentrn.torch import export_step, shard

WIDTH, HEADS, HIDDEN, LAYERS, VOCAB, SEQ = 1024, 16, 2816, 2, 4096, 256


def _linear(a, b):
    return torch.nn.Linear(a, b, bias=False)


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = torch.nn.ModuleList(torch.nn.RMSNorm(WIDTH, eps=1e-5) for _ in range(2))
        self.q, self.k, self.v, self.o = (_linear(WIDTH, WIDTH) for _ in range(4))
        self.gate, self.up, self.down = _linear(WIDTH, HIDDEN), _linear(WIDTH, HIDDEN), _linear(HIDDEN, WIDTH)

    def forward(self, x, cos, sin):
        def rotate(t):
            a, b = t.chunk(2, -1)
            return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

        h = self.norms[0](x)
        q, k, v = (f(h).unflatten(-1, (HEADS, -1)) for f in (self.q, self.k, self.v))
        q, k, v = (t.transpose(1, 2) for t in (rotate(q), rotate(k), v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)
        x = x + self.o(y.flatten(2))
        h = self.norms[1](x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Llama(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.layers = torch.nn.Embedding(VOCAB, WIDTH), torch.nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm, self.head = torch.nn.RMSNorm(WIDTH, eps=1e-5), _linear(WIDTH, VOCAB)
        half = WIDTH // HEADS // 2
        angle = torch.arange(SEQ)[:, None] / 10000 ** (torch.arange(half) / half)
        self.register_buffer("cos", angle.cos()[None, :, None])
        self.register_buffer("sin", angle.sin()[None, :, None])

    def forward(self, tokens, targets):
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x, self.cos, self.sin)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())


PLAN = {
    "batch*": ("dp",),
    "embed.weight": ("tp",),
    "head": ColwiseParallel(),
    "layers.*.[qkv]": ColwiseParallel(),
    "layers.*.gate.weight": [Replicate(), Shard(0)],
    "layers.*.up.weight": [Replicate(), Shard(0)],
    "layers.*.o": RowwiseParallel(),
    "layers.*.down.weight": [Replicate(), Shard(1)],
}


def _of_torch(dp, tp, batch, instance):
    model = Llama()
    tokens = torch.zeros(dp * batch, SEQ, dtype=torch.long)
    opt = torch.optim.AdamW(model.parameters())
    return opentrn.predict(model, opt, (tokens, tokens), instance=instance, mesh={"dp": dp, "tp": tp}, plan=PLAN, max_norm=1.0)


def _of_jax(dp, tp, batch, instance, m):
    """What a device has and does, and what it tells the others, over a mesh; gradients are clipped, as a configuration's are."""
    import jax
    import jax.numpy as jnp
    from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec as P
    from opentrn._predict import model, programs, spec

    cut = spec.Cut(tp=tp, seq=SEQ, batch=batch)
    run, inputs, _, _ = model.piece("whole", LAYERS, m, cut, jnp.float32)
    tree = programs.weights("whole", LAYERS, m, cut, "fp32")
    mesh = AbstractMesh((dp, tp), ("dp", "tp"))
    wide = lambda v, n, spec: jax.ShapeDtypeStruct((n * v.shape[0], *v.shape[1:]), getattr(v, "dtype", jnp.float32), sharding=NamedSharding(mesh, spec))
    params, inputs = [wide(v, tp, P("tp")) for v in tree], [wide(v, dp, P("dp")) for v in inputs]

    def step(params, first, second, *inputs):
        loss, grads = jax.value_and_grad(lambda p: run(model.Weights(p, jnp.float32), *inputs))(params)
        grads, loss = jax.lax.psum((grads, loss), "dp")
        scale = jnp.minimum(1.0, 1.0 / (jnp.sqrt(jax.lax.psum(sum((g * g).sum() for g in grads), "tp")) + 1e-6))
        new = [programs._adamw(p, g * scale, (a, b), 10.0, None) for p, g, a, b in zip(params, grads, first, second)]
        return [p for p, _ in new], [s[0] for _, s in new], [s[1] for _, s in new], jnp.reshape(loss, (1,))

    specs = (P("tp"), P("tp"), P("tp"))
    spread = jax.shard_map(step, mesh=mesh, in_specs=(*specs, *(P("dp") for _ in inputs)), out_specs=(*specs, P("dp")), check_vma=False)
    return opentrn.predict(jax.jit(spread, donate_argnums=(0, 1, 2)), params, params, params, *inputs, instance=instance)


def test_one_llama_from_three_sides(tmp_path, monkeypatch):
    """From PyTorch with a plan, from JAX with shardings and from a configuration: within 5 % of each other."""
    import dataclasses

    from opentrn._predict import compose, config, layout, machines, price

    monkeypatch.setenv("OTRN_CACHE_DIR", str(tmp_path))
    dp, tp, batch, instance = 2, 2, 8, "trn1.32xlarge"
    shape = dict(hidden_size=WIDTH, intermediate_size=HIDDEN, num_hidden_layers=LAYERS, num_attention_heads=HEADS, vocab_size=VOCAB)
    m = config.model({"model_type": "llama", **shape})
    machine = dataclasses.replace(machines.machine(instance), devices=dp * tp)
    job = layout.Job(m, machine, 1, SEQ, dp * batch, "fp32")
    composed = compose.step(job, layout.Layout(tp=tp, dp=dp, micro_batch=batch, sp=False), price.Prices(machine))
    times = [composed, _of_torch(dp, tp, batch, instance), _of_jax(dp, tp, batch, instance, m)]
    times = [r["step_s"] for r in times]
    assert max(times) < 1.05 * min(times), times


class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.table = torch.nn.Linear(8, 16), torch.nn.Linear(16, 8), torch.nn.Embedding(4, 8)

    def forward(self, at, y):
        return F.mse_loss(self.b(torch.tanh(self.a(self.table(at)))), y)


def _small(path, **words):
    torch.manual_seed(3)
    model = Small()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
    return export_step(model, opt, (torch.arange(8) % 4, torch.randn(8, 8)), path, **words)


def _run(path, manifest):
    files = ",".join(str(path / a["file"]) for a in manifest["arguments"])
    ran = subprocess.run([ROOT / "build" / "otrn", "run", path / "step.mlir", f"--input={files}"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return [line for line in ran.stdout.splitlines() if line.startswith("result")]


def test_plan_and_whole_give_the_same_step(tmp_path):
    """Over four devices, cut three ways, a step trains as it does on one; the manifest tells how tensors lie."""
    plan = {"batch*": ("dp",), "a": ColwiseParallel(), "b": RowwiseParallel(), "table.weight": [Shard(0), Replicate()]}
    manifest = _small(tmp_path / "cut", mesh={"dp": 2, "tp": 2}, plan=plan)
    cuts = {a["name"]: a["cuts"] for a in manifest["arguments"]}
    assert cuts["a.weight"] == [["tp"], []] == cuts["a.weight.exp_avg"] and cuts["b.bias"] == [[]] and cuts["a.bias"] == [["tp"]]
    assert cuts["b.weight"] == [[], ["tp"]] and cuts["table.weight"] == [["dp"], []] and cuts["batch[0]"] == [["dp"]]
    assert json.loads((tmp_path / "cut" / "manifest.json").read_text())["mesh"] == {"dp": 2, "tp": 2}
    loss = [r["kind"] for r in manifest["results"]].index("loss")
    one, four = (float(_run(tmp_path / k, m)[loss].split(":")[-1]) for k, m in (("whole", _small(tmp_path / "whole")), ("cut", manifest)))
    assert four == pytest.approx(one, rel=1e-5)


def test_a_plan_trains_in_two_processes(tmp_path):
    """`otrn train` over four devices: in one process and in two the same checkpoint."""
    plan = {"batch*": ("dp",), "a": ColwiseParallel(), "b": RowwiseParallel(), "table.weight": [Shard(0), Replicate()]}
    _small(tmp_path / "cut", mesh={"dp": 2, "tp": 2}, plan=plan)
    otrn, saved = ROOT / "build" / "otrn", []
    for way in [], [otrn, "launch", "-n", "2", "--devices=2"]:
        words = [otrn, "train", tmp_path / "cut", "--steps=3", "--sample=0", f"--checkpoint={tmp_path}/{len(way)}"]
        ran = subprocess.run([*way, *words], capture_output=True, text=True, timeout=300)
        assert ran.returncode == 0, ran.stderr
        saved.append([file.read_bytes() for file in sorted((tmp_path / str(len(way)) / "step-00000003").iterdir())])
    assert saved[0] == saved[1]


def test_indices_are_narrow(tmp_path):
    """PyTorch's indices have 64 bits; transfers by index take 32."""
    _small(tmp_path)
    lines = (tmp_path / "step.mlir").read_text().splitlines()
    moves = [line for line in lines if "stablehlo.gather" in line or "stablehlo.scatter" in line or "}) : (tensor<4x8xf32>, tensor<8x1x" in line]
    assert any("gather" in line for line in moves) and any("scatter" in line for line in moves)
    assert not any("1xi64>" in line for line in moves) and sum("1xi32>" in line for line in moves) == 2


@pytest.mark.parametrize(
    "mesh, plan, text",
    [
        ({"dp": 0}, {}, "axes of one device or more"),
        ({"dp": 2}, {"nothing.*": ("dp",)}, "nothing of the step is called 'nothing.*'"),
        ({"dp": 2}, {"a.weight": ("tp",)}, "an axis 'tp'; the mesh has dp"),
        ({"dp": 3}, {"batch*": ("dp",)}, r"8 of batch\[0\] \[8\] cannot be cut into 3 parts"),
        ({"dp": 2}, {"a.weight": ("dp", "dp")}, "cuts a.weight twice"),
        ({"dp": 2}, {"a.weight": ("dp", None, None)}, "has 2 dimensions; its plan tells of 3"),
        ({"dp": 2}, {"a.weight": [Shard(0), Shard(1)]}, "has 2 placements; the mesh has 1 axes"),
        ({"dp": 2}, {"a.weight": [Shard(5)]}, "is none of them"),
        ({"dp": 2}, {"a": ColwiseParallel()}, "along the axis 'tp'; the mesh has dp"),
        ({"dp": 2}, {"a.weight": "dp"}, "a tuple with a mesh axis or None"),
    ],
)
def test_bad_plan(mesh, plan, text):
    model = Small()
    shapes = {**{k: p.shape for k, p in model.named_parameters()}, "batch[0]": (8,)}
    with pytest.raises((ValueError, TypeError), match=text):
        found = shard.Plan(mesh, plan, model)
        for name, shape in shapes.items():
            found.cuts([name], shape)
        found.done()


def test_bad_plan_writes_nothing(tmp_path):
    with pytest.raises(ValueError, match="a plan needs a mesh"):
        _small(tmp_path / "out", plan={"batch*": ("dp",)})
    with pytest.raises(ValueError, match="nothing of the step is called"):
        _small(tmp_path / "out", mesh={"dp": 2}, plan={"bach*": ("dp",)})
    assert not (tmp_path / "out").exists()
