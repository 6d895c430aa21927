# SPDX-License-Identifier: Apache-2.0
"""Published steps on GPUs as programs: how far the roofs of `otrn predict` are off.

    python3 accuracy/roofs.py
    python3 accuracy/roofs.py --only=c0059 --text=step.mlir
    python3 accuracy/roofs.py --fit
    python3 accuracy/roofs.py --keep

The rows of gpus.csv and h200.csv without micro-batches to add up, each written whole in JAX as the software of that row has it (weights
lie over all devices and are gathered layer by layer, forward and backward, where it says so), priced by `otrn predict --json`.
"""

import argparse
import contextlib
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ.setdefault("JAX_PLATFORMS", "cpu")
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))
import gpus
import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec
from opentrn._predict import errors, model, programs, roof
from opentrn._predict.size import parameters

OTRN = os.environ.get("OTRN") or HERE.parent / "build" / "otrn"
HELD = {row["id"] for row in gpus.single_rows() if row["held"] == "1"}


def axis_of(shape, devices):
    """The axis that a weight is cut along; None: it is whole everywhere."""
    return next((i for i, n in enumerate(shape) if n % devices == 0), None) if devices > 1 else None


class Shared(model.Weights):
    """Weights that are gathered where they are needed."""

    def __call__(self, *shape, **_):
        part = next(self.given).astype(self.dtype)
        axis = next((i for i, (a, b) in enumerate(zip(part.shape, shape)) if a != b), None)
        return part if axis is None else jax.lax.all_gather(part, "data", axis=axis, tiled=True)

    def like(self, given, key):
        return Shared(given, self.dtype, key)


def text(job, x):
    """The whole step of a data-parallel job, with AdamW."""
    m, u, devices = job.model, x.cut(job), x.dp
    types, master = x.types(job)
    compute, held = programs.TYPES[types[0]], jnp.float32 if master else programs.TYPES[types[1]]
    run, inputs, _, _ = model.piece("whole", m.layers, m, u, compute)
    tree = [v.shape for v in programs.weights("whole", m.layers, m, u, types[0])]
    axes = [axis_of(s, devices) if x.zero == 3 else None for s in tree]

    def local(params, first, second, *inputs):
        narrow = [p.astype(compute) for p in params]
        loss, grads = jax.value_and_grad(lambda p: run((Shared if x.zero == 3 else model.Weights)(p, compute), *inputs))(narrow)
        grads = [g if a is not None else jax.lax.pmean(g, "data") if devices > 1 else g for g, a in zip(grads, axes)]
        wide = [g.astype(jnp.float32) for g in grads]
        size = sum((g * g).sum() for g in wide)
        scale = jnp.minimum(1.0, 1.0 / jnp.sqrt(jax.lax.psum(size, "data") if devices > 1 and x.zero == 3 else size))
        new = [programs._adamw(p.astype(jnp.float32), g * scale, (a, b), 10.0, None) for p, g, a, b in zip(params, wide, first, second)]
        return [p.astype(held) for p, _ in new], [s[0] for _, s in new], [s[1] for _, s in new], jnp.reshape(loss, (1,))

    def spec(axis):
        return PartitionSpec(*((None,) * axis + ("data",))) if axis is not None else PartitionSpec()

    mesh = AbstractMesh((devices,), ("data",))
    put = lambda shape, dtype, axis: jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, spec(axis))) if devices > 1 else jax.ShapeDtypeStruct(shape, dtype)
    like = lambda dtype: [put(s, dtype, a) for s, a in zip(tree, axes)]
    batch = [put((devices * v.shape[0], *v.shape[1:]), v.dtype, 0) for v in inputs]
    args = like(held), like(jnp.float32), like(jnp.float32), *batch
    if devices > 1:
        each = [spec(a) for a in axes]
        cut = PartitionSpec("data")
        local = jax.shard_map(local, mesh=mesh, in_specs=(each, each, each, *([cut] * len(batch))), out_specs=(each, each, each, cut), check_vma=False)
    return jax.jit(local, donate_argnums=(0, 1, 2)).trace(*args).lower(lowering_platforms=("cpu",)).as_text()


def jobs():
    """(id, job, layout, published seconds of a step)."""
    out = []
    for row in gpus.rows():
        job, x, told = gpus.step_of(row)
        if x.micros(job) == 1:
            out.append((row["id"], job, x, job.global_batch * job.seq / float(row["published"]) / x.dp))
    for row in gpus.single_rows():
        job, x, told = gpus.single_of(row)
        if job.software == "compiled":
            out.append((row["id"], job, x, float(row["published"]) / 1e3))
    return out


