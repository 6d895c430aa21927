# SPDX-License-Identifier: Apache-2.0
"""Machines to rent: the rows of instances.table with what the chip files say of their chips."""

import dataclasses
import difflib
import os
import pathlib

from opentrn import _library
from opentrn._predict.fault import Fault


@dataclasses.dataclass(frozen=True)
class Machine:
    name: str
    chip: str
    chips: int
    devices: int  # logical cores
    cores: int  # of a device
    network_gb: float  # bytes a second of the whole machine, in GB
    usd_per_hour: float  # 0: not published
    basis: str
    memory: int  # HBM bytes of a device
    flops: float  # bf16 peak of a device
    dispatch_us: float  # the host's, for each execution
    instructions: float  # a program may have
    hbm_gb: float  # bytes a second of a device, in GB
    fp8: str  # the type it multiplies quicker than bf16; "": none


_FP8 = {3: "float8_e4m3", 4: "float8_e4m3fn"}  # of a generation: two rows a cell


def _chip(folder, name):
    values = {}
    for line in (folder / f"{name}.chip").read_text(encoding="utf-8").splitlines():
        key, _, value = line.partition("#")[0].partition("=")
        if value.split():
            values[key.strip()] = value.split()[0]
    return values


def _machine(row, folder, lnc):
    name, chip, chips, _, _, network, _, usd, paid, region, seen = row[:11]
    c = _chip(folder, chip)
    cores = lnc or int(c["cores_per_logical_core"])
    return Machine(
        name, chip, int(chips), int(chips) * int(c["cores_per_chip"]) // cores, cores, float(network) / 8, float(usd),
        f"{paid}, {region}, {seen}", int(c["hbm_bytes_per_core"]) * cores, 2 * 128 * 128 * float(c["pe_clock"]) * 1e9 * cores,
        float(c["dispatch"]) / 1000, float(c["instructions_max"]), float(c["hbm_bandwidth_per_core"]) * cores,
        _FP8.get(int(c["generation"]), ""),
    )  # fmt: skip


def rows(folder=None):
    folder = pathlib.Path(folder or os.environ.get("OTRN_CHIPS") or _library.chips_path())
    lines = (v.partition("#")[0].split() for v in (folder / "instances.table").read_text(encoding="utf-8").splitlines())
    return folder, {v[0]: v for v in lines if v}


def machine(name, price=None, lnc=0):
    from opentrn._predict import roof

    (folder, known), others = rows(), roof.rows()
    if name in others:
        return roof.machine(name, price)
    if name not in known:
        every = [*known, *others]
        chips = {v[1].lower(): v[0] for table in (others, known) for v in reversed(table.values())}
        word = str(name).lower()
        begun = [v for v in every if word and v.startswith(word)]
        near = [chips[word]] if word in chips else begun or difflib.get_close_matches(word, every, 1)
        raise Fault(f"there is no instance {name!r}", f"{'did you mean ' + near[0] + '? ' if near else ''}known are {', '.join(every)}")
    found = _machine(known[name], folder, lnc)
    return dataclasses.replace(found, usd_per_hour=price, basis="your price") if price else found
