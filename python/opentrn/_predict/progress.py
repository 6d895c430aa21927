# SPDX-License-Identifier: Apache-2.0
"""How far it is, in one line on a terminal that is gone at the end; where nobody looks, nothing is told."""

import shutil
import sys


class Progress:
    """with Progress() as p: p.tell(0, "trn1"); p.tell(1, "3 of 7"); places to the right of one that changes are empty again."""

    def __init__(self):
        self.on, self.parts = sys.stderr.isatty(), ["", "", ""]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._show("")

    def tell(self, place, text):
        self.parts[place:] = [text] + [""] * (len(self.parts) - place - 1)
        self._show(", ".join(filter(None, self.parts)))

    def _show(self, text):
        if self.on:
            print(f"\r\033[K{text[: shutil.get_terminal_size().columns - 1]}", end="", file=sys.stderr, flush=True)
