# SPDX-License-Identifier: Apache-2.0
"""A captured graph cut into device programs and CPU operators, and the function that runs them.

Nodes get levels: even ones are device programs, odd ones CPU operators, each at the first level
where its inputs are there. CPU operators with effects (collectives) keep their order. Writes into
the caller's tensors come last: in place by the only device program when nothing ran on the CPU,
else copied at the end, so a failure in between leaves every tensor as it was.
"""

import operator
from typing import Any

import torch
from torch.fx import Node
from torch._subclasses.fake_tensor import unset_fake_temporarily

from opentrn import _runtime
from opentrn.torch import idle, indices, outside, places, settings, titles
from opentrn.torch.lower import NotLowered
from opentrn.torch.places import place_of
from opentrn.torch.program import (
    COLLECTIVES,
    IGNORED,
    is_tensor,
    namespace,
    order_of,
    surely_not,
    why_not,
    write_program,
)
from opentrn.torch.report import Fallback, log

aten = torch.ops.aten
DRAW_SEED = torch.ops.opentrn.draw_seed.default
VIEWS = {
    aten.view.default,
    aten.permute.default,
    aten.expand.default,
    aten.unsqueeze.default,
    aten.squeeze.default,
    aten.squeeze.dim,
    aten.squeeze.dims,
    aten.transpose.int,
    aten.t.default,
    aten.slice.Tensor,
    aten.select.int,
    aten.alias.default,
    aten.detach.default,
    aten.as_strided.default,
    aten.diagonal.default,
    aten._unsafe_view.default,
    aten._reshape_alias.default,
}


CHECKS = {  # the host's part: looks at a result and raises, or only describes tensors as a sparse one
    aten._linalg_check_errors.default,
    aten._sparse_coo_tensor_with_dims_and_tensors.default,
}


class Unsupported(RuntimeError):
    """An operator the device cannot run, in strict mode."""


# --- cutting --------------------------------------------------------------------------------------


def _needed(graph):
    """Nodes that outputs, mutations and effects depend on."""
    output = next(n for n in graph.nodes if n.op == "output")
    keep, todo = set(), [output]
    for node in graph.nodes:
        if node.op == "call_function" and node.target not in IGNORED and _has_effect(node):
            todo.append(node)
    while todo:
        node = todo.pop()
        if node not in keep:
            keep.add(node)
            todo.extend(node.all_input_nodes)
    return keep


def _has_effect(node):
    if node.target is aten.copy_.default:
        return True
    schema = getattr(node.target, "_schema", None)
    return namespace(node) in COLLECTIVES or bool(schema and schema.is_mutable)


def _waits_outside(node, reasons):
    """Waiting is nothing where the collective is in the program, and the CPU's where that has begun it."""
    if node.target is not torch.ops._c10d_functional.wait_tensor.default:
        return False
    begun = node.args[0]
    while begun.target is operator.getitem:
        begun = begun.args[0]
    return begun in reasons or namespace(begun) not in COLLECTIVES


def _is_check(node):
    target = node.args[1] if str(node.target) == "with_effects" else node.target
    return target in CHECKS


def _levels(nodes, reasons):
    level, last_effect = {}, -1
    for node in nodes:
        if node.op != "call_function":
            level[node] = -1
            continue
        least = max((level[i] for i in node.all_input_nodes), default=-1)
        if node.target is operator.getitem:
            level[node] = least
        elif node in reasons:
            at = least if least % 2 else least + 1
            at = max(at, 1)
            if _has_effect(node) or namespace(node) != "aten":
                at = max(at, last_effect)
                last_effect = at
            level[node] = at
        else:
            level[node] = least + 1 if least % 2 else max(least, 0)
    return level


def _reasons(body, ask):
    found = {n: why for n in body if (why := ask(n))}
    found.update((n, "a collective") for n in body if _waits_outside(n, found))
    return found


