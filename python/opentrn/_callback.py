# SPDX-License-Identifier: Apache-2.0
"""Programs that call Python: pure_callback, io_callback, debug.print and their kin.

A callback becomes a custom call that says a name, which the plugin made up for it and nobody can
guess (src/rt/host.c); the chip runs it as a kernel instruction that asks the host for that name, with
the sizes of its operands and results. A name belongs to one program of one process: loaded in
another, an executable with callbacks is refused. The plugin knows which executables still may call,
and an entry lives until none may.
"""

import collections
import concurrent.futures
import ctypes
import itertools
import threading
import traceback

import numpy as np

from opentrn import _library

TARGET = "opentrn_host_callback"
MARK = "opentrn.calls_host"  # a module's attribute: it has such calls

_ids = itertools.count(1)  # of entries, told to the plugin alone
_entries: dict[int, "_Entry"] = {}
_gone: collections.deque["_Entry"] = collections.deque()  # entries whose programs are gone, with launches still under way
_sweeping = threading.Lock()


class _Call(ctypes.Structure):  # otrn_host_call of otrn.h
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("num_args", ctypes.c_size_t),
        ("num_results", ctypes.c_size_t),
        ("args", ctypes.POINTER(ctypes.c_void_p)),
        ("arg_bytes", ctypes.POINTER(ctypes.c_size_t)),
        ("results", ctypes.POINTER(ctypes.c_void_p)),
        ("result_bytes", ctypes.POINTER(ctypes.c_size_t)),
        ("why", ctypes.c_void_p),
        ("why_bytes", ctypes.c_size_t),
    ]


class _Entry:
    """A callback with the shapes and element types it takes and gives."""

    def __init__(self, device, function, operands, results):
        self.device = device  # and with it the client
        self.function = function
        self.operands = operands
        self.results = results
        self.id = next(_ids)
        _entries[self.id] = self
        args, given = _sizes(operands), _sizes(results)
        out = ctypes.create_string_buffer(256)
        host = ctypes.cast(_host, ctypes.c_void_p)
        if _library.load().opentrn_host_add(
            device.opentrn_client, host, self.id, args, len(args), given, len(given), out, len(out)
        ):
            del _entries[self.id]
            raise RuntimeError(f"opentrn: {out.value.decode()}")
        self.name = out.value

    def drop(self):
        """True when nobody can call it any more."""
        if not _library.load().opentrn_host_drop(self.device.opentrn_client, self.name):
            return False
        _entries.pop(self.id, None)
        return True

    def run(self, call):
        self.check("operand", self.operands, call.num_args, call.arg_bytes)
        self.check("result", self.results, call.num_results, call.result_bytes)
        values = self.function(
            *(_read(call.args[i], *described) for i, described in enumerate(self.operands))
        )
        if len(values) != len(self.results):
            raise RuntimeError(
                "Mismatched number of outputs from callback. "
                f"Expected: {len(self.results)}, Actual: {len(values)}"
            )
        for i, (value, (shape, dtype)) in enumerate(zip(values, self.results)):
            _write(call.results[i], _checked(value, shape, dtype, i))

    @staticmethod
    def check(what, described, count, sizes):
        """The plugin has done so when it loaded the program; memory is written behind this."""
        if list(_sizes(described)) != sizes[:count]:
            raise RuntimeError(f"a program calls with another {what}s' size than its callback has")


def _size(shape, dtype):
    return int(np.prod(shape, dtype=np.int64)) * dtype.itemsize


def _sizes(described):
    return (ctypes.c_size_t * len(described))(*(_size(*one) for one in described))


class _Guard:
    """Held by the executables that may call the entry."""

    def __init__(self, entry):
        self.entry = entry

    def __reduce__(self):  # of an executable that is to be stored
        raise TypeError("opentrn: an executable that calls Python works in its own process only and cannot be stored")

    def __del__(self):
        if _gone is not None and _library is not None:  # the interpreter may be ending
            _gone.append(self.entry)
            _sweep()


def _sweep():
    """Runs in any thread and, since guards go when they like, also inside itself: one at a time, and
    the others leave what there is to the next."""
    if not _sweeping.acquire(blocking=False):
        return
    try:
        for _ in range(len(_gone)):
            entry = _gone.popleft()
            if not entry.drop():
                _gone.append(entry)
    finally:
        _sweeping.release()


def _bytes(address, size):
    return (ctypes.c_uint8 * size).from_address(address)


def _read(address, shape, dtype):
    """A copy, because the callback may keep what it gets."""
    size = _size(shape, dtype)
    data = bytearray(_bytes(address, size)) if size else bytearray()
    return np.frombuffer(data, dtype=dtype).reshape(shape)


def _checked(value, shape, dtype, i):
    from jax._src import dtypes

    value = np.asarray(dtypes.canonicalize_value(np.asarray(value)))
    if value.shape != shape:
        raise RuntimeError(
            f"Incorrect output shape for return value #{i}: Expected: {shape}, "
            f"Actual: {value.shape}"
        )
    if value.dtype != dtype:
        raise RuntimeError(
            f"Incorrect output dtype for return value #{i}: Expected: {dtype}, "
            f"Actual: {value.dtype}"
        )
    return value


def _write(address, value):
    if value.dtype.name in ("int2", "int4"):
        value = value.astype(np.int8)  # the device keeps the sign in all bits of the byte
    data = np.ascontiguousarray(value).tobytes()
    ctypes.memmove(address, data, len(data))


def _run(entry, call):
    """Short runs happen on the caller's thread, where a mesh may be set. It is no business of the function called, which
    then runs on a thread of its own."""
    import jax

    if jax.sharding.get_abstract_mesh().empty:
        entry.run(call)
    else:
        with concurrent.futures.ThreadPoolExecutor(1) as thread:
            thread.submit(entry.run, call).result()


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(_Call))
def _host(id, call):
    call = call.contents
    try:
        _run(_entries[id], call)
        return 0
    except BaseException as error:
        last = traceback.extract_tb(error.__traceback__)[-1:]
        where = f" ({last[0].filename}:{last[0].lineno})" if last else ""
        text = f"callback failed: {type(error).__name__}: {error}{where}".encode()
        text = text[: max(call.why_bytes - 1, 0)] + b"\0"
        if call.why_bytes:
            ctypes.memmove(call.why, text, len(text))
        return 1


def emit(ctx, callback, token, operands, operand_avals, result_avals, *, has_side_effect):
    """What jax._src.callback.emit_python_callback does for its own platforms."""
    from jax._src.interpreters import mlir
    from jax._src.lib.mlir import ir
    from jax._src.lib.mlir.dialects import hlo

    _sweep()
    backend = ctx.module_context.get_backend()

    def described(avals):
        return [(tuple(a.shape), np.dtype(a.dtype)) for a in avals]

    entry = _Entry(
        backend.devices()[0], callback, described(operand_avals), described(result_avals)
    )
    guard = _Guard(entry)
    ctx.module_context.add_keepalive(guard)
    ctx.module_context.module.operation.attributes[MARK] = ir.UnitAttr.get()
    types = [
        ir.RankedTensorType.get(a.shape, mlir.dtype_to_ir_type(np.dtype(a.dtype)))
        for a in result_avals
    ]
    tokens = [hlo.TokenType.get()] if token else []
    call = mlir.custom_call(
        TARGET,
        result_types=[*tokens, *types],
        operands=[*([token] if token else []), *operands],
        backend_config=entry.name.decode(),
        has_side_effect=has_side_effect,
    )
    results = list(call.results)
    if token:
        token, *results = results
    return results, token, guard
