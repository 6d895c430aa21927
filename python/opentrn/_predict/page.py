# SPDX-License-Identifier: Apache-2.0
"""A prediction as one page: a file that needs nothing else, for a browser or for paper, light and dark.

The answer comes first; then what the step is made of, engines, memory, roofs, more and fewer machines, layouts, costs.
"""

import csv
import dataclasses
import html
import io
import json
import math
import os
import pathlib
import re

from opentrn._predict import advice, errors, search
from opentrn._predict.fault import Fault

_STYLE = """
:root{color-scheme:light dark;--ink:#1c2024;--soft:#5b6570;--line:#d8dde2;--ground:#fff;--card:#f6f8fa;
--c0:#2f6fb0;--c1:#d9822b;--c2:#3a8f5c;--c3:#b5485d;--c4:#7a5ea8;--c5:#2c8584;--c6:#7b8035;--c7:#7f7f7f;--c8:#a0522d}
@media screen and (prefers-color-scheme:dark){:root{--ink:#e6e9ec;--soft:#9aa5b1;--line:#333a42;--ground:#14171a;--card:#1c2126;
--c0:#6aa8e6;--c1:#f0a860;--c2:#6cc492;--c3:#e0808f;--c4:#ab93d6;--c5:#7fd0cf;--c6:#c2c775;--c7:#a8a8a8;--c8:#f3e3a1}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--ground);max-width:980px;margin:2em auto;padding:0 1em}
h1{font-size:1.35em;margin:0 0 .2em}h2{font-size:1.05em;margin:1.8em 0 .5em}p.sub,figcaption,.soft{color:var(--soft);margin:.2em 0}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(210px,45%),1fr));gap:.7em;margin:1em 0}
.card{background:var(--card);border:1px solid var(--line);border-radius:6px;padding:.6em .8em}
.card b{display:block;font-size:1.35em;font-variant-numeric:tabular-nums}.card span{color:var(--soft);font-size:.88em}
table{border-collapse:collapse;width:100%;font-size:.92em}th,td{padding:.3em .6em;border-bottom:1px solid var(--line);text-align:left}
th{color:var(--soft);font-weight:600}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
svg{width:100%;height:auto;display:block}svg text{fill:var(--ink);font:12px system-ui,sans-serif}svg .soft{fill:var(--soft)}
.bar{display:flex;height:2.2em;gap:1px;overflow:hidden;border-radius:3px;margin:.4em 0;print-color-adjust:exact;-webkit-print-color-adjust:exact}
.bar i{font-style:normal;font-size:.85em;line-height:2.6em;color:var(--ground);overflow:hidden;white-space:nowrap;text-indent:.4em;min-width:1px}
.key{display:inline-block;width:.8em;height:.8em;margin-right:.5em;border-radius:2px;print-color-adjust:exact;-webkit-print-color-adjust:exact}td.w{white-space:nowrap}
.scroll{overflow-x:auto}.bad{color:var(--c3)}@media(max-width:640px){.scroll svg{min-width:640px}}
@page{margin:14mm}@media print{:root{color-scheme:light}body{margin:0;padding:0;max-width:none;font-size:12px}.card,svg,tr{break-inside:avoid}h2{break-after:avoid}.scroll{overflow:visible}td.w{white-space:normal}}
td.why{min-width:11em}
"""


_PICTURE, _SCROLLED = re.compile(r'<svg viewBox="0 0 900 .*?</svg>', re.S), r'<div class="scroll">\g<0></div>'
_COLOURS = {"micro_batches": 0, "reduction": 1, "optimizer": 2, "gathering": 3, "bubble": 7, "passing_on": 5, "sharding": 6, "host": 4, "waiting": 8}
_NAMES = {"micro_batches": "micro-batches", "reduction": "gradients reduced", "gathering": "weights gathered", "passing_on": "activations passed on",
          "sharding": "weights gathered, gradients scattered", "host": "the host", "waiting": "waiting for the slowest machine", "between": "between products",
          "bubble": "the pipeline's bubble"}  # fmt: skip


def _text(v):
    return html.escape(str(v))


