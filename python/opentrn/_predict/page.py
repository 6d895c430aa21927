# SPDX-License-Identifier: Apache-2.0
"""A prediction as one page: a file that needs nothing else, for a browser or for paper, light and dark.

The answer comes first; then what the step is made of, engines, memory, roofs, more and fewer machines, layouts, costs.
"""

import csv
import dataclasses
import html
import io
import json
import os
import pathlib
import re

from opentrn._predict import advice, errors, money, plots, search
from opentrn._predict.fault import Fault
from opentrn._predict.text import counted, number, seconds
from opentrn._predict.text import unit as duration

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
p.say{font-size:1.1em;border-left:4px solid var(--c0);padding:.3em .8em;background:var(--card);margin:.8em 0}
table{border-collapse:collapse;width:100%;font-size:.92em}th,td{padding:.3em .6em;border-bottom:1px solid var(--line);text-align:left}
th{color:var(--soft);font-weight:600}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
svg{width:100%;height:auto;display:block}svg text{fill:var(--ink);font:12px system-ui,sans-serif}svg .soft{fill:var(--soft)}
.bar{display:flex;height:2.2em;gap:1px;overflow:hidden;border-radius:3px;margin:.4em 0;print-color-adjust:exact;-webkit-print-color-adjust:exact}
.bar i{font-style:normal;font-size:.85em;line-height:2.6em;color:var(--ground);overflow:hidden;white-space:nowrap;text-indent:.4em;min-width:1px}
.key{display:inline-block;width:.8em;height:.8em;margin-right:.5em;border-radius:2px;print-color-adjust:exact;-webkit-print-color-adjust:exact}td.w{white-space:nowrap}
.scroll{overflow-x:auto}.bad{color:var(--c3)}@media(max-width:640px){.scroll svg{min-width:640px}}
@page{margin:14mm}@media print{:root{color-scheme:light}body{margin:0;padding:0;max-width:none;font-size:12px}.card,svg,tr,section{break-inside:avoid}section.long{break-inside:auto}h2,p.sub{break-after:avoid}h2{margin-top:1.2em}.scroll{overflow:visible}td.w{white-space:normal}}
td.why{min-width:11em}
"""


_PICTURE, _SCROLLED = re.compile(r'<svg viewBox="0 0 900 .*?</svg>', re.S), r'<div class="scroll">\g<0></div>'
_NAMES = {"micro_batches": "micro-batches", "reduction": "gradients reduced", "gathering": "weights gathered", "passing_on": "activations passed on",
          "sharding": "weights gathered, gradients scattered", "host": "the host", "waiting": "waiting for the slowest machine", "between": "between products",
          "bubble": "the pipeline's bubble", "all_reduce": "all-reduce", "all_gather": "all-gather", "reduce_scatter": "reduce-scatter", "all_to_all": "all-to-all",
          "collective_permute": "permute, also activations passed on", "collective_broadcast": "broadcast", "weights_and_gradients": "weights and gradients of replicas",
          "context": "keys and values passed round", "experts": "to the experts and back", "routing": "rows brought together by expert"}  # fmt: skip


def _text(v):
    return html.escape(str(v))


def _name(k):
    return _NAMES.get(k, k.replace("_", " "))


def _bar(parts, unit):
    """Parts side by side, each as wide as its share, and their names below."""
    total = sum(parts.values()) or 1.0
    times, unit = duration(total) if unit == "s" else (1.0, unit)
    shapes, rows, known = [], [], plots.COLOURS
    free = [c for c in range(9) if c not in {known[k] for k in parts if k in known}]
    others = [k for k in parts if k not in known]
    for name, value in parts.items():
        colour, share, text = f"var(--c{known[name] if name in known else free[others.index(name) % len(free)]})", 100 * value / total, _text(_name(name))
        shapes.append(f'<i style="flex:{share:.3f} 0 0;background:{colour}" title="{text}">{f"{share:.0f} %" if share > 7 else ""}</i>')
        rows.append(f'<tr><td><span class=key style="background:{colour}"></span>{text}</td><td class=n>{number(value * times)} {unit}</td><td class=n>{share:.1f} %</td></tr>')
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


def _collectives(r):
    """What devices tell each other, by kind or by what for, hidden or not; several go at once, so together they may take more than their share of the step."""
    if not r["collectives"]:
        return ""
    hidden = f"{100 * (r['comm_share'] - r['exposed_comm_share']):.1f} % of the step is hidden behind work"
    return f"<h2>Collectives</h2><p class=sub>{100 * r['comm_share']:.1f} % of the step; {hidden}</p>{_bar(r['collectives'], 's')}"


def roof_of(job):
    """Of a device: the type of its products, FLOP a second of them, bytes a second of its memory."""
    a = job.machine
    kind = {"fp8": "fp8", "fp32": "fp32"}.get(job.precision, "bf16")
    peak = {"bf16": a.flops, "fp8": getattr(a, "flops_fp8", 2 * a.flops), "fp32": getattr(a, "flops_fp32", a.flops / 4)}[kind]  # a cell of the array has two rows of fp8, a quarter of one of fp32
    return {"products": kind, "flops_per_s": peak, "hbm_bytes_per_s": getattr(a, "hbm_gb", 0) * 1e9 or a.hbm}


def _roof(result, job):
    at, over = result.get("intensity"), roof_of(job)
    if not at or not at["hbm_bytes"]:
        return ""
    return f"<h2>Roofs of a device</h2>{plots.roofs(at, over['flops_per_s'], over['hbm_bytes_per_s'], over['products'])}"


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


def _curve(points, asked):
    """Each replica's batch stays, so the batch grows with the machines."""
    if len(points) < 2:
        return ""
    what, alone = counted(asked), next(r["tokens_per_s"] / n for n, r in points if n == asked["nodes"])
    rows = []
    for n, r in points:
        cells = (f"{n:,}", f"{asked['global_batch'] * n // asked['nodes']:,}", seconds(r["step_s"]), number(r["tokens_per_s"]), f"{100 * r['tokens_per_s'] / n / alone:.1f} %",
                 number(r["usd_per_1m_tokens"]), f"{100 * r['comm_share']:.1f} %")  # fmt: skip
        rows.append("<tr>" + "".join(f"<td class=n>{v}" for v in cells) + "</tr>")
    heads = ("machines", "batch", "step", f"{what}/s", f"{what}/s of each, beside {asked['nodes']:,}", f"USD per 1M {what}", "collectives")
    return (
        f"<h2>Fewer and more machines{', as predicted' if asked.get('measured') else ''}</h2><p class=sub>with as many sequences for each replica, so the batch grows with the machines</p>{plots.curve(points, what)}"
        f"<div class=scroll><table><tr>{''.join(f'<th class=n>{v}' for v in heads)}</tr>{''.join(rows)}</table></div>"
    )


