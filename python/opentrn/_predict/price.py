# SPDX-License-Identifier: Apache-2.0
"""Programs priced by the library, each once: in this process, and in a folder beside the compiled programs.

A program is asked for by what it is made from; it is lowered (by JAX) and priced (`otrn prof`) only where nobody has. What an
entry depends on is in its name: the words that ask for it, and what `_maker` lists.
"""

import concurrent.futures
import contextlib
import hashlib
import importlib.metadata
import json
import os
import pathlib
import tempfile
import time

from opentrn._library import cache_path, library_path
from opentrn._predict import machines
from opentrn._predict.fault import Fault, TooLarge
from opentrn._predict.function import run

KINDS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "collective_permute", "collective_broadcast")
_KEPT = ("total_us", "flops", "hbm_bytes", "hbm_peak_bytes", "instructions", "instructions_max", "cores_per_device", "devices")


def _maker():
    """What is the same for all entries: the files that write programs and those that say what to write, JAX, which lowers them, the library, the
    machines, and options by environment. Hashed whole, so that nothing that changes a program's text finds the price of another."""
    seen = hashlib.sha256()
    library, chips = pathlib.Path(library_path()), machines.rows()[0]
    for path in (*sorted(pathlib.Path(__file__).parent.glob("*.py")), *sorted(chips.glob("*.chip")), *sorted(chips.glob("*.table"))):
        seen.update(f"\n{path.name} {path.stat().st_size}\n".encode() + path.read_bytes())
    at, options = library.stat(), sorted((k, v) for k, v in os.environ.items() if k.startswith("OTRN_") and k != "OTRN_CACHE_DIR")
    writers = [(name, _version(name)) for name in ("jax", "jaxlib")]
    seen.update(repr((str(library), at.st_size, at.st_mtime_ns, options, writers)).encode())
    return seen.hexdigest()


def _version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


class Prices:
    """prices(what) -> record; `what` is a tuple whose first word says which program."""

    def __init__(self, machine, jobs=None, cache=True):
        self.machine, self.known, self.jobs = machine, {}, jobs or os.cpu_count() or 1
        self.folder, self.maker = (cache_path() / "predict" if cache else None), _maker()
        self.made = 0
        self.say = lambda text: None  # how far it is

    def __call__(self, what):
        if what not in self.known:
            self.all([what])
        found = self.known[what]
        if isinstance(found, Fault):
            raise found
        return found

    def all(self, wanted):
        """Several at once: JAX writes one after the other, the library prices beside it."""
        missing = []
        for what in dict.fromkeys(w for w in wanted if w not in self.known):
            found = self._read(what)
            if found:
                self.known[what] = found
            else:
                missing.append(what)
        pool = concurrent.futures.ThreadPoolExecutor(self.jobs)
        try:
            running = {what: pool.submit(self._prof, *self._text(what)) for what in missing}
            for i, (what, future) in enumerate(running.items()):
                self.say(f"{i} of {len(running)} programs priced")
                try:
                    self.known[what] = self._write(what, future.result())
                except Fault as fault:
                    self.known[what] = fault
        finally:
            pool.shutdown(cancel_futures=True)  # whoever interrupts does not wait for those that have not begun

    def _path(self, what):
        words = repr((what, self.machine.name, self.machine.cores, self.maker))
        assert self.folder is not None
        return self.folder / f"{hashlib.sha256(words.encode()).hexdigest()[:32]}.json"

    def _read(self, what):
        try:
            return json.loads(self._path(what).read_text()) if self.folder else None
        except (OSError, ValueError):
            return None

    def _write(self, what, record):
        self.made += 1
        if self.folder:
            part = self._path(what).with_suffix(f".{os.getpid()}")
            try:
                self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                part.write_text(json.dumps(record))
                part.rename(self._path(what))
            except OSError:
                self.folder = None  # a cache that cannot be written is none
            finally:
                with contextlib.suppress(OSError):  # left over where the disk is full, or by Ctrl-C
                    part.unlink(missing_ok=True)
        return record

    def _text(self, what):
        """Program, and what its record has beside prices."""
        if what[0] == "collective":
            return collective(*what[1:]), None
        try:
            from opentrn._predict import programs
        except ImportError as error:
            raise Fault(f"JAX is needed to write a model's layers: {error}", "pip install 'opentrn[jax]'") from None
        if what[0] == "update":
            return programs.update(*what[1:]), {}
        if what[0] == "forward":
            return programs.forward(*what[1:]), {}
        word, kind, n, m, u, types, *_ = what
        tree = programs.weights(kind, n, m, u, types[0])
        return {"micro": programs.micro, "step": programs.step}[word](*what[1:]), {"weights": [[v.shape, v.expert, v.frozen] for v in tree]}

    def _report(self, text):
        """Of a program without anything to hide behind: priced in this process."""
        from opentrn._report import report

        found = report(text.encode(), instance=self.machine.name)
        return {"total_us": found["total_us"]}

    def _prof(self, text, more):
        if more is None:
            return self._report(text)
        begin = time.monotonic()
        with tempfile.NamedTemporaryFile("wb", suffix=".mlir", buffering=0) as file:
            rest = memoryview(text.encode())
            try:
                while rest:
                    rest = rest[file.write(rest) :]
            except OSError as error:
                raise Fault(f"{file.name}: {error.strerror}", "TMPDIR names a folder on a disk with room for programs, tens of MB each") from None
            words = ["prof", file.name, f"--instance={self.machine.name}", f"--lnc={self.machine.cores}", "--cache=off", "--json"]
            ran = run(words + ["--group=none"] * ("weights" in more))  # only of updates it is asked which collectives are exposed
        if "error[CAPACITY]" in ran.stderr:
            raise TooLarge(
                "a few layers alone do not fit a device: " + ran.stderr.strip().splitlines()[0].partition("error[CAPACITY]: ")[2],
                "a larger --tp, --zero=3, a smaller --micro-batch or --seq, or --recompute=full",
            )
        if ran.returncode:
            raise Fault(f"a program of the step was refused: {ran.stderr.strip()}")
        report = json.loads(ran.stdout)
        record = {k: report[k] for k in _KEPT}
        record["busy_us"] = {k: v["busy_us"] for k, v in report["engines"].items()}
        record["comm_us"], record["exposed_us"] = report["comm"]["busy_us"], report["comm"]["exposed_us"]
        record["kinds_us"] = {name: sum(k["busy_us"] for k in report["comm"]["kinds"] if k["kind"] == name) for name in KINDS}
        if "weights" not in more:
            shown = {gathers: sum(k["exposed_us"] for k in report["comm"]["kinds"] if (k["kind"] == "all_gather") == gathers) for gathers in (True, False)}
            record["gathering_us"], record["reducing_us"] = shown[True], shown[False]
        record["compile_s"] = time.monotonic() - begin
        return {**record, **more}