def _number(v, digits=4):
    return "–" if v is None else f"{v:,.0f}" if abs(v) >= 10000 else f"{v:.{digits}g}"


def _name(k):
    return _NAMES.get(k, k.replace("_", " "))


def _bar(parts, unit):
    """Parts side by side, each as wide as its share, and their names below."""
    total = sum(parts.values()) or 1.0
    shapes, rows = [], []
    for i, (name, value) in enumerate(parts.items()):
        colour, share, text = f"var(--c{_COLOURS.get(name, i % 9)})", 100 * value / total, _text(_name(name))
        shapes.append(f'<i style="flex:{share:.3f} 0 0;background:{colour}" title="{text}">{f"{share:.0f} %" if share > 7 else ""}</i>')
        rows.append(f'<tr><td><span class=key style="background:{colour}"></span>{text}</td><td class=n>{_number(value)} {unit}</td><td class=n>{share:.1f} %</td></tr>')
    return f'<div class=bar role="img">{"".join(shapes)}</div><table>{"".join(rows)}</table>'


def _shares(engines):
    """A row for each engine, as long as it is busy."""
    out = []
    for i, (name, share) in enumerate(engines.items()):
        y = 22 * i
        out.append(
            f'<text x="0" y="{y + 15}">{_text(name.replace("_", " "))}</text><rect x="120" y="{y + 4}" width="660" height="13" fill="var(--card)"/>'
            f'<rect x="120" y="{y + 4}" width="{660 * min(share, 1):.1f}" height="13" fill="var(--c0)"/><text x="790" y="{y + 15}">{100 * share:.1f} %</text>'
        )
    return f'<svg viewBox="0 0 900 {22 * len(engines) + 6}" role="img">{"".join(out)}</svg>'


def _schedule(result):
    """Stages of the pipeline over the step: filling, micro-batches, draining, then reduction and optimizer."""
    s, stages, total = result["seconds"], result["layout"]["pp"], result.get("predicted_s", result["step_s"])
    shown, out = min(stages, 8), []
    fill = s.get("bubble", 0.0)
    body = s["micro_batches"] + s.get("sharding", 0) + s.get("passing_on", 0)
    wide = lambda v: 780 * v / total
    for i in range(shown):
        y, late = 24 * i, fill / 2 * i / max(stages - 1, 1)
        x = 110 + wide(late)
        out.append(f'<text x="0" y="{y + 15}">stage {i + 1}{"" if shown == stages or i < shown - 1 else " …"}</text>')
        out.append(f'<rect x="110" y="{y + 3}" width="780" height="16" fill="var(--card)"/>')
        out.append(f'<rect x="{x:.1f}" y="{y + 3}" width="{wide(body + fill / 2):.1f}" height="16" fill="var(--c0)"><title>micro-batches</title></rect>')
        x = 110 + wide(body + fill)
        for k in ("reduction", "optimizer", "gathering", "waiting", "host"):
            colour = _COLOURS[k]
            if s.get(k):
                out.append(f'<rect x="{x:.1f}" y="{y + 3}" width="{max(wide(s[k]), 1):.1f}" height="16" fill="var(--c{colour})"><title>{k}</title></rect>')
                x += wide(s[k])
    below = 24 * shown + 14
    for i in range(5):  # the colours are named below the bar of parts
        x, v = 110 + 195 * i, total * i / 4
        out.append(f'<line x1="{x}" x2="{x}" y1="{below - 12}" y2="{below - 7}" stroke="var(--soft)"/><text class="soft" x="{x}" y="{below + 6}" text-anchor="{("start", "middle", "end")[(i > 0) + (i > 3)]}">{v:.4g} s</text>')
    return f'<svg viewBox="0 0 900 {below + 12}" role="img">{"".join(out)}</svg>'


