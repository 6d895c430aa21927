# SPDX-License-Identifier: Apache-2.0
"""The share of the tensor engine's peak that matrix products reach, by shape, orientation, chip and form; modelled.

    make products                                  # a table of all; T=trn1 only lines that contain it
    python3 scripts/products.py --otrn=build/otrn --only='trn1 .*dw'

Of a layer y = x w with t tokens, `in` inputs and `out` outputs: forward x w, dx = dy w', dw = x' dy, and x' w', so that
either operand is contracted by its first or its last dimension. Forms: one product; a batch of eight; a loop over eight
layers whose weights (or their gradients) are stacked; fp32; two cores as one. The last column is what the critical path
of the run is made of besides the tensor engine's work. Exit status 1 when a bar is missed (--bars).
"""

import argparse
import itertools
import json
import pathlib
import re
import subprocess
import sys

SHAPES = {  # tokens, in, out
    "llama-7b attention 2048": (2048, 4096, 4096),
    "llama-7b attention 4096": (4096, 4096, 4096),
    "llama-7b up 2048": (2048, 4096, 11008),
    "llama-7b up 4096": (4096, 4096, 11008),
    "llama-7b down 4096": (4096, 11008, 4096),
    "bert-large attention": (4096, 1024, 1024),
    "bert-large up": (4096, 1024, 4096),
    "bert-large down": (4096, 4096, 1024),
}
ORIENTATIONS = {"forward": (1, 0), "dx": (1, 1), "dw": (0, 0), "both": (0, 1)}  # contracted dimension of lhs, of rhs
FORMS = ("one", "batch", "loop", "fp32", "lnc2")
BARS = {"trn1": 80, "trn2": 88, "trn3": 88}  # bf16, per cent of peak
BATCH = 8


def sides(orientation, shape):
    """Dimensions of lhs, rhs and result."""
    t, i, o = shape
    m, k, n = {"forward": (t, i, o), "dx": (t, o, i), "dw": (i, t, o), "both": (i, t, o)}[orientation]
    lc, rc = ORIENTATIONS[orientation]
    return ((m, k), (k, m))[1 - lc], ((k, n), (n, k))[rc], (m, n)


def tensor(dims, dtype):
    return f"tensor<{'x'.join(map(str, (*dims, dtype)))}>"


def dot(name, a, b, orientation, types, batch=()):
    lc, rc = (c + len(batch) for c in ORIENTATIONS[orientation])
    dims = list(range(len(batch)))
    both = f"lhs_batching_dimensions = {dims}, rhs_batching_dimensions = {dims}, " if batch else ""
    return (
        f'  %{name} = "stablehlo.dot_general"(%{a}, %{b}) {{dot_dimension_numbers = #stablehlo.dot<{both}lhs_contracting_dimensions '
        f"= [{lc}], rhs_contracting_dimensions = [{rc}]>}} : ({types[0]}, {types[1]}) -> {types[2]}\n"
    )


def plain(orientation, shape, dtype, batch=()):
    types = [tensor((*batch, *d), dtype) for d in sides(orientation, shape)]
    return (
        f"func.func @main(%a: {types[0]}, %b: {types[1]}) -> {types[2]} {{\n"
        + dot("0", "a", "b", orientation, types, batch)
        + f"  func.return %0 : {types[2]}\n}}\n"
    )


