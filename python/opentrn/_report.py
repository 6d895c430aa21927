# SPDX-License-Identifier: Apache-2.0
"""Modelled times and other facts about a compiled program."""

import ctypes
import json
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
    wrapped = compiled.runtime_executable().serialize()  # jaxlib puts a header of its own before it
    at = wrapped.find(_MAGIC)
    if at < 0:
        raise ValueError("this program was not compiled by opentrn")
    return wrapped[at:]


def report(compiled: Compiled | bytes | bytearray, target: str | None = None) -> dict[str, Any]:
    """Modelled time of one run.

    compiled: a compiled JAX function (`jit(f).lower(...).compile()`), or the bytes of an artifact
    or a StableHLO program. target: "trn1", "trn2", "trn3" or the path of a chip file; None is the
    one it was compiled for. Returns a dict: total_us, busy_us and instructions per engine, flops,
    hbm_bytes, …
    """
    data = compiled if isinstance(compiled, (bytes, bytearray)) else artifact(compiled)
    out = ctypes.create_string_buffer(8192)
    wanted = target.encode() if target else None
    if _library.load().opentrn_report(bytes(data), len(data), wanted, out, len(out)):
        raise RuntimeError(out.value.decode())
    return json.loads(out.value)


def cache_hit(compiled: Compiled) -> bool:
    """True when the program was found in opentrn's cache instead of being compiled."""
    return bool(compiled.cost_analysis()["opentrn_cache_hit"])
