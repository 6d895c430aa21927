# SPDX-License-Identifier: Apache-2.0
"""The processes of a job, each with a device: src/rt/world.c through ctypes."""

import ctypes
import datetime
import functools
import hashlib
import os

from opentrn import _runtime

_P, _SIZE = ctypes.c_void_p, ctypes.c_size_t
_PUT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, _P, _SIZE)
_GET = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_uint, _P, _SIZE, _P, _SIZE)
_WHY = 600


class _Part(ctypes.Structure):
    _fields_ = [("data", _P), ("bytes", _SIZE), ("process", ctypes.c_uint32)]


_PROTOTYPES = {
    "opentrn_world_open": (_P, [_P, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint, _PUT, _GET, _P, _SIZE]),
    "opentrn_world_close": (None, [_P]),
    "opentrn_world_bye": (None, [_P]),
    "opentrn_world_lost": (ctypes.c_int, [_P]),
    "opentrn_world_execute": (
        ctypes.c_int,
        [_P, _P, ctypes.c_uint64, _P, ctypes.c_uint32, _P, _SIZE, _P, _SIZE, _P],
    ),
    "opentrn_world_exchange": (
        ctypes.c_int,
        [_P, ctypes.c_uint64, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, _P, ctypes.c_uint32, _P, ctypes.c_uint32, _P, _SIZE],
    ),
}


@functools.cache
def _library():
    library = _runtime._load()
    for name, (result, arguments) in _PROTOTYPES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


@functools.cache
def key(*names):
    """64 bits that name something, the same in every process."""
    return int.from_bytes(hashlib.sha256(repr(names).encode()).digest()[:8], "little")


def _write(text, out, size):
    text = text.encode()[: size - 1] + b"\0"
    ctypes.memmove(out, text, len(text))


def _store_functions(store):
    """torch's store as the two functions that the library wants."""

    def put(name, value, why, size):
        try:
            store.set(name.decode(), value)
        except Exception as error:  # it goes on as text through C
            _write(str(error), why, size)
            return 0
        return 1

    def get(name, timeout_ms, value, room, why, size):
        try:
            store.wait([name.decode()], datetime.timedelta(milliseconds=timeout_ms))
            found = store.get(name.decode()).decode()
        except Exception as error:
            _write(str(error), why, size)
            return 0
        _write(found, value, room)
        return 1

    return _PUT(put), _GET(get)


def _parts(rows):
    return (_Part * len(rows))(*rows)


class World:
    """Processes that know each other. Opening it waits for all of them."""

    def __init__(self, store, process, processes, timeout):
        self.lib, self.process, self.processes, self.pid = _library(), process, processes, os.getpid()
        self._environment = _runtime.default_environment()
        functions, why = _store_functions(store), ctypes.create_string_buffer(_WHY)
        self._handle = self.lib.opentrn_world_open(
            self._environment._handle, process, processes, int(timeout.total_seconds() * 1000), *functions, why, _WHY
        )
        if not self._handle:
            raise RuntimeError(
                f"opentrn: the processes of this job cannot work together: {why.value.decode(errors='replace')}"
            )

    def close(self):
        """A process that was forked from this one leaves the connections alone."""
        handle, self._handle = self._handle, None
        if handle and self.pid == os.getpid():
            self.lib.opentrn_world_close(handle)

    @property
    def lost(self):
        return bool(self._handle) and bool(self.lib.opentrn_world_lost(self._handle))

    def _live(self):
        if not self._handle:
            raise RuntimeError("opentrn: the process group was destroyed")
        return self._handle

    def execute(self, executable, name, ranks):
        """A function that runs a program with these ranks: (args, results) as Executable.run takes them. name: of those
        who meet, the same for all of them."""
        with_ = (ctypes.c_uint32 * len(ranks))(*ranks)
        call, handle, set_, count = self.lib.opentrn_world_execute, executable._handle, key("program", name), len(ranks)
        buffer, byref = _runtime._Buffer, ctypes.byref

        def run(args, results):
            given, taken = (buffer * len(args))(*args), (buffer * len(results))(*results)
            error = _runtime._Error()
            if call(self._live(), handle, set_, with_, count, given, len(args), taken, len(results), byref(error)):
                _runtime._raise(self.lib, error)

        run.executable = executable  # type: ignore[attr-defined]  # lives as long
        return run

    def execute_one(self, executable, name, ranks, given, taken):
        """The same for a program of one argument and one result, of so many bytes: a function of their addresses. What C is
        given is made once, because a small collective takes less than making it."""
        with_ = (ctypes.c_uint32 * len(ranks))(*ranks)
        a, b, error = _runtime._Buffer(None, given), _runtime._Buffer(None, taken), _runtime._Error()
        at = ctypes.byref(a), 1, ctypes.byref(b), 1, ctypes.byref(error)
        call, rest = self.lib.opentrn_world_execute, (executable._handle, key("program", name), with_, len(ranks), *at)

        def run(from_, to):
            a.data, b.data = from_, to
            if call(self._live(), *rest):
                _runtime._raise(self.lib, error)

        run.executable = executable  # type: ignore[attr-defined]  # lives as long
        return run

    def exchange(self, tag, what, op, out, into, unasked=False):
        """out, into: (address, bytes, process) of what goes to others and comes from them. unasked: they may send before they
        ask for it."""
        why = ctypes.create_string_buffer(_WHY)
        done = self.lib.opentrn_world_exchange(
            self._live(), tag, unasked, what.encode(), op.encode(), _parts(out), len(out), _parts(into), len(into), why, _WHY
        )
        if not done:
            raise RuntimeError(f"opentrn: {op} of {what}: {why.value.decode(errors='replace')}")
