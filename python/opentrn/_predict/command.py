# SPDX-License-Identifier: Apache-2.0
"""`opentrn predict CONFIG.json`: a training job from its configuration."""

import argparse
import contextlib
import dataclasses
import difflib
import json
import math
import os
import re
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

from opentrn._predict import advice, compose, config, errors, layout, machines, money, page, progress, roof, search, size, software
from opentrn._predict.fault import Fault, TooLarge
from opentrn._predict.price import Prices
from opentrn._predict.text import counted, number as plain, seconds, unit

SHAPE = ("tp", "pp", "dp", "cp", "ep", "zero", "micro_batch", "recompute", "schedule", "chunks", "attention")


NODES_MOST = 1_000_000
DEVICES_MOST = 2**20  # of a program, as the library has it
DAYS_MOST = 36525.0
MOST = 2**31  # sequences, tokens of one, starts


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        raise Fault(message.removeprefix("argument "), f"{self.prog} --help")

    def parse_args(self, words=None, namespace=None):
        """Options that there are not, first: argparse tells of those that are missing, and not of the one that was meant to be it."""
        known = [v for action in self._actions for v in action.option_strings]
        for word in words or ():
            name = word.partition("=")[0]
            if name.startswith("--") and name != "--" and name not in known:
                near = [v for v in known if len(name) > 3 and v.startswith(name)] or difflib.get_close_matches(name, known, 1)
                raise Fault(f"there is no option {name}", f"did you mean {near[0]}?" if near else f"{self.prog} --help")
        return self.parse_intermixed_args(words, namespace)  # machines of a bakeoff may stand behind options


def whole(text):
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number")
    if len(text) > 40:
        raise argparse.ArgumentTypeError(f"{text[:12]}... is too large")
    return int(text)


def number(text):
    if not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no number")
    return float(text)


_ABOUT = {
    "predict": "What a training job would take on a fleet: time, memory, dollars. Needs no device.",
    "cost": "What a training run of --days or --tokens costs, with what checkpoints and failures lose.",
    "bakeoff": "The same training job on two machines or more, beside each other.",
}


