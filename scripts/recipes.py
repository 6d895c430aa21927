# SPDX-License-Identifier: Apache-2.0
"""Runs what README.md, ARCHITECTURE.md and docs/*.md tell a reader to run, and holds what it prints against the page.

A page is read from top to bottom, in a fresh folder that has the tree's files and a HOME of its own:

    an indented block, or ```sh    commands for sh; one that fails is a mistake of the page
    ```python                      the blocks of a page are one program, run where the last one stands
    ```text                        what the block before prints: each line occurs, in this order. Numbers are
                                   the same, but on lines that tell of the host, where only the form counts
    ``` alone                      a picture

A comment before a block says what a reader does not see; several may stand there:

    <!-- recipe: PROG=examples/mlir/dense.mlir A=a.mlir -->    what placeholders stand for
    <!-- recipe: slow -->                                      not in --fast, which ./dev test runs
    <!-- recipe: skip REASON -->                               not run
    <!-- recipe: new -->                                       this Python block begins a program of its own
    <!-- recipe: first
    lines of the block's language that run before it
    -->

`make recipes` runs all; UPDATE=1 puts the numbers that were printed into the pages.
"""

import argparse
import dataclasses
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").glob("*.md"))]
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
LIMIT = 3600  # seconds for a recipe
NEEDS = {"torch": "torch", "keras": "keras"}  # a word in a block, and the package it needs


@dataclasses.dataclass
class Block:
    page: pathlib.Path
    line: int  # of its first line, from 1
    kind: str  # "sh", "python", "text", "" for others
    lines: list
    notes: list  # what its comments say

    @property
    def place(self):
        return f"{self.page.name}:{self.line}"

    def note(self, word):
        return next((n[len(word) :].strip() for n in self.notes if n.split()[:1] == [word]), None)

    @property
    def text(self):
        """With what comes first, placeholders replaced."""
        text = "\n".join(self.lines) + "\n"
        for name, value in (w.split("=", 1) for n in self.notes for w in n.split() if re.match(r"[A-Z]+=", n)):
            text = re.sub(rf"\b{name}\b", lambda _, value=value: value, text)
        first = next((n[5:].strip("\n") for n in self.notes if n.startswith("first")), None)
        return f"{first}\n{text}" if first else text


def blocks_of(page):
    """Fenced and indented blocks of a page, in order."""
    lines = page.read_text().split("\n")
    found, notes, i = [], [], 0
    while i < len(lines):
        start = i
        if lines[i].startswith("<!-- recipe:"):
            while "-->" not in lines[i]:
                i += 1
            notes.append("\n".join(lines[start : i + 1]).removeprefix("<!-- recipe:").removesuffix("-->").strip())
        elif lines[i].startswith("```"):
            i += 1
            while not lines[i].startswith("```"):
                i += 1
            found.append(Block(page, start + 2, lines[start][3:], lines[start + 1 : i], notes))
            notes = []
        elif lines[i].startswith("    ") and start and not lines[i - 1].strip():
            while i + 1 < len(lines) and (lines[i + 1].startswith("    ") or not lines[i + 1].strip()):
                i += 1
            while not lines[i].strip():
                i -= 1
            found.append(Block(page, start + 1, "sh", [line[4:] for line in lines[start : i + 1]], notes))
            notes = []
        elif lines[i].strip() and notes:
            raise SystemExit(f"{page.name}:{i + 1}: a recipe comment without a block behind it")
        i += 1
    return found


@dataclasses.dataclass
class Recipe:
    blocks: list  # of one kind, run together
    prints: list  # text blocks

    @property
    def place(self):
        return self.blocks[0].place

    @property
    def kind(self):
        return self.blocks[0].kind

    @property
    def program(self):
        return "\n".join(b.text for b in self.blocks)

    def note(self, word):
        return next((b.note(word) for b in self.blocks if b.note(word) is not None), None)


def recipes_of(page):
    """Python blocks join at the place of the last; a text block belongs to what stands before it."""
    found, python = [], None
    for block in blocks_of(page):
        if block.kind == "text" and found:
            found[-1].prints.append(block)
        elif block.kind == "python" and python and block.note("new") is None:
            found.remove(python)
            python.blocks.append(block)
            found.append(python)
        elif block.kind in ("sh", "python"):
            found.append(Recipe([block], []))
            python = found[-1] if block.kind == "python" else python
        elif block.kind:
            raise SystemExit(f"{block.place}: a block of kind '{block.kind}': sh, python or text?")
    return found


# --- what was printed against what the page says ---------------------------------------------------


def squeezed(line):
    return " ".join(line.split())


def form(line):
    return NUMBER.sub("#", squeezed(line))


def same(wanted, line):
    if re.search(r"\bhost\b", wanted):
        return form(wanted) == form(line)
    return squeezed(wanted) == squeezed(line)


