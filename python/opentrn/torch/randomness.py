# SPDX-License-Identifier: Apache-2.0
"""Random numbers in captured graphs: torch's generators out, opentrn's own in.

Torch's CPU generator is a sequential machine that a device cannot follow. Each random operator of a
graph becomes `opentrn::uniform` (or normal, integers) with the number of its stream, and all of
them share one `opentrn::draw_seed`, two integers that the host takes from torch's default generator
when the graph is called. So `torch.manual_seed` repeats a run, and a recomputed operator repeats
itself.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import library as torch_library
from torch.utils.checkpoint import CheckpointPolicy

_library = torch_library.Library("opentrn", "DEF")
_library.define("draw_seed() -> Tensor", tags=[torch.Tag.nondeterministic_seeded])
# Sizes may be symbols (sizes.py): a plain int would tie the whole trace to the size it was made with.
_library.define("uniform(Tensor seed, int stream, SymInt[] size, ScalarType dtype) -> Tensor")
_library.define("normal(Tensor seed, int stream, SymInt[] size, ScalarType dtype) -> Tensor")
_library.define(
    "integers(Tensor seed, int stream, SymInt low, SymInt high, SymInt[] size, ScalarType dtype) -> Tensor"
)
# The CPU generator's own sequence, for eager operators of the device (neuron/drawn.py): (state behind it, words or pairs of them as int64).
_library.define("twister(Tensor state, int count, bool wide) -> (Tensor, Tensor)")
WORDS = 632  # of 64 bits, of a generator's state


def _draw_seed():
    return torch.randint(-(2**63), 2**63 - 1, (2,), dtype=torch.int64)


def _empty(seed, stream, *rest):
    *_, size, dtype = rest
    return torch.empty(size, dtype=dtype, device=seed.device)


_library.impl("draw_seed", _draw_seed, "CompositeExplicitAutograd")
_library.impl("draw_seed", lambda: torch.empty((2,), dtype=torch.int64, device="meta"), "Meta")
for _name in ("uniform", "normal", "integers"):
    _library.impl(_name, _empty, "Meta")

_library.impl("twister", lambda state, count, wide: (torch.empty_like(state), state.new_empty(count)), "Meta")

aten, own = torch.ops.aten, torch.ops.opentrn


class _Writer:
    """Puts nodes before another one and gives them the fake values the partitioner wants."""

    def __init__(self, graph, old):
        self.graph, self.old = graph, old
        self.fake_mode = old.meta["val"].fake_mode

    def call(self, target, *args):
        node = self.graph.call_function(target, args)
        node.meta = {k: v for k, v in self.old.meta.items() if k != "tensor_meta"}
        with self.fake_mode:
            values = torch.fx.node.map_arg(args, lambda n: n.meta["val"])
            node.meta["val"] = target(*values)
        return node

    def size(self):
        """Of what the old node makes, as arguments of a new one: that of its tensor, or what it was given. Sizes that are not known yet
        (sizes.py) are nodes."""
        for arg in self.old.args:
            if isinstance(arg, (list, tuple)):
                return list(arg)
            if isinstance(arg, torch.fx.Node) and isinstance(arg.meta["val"], torch.Tensor):
                shape = self.old.meta["val"].shape
                return [self.call(aten.sym_size.int, arg, i) if isinstance(d, torch.SymInt) else d for i, d in enumerate(shape)]
        raise AssertionError(f"opentrn: {self.old.target} without a size")


def _uniform(w, seed, stream, out, dtype=None):
    return w.call(own.uniform.default, seed, stream, w.size(), dtype or out.dtype)


def _float(out):
    return out.dtype if out.dtype.is_floating_point else torch.float32


def _rand(w, seed, stream, out, *_, **__):
    return _uniform(w, seed, stream, out)


def _randn(w, seed, stream, out, *_, **__):
    return w.call(own.normal.default, seed, stream, w.size(), out.dtype)


def _integers(w, seed, stream, out, low, high):
    return w.call(own.integers.default, seed, stream, low, high, w.size(), out.dtype)


def _bernoulli(w, seed, stream, out, x, p=None, **_):
    chance = x if p is None else p
    u = _uniform(w, seed, stream, out, torch.float32)
    less = aten.lt.Scalar if isinstance(chance, (int, float)) else aten.lt.Tensor
    return w.call(aten.where.Scalar, w.call(less, u, chance), 1.0, 0.0), out.dtype


def _between(w, seed, stream, out, x, low=0.0, high=1.0, **_):
    u = _uniform(w, seed, stream, out)
    return w.call(aten.add.Tensor, w.call(aten.mul.Tensor, u, high - low), low)


def _gauss(w, seed, stream, out, x, mean=0.0, std=1.0, **_):
    n = _randn(w, seed, stream, out)
    return w.call(aten.add.Tensor, w.call(aten.mul.Tensor, n, std), mean)


def _exponential(w, seed, stream, out, x, rate=1.0, **_):
    u = _uniform(w, seed, stream, out)
    negated = w.call(aten.log1p.default, w.call(aten.neg.default, u))
    return w.call(aten.div.Tensor, negated, -rate)


REPLACE: dict[Any, Callable[..., Any]] = {
    aten.rand.default: _rand,
    aten.rand_like.default: _rand,
    aten.randn.default: _randn,
    aten.randn_like.default: _randn,
    aten.randint.default: lambda w, s, k, o, high, *_, **__: _integers(w, s, k, o, 0, high),
    aten.randint.low: lambda w, s, k, o, low, high, *_, **__: _integers(w, s, k, o, low, high),
    aten.randint_like.default: lambda w, s, k, o, x, high, **__: _integers(w, s, k, o, 0, high),
    aten.randint_like.low_dtype: lambda w, s, k, o, x, lo, hi, **__: _integers(w, s, k, o, lo, hi),
    aten.bernoulli.default: _bernoulli,
    aten.bernoulli.p: _bernoulli,
    aten.uniform.default: _between,
    aten.normal_functional.default: _gauss,
    aten.exponential.default: _exponential,
}


def _seed_node(graph, model):
    first = next(n for n in graph.nodes if n.op != "placeholder")
    with graph.inserting_before(first):
        seed = graph.call_function(own.draw_seed.default)
    with model.meta["val"].fake_mode:
        seed.meta["val"] = torch.empty((2,), dtype=torch.int64, device=model.meta["val"].device)
    seed.meta["recompute"] = CheckpointPolicy.MUST_SAVE
    return seed


def replace_random(module):
    """Rewrites a captured graph in place; streams are numbered in the order of the graph."""
    nodes = [n for n in module.graph.nodes if n.op == "call_function" and n.target in REPLACE]
    if not nodes:
        return
    seed = _seed_node(module.graph, nodes[0])
    for stream, node in enumerate(nodes):
        writer = _Writer(module.graph, node)
        out = node.meta["val"]
        kwargs = {k: v for k, v in node.kwargs.items() if k in ("p",)}
        with module.graph.inserting_before(node):
            new = REPLACE[node.target](writer, seed, stream, out, *node.args, **kwargs)
            if isinstance(new, tuple):
                new = writer.call(torch.ops.prims.convert_element_type.default, *new)
        node.replace_all_uses_with(new)
        module.graph.erase_node(node)
    module.graph.lint()
    module.recompile()
