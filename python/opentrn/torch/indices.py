# SPDX-License-Identifier: Apache-2.0
"""Indices and labels out of range, found on request (OTRN_TORCH_INDEX=1), as NaNs are with OPENTRN_NAN.

The device clamps an index where the CPU's kernels raise. With the option every index of a captured graph is looked at: an
argument before the graph runs, a computed one, which becomes a further result of its program, behind it. An eager operator on
the device `neuron` is looked at before it runs. Backward passes take the indices of their forward pass and are left out.
"""

import dataclasses
from typing import Any

import torch

from opentrn.torch.outside import hidden, user_line
from opentrn.torch.places import place_of


@dataclasses.dataclass(frozen=True)
class Index:
    """An index among an operator's arguments: from low (below 0: it counts from the end) to limit, or `ignore`."""

    value: Any  # a tensor, or the node of one
    limit: int
    low: int = 0
    ignore: int | None = None


def _along(named, value):
    """Operators with one index along a dimension."""
    shape = value(named["self"]).shape
    return [Index(named["index"], shape[named["dim"]] if shape else 1)]


def _rows(named, value):
    table = value(named["weight"]).shape[0]
    return [Index(named["indices"], table)]


def _listed(named, value):
    """x[i, :, j]: masks stand for as many dimensions as they have."""
    shape, at, found = value(named["self"]).shape, 0, []
    for index in named["indices"]:
        tensor = index if index is None else value(index)
        if tensor is not None and tensor.dtype in (torch.bool, torch.uint8):
            at += tensor.dim()
            continue
        if tensor is not None:
            found.append(Index(index, shape[at], -shape[at]))
        at += 1
    return found


def _flat(named, value):
    count = value(named["self"]).numel()
    return [Index(named["index"], count, -count)]


def _labels(named, value):
    shape = value(named["self"]).shape
    return [Index(named["target"], shape[min(1, len(shape) - 1)], ignore=named.get("ignore_index"))]


_KINDS = {
    _along: "gather scatter scatter_add scatter_reduce index_select index_add index_copy index_fill index_reduce",
    _rows: "embedding _embedding_bag _embedding_bag_forward_only",
    _listed: "index _unsafe_index index_put _unsafe_index_put _index_put_impl",
    _flat: "take put",
    _labels: "nll_loss_forward nll_loss2d_forward multi_margin_loss",
}
_TABLE = {f"aten::{name}": kind for kind, names in _KINDS.items() for name in names.split()}


def _kind(op):
    schema = getattr(op, "_schema", None)
    return _TABLE.get(schema.name.removesuffix("_")) if schema else None


def _of(op, args, kwargs, value):
    """The indices of a call; value: the tensor, or one like it, that an argument stands for."""
    kind = _kind(op)
    if not kind:
        return []
    schema = op._schema
    named = {a.name: a.default_value for a in schema.arguments}
    named |= dict(zip([a.name for a in schema.arguments], args)) | kwargs
    return kind(named, value)


class OutOfRange(IndexError, RuntimeError):
    """torch's kernels raise the one or the other, by the operator: who waits for either meets it."""


def _check(index, tensor, operator, place):
    tensor = tensor.detach().cpu()
    bad = (tensor < index.low) | (tensor >= index.limit)
    if index.ignore is not None:
        bad &= tensor != index.ignore
    if not bad.any():
        return
    at = bad.nonzero()[0].tolist()
    found = int(tensor[tuple(at)])
    other = "" if index.ignore is None else f", or {index.ignore}, which is ignored"
    raise OutOfRange(
        f"opentrn: index {found} in element {at} of the indices of {operator} at {place or 'an unknown place'} is out of range: "
        f"it must be from {index.low} to {index.limit - 1}{other}"
    )


@hidden()
def check_call(op, args, kwargs):
    """Of an eager operator that is about to run."""
    for index in _of(op, args, kwargs, lambda tensor: tensor):
        _check(index, index.value, str(op), user_line())


class Checks:
    """Of a captured graph. computed: nodes of indices that are neither arguments nor constants."""

    def __init__(self, nodes):
        self._rows = []
        for node in nodes:
            for index in _of(node.target, node.args, node.kwargs, lambda n: n.meta["val"]):
                place = place_of(node)
                at = f"{place[0]}:{place[1]} in {place[2]}" if place else ""
                written = node.meta.get("original_aten") or node.target
                if _kind(written) is _along:  # decomposed into an operator that counts from the end
                    index = dataclasses.replace(index, low=0)
                self._rows.append((index, str(written), at))
        self.computed = list(dict.fromkeys(i.value for i, *_ in self._rows if i.value.op == "call_function"))

    @hidden()
    def __call__(self, values, computed):
        """values: node -> tensor. computed: those that were, or the others."""
        for index, operator, at in self._rows:
            if (index.value.op == "call_function") == computed:
                _check(index, values[index.value], operator, at)
