# SPDX-License-Identifier: Apache-2.0
"""Graphs whose sizes are known only when they are called: one trace, a program for each set of sizes.

Dynamo traces such a graph once (`dynamic=True`, `mark_dynamic`, or a size that changed). When it is called, the sizes are
there: symbolic integers become numbers, the values of all nodes are worked out again with them, and what is left is a
graph like any other.
"""

import contextlib
import gc
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode, unset_fake_temporarily
from torch.fx import Graph, GraphModule, Node
from torch.fx.node import map_aggregate

from opentrn.torch import outside, titles
from opentrn.torch.plan import DRAW_SEED, Plan

_NUMBERS = (int, float, bool)
_SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)


def _is_symbolic(value):
    if isinstance(value, torch.Tensor):
        return any(isinstance(d, torch.SymInt) for d in (*value.shape, *value.stride()))
    return isinstance(value, _SYMBOLIC)


def _is_number(placeholder):
    """Such an argument is a number of the graph; all others (tensors, a mesh of devices) stay arguments."""
    return isinstance(placeholder.meta.get("val"), (*_SYMBOLIC, *_NUMBERS))


def changing(module):
    """Has the graph an argument whose size is not known?"""
    return any(n.op == "placeholder" and _is_symbolic(n.meta.get("val")) for n in module.graph.nodes)


def _symbols(module, args):
    """sympy symbol -> number, from what each argument was traced with and what it is."""
    found: dict[Any, Any] = {}

    def bind(traced, given):
        if isinstance(traced, _SYMBOLIC) and traced.node.expr.is_symbol:
            found.setdefault(traced.node.expr, given)

    placeholders = [n for n in module.graph.nodes if n.op == "placeholder"]
    for node, value in zip(placeholders, args, strict=True):
        traced = node.meta.get("val")
        if isinstance(traced, torch.Tensor) and value is not None:  # None: the token that keeps effects in order
            for dim, size in zip((*traced.shape, *traced.stride()), (*value.shape, *value.stride()), strict=True):
                bind(dim, size)
        else:
            bind(traced, value)
    return found


class Specialised:
    """The graph being rewritten: old node -> new node or number, and each new node's fake value in its meta."""

    def __init__(self, module, args):
        self.module, self.symbols = module, _symbols(module, args)
        self.graph, self.new = Graph(), {}
        with FakeTensorMode(allow_non_fake_inputs=True):
            given = iter(args)
            for node in module.graph.nodes:
                self.new[node] = self._rewrite(node, given)
        self.result = GraphModule(module, self.graph)

    def _known(self, value):
        """An argument with symbolic numbers in it as plain numbers."""
        if isinstance(value, Node):
            return self.new[value]
        if isinstance(value, _SYMBOLIC):
            number = value.node.expr.xreplace(self.symbols)
            return {torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}[type(value)](number)
        return value

    def _rewrite(self, node, given):
        if node.op == "placeholder":
            return self._placeholder(node, next(given))
        args, kwargs = map_aggregate(node.args, self._known), map_aggregate(node.kwargs, self._known)
        if node.op == "output":
            return self.graph.output(args[0])
        if node.op != "call_function":
            return self._add(node, args, kwargs, node.meta.get("val"))
        if node.target is DRAW_SEED:  # the host's part, of one size
            seed = node.meta["val"]
            return self._add(node, args, kwargs, torch.empty(seed.shape, dtype=seed.dtype, device=seed.device))
        look = lambda v: v.meta["val"] if isinstance(v, Node) else v
        value = node.target(*map_aggregate(args, look), **map_aggregate(kwargs, look))
        if value is None or isinstance(value, _NUMBERS):
            return value  # a size, or the check of one
        return self._add(node, args, kwargs, value)

    def _placeholder(self, node, value):
        if _is_number(node):
            return value
        if not isinstance(node.meta.get("val"), torch.Tensor):
            return self._add(node, node.args, node.kwargs, value)
        value = torch.empty(0) if value is None else value
        fake = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device)
        return self._add(node, node.args, node.kwargs, fake)

    def _add(self, node, args, kwargs, value):
        new = self.graph.create_node(node.op, node.target, args, kwargs, node.name)
        new.meta = {k: v for k, v in node.meta.items() if k != "tensor_meta"}
        new.meta["val"] = value
        return new


@contextlib.contextmanager
def no_collection():
    """A trace is many objects, most of which go again by themselves. Python would look through all of them, and what torch's traces before have
    left, again and again for what it finds to have grown old meanwhile: a sixth of a trace's time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _key(value):
    return (value.shape, value.stride()) if isinstance(value, torch.Tensor) else value


class Plans:
    """Callable like a Plan; makes one for each set of sizes it meets."""

    def __init__(self, module, name):
        self.module, self.name, self.plans = module, name, {}
        self.given = titles.given()
        placeholders = [n for n in module.graph.nodes if n.op == "placeholder"]
        self.kept = [i for i, n in enumerate(placeholders) if not _is_number(n)]
        # The others' sizes are what they were, by Dynamo's guards.
        self.open = [i for i, n in enumerate(placeholders) if _is_symbolic(n.meta.get("val"))]

    @outside.hidden()
    def _make(self, args):
        with no_collection(), unset_fake_temporarily(), titles.with_given(self.given):
            return Plan(Specialised(self.module, args).result, self.name)

    def __call__(self, args):
        key = tuple([_key(args[i]) for i in self.open])
        plan = self.plans.get(key)
        if plan is None:
            plan = self.plans[key] = self._make(args)
        out = plan([args[i] for i in self.kept])
        if isinstance(args, list):
            args.clear()
        return out
