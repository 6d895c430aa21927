# SPDX-License-Identifier: Apache-2.0
"""The HTML report of a profile or a training run: the page the library writes for a program (`otrn prof --report`),
with what only the front end knows put into it: which programs ran how often, the loss.

One file, nothing from elsewhere; text of the user's is escaped.
"""

import html
import math
import os
import pathlib

_EXTRA = "<!-- extra -->"  # html.h: where a front end may put something
_SHOWN = 20


def write(page_of, path: str | os.PathLike[str], extra: str) -> None:
    """page_of(path) writes a program's page; `extra` goes into it."""
    path = pathlib.Path(path)
    if path.suffix != ".html":
        raise ValueError(f"a report is a page: its name ends in .html, not {path.name!r}")
    page_of(str(path))
    page = path.read_text()
    path.write_text(page.replace(_EXTRA, extra, 1))


def table(head, rows):
    """Cells that are numbers stand on the right."""
    kinds = ["" if isinstance(c, str) else " class=n" for c in (rows[0] if rows else head)]
    cells = (f"<th{kind}>{html.escape(h)}" for h, kind in zip(head, kinds, strict=True))
    out = ["<div class=wide><table><tr>", *cells, "</tr>"]
    for row in rows:
        cells = (
            f"<td>{html.escape(c)}" if isinstance(c, str) else f"<td class=n>{c:,.6g}" for c in row
        )
        out.append("<tr>" + "".join(cells) + "</tr>")
    return "\n".join([*out, "</table></div>"])


def programs(rows) -> str:
    """rows of a Profile: what ran besides the program this page is about."""
    rows = sorted(rows, key=lambda row: -row[1] * row[2]["total_us"])
    total = sum(runs * r["total_us"] for _, runs, r in rows) or 1
    shown = [
        (name, runs, r["total_us"], 100 * runs * r["total_us"] / total)
        for name, runs, r in rows[:_SHOWN]
    ]
    note = f"<p class=soft>and {len(rows) - _SHOWN} smaller ones</p>" if len(rows) > _SHOWN else ""
    head = ("program", "runs", "modelled µs", "% of all")
    title = "<h2>What ran</h2><p class=soft>The rest of this page is about the first of them.</p>"
    return title + table(head, shown) + note


def missing(rows, lines) -> str:
    """rows: a Profile's operators outside of device programs; lines: what it says of them and of what else is not in its time."""
    if not lines:
        return ""
    shown = [(o.operator, o.place, o.runs, o.flops / 1e6, o.why) for o in rows[:_SHOWN]]
    head = ("operator", "place", "runs", "MFLOP", "why")
    told = [line for line in lines if not line.startswith("  ")]  # the others are the table's
    text = "".join(f"<p>{html.escape(line)}</p>" for line in told)
    return "<h2>Not in the modelled time</h2>" + text + (table(head, shown) if shown else "")


def curve(losses, goal=None) -> str:
    """The loss, step by step, as a plot."""
    width, height, left, bottom = 960, 260, 62, 26
    seen = [v for v in losses if math.isfinite(v)]
    if not seen:
        return "<h2>Loss</h2><p>No step had a finite loss.</p>"
    low, high = min([*seen, *([goal] if goal is not None else [])]), max(seen)
    span = (high - low) or abs(high) or 1.0
    low, high = low - 0.05 * span, high + 0.05 * span

    def x(i):
        return left + (width - left - 8) * i / max(len(losses) - 1, 1)

    def y(v):
        return 6 + (height - bottom - 12) * (high - v) / (high - low)

    most = 1200  # points; of more, every n-th
    step = max(len(losses) // most, 1)
    points = [(i, v) for i, v in enumerate(losses) if math.isfinite(v) and (i % step == 0 or i == len(losses) - 1)]
    line = " ".join(f"{x(i):.1f},{y(v):.1f}" for i, v in points)
    out = [
        f'<h2>Loss</h2><svg viewBox="0 0 {width} {height}" role=img aria-label="loss by step">',
    ]
    for k in range(5):
        v = low + (high - low) * k / 4
        out.append(
            f'<path class=axis d="M{left} {y(v):.1f}H{width - 8}"/>'
            f"<text class=soft x={left - 6} y={y(v) + 4:.1f} text-anchor=end>{v:.4g}</text>"
        )
    if goal is not None:
        out.append(f'<path class=cap d="M{left} {y(goal):.1f}H{width - 8}"/>')
    out.append(
        f'<polyline class=edge points="{line}"/>'
        f"<text class=soft x={left} y={height - 6}>step 1</text>"
        f"<text class=soft x={width - 8} y={height - 6} text-anchor=end>step {len(losses)}</text></svg>"
    )
    bad = len(losses) - len(seen)
    if bad:
        out.append(f"<p>{bad} steps without a finite loss are left out.</p>")
    return "\n".join(out)
