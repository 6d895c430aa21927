# SPDX-License-Identifier: Apache-2.0
"""Modelled times and other facts about a compiled program."""

import ctypes
import functools
import json
import os
import warnings
from typing import Any, Protocol

from opentrn import _library

_MAGIC = b"OTRNART"


class Compiled(Protocol):
    """What `jax.jit(f).lower(…).compile()` gives, as far as it is used here."""

    def runtime_executable(self) -> Any: ...
    def cost_analysis(self) -> Any: ...


def artifact(compiled: Compiled) -> bytes:
    """The artifact inside a compiled JAX function: write it to a file and `otrn run`, `otrn prof`
    take it."""
    if not hasattr(compiled, "runtime_executable"):
        raise TypeError(
            "opentrn: a compiled function is needed, as jax.jit(f).lower(*args).compile() gives it, "
            f"not {type(compiled).__name__}"
        )
    wrapped = compiled.runtime_executable().serialize()  # jaxlib puts a header of its own before it
    at = wrapped.find(_MAGIC)
    if at < 0:
        raise ValueError("this program was not compiled by opentrn")
    return wrapped[at:]


_NOTHING = b"func.func public @main(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }"


@functools.cache
def _target_fault(target):
    try:
        _price(_NOTHING, target, {})
    except RuntimeError as error:
        return str(error)
    return None


def checked_target(function: str, target: Any) -> str | None:
    """The target of a call as text; a wrong one is told where the call is made."""
    if target is None:
        return None
    if not isinstance(target, (str, os.PathLike)) or not os.fspath(target):
        raise TypeError(f'opentrn.{function}: target is "trn1", "trn2", "trn3" or the path of a chip file, not {target!r}')
    fault = _target_fault(os.fspath(target))
    if fault:
        raise ValueError(f"opentrn.{function}: {fault}")
    return os.fspath(target)


def told(text: bytes) -> str:
    """The library's error with its hint in one line."""
    return text.decode().strip().replace("\n  hint: ", "; ")


_OPTIONS = ("instance", "price", "trips", "chips")  # that do not change the code


_NAMED = 4  # collectives in a warning


def checked_share(function: str, value: Any) -> float | None:
    """max_comm of a call as a part of the step: 0.25, or "25%"."""
    if value is None:
        return None
    try:
        share = float(value[:-1]) / 100 if isinstance(value, str) and value.endswith("%") else float(value)
    except (TypeError, ValueError):
        share = -1.0
    if not 0 <= share <= 1:
        raise ValueError(f'opentrn.{function}: max_comm is a share of the step, 0.25 or "25%", not {value!r}')
    return share


def comm_note(r: dict[str, Any], most: float | None) -> str:
    """What a report says of collectives that take more than that of the step, and which; "" when they do not."""
    if most is None or not r["total_us"]:
        return r["comm_note"]
    if r["comm_us"] <= most * r["total_us"]:
        return ""
    total = r["total_us"] / 100
    rows = [
        f"{c['kind']} over {c['ranks']} devices{f', {a} apart' if (a := c['stride']) > 1 else ''} "
        f"at {os.path.basename(c['file']) or 'an unknown line'}:{c['line']} ({c['busy_us'] / total:.1f} %)"
        for c in r["collectives"][:_NAMED]
    ]
    return (
        f"collectives take {r['comm_us'] / total:.1f} % of the step, {r['exposed_comm_us'] / total:.1f} % are not hidden: "
        f"{', '.join(rows)}; more than max_comm={100 * most:g} %"
    )


def report(
    compiled: Compiled | bytes | bytearray,
    target: str | None = None,
    max_comm: float | str | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Modelled time and price of one run.

    compiled: a compiled JAX function (`jit(f).lower(...).compile()`), or the bytes of an artifact
    or a StableHLO program. target: "trn1", "trn2", "trn3" or the path of a chip file; None is the
    one it was compiled for. Another one's time is that of the program compiled for it.
    options: instance="trn1.32xlarge", a machine, with its chip as target; price=20.0, your price of an hour of it;
    trips=100, iterations of loops whose length only a run knows.
    Returns a dict: total_us, busy_us and instructions per engine, flops, hbm_bytes, utilisation, …; usd_per_hour is
    that of all devices, None when it is not known, and price_basis says where it comes from; `note`, when there is one,
    what the time assumes. max_comm: the share of the step, 0.25 or "25%", above which collectives are worth a Python warning, and
    a `comm_note` with the operations responsible.
    """
    for name in options:
        if name not in _OPTIONS:
            raise TypeError(f"opentrn.report takes {', '.join(_OPTIONS)}; {name} belongs to the compilation")
    data = compiled if isinstance(compiled, (bytes, bytearray)) else artifact(compiled)
    most = checked_share("report", max_comm)
    r = noted(_price(data, checked_target("report", target), options))
    r["comm_note"] = comm_note(r, most)
    if most is not None and r["comm_note"]:
        warnings.warn(f"opentrn: {r['comm_note']}", stacklevel=2)
    return r


def _price(data, target, options):
    out = ctypes.create_string_buffer(16384)
    wanted = target.encode() if target else None
    given = "".join(f"{name}={value}\n" for name, value in options.items()).encode()
    if _library.load().opentrn_report(bytes(data), len(data), wanted, given, out, len(out)):
        raise RuntimeError(told(out.value))
    return json.loads(out.value)


def price_text(r: dict[str, Any]) -> str:
    """Whose price a report's dollars are: "32 cores of trn1.32xlarge, 21.5 USD/h (on demand, …)"."""
    cores = r["devices"] * r["cores_per_device"]
    where = f"{cores} core{'' if cores == 1 else 's'}"
    where += f" on {r['machines']} machines of" if r["machines"] > 1 else " of"
    if r["usd_per_hour"] is None:
        return f"{where} {r['instance']}: {r['price_basis']}" if r["instance"] else r["price_basis"]
    return f"{where} {r['instance']}, {r['usd_per_hour']:.6g} USD/h ({r['price_basis']})"


def noted(r: dict[str, Any]) -> dict[str, Any]:
    """The report, with a `note` where its time assumes something."""
    text = loops_text(r)
    return {**r, "note": text} if text else r


def loops_text(r: dict[str, Any]) -> str:
    """What a report's time assumes of loops whose length only a run knows; "" when nothing."""
    n, trips = r["unknown_loops"], r["assumed_trips"]
    if not n:
        return ""
    loops = f"{n} loop{'' if n == 1 else 's'} of unknown length"
    if trips:
        return f"{loops} taken for {trips} iterations (trips)"
    return f"{loops} counted once, so the time is too short: a run counts, or set OTRN_TRIPS"


def cache_hit(compiled: Compiled) -> bool:
    """True when the program was found in opentrn's cache instead of being compiled."""
    return bool(compiled.cost_analysis()["opentrn_cache_hit"])
