# SPDX-License-Identifier: Apache-2.0
"""A piece of an FX graph as a StableHLO program, with the layout of its inputs and outputs.

Tensors whose memory is dense but in another order of dimensions (channels_last, transposed weights)
are taken where they lie: the program's argument has the shape of the memory, and a transpose inside
the program gives it the user's shape. Results are written in the strides eager would give.
"""

import itertools
import json
import operator
import re

import torch
from torch.fx import Node
from torch.fx.node import map_arg

from opentrn.torch import dtypes
from opentrn.torch.builder import Builder, Value
from opentrn.torch.lower import TABLE, NotLowered
from opentrn.torch.lower.table import DEVICES
from opentrn.torch.lower.shape import storage_order
from opentrn.torch.places import place_of

COLLECTIVES = ("_c10d_functional", "c10d", "c10d_functional", "_dtensor")
IGNORED = {
    torch.ops.aten._assert_tensor_metadata.default,
}


def namespace(node):
    return getattr(node.target, "namespace", "")


def is_tensor(value):
    return isinstance(value, torch.Tensor)


def order_of(fake):
    """How a tensor lies in memory; None: it must be copied to dense memory first."""
    return storage_order(tuple(fake.shape), fake.stride())


def module_of(node):
    """The module a node belongs to as a path, "transformer/h/0/attn"; its gradient belongs to it too. "" when none does."""
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack") or {}
    path = next((str(entry[0]) for entry in reversed(stack.values())), "")
    path = re.sub(r"""\[['"]?([^\]'"]*)['"]?\]""", r".\1", path)  # L['self'].h[0] is L.self.h.0
    parts = [p for p in path.split(".") if p and p not in ("L", "self", "_orig_mod", "_modules")]
    return "/".join(parts)


def _quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _loc(node):
    """Its place, and its name: the module's path and the operator's."""
    place, module = place_of(node), module_of(node)
    file = f"{_quoted(place[0])}:{place[1]}:1" if place else ""
    if not module:
        return f" loc({file})" if file else ""
    operator_name = str(getattr(node.target, "__name__", node.target)).split(".")[0]
    name = _quoted(f"{module}/{operator_name}")
    return f" loc({name}({file}))" if file else f" loc({name})"


def _check_types(fake):
    for value in torch.utils._pytree.tree_leaves(fake):
        if not is_tensor(value):
            continue
        if value.dtype not in dtypes.NAMES or value.layout != torch.strided:
            raise NotLowered(f"{value.dtype} tensors with layout {value.layout}")
        if value.device.type not in DEVICES:
            raise NotLowered(f"tensors on {value.device}")
        if any(not isinstance(d, int) for d in value.shape):
            raise NotLowered("sizes that are not known when it is compiled")


def lower_node(b, node, values):
    """Writes one node; values: node -> Value or list of them."""
    if node.target is operator.getitem:
        return values[node.args[0]][node.args[1]]
    out = node.meta.get("val")
    function = TABLE[node.target]
    args = map_arg(node.args, lambda n: values[n])
    kwargs = map_arg(node.kwargs, lambda n: values[n])
    b.node_name = str(node.target)
    first = node.args[0] if node.args else None
    b.source = first.meta.get("val") if isinstance(first, Node) else None
    result = function(b, out, *args, **kwargs)
    _check_result(node, out, result)
    return result


def _check_result(node, out, result):
    """Lowerings state shapes themselves; a mistake there is ours and is found here."""
    outs, results = (out, result) if isinstance(result, (list, tuple)) else ([out], [result])
    for fake, value in zip(outs, results, strict=True):
        if value is None or not is_tensor(fake):
            continue
        if tuple(fake.shape) != value.shape or fake.dtype != value.dtype:
            raise AssertionError(
                f"opentrn: the lowering of {node.target} gives {value.type}, "
                f"not {dtypes.tensor_type(fake.shape, fake.dtype)}"
            )


def _stand_in(value):
    return Value("%x", value.shape, value.dtype) if is_tensor(value) else value


def surely_not(node):
    """The reason why the device cannot run this node, as far as its operator and types tell; else None."""
    try:
        if node.target is not operator.getitem and node.target not in TABLE:
            return "a collective" if namespace(node) in COLLECTIVES else "no lowering"
        _check_types(node.meta.get("val"))
        for arg in node.all_input_nodes:
            _check_types(arg.meta.get("val"))
    except NotLowered as reason:
        return str(reason)
    return None


def why_not(node):
    """None when the device can run this node, else the reason: its lowering is tried."""
    try:
        if (sure := surely_not(node)) or node.target is operator.getitem:
            return sure
        stand_ins = {
            n: torch.utils._pytree.tree_map(_stand_in, n.meta.get("val"))
            for n in node.all_input_nodes
        }
        lower_node(Builder(), node, stand_ins)
    except NotLowered as reason:
        return str(reason)
    return None


