# SPDX-License-Identifier: Apache-2.0
"""Modelled time of what runs inside a `with` block.

A front end registers a source, which tells about every program it has run so far. A profile is the difference between two moments.
"""

import collections
import contextlib
import dataclasses
import math
import numbers
import os
import time
import warnings
from collections.abc import Callable, Hashable, Iterator
from typing import Any

from opentrn import _page
from opentrn._report import checked_share, checked_target, comm_note, loops_text, price_text

_SHOWN = 8  # programs a printed profile lists
_SUMS = ("count", "bytes", "busy_us", "exposed_us")


@dataclasses.dataclass(frozen=True)
class Program:
    key: Hashable  # of its source
    name: str
    runs: int  # so far
    report: Callable[[str | None], dict[str, Any]]  # of a target: one run
    page: Callable[[str | None, str], None]  # of a target: writes its page to a path
    group: Hashable = None  # programs of one function for different sizes have the same


@dataclasses.dataclass(frozen=True)
class Outside:
    """An operator that runs outside of device programs, so that no modelled time contains it."""

    key: Hashable
    operator: str
    place: str  # the user's line
    why: str
    runs: int  # so far
    flops: int = 0  # of matrix products and convolutions, so far

    def __str__(self) -> str:
        flops = f", {flops_text(self.flops)}" if self.flops else ""
        at = f" at {self.place}" if self.place else ""
        return f"{self.operator}{at}: {self.runs} runs{flops} ({self.why})"


@dataclasses.dataclass(frozen=True)
class Source:
    programs: Callable[[], list[Program]]
    begin: Callable[[], object] = lambda: None  # from now on runs are counted
    end: Callable[[], object] = lambda: None
    outside: Callable[[], list[Outside]] = list
    steps: Callable[[], dict[Hashable, int]] = dict  # of each optimizer so far
    notes: Callable[[], list[str]] = list  # what else a modelled time does not tell


SOURCES: list[Source] = []


def later(bring: Callable[[], Source]) -> Source:
    """A source that is brought when a profile first asks it something."""
    names = [f.name for f in dataclasses.fields(Source)]
    return Source(*(lambda name=name: getattr(bring(), name)() for name in names))  # type: ignore[misc]


def flops_text(flops: float) -> str:
    for scale, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if flops >= scale:
            return f"{flops / scale:.4g} {unit}FLOP"
    return f"{flops:.4g} FLOP"


class _Moment:
    """What every source has counted so far."""

    def __init__(self):
        every = list(enumerate(SOURCES))
        self.programs = {(number, p.key): p for number, source in every for p in source.programs()}
        self.outside = {(number, o.key): o for number, source in every for o in source.outside()}
        self.steps = {(number, key): n for number, source in every for key, n in source.steps().items()}


def outside_text(rows: list[Outside]) -> list[str]:
    """Lines about operators that ran outside of device programs; none where there are none."""
    if not rows:
        return []
    runs, flops = sum(o.runs for o in rows), sum(o.flops for o in rows)
    told = f" with {flops_text(flops)}" if flops else ""
    lines = [f"outside of device programs: {runs} runs of {len({o.operator for o in rows})} operators{told}; modelled times do not contain them"]
    lines += [f"  {o}" for o in rows[:_SHOWN]]
    if rows[_SHOWN:]:
        lines.append(f"  {sum(o.runs for o in rows[_SHOWN:])} more runs at {len(rows) - _SHOWN} other places")
    return lines


def plain(value: float, least: int = 0) -> str:
    """A number as people write it: at least four digits that say something, at least `least` behind the point."""
    digits = 3 - math.floor(math.log10(abs(value))) if value and math.isfinite(value) else 0
    return f"{value:,.{max(digits, least)}f}"


def _weight(row):
    """Modelled time of all runs of a program."""
    return row[1] * row[2]["total_us"]


def _group(program):
    return program.key if program.group is None else program.group


def comm_text(p: "Profile") -> list[str]:
    """Collectives in lines; none where there are none."""
    if not p.comm_share:
        return []
    kinds = [
        f"{c['kind']} over {c['ranks']}{f', {a} apart' if (a := c['stride']) > 1 else ''}: {c['count'] / p.steps:.4g} a step, "
        f"{c['bytes'] / p.steps / 1e6:.4g} MB, {plain(c['busy_us'] / p.steps, 1)} us, exposed {plain(c['exposed_us'] / p.steps, 1)} us"
        for c in p.collectives
    ]
    return [f"collectives: {100 * p.comm_share:.1f} % of the step, {100 * p.exposed_comm_share:.1f} % not hidden", *(f"  {k}" for k in kinds)]


def comm_warnings(p: "Profile") -> list[str]:
    """Programs whose collectives take more than p.max_comm of their time, a quarter where nobody said, and the operations responsible."""
    return sorted({f"{name}: {text}" for name, _, r in p.rows if (text := comm_note(r, p.max_comm))})