def _memory(result):
    """Bytes of a device over the step: what stays, and activations that rise and fall with each micro-batch."""
    held, room = result["memory"], result["hbm_bytes"]
    base = held["weights"] + held["gradients"] + held["optimizer"]
    top, high = base + held["activations"] + held["work"], 150
    most = max(room, top) * 1.05
    y = lambda v: 160 - high * v / most
    turns = min(result["micro_batches"], 6)
    points = [(60.0, base)]
    flying = min(result["micro_batches"], result["layout"]["pp"])  # micro-batches of the first stage whose activations are kept
    valley = base + held["activations"] * (flying - 1) / flying
    for i in range(turns):
        x = 60 + 760 * i / turns
        points += [(x + 760 / turns * 0.33, top), (x + 760 / turns * 0.95, valley)]
    points.append((890, base))
    line = " ".join(f"{a:.1f},{y(b):.1f}" for a, b in points)
    g = 2.0**30
    return (
        f'<svg viewBox="0 0 900 185" role="img"><polygon points="60,160 {line} 890,160" fill="var(--c0)" opacity=".35"/><polyline points="{line}" fill="none" '
        f'stroke="var(--c0)" stroke-width="2"/><line x1="60" x2="890" y1="{y(room):.1f}" y2="{y(room):.1f}" stroke="var(--c3)" stroke-dasharray="5 4"/>'
        f'<text x="64" y="{y(room) - 5:.1f}">{room / g:.0f} GiB of HBM</text><text x="0" y="{max(y(base) + 4, y(top) + 18):.1f}">{base / g:.1f} GiB</text>'
        f'<text x="0" y="{y(top) + 4:.1f}">{top / g:.1f} GiB</text><line x1="60" x2="890" y1="160" y2="160" stroke="var(--line)"/>'
        f'<text class="soft" x="60" y="178">{turns} of {result["micro_batches"]} micro-batches, drawn alike, then reduction and optimizer</text></svg>'
    )


def _collectives(result):
    """What devices tell each other, by what for; some of that in micro-batches is beside the work."""
    apart = {k: result["seconds"][k] for k in ("reduction", "gathering", "passing_on") if result["seconds"].get(k)}
    inside = result["comm_share"] * result["step_s"] - sum(apart.values())
    parts = {"in micro-batches": inside, **apart} if inside > 1e-3 * result["step_s"] else apart
    if not parts:
        return ""
    hidden = f"{100 * (result['comm_share'] - result['exposed_comm_share']):.1f} % of the step is hidden behind work"
    return f"<h2>Collectives</h2>{_bar(parts, 's')}<p class=soft>{100 * result['comm_share']:.1f} % of the step; {hidden}</p>"


def _roof(result, job):
    """FLOP a byte against FLOP a second, both roofs and where a micro-batch is."""
    kind, rows = ("fp8", 2) if job.precision == "fp8" else ("bf16", 1)  # rows a cell of the array
    at, peak = result.get("intensity"), rows * job.machine.flops
    if not at or not at["hbm_bytes"]:
        return ""
    band = getattr(job.machine, "hbm_gb", 0) * 1e9 or peak / 200
    x = lambda v: 60 + 830 * (math.log10(v) + 0) / 4
    y = lambda v: 20 + 180 * (math.log10(peak) + 0.15 - math.log10(v)) / 3.2
    ridge, here = peak / band, at["flops"] / at["hbm_bytes"]
    low = peak / 10**3
    slope = math.sqrt(max(low / band, 1) * ridge)  # half way up
    named = lambda i: f"{10**i:,} FLOP for each byte of HBM" if i == 0 else f"{10**i:,}"
    ticks = "".join(f'<text class="soft" x="{x(10**i):.0f}" y="228" text-anchor="{("start", "middle", "end")[(i > 0) + (i > 3)]}">{named(i)}</text>' for i in range(5))
    return (
        f'<svg viewBox="0 0 900 235" role="img"><polyline points="{x(max(low / band, 1)):.0f},{y(max(low / band, 1) * band):.0f} {x(ridge):.0f},{y(peak):.0f} 890,{y(peak):.0f}" '
        f'fill="none" stroke="var(--c1)" stroke-width="2"/><circle cx="{x(min(max(here, 1), 10**4)):.0f}" cy="{y(at["flops_per_s"]):.0f}" r="6" fill="var(--c0)"/>'
        f'<text x="{x(min(max(here, 1), 10**4)) + 10:.0f}" y="{y(at["flops_per_s"]) + 4:.0f}">{at["flops_per_s"] / 1e12:.1f} TFLOP/s at {here:.0f} FLOP/B</text>'
        f'<text x="700" y="{y(peak) - 6:.0f}">{peak / 1e12:.0f} TFLOP/s {kind}</text><text class="soft" x="{x(slope) - 10:.0f}" y="{y(slope * band) - 6:.0f}" text-anchor="end">{band / 1e9:,.0f} GB/s of HBM</text>'
        f'<line x1="60" x2="890" y1="212" y2="212" stroke="var(--line)"/>{ticks}</svg>'
    )