def told(path, job, chips=None):
    """What `otrn predict` says of a program file."""
    words = ["predict", path, f"--instance={job.machine.name}", f"--nodes={job.nodes}", "--json", f"--tokens={job.global_batch * job.seq}"]
    ran = subprocess.run([OTRN, *words, *([f"--chips={chips}"] if chips else [])], capture_output=True, text=True)
    if ran.returncode:
        raise SystemExit(ran.stderr)
    return json.loads(ran.stdout)


def fit(rows, folder):
    """Numbers of the table that only programs need. `moved` from two runs of each row, between which its step is a line; `launch_s` by steps that
    become smaller, from far off."""
    chips = pathlib.Path(folder) / "chips"
    chips.mkdir(exist_ok=True)
    table = (HERE.parent / "chips" / "accelerators.table").read_text()
    rows = [r for r in rows if r[0] not in HELD]

    def steps(some, **numbers):
        (chips / "accelerators.table").write_text("\n".join([table, *(f"{k} = {v:.6g}" for k, v in numbers.items()), ""]))
        return [told(r[4], r[1], chips)["step_s"] for r in some]

    many, one = ([r for r in rows if (r[2].devices > 1) == several] for several in (True, False))
    mean = lambda found, some: 100 * sum(abs(s / r[3] - 1) for s, r in zip(found, some)) / len(some)
    low, high = steps(many, moved=0.5), steps(many, moved=4.0)
    at = lambda v: mean([a + (b - a) * (v - 0.5) / 3.5 for a, b in zip(low, high)], many)
    moved = min((0.5 + 0.01 * i for i in range(351)), key=at)
    print(f"moved = {moved:.2f}: {at(moved):.1f}% over {len(many)} rows", flush=True)
    launch, width, best = 1e-6, 1.0, math.inf
    while width > 0.02:
        near = [(mean(steps(one, moved=moved, launch_s=v), one), v) for v in (launch, launch * (1 + width), launch / (1 + width))]
        width, (best, launch) = (width if min(near)[1] != launch else width / 2), min(near)
    print(f"launch_s = {launch:.3g}: {best:.1f}% over {len(one)} rows of one GPU", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="rows whose id begins with it")
    parser.add_argument("--text", metavar="FILE", help="write the program of the first there, nothing else")
    parser.add_argument("--fit", action="store_true", help="fit the numbers that only programs need again, print them")
    parser.add_argument("--folder", metavar="DIR", help="programs are written there, and taken from there")
    parser.add_argument("--keep", action="store_true", help="write the errors into chips/errors.csv")
    o = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = o.folder or stack.enter_context(tempfile.TemporaryDirectory())
        rows = []
        for name, job, x, theirs in jobs():
            if not name.startswith(o.only):
                continue
            path = o.text or f"{folder}/{name}.mlir"
            if o.text or not os.path.exists(path):
                pathlib.Path(path).write_text(text(job, x))
            if o.text:
                return 0
            rows.append((name, job, x, theirs, path))
        if o.fit:
            fit(rows, folder)
            return 0
        found = [(row, told(row[4], row[1])) for row in rows]
    off = {row[0]: 100 * (r["step_s"] / row[3] - 1) for row, r in found}
    if o.keep:
        errors.keep_programs(off)
        return 0
    print(f"{'':6} {'steps on GPUs, as programs, s':40} {'devices':>7} {'published':>10} {'modelled':>10} {'error':>8} {'from its configuration':>22}")
    for (name, job, x, theirs, _), r in found:
        what = f"{job.model.kind}, {sum(parameters(job.model)) / 1e9:.2g}G, {x.micro_batch} x {job.seq}, {job.machine.name}"
        print(f"{name:6} {what:40} {x.devices:7} {theirs:10.4g} {r['step_s']:10.4g} {off[name]:+7.1f}% {100 * (r['step_s'] / roof.step(job, x)['step_s'] - 1):+21.1f}%")
    held = [abs(v) for k, v in off.items() if k in HELD]
    print(f"steps on GPUs, as programs: mean absolute error {sum(map(abs, off.values())) / len(off):.1f}% over {len(off)} rows" + (f", {sum(held) / len(held):.1f}% of {len(held)} held out" if held else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
