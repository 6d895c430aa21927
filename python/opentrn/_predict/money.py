# SPDX-License-Identifier: Apache-2.0
"""What a run of days costs: goodput, dollars, and two machines or more beside each other.

Of a run's time some is lost: checkpoints hold it up, a machine fails now and then and what was done since the last checkpoint is
done again, the first start compiles. What a fleet's mean time between failures is depends on who runs it: --mtbf-hours is that of
one machine.
"""

import dataclasses
import difflib
import math

from opentrn._predict import text
from opentrn._predict.fault import Fault

LEAST = 0.01  # share of its time that a run trains, below which it does not
RESTART_S = 600.0  # until a job is up again behind a failure, from the cache


@dataclasses.dataclass(frozen=True)
class Run:
    """How a job is run."""

    mtbf_hours: float = 4000.0  # of one machine
    checkpoint_s: float = 60.0  # that a checkpoint holds the job up
    every_s: float = 0.0  # between checkpoints; 0: as often as loses least
    starts: int = 1  # of the job, beside failures


def interval(mean, pause):
    """Seconds of work between checkpoints that lose least, where failures come after `mean` seconds in the mean: what is done again
    and the pauses weigh the same there."""
    low, high = 0.0, mean
    for _ in range(100):
        at = (low + high) / 2
        low, high = (at, high) if 1 - math.exp(-(at + pause) / mean) > at / mean else (low, at)
    return high


def goodput(run, nodes):
    """(share of the time that trains, seconds between checkpoints). Failures come at any time, while a run starts again too
    (Daly, 2006): that many seconds go by for each interval of work."""
    mean = run.mtbf_hours * 3600 / nodes
    every = run.every_s or interval(mean, run.checkpoint_s)
    if (every + run.checkpoint_s + RESTART_S) / mean > 700:
        return 0.0, every
    return every / (mean * math.exp(RESTART_S / mean) * math.expm1((every + run.checkpoint_s) / mean)), every


def run_of(result, run, tokens=None, days=None, cached=True):
    """A prediction carried on to a number of tokens, or of days."""
    share, every = goodput(run, result["nodes"])
    if not share > LEAST:
        raise Fault(f"with {result['nodes']} machines that fail every {run.mtbf_hours:g} h, checkpoints and restarts take all the time", "--mtbf-hours, --checkpoint-s")
    compile_s = result["compile_s"] * (1 if cached else run.starts)
    rate = result["tokens_per_s"] * share
    seconds = tokens / rate + compile_s if tokens else days * 86400.0
    done = tokens or max(seconds - compile_s, 0) * rate
    usd = result["usd_per_hour"] and result["usd_per_hour"] / 3600 * seconds
    return {"goodput": share, "checkpoint_every_s": every, "tokens": done, "days": seconds / 86400, "usd": usd, "compile_s": compile_s,
            "usd_per_1m_tokens": usd / done * 1e6 if usd and done else None}  # fmt: skip


def epoch(run, tokens):
    """Once through a data set of so many tokens, at the run's own rate."""
    if not tokens > 0 or not run["tokens"]:
        raise Fault(f"an epoch of {tokens:g} tokens in a run of {run['tokens']:g}", "--epoch-tokens, --tokens or --days above 0")
    share = tokens / run["tokens"]
    return {"epochs": 1 / share, "hours_per_epoch": 24 * run["days"] * share, "usd_per_epoch": run["usd"] and run["usd"] * share}


def saved(result, run, days):
    """Dollars of a machine's time that starting from the cache spares in so many days, with so many starts."""
    once, again = (result["compile_s"] * n for n in (1, run.starts))
    return (again - once) * (result["usd_per_hour"] or 0.0) / 3600


def prices_of(words, instances):
    """--price as dollars by instance: USD/h of the only one, or NAME:USD/h,… of some of them."""
    found: dict[str, float] = {}
    for name, _, number in (v.rpartition(":") for v in str(words).split(",")) if words is not None else ():
        try:
            value = float(number)
        except ValueError:
            value = 0.0
        if not 0 < value < 1e9:
            raise Fault(f"--price={words}: dollars an hour above 0 are needed", "--price=21.5, or --price=NAME:21.5,… for several")
        name = name or (instances[0] if len(instances) == 1 else "")
        if name not in instances or name in found:
            raise Fault(f"--price={words}: whose price is it?", "--price=" + ",".join(f"{v}:USD/h" for v in instances))
        found[name] = value
    return found