def scaling(job, x, step):
    """(machines, prediction) of fewer and more of them: each replica's batch stays, so the batch grows with them."""
    out = []
    for times in (0.25, 0.5, 1, 2, 4):
        nodes, dp, batch = job.nodes * times, x.dp * times, job.global_batch * times
        if nodes != int(nodes) or dp != int(dp) or batch != int(batch) or nodes < 1 or dp < 1:
            continue
        try:
            at = dataclasses.replace(job, nodes=int(nodes), global_batch=int(batch))
            out.append((int(nodes), step(at, dataclasses.replace(x, dp=int(dp)))))
        except Fault:
            continue
    return out


def _curve(points):
    if len(points) < 2:
        return ""
    each = [r["tokens_per_s"] / n for n, r in points]
    most, out = max(each) * 1.1, []
    for i, ((n, _), v) in enumerate(zip(points, each)):
        a, b = 90 + 760 * i / (len(points) - 1), 140 - 120 * v / most
        out.append((a, b, n, v))
    line = " ".join(f"{a:.0f},{b:.0f}" for a, b, _, _ in out)
    marks = "".join(
        f'<circle cx="{a:.0f}" cy="{b:.0f}" r="4" fill="var(--c0)"/><text x="{a - 10:.0f}" y="158">{n}</text><text x="{a - 24:.0f}" y="{b - 9:.0f}">{_number(v)}</text>'
        for a, b, n, v in out
    )
    return (
        f'<svg viewBox="0 0 900 180" role="img"><polyline points="{line}" fill="none" stroke="var(--c0)" stroke-width="2"/>{marks}'
        f'<line x1="60" x2="890" y1="142" y2="142" stroke="var(--line)"/><text class="soft" x="60" y="175">machines; tokens a second of each</text></svg>'
    )


def _layouts(table):
    if not table:
        return ""
    best, rows = table.rows[0][1], []
    for i, (x, r) in enumerate(table.rows):
        rows.append(
            f"<tr><td class=n>{i + 1}<td>{_text(x.text())}<td class=n>{_number(r['step_s'])}<td class=n>{_number(r['tokens_per_s'])}"
            f"<td class=n>{_number(r['usd_per_1m_tokens'])}<td class=n>{r['hbm_peak_bytes'] / 2**30:.1f}<td class=why>{_text(search.why(best, r))}</tr>"
        )
    return (
        f"<h2>Layouts</h2><p class=sub>{table.tried} priced; left out: {table.pruned_memory} that cannot fit, {table.pruned_time} that cannot be among the first, "
        f"{table.pruned_size} with too many instructions, {table.unfit} that did not fit</p><div class=scroll><table><tr><th><th>layout<th class=n>step s<th class=n>tokens/s<th class=n>$/1M tokens<th class=n>GiB a device"
        f"<th>beside the first</tr>{''.join(rows)}</table></div>"
    )


def _unit(r):
    return "pictures" if r["model"] == "vit" else "tokens"


