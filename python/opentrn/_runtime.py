# SPDX-License-Identifier: Apache-2.0
"""include/otrn.h through ctypes: compile a program, run it on plain pointers, ask for modelled
time.

The structures below repeat the header's; those that begin with struct_size tell the library how much of theirs
we know. tests/python/test_runtime.py runs a program through each call.
"""

import ctypes
import functools
import os
import sys
import threading
import warnings

from opentrn._library import library_path

MAX_RANK = 32
ENGINES = 8
COLLECTIVES = 8
ABI = 1


class Error(RuntimeError):
    """What the library says, with its code ("CAPACITY", …) in `code`."""

    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


class _Sized(ctypes.Structure):
    """A struct that may grow: its first field says how much of it we have."""

    def __init__(self):
        super().__init__(struct_size=ctypes.sizeof(self))


class _Error(_Sized):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("code", ctypes.c_int),
        ("line", ctypes.c_uint32),
        ("col", ctypes.c_uint32),
        ("file", ctypes.c_char * 256),
        ("text", ctypes.c_char * 1024),
        ("hint", ctypes.c_char * 512),
    ]


class _Option(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("value", ctypes.c_char_p)]


class _Type(ctypes.Structure):
    _fields_ = [
        ("dtype", ctypes.c_int),
        ("rank", ctypes.c_int),
        ("dims", ctypes.c_int64 * MAX_RANK),
    ]


class _Buffer(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]


class _Memory(_Sized):
    _fields_ = [("struct_size", ctypes.c_size_t)] + [
        (name, ctypes.c_uint64)
        for name in (
            "arg_bytes",
            "result_bytes",
            "alias_bytes",
            "scratch_bytes",
            "const_bytes",
            "code_bytes",
            "peak_bytes",
            "capacity_bytes",
        )
    ]


class _Collective(ctypes.Structure):
    _fields_ = [
        ("kind", ctypes.c_char * 32),
        ("ranks", ctypes.c_uint32),
        ("groups", ctypes.c_uint32),
        ("stride", ctypes.c_uint32),
        ("line", ctypes.c_uint32),
        ("file", ctypes.c_char * 128),
        ("count", ctypes.c_double),
        ("bytes", ctypes.c_double),
        ("busy_us", ctypes.c_double),
        ("exposed_us", ctypes.c_double),
    ]


class _Report(_Sized):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("target", ctypes.c_char * 64),
        ("total_us", ctypes.c_double),
        ("busy_us", ctypes.c_double * ENGINES),
        ("instructions", ctypes.c_uint64 * ENGINES),
        ("flops", ctypes.c_double),
        ("hbm_bytes", ctypes.c_double),
        ("hbm_peak_bytes", ctypes.c_double),
        ("usd_per_hour", ctypes.c_double),
        ("unknown_loops", ctypes.c_uint64),
        ("counted_loops", ctypes.c_uint64),
        ("assumed_trips", ctypes.c_uint64),
        ("devices", ctypes.c_uint32),
        ("cores_per_device", ctypes.c_uint32),
        ("machines", ctypes.c_uint32),
        ("instance", ctypes.c_char * 64),
        ("price_basis", ctypes.c_char * 160),
        ("flops_peak", ctypes.c_double),
        ("utilisation", ctypes.c_double),
        ("comm_us", ctypes.c_double),
        ("exposed_comm_us", ctypes.c_double),
        ("link_bytes", ctypes.c_double),
        ("comm_note", ctypes.c_char * 512),
        ("num_collectives", ctypes.c_uint32),
        ("collectives", _Collective * COLLECTIVES),
    ]


