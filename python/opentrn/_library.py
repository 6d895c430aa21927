# SPDX-License-Identifier: Apache-2.0
"""Where the library is, what lies beside it, and the plain functions it has beside the PJRT table."""

import ctypes
import functools
import os
import pathlib
from typing import Any


def _place(in_tree: str, name: str) -> pathlib.Path:
    """In the source tree this file is in, or in the package where it is installed."""
    package = pathlib.Path(__file__).resolve().parent
    tree = package.parent.parent
    return tree / in_tree / name if (tree / "include" / "otrn.h").exists() else package / name


def release() -> str:
    """What the header says; library and package are of one release."""
    header = (pathlib.Path(include_path()) / "otrn.h").read_text(encoding="utf-8")
    return header.split('#define OTRN_RELEASE "')[1].split('"')[0]


def library_path() -> str:
    """The library that is JAX's plugin, the C interface and the `otrn` program: OTRN_PJRT_LIBRARY,
    else build/ of the source tree this file is in, else the one in the package."""
    given = os.environ.get("OTRN_PJRT_LIBRARY")
    return given or str(_place("build", f"libotrn.so.{release().rpartition('.')[0]}"))  # its SONAME: C programs link it


def include_path() -> str:
    """The folder of otrn.h: `cc -I$(python -c 'import opentrn; print(opentrn.include_path())')`."""
    return str(_place("", "include"))


def chips_path() -> str:
    """The folder of the chip files and the table of instances, to copy and change (`--target=FILE`,
    `--chips=DIR`)."""
    return str(_place("", "chips"))


@functools.cache
def load() -> ctypes.CDLL:
    library = ctypes.CDLL(library_path())
    library.opentrn_option.restype = ctypes.c_long
    library.opentrn_option.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t]
    library.opentrn_report.restype = ctypes.c_int
    library.opentrn_report.argtypes = [
        ctypes.c_char_p,
        ctypes.c_size_t,
        ctypes.c_char_p,
        ctypes.c_char_p,
        ctypes.c_char_p,
        ctypes.c_size_t,
    ]
    text: list[Any] = [ctypes.c_char_p, ctypes.c_size_t]
    sizes: list[Any] = [ctypes.POINTER(ctypes.c_size_t), ctypes.c_size_t]
    library.opentrn_host_add.restype = ctypes.c_int
    library.opentrn_host_add.argtypes = [ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, *sizes, *sizes, *text]
    library.opentrn_host_drop.restype = ctypes.c_int
    library.opentrn_host_drop.argtypes = [ctypes.c_int64, ctypes.c_char_p]
    library.opentrn_warning.restype = ctypes.c_int
    library.opentrn_warning.argtypes = [ctypes.c_int64, *text]
    library.opentrn_wait.restype = None
    library.opentrn_wait.argtypes = [ctypes.c_int64]
    library.opentrn_cache_wait.restype = None
    library.opentrn_cache_wait.argtypes = [ctypes.c_int64]
    library.opentrn_peer_lost.restype = ctypes.c_int
    library.opentrn_peer_lost.argtypes = [ctypes.c_int64]
    library.opentrn_others.restype = ctypes.c_int
    library.opentrn_others.argtypes = [ctypes.c_int64]
    library.opentrn_bye.restype = None
    library.opentrn_bye.argtypes = [ctypes.c_int64]
    library.opentrn_root_open.restype = ctypes.c_void_p
    library.opentrn_root_open.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, *text]
    library.opentrn_root_close.restype = None
    library.opentrn_root_close.argtypes = [ctypes.c_void_p]
    library.opentrn_root_at.restype = ctypes.c_size_t
    library.opentrn_root_at.argtypes = [ctypes.c_void_p, *text]
    library.opentrn_root_put.restype = ctypes.c_int
    library.opentrn_root_put.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t, *text]
    library.opentrn_root_get.restype = ctypes.c_void_p
    library.opentrn_root_get.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint, sizes[0], *text]
    library.opentrn_root_free.restype = None
    library.opentrn_root_free.argtypes = [ctypes.c_void_p]
    library.opentrn_last_run.restype = ctypes.c_long
    library.opentrn_last_run.argtypes = [ctypes.c_int64, ctypes.c_char_p, *text]
    library.opentrn_runs.restype = ctypes.c_long
    library.opentrn_runs.argtypes = [ctypes.c_int64, ctypes.c_char_p, *text]
    library.opentrn_clients.restype = ctypes.c_size_t
    library.opentrn_clients.argtypes = [ctypes.POINTER(ctypes.c_int64), ctypes.c_size_t]
    library.opentrn_record.restype = None
    library.opentrn_record.argtypes = [ctypes.c_int]
    library.opentrn_runs_write.restype = ctypes.c_int
    library.opentrn_runs_write.argtypes = [
        ctypes.c_int64,
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_char_p,
        *text,
    ]
    library.opentrn_trace.restype = ctypes.c_int
    library.opentrn_trace.argtypes = [ctypes.c_int64, ctypes.c_char_p, ctypes.c_char_p, *text]
    return library


def option(name: str) -> str:
    """The value of an option as the environment sets it; opentrn's option table decides, not
    Python."""
    out = ctypes.create_string_buffer(4096)
    if load().opentrn_option(name.encode(), out, len(out)) <= 0:
        raise RuntimeError(out.value.decode() or f"opentrn has no option {name}")
    return out.value.decode()


def cache_path() -> pathlib.Path:
    """The cache's folder, by the rule of src/base/opt.h; an empty variable counts as none."""
    given = os.environ.get("OTRN_CACHE_DIR")
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(given or os.path.join(home, "opentrn"))