def _cards(r):
    usd = r["usd_per_1m_tokens"]
    cards = [
        (f"{r['step_s']:.4g} s", "a step, measured" if r.get("measured") else f"a step, expected error {errors.percent(r['expected_error'])}"), (f"{r['tokens_per_s']:,.0f}", f"{_unit(r)} a second"),
        (f"${usd:.4g}" if usd else "–", f"per 1M {_unit(r)}" if usd else _text(r["price_basis"])), (f"{100 * r['mfu']:.1f} %", "of the bf16 peak"),
        (f"{100 * r['comm_share']:.1f} %", f"collectives, {100 * r['exposed_comm_share']:.1f} % not hidden"), (f"{100 * r['bubble_share']:.1f} %", "pipeline bubble"),
        (f"{r['hbm_peak_bytes'] / 2**30:.1f} GiB", f"of {r['hbm_bytes'] / 2**30:.0f} GiB a device: {'fits' if r['fits'] else 'does not fit'}"),
        (f"${r['usd_per_hour']:,.0f}" if usd else f"{r['micro_batches']}", "an hour of all machines" if usd else "micro-batches of a replica"),
    ]  # fmt: skip
    return "".join(f"<div class=card><b>{a}</b><span>{b}</span></div>" for a, b in cards)


def _costs(r):
    rows = [("an hour of all machines", r["usd_per_hour"], r["price_basis"]), (f"1M {_unit(r)}", r["usd_per_1m_tokens"], "")]
    if r["usd_per_hour"]:
        rows.append(("a day", r["usd_per_hour"] * 24, f"{r['tokens_per_s'] * 86400 / 1e9:.4g}G tokens"))
    if r.get("run"):
        run = r["run"]
        rows.append(("the run", run["usd"], f"{run['tokens'] / 1e9:.4g}G tokens in {run['days']:.3g} days, goodput {100 * run['goodput']:.1f} %"))
        if "software" not in r:  # what nobody compiled here
            rows.append(("more without a cache", run["usd_saved_by_cache"], f"programs compiled again at each start, {r['compile_s']:.0f} s on this host"))
        if "epochs" in run:
            rows.append(("an epoch", run["usd_per_epoch"], f"{run['hours_per_epoch']:.4g} h; the run has {run['epochs']:.3g}"))
    return "<table>" + "".join(f"<tr><td>{a}<td class=n>{_number(b)} USD<td class=soft>{_text(c)}</tr>" for a, b, c in rows) + "</table>"


def _what(r):
    return _unit(r) if r["model"] == "vit" else f"sequences of {r['seq']:,}"


def text(job, x, r, table, points):
    at = r["layout"]
    g = 2.0**30
    title = f"{r['model']}, {r['parameters'] / 1e9:.3g}G weights, on {r['nodes']} × {r['instance']}"
    shape = " ".join(f"{k}={at[k]}" for k in ("tp", "pp", "dp", "cp", "ep", "zero"))
    warn = ("" if r["fits"] else f"<p class=bad>Fits: {_text(advice.told(r))}.</p>") + _talkative(r)
    engines = r.get("engines")
    body = [
        f"<h1>{_text(title)}</h1><p class=sub>{shape} micro-batch={at['micro_batch']} recompute={at['recompute']}; {r['global_batch']:,} {_text(_what(r))}, "
        f"{r['precision']}, {r['optimizer']}{', ' + r['software'] + ' software' if 'software' in r else ''}; {r['devices']:,} devices</p>{warn}<div class=cards>{_cards(r)}</div>",
        f"<h2>A step{_as_predicted(r)}</h2>{_schedule(r)}{_bar(r['seconds'], 's')}",
        f"<h2>Engines in a micro-batch</h2>{_shares(engines)}" if engines else f"<h2>A micro-batch</h2>{_bar(r['operations'], 's')}",
        f"<h2>Memory of a device</h2>{_memory(r)}{_bar({k: v / g for k, v in r['memory'].items()}, 'GiB')}",
        _collectives(r),
        f"<h2>Roofs</h2>{_roof(r, job)}" if r.get("intensity") else "",
        f"<h2>Fewer and more machines</h2>{_curve(points)}" if len(points) > 1 else "",
        _layouts(table),
        f"<h2>Costs</h2>{_costs(r)}",
        "<p class=soft>Predicted by opentrn from the model's configuration: "
        + ("programs of one device, compiled and priced, then composed" if engines else "a roof for each operation, with shares of the peaks fitted to published steps or assumed (chips/accelerators.table)")
        + ". Expected error: "
        + ("none, the step is measured." if r.get("measured") else f"that of the nearest published steps ({', '.join(r['expected_error_rows'])})." if r["expected_error_rows"] else "that of the published steps the model of time is fitted to." if r["expected_error"] is not None else "not known, no published step like this one was compared.")
        + "</p>",
    ]
    return _page(title, body)


