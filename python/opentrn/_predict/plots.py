# SPDX-License-Identifier: Apache-2.0
"""Plots of a prediction's page, as SVG: the step over time, memory over the step, roofs, more and fewer machines.

Each has its unit at its axis; colours are the page's variables. Plots over time begin and end at the same places, so that they can be read below each other.
"""

import html
import math

from opentrn._predict import compose
from opentrn._predict.text import number, seconds, unit

LEFT, RIGHT = 110, 890
_EVENTS = 8000  # of a pipeline that are followed for a picture
_LEAST = 3.0  # units that a micro-batch is wide, so that each is drawn
_SHOWN = 8  # stages
COLOURS = {"micro_batches": 0, "reduction": 1, "optimizer": 2, "gathering": 3, "bubble": 7, "passing_on": 5, "sharding": 6, "host": 4, "waiting": 8}


def svg(high, label, parts):
    return f'<svg viewBox="0 0 900 {high:.0f}" role="img" aria-label="{html.escape(label)}">{"".join(parts)}</svg>'


def _text(x, y, words, anchor="start", soft=False):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{" class=soft" if soft else ""}>{html.escape(str(words))}</text>'


def _line(x1, y1, x2, y2, colour="line", dashed=False):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="var(--{colour})"{" stroke-dasharray=" + chr(34) + "5 4" + chr(34) if dashed else ""}/>'


def _rect(x, y, wide, high, colour, title="", light=False):
    shown = f"<title>{html.escape(title)}</title>" if title else ""
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(wide, 0.5):.1f}" height="{high}" fill="var(--{colour})"{" opacity=" + chr(34) + ".5" + chr(34) if light else ""}>{shown}</rect>'


def _seconds_axis(y, total):
    times, name = unit(total)
    out = [_line(LEFT, y, RIGHT, y)]
    for i in range(5):
        x = LEFT + (RIGHT - LEFT) * i / 4
        out += [_line(x, y, x, y + 5, "soft"), _text(x, y + 18, f"{number(total * times * i / 4)} {name}" if i else "0", ("start", "middle", "end")[(i > 0) + (i > 3)], True)]
    return out


def _body(r):
    """Seconds of a step until its update begins, and of that until the last micro-batch is through."""
    s = r["seconds"]
    return sum(s.get(k, 0.0) for k in ("micro_batches", "sharding", "bubble", "passing_on"))


def turns(r):
    """What each stage does: [(forward, backward or both, begin, end)] in seconds of the step, and whether micro-batches stand alone in it."""
    at, micros, body = r["layout"], r["micro_batches"], _body(r)
    wide = (RIGHT - LEFT) / sum(r["seconds"].values())
    if at["pp"] == 1:
        each = body / micros
        return [[("both", i * each, (i + 1) * each) for i in range(micros)] if each * wide >= _LEAST else [("both", 0.0, body)]], each * wide >= _LEAST
    rounds, share, events = r["rounds"]["s"], r["rounds"]["forward_share"], []
    if 2 * micros * at["pp"] * at["chunks"] > _EVENTS:
        fill = (body - micros * max(rounds)) * share
        return [[("both", fill * i / (at["pp"] - 1), body - fill * i / (at["pp"] - 1))] for i in range(at["pp"])], False
    end = compose.makespan([(share * v, (1 - share) * v) for v in rounds], micros, at["schedule"], at["chunks"], r["rounds"]["passing_s"], events)
    out: list[list[tuple[str, float, float]]] = [[] for _ in rounds]
    for device, what, begin, done in events:
        out[device].append((what, begin * body / end, done * body / end))
    if max(rounds) / at["chunks"] * body / end * wide < 2 * _LEAST:
        return [[("both", row[0][1], row[-1][2])] for row in out], False
    return out, True