def _layouts(table, what):
    if not table:
        return ""
    best, rows = table.rows[0][1], []
    for i, (x, r) in enumerate(table.rows):
        rows.append(
            f"<tr><td class=n>{i + 1}<td>{_text(x.text())}<td class=n>{seconds(r['step_s'])}<td class=n>{number(r['tokens_per_s'])}"
            f"<td class=n>{number(r['usd_per_1m_tokens'])}<td class=n>{r['hbm_peak_bytes'] / 2**30:.1f}<td class=why>{_text(search.why(best, r))}</tr>"
        )
    return (
        f"<h2>Layouts</h2><p class=sub>{table.tried} priced; left out: {table.pruned_memory} that cannot fit, {table.pruned_time} that cannot be among the first, "
        f"{table.pruned_size} with too many instructions, {table.unfit} that did not fit</p><div class=scroll><table><tr><th><th>layout<th class=n>step<th class=n>{what}/s<th class=n>$/1M {what}<th class=n>GiB a device"
        f"<th>beside the first</tr>{''.join(rows)}</table></div>"
    )


def _usd(v):
    return f"${v:,.0f}" if v >= 1000 else f"${v:,.2f}" if v >= 1 else f"${number(v)}"


def _cards(r):
    usd, run = r["usd_per_1m_tokens"], r.get("run")
    cards = [
        (seconds(r["step_s"]), "a step, measured" if r.get("measured") else f"a step, expected error {errors.percent(r['expected_error'])}"), (number(r["tokens_per_s"]), f"{counted(r)} a second"),
        (_usd(usd) if usd else "–", f"per 1M {counted(r)}" if usd else _text(r["price_basis"])), (f"{r['hbm_peak_bytes'] / 2**30:.1f} GiB", f"of {r['hbm_bytes'] / 2**30:.4g} GiB a device: {'fits' if r['fits'] else 'does not fit'}"),
        (f"{100 * r['comm_share']:.1f} %", f"collectives, {100 * r['exposed_comm_share']:.1f} % not hidden"), (f"{100 * r['mfu']:.1f} %", "of the bf16 peak"), (f"{100 * r['bubble_share']:.1f} %", "pipeline bubble"),
        (_usd(r["usd_per_hour"]) if usd else f"{r['micro_batches']}", "an hour of all machines" if usd else "micro-batches of a replica"),
    ]  # fmt: skip
    if run and run["usd"]:  # in the place of an hour
        cards.pop()
        cards[2:2] = [(_usd(run["usd"]), f"the run: {number(run['days'], 3)} days, {number(run['tokens'] / 1e9)}G {counted(r)}")]
    return "".join(f"<div class=card><b>{a}</b><span>{b}</span></div>" for a, b in cards)


