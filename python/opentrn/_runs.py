# SPDX-License-Identifier: Apache-2.0
"""What ran through PJRT (JAX, torch_xla, TensorFlow's device): the last program for last_run(), all of them for profile().

The plugin counts, by client (src/pjrt/runlog.c); modelled times are computed when they are asked for.
"""

import ctypes
import functools
import json
import os
import re
import time
from typing import Any

from opentrn import _library, _profile
from opentrn._report import checked_target, noted, told

_ANSWER_BYTES = 1 << 22
_CLIENTS = 64  # of a process, at most
_FUNCTION = re.compile(r"__inference_(.+)_\d+\[.*\]\.\d+")  # TensorFlow's name of a function, XLA's number behind it
_OPERATOR = re.compile(r"(?:StatefulPartitionedCall/)*(?!SyncTensorsGraph)(.+)\.\d+")  # … of an operator, in whatever function


def _clients() -> list[int]:
    """Those of this process, the newest first; what is under way has ended."""
    library = _library.load()
    found = (ctypes.c_int64 * _CLIENTS)()
    clients = found[: library.opentrn_clients(found, _CLIENTS)]
    for client in clients:
        library.opentrn_wait(client)
    return clients


def leave(last: bool) -> None:
    """This process launches nothing any more. last: it stays until the others have ended, or wait for what does not come (10 s)."""
    library, gone, waiting = _library.load(), 0, 1
    for client in _clients():
        library.opentrn_bye(client)
        since = time.monotonic()
        while last and (others := library.opentrn_others(client)) != gone and (others != waiting or time.monotonic() < since + 10):
            since = since if others == waiting else time.monotonic()
            time.sleep(0.01)


def _ask(function, *args):
    size = function(*args, out := ctypes.create_string_buffer(_ANSWER_BYTES), len(out))
    if size > len(out):
        size = function(*args, out := ctypes.create_string_buffer(size), len(out))
    if size < 0:
        raise RuntimeError(told(out.value))
    return json.loads(out.value)


def _target(target):
    return target.encode() if target else None


def _write(function, *args):
    out = ctypes.create_string_buffer(8192)
    if function(*args, out, len(out)):
        raise RuntimeError(told(out.value))


def last_run(
    target: str | None = None, trace: str | os.PathLike[str] | None = None
) -> dict[str, Any] | None:
    """Modelled time of the program that ran last, as opentrn.report tells it, with its `name` and the
    host time it took (`host_us`). None when nothing ran. trace: a file to write its timeline to, which
    Perfetto opens (FILE.gz: compressed), or FILE.html for a page with all that `otrn prof` tells. Waits for what is under way."""
    target = checked_target("last_run", target)
    clients, library = _clients(), _library.load()
    if not clients:
        raise RuntimeError(
            "opentrn has no device in this process yet, as JAX (JAX_PLATFORMS=opentrn), torch_xla or TensorFlow make one; "
            "opentrn.profile() sees every front end"
        )
    for client in clients:
        runs = _ask(library.opentrn_last_run, client, _target(target))
        if runs:
            if trace:
                _write(library.opentrn_trace, client, _target(target), str(trace).encode())
            return noted(runs[0])
    return None


def _title(run):
    """A name as the user knows it, with shapes where a front end's own names have none."""
    if run["name"].startswith("jit_"):
        return run["name"]
    match = _FUNCTION.fullmatch(run["name"]) or _OPERATOR.fullmatch(run["name"])
    return f"{match[1] if match else run['name']}({run['takes']})"


def _programs_of(client):
    library = _library.load()
    ask = functools.cache(lambda target: _ask(library.opentrn_runs, client, _target(target)))  # one answer tells about all programs

    def program(i, run):
        page = lambda target, path: _write(library.opentrn_runs_write, client, i, _target(target), path.encode())
        function = _FUNCTION.fullmatch(run["name"])
        group = (client, function[1]) if function else None
        return _profile.Program((client, i), _title(run), run["runs"], lambda target: ask(target)[i], page, group)

    return [program(i, run) for i, run in enumerate(_ask(library.opentrn_runs, client, None))]


def programs() -> list[_profile.Program]:
    """Those that ran while a profile is taken."""
    return [p for client in _clients() for p in _programs_of(client)]


def keep() -> None:
    """From now on programs are recorded without a profile, too: what explain() of a front end tells."""
    _library.load().opentrn_record(True)


def told() -> list[str]:
    """A line for each program that was recorded."""
    rows = [(p.name, p.runs, p.report(None)) for p in programs()]
    return [f"  {name}: {runs} runs, {r['total_us']:.1f} us each on {r['target']}" for name, runs, r in rows]


def _record(begins):
    _clients()  # what runs still belongs to the time before
    _library.load().opentrn_record(begins)


_profile.SOURCES.append(_profile.Source(programs, lambda: _record(True), lambda: _record(False)))