def schedule(r):
    """Stages of the pipeline over the step, then what is behind the micro-batches; without a pipeline, the micro-batches of all devices."""
    s, rows, x0 = r["seconds"], turns(r)[0], _body(r)
    total, pp = sum(s.values()), r["layout"]["pp"]
    wide, out = (RIGHT - LEFT) / total, []
    shown = range(pp) if pp <= _SHOWN else [*range(_SHOWN // 2), *range(pp - _SHOWN // 2, pp)]
    for y, stage in zip(range(0, 24 * _SHOWN, 24), shown):
        out += [_text(0, y + 15, f"stage {stage + 1} of {pp}" if pp > 1 else "each device"), _rect(LEFT, y + 3, RIGHT - LEFT, 16, "card")]
        for what, begin, end in rows[stage]:
            gap = 0.6 if (end - begin) * wide > _LEAST else 0
            title = {"f": "forward", "b": "backward", "both": "forward and backward"}[what]
            out.append(_rect(LEFT + begin * wide, y + 3, (end - begin) * wide - gap, 16, "c0", f"{title}: {seconds(end - begin)}", what == "b"))
        at = x0
        for k in ("reduction", "optimizer", "gathering", "waiting", "host"):
            if s.get(k):
                out.append(_rect(LEFT + at * wide, y + 3, s[k] * wide, 16, f"c{COLOURS[k]}", f"{k}: {seconds(s[k])}"))
                at += s[k]
    high = 24 * len(shown) + 4
    return svg(high + 24, "the step over time", out + _seconds_axis(high, total))


def _kept(r, flying):
    """Bytes of activations over the step, of the stage that holds most: [(second, share of what it holds at most)]."""
    rows, alone = turns(r)
    row, body = rows[0], _body(r)
    if not alone:
        return [(0.0, 0.0), (body * min(0.02 * flying, 0.3), 1.0), (body * 0.98, 1.0), (body, 0.0)]
    if r["layout"]["pp"] == 1:
        return [(0.0, 0.0), *(v for _, begin, end in row for v in ((begin + 0.35 * (end - begin), 1.0), (end, 0.0)))]
    count, out = 0, [(0.0, 0.0)]
    for what, _, end in row:
        count += 1 if what == "f" else -1
        out.append((end, count))
    most = max(v for _, v in out)
    return [(t, v / most) for t, v in out]


def memory(r, flying):
    """Bytes of a device over the step: what stays, and activations that come and go with the micro-batches."""
    held, room, g = r["memory"], r["hbm_bytes"], 2.0**30
    base = held["weights"] + held["gradients"] + held["optimizer"]
    top, total = base + held["activations"] + held["work"], sum(r["seconds"].values())
    most = max(room, top) * 1.08
    y = lambda v: 160 - 150 * v / most
    x = lambda t: LEFT + (RIGHT - LEFT) * t / total
    points = [(x(t), base + v * (top - base)) for t, v in _kept(r, flying)] + [(RIGHT, base)]
    line = " ".join(f"{a:.1f},{y(b):.1f}" for a, b in points)
    low, high = y(base), y(top)
    over = min(low, 156.0) if abs(low - y(room)) > 14 else low + 14
    out = [
        f'<polygon points="{LEFT},160 {line} {RIGHT},160" fill="var(--c0)" opacity=".35"/><polyline points="{line}" fill="none" stroke="var(--c0)" stroke-width="1.5"/>',
        _line(LEFT, y(room), RIGHT, y(room), "c3", True), _text(LEFT + 4, y(room) + (-5 if top < 0.97 * room or top > room else 14), f"{room / g:.4g} GiB of HBM"),
        _text(LEFT - 8, max(over + 4, high + 18), f"{base / g:.1f} GiB stay", "end"), _text(LEFT - 8, high + 4, f"{top / g:.1f} GiB", "end"),
        *_seconds_axis(160, total),
    ]  # fmt: skip
    return svg(184, "memory over the step", out)


def roofs(at, peak, band, kind):
    """FLOP a byte against FLOP a second, both roofs and where a micro-batch is."""
    top = math.ceil(math.log10(peak / 1e12) + 0.05)
    x = lambda v: LEFT + (RIGHT - LEFT) * math.log10(v) / 4
    y = lambda v: 200 - 180 * (math.log10(v / 1e12) - top + 3) / 3
    here, low = at["flops"] / at["hbm_bytes"], 10 ** (top - 3) * 1e12
    ridge, first = peak / band, max(low / band, 1.0)
    out = []
    for i in range(5):
        out += [_line(x(10**i), 20, x(10**i), 200), _text(x(10**i), 216, f"{10**i:,}", ("start", "middle", "end")[(i > 0) + (i > 3)], True)]
    for i in range(4):
        v = 10.0 ** (top - 3 + i)
        out += [_line(LEFT, y(v * 1e12), RIGHT, y(v * 1e12)), _text(LEFT - 8, y(v * 1e12) + 4, f"{number(v)} TFLOP/s", "end", True)]
    dot, height = x(min(max(here, 1.0), 1e4)), y(max(at["flops_per_s"], low))
    slope = math.sqrt(first * ridge)  # half way up
    beside = dot < 660  # else its words end at the border, below it: on its left they would cross the slope
    out += [
        f'<polyline points="{x(first):.0f},{y(first * band):.0f} {x(ridge):.0f},{y(peak):.0f} {RIGHT},{y(peak):.0f}" fill="none" stroke="var(--c1)" stroke-width="2"/>',
        _text(RIGHT, y(peak) - 6, f"{number(peak / 1e12, 3)} TFLOP/s, {kind}", "end"), _text(x(slope) - 10, y(slope * band) - 6, f"{band / 1e9:,.0f} GB/s of HBM", "end"),
        f'<circle cx="{dot:.0f}" cy="{height:.0f}" r="6" fill="var(--c0)"/>',
        _text(dot + 12 if beside else RIGHT, height + (4 if beside and height >= y(peak) + 16 else 20), f"{number(at['flops_per_s'] / 1e12, 3)} TFLOP/s at {number(here, 3)} FLOP a byte", "start" if beside else "end"),
        _text((LEFT + RIGHT) / 2, 234, "FLOP for each byte of HBM", "middle", True),
    ]  # fmt: skip
    return svg(240, "roofs", out)


def _round(v):
    """1, 2, 2.5 or 5 times a power of ten, the largest that is not above."""
    ten = 10 ** math.floor(math.log10(v))
    return max(k * ten for k in (1, 2, 2.5, 5) if k * ten <= v)


def curve(points, what):
    """(machines, prediction): what each machine does of it."""
    each = [r["tokens_per_s"] / n for n, r in points]
    tick = _round(max(each) / 2)
    most, out, dots = max(max(each), 2 * tick) * 1.2, [], []
    for v in (0.0, tick, 2 * tick):
        y = 140 - 120 * v / most
        out += [_line(LEFT, y, RIGHT, y), _text(LEFT - 8, y + 4, number(v, 3), "end", True)]
    for i, ((n, _), v) in enumerate(zip(points, each)):
        x, y = LEFT + 40 + (RIGHT - LEFT - 80) * i / (len(points) - 1), 140 - 120 * v / most
        dots.append((x, y))
        out += [_text(x, 157, f"{n:,}", "middle"), _text(x, y - 9, number(v, 4), "middle")]
    line = " ".join(f"{x:.0f},{y:.0f}" for x, y in dots)
    out += [f'<polyline points="{line}" fill="none" stroke="var(--c0)" stroke-width="2"/>', *(f'<circle cx="{x:.0f}" cy="{y:.0f}" r="4" fill="var(--c0)"/>' for x, y in dots)]
    out += [_text((LEFT + RIGHT) / 2, 176, "machines", "middle", True), _text(0, 14, f"{what}/s of each machine", "start", True)]
    return svg(182, f"{what} a second of each of more and fewer machines", out)
