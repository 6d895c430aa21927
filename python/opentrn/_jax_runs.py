# SPDX-License-Identifier: Apache-2.0
"""What JAX ran on the device: the last program for last_run(), all of them for profile().

The plugin counts (src/pjrt/runlog.c); modelled times are computed when they are asked for.
"""

import ctypes
import functools
import json
import os
import sys
from typing import Any

from opentrn import _library, _profile
from opentrn._report import checked_target, noted, told

_ANSWER_BYTES = 1 << 22
_STOP, _START, _ASK = 0, 1, 2


def _client():
    jax = sys.modules.get("jax")
    if jax is None:  # then it ran nothing; other front ends need not have it
        return None
    for platform in ("opentrn", "neuron"):
        try:
            return jax.local_devices(backend=platform)[0].opentrn_client
        except (RuntimeError, AttributeError):
            continue
    return None


def _ask(function, *args):
    out = ctypes.create_string_buffer(_ANSWER_BYTES)
    size = function(*args, out, len(out))
    if size < 0 or size > len(out):
        raise RuntimeError(told(out.value) if size < 0 else "the answer is too long")
    return json.loads(out.value)


def _target(target):
    return target.encode() if target else None


def last_run(
    target: str | None = None, trace: str | os.PathLike[str] | None = None
) -> dict[str, Any] | None:
    """Modelled time of the program that ran last, as opentrn.report tells it, with its `name` and the
    host time it took (`host_us`). None when nothing ran. trace: a file to write its timeline to, which
    Perfetto opens (FILE.gz: compressed), or FILE.html for a page with all that `otrn prof` tells. Waits for what is under way."""
    target = checked_target("last_run", target)
    client, library = _client(), _library.load()
    if client is None:
        raise RuntimeError("JAX has no opentrn device in this process: start it with JAX_PLATFORMS=opentrn; opentrn.profile() sees every front end")
    library.opentrn_wait(client)
    runs = _ask(library.opentrn_last_run, client, _target(target))
    if runs and trace:
        _write(library.opentrn_trace, client, _target(target), str(trace).encode())
    return noted(runs[0]) if runs else None


def _runs(mode, target=None):
    client = _client()
    if client is None:
        return []
    library = _library.load()
    library.opentrn_wait(client)
    return _ask(library.opentrn_runs, client, mode, _target(target))


def _write(function, *args):
    out = ctypes.create_string_buffer(8192)
    if function(*args, out, len(out)):
        raise RuntimeError(told(out.value))


def _programs():
    ask = functools.cache(lambda target: _runs(_ASK, target))  # one answer tells about all programs
    client, library = _client(), _library.load()

    def program(i, run):
        page = lambda target, path: _write(library.opentrn_runs_write, client, i, _target(target), path.encode())
        return _profile.Program(i, run["name"], run["runs"], lambda target: ask(target)[i], page)

    return [program(i, run) for i, run in enumerate(_runs(_ASK))]


_profile.SOURCES.append(_profile.Source(_programs, lambda: _runs(_START), lambda: _runs(_STOP)))
