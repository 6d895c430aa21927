# SPDX-License-Identifier: Apache-2.0
"""A sharding plan: how a step's tensors lie over a mesh of devices, as the annotations that the compiler partitions by.

    mesh = {"dp": 4, "tp": 8}
    plan = {
        "batch*": ("dp",),                        # a mesh axis, several, or None for each dimension
        "*.q_proj.weight": [Replicate(), Shard(0)],   # DTensor's placements, one for each axis of the mesh
        "*.mlp.down": RowwiseParallel(),          # torch.distributed.tensor.parallel, for a module: along its axis "tp"
    }

The first pattern that fits a tensor's name says how it lies; what none fits is whole on every device. An optimizer's state lies as
its parameter does unless a pattern fits its own name.
"""

import difflib
import fnmatch
from collections.abc import Mapping, Sequence
from typing import Any

import torch

STYLE_AXIS = "tp"
# torch's styles by name: dimension of a weight that is cut, for a product and for a table of embeddings; of a bias
_STYLES = {"ColwiseParallel": (0, 1, 0), "RowwiseParallel": (1, 0, None), "SequenceParallel": (None, None, None)}


def mesh_of(mesh: Any) -> dict[str, int]:
    """Axes and their sizes: of a mapping, of (name, size) pairs, or of a torch DeviceMesh with names."""
    if hasattr(mesh, "mesh_dim_names"):
        if not mesh.mesh_dim_names:
            raise ValueError("opentrn: the mesh's axes have no names: init_device_mesh(…, mesh_dim_names=(\"dp\", \"tp\"))")
        mesh = zip(mesh.mesh_dim_names, mesh.shape)
    found = {str(k): int(v) for k, v in dict(mesh).items()}
    bad = [k for k, v in found.items() if v < 1]
    if bad or not found:
        raise ValueError(f"opentrn: a mesh has axes of one device or more, {found} has not: mesh={{\"dp\": 2, \"tp\": 4}}")
    return found


def _of_placements(name, placements, mesh, rank):
    """DTensor's: for each axis of the mesh the dimension that it cuts."""
    if len(placements) != len(mesh):
        raise ValueError(f"opentrn: {name} has {len(placements)} placements; the mesh has {len(mesh)} axes: one for each of {', '.join(mesh)}")
    cuts: list[list[str]] = [[] for _ in range(rank)]
    for axis, p in zip(mesh, placements):
        if p.is_shard():
            if not -rank <= p.dim < rank:
                raise ValueError(f"opentrn: {name} has {rank} dimensions; {p} is none of them")
            cuts[p.dim].append(axis)
        elif not p.is_replicate():
            raise ValueError(f"opentrn: {name}: {p} is not a way for a step's tensors to lie: Shard(dim) or Replicate()")
    return cuts


def _of_axes(name, spec, mesh, rank):
    """An axis, several or None for each dimension; what is left out is whole."""
    if len(spec) > rank:
        raise ValueError(f"opentrn: {name} has {rank} dimensions; its plan tells of {len(spec)}")
    cuts: list[list[str]] = [[] for _ in range(rank)]
    for dim, axes in enumerate(spec):
        for axis in [] if axes is None else [axes] if isinstance(axes, str) else axes:
            if axis not in mesh:
                raise ValueError(f"opentrn: the plan of {name} has an axis {axis!r}; the mesh has {', '.join(mesh)}")
            cuts[dim].append(axis)
    return cuts


def _of_style(name, style, mesh, rank, module):
    if STYLE_AXIS not in mesh:
        raise ValueError(f"opentrn: {name} is cut along the axis {STYLE_AXIS!r}; the mesh has {', '.join(mesh)}")
    weight, table, bias = _STYLES[type(style).__name__]
    dim = bias if rank == 1 else table if isinstance(module, torch.nn.Embedding) else weight
    return [[STYLE_AXIS] if d == dim else [] for d in range(rank)]


class Plan:
    """cuts(name, shape): the axes that cut each dimension of a tensor."""

    def __init__(self, mesh: Any, plan: Mapping[str, Any] | None, model: torch.nn.Module):
        self.mesh, self.rows = mesh_of(mesh), dict(plan or {})
        self.modules = dict(model.named_modules())
        self.used: set[str] = set()
        self.seen: dict[str, None] = {}  # names that were asked for, in their order
        for pattern, value in self.rows.items():
            if type(value).__name__ not in _STYLES and (isinstance(value, str) or not isinstance(value, Sequence)):
                raise TypeError(
                    f"opentrn: the plan of {pattern!r} is {value!r}: a tuple with a mesh axis or None for each dimension, a list of "
                    f"Shard and Replicate for each axis of the mesh, or one of {', '.join(_STYLES)}"
                )

    def _row(self, name):
        """The first pattern that fits, and the module it names."""
        owner = name.rpartition(".")[0]
        self.seen |= {name: None}
        for pattern, value in self.rows.items():
            style = type(value).__name__ in _STYLES
            if fnmatch.fnmatchcase(owner if style else name, pattern):
                self.used.add(pattern)
                return value, self.modules.get(owner) if style else None
        return None

    def cuts(self, names: Sequence[str], shape: Sequence[int]) -> list[list[str]]:
        """names: the tensor's, then those whose plan it takes over."""
        name, rank = names[0], len(shape)
        row = next((r for r in map(self._row, names) if r is not None), None)
        if row is None or not rank:
            return [[] for _ in shape]
        value, module = row
        if type(value).__name__ in _STYLES:
            cuts = _of_style(name, value, self.mesh, rank, module)
        elif value and hasattr(value[0], "is_shard"):
            cuts = _of_placements(name, value, self.mesh, rank)
        else:
            cuts = _of_axes(name, value, self.mesh, rank)
        self._check(name, cuts, shape)
        return cuts

    def _check(self, name, cuts, shape):
        every = [axis for axes in cuts for axis in axes]
        twice = [axis for axis in every if every.count(axis) > 1]
        if twice:
            raise ValueError(f"opentrn: the axis {twice[0]!r} cuts {name} twice: an axis cuts one dimension of a tensor")
        for size, axes in zip(shape, cuts):
            parts = 1
            for axis in axes:
                parts *= self.mesh[axis]
            if size % parts:
                raise ValueError(f"opentrn: {size} of {name} {list(shape)} cannot be cut into {parts} parts ({', '.join(axes)})")

    def done(self):
        """A pattern that fits nothing is a mistake in it."""
        left = [p for p in self.rows if p not in self.used]
        if left:
            style = type(self.rows[left[0]]).__name__ in _STYLES
            every = [*dict.fromkeys(n.rpartition(".")[0] if style else n for n in self.seen)]
            near = [n for n in every if n and (n.endswith(f".{left[0]}") or left[0].endswith(f".{n}"))] or difflib.get_close_matches(left[0], every, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join([n for n in every if n][:8])}, …"
            raise ValueError(f"opentrn: nothing of the step is called {left[0]!r} in the plan; {hint}")

    def header(self):
        """Of the module: how many devices, and the mesh."""
        devices = 1
        for n in self.mesh.values():
            devices *= n
        axes = ", ".join(f'"{k}"={v}' for k, v in self.mesh.items())
        return f"module attributes {{mhlo.num_partitions = {devices} : i32}} {{\nsdy.mesh @mesh = <[{axes}]>\n"


def sharding(cuts: Sequence[Sequence[str]]) -> str:
    """As an attribute of an argument or a result."""
    dims = ", ".join("{" + ", ".join(f'"{a}"' for a in axes) + "}" for axes in cuts)
    return f"sdy.sharding = #sdy.sharding<@mesh, [{dims}]>"