_REDUCE = """ ({
  ^bb0(%a: tensor<TYPE>, %b: tensor<TYPE>):
    %s = stablehlo.add %a, %b : tensor<TYPE>
    stablehlo.return %s : tensor<TYPE>
  })"""


def collective(kind, count, dtype, ranks, stride, beside=1):
    """One collective over `ranks` devices, every stride-th; for a permute: from each of `beside` devices, which share links, to the one
    `stride` further on."""
    whole = -(-count // ranks) * ranks
    sizes = {"all_reduce": (whole, whole), "all_gather": (whole // ranks, whole), "reduce_scatter": (whole, whole // ranks)}
    sizes["collective_permute"] = (count, count)
    a, b = (f"tensor<{n}x{dtype}>" for n in sizes[kind])
    pairs = [[i, i + stride] for i in range(beside)]
    replicas = ranks * stride
    mesh = f'#stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "rank", size = {ranks}>, #stablehlo.mesh_axis<name = "beside", size = {stride}>]>'
    shape = f'#stablehlo.replica_group_mesh_axes<mesh = {mesh}, axes = [#stablehlo.axis_ref<name = "rank">]>'
    attributes = {
        "all_reduce": f"replica_groups = {shape}",
        "all_gather": f"all_gather_dim = 0 : i64, replica_groups = {shape}",
        "reduce_scatter": f"scatter_dimension = 0 : i64, replica_groups = {shape}",
        "collective_permute": f"source_target_pairs = dense<{pairs}> : tensor<{len(pairs)}x2xi64>",
    }[kind]
    if kind == "collective_permute":
        replicas = stride + len(pairs)
    body = _REDUCE.replace("TYPE", dtype) if kind in ("all_reduce", "reduce_scatter") else ""
    return (
        f"module attributes {{mhlo.num_replicas = {replicas} : i32}} {{\nfunc.func @main(%x: {a}) -> {b} {{\n"
        f'  %0 = "stablehlo.{kind}"(%x) <{{{attributes}}}>{body} : ({a}) -> {b}\n  return %0 : {b}\n}}\n}}\n'
    )
