# SPDX-License-Identifier: Apache-2.0
"""Progress of a training loop and its closing report, for any front end.

    with opentrn.training("GPT", steps=200, tokens=2048, goal=2.2) as run:
        for x, y in batches:
            run.step(train_step(model, optimizer, x, y))     # the loss
    run.losses

On a terminal one line is written over and over; in a log there are about ten quiet lines. The report at the end
has the loss, the host's rate and, when something ran on the device, its modelled time, busy engines and price on
each chip. On another platform that part is left out, and nothing is asked of the device.
"""

import contextlib
import html
import os
import sys
import time
from collections.abc import Iterator
from typing import Any, TextIO

from opentrn import _page
from opentrn._profile import Profile, check_counts, comm_text, comm_warnings, plain, profile
from opentrn._report import loops_text

TARGETS = ("trn1", "trn2", "trn3")
_LINES = 10  # in a log
_SHOWN = 0.01  # engines busy for less are not listed
_BAR = 24


class Training:
    """losses, host_seconds (without the first step, which compiles), and the profile of the block.

    tokens, samples: of one step; what the rates and prices count. goal: the loss the last steps should reach.
    """

    def __init__(
        self,
        name: str,
        steps: int,
        tokens: int | None = None,
        samples: int | None = None,
        goal: float | None = None,
        out: TextIO | None = None,
    ) -> None:
        check_counts("training", steps=steps, tokens=tokens, samples=samples)
        if goal is not None and not isinstance(goal, (int, float)):
            raise TypeError(f"opentrn.training: goal is a number, the loss to reach, not {goal!r}")
        self.name, self.steps, self.goal = name, steps, goal
        self.what, self.count = ("tokens", tokens) if tokens else ("samples", samples or 1)
        self.losses: list[float] = []
        self.profile: Profile | None = None
        self.first_seconds = self.host_seconds = 0.0
        self._out = out or sys.stdout
        self._live = self._out.isatty()
        self._last = time.perf_counter()

    def _write(self, text):
        self._out.write(text)
        self._out.flush()

    def step(self, loss: Any) -> None:
        """A step is done: waits for its loss and shows it."""
        self.losses.append(float(loss.item() if hasattr(loss, "item") else loss))
        now = time.perf_counter()
        seconds, self._last = now - self._last, now
        n = len(self.losses)
        if n == 1:
            self.first_seconds = seconds
        else:
            self.host_seconds += seconds
        if self._live:
            done = _BAR * n // max(self.steps, n)
            bar = "#" * done + "." * (_BAR - done)
            self._write(f"\r[{bar}] step {n}/{self.steps}  loss {self.losses[-1]:.4f}  {self.rate:,.0f} {self.what}/s ")
        elif n == 1 or n == self.steps or n % max(self.steps // _LINES, 1) == 0:
            self._write(f"step {n:4}  loss {self.losses[-1]:.4f}\n")

    @property
    def rate(self) -> float:
        """Tokens or samples the host got through in a second."""
        done = len(self.losses) - 1
        return done * self.count / self.host_seconds if self.host_seconds else 0.0

    @property
    def loss(self) -> float:
        """Mean over the last tenth of the steps: single batches scatter."""
        last = self.losses[-max(len(self.losses) // 10, 1) :]
        return sum(last) / len(last) if last else float("nan")

    @property
    def reached(self) -> bool:
        return self.goal is None or self.loss <= self.goal

    def _profiled(self) -> Profile:
        if self.profile is None:
            raise RuntimeError("opentrn.training: the block has not begun")
        return self.profile

    def modelled(self, target: str | None) -> tuple[float, dict[str, float], float | None]:
        """One row of the report: microseconds of a step, shares of the engines, $ per million, or None when no price is
        known."""
        p = self._profiled()
        before, p.target = p.target, target
        try:
            known = all(report["usd_per_hour"] for _, _, report in p.rows)
            usd = p.usd_per_million(len(self.losses) * self.count) if known else None
            return p.total_us / len(self.losses), p.engines, usd
        finally:
            p.target = before

    def _comm(self, target: str) -> list[str]:
        """Collectives on that chip, and a warning where they take too much of the step."""
        p = self._profiled()
        before, p.target = p.target, target
        try:
            return comm_text(p) + [f"warning: {text}" for text in comm_warnings(p)]
        finally:
            p.target = before

    def _told(self, target: str) -> tuple[str, list[str]]:
        """Price and notes of a row."""
        p = self._profiled()
        before, p.target = p.target, target
        try:
            return p.price, sorted({f"{name}: {text}" for name, _, r in p.rows if (text := loops_text(r))})
        finally:
            p.target = before

    def report(self, path: str | os.PathLike[str]) -> None:
        """Writes a page (FILE.html): the loss curve, and all of opentrn.profile's page about the step. After the block."""
        rows = [(target, *self.modelled(target)) for target in TARGETS] if self.profile and self.profile.ran else []
        costs = [
            (name, step_us, "not known" if usd is None else usd, self._told(name)[0])
            for name, step_us, _, usd in rows
        ]
        extra = (
            _page.curve(self.losses, self.goal)
            + "<h2>On each chip</h2>"
            + _page.table(("chip", "modelled µs of a step", f"$ per 1M {self.what}", "price"), costs)
            + _page.programs(self._profiled().rows)
        )
        self._profiled()._page(path, f"<p class=soft>{html.escape(str(self).splitlines()[0])}</p>" + extra)

    def __str__(self) -> str:
        """The closing report."""
        goal = "" if self.goal is None else f", goal {self.goal:g} {'reached' if self.reached else 'MISSED'}"
        lines = [f"{self.name}: loss {self.loss:.4f} after {len(self.losses)} steps{goal}"]
        steps = len(self.losses) - 1
        if steps > 0:
            lines.append(
                f"host {self.rate:,.0f} {self.what}/s, {self.host_seconds / steps * 1e3:.1f} ms per step; "
                f"the first step, with compilation, {self.first_seconds:.1f} s"
            )
        if self.profile and self.profile.ran:
            lines.append(f"chip    modelled step   $ per 1M {self.what:7}   busy")
            told, notes = [], {}  # a note once, where it was first told
            for target in TARGETS:
                try:
                    step_us, engines, usd = self.modelled(target)
                except RuntimeError as error:  # it does not fit there, or that chip cannot do it
                    lines.append(f"{target}   not possible: {str(error).splitlines()[0]}")
                    continue
                busy = ", ".join(f"{n} {100 * s:.0f} %" for n, s in engines.items() if s >= _SHOWN)
                price = plain(usd, 2) if usd else "not known"
                lines.append(f"{target}   {plain(step_us, 1):>10} us   {price:>16}   {busy}")
                price, more = self._told(target)
                lines += [f"       {line}" for line in self._comm(target)]
                notes.update(dict.fromkeys(more))
                told.append(f"{target}: {price}")
            lines.append("prices: " + "; ".join(told))
            lines += [f"note: {note}" for note in notes]
        if self.profile:
            lines += self.profile.missing()
        return "\n".join(lines)


@contextlib.contextmanager
def training(
    name: str,
    steps: int,
    tokens: int | None = None,
    samples: int | None = None,
    goal: float | None = None,
    out: TextIO | None = None,
    max_comm: float | str | None = None,
) -> Iterator[Training]:
    """Progress while the block runs, `run.step(loss)` by step, and the report at its end. max_comm: as in opentrn.profile."""
    run = Training(name, steps, tokens, samples, goal, out)
    with profile(max_comm=max_comm) as run.profile:
        yield run
    if run.losses:
        run._write(("\r" + " " * 78 + "\r" if run._live else "") + f"{run}\n")