def _custom_call(b, node, values):
    """An operator the device lacks, under its own name: `otrn` tells the user's line."""
    outs = node.meta.get("val")
    kinds = [(tuple(o.shape), o.dtype) for o in (outs if isinstance(outs, tuple) else [outs])]
    results = b.op(
        "custom_call",
        [values[n] for n in node.all_input_nodes],
        kinds,
        f'call_target_name = "{node.target}", has_side_effect = false',
    )
    return results if isinstance(outs, tuple) else results[0]


class Port:
    """One argument or result: the node, its layout, how its memory is shared."""

    def __init__(self, node, alias=None, source=None, wanted_alias=None):
        fake = node.meta["val"]
        self.node = node
        self.alias = alias  # of a result: number of the argument it is written over
        self.source, self.wanted_alias = source, wanted_alias
        self.shape, self.strides, self.dtype = tuple(fake.shape), tuple(fake.stride()), fake.dtype
        self.device = fake.device
        self.order = order_of(fake)
        self.dense = self.order is not None
        if not self.dense:
            self.order = list(range(len(self.shape)))

    @property
    def memory_shape(self):
        return [self.shape[i] for i in self.order]

    @property
    def inverse(self):
        return sorted(range(len(self.order)), key=lambda i: self.order[i])


class Program:
    """text: the module. inputs, outputs: Ports in the order of its arguments and results. ranks: of the processes its
    collectives meet, this one among them; none: it has no collectives."""

    def __init__(self, body, inputs, outputs, ranks=()):
        self._body, self.inputs, self.outputs, self.ranks = body, inputs, outputs, sorted(ranks)
        self.text = self.named(())

    def named(self, names, cuts=((), ())):
        """The function with names for its arguments, which messages and memory tables tell. cuts: attributes that say how
        arguments and results lie over devices."""
        arguments = _arguments(self.inputs, self.outputs, names, cuts[0])
        results = ", ".join(_typed(port, [text]) for port, text in itertools.zip_longest(self.outputs, cuts[1]))
        return f"func.func public @main({arguments}) -> ({results}) {{\n{self._body}"


def _typed(port, attributes):
    told = [a for a in attributes if a]
    return dtypes.tensor_type(port.memory_shape, port.dtype) + (f" {{{', '.join(told)}}}" if told else "")


def _arguments(inputs, outputs, names, cuts):
    taken = {port.alias: i for i, port in enumerate(outputs) if port.alias is not None}
    parts = []
    for i, port in enumerate(inputs):
        attributes = [f"tf.aliasing_output = {taken[i]} : i32"] if i in taken else []
        if i < len(names):
            attributes.append(f"jax.arg_info = {json.dumps(names[i], ensure_ascii=False)}")
        parts.append(f"%arg{i}: " + _typed(port, [*attributes, *cuts[i : i + 1]]))
    return ", ".join(parts)


def _write_outputs(b, outputs, values):
    results = []
    for port in outputs:
        value = values[port.source]
        b.place = ""
        # A mutation may give another type or shape than the tensor it is written to.
        value = b.broadcast(b.cast(value, port.dtype), port.shape)
        results.append(b.transpose(value, port.order))
    return results


def write_program(inputs, nodes, outputs, constants, missing=()):
    """inputs: nodes computed elsewhere. outputs: (node whose value it is, node whose layout it has,
    number of the argument it replaces or None). constants: get_attr node -> tensor. missing: nodes
    that the device cannot run and that are named all the same."""
    b = Builder()
    in_ports = [Port(n) for n in inputs]
    out_ports = []
    for source, layout, alias in outputs:
        own = alias if alias is not None and in_ports[alias].dense else None
        out_ports.append(Port(layout, own, source, alias))
    values = {}
    for i, port in enumerate(in_ports):
        raw = Value(f"%arg{i}", port.memory_shape, port.dtype)
        values[port.node] = b.transpose(raw, port.inverse)
    for node in nodes:
        if node.op == "get_attr":
            values[node] = b.tensor(constants[node])
            continue
        b.place = _loc(node)
        write = _custom_call if node in missing else lower_node
        values[node] = write(b, node, values)
    results = _write_outputs(b, out_ports, values)
    kinds = ", ".join(r.type for r in results)
    names = ", ".join(r.name for r in results)
    body = "\n".join(b.lines)
    body += f'\n"func.return"({names}) : ({kinds}) -> ()\n}}\n{b.all_functions()}'
    return Program(body, in_ports, out_ports, b.ranks)