class Cut:
    """The graph's parts: inputs, nodes by level, mutations, outputs. uncut: all on the device. hopeful: where operators and types
    speak for the device, nothing is lowered to make sure; writing the program then does."""

    def __init__(self, module, uncut=False, hopeful=False):
        graph = module.graph
        keep = _needed(graph)
        self.placeholders = [n for n in graph.nodes if n.op == "placeholder"]
        self.outputs = list(next(n for n in graph.nodes if n.op == "output").args[0])
        self.mutations, self.seeds, self.constants, body = {}, [], {}, []
        for node in graph.nodes:
            if node not in keep or node.op in ("placeholder", "output"):
                continue
            if node.op == "get_attr":
                with unset_fake_temporarily():
                    self.constants[node] = getattr(module, node.target)
                _give_meta(node, self.constants[node])
            elif node.target is aten.copy_.default and node.args[0].op == "placeholder":
                self.mutations[node.args[0]] = node.args[1]
            elif node.target is DRAW_SEED:
                self.seeds.append(node)
            else:
                body.append(node)
        self.outputs = [self.mutations_of(o) for o in self.outputs]
        self.reasons = _reasons(body, surely_not) if hopeful else {}
        if self.reasons or not hopeful:
            self.reasons = _reasons(body, why_not)
        self.level = _levels(
            [*self.placeholders, *self.constants, *self.seeds, *body], () if uncut else self.reasons
        )
        self.body = body

    def mutations_of(self, node):
        """A returned copy_ node stands for the tensor it wrote."""
        if isinstance(node, Node) and node.target is aten.copy_.default:
            return node.args[0]
        return node

    def steps(self):
        """(level, nodes) in the order they run."""
        by_level: dict[int, list[Node]] = {}
        for node in self.body:
            by_level.setdefault(self.level[node], []).append(node)
        return sorted(by_level.items())


def _give_meta(node, tensor):
    if "val" not in node.meta:
        node.meta["val"] = tensor


def _view_base(node, mutated):
    """The input a node is a view of, through view operators only."""
    start = node
    while isinstance(node, Node) and node.op == "call_function" and node.target in VIEWS:
        node = node.args[0]
    if node is start or node.op != "placeholder" or node in mutated:
        return None
    old, new = node.meta["val"], start.meta["val"]
    if new.dtype != old.dtype or order_of(old) is None:
        return None
    shared = new.untyped_storage()._cdata == old.untyped_storage()._cdata
    return node if shared else None


# --- running --------------------------------------------------------------------------------------


def _as_planned(tensor, port):
    """A tensor with the strides the program was made for."""
    if tensor.is_conj() or tensor.is_neg():
        tensor = tensor.resolve_conj().resolve_neg()
    if port.dense:
        if tensor.stride() == port.strides or order_of(tensor) == port.order:
            return tensor
        return torch.empty_strided(port.shape, port.strides, dtype=port.dtype, device=tensor.device).copy_(tensor)
    return tensor.contiguous()


class DeviceStep:
    """A program and the tensors it takes and gives."""

    def __init__(self, name, inputs, nodes, outputs, cut, only_text=False, told=("", None)):
        missing = cut.reasons if only_text else ()
        with unset_fake_temporarily():
            self.program = write_program(inputs, nodes, outputs, cut.constants, missing)
            if only_text:
                return
            settings.dump(name, self.program.text)
            self.executable = _runtime.default_environment().compile(
                self.program.text.encode(), name
            )
        self.graph = log.add_graph(name, self.executable, *told)
        self._ins = [(p, p.strides if p.dense else None, p.dtype) for p in self.program.inputs]
        self._outs = [
            (p.alias, p.shape, p.strides if p.dense else _rows(p.shape), p.dtype)
            for p in self.program.outputs
        ]
        self._devices = [p.device for p in self.program.outputs]
        # Mutated arguments that are parts of larger tensors get their values by a copy.
        self._copies = [
            (i, p.wanted_alias)
            for i, p in enumerate(self.program.outputs)
            if p.alias is None and p.wanted_alias is not None
        ]
        self._aliases = [p.alias for p in self.program.outputs if p.alias is not None]
        self._run = self.executable.run
        if self.program.ranks:
            from opentrn.torch.distributed import runner

            self._run = runner(self.executable, self.program.ranks)

    def __call__(self, tensors):
        """Gives the results; those with an alias are the argument's own memory."""
        ready = [
            t if t.stride() == strides else _as_planned(t, port)
            for t, (port, strides, _) in zip(tensors, self._ins, strict=True)
        ]
        empty = torch.empty_strided
        results = [
            empty(shape, strides, dtype=dtype, device=device) if alias is None else ready[alias]
            for (alias, shape, strides, dtype), device in zip(self._outs, self._devices, strict=True)
        ]
        self._run([(t.data_ptr(), t.nbytes) for t in ready], [(t.data_ptr(), t.nbytes) for t in results])
        self.graph.runs += 1
        for alias in self._aliases:
            if ready[alias] is not tensors[alias]:
                tensors[alias].copy_(ready[alias])
        for result, argument in self._copies:
            tensors[argument].copy_(results[result])
        return results