def _as_predicted(r):
    """Of what a measured step is made nothing is known but what was predicted."""
    return f", as predicted: {r['predicted_s']:.4g} s" if r.get("measured") else ""


def _talkative(r):
    over = r.get("max_comm_exceeded")
    taken = f"Collectives take {100 * r['comm_share']:.1f} % of the step on {_text(r['instance'])}"
    return f"<p class=bad>{taken}, more than the {100 * r['max_comm']:.4g} % allowed (--max-comm).</p>" if over else ""


def _beside(rows, value, unit):
    """A row for each machine, as long as its value is beside the largest; None: not known."""
    most, out = max((value(r) or 0.0 for r in rows), default=0.0) or 1.0, []
    for i, r in enumerate(rows):
        y, v = 24 * i, value(r)
        out.append(
            f'<text x="0" y="{y + 16}">{_text(r["instance"])}</text><rect x="190" y="{y + 4}" width="{560 * (v or 0) / most:.1f}" height="14" fill="var(--c{i % 9})"/>'
            f'<text x="{200 + 560 * (v or 0) / most:.0f}" y="{y + 16}">{_number(v) + " " + unit if v else "not known"}</text>'
        )
    return f'<svg viewBox="0 0 900 {24 * len(rows) + 4}" role="img">{"".join(out)}</svg>'


def bakeoff(rows, variants):
    """Several machines beside each other: which is cheapest, by how much, and what would change that."""
    ran = [r for r in rows if "why" not in r]
    titles = ("machine", "layout", "step s", "tokens/s", "$/1M tokens", "$/h of one", "break-even $/h", "error")
    head = "".join(f"<th{' class=n' if i > 1 else ''}>{t}" for i, t in enumerate(titles))
    table = []
    for r in rows:
        if "why" in r:
            table.append(f"<tr><td class=w>{r['nodes']} × {_text(r['instance'])}<td colspan=7 class=bad>does not fit: {_text(r['why'])}</tr>")
            continue
        at, each = r["layout"], r["usd_per_hour"] and r["usd_per_hour"] / r["nodes"]
        shape = " ".join(f"{k}={at[k]}" for k in ("tp", "pp", "dp", "cp", "ep") if at[k] > 1 or k in ("tp", "pp", "dp"))
        shape += f" zero={at['zero']} micro-batch={at['micro_batch']} recompute={at['recompute']}" + (f" chunks={at['chunks']}" if at["chunks"] > 1 else "")
        numbers = (r["step_s"], r["tokens_per_s"], r["usd_per_1m_tokens"], each, r["break_even_usd_per_hour"])
        error = "measured" if r.get("measured") else errors.percent(r["expected_error"])
        table.append(f"<tr><td class=w>{r['nodes']} × {_text(r['instance'])}<td>{shape}{'' if r['fits'] else ' <span class=bad>does not fit</span>'}"
                     + "".join(f"<td class=n>{_number(v)}" for v in numbers) + f"<td class=n>{error}</tr>")  # fmt: skip
    told = lambda v: f"{v:+.1%}" if isinstance(v, float) else _text(v)
    varied = "".join(f"<tr><td class=w>{_text(r['instance'])}" + "".join(f"<td class=n>{told(v)}" for v in r["sensitivity"].values()) + "</tr>" for r in ran)
    title = f"{ran[0]['model']}, {ran[0]['parameters'] / 1e9:.3g}G weights, on {len(rows)} machines" if ran else "No machine holds it"
    body = [f"<h1>{_text(title)}</h1>"]
    if ran:
        body.append(f"<p class=sub>{ran[0]['global_batch']:,} {_text(_what(ran[0]))}, {ran[0]['precision']}, {ran[0]['optimizer']}</p>")
        body.append("".join(map(_talkative, ran)))
        unit = _unit(ran[0])
        body.append(f"<h2>Dollars per 1M {unit}</h2>{_beside(ran, lambda r: r['usd_per_1m_tokens'], 'USD')}")
        body.append(f"<h2>{unit.capitalize()} a second</h2>{_beside(ran, lambda r: r['tokens_per_s'], unit + '/s')}")
    body.append(f"<h2>Beside each other</h2><div class=scroll><table><tr>{head}</tr>{''.join(table)}</table></div>")
    if ran:
        bases = "; ".join(f"{_text(r['instance'])}: {_text(r['price_basis'])}" for r in ran)
        body.append(f"<p class=soft>Break-even: the price of one machine at which its tokens cost what they do on {_text(ran[0]['instance'])}. Prices: {bases}.</p>")
        head = "".join(f"<th class=n>{_text(v)}" for v in variants)
        body.append(f"<h2>With another batch or precision</h2><p class=sub>{unit} a second, beside those above</p>")
        body.append(f"<div class=scroll><table><tr><th>{head}</tr>{varied}</table></div>")
        body += [f"<h2>A step on {_text(r['instance'])}{_as_predicted(r)}</h2>{_bar(r['seconds'], 's')}" for r in ran]
    return _page(title, body)


