# SPDX-License-Identifier: Apache-2.0
"""What a run of days costs: goodput, dollars, and two machines or more beside each other.

Of a run's time some is lost: checkpoints hold it up, a machine fails now and then and what was done since the last checkpoint is
done again, the first start compiles. What a fleet's mean time between failures is depends on who runs it: --mtbf-hours is that of
one machine.
"""

import dataclasses
import math

from opentrn._predict.fault import Fault

RESTART_S = 600.0  # until a job is up again behind a failure, from the cache


@dataclasses.dataclass(frozen=True)
class Run:
    """How a job is run."""

    mtbf_hours: float = 4000.0  # of one machine
    checkpoint_s: float = 60.0  # that a checkpoint holds the job up
    every_s: float = 0.0  # between checkpoints; 0: as often as loses least
    starts: int = 1  # of the job, beside failures


def goodput(run, nodes):
    """(share of the time that trains, seconds between checkpoints): Young's interval between checkpoints loses least."""
    mean = run.mtbf_hours * 3600 / nodes
    every = run.every_s or math.sqrt(2 * run.checkpoint_s * mean)
    lost = run.checkpoint_s / every + (every / 2 + RESTART_S) / mean
    return max(1 - lost, 0.0), every


def run_of(result, run, tokens=None, days=None, cached=True):
    """A prediction carried on to a number of tokens, or of days."""
    share, every = goodput(run, result["nodes"])
    if share <= 0:
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


def measured(text):
    """p5.48xlarge:98000tok/s as (instance, tokens a second)."""
    name, _, rate = text.partition(":")
    number = rate.removesuffix("tok/s")
    try:
        value = float(number)
    except ValueError:
        value = 0.0
    if not name or number == rate or not value > 0:
        raise Fault(f"--measured={text}: an instance and its tokens a second are needed", "--measured=p5.48xlarge:98000tok/s")
    return name, value


def replaced(result, rate):
    """A prediction with the user's own measurement in its place."""
    factor = result["tokens_per_s"] / rate
    usd = result["usd_per_1m_tokens"]
    return {**result, "step_s": result["step_s"] * factor, "tokens_per_s": rate, "samples_per_s": result["samples_per_s"] / factor,
            "mfu": result["mfu"] / factor, "usd_per_1m_tokens": usd and usd * factor, "expected_error": 0.0, "measured": True}  # fmt: skip


def break_even(a, b):
    """USD/h of one machine of b at which its tokens cost as much as a's; None where a's are not priced."""
    if not a["usd_per_1m_tokens"]:
        return None
    return a["usd_per_1m_tokens"] * b["tokens_per_s"] * 3600 / 1e6 / b["nodes"]