def loop(orientation, shape, dtype):
    """Every layer has its own operands, as in a scan, and its own part of a stacked result."""
    types = [tensor(d, dtype) for d in sides(orientation, shape)]
    stacks = [tensor((BATCH, *d), dtype) for d in sides(orientation, shape)]
    ones = [tensor((1, *d), dtype) for d in sides(orientation, shape)]
    sizes = [f"array<i64: 1, {d[0]}, {d[1]}>" for d in sides(orientation, shape)]
    zero, out = "%z", "tensor<i32>"
    text = f"func.func @main(%a: {stacks[0]}, %b: {stacks[1]}) -> {stacks[2]} {{\n"
    text += f"  %z = stablehlo.constant dense<0> : {out}\n  %one = stablehlo.constant dense<1> : {out}\n"
    text += f"  %n = stablehlo.constant dense<{BATCH}> : {out}\n  %f = stablehlo.constant dense<0.0> : tensor<{dtype}>\n"
    text += f'  %e = "stablehlo.broadcast_in_dim"(%f) {{broadcast_dimensions = array<i64>}} : (tensor<{dtype}>) -> {stacks[2]}\n'
    text += f'  %r:2 = "stablehlo.while"(%z, %e) ({{\n  ^bb0(%i: {out}, %c: {stacks[2]}):\n'
    text += f"    %p = stablehlo.compare LT, %i, %n : ({out}, {out}) -> tensor<i1>\n    stablehlo.return %p : tensor<i1>\n"
    text += f"  }}, {{\n  ^bb0(%i: {out}, %c: {stacks[2]}):\n"
    for v, s, o, n, t in zip("ab", stacks, ones, sizes, types):
        text += f'    %s{v} = "stablehlo.dynamic_slice"(%{v}, %i, {zero}, {zero}) {{slice_sizes = {n}}} : ({s}, {out}, {out}, {out}) -> {o}\n'
        text += f"    %m{v} = stablehlo.reshape %s{v} : ({o}) -> {t}\n"
    text += dot("d", "ma", "mb", orientation, types)
    text += f"    %u = stablehlo.reshape %d : ({types[2]}) -> {ones[2]}\n"
    text += f'    %w = "stablehlo.dynamic_update_slice"(%c, %u, %i, {zero}, {zero}) : ({stacks[2]}, {ones[2]}, {out}, {out}, {out}) -> {stacks[2]}\n'
    text += f"    %j = stablehlo.add %i, %one : {out}\n    stablehlo.return %j, %w : {out}, {stacks[2]}\n"
    text += f"  }}) : ({out}, {stacks[2]}) -> ({out}, {stacks[2]})\n  func.return %r#1 : {stacks[2]}\n}}\n"
    return text


def program(form, orientation, shape):
    if form == "loop":
        return loop(orientation, shape, "bf16")
    return plain(orientation, shape, "f32" if form == "fp32" else "bf16", (BATCH,) if form == "batch" else ())


def price(args, chip, form, orientation, shape, folder):
    file = folder / "product.mlir"
    file.write_text(program(form, orientation, shape))
    command = [args.otrn, "prof", file, "--json", f"--target={chip}", f"--lnc={2 if form == 'lnc2' else 1}", "--cache=off"]
    ran = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if ran.returncode:
        sys.exit(f"{chip} {form} {orientation} {shape}: {ran.stderr}")
    return json.loads(ran.stdout)


def peak_share(told, form):
    return 100 * told["utilisation"] * (4 if form == "fp32" else 1)  # fp32 goes through the array in four passes


def row(line, shape, told, form):
    us = told["total_us"]
    tensor_us, dma = told["stalls"]["tensor"]["busy_us"], told["stalls"]["dma_in"]["busy_us"]
    path = sorted((p for p in told["critical_path"] if (p["engine"], p["what"]) != ("tensor", "work")), key=lambda p: -p["us"])
    limits = ", ".join(f"{p['engine']} {p['what']} {100 * p['us'] / us:.0f}" for p in path[:3])
    return (
        f"{line}{' x '.join(map(str, shape)):>20}{us:10.0f}{peak_share(told, form):8.1f}{100 * tensor_us / us:9.1f}{100 * dma / us:7.1f}"
        f"{told['hbm_bytes'] / 1e6:8.0f}  {limits}"
    )


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--otrn", default="build/otrn")
    args.add_argument("--folder", default="build/products")
    args.add_argument("--only", default="", help="lines to print: a regular expression")
    args.add_argument("--bars", action="store_true", help="exit status 1 when a line of bf16 misses its chip's bar")
    args = args.parse_args()
    folder = pathlib.Path(args.folder)
    folder.mkdir(parents=True, exist_ok=True)
    missed = 0
    print(f"{'chip':5}{'form':7}{'product':9}{'layer':26}{'t x in x out':>20}{'us':>10}{'% peak':>8}{'tensor %':>9}{'dma %':>7}{'HBM MB':>8}  limits, % of run")
    for chip, form, (name, shape), orientation in itertools.product(BARS, FORMS, SHAPES.items(), ORIENTATIONS):
        line = f"{chip:5}{form:7}{orientation:9}{name:26}"
        if not re.search(args.only, line) or (form == "lnc2" and chip == "trn1"):
            continue
        told = price(args, chip, form, orientation, shape, folder)
        print(row(line, shape, told, form), flush=True)
        missed += form != "fp32" and peak_share(told, form) < BARS[chip]
    if args.bars:
        print(f"{missed} below their bar")
    sys.exit(args.bars and missed > 0)


if __name__ == "__main__":
    main()