_P = ctypes.c_void_p
_PROTOTYPES = {  # name: (result, arguments)
    "otrn_open": (ctypes.c_int, [_P, ctypes.c_size_t, _P, _P]),
    "otrn_stop_on_interrupt": (None, [_P]),
    "opentrn_draws_on": (None, [_P]),
    "otrn_compile": (ctypes.c_int, [_P, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, _P, _P]),
    "otrn_warning": (ctypes.c_int, [_P, ctypes.c_char_p, ctypes.c_size_t]),
    "otrn_exe_free": (None, [_P]),
    "otrn_exe_bytes": (_P, [_P, _P]),
    "otrn_exe_num_args": (ctypes.c_size_t, [_P]),
    "otrn_exe_num_results": (ctypes.c_size_t, [_P]),
    "otrn_exe_arg_type": (ctypes.POINTER(_Type), [_P, ctypes.c_size_t]),
    "otrn_exe_result_type": (ctypes.POINTER(_Type), [_P, ctypes.c_size_t]),
    "otrn_exe_result_alias": (ctypes.c_int64, [_P, ctypes.c_size_t]),
    "otrn_exe_arg_name": (ctypes.c_char_p, [_P, ctypes.c_size_t]),
    "otrn_exe_result_name": (ctypes.c_char_p, [_P, ctypes.c_size_t]),
    "otrn_exe_memory": (ctypes.c_int, [_P, _P, _P]),
    "otrn_exe_cached": (ctypes.c_int, [_P]),
    "otrn_execute": (ctypes.c_int, [_P, _P, ctypes.c_size_t, _P, ctypes.c_size_t, _P]),
    "otrn_time": (ctypes.c_int, [_P, ctypes.c_char_p, _P, _P]),
    "otrn_profile_make": (ctypes.c_int, [_P, ctypes.c_char_p, _P, _P]),
    "otrn_profile_trace": (ctypes.c_int, [_P, ctypes.c_char_p, _P]),
    "otrn_profile_free": (None, [_P]),
    "otrn_engine_name": (ctypes.c_char_p, [ctypes.c_int]),
    "otrn_dtype_name": (ctypes.c_char_p, [ctypes.c_int]),
    "otrn_status_name": (ctypes.c_char_p, [ctypes.c_int]),
    "otrn_error_print": (ctypes.c_size_t, [_P, ctypes.c_char_p, ctypes.c_size_t]),
}


@functools.cache
def _load():
    library = ctypes.CDLL(library_path())
    if getattr(library, "otrn_abi", lambda: 0)() != ABI:
        raise ImportError(
            f"{library._name} is of another release than this package: install both together"
        )
    for name, (result, arguments) in _PROTOTYPES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def _raise(library, error):
    out = ctypes.create_string_buffer(4096)
    library.otrn_error_print(ctypes.byref(error), out, len(out))
    raise Error(library.otrn_status_name(error.code).decode(), out.value.decode().strip())


class Environment:
    """One virtual core. Options not given come from the environment, as everywhere."""

    def __init__(self, **options):
        self.lib = _load()
        rows = (_Option * max(1, len(options)))(
            *[_Option(k.encode(), str(v).encode()) for k, v in options.items()]
        )
        self._handle = _P()
        error = _Error()
        if self.lib.otrn_open(
            rows, len(options), ctypes.byref(self._handle), ctypes.byref(error)
        ):
            _raise(self.lib, error)
        self.lib.otrn_stop_on_interrupt(self._handle)  # Ctrl-C ends a run, and then raises KeyboardInterrupt
        self.lib.opentrn_draws_on(self._handle)  # each run draws other random numbers

    def compile(self, program, name):
        """program: bytes of StableHLO text or bytecode, or of an artifact."""
        handle, error = _P(), _Error()
        if self.lib.otrn_compile(
            self._handle,
            program,
            len(program),
            name.encode(),
            ctypes.byref(handle),
            ctypes.byref(error),
        ):
            _raise(self.lib, error)
        out = ctypes.create_string_buffer(1024)
        if self.lib.otrn_warning(self._handle, out, len(out)):
            warnings.warn(f"opentrn: {out.value.decode(errors='replace')}", stacklevel=2)
        return Executable(self, handle)