def _rows(shape):
    return torch.empty(shape, device="meta").stride()


def _fallback(node, reason):
    value = lambda n: n.meta.get("val")
    args, kwargs = torch.fx.node.map_arg(node.args, value), torch.fx.node.map_arg(node.kwargs, value)
    flops = outside.flops_of(node.target, args, kwargs, value(node))
    return Fallback(str(node.target), reason, place_of(node), flops)


class HostStep:
    """CPU operators between device programs."""

    def __init__(self, nodes, reasons):
        self.nodes = nodes
        self.fallbacks = {}
        for node in nodes:
            if node in reasons and not _is_check(node):
                self.fallbacks[node] = _fallback(node, reasons[node])

    def run(self, values):
        look = values.__getitem__
        for node in self.nodes:
            args = torch.fx.node.map_arg(node.args, look)
            kwargs = torch.fx.node.map_arg(node.kwargs, look)
            values[node] = node.target(*args, **kwargs)
            if node in self.fallbacks:
                log.fallbacks[self.fallbacks[node]] += 1


def _device_outputs(cut, wanted, in_place, inputs):
    """(source, layout, alias) of a program's results."""
    rows = [(node, node, None) for node in wanted]
    if in_place:
        rows += [(value, target, inputs.index(target)) for target, value in cut.mutations.items()]
    return rows


