# SPDX-License-Identifier: Apache-2.0
"""The otrn program: `otrn …` and `python -m opentrn …`. All of it is one call of the library."""

import ctypes
import os
import signal
import sys

from opentrn._library import library_path


def main() -> int:
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