def check_counts(function: str, **counts: Any) -> None:
    """Mistakes in a call, told where it is made."""
    for name, value in counts.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, numbers.Real) or not float(value) > 0):
            raise ValueError(f"opentrn.{function}: {name} is a number above 0, not {value!r}")


class Profile:
    """What ran: `rows` as (name, runs, report of one run), and sums over them.

    steps, samples, tokens: set them, or pass them to opentrn.profile(). Without that steps are the calls of step(), those
    of an optimizer, or the runs of the function that took most of the modelled time, of whatever size: a front end may run
    small helpers more often. `outside`: operators that ran in the block and in no device program.
    """

    def __init__(
        self,
        target: str | None,
        steps: int | None = None,
        samples: int | None = None,
        tokens: int | None = None,
        max_comm: float | None = None,
    ) -> None:
        self.target, self._steps, self.samples, self.tokens, self.max_comm = target, steps, samples, tokens, max_comm
        self._before = _Moment()
        self._ran: list[tuple[Program, int]] = []  # and its runs in the block
        self._groups: collections.Counter[Hashable] = collections.Counter()  # runs of each function
        self.outside: list[Outside] = []
        self._optimizer_steps = 0
        self._priced: dict[str | None, list[tuple[str, int, dict[str, Any]]]] = {}
        self.host_seconds = 0.0
        self._begin = time.perf_counter()
        self._last: tuple[_Moment, float] | None = None
        self._step_calls = 0

    def _end(self, now=None):
        now, before = now or _Moment(), self._before
        self.host_seconds = time.perf_counter() - self._begin
        self._priced.clear()
        for key, program in now.programs.items():
            new = program.runs - (before.programs[key].runs if key in before.programs else 0)
            if new > 0:
                self._ran.append((program, new))
                self._groups[_group(program)] += new
        for key, one in now.outside.items():
            old = before.outside.get(key)
            runs, flops = (one.runs - old.runs, one.flops - old.flops) if old else (one.runs, one.flops)
            if runs > 0:
                self.outside.append(dataclasses.replace(one, runs=runs, flops=flops))
        self.outside.sort(key=lambda o: (-o.flops, -o.runs))
        self._optimizer_steps = max((n - before.steps.get(key, 0) for key, n in now.steps.items()), default=0)

    def step(self) -> "Profile":
        """A profile of what ran since the block began, or since the last step. Waits for it."""
        step, now = Profile(self.target, 1, max_comm=self.max_comm), _Moment()
        step._before, step._begin = self._last or (self._before, self._begin)
        step._end(now)
        self._last = (now, time.perf_counter())
        self._step_calls += 1
        return step

    @property
    def ran(self) -> bool:
        """Did anything run on the device?"""
        return bool(self._ran)

    @property
    def rows(self) -> list[tuple[str, int, dict[str, Any]]]:
        if self.target not in self._priced:  # programs do not change, so each target is asked once
            self._priced[self.target] = [
                (program.name, runs, program.report(self.target)) for program, runs in self._ran
            ]
        return self._priced[self.target]

    @property
    def steps(self) -> int:
        counted = self._steps or self._step_calls or self._optimizer_steps
        return counted or (self._groups[_group(self._heaviest())] if self._ran else 0)

    @steps.setter
    def steps(self, value: int | None) -> None:
        self._steps = value

    def _heaviest(self) -> Program:
        """Of the function that took most of the modelled time."""
        times: collections.Counter[Hashable] = collections.Counter()
        for (program, _), row in zip(self._ran, self.rows, strict=True):
            times[_group(program)] += _weight(row)
        most = max(times.values())
        return next(p for p, _ in self._ran if times[_group(p)] == most)

    def _sum(self, value):
        return sum(runs * value(report) for _, runs, report in self.rows)

    @property
    def total_us(self) -> float:
        return self._sum(lambda r: r["total_us"])

    @property
    def step_us(self) -> float:
        return self.total_us / self.steps if self.steps else 0.0

    @property
    def engines(self) -> dict[str, float]:
        """Share of the time each engine is busy."""
        total = self.total_us
        names = self.rows[0][2]["busy_us"] if self._ran else {}
        return {n: self._sum(lambda r, n=n: r["busy_us"][n]) / total for n in names if total}

    @property
    def usd(self) -> float:
        """Of all devices together. Raises ValueError when a price is not known."""
        for _, _, report in self.rows:
            if report["usd_per_hour"] is None:
                raise ValueError(f"the cost is not known: {price_text(report)}")
        return self._sum(lambda r: r["usd_per_hour"] * r["total_us"] / 3.6e9)

    @property
    def price(self) -> str:
        """Whose price it is, of the program that takes the longest."""
        longest = max(self.rows, key=_weight, default=None)
        return price_text(longest[2]) if longest else ""

    @property
    def utilisation(self) -> float:
        """FLOP of all devices' matrix products over the bf16 peak of their tensor engines in that time."""
        total = self.total_us
        return self._sum(lambda r: r["utilisation"] * r["total_us"]) / total if total else 0.0

    @property
    def comm_share(self) -> float:
        """Part of the time in which collectives run."""
        total = self.total_us
        return self._sum(lambda r: r["comm_us"]) / total if total else 0.0

    @property
    def exposed_comm_share(self) -> float:
        """… and that nothing hides: what would be saved if links cost nothing."""
        total = self.total_us
        return self._sum(lambda r: r["exposed_comm_us"]) / total if total else 0.0

    @property
    def collectives(self) -> list[dict[str, Any]]:
        """By kind and group, the most exposed first: count, bytes a device sends, busy_us and exposed_us of all runs, and the
        file and line with most of it."""
        kinds: dict[tuple[Any, ...], dict[str, Any]] = {}
        for _, runs, report in self.rows:
            for c in report["collectives"]:
                row = kinds.setdefault(tuple(c[k] for k in ("kind", "ranks", "groups", "stride")), {**c, **dict.fromkeys(_SUMS, 0.0)})
                row.update({k: row[k] + runs * c[k] for k in _SUMS})
        return sorted(kinds.values(), key=lambda c: (-c["exposed_us"], -c["busy_us"]))

    def usd_per_million(self, count: int) -> float:
        """Price of a million samples or tokens when this run had `count` of them."""
        return self.usd / count * 1e6

    def report(self, path: str | os.PathLike[str]) -> None:
        """Writes a page (FILE.html) about the program that took most of the time: critical path, engines, layers,
        roofline, memory, costs. One file, for any browser."""
        self._page(path, _page.programs(self.rows))

    def missing(self) -> list[str]:
        """What the modelled time does not contain, and what else a reader should know of it, in lines."""
        return outside_text(self.outside) + [f"note: {text}" for source in SOURCES for text in source.notes()]

    def _page(self, path, extra):
        if not self._ran:
            raise RuntimeError("opentrn: nothing ran on the device, so there is nothing to report")
        times = [runs * report["total_us"] for _, runs, report in self.rows]
        longest, _ = self._ran[times.index(max(times))]
        _page.write(lambda where: longest.page(self.target, where), path, extra + _page.missing(self.outside, self.missing()))

    def __str__(self) -> str:
        if not self._ran:
            return "\n  ".join(["opentrn: nothing ran on the device", *self.missing()])
        target = self.rows[0][2]["target"]
        rows = sorted(self.rows, key=_weight, reverse=True)
        guessed = f" (runs of {self._heaviest().name})" if not self._optimizer_steps else " (of the optimizer)"
        told = "" if self._steps or self._step_calls else guessed
        lines = [
            f"opentrn on {target}: {self.steps} steps{told}, modelled time per step {plain(self.step_us, 1)} us, "
            f"host {plain(self.host_seconds / self.steps * 1e6)} us"
        ]
        for name, runs, report in rows[:_SHOWN]:
            lines.append(f"  {name}: {runs} runs of {plain(report['total_us'], 1)} us")
        rest = sum(runs * report["total_us"] for _, runs, report in rows[_SHOWN:])
        if rest:
            lines.append(f"  {len(rows) - _SHOWN} smaller programs: {plain(rest, 1)} us in all")
        busy = ", ".join(f"{n} {100 * s:.0f} %" for n, s in self.engines.items() if s >= 0.005)
        lines.append(f"  busy: {busy}")
        lines += [f"  {line}" for line in comm_text(self)]
        counts = [(w, n) for w, n in (("samples", self.samples), ("tokens", self.tokens)) if n]
        for what, count in counts:
            rate = count / self.total_us * 1e6
            lines.append(f"  {rate:,.0f} {what}/s, {100 * self.utilisation:.1f} % of the tensor engines' bf16 peak")
            if all(report["usd_per_hour"] for _, _, report in rows):
                lines.append(f"  $ {plain(self.usd_per_million(count), 2)} per 1M {what}")
        lines.append(f"  price: {self.price}")
        lines += sorted({f"  note: {name}: {text}" for name, _, r in rows if (text := loops_text(r))})
        lines += [f"  warning: {text}" for text in comm_warnings(self)]
        lines += [f"  {line}" for line in self.missing()]
        return "\n".join(lines)


@contextlib.contextmanager
def profile(
    target: str | None = None,
    steps: int | None = None,
    samples: int | None = None,
    tokens: int | None = None,
    max_comm: float | str | None = None,
) -> Iterator[Profile]:
    """`with opentrn.profile("trn2", tokens=n) as p: …; print(p)`. max_comm: a share of the step, 0.25 or "25%"; where collectives take
    more, a Python warning names the operations responsible at the end of the block."""
    target, most = checked_target("profile", target), checked_share("profile", max_comm)
    check_counts("profile", steps=steps, samples=samples, tokens=tokens)
    begun = list(SOURCES)  # one that comes during the block has not begun
    for source in begun:
        source.begin()
    p = Profile(target, steps, samples, tokens, most)
    try:
        yield p
    finally:
        p._end()
        for source in begun:
            source.end()
    for text in comm_warnings(p) if most is not None else ():
        warnings.warn(f"opentrn: {text}", stacklevel=3)