class Executable:
    def __init__(self, env, handle):
        self._env = env  # outlives its programs
        self._lib = env.lib
        self._handle = handle
        self._execute = env.lib.otrn_execute
        self._reports = {}  # of what does not change any more

    def __del__(self):
        self._lib.otrn_exe_free(self._handle)

    @property
    def cached(self):
        return bool(self._lib.otrn_exe_cached(self._handle))

    def aliases(self):
        """For each result the argument whose memory it takes over, or -1."""
        count = self._lib.otrn_exe_num_results(self._handle)
        return [self._lib.otrn_exe_result_alias(self._handle, i) for i in range(count)]

    def _types(self, count, get):
        types = (get(self._handle, i).contents for i in range(count))
        name = self._lib.otrn_dtype_name
        return [(name(t.dtype).decode(), tuple(t.dims[: t.rank])) for t in types]

    def arg_types(self):
        library = self._lib
        return self._types(library.otrn_exe_num_args(self._handle), library.otrn_exe_arg_type)

    def result_types(self):
        library = self._lib
        return self._types(library.otrn_exe_num_results(self._handle), library.otrn_exe_result_type)

    def _names(self, count, get):
        return [get(self._handle, i).decode() for i in range(count)]

    def arg_names(self):
        """What the program calls its arguments, "" where it does not."""
        library = self._lib
        return self._names(library.otrn_exe_num_args(self._handle), library.otrn_exe_arg_name)

    def result_names(self):
        library = self._lib
        return self._names(library.otrn_exe_num_results(self._handle), library.otrn_exe_result_name)

    def run(self, args, results):
        """args, results: (address, bytes) of dense row-major memory."""
        given, taken = (_Buffer * len(args))(*args), (_Buffer * len(results))(*results)
        error = _Error()
        if self._execute(self._handle, given, len(args), taken, len(results), ctypes.byref(error)):
            _raise(self._lib, error)

    def artifact(self):
        size = ctypes.c_size_t()
        at = self._lib.otrn_exe_bytes(self._handle, ctypes.byref(size))
        return ctypes.string_at(at, size.value)

    def memory(self):
        out, error = _Memory(), _Error()
        if self._lib.otrn_exe_memory(self._handle, ctypes.byref(out), ctypes.byref(error)):
            _raise(self._lib, error)
        return {name: getattr(out, name) for name, *_ in _Memory._fields_[1:]}

    def write(self, target, path):
        """Its timeline as a file: a trace, or a page when the name ends in .html."""
        error, wanted, profile = _Error(), target.encode() if target else None, _P()
        made = self._lib.otrn_profile_make(self._handle, wanted, ctypes.byref(profile), ctypes.byref(error))
        failed = made or self._lib.otrn_profile_trace(profile, str(path).encode(), ctypes.byref(error))
        self._lib.otrn_profile_free(profile)
        if failed:
            _raise(self._lib, error)

    def report(self, target=None):
        """Modelled time of one run, as the dict that opentrn.report gives."""
        if target not in self._reports:
            out, error = _Report(), _Error()
            wanted = target.encode() if target else None
            if self._lib.otrn_time(
                self._handle, wanted, ctypes.byref(out), ctypes.byref(error)
            ):
                _raise(self._lib, error)
            engines = [self._lib.otrn_engine_name(i).decode() for i in range(ENGINES)]
            report = {name: getattr(out, name) for name, *_ in _Report._fields_}
            for name in ("target", "instance", "price_basis", "comm_note"):
                report[name] = report[name].decode(errors="replace")
            kinds = report["collectives"][: min(report.pop("num_collectives"), COLLECTIVES)]
            report["collectives"] = [
                {f: v.decode(errors="replace") if isinstance(v := getattr(c, f), bytes) else v for f, *_ in _Collective._fields_}
                for c in kinds
            ]
            for name in ("busy_us", "instructions"):
                report[name] = dict(zip(engines, report[name], strict=True))
            report["usd_per_hour"] = out.usd_per_hour or None  # not known
            if out.unknown_loops or out.counted_loops:
                return report  # the next run may count others
            self._reports[target] = report
        return self._reports[target]


_lock = threading.Lock()
_default: dict[int, "Environment"] = {}  # process id -> Environment: a forked child opens a device of its own


def _framework_threads():
    """PyTorch's own number of threads, where the process has PyTorch and OTRN_THREADS says nothing: who leaves it one core
    (OMP_NUM_THREADS, torch.set_num_threads, a worker beside others) means all that computes there."""
    torch = sys.modules.get("torch")
    return {"threads": torch.get_num_threads()} if torch and not os.environ.get("OTRN_THREADS") else {}


def default_environment():
    with _lock:
        pid = os.getpid()
        if pid not in _default:
            _default.clear()
            _default[pid] = Environment(**_framework_threads())
        return _default[pid]
