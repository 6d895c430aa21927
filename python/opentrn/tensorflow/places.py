# SPDX-License-Identifier: Apache-2.0
"""Which line of the user's program an operation comes from.

The StableHLO that TensorFlow gives names operations as the graph does ("gradient_tape/net/dense/MatMul") and, as a place,
says only where in TensorFlow a node is made. The graph's nodes know the stack they were made on; the user's innermost frame of
that is written beside the name. A gradient gets the place of the forward operation it is named after.
"""

import functools
import importlib.util
import os
import re
from typing import Any

_PACKAGES = ("tensorflow", "keras", "tf_keras", "opentrn", "absl")
_NAMED = re.compile(r'^(#loc\d*) = loc\("([^"\\]+)"\)$', re.MULTILINE)
_GRADIENT = ("gradient_tape/", "gradients/")
Place = tuple[str, int]


@functools.cache
def _roots() -> tuple[str, ...]:
    """Folders of packages whose frames are not the user's."""
    found = (importlib.util.find_spec(name) for name in _PACKAGES)
    return tuple(os.path.dirname(s.origin) + os.sep for s in found if s and s.origin)


def is_library(file: str) -> bool:
    """Is it a file of TensorFlow, Keras, the standard library: not the user's?"""
    standard = file.startswith(os.path.dirname(os.__file__) + os.sep) and f"{os.sep}site-packages{os.sep}" not in file
    return standard or file.startswith(("<", *_roots()))


def _graphs(graph: Any) -> list[Any]:
    """The graph and those of the functions it calls: branches, loop bodies, gradients."""
    seen: list[Any] = []
    todo = [graph]
    while todo:
        one = todo.pop()
        if any(one is s for s in seen):
            continue
        seen.append(one)
        todo += [f.graph for f in getattr(one, "_functions", {}).values() if hasattr(f, "graph")]
    return seen


def _place(operation: Any) -> Place | None:
    for frame in reversed(operation.traceback or ()):
        if not is_library(frame.filename):
            return frame.filename, frame.lineno
    return None


class Places:
    """Places by the name of a node, looked up when they are asked for."""

    def __init__(self, graph: Any) -> None:
        self._nodes = {op.name: op for g in _graphs(graph) for op in g.get_operations()}
        self._known: dict[str, Place | None] = {}

    def _node(self, name: str) -> Place | None:
        if name not in self._known:
            self._known[name] = _place(self._nodes[name]) if name in self._nodes else None
        return self._known[name]

    def of(self, name: str) -> Place | None:
        forward = name
        for prefix in _GRADIENT:
            forward = forward.removeprefix(prefix)
        parts = forward.split("/") if forward != name else []
        for n in range(len(parts), 0, -1):  # dense/MatMul/MatMul_1 is the gradient of dense/MatMul
            if "/".join(parts[:n]) in self._nodes:
                return self._node("/".join(parts[:n]))
        return self._node(name)

    def write(self, text: str) -> str:
        """A program's text with places behind the names."""

        def named(match: re.Match[str]) -> str:
            place = self.of(match[2])
            if not place:
                return match[0]
            file = place[0].replace("\\", "\\\\").replace('"', '\\"')
            return f'{match[1]} = loc("{match[2]}"("{file}":{place[1]}:1))'

        return _NAMED.sub(named, text)
