# SPDX-License-Identifier: Apache-2.0
"""What happened: programs compiled and run, operators that stayed on the CPU, graph breaks."""

import atexit
import collections
import dataclasses
import os
import pathlib
import threading
from typing import Any

import torch

from opentrn import _profile
from opentrn.torch import idle, optimizer, outside, settings


@dataclasses.dataclass
class Graph:
    """One device program of a captured graph."""

    name: str
    executable: object
    runs: int = 0
    told: str = ""  # function, file and shapes
    group: object = None  # the function, whatever the shapes

    @property
    def title(self):
        return f"{self.name} {self.told}".strip()


@dataclasses.dataclass(frozen=True)
class Fallback:
    """An operator that runs on the CPU between device programs."""

    operator: str
    reason: str
    place: tuple[str, int, str] | None  # file, line, function
    flops: int = 0  # of one run

    @property
    def at(self):
        return f"{self.place[0]}:{self.place[1]} in {self.place[2]}" if self.place else "unknown place"

    def __str__(self):
        flops = f" ({_profile.flops_text(self.flops)} each)" if self.flops else ""
        return f"{self.operator} at {self.at}: {self.reason}{flops}"


class Log:
    """Counts since the process began; `opentrn.profile()` compares two moments."""

    def __init__(self):
        self.lock = threading.Lock()
        self.graphs = []
        self.collectives = []  # Graphs: those of process groups outside of captured graphs
        self.host: list[Any] = []  # operators of the device `neuron` that CPU kernels run (neuron/eager.py)
        self.fallbacks: collections.Counter[Fallback] = collections.Counter()  # Fallback -> times run
        self.found = []  # Fallbacks in the order they were met when compiling

    def clear(self):
        with self.lock:
            self.graphs.clear()
            for one in self.collectives:  # groups count on
                one.runs = 0
            self.fallbacks.clear()
            self.found.clear()
            outside.rows.clear()

    def add_graph(self, name, executable, told="", group=None):
        graph = Graph(name, executable, told=told, group=group and (name, group))
        with self.lock:
            self.graphs.append(graph)
        return graph

    def add_collective(self, name, executable):
        one = Graph(name, executable)
        with self.lock:
            self.collectives.append(one)
        return one

    def replace_graph(self, old, new):
        with self.lock:
            self.graphs[self.graphs.index(old)] = new

    def add_fallback(self, fallback):
        with self.lock:
            if fallback not in self.found:
                self.found.append(fallback)


log = Log()


# --- what Dynamo did ------------------------------------------------------------------------------


# Torch's own wrappers of optimizer steps cut themselves; nothing of the step is outside the graph.
_OPTIMIZERS, _DYNAMO = (os.path.join(os.path.dirname(torch.__file__), name) + os.sep for name in ("optim", "_dynamo"))


def graph_breaks():
    """(reason, place) of each cut in a graph, the user's line last in its stack."""
    rows = []
    for row in torch._dynamo.utils.graph_break_reasons:
        if not row.graph_break:
            continue
        frame = row.user_stack[-1] if row.user_stack else None
        if frame and frame.filename.startswith((_OPTIMIZERS, _DYNAMO)):
            continue
        rows.append(
            (row.reason.splitlines()[0], f"{frame.filename}:{frame.lineno}" if frame else "")
        )
    return rows


def _frame(metrics):
    """Dynamo's number of a code object: all its compilations have it."""
    return str(metrics.compile_id).partition("/")[0]


def _compilations():
    """(function, metrics) of each time Dynamo compiled something or gave it up. A frame that it gave up has no name, but the number of
    the compilations before."""
    names, rows = {}, []
    for m in torch._dynamo.utils.get_compilation_metrics():
        if m.co_filename:
            own = f"{m.co_name} at {m.co_filename}:{m.co_firstlineno}"
            names[_frame(m)] = "a module of torch's own" if m.co_filename.startswith(_DYNAMO) else own
        rows.append((names.get(_frame(m), "a function"), m))
    return rows


def _over_limit(metrics):
    return "limit exceeded" in (metrics.fail_reason or "").partition("\n")[0]


def recompiles():
    """(function, reason) of each second and further compilation of one function."""
    return [
        (name, m.recompile_reason)
        for name, m in _compilations()
        if m.recompile_reason and not (m.co_filename or "").startswith(_OPTIMIZERS) and not _over_limit(m)
    ]


def over_limit():
    """(function, reason) of each one that Dynamo compiles no more: its other calls run eagerly."""
    return [(name, m.recompile_reason or "") for name, m in _compilations() if _over_limit(m)]


def _tell_limit():
    limit = torch._dynamo.config.recompile_limit
    return [
        f"recompile limit of {limit} reached for {what}: other calls of it run eagerly on the CPU ({' '.join(why.split())}); "
        "leave dynamic=None, or raise torch._dynamo.config.recompile_limit"
        for what, why in over_limit()
    ]


