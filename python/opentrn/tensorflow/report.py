# SPDX-License-Identifier: Apache-2.0
"""What ran: device programs, and functions that TensorFlow ran itself because that was asked for."""

import collections
import dataclasses
import threading
from typing import Any

from opentrn import _profile


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
    if fallbacks:
        lines.append(f"{len(fallbacks)} functions that TensorFlow ran on the CPU: modelled times do not contain them")
        lines += [f"  {name}: {why}, run {runs} times" for (name, why), runs in fallbacks]
    return "\n".join(lines)


def _programs() -> list[_profile.Program]:
    """For opentrn.profile()."""
    with log.lock:
        return [_profile.Program(id(r), r.name, r.runs, r.executable.report, r.executable.write) for r in log.rows]


_profile.SOURCES.append(_profile.Source(_programs))
