# SPDX-License-Identifier: Apache-2.0
"""Groups of collectives told by the mesh's axes, where JAX lists every device in every collective.

A list is as long as the fleet and a step's update has a hundred of them: of 262,144 devices their text is half a gigabyte, told by axes half a megabyte.
JAX has no public way to it, so private names are touched, while a program is lowered; where they are not as expected, devices are listed.
"""

import collections.abc
import contextlib
import functools
import inspect


class _Along(collections.abc.Sequence):
    """The groups along some axes of a mesh, listed where somebody looks at them."""

    def __init__(self, listed, context, axes):
        self.listed, self.context, self.axes = listed, context, axes

    @functools.cached_property
    def rows(self):
        return self.listed(self.context, self.axes, None)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]

    def told(self):
        sizes = ", ".join(f'#stablehlo.mesh_axis<name = "{name}", size = {n}>' for name, n in self.context.mesh.shape.items())
        axes = ", ".join(f'#stablehlo.axis_ref<name = "{name}">' for name in self.axes)
        return f"#stablehlo.replica_group_mesh_axes<mesh = #stablehlo.mesh<axes = [{sizes}]>, axes = [{axes}]>"


@contextlib.contextmanager
def by_axes():
    from jax._src.lax import parallel
    from jax._src.lib.mlir import ir

    listed, written = (getattr(parallel, name, None) for name in ("_replica_groups", "_replica_groups_hlo"))
    if not (_takes(listed, "axis_ctx", "axis_name", "axis_index_groups") and _takes(written, "replica_groups")):
        yield
        return

    def along(axis_ctx, axis_name, axis_index_groups):
        if axis_index_groups is not None or not hasattr(axis_ctx, "mesh"):
            return listed(axis_ctx, axis_name, axis_index_groups)
        return _Along(listed, axis_ctx, tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,))

    def put(replica_groups):
        if isinstance(replica_groups, _Along):
            with contextlib.suppress(ir.MLIRError, ValueError):  # a StableHLO that cannot
                return ir.Attribute.parse(replica_groups.told())
        return written(replica_groups)

    parallel._replica_groups, parallel._replica_groups_hlo = along, put
    try:
        yield
    finally:
        parallel._replica_groups, parallel._replica_groups_hlo = listed, written


def _takes(function, *names):
    return callable(function) and tuple(inspect.signature(function).parameters) == names