_SHOWN = 12  # lines of each kind of eager operator


def _tell_program(graph):
    report = graph.executable.report()
    origin = "cache" if graph.executable.cached else "compiled"
    return f"  {graph.title}: {graph.runs} runs, {report['total_us']:.1f} us each on {report['target']} ({origin})"


def _tell_eager(programs):
    """Programs of single operators: those that take longest by name, the others in a sum."""
    if not programs:
        return []
    rows = sorted(((p.runs * p.executable.report()["total_us"], p) for p in programs), key=lambda r: -r[0])
    runs, us = sum(p.runs for p in programs), sum(t for t, _ in rows)
    lines = [f"{len(programs)} eager operators, each a program: {runs} runs, {us:.1f} us in all"]
    lines += [_tell_program(p) for _, p in rows[:_SHOWN]]
    if rows[_SHOWN:]:
        lines.append(f"  {len(rows) - _SHOWN} more: {sum(t for t, _ in rows[_SHOWN:]):.1f} us")
    return lines


def host_operators():
    """(operator, place, reason, runs) of what CPU kernels ran for the device `neuron`, most runs first."""
    sums: collections.Counter[tuple[str, str, str]] = collections.Counter()
    for one in log.host:
        sums[one.name, one.place, one.reason] += one.runs
    return [(name, at, why, runs) for (name, at, why), runs in sums.most_common() if runs]


def _tell_host():
    rows = host_operators()
    if not rows:
        return []
    runs = sum(r for *_, r in rows)
    lines = [f"{len(rows)} eager operators on CPU kernels, {runs} runs: modelled times do not contain them"]
    return lines + [f"  {name}{f' at {at}' if at else ''}: {why}, run {count} times" for name, at, why, count in rows]


def _tell_idle():
    rows = idle.modules()
    if not rows:
        return []
    lines = [f"{len(rows)} compiled modules without a device program; they run operator by operator"]
    return lines + [f"  {name}: {_HINT}" for name in rows]


_HINT = "torch.compile found no code of yours in it; compile the modules inside, or put them into a module of your own"


def _notes():
    """For opentrn.profile()."""
    idle_ones = [f"the compiled module {name} has no device program: {_HINT}" for name in idle.modules()]
    return idle_ones + _tell_limit() + outside.note()


def _outside():
    """For opentrn.profile(): what CPU kernels run in graphs, for the device `neuron`, and outside of graphs."""
    rows = [
        _profile.Outside(("graph", f), f.operator, f.at, f"between device programs: {f.reason}", runs, runs * f.flops)
        for f, runs in list(log.fallbacks.items())
    ]
    rows += [
        _profile.Outside(("host", name, at, why), name, at, f"a CPU kernel for the device neuron: {why}", runs)
        for name, at, why, runs in host_operators()
    ]
    return rows + outside.found()


def explain() -> str:
    """Everything a user may want to know about what was captured, as text."""
    captured = [g for g in log.graphs if not getattr(g, "eager", False)]
    lines = [f"{len(captured)} device programs", *map(_tell_program, captured)]
    lines += _tell_eager([g for g in log.graphs if getattr(g, "eager", False)])
    lines += _tell_idle()
    alone = [c for c in log.collectives if c.runs]
    if alone:
        lines.append(f"{len(alone)} collectives outside of device programs")
        lines += [f"  {c.name}: {c.runs} runs, {c.executable.report()['total_us']:.1f} us each" for c in alone]
    if log.found:
        lines.append(f"{len(log.found)} operators on the CPU between device programs: modelled times do not contain them")
        lines += [f"  {f}, run {log.fallbacks[f]} times" for f in log.found]
    lines += _tell_host()
    lines += _profile.outside_text(sorted(outside.found(), key=lambda o: (-o.flops, -o.runs)))
    lines += outside.note() + _tell_limit()
    breaks, again = graph_breaks(), recompiles()
    if breaks:
        lines.append(f"{len(breaks)} graph breaks")
        lines += [f"  graph break at {place}: {reason}" for reason, place in breaks]
    if again:
        lines.append(f"{len(again)} recompiles")
        lines += [f"  recompile of {what}: {' '.join(why.split())}" for what, why in again]
    return "\n".join(lines)


@atexit.register
def _write_report():
    if settings.report_file:
        pathlib.Path(settings.report_file).write_text(explain() + "\n")


def _programs():
    """For opentrn.profile()."""
    with log.lock:
        every = [*log.graphs, *log.collectives]
        return [_profile.Program(id(g), g.title, g.runs, g.executable.report, g.executable.write, g.group) for g in every]


source = _profile.Source(_programs, outside.watching.begin, outside.watching.end, _outside, optimizer.steps, _notes)
if settings.report_file:
    outside.watching.begin()
