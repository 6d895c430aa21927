# SPDX-License-Identifier: Apache-2.0
"""Power cuts (`make power-cut`): what a training run does to its folder is recorded, cut off at random moments, and of all that was not
flushed by then a random part is lost. Each folder that is left is resumed: from no older step than the last whose save was done, to the
weights of a run that nobody touched.

    power_cut.py OTRN RECORDER.so CUTS [SEED [RANKS]]

With RANKS above 1 as many processes make the run and write its checkpoints together; what is left is resumed by one.

The model is harsher than file systems are: entries of a folder are lost one by one, in any order, until the folder itself is flushed;
pieces of a file are lost one by one, or torn, until the file is.
"""

import os
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

OTRN, RECORDER, CUTS, SEED = sys.argv[1], os.path.abspath(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]) if len(sys.argv) > 4 else 1
RANKS = int(sys.argv[5]) if len(sys.argv) > 5 else 1
STEPS = 12
WORDS = ["--data=LICENSE", "--layers=1", "--dim=64", "--heads=2", "--seq=16", "--batch=4", "--checkpoint-every=1", "--keep=2", "--sample=0"]


class File:
    def __init__(self):
        self.safe, self.pending = b"", []  # pieces in the order they were written

    def flush(self):
        self.safe, self.pending = self.safe + b"".join(self.pending), []

    def after(self, chance):
        left = bytearray(self.safe)
        for piece in self.pending:
            at = len(left)
            left += bytes(len(piece))  # a hole, or
            if chance.random() < 0.5:
                n = len(piece) if chance.random() < 0.7 else chance.randrange(len(piece) + 1) // 512 * 512
                left[at : at + n] = piece[:n]
        return bytes(left if chance.random() < 0.7 else left[: chance.randrange(len(left) + 1)]) if self.pending else self.safe


class Folder:
    def __init__(self):
        self.now, self.safe, self.pending = {}, {}, []

    def change(self, **entries):  # of one call: all or nothing; None: the name goes
        for name, node in entries.items():
            self.now.pop(name, None) if node is None else self.now.update({name: node})
        self.pending.append(entries)

    def flush(self):
        self.safe, self.pending = dict(self.now), []

    def after(self, chance):
        left = dict(self.safe)
        for entries in self.pending:
            if chance.random() < 0.5:
                for name, node in entries.items():
                    left.pop(name, None) if node is None else left.update({name: node})
        return left


def find(root, top, path):
    """The folder that has it, and its name there."""
    parts = Path(path).relative_to(top).parts
    for part in parts[:-1]:
        root = root.now[part]
    return root, parts[-1] if parts else None


def replay(lines, data, top):
    """The tree after these calls, and the last step that was surely there."""
    root, surely, renamed = Folder(), 0, 0
    for line in lines:
        what, path, *more = line.split("\t")
        if path == top and what == "folder":
            continue
        where, name = find(root, top, path)
        node = where.now.get(name) if name else root
        if what == "make":
            where.change(**{name: File()})
        elif what == "folder":
            where.change(**{name: Folder()})
        elif what == "write":
            node.pending.append(data[more[0]][int(more[1]) : int(more[1]) + int(more[2])])
        elif what == "sync":
            node.flush()
            surely = renamed if node is root else surely
        elif what == "remove":
            where.change(**{name: None})
        elif what == "rename":
            to, new = find(root, top, more[0])
            assert to is where, "between folders"
            where.change(**{name: None, new: node})
            found = re.fullmatch(r"step-(\d+)", new)
            renamed = int(found[1]) if found else renamed
    return root, surely


def leave(node, at, chance):
    at.mkdir()
    for name, inner in node.after(chance).items():
        if isinstance(inner, Folder):
            leave(inner, at / name, chance)
        else:
            (at / name).write_bytes(inner.after(chance))


def train(folder, ranks=1, **more):
    launch = [OTRN, "launch", "-n", str(ranks)] if ranks > 1 else []
    words = [*WORDS, f"--devices={RANKS // ranks}", f"--steps={STEPS}", f"--checkpoint={folder}", "--resume"]
    done = subprocess.run([*launch, OTRN, "train", *words], capture_output=True, text=True, timeout=600, env={**os.environ, **more})
    if done.returncode:
        sys.exit(f"FAIL: {done.stderr}")
    return done.stderr, [file.read_bytes() for file in sorted((folder / f"step-{STEPS:08}").iterdir())]


def main(home):
    folder, log = home / "whole", home / "log"
    _, weights = train(folder, RANKS, LD_PRELOAD=RECORDER, POWER_FOLDER=str(folder), POWER_LOG=str(log))
    lines, data = log.read_text().splitlines(), {path.suffix[1:]: path.read_bytes() for path in home.glob("log.*")}
    if len(data) != RANKS:
        sys.exit(f"FAIL: {len(data)} processes wrote")
    if len(lines) < 10 * STEPS:
        sys.exit("FAIL: the recorder saw too little")
    chance, told = random.Random(SEED), 0
    for cut in range(CUTS):
        at = chance.randrange(1, len(lines) + 1)
        root, surely = replay(lines[:at], data, str(folder))
        after = home / f"cut-{cut}"
        leave(root, after, chance)
        said, same = train(after)
        went_on = re.search(r"going on from step (\d+)", said)
        if (int(went_on[1]) if went_on else 0) < surely:
            sys.exit(f"FAIL: cut {cut} of seed {SEED}, behind call {at}: step {surely} was saved, and it went on from {went_on and went_on[1]}\n{said}")
        if same != weights:
            sys.exit(f"FAIL: cut {cut} of seed {SEED}, behind call {at}: other weights")
        told += "damaged" in said
        subprocess.run(["rm", "-rf", after], check=True)
    print(f"{CUTS} cuts among {len(lines)} calls of {RANKS} process(es): all resumed from what was saved, to the same weights; {told} found something damaged")


with tempfile.TemporaryDirectory() as there:
    main(Path(there))
