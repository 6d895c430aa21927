# SPDX-License-Identifier: Apache-2.0
"""Programs that call Python: pure_callback, io_callback, debug.print and their kin.

A callback becomes a custom call that carries a number; the chip runs it as a kernel instruction that
asks the host for that number (src/chip/gp_host.c), and one function of ours answers for all. An
entry lives as long as the executables that may ask for it, and longer while launches are under way:
an executable may be gone before its last run has begun.
"""

import concurrent.futures
import ctypes
import itertools
import threading
import traceback

import numpy as np

from opentrn import _library

TARGET = "opentrn_host_callback"

_numbers = itertools.count(1)
_entries = {}
_gone = []  # entries whose executables are gone
_clients = set()
_lock = threading.Lock()


class _Entry:
    """A callback with the shapes and element types it takes and gives."""

    def __init__(self, device, function, operands, results):
        self.device = device  # and with it the client
        self.function = function
        self.operands = operands
        self.results = results
        self.number = next(_numbers)
        _entries[self.number] = self

    def run(self, args, results):
        values = self.function(
            *(_read(args[i], *self.operands[i]) for i in range(len(self.operands)))
        )
        if len(values) != len(self.results):
            raise RuntimeError(
                "Mismatched number of outputs from callback. "
                f"Expected: {len(self.results)}, Actual: {len(values)}"
            )
        for i, (value, (shape, dtype)) in enumerate(zip(values, self.results)):
            _write(results[i], _checked(value, shape, dtype, i))


class _Guard:
    """Held by the executables that may call the entry."""

    def __init__(self, entry):
        self.entry = entry

    def __del__(self):
        if _gone is not None and _library is not None:  # the interpreter may be ending
            _gone.append(self.entry.number)
            _sweep()


def _sweep():
    for number in list(_gone):
        entry = _entries.get(number)
        if entry is None or _library.load().opentrn_is_idle(entry.device.opentrn_client):
            _entries.pop(number, None)
            _gone.remove(number)


def _bytes(address, size):
    return (ctypes.c_uint8 * size).from_address(address)


def _read(address, shape, dtype):
    """A copy, because the callback may keep what it gets."""
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
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


_HOST = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.c_uint64,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.c_void_p,
    ctypes.c_size_t,
)


def _run(entry, args, results):
    """Short runs happen on the caller's thread, where a mesh may be set. It is no business of the function called, which
    then runs on a thread of its own."""
    import jax

    if jax.sharding.get_abstract_mesh().empty:
        entry.run(args, results)
    else:
        with concurrent.futures.ThreadPoolExecutor(1) as thread:
            thread.submit(entry.run, args, results).result()


@_HOST
def _host(_, number, args, results, why, why_bytes):
    try:
        entry = _entries.get(number)
        if entry is None:
            raise RuntimeError(f"callback {number} does not belong to this process")
        _run(entry, args, results)
        return 0
    except BaseException as error:
        last = traceback.extract_tb(error.__traceback__)[-1:]
        where = f" ({last[0].filename}:{last[0].lineno})" if last else ""
        text = f"callback failed: {type(error).__name__}: {error}{where}".encode()
        text = text[: max(why_bytes - 1, 0)] + b"\0"
        if why_bytes:
            ctypes.memmove(why, text, len(text))
        return 1


def connect(backend):
    """Tells the client of these devices where to call."""
    client = backend.devices()[0].opentrn_client
    with _lock:
        if client not in _clients:
            _library.load().opentrn_set_host(client, ctypes.cast(_host, ctypes.c_void_p))
            _clients.add(client)


def emit(ctx, callback, token, operands, operand_avals, result_avals, *, has_side_effect):
    """What jax._src.callback.emit_python_callback does for its own platforms."""
    from jax._src.interpreters import mlir
    from jax._src.lib.mlir import ir
    from jax._src.lib.mlir.dialects import hlo

    _sweep()
    backend = ctx.module_context.get_backend()
    connect(backend)

    def described(avals):
        return [(tuple(a.shape), np.dtype(a.dtype)) for a in avals]

    entry = _Entry(
        backend.devices()[0], callback, described(operand_avals), described(result_avals)
    )
    guard = _Guard(entry)
    ctx.module_context.add_keepalive(guard)
    types = [
        ir.RankedTensorType.get(a.shape, mlir.dtype_to_ir_type(np.dtype(a.dtype)))
        for a in result_avals
    ]
    tokens = [hlo.TokenType.get()] if token else []
    call = mlir.custom_call(
        TARGET,
        result_types=[*tokens, *types],
        operands=[*([token] if token else []), *operands],
        backend_config=str(entry.number),
        has_side_effect=has_side_effect,
    )
    results = list(call.results)
    if token:
        token, *results = results
    return results, token, guard