def _page(title, body):
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{_text(title)}</title>'
        f"<style>{_STYLE}</style><body>{_PICTURE.sub(_SCROLLED, ''.join(body))}</body></html>\n"
    )


def _flat(r):
    return {k: v for k, v in r.items() if isinstance(v, (int, float, str, bool)) or v is None} | r.get("layout", {}) | {f"{k}_s": v for k, v in r.get("seconds", {}).items()}


def places(path):
    """FILE.html, FILE.json and FILE.csv; a Fault where they cannot be written, before anything is priced."""
    path = pathlib.Path(path)
    if not path.name:
        raise Fault(f"--report={path}: a file is needed", "--report=FILE.html")
    files = (path, *(path.with_suffix(end) for end in (".json", ".csv")))
    if len({*files}) < len(files):
        raise Fault(f"--report={path}: the page's own data would take its place", f"--report={path.with_suffix('.html')}")
    for name in files:
        if name.exists() and not name.is_file():
            raise Fault(f"{name} is {'a folder' if name.is_dir() else 'no plain file'}", "--report=FILE.html")
    if not path.parent.is_dir():
        raise Fault(f"{path}: there is no folder {path.parent}", f"mkdir -p {path.parent}, or --report=FILE.html in another")
    if not os.access(path.parent, os.W_OK):
        raise Fault(f"{path}: {path.parent} cannot be written", "--report=FILE.html in a folder that can be written")
    return files


def write(path, job, x, result, table, step):
    """The page of a prediction, and its data."""
    points = scaling(job, x, step)
    told = {**result, "scaling": [{"nodes": n, **{k: r[k] for k in ("step_s", "tokens_per_s", "comm_share")}} for n, r in points]}
    _put(path, text(job, x, result, table, points), told, [_flat(result)] + [_flat({**result, **r}) for _, r in (table.rows[1:] if table else ())])


def write_bakeoff(path, rows, variants):
    """The page of a comparison, and its data."""
    _put(path, bakeoff(rows, variants), rows, [_flat(r) for r in rows])


def _put(path, page, told, rows):
    """FILE.html, FILE.json and FILE.csv: all of them, or none."""
    sheet = io.StringIO()
    out = csv.DictWriter(sheet, list(dict.fromkeys(k for row in rows for k in row)), lineterminator="\n")
    out.writeheader()
    out.writerows(rows)
    files = dict(zip(places(path), (page, json.dumps(told, indent=1) + "\n", sheet.getvalue())))
    made: list[pathlib.Path] = []
    try:
        for name, content in files.items():
            part = name.with_name(name.name + ".part")
            made.append(part)
            part.write_text(content, encoding="utf-8")
        for part, name in zip(made, files):
            part.rename(name)
    except BaseException as error:
        for part in made:
            part.unlink(missing_ok=True)
        if not isinstance(error, OSError):
            raise
        raise Fault(f"{path}: {error.strerror}", "--report=FILE.html in a folder that can be written, on a disk with room") from None