def parser(command="predict"):
    p = _Parser(prog=f"opentrn {command}", description=_ABOUT[command], allow_abbrev=False,
                epilog=f"`opentrn {command} PROG --help` has the options for a program over devices (StableHLO, HLO), which needs no configuration.")  # fmt: skip
    p.add_argument("config", metavar="CONFIG.json", help=f"Hugging Face configuration, or its folder: {', '.join(config.KINDS)}")
    if command == "bakeoff":
        p.add_argument("machines", nargs="*", metavar="NAME", help="machines to compare, two or more; or --instance=NAME,NAME")
    p.add_argument("--instance", required=command != "bakeoff", metavar="NAME", help="machine to rent; `otrn info instances` lists them" + ("; NAME,NAME for several" if command == "bakeoff" else ""))
    p.add_argument("--nodes", type=whole, default=1, metavar="N", help="how many of them [1]")
    for name, text in (
        ("tp", "devices that share each layer"), ("pp", "stages of the pipeline"), ("dp", "replicas"), ("cp", "devices that share a sequence"),
        ("ep", "devices that share the experts"), ("zero", "0 to 3: replicas share optimizer, gradients, weights"),
        ("micro-batch", "sequences of a replica at once"), ("chunks", "pieces of an interleaved pipeline's stage"),
    ):  # fmt: skip
        p.add_argument(f"--{name}", type=whole, metavar="N", help=text + ("; what is not given is searched" if name == "tp" else ""))
    p.add_argument("--seq", type=whole, metavar="N", help="tokens of a sequence [4096, of encoders 512; all positions of a model that learns them]")
    p.add_argument("--global-batch", type=whole, metavar="N", help="sequences between two updates [one micro-batch of each replica, of a pipeline 4 for each of --pp]")
    p.add_argument("--recompute", choices=layout.RECOMPUTE, help="what the backward pass computes again")
    p.add_argument("--precision", choices=tuple(layout.PRECISIONS), default="bf16", help="[bf16]; amp: bf16 products, fp32 weights")
    p.add_argument("--optimizer", choices=("adamw", "lamb", "sgd"), default="adamw", help="[adamw]")
    p.add_argument("--dropout", type=number, metavar="SHARE", help="instead of the configuration's")
    p.add_argument("--sp", choices=("on", "off"), help="activations between a layer's products cut by position [on where possible]")
    p.add_argument("--attention", choices=layout.ATTENTION, help="flash: scores stay on the chip, masked ones are left out; whole: all are computed; plain: they pass through HBM [plain for encoders, whole with --recompute=full, else flash]")
    p.add_argument("--schedule", choices=layout.SCHEDULES, help="of the pipeline [1f1b]")
    p.add_argument("--lora", type=whole, default=0, metavar="RANK", help="adapters of this rank learn, the weights do not")
    p.add_argument("--software", choices=roof.SOFTWARE, default="compiled", help="of accelerators without a compiler here: operations joined, each alone, or with the vendor's own kernels for attention and fp8 [compiled]")
    p.add_argument("--as-of", metavar="YYYY-MM", help="Neuron's software of that month, by what the same published steps took with it and with the newest [the newest]")
    p.add_argument("--lnc", type=whole, choices=(1, 2), default=0, help="cores of a device [the chip's]")
    p.add_argument("--price", metavar="USD/h", help="what an hour of one machine costs you; bakeoff: NAME:USD/h,…")
    p.add_argument("--search", action="store_true", help="rank layouts, also over what has a default")
    p.add_argument("--by", choices=tuple(search.BY), default=None, help="what layouts are ranked by [usd, or time without a price]")
    p.add_argument("--top", type=whole, default=10, metavar="N", help="layouts shown [10]")
    p.add_argument("--max-comm", metavar="SHARE", help="exit status 3 when collectives take more of the step: 25%% or 0.25")
    p.add_argument("--measured", action="append", default=[], metavar="NAME:RATE", help="your own measurement on an instance takes its place: 98000tok/s, 12samples/s, 340ms or 0.34s of a step")
    p.add_argument("--tokens", type=number, metavar="N", help="of the whole run: tells days and dollars")
    p.add_argument("--days", type=number, metavar="N", help="of the run: tells tokens and dollars")
    p.add_argument("--epoch-tokens", type=number, metavar="N", help="tokens of the data set: tells hours and dollars of an epoch")
    p.add_argument("--mtbf-hours", type=number, default=4000.0, metavar="H", help="mean time between failures of one machine [4000]")
    p.add_argument("--checkpoint-s", type=number, default=60.0, metavar="S", help="that a checkpoint holds the job up [60]")
    p.add_argument("--starts", type=whole, default=1, metavar="N", help="of the job: without a cache each compiles [1]")
    p.add_argument("--report", metavar="FILE.html", help="write a page with all of it; FILE.json and FILE.csv beside it")
    p.add_argument("--json", action="store_true", help="machine-readable output")
    return p