class Plan:
    """Callable: a list of inputs (emptied) -> the list of outputs. strict: an operator the device
    lacks is an error. only_text: one program, to be written and not run; what the device lacks is
    in it. whole: one program or NotLowered."""

    @outside.hidden()
    def __init__(self, module, name, strict=None, only_text=False, whole=False):
        places.settle(module)
        self.name, self.only_text = name, only_text
        self.told = ("", None) if whole or only_text else titles.of(module)
        try:
            self._make(Cut(module, uncut=only_text, hopeful=not only_text), strict, whole)
        except NotLowered:
            self._make(Cut(module, uncut=only_text), strict, whole)

    def _make(self, cut, strict, whole):
        self.cut = cut
        if whole and cut.reasons:
            raise NotLowered(", ".join(dict.fromkeys(f"{n.target}: {why}" for n, why in cut.reasons.items())))
        self.fallbacks = self._report_fallbacks(cut, settings.strict if strict is None else strict)
        steps = cut.steps()
        self.in_place = not any(level % 2 for level, _ in steps)
        if self.in_place and cut.mutations and not steps:
            steps = [(0, [])]
        self._plan_outputs(cut)
        self._plan_checks(cut, settings.check_indices and not whole and not self.only_text and self.name != "torch.backward")
        self.steps = self._make_steps(cut, steps)
        if not whole and any(isinstance(part, DeviceStep) for step in self.steps for part in step):
            idle.note()  # an eager operator's program is not its module's
        self._plan_fast()

    def _report_fallbacks(self, cut, strict):
        found = [
            _fallback(n, why)
            for n, why in cut.reasons.items()
            if not _is_check(n)
        ]
        for fallback in found:
            log.add_fallback(fallback)
        if found and strict:
            lines = "\n  ".join(map(str, found))
            raise Unsupported(f"opentrn: not lowered to the device:\n  {lines}")
        return found

    def _plan_outputs(self, cut):
        """For each output: (None,), (input number,), (view of input …) or (node,)."""
        number = {n: i for i, n in enumerate(cut.placeholders)}
        self.outputs: list[tuple[Any, ...]] = []
        self.from_device: list[Node] = []
        for node in cut.outputs:
            if not isinstance(node, Node):
                self.outputs.append(("is", node))
            elif node.op == "placeholder":
                self.outputs.append(("input", number[node]))
            elif not self.only_text and (base := _view_base(node, cut.mutations)) is not None:
                fake, old = node.meta["val"], base.meta["val"]
                offset = fake.storage_offset() - old.storage_offset()
                self.outputs.append(
                    ("view", number[base], tuple(fake.shape), fake.stride(), offset, old.stride())
                )
            else:
                self.outputs.append(("node", node))
                if node not in self.from_device:
                    self.from_device.append(node)

    def _plan_checks(self, cut, wanted):
        self.checks = indices.Checks(cut.body) if wanted else None
        if self.checks:
            self.from_device += [n for n in self.checks.computed if n not in self.from_device]

    def _make_steps(self, cut, steps):
        made: list[tuple[Any, ...]] = []
        users: dict[Node, set[int]] = {}
        for level, nodes in steps:
            for node in nodes:
                for i in node.all_input_nodes:
                    users.setdefault(i, set()).add(level)
        late = set(self.from_device) | (set() if self.in_place else set(cut.mutations.values()))
        for level, nodes in steps:
            if level % 2:
                made.append((HostStep(nodes, cut.reasons), None, None))
                continue
            inside = set(nodes)
            wanted = [
                n
                for n in nodes
                if (n in late or any(u > level for u in users.get(n, ())))
                and is_tensor(n.meta.get("val"))
            ]
            inputs = list(
                dict.fromkeys(
                    i
                    for n in nodes
                    for i in n.all_input_nodes
                    if i not in inside and i.op != "get_attr"
                )
            )
            if self.in_place:
                for target, value in cut.mutations.items():
                    inputs += [
                        i
                        for i in (target, value)
                        if i not in inputs and i not in inside and i.op != "get_attr"
                    ]
            constants = [
                n
                for n in cut.constants
                if any(n in m.all_input_nodes for m in nodes) or n in cut.mutations.values()
            ]
            if self.in_place:
                wanted += [n for n in self.from_device if n not in wanted and n.op == "get_attr"]
                constants += [n for n in wanted if n.op == "get_attr" and n not in constants]
            if self.only_text:  # read by people: results in the order of what was returned
                wanted.sort(key=self.from_device.index)
            outputs = _device_outputs(cut, wanted, self.in_place, inputs)
            if not outputs:
                continue
            name = self.name if len(steps) == 1 else f"{self.name}.{level // 2}"
            step = DeviceStep(name, inputs, [*constants, *nodes], outputs, cut, self.only_text, self.told)
            made.append((step, inputs, wanted))
        return made

    def _plan_fast(self):
        """One device program and nothing else: arguments by number, no dictionary."""
        cut = self.cut
        number = {n: i for i, n in enumerate(cut.placeholders)}
        self.fast = None
        if self.in_place and len(self.steps) == 1 and not cut.seeds and not self.checks:
            step, inputs, wanted = self.steps[0]
            at = {n: i for i, n in enumerate(wanted)}
            picks = [("node", at[o[1]]) if o[0] == "node" else o for o in self.outputs]
            self.fast = (step, [number[n] for n in inputs], picks)

    def single_program(self, args):
        """The program of a graph that is one, and the tensors it would be given."""
        (step, inputs, _), values = (
            self.steps[0],
            dict(zip(self.cut.placeholders, args, strict=True)),
        )
        values.update((node, DRAW_SEED()) for node in self.cut.seeds)
        return step.program, [values[n] for n in inputs]

    def __call__(self, args):
        if outside.watching.depth:
            with outside.hidden():
                return self._call(args)
        return self._call(args)

    def _call(self, args):
        args = list(args) if not isinstance(args, list) else args
        if self.fast is not None:
            step, picks, outputs = self.fast
            results = step([args[i] for i in picks])
        else:
            values = self._run_all(args)
            results, outputs = values, self.outputs
        out = [_pick(row, args, results) for row in outputs]
        args.clear()
        return out

    def _run_all(self, args):
        cut = self.cut
        values = dict(zip(cut.placeholders, args, strict=True))
        values.update(cut.constants)
        for node in cut.seeds:
            values[node] = DRAW_SEED()
        if self.checks:
            self.checks(values, computed=False)
        for step, inputs, wanted in self.steps:
            if inputs is None:
                step.run(values)
            else:
                results = step([values[n] for n in inputs])
                values.update(zip(wanted, results, strict=False))
        if self.checks:
            self.checks(values, computed=True)
        if not self.in_place:
            for target, value in cut.mutations.items():
                values[target].copy_(values[value])
        return values


def _pick(row, args, results):
    kind = row[0]
    if kind == "node":
        return results[row[1]]
    if kind == "is":
        return row[1]
    if kind == "input":
        return args[row[1]]
    _, i, shape, strides, offset, expected = row
    base = args[i]
    if base.stride() != expected:
        base = torch.empty_strided(base.shape, expected, dtype=base.dtype, device=base.device).copy_(base)
    return base.as_strided(shape, strides, base.storage_offset() + offset)
