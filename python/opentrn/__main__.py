# SPDX-License-Identifier: Apache-2.0
"""The otrn program: `otrn …`, `opentrn …` and `python -m opentrn …`: one call of the library, but for predictions from a
model's configuration, whose layers Python writes."""

import ctypes
import os
import signal
import sys

from opentrn._library import library_path


def _is_configuration(words: list[str]) -> bool:
    """predict, cost or bakeoff CONFIG.json …; a program over devices is the library's."""
    files = [w for w in words[1:] if w[:1] != "-"]
    return words[:1] in (["predict"], ["cost"], ["bakeoff"]) and (not files or any(w.endswith(".json") or os.path.isdir(w) for w in files))


def main() -> int:
    if _is_configuration(sys.argv[1:]):
        from opentrn._predict import command

        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        return command.main(sys.argv[2:], sys.argv[1])
    for number in (signal.SIGINT, signal.SIGPIPE):  # as in any program: Python changes both
        signal.signal(number, signal.SIG_DFL)
    words = [b"otrn", *map(os.fsencode, sys.argv[1:])]
    argv = (ctypes.c_char_p * (len(words) + 1))(*words, None)
    try:
        library = ctypes.CDLL(library_path())
    except OSError as error:
        print(f"otrn: cannot load the library: {error}", file=sys.stderr)
        return 1
    return int(library.otrn_main(len(words), argv))


if __name__ == "__main__":
    sys.exit(main())
