# SPDX-License-Identifier: Apache-2.0
"""device.cpp, built once for the torch that is installed and kept in opentrn's cache, and what it has for Python."""

import ctypes
import fcntl
import functools
import hashlib
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

import torch

from opentrn import _library

SOURCE = pathlib.Path(__file__).with_name("device.cpp")
_FLAGS = ["-O2", "-std=c++20", "-fPIC", "-shared", "-w"]


def _compiler():
    """What builds it, in words: `ccache g++` is a compiler, too."""
    return shlex.split(os.environ.get("CXX") or "g++")


def _is_there():
    return shutil.which(_compiler()[0]) is not None


def path():
    """Where the library is or will be: one per torch, compiler flags and source."""
    header = pathlib.Path(_library.include_path(), "otrn.h").read_bytes()
    sources = [SOURCE, *sorted(SOURCE.parent.glob("*.h"))]
    parts = [torch.__version__, *_FLAGS, *(s.read_bytes() for s in sources), header]
    digest = hashlib.sha256(b"\0".join(p if isinstance(p, bytes) else p.encode() for p in parts)).hexdigest()
    return _library.cache_path() / "torch" / f"neuron-{torch.__version__}-{digest[:16]}.so"


def _failure(to):
    """Where a build that failed is noted: one per library and compiler, so that nobody waits for it twice."""
    name, *rest = _compiler()
    found = shutil.which(name) or name
    at = os.stat(found)
    digest = hashlib.sha256(f"{' '.join([found, *rest])} {at.st_mtime_ns} {at.st_size}".encode()).hexdigest()
    return to.with_name(f"{to.stem}-{digest[:16]}.failed")


def can_build():
    return _is_there() and not _failure(path()).exists()


def _build(to):
    root = pathlib.Path(torch.__file__).parent
    include = [root / "include", root / "include/torch/csrc/api/include", _library.include_path()]
    abi = int(torch._C._GLIBCXX_USE_CXX11_ABI)
    print(f"opentrn: building the device for torch {torch.__version__}, once (half a minute)", file=sys.stderr)
    with tempfile.TemporaryDirectory(dir=to.parent) as folder:
        out = os.path.join(folder, to.name)
        command = [*_compiler(), *_FLAGS, f"-D_GLIBCXX_USE_CXX11_ABI={abi}", *(f"-I{i}" for i in include)]
        command += [str(SOURCE), "-o", out, f"-L{root / 'lib'}", "-ltorch", "-ltorch_cpu", "-lc10"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            _failure(to).write_text(f"opentrn: device.cpp cannot be built: {' '.join(command)}\n{done.stderr[-4000:]}")
            raise _failed(to)
        os.replace(out, to)


def _failed(to):
    note = _failure(to)
    return RuntimeError(f"{note.read_text()}\n(kept in {note}: remove it to try again)")


def build():
    """Builds what is missing; several processes at once build it once."""
    to = path()
    if to.exists():
        return _own(to)
    if not _is_there():
        raise RuntimeError(f"opentrn: the device `neuron` needs a C++ compiler the first time ({_compiler()[0]} is not there)")
    to.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    _own(to.parent)
    with open(to.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not to.exists() and _failure(to).exists():
            raise _failed(to)
        if not to.exists():
            _build(to)
    return _own(to)


def _own(what):
    """What is loaded into this process is the user's own, and nobody else writes it."""
    at = what.lstat()
    if at.st_uid not in (os.getuid(), 0) or at.st_mode & 0o022 or what.is_symlink():
        raise RuntimeError(f"opentrn: {what} is another's, a link, or writable by others; remove it, or choose another OTRN_CACHE_DIR")
    return what


_P = ctypes.c_void_p
_PROTOTYPES = {  # name: (result, arguments)
    "neuron_begin": (None, [_P, _P, ctypes.c_int, ctypes.c_int]),
    "neuron_looking": (ctypes.c_int, []),
    "neuron_overlapping": (ctypes.c_int, []),
    "neuron_lift": (None, [ctypes.c_char_p, ctypes.c_char_p]),
    "neuron_host": (_P, []),
    "neuron_program": (_P, [_P, ctypes.POINTER(ctypes.c_int64)]),
    "neuron_runs": (ctypes.c_int64, [_P]),
}


def devices():
    """Virtual cores of this process: OPENTRN_DEVICES, and at least one for each process of this host."""
    return max(int(os.environ.get(name) or 1) for name in ("OPENTRN_DEVICES", "LOCAL_WORLD_SIZE"))


@functools.cache
def load():
    """The library, with torch told about the device. Built when it is not there."""
    file = build()
    torch.ops.load_library(str(file))
    library = ctypes.PyDLL(str(file))  # quick calls: they keep Python's lock
    for name, (result, arguments) in _PROTOTYPES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    runtime = _library.load()
    address = lambda name: ctypes.cast(getattr(runtime, name), _P)
    look = os.environ.get("OTRN_TORCH_INDEX", "") not in ("", "0", "off")
    library.neuron_begin(address("otrn_execute"), address("otrn_error_print"), devices(), look)
    return library
