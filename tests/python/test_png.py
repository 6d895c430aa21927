# SPDX-License-Identifier: Apache-2.0
"""A folder of PNG images trains as the same pixels in an IDX file: every kind of sample, filter and way of packing."""

import random
import re
import struct
import subprocess
import zlib

import pytest
from conftest import OTRN

SIDE = 12
KINDS = [(0, 1), (0, 2), (0, 4), (0, 8), (0, 16), (2, 8), (2, 16), (3, 1), (3, 2), (3, 4), (3, 8), (4, 8), (4, 16), (6, 8), (6, 16)]
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}


def brightness(r, g, b):
    return (77 * r + 150 * g + 29 * b) >> 8


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def paeth(a, b, c):
    p = a + b - c
    return min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]


def filtered(rows, step, chance):
    out, above = b"", bytes(len(rows[0]))
    for row in rows:
        kind = chance.randrange(5)
        left = bytes(step) + row[:-step] if len(row) > step else bytes(len(row))
        both = bytes(step) + above[:-step] if len(row) > step else bytes(len(row))
        guess = [(0, a, b, (a + b) // 2, paeth(a, b, c))[kind] for a, b, c in zip(left, above, both, strict=True)]
        out += bytes([kind]) + bytes((v - g) % 256 for v, g in zip(row, guess, strict=True))
        above = row
    return out


def packed(data, chance):
    how = chance.choice([(0, zlib.Z_DEFAULT_STRATEGY), (9, zlib.Z_DEFAULT_STRATEGY), (6, zlib.Z_FIXED), (6, zlib.Z_HUFFMAN_ONLY)])
    z = zlib.compressobj(how[0], zlib.DEFLATED, 15, 9, how[1])
    return z.compress(data) + z.flush()


def png(colour, depth, chance, interlaced=0):
    """A file of random samples, and what is grey of them."""
    n, top = CHANNELS[colour], (1 << depth) - 1
    palette = [[chance.randrange(256) for _ in range(3)] for _ in range(top + 1)] if colour == 3 else []
    rows, grey = [], b""
    for _ in range(SIDE):
        samples = [chance.choice([chance.randrange(top + 1), 0, top]) for _ in range(SIDE * n)]
        bits = "".join(f"{s:0{depth}b}" for s in samples)
        bits += "0" * (-len(bits) % 8)
        rows.append(int(bits, 2).to_bytes(len(bits) // 8, "big"))
        as_byte = [s >> 8 if depth == 16 else s if colour == 3 else s * 255 // top for s in samples]
        for x in range(SIDE):
            v = as_byte[x * n : x * n + n]
            grey += bytes([brightness(*palette[v[0]]) if colour == 3 else brightness(*v[:3]) if n >= 3 else v[0]])
    data = packed(filtered(rows, max(1, n * depth // 8), chance), chance)
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", SIDE, SIDE, depth, colour, 0, 0, interlaced))
    table = chunk(b"PLTE", bytes(v for p in palette for v in p)) if palette else b""
    cut = chance.randrange(len(data))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"tEXt", b"a comment") + table + chunk(b"IDAT", data[:cut]) + chunk(b"IDAT", data[cut:]) + chunk(b"IEND", b""), grey


def train(*words, status=0):
    done = subprocess.run([OTRN, "train", *map(str, words)], capture_output=True, text=True, timeout=300)
    assert done.returncode == status, done.stderr
    return done.stdout + done.stderr


def test_the_same_as_idx(tmp_path):
    chance, pixels, labels = random.Random(5), b"", b""
    for label in range(10):  # as many as IDX files have
        (tmp_path / "png" / f"class{label}").mkdir(parents=True)
        for k in range(6):
            file, grey = png(*KINDS[(label * 6 + k) % len(KINDS)], chance)
            (tmp_path / "png" / f"class{label}" / f"{k}.png").write_bytes(file)
            pixels, labels = pixels + grey, labels + bytes([label])
    (tmp_path / "png" / "README").write_text("no class")
    (tmp_path / "images-idx3").write_bytes(struct.pack(">IIII", 0x803, 60, SIDE, SIDE) + pixels)
    (tmp_path / "labels-idx1").write_bytes(struct.pack(">II", 0x801, 60) + labels)
    words = ["--model=mlp", "--layers=1", "--dim=32", "--batch=20", "--steps=6", "--sample=0"]
    losses = [re.findall(r"^step 6, loss \S+", train(*words, f"--data={tmp_path / name}"), re.M) for name in ("png", "images-idx3")]
    assert losses[0] == losses[1] != []


@pytest.mark.parametrize(("change", "says"), [
    (lambda p: p[:200], "ends too early"), (lambda p: p[:-30] + bytes(30), "damaged|ends too early"), (lambda p: b"GIF89a", "no PNG file"),
    (lambda p: png(0, 8, random.Random(1), interlaced=1)[0], "interlaced"), (lambda p: p.replace(struct.pack(">II", SIDE, SIDE), struct.pack(">II", SIDE, SIDE + 1)), "damaged"),
])  # fmt: skip
def test_what_is_wrong_names_the_file(tmp_path, change, says):
    (tmp_path / "a").mkdir()
    file, _ = png(0, 8, random.Random(1))
    (tmp_path / "a" / "1.png").write_bytes(file)
    (tmp_path / "a" / "2.png").write_bytes(change(file))
    said = train("--model=mlp", f"--data={tmp_path}", status=1)
    assert "2.png" in said and re.search(says, said), said


def test_an_empty_folder_says_what_belongs_there(tmp_path):
    assert "DIR/cat/1.png" in train("--model=vit", f"--data={tmp_path}", status=1)