UNITS = ("tok/s", "samples/s", "ms", "s")


def measured(word):
    """p5.48xlarge:98000tok/s as (instance, number, unit)."""
    name, _, rate = word.partition(":")
    unit = next((u for u in UNITS if rate.endswith(u)), "")
    try:
        value = float(rate.removesuffix(unit)) if unit else 0.0
    except ValueError:
        value = 0.0
    if not name or not 0 < value < 1e15:
        raise Fault(f"--measured={word}: an instance and what a step of it takes are needed", "--measured=p5.48xlarge:98000tok/s, :12samples/s, :340ms or :0.34s")
    return name, value, unit


def measurements(words, instances):
    """Those of the instances asked for, by name; another is a mistake in writing."""
    found = {name: (value, unit) for name, value, unit in map(measured, words)}
    for name in found:
        if name not in instances:
            near = difflib.get_close_matches(name, instances, 1)
            raise Fault(f"--measured={name}: it is not asked for", f"did you mean {near[0]}?" if near else f"--instance has {', '.join(instances)}")
    return found


def replaced(result, value, unit):
    """A prediction with the user's own measurement in its place. What the step is made of stays predicted: collectives and the bubble take the seconds
    they did, of the step that was measured, and no more than all of it."""
    now = {"tok/s": result["tokens_per_s"], "samples/s": result["samples_per_s"]}
    factor = now[unit] / value if unit in now else value * (1e-3 if unit == "ms" else 1.0) / result["step_s"]
    if result["mfu"] > 2 * factor:  # fp8 multiplies twice as quickly as bf16, and nothing more so
        raise Fault(f"--measured={value:g}{unit}: that is {result['mfu'] / factor:.3g} times the bf16 peak of the machines", "a step of all machines, in tok/s, samples/s, ms or s")
    usd = result["usd_per_1m_tokens"]
    shares = {k: min(result[k] / factor, 1.0) for k in ("comm_share", "exposed_comm_share", "bubble_share")}
    return {**result, **shares, "step_s": result["step_s"] * factor, "tokens_per_s": result["tokens_per_s"] / factor, "samples_per_s": result["samples_per_s"] / factor,
            "mfu": result["mfu"] / factor, "usd_per_1m_tokens": usd and usd * factor, "expected_error": 0.0, "expected_error_rows": [], "measured": True, "predicted_s": result["step_s"]}  # fmt: skip


def verdict(rows):
    """Which of them is cheapest and which is quickest, of those that hold the job."""
    held = [r for r in rows if r["fits"]]
    if not held:
        return "none of them holds it"
    quick = min(held, key=lambda r: r["step_s"])
    fast, what = f"{text.seconds(quick['step_s'])} a step", text.counted(quick)
    priced = sorted((r for r in held if r["usd_per_1m_tokens"]), key=lambda r: r["usd_per_1m_tokens"])
    if not priced:
        return f"{quick['instance']} is quickest: {fast}; what any of them costs is not known"
    cheap, less = priced[0], ""
    if len(priced) > 1:
        share = 1 - cheap["usd_per_1m_tokens"] / priced[1]["usd_per_1m_tokens"]
        close, unknown = share < sum(r["expected_error"] or 0.0 for r in priced[:2]), [r["instance"] for r in priced[:2] if r["expected_error"] is None]
        less = f", {100 * share:.1f} % less than {priced[1]['instance']}"
        less += ", which is within the expected errors" if close else f"; the expected error of {' and '.join(unknown)} is not known" if unknown else ""
    usd = f"{text.number(cheap['usd_per_1m_tokens'])} USD per 1M {what}{less}"
    if cheap is quick:
        return f"{cheap['instance']} is cheapest and quickest: {usd}; {fast}"
    return f"{cheap['instance']} is cheapest: {usd}; {quick['instance']} is quickest: {fast}"


def break_even(a, b):
    """USD/h of one machine of b at which its tokens cost as much as a's; None where a's are not priced."""
    if not a["usd_per_1m_tokens"]:
        return None
    return a["usd_per_1m_tokens"] * b["tokens_per_s"] * 3600 / 1e6 / b["nodes"]