def share(text):
    """25% or 0.25; None: not given"""
    if text is None:
        return None
    try:
        value = number(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except argparse.ArgumentTypeError:
        value = -1.0
    if not 0 <= value <= 1:
        raise Fault(f"--max-comm={text}: a share of the step is needed", "--max-comm=25% or --max-comm=0.25")
    return value


def job_of(o):
    """Job and what was given of its layout."""
    m = config.read(o.config)
    if o.dropout is not None:
        if not 0 <= o.dropout < 1:
            raise Fault(f"--dropout={o.dropout}: a share from 0 to below 1 is needed")
        m = dataclasses.replace(m, dropout=o.dropout, score_dropout=o.dropout)
    for name, most in (("tokens", 1e18), ("days", DAYS_MOST), ("epoch_tokens", 1e18), ("mtbf_hours", 1e9), ("checkpoint_s", 1e9)):
        value = getattr(o, name)
        if value is not None and not 0 < value <= most:
            raise Fault(f"--{name.replace('_', '-')}={value:g}: a number above 0 is needed, {most:g} at most")
    for name in ("starts", "top"):
        if not 1 <= getattr(o, name) <= MOST:
            raise Fault(f"--{name}={getattr(o, name)}: a whole number above 0 is needed")
    if o.tokens and o.days:
        raise Fault("a run has --tokens or --days; one tells the other", f"--days={o.days:g}")
    if o.epoch_tokens is not None and not (o.tokens or o.days):
        raise Fault("--epoch-tokens tells an epoch of a run: how long is it?", "--days=14 or --tokens=1e12")
    if (o.chunks or 1) > 1 and o.schedule not in (None, "interleaved"):
        raise Fault(f"--chunks={o.chunks}: only an interleaved pipeline has several", "--schedule=interleaved, or --chunks=1")
    if not 0 <= o.lora <= m.width:
        raise Fault(f"--lora={o.lora}: a rank above 0 is needed, at most the model's width, {m.width}", "--lora=16")
    prices = money.prices_of(o.price, getattr(o, "instances", [o.instance]))
    machine = machines.machine(o.instance, prices.get(o.instance), o.lnc)
    if not 1 <= o.nodes <= NODES_MOST:
        raise Fault(f"--nodes={o.nodes}: a whole number above 0 is needed, {NODES_MOST} at most")
    if not isinstance(machine, roof.Accelerator) and o.nodes * machine.devices > DEVICES_MOST:
        raise Fault(f"--nodes={o.nodes}: {o.nodes * machine.devices} devices are more than the {DEVICES_MOST} of a program", f"--nodes={DEVICES_MOST // machine.devices}, or fewer")
    layout.joined(machine, o.nodes)
    given = {k: getattr(o, k) for k in SHAPE}
    for name in ("seq", "global_batch"):
        if getattr(o, name) is not None and not 1 <= getattr(o, name) <= MOST:
            raise Fault(f"--{name.replace('_', '-')}={getattr(o, name)}: a whole number above 0 is needed, {MOST} at most")
    if o.sp:
        given["sp"] = o.sp == "on"
    seq = o.seq or (m.positions if m.places == "learned" and m.task != "classes" else 4096 if m.task == "lm" else 512)
    have = o.nodes * machine.devices
    for name in ("tp", "pp", "cp", "dp", "micro_batch"):
        if given[name] is not None and not 1 <= given[name] <= MOST:
            raise Fault(f"--{name.replace('_', '-')}={given[name]}: a whole number above 0 is needed, {MOST} at most")
    rest = (given["tp"] or 1) * (given["pp"] or 1) * (given["cp"] or 1)
    batch = o.global_batch or (given["dp"] or (have // rest if have % rest == 0 else have)) * (given["micro_batch"] or 1) * (4 * given["pp"] if given["pp"] else 1)
    return layout.Job(m, machine, o.nodes, size.tokens_of(m, seq), batch, o.precision, o.optimizer, o.lora, o.software, o.as_of and software.as_of(o.as_of, machine)), given


def is_whole(given):
    """Is the cut over devices told?"""
    return given["tp"] is not None and (given["pp"] is not None or given["dp"] is not None)


def layout_of(job, given):
    """The layout with what was given and, for the rest, what is left over."""
    x = {k: v for k, v in given.items() if v is not None}
    have, rest = job.nodes * job.machine.devices, x["tp"] * x.get("cp", 1)
    if "pp" not in x:
        x["pp"] = max(have // (rest * x["dp"]), 1)
    if "dp" not in x:
        x["dp"] = max(have // (rest * x["pp"]), 1)
    return layout.Layout(**layout.scheduled(x))


def step(job, x, prices):
    """By programs priced for the chip, or by roofs where we have no compiler for it."""
    return roof.step(job, x) if isinstance(job.machine, roof.Accelerator) else compose.step(job, x, prices)


def predict(job, x, prices):
    result = step(job, x, prices)
    return {"model": job.model.kind, "instance": job.machine.name, "nodes": job.nodes, "devices": x.devices, "seq": job.seq,
            "global_batch": job.global_batch, "precision": job.precision, "optimizer": job.optimizer, **result, **errors.expected(job, x, result)}  # fmt: skip


def told(r):
    """The answer as text."""
    at, what, g = r["layout"], counted(r), 2.0**30
    pictures, (times, _) = what == "pictures", unit(r.get("predicted_s", r["step_s"]))
    shape = " ".join(f"{k}={at[k]}" for k in ("tp", "pp", "dp", "cp", "ep") if at[k] > 1 or k in ("tp", "pp", "dp"))
    lines = [
        f"{r['model']}, {r['parameters'] / 1e9:.3g}G weights, on {r['nodes']} x {r['instance']} ({r['devices']} devices)",
        f"layout         {shape} zero={at['zero']} micro-batch={at['micro_batch']} recompute={at['recompute']} sp={'on' if at['sp'] else 'off'}"
        + (f" attention={at['attention']}" if "attention" in at else "")
        + (f" software={r['software']}" if "software" in r else "")
        + (f" as-of={r['as_of']['month']}" if "as_of" in r else "")
        + (f" schedule={at['schedule']}" if at["pp"] > 1 else "")
        + (f" chunks={at['chunks']}" if at["chunks"] > 1 else ""),
        f"batch          {r['global_batch']} {'pictures' if pictures else 'sequences of ' + str(r['seq'])}, {r['micro_batches']} micro-batch{'' if r['micro_batches'] == 1 else 'es'} a replica",
        f"step           {seconds(r['step_s'])}, "
        + (f"measured; predicted were {seconds(r['predicted_s'])}: " if r.get("measured") else f"expected error {errors.percent(r['expected_error'])}: ")
        + " + ".join(f"{plain(v * times, 3)} {k.replace('_', ' ')}" for k, v in r["seconds"].items()),
        f"throughput     {plain(r['tokens_per_s'])} {what}/s" + ("" if pictures else f", {plain(r['samples_per_s'])} sequences/s")
        + f", {100 * r['mfu']:.1f} % of the bf16 peak",
    ]
    if r["usd_per_1m_tokens"] is None:
        lines.append(f"cost           not known: {r['price_basis']}; --price=USD/h tells yours")
    else:
        lines.append(f"cost           {plain(r['usd_per_1m_tokens'])} USD per 1M {what}, {plain(r['usd_per_hour'], 6)} USD/h ({r['price_basis']})")
    lines.append(
        f"collectives    {100 * r['comm_share']:.1f} % of the step, {100 * r['exposed_comm_share']:.1f} % not hidden; bubble {100 * r['bubble_share']:.1f} %"
    )
    held = ", ".join(f"{k} {v / g:.2f}" for k, v in r["memory"].items())
    lines.append(f"memory         {r['hbm_peak_bytes'] / g:.2f} of {r['hbm_bytes'] / g:.0f} GiB a device: {held}")
    lines.append(f"fits           {'yes' if r['fits'] else advice.told(r)}")
    lines.append("compiling      not priced: there is no compiler for it here" if "software" in r else f"compiling      {r['compile_s']:.1f} s on this host, once")
    return "\n".join(lines)


def ranked(found, what="tokens"):
    """The layouts as a table."""
    best, wide = found.rows[0][1], max(len(x.text()) for x, _ in found.rows)
    lines = [
        f"{found.tried} layouts priced; left out: {found.pruned_memory} that cannot fit, {found.pruned_time} that cannot be among the first, {found.pruned_size} with too many instructions, "
        f"{found.unfit} that did not fit",
        f"{'':3} {'layout':{wide}} {'step s':>9} {f'{what}/s':>11} {'$/1M':>8} {'GiB':>6}  beside the first",
    ]
    for i, (x, r) in enumerate(found.rows):
        usd = plain(r["usd_per_1m_tokens"]) if r["usd_per_1m_tokens"] else "-"
        lines.append(
            f"{i + 1:3} {x.text():{wide}} {r['step_s']:9.4g} {r['tokens_per_s']:11,.0f} {usd:>8} {r['hbm_peak_bytes'] / 2**30:6.1f}  "
            + search.why(best, r)
        )
    return "\n".join(lines)


def answer(o):
    """(job, layout, prediction, table of layouts or None, prices) of a command."""
    measured = money.measurements(o.measured, getattr(o, "instances", [o.instance]))
    job, given = job_of(o)
    prices = None if isinstance(job.machine, roof.Accelerator) else Prices(job.machine)
    o.progress.tell(0, o.instance)
    if prices:
        prices.say = lambda text: o.progress.tell(2, text)
    by = o.by or ("usd" if job.machine.usd_per_hour else "time")
    table = None
    if o.search or not is_whole(given):
        table = _searched(job, given, prices, by, o)
        x = table.rows[0][0]
    else:
        x = layout_of(job, given)
    result = _judged(job, x, prices)
    if o.instance in measured:
        result = money.replaced(result, *measured[o.instance])
    if table:
        result["search"] = {
            "tried": table.tried, "pruned_memory": table.pruned_memory, "pruned_time": table.pruned_time, "pruned_size": table.pruned_size, "unfit": table.unfit,
            "rows": [{**r["layout"], **{k: r[k] for k in ("step_s", "tokens_per_s", "usd_per_1m_tokens", "hbm_peak_bytes", "mfu", "seconds")}, "beside_the_first": search.why(table.rows[0][1], r)} for _, r in table.rows],
        }  # fmt: skip
    if o.tokens or o.days:
        how = money.Run(o.mtbf_hours, o.checkpoint_s, starts=max(o.starts, 1))
        result["run"] = {**money.run_of(result, how, o.tokens, o.days), "usd_saved_by_cache": money.saved(result, how, o.days), "starts": how.starts}
        if o.epoch_tokens is not None:
            result["run"] |= money.epoch(result["run"], o.epoch_tokens)
    return job, x, result, table, prices


def _judged(job, x, prices):
    """A prediction, and what would make it fit where it does not."""
    tried = lambda job, x: step(job, x, prices)
    try:
        result = predict(job, x, prices)
    except TooLarge as fault:
        found = advice.knobs(job, x, tried)
        raise TooLarge(str(fault), f"{found[0]['change']} would fit" if found else fault.hint) from None
    if not result["fits"]:
        result["knobs"] = advice.knobs(job, x, tried)
        result["knob"] = result["knobs"][0]["change"] if result["knobs"] else None
    return result


def _searched(job, given, prices, by, o):
    try:
        found = search.search(job, given, prices, by, lambda text: o.progress.tell(1, text), keep=max(o.top, 10), step=step)
    except TooLarge as fault:
        more = advice.grown(job, given, lambda job, x: step(job, x, prices))
        raise TooLarge(str(fault), f"{more[0]['change']} would fit" if more else fault.hint) from None
    found.rows = found.rows[: o.top]
    return found


def told_run(r):
    run = r["run"]
    usd = f"{plain(run['usd'])} USD" if run["usd"] else "price not known"
    saves = "" if "software" in r or not run["usd_saved_by_cache"] else f"; the cache saves {plain(run['usd_saved_by_cache'])} USD"
    epoch = ""
    if "epochs" in run:
        each = f"{plain(run['usd_per_epoch'])} USD" if run["usd_per_epoch"] else "price not known"
        epoch = f"\nepoch          {plain(run['hours_per_epoch'])} h, {each}; the run has {plain(run['epochs'], 3)}"
    return (
        f"run            {plain(run['tokens'] / 1e9)}G {counted(r)} in {plain(run['days'], 3)} days: {usd}; goodput {100 * run['goodput']:.1f} %, "
        f"a checkpoint every {run['checkpoint_every_s'] / 60:.0f} min{saves}{epoch}"
    )


def asked(words, command="predict"):
    """(options, --max-comm as a share or None); what can be told before anything is priced is told here."""
    o = parser(command).parse_args(words)
    if command != "bakeoff" and "," in o.instance:
        raise Fault("one instance is needed; bakeoff compares several", f"opentrn bakeoff {o.config} --instance={o.instance}")
    if o.report is not None:
        page.places(o.report)
    o.progress = progress.Progress()
    return o, share(o.max_comm)


def run(words):
    o, limit = asked(words)
    with o.progress:
        job, x, result, table, prices = answer(o)
        judge(limit, [result])
        _report(o, job, x, result, table, prices)
    if o.json:
        print(json.dumps(result, indent=1))
    else:
        print(told(result) + (f"\n{told_run(result)}" if "run" in result else "") + (f"\n\n{ranked(table, counted(result))}" if table else ""))
    return talkative(o, [result])


def _report(o, job, x, result, table, prices):
    if o.report is not None:
        o.progress.tell(1, "fewer and more machines")
        page.write(o.report, job, x, result, table, lambda job, x: step(job, x, prices))


def judge(limit, results):
    """Puts --max-comm into predictions, and whether collectives take more of the step."""
    for r in results:
        if limit is not None:
            r["max_comm"], r["max_comm_exceeded"] = limit, r["comm_share"] > limit


def talkative(o, results):
    """3 where collectives take more than --max-comm of a step, and says so."""
    over = [r for r in results if r.get("max_comm_exceeded")]
    for r in over:
        print(f"opentrn: collectives take {100 * r['comm_share']:.1f} % of the step on {r['instance']}, more than --max-comm={o.max_comm}", file=sys.stderr)
    return 3 if over else 0


def cost(words):
    """`opentrn cost CONFIG.json`: dollars, of a million tokens and of a run."""
    o, limit = asked(words, "cost")
    if not o.tokens and not o.days:
        raise Fault("how long is the run?", "--tokens=1e12 or --days=14")
    if not machines.machine(o.instance, money.prices_of(o.price, [o.instance]).get(o.instance)).usd_per_hour:
        raise Fault(f"no price of {o.instance} is published", "--price=USD/h of one machine")
    with o.progress:
        job, x, r, table, prices = answer(o)
        judge(limit, [r])
        _report(o, job, x, r, table, prices)
    if o.json:
        kept = [k for k in ("usd_per_1m_tokens", "usd_per_hour", "price_basis", "expected_error", "comm_share", "max_comm", "max_comm_exceeded") if k in r]
        print(json.dumps({"instance": o.instance, "nodes": o.nodes, **{k: r[k] for k in kept}, **r["run"]}, indent=1))
    else:
        print(f"{plain(r['usd_per_1m_tokens'])} USD per 1M {counted(r)} while it trains, {plain(r['run']['usd_per_1m_tokens'])} with what is lost")
        print(f"{plain(r['usd_per_hour'], 6)} USD/h: {o.nodes} x {o.instance} ({r['price_basis']})\n{told_run(r)}")
    return talkative(o, [r])


def bakeoff(words):
    """`opentrn bakeoff CONFIG.json --instance=A,B`: the same job on two machines or more."""
    o, limit = asked(words, "bakeoff")
    names = [*(o.instance.split(",") if o.instance is not None else ()), *o.machines]
    if len(names) < 2 or len({*names}) < len(names):
        raise Fault("two instances or more are compared, each once", "--instance=trn2.48xlarge,p5.48xlarge")
    if o.price and ":" not in o.price:
        raise Fault(f"--price={o.price}: whose price is it?", f"--price={names[0]}:USD/h,{names[1]}:USD/h")
    money.prices_of(o.price, names)
    for name in names:
        machines.machine(name)
    rows, o.global_batch = [], o.global_batch or _same_batch(o, names)
    with o.progress:
        for name in names:
            try:
                job, x, r, _, prices = answer(argparse.Namespace(**{**vars(o), "instance": name, "instances": names}))
                rows.append({**r, "sensitivity": sensitivity(job, x, r, prices)})
            except TooLarge as fault:  # a verdict of this machine alone
                rows.append({"instance": name, "nodes": o.nodes, "fits": False, "why": str(fault)})
    ran = [r for r in rows if "why" not in r]
    for r in ran:
        r["break_even_usd_per_hour"] = money.break_even(ran[0], r)
    judge(limit, ran)
    if o.report is not None:
        page.write_bakeoff(o.report, rows, list(VARIANTS))
    if o.json:
        print(json.dumps(rows, indent=1))
    else:
        _compared(rows, ran)
    return talkative(o, ran)


def _same_batch(o, names):
    """The same job on each of them: what is not told is shared by the replicas of all."""
    return math.lcm(*(job_of(argparse.Namespace(**{**vars(o), "instance": name, "instances": names}))[0].global_batch for name in names))


def _compared(rows, ran):
    what = counted(ran[0]) if ran else "tokens"
    print(money.verdict(rows))
    print(f"{'':18} {'layout':44} {'step':>9} {f'{what}/s':>11} {'$/h of one':>10} {f'$/1M {what}':>13} {'break-even $/h':>14} {'error':>9}")
    for r in rows:
        if "why" in r:
            print(f"{r['instance']:18} does not fit: {r['why']}")
            continue
        at, usd, each = r["layout"], r["usd_per_1m_tokens"], r["usd_per_hour"]
        shape = f"tp={at['tp']} pp={at['pp']} dp={at['dp']} zero={at['zero']} mb={at['micro_batch']} {at['recompute']}" + (f" x{at['chunks']}" if at["chunks"] > 1 else "")
        dollars = [f"{plain(v) if v else '-':>{wide}}" for v, wide in ((each and each / r["nodes"], 10), (usd, 13), (r["break_even_usd_per_hour"], 14))]
        error = "measured" if r.get("measured") else errors.percent(r["expected_error"])
        print(f"{r['instance']:18} {shape:44} {seconds(r['step_s']):>9} {r['tokens_per_s']:11,.0f} {' '.join(dollars)} {error:>9}" + ("" if r["fits"] else "  does not fit"))
    if not ran:
        return
    print(f"break-even: the price of one machine at which its {what} cost what they do on {ran[0]['instance']}")
    print("prices: " + "; ".join(f"{r['instance']} {r['price_basis']}" for r in ran) + "\n")
    print(f"{f'{what}/s with':18} " + " ".join(f"{k:>16}" for k in VARIANTS))
    for r in ran:
        print(f"{r['instance']:18} " + " ".join(f"{f'{v:+.1%}' if isinstance(v, float) else v:>16}" for v in r["sensitivity"].values()))


def sensitivity(job, x, result, prices):
    """How many more tokens a second, as a share, the same layout trains with another batch or precision, or why it would not."""
    if result.get("measured"):
        return {k: "measured" for k in VARIANTS}
    return {k: _varied(dataclasses.replace(job, **change(job)), x, result, prices) for k, change in VARIANTS.items()}


VARIANTS: dict[str, Callable[..., dict[str, Any]]] = {
    "half the batch": lambda job: {"global_batch": max(job.global_batch // 2, 1)},
    "twice the batch": lambda job: {"global_batch": 2 * job.global_batch},
    **{f"--precision={p}": lambda job, p=p: {"precision": p} for p in layout.PRECISIONS},
}


def _varied(job, x, result, prices):
    if job.global_batch % (x.dp * x.micro_batch):
        return "does not divide"
    try:
        varied = step(job, x, prices)
    except TooLarge:
        return "does not fit"
    except Fault:  # fp8 where nothing multiplies it quicker
        return "not possible"
    return varied["tokens_per_s"] / result["tokens_per_s"] - 1 if varied["fits"] else "does not fit"


@contextlib.contextmanager
def interrupted():
    """Ctrl-C ends it wherever it comes: of one in a destructor, or in what JAX does when garbage is collected, Python only prints a note. An end that is asked
    for otherwise (kill, a batch system's limit) is as orderly: nothing is left half-written."""
    usual, ended = sys.unraisablehook, None

    def lost(what):
        if not issubclass(what.exc_type, KeyboardInterrupt):
            return usual(what)
        again = threading.Timer(0.05, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT))
        again.daemon = True
        again.start()

    if threading.current_thread() is threading.main_thread():
        ended = signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.unraisablehook = lost
    try:
        yield
    finally:
        sys.unraisablehook = usual
        if ended is not None:
            signal.signal(signal.SIGTERM, ended)


def main(words, command="predict"):
    with interrupted():
        return _main(words, command)


def _main(words, command):
    try:
        status = {"predict": run, "cost": cost, "bakeoff": bakeoff}[command](words)
        sys.stdout.flush()
        return status
    except Fault as fault:
        print(f"opentrn: error[USAGE]: {fault}", file=sys.stderr)
        if fault.hint:
            print(f"  hint: {fault.hint}", file=sys.stderr)
        return 2
    except OSError as error:  # a full disk behind standard output, for one
        print(f"opentrn: error[IO]: {error.filename or 'standard output'}: {error.strerror}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is left of it is told to nobody
        return 1
    except KeyboardInterrupt:
        print("opentrn: interrupted; programs priced so far are in the cache", file=sys.stderr)
        return 130