def _costs(r):
    rows, what = [("an hour of all machines", r["usd_per_hour"], r["price_basis"]), (f"1M {counted(r)}", r["usd_per_1m_tokens"], "while it trains")], counted(r)
    if r["usd_per_hour"]:
        rows.append(("a day", r["usd_per_hour"] * 24, f"{number(r['tokens_per_s'] * 86400 / 1e9)}G {what}"))
    if r.get("run"):
        run = r["run"]
        rows.append(("the run", run["usd"], f"{number(run['tokens'] / 1e9)}G {what} in {number(run['days'], 3)} days; {100 * (1 - run['goodput']):.1f} % of the time goes to checkpoints and failures"))
        rows.append((f"1M {what} of the run", run["usd_per_1m_tokens"], "with what is lost"))
        if "software" not in r and r["usd_per_hour"]:  # of others nothing is compiled here
            once, more = r["usd_per_hour"] / 3600 * r["compile_s"], run["starts"] - 1
            rows.append(("compiling, of that", once, f"{number(r['compile_s'], 3)} s on this host, once; later starts find it in the cache"))
            rows.append(("saved by the cache", run["usd_saved_by_cache"], f"{more} more start{'' if more == 1 else 's'} would compile again" if more else "one start: --starts=N tells what more of them would cost"))
        if "epochs" in run:
            rows.append(("an epoch", run["usd_per_epoch"], f"{number(run['hours_per_epoch'])} h; the run has {number(run['epochs'], 3)}"))
    cells = "".join(f"<tr><td>{a}<td class=n>{number(b)}{' USD' if b is not None else ''}<td class=soft>{_text(c)}</tr>" for a, b, c in rows)
    return f"<h2>Costs</h2><table>{cells}</table>" + ("" if r["usd_per_hour"] else "<p class=soft>No price is published: --price=USD/h of one machine tells yours.</p>")


def _what(r):
    return counted(r) if r["model"] == "vit" else f"sequences of {r['seq']:,}"


