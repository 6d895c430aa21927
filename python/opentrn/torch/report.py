# SPDX-License-Identifier: Apache-2.0
"""What happened: programs compiled and run, operators that stayed on the CPU, graph breaks."""

import collections
import dataclasses
import threading


@dataclasses.dataclass
class Graph:
    """One device program of a captured graph."""

    name: str
    executable: object
    runs: int = 0


@dataclasses.dataclass(frozen=True)
class Fallback:
    """An operator that runs on the CPU between device programs."""

    operator: str
    reason: str
    place: tuple | None  # file, line, function

    def __str__(self):
        at = f"{self.place[0]}:{self.place[1]} in {self.place[2]}" if self.place else "unknown place"
        return f"{self.operator} at {at}: {self.reason}"


class Log:
    """Counts since the process began; `opentrn.profile()` compares two moments."""

    def __init__(self):
        self.lock = threading.Lock()
        self.graphs = []
        self.fallbacks = collections.Counter()  # Fallback -> times run
        self.found = []  # Fallbacks in the order they were met when compiling

    def clear(self):
        with self.lock:
            self.graphs.clear()
            self.fallbacks.clear()
            self.found.clear()

    def add_graph(self, name, executable):
        graph = Graph(name, executable)
        with self.lock:
            self.graphs.append(graph)
        return graph

    def add_fallback(self, fallback):
        with self.lock:
            if fallback not in self.found:
                self.found.append(fallback)


log = Log()