def compare(block, output, at=0):
    """(line of the page, what it says, the printed line of the same form or None) for each line that is
    not there; the place in the output to go on from."""
    wrong = []
    for offset, wanted in enumerate(block.lines):
        if not wanted.strip() or wanted.strip() == "…":
            continue
        hit = next((i for i in range(at, len(output)) if same(wanted, output[i])), None)
        if hit is None:
            near = next((i for i in range(at, len(output)) if form(wanted) == form(output[i])), None)
            wrong.append((block.line + offset, wanted, None if near is None else output[near]))
            hit = near
        at = at if hit is None else hit + 1
    return wrong, at


def update(page, wrong):
    lines = page.read_text().split("\n")
    for number, wanted, printed in wrong:
        if printed is not None:
            numbers = iter(NUMBER.findall(printed))
            lines[number - 1] = NUMBER.sub(lambda _, numbers=numbers: next(numbers), wanted)
    page.write_text("\n".join(lines))


# --- running ---------------------------------------------------------------------------------------


def furnish(folder):
    """The tree as a reader sees it after ./dev setup, without a way to write into it."""
    for path in ROOT.iterdir():
        if path.name not in ("build", "dev", "Makefile", ".git", "pyproject.toml"):
            (folder / path.name).symlink_to(path)
    for name in ("build", "home"):
        (folder / name).mkdir()
    for path in (ROOT / "build").iterdir():
        if path.is_file():
            (folder / "build" / path.name).symlink_to(path)
    python = ROOT / ".venv" / "bin" / "python"
    (folder / "dev").write_text(
        f'#!/bin/sh\ncase $1 in python|torch) shift; exec {python} "$@" ;; esac\nDEV_READY=1 exec {ROOT}/dev "$@"\n'
    )
    (folder / "dev").chmod(0o755)
    make = f"$(MAKE) -s --no-print-directory -C {ROOT}"
    (folder / "Makefile").write_text(f"GOALS := $(or $(MAKECMDGOALS),all)\n.PHONY: $(GOALS)\n$(GOALS):\n\t@+{make} $@\n")


def environment(folder):
    env = {k: v for k, v in os.environ.items() if not re.match("OTRN_|OPENTRN_|JAX_|XDG_|PYTHON|MAKE|MFLAGS|(T|UPDATE)$", k)}
    env |= {"HOME": str(folder / "home"), "DESTDIR": str(folder / "installed"), "OTRN_CACHE_DIR": str(folder / "cache")}
    env["PATH"] = f"{folder / 'build'}:{ROOT / '.venv' / 'bin'}:{env['PATH']}"
    return env


def missing(text):
    for word, package in NEEDS.items():
        look = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({package!r}) is None)"
        if re.search(rf"\b{word}\b", text) and subprocess.run([ROOT / ".venv" / "bin" / "python", "-c", look]).returncode:
            return f"no package {package} in .venv (./dev test-torch installs it)"
    return None


def run(recipe, folder):
    program = folder / "recipe.py"
    command = ["sh", "-ec", recipe.program]
    if recipe.kind == "python":
        program.write_text(recipe.program)
        command = ["python", program]
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment(folder), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT,
        )  # fmt: skip
    except subprocess.TimeoutExpired as late:
        return "none", f"{late.stdout or ''}\nended after {LIMIT} s"
    return done.returncode, done.stdout


def check(recipe, folder, write):
    """None, or what is wrong."""
    status, output = run(recipe, folder)
    if status:
        return f"exit status {status}\n{recipe.program}\n{output[-4000:]}"
    at, said = 0, []
    for block in recipe.prints:
        wrong, at = compare(block, output.split("\n"), at)
        for number, wanted, printed in wrong:
            said.append(f"{block.page.name}:{number}: the page says\n  {wanted}\nand printed was")
            said[-1] += f"\n  {printed}" if printed is not None else f" no such line:\n{output[-4000:]}"
        if write:
            update(block.page, wrong)
    return "\n".join(said) or None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", type=pathlib.Path, help="all when none is named")
    parser.add_argument("--fast", action="store_true", help="leave out what is slow")
    parser.add_argument("--update", action="store_true", help="write the numbers that were printed into the pages")
    given = parser.parse_args()
    pages = given.pages or PAGES
    ran = skipped = failed = 0
    for page in pages:
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            furnish(folder)
            for recipe in recipes_of(page):
                why = recipe.note("skip") or missing(recipe.program)
                if given.fast and recipe.note("slow") is not None:
                    why = why or "slow"
                if why:
                    skipped += 1
                    print(f"{recipe.place}: skipped: {why}", flush=True)
                    continue
                begin = time.perf_counter()
                wrong = check(recipe, folder, given.update)
                ran += 1
                failed += wrong is not None
                took = f"{time.perf_counter() - begin:.1f} s"
                print(f"{recipe.place}: {f'WRONG: {wrong}' if wrong else 'ok'}, {took}", flush=True)
    print(f"{ran} recipes run, {failed} wrong, {skipped} skipped")
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