def text(job, x, r, table, points):
    at = r["layout"]
    g = 2.0**30
    title = f"{r['model']}, {r['parameters'] / 1e9:.3g}G weights, on {r['nodes']} × {r['instance']}"
    shape = " ".join(f"{k}={at[k]}" for k in ("tp", "pp", "dp", "cp", "ep", "zero"))
    warn = ("" if r["fits"] else f"<p class=bad>Fits: {_text(advice.told(r))}.</p>") + _talkative(r)
    engines = r.get("engines")
    pp = at["pp"] > 1
    body = [
        f"<h1>{_text(title)}</h1><p class=sub>{shape} micro-batch={at['micro_batch']} recompute={at['recompute']}{' schedule=' + at['schedule'] if pp else ''}{' chunks=' + str(at['chunks']) if at['chunks'] > 1 else ''}; "
        f"{r['global_batch']:,} {_text(_what(r))}, {r['precision']}, {r['optimizer']}{', ' + r['software'] + ' software' if 'software' in r else ''}{', software of ' + r['as_of']['month'] if 'as_of' in r else ''}; {r['devices']:,} devices</p>{warn}<div class=cards>{_cards(r)}</div>",
        f"<h2>A step{_as_predicted(r)}</h2><p class=sub>{r['micro_batches']:,} micro-batch{'' if r['micro_batches'] == 1 else 'es'} of each replica{', forward strong, backward faint' if pp else ''}</p>{plots.schedule(r)}{_bar(r['seconds'], 's')}",
        f"<h2>Engines in a micro-batch</h2><p class=sub>share of its time that each is busy</p>{_shares(engines)}" if engines else f"<h2>A micro-batch</h2>{_bar(r['operations'], 's')}",
        f"<h2>Memory of a device</h2><p class=sub>{'of the fullest stage, ' if pp else ''}over the step</p>{plots.memory(r, x.in_flight(job, 0))}{_bar({k: v / g for k, v in r['memory'].items()}, 'GiB')}",
        _collectives(r),
        _roof(r, job),
        _curve(points, r),
        _layouts(table, counted(r)),
        _costs(r),
        f"<h2>How far it may be off</h2><p>{_basis(r)}</p>",
    ]
    return _page(title, body)


def _basis(r):
    made = "Predicted by opentrn from the model's configuration: " + (
        "programs of one device, compiled and priced, then composed. " if r.get("engines") else "a roof for each operation, with shares of the peaks fitted to published steps or assumed (chips/accelerators.table). "
    )
    if r.get("measured"):
        return made + "The step is measured, so nothing is expected of its error."
    if r["expected_error_rows"]:
        return made + f"Expected error: {errors.percent(r['expected_error'])}, the mean of the nearest published steps, which were predicted alike: {_text('; '.join(errors.basis(r['expected_error_rows'])))}."
    return made + ("Expected error: that of the published steps the model of time is fitted to." if r["expected_error"] is not None else "Expected error: not known, no published step like this one was compared.")


def _as_predicted(r):
    """Of what a measured step is made nothing is known but what was predicted."""
    return f", as predicted: {seconds(r['predicted_s'])}" if r.get("measured") else ""


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
            f'<text x="{200 + 560 * (v or 0) / most:.0f}" y="{y + 16}">{number(v) + " " + unit if v else "not known"}</text>'
        )
    return f'<svg viewBox="0 0 900 {24 * len(rows) + 4}" role="img">{"".join(out)}</svg>'


