# SPDX-License-Identifier: Apache-2.0
"""Where the plugin library is, and the two plain functions it has beside the PJRT table."""

import ctypes
import functools
import os
import pathlib

NAME = "libotrn_pjrt.so"


def library_path(name=NAME):
    """OTRN_PJRT_LIBRARY, else build/ of the source tree this file is in, else the one in the
    package. Other libraries lie beside the plugin."""
    given = os.environ.get("OTRN_PJRT_LIBRARY")
    if given:
        return str(pathlib.Path(given).parent / name) if name != NAME else given
    package = pathlib.Path(__file__).resolve().parent
    tree = package.parent.parent
    in_tree = (tree / "include" / "otrn.h").exists()
    return str((tree / "build" if in_tree else package) / name)


@functools.cache
def load():
    library = ctypes.CDLL(library_path())
    library.opentrn_option.restype = ctypes.c_long
    library.opentrn_option.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t]
    library.opentrn_report.restype = ctypes.c_int
    library.opentrn_report.argtypes = [
        ctypes.c_char_p,
        ctypes.c_size_t,
        ctypes.c_char_p,
        ctypes.c_char_p,
        ctypes.c_size_t,
    ]
    library.opentrn_set_host.restype = None
    library.opentrn_set_host.argtypes = [ctypes.c_int64, ctypes.c_void_p]
    text = [ctypes.c_char_p, ctypes.c_size_t]
    library.opentrn_wait.restype = None
    library.opentrn_wait.argtypes = [ctypes.c_int64]
    library.opentrn_cache_wait.restype = None
    library.opentrn_cache_wait.argtypes = [ctypes.c_int64]
    library.opentrn_last_run.restype = ctypes.c_long
    library.opentrn_last_run.argtypes = [ctypes.c_int64, ctypes.c_char_p, *text]
    library.opentrn_runs.restype = ctypes.c_long
    library.opentrn_runs.argtypes = [ctypes.c_int64, ctypes.c_int, ctypes.c_char_p, *text]
    library.opentrn_trace.restype = ctypes.c_int
    library.opentrn_trace.argtypes = [ctypes.c_int64, ctypes.c_char_p, ctypes.c_char_p, *text]
    library.opentrn_is_idle.restype = ctypes.c_int
    library.opentrn_is_idle.argtypes = [ctypes.c_int64]
    return library


def option(name):
    """The value of an option as the environment sets it; opentrn's option table decides, not
    Python."""
    out = ctypes.create_string_buffer(4096)
    if load().opentrn_option(name.encode(), out, len(out)) <= 0:
        raise RuntimeError(out.value.decode() or f"opentrn has no option {name}")
    return out.value.decode()
