# SPDX-License-Identifier: Apache-2.0
"""What ran: device programs, and functions that TensorFlow ran itself because that was asked for."""

import collections
import dataclasses
import gc
import sys
import threading
from collections.abc import Hashable
from typing import Any

from opentrn import _profile, _runs
from opentrn.tensorflow import outside


@dataclasses.dataclass
class Row:
    """A device program and how often it ran."""

    name: str
    executable: Any
    runs: int = 0


class Log:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.rows: list[Row] = []
        self.fallbacks: collections.Counter[tuple[str, str]] = collections.Counter()  # (function, why) -> runs

    def add(self, name: str, executable: Any) -> Row:
        row = Row(name, executable)
        with self.lock:
            self.rows.append(row)
        return row

    def clear(self) -> None:
        with self.lock:
            self.rows.clear()
            self.fallbacks.clear()


log = Log()


def _tell(row: Row) -> str:
    report = row.executable.report()
    origin = "cache" if row.executable.cached else "compiled"
    return f"  {row.name}: {row.runs} runs, {report['total_us']:.1f} us each on {report['target']} ({origin})"


def explain() -> str:
    """Device programs and what ran outside them, as text."""
    with log.lock:
        rows, fallbacks = list(log.rows), list(log.fallbacks.items())
    lines = [f"{len(rows)} device programs", *map(_tell, rows)]
    if named := _runs.told():
        lines += [f"{len(named)} programs of the device /device:NEURON", *named]
    if fallbacks:
        lines.append(f"{len(fallbacks)} functions that TensorFlow ran on the CPU: modelled times do not contain them")
        lines += [f"  {name}: {why}, run {runs} times" for (name, why), runs in fallbacks]
    lines += _profile.outside_text(outside.found())
    return "\n".join(lines)


def _programs() -> list[_profile.Program]:
    """For opentrn.profile()."""
    with log.lock:
        return [_profile.Program(id(r), r.name, r.runs, r.executable.report, r.executable.write) for r in log.rows]


def _outside() -> list[_profile.Outside]:
    with log.lock:
        whole = [_profile.Outside((name, why), name, "", why, runs) for (name, why), runs in log.fallbacks.items()]
    return whole + outside.found()


def _steps() -> dict[Hashable, int]:
    """How many steps each optimizer of Keras has made, also those that no program of its own belongs to."""
    kinds = tuple(sys.modules[name].optimizers.Optimizer for name in ("keras", "tf_keras") if hasattr(sys.modules.get(name), "optimizers"))
    found = [o for o in gc.get_objects() if issubclass(type(o), kinds)]
    return {id(o): int(o.iterations.numpy()) for o in found if hasattr(getattr(o, "iterations", None), "numpy")}


_profile.SOURCES.append(_profile.Source(_programs, outside.begin, outside.end, _outside, _steps))
_runs.keep()  # for explain()