def bakeoff(rows, variants):
    """Several machines beside each other: which is cheapest, by how much, and what would change that."""
    ran = [r for r in rows if "why" not in r]
    unit = counted(ran[0]) if ran else "tokens"
    titles = ("machine", "layout", "step", f"{unit}/s", f"$/1M {unit}", "$/h of one", "break-even $/h", "error")
    head = "".join(f"<th{' class=n' if i > 1 else ''}>{t}" for i, t in enumerate(titles))
    table = []
    for r in rows:
        if "why" in r:
            table.append(f"<tr><td class=w>{r['nodes']} × {_text(r['instance'])}<td colspan=7 class=bad>does not fit: {_text(r['why'])}</tr>")
            continue
        at, each = r["layout"], r["usd_per_hour"] and r["usd_per_hour"] / r["nodes"]
        shape = " ".join(f"{k}={at[k]}" for k in ("tp", "pp", "dp", "cp", "ep") if at[k] > 1 or k in ("tp", "pp", "dp"))
        shape += f" zero={at['zero']} micro-batch={at['micro_batch']} recompute={at['recompute']}" + (f" chunks={at['chunks']}" if at["chunks"] > 1 else "")
        numbers = (r["tokens_per_s"], r["usd_per_1m_tokens"], each, r["break_even_usd_per_hour"])
        error = "measured" if r.get("measured") else errors.percent(r["expected_error"])
        table.append(f"<tr><td class=w>{r['nodes']} × {_text(r['instance'])}<td>{shape}{'' if r['fits'] else ' <span class=bad>does not fit</span>'}"
                     + f"<td class=n>{seconds(r['step_s'])}" + "".join(f"<td class=n>{number(v)}" for v in numbers) + f"<td class=n>{error}</tr>")  # fmt: skip
    told = lambda v: f"{v:+.1%}" if isinstance(v, float) else _text(v)
    varied = "".join(f"<tr><td class=w>{_text(r['instance'])}" + "".join(f"<td class=n>{told(v)}" for v in r["sensitivity"].values()) + "</tr>" for r in ran)
    title = f"{ran[0]['model']}, {ran[0]['parameters'] / 1e9:.3g}G weights, on {len(rows)} machines" if ran else "No machine holds it"
    body = [f"<h1>{_text(title)}</h1>"]
    if ran:
        body.append(f"<p class=say>{_text(money.verdict(rows))}.</p><p class=sub>{ran[0]['global_batch']:,} {_text(_what(ran[0]))}, {ran[0]['precision']}, {ran[0]['optimizer']}</p>")
        body.append("".join(map(_talkative, ran)))
        body.append(f"<h2>Dollars per 1M {unit}</h2>{_beside(ran, lambda r: r['usd_per_1m_tokens'], 'USD')}")
        body.append(f"<h2>{unit.capitalize()} a second</h2>{_beside(ran, lambda r: r['tokens_per_s'], unit + '/s')}")
    body.append(f"<h2>Beside each other</h2><div class=scroll><table><tr>{head}</tr>{''.join(table)}</table></div>")
    if ran:
        bases = "; ".join(f"{_text(r['instance'])}: {_text(r['price_basis'])}" for r in ran)
        body.append(f"<p class=soft>Break-even: the price of one machine at which its {unit} cost what they do on {_text(ran[0]['instance'])}. Prices: {bases}.</p>")
        head = "".join(f"<th class=n>{_text(v)}" for v in variants)
        body.append(f"<h2>With another batch or precision</h2><p class=sub>how many more {unit} a second the same layout trains</p>")
        body.append(f"<div class=scroll><table><tr><th>{head}</tr>{varied}</table></div>")
        body += [f"<h2>A step on {_text(r['instance'])}{_as_predicted(r)}</h2>{_bar(r['seconds'], 's')}" for r in ran]
    return _page(title, body)


def _page(title, body):
    whole = "".join(f"<section{' class=long' if '<td class=why>' in part else ''}>{part}</section>" for part in body if part)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{_text(title)}</title>'
        f"<style>{_STYLE}</style><body>{_PICTURE.sub(_SCROLLED, whole)}</body></html>\n"
    )


def _flat(r):
    return {k: v for k, v in r.items() if isinstance(v, (int, float, str, bool)) or v is None} | r.get("layout", {}) | {f"{k}_s": v for k, v in r.get("seconds", {}).items()}


def places(path):
    """FILE.html, FILE.json and FILE.csv; a Fault where they cannot be written, before anything is priced."""
    path = pathlib.Path(path)
    if not path.name:
        raise Fault(f"--report={path}: a file is needed", "--report=FILE.html")
    if path.suffix not in (".html", ".htm") and not path.exists():
        raise Fault(f"--report={path}: a page's name ends in .html, and its data lie beside it", f"--report={path.with_suffix('.html') if path.name[:1] not in '.-' else 'FILE.html'}")
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
    told = {**result, "roof": roof_of(job), "scaling": [{"nodes": n, **{k: r[k] for k in ("step_s", "tokens_per_s", "usd_per_1m_tokens", "comm_share")}} for n, r in points]}
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
