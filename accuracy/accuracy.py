# SPDX-License-Identifier: Apache-2.0
"""How far the clock is off: published kernels rebuilt, priced and compared.

rows.csv names a published figure, the kernel that rebuilds it, and how the figure follows from what
`otrn prof --json` says. Printed are published, modelled and error per row, the mean of each family,
and last the mean over all rows. Rows of every third id of a family were left out when constants were
fitted ("held out"); their mean is printed beside the others'.
"""

import csv
import json
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
OTRN = sys.argv[1] if len(sys.argv) > 1 else str(HERE.parent / "build" / "otrn")
PEAK = {"trn1": 91.75e12, "trn2": 78.64e12, "trn3": 78.64e12}  # dense bf16 of one core


def collective(spec, folder):
    """collective:KIND:BYTES:TYPE:RANKS as a program file."""
    _, kind, size, dtype, ranks = spec.split(":")
    text = (HERE / "collective.mlir").read_text()
    width = {"f32": 4, "bf16": 2, "ui8": 1}[dtype]
    n, ranks = int(size) // width, int(ranks)
    body = re.search(rf"func.func @{kind}\(.*?\n}}\n", text, re.S).group(0).replace(f"@{kind}(", "@main(")
    group = "[[" + ", ".join(map(str, range(ranks))) + "]]"
    for name, value in {"!TYPE": dtype, "GROUP": group, "RANKS": str(ranks), "PART": str(n // ranks)}.items():
        body = body.replace(name, value)
    body = re.sub(r"\bNx", f"{n}x", body)
    path = folder / f"{kind}_{size}_{dtype}_{ranks}.mlir"
    path.write_text(f"module attributes {{mhlo.num_replicas = {ranks} : i32}} {{\n{body}}}\n")
    return path


def prof(kernel, params, target, lnc, folder):
    path = collective(kernel, folder) if kernel.startswith("collective:") else HERE / "kernels" / kernel
    command = [OTRN, "prof", str(path), f"--target={target}", "--json", "--cache=off", f"--lnc={lnc}"]
    for item in params.split():  # of the kernel, or an option
        command += [item] if item.startswith("--") else ["-D", item]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    return json.loads(done.stdout)


def value(metric, p, target, lnc, most):
    """The figure a row publishes, from a profile; `most` has the profile of the same kernel's largest size."""
    seconds = p["total_us"] * 1e-6
    if metric == "step us":  # with the host's dispatch
        return p["step_us"]
    if metric == "us":
        return p["total_us"]
    if metric == "ms":
        return p["total_us"] * 1e-3
    if metric == "ns":
        return p["total_us"] * 1e3
    if metric == "mfu":
        return 100 * p["flops"] / seconds / PEAK[target]
    if metric == "hbm GB/s":  # of all cores that run it
        return p["hbm_bytes"] * int(lnc) / seconds * 1e-9
    if metric.startswith("bus GB/s of "):  # what each rank sends; the buffer's share is in the metric
        return float(metric[12:]) * 2**30 / seconds * 1e-9
    if metric == "share of plateau":
        return p["hbm_bytes"] / p["total_us"] / (most["hbm_bytes"] / most["total_us"])
    if metric.startswith("active "):
        return 100 * p["engines"][metric[7:].replace(" ", "_")]["busy_us"] / p["total_us"]
    if metric.startswith("busy us "):
        return p["engines"][metric[8:].replace(" ", "_")]["busy_us"]
    sys.exit(f"unknown metric {metric}")


def main():
    rows = list(csv.DictReader(line for line in open(HERE / "rows.csv") if not line.startswith("#")))
    seen, families, links = {}, {}, {}
    with tempfile.TemporaryDirectory() as tmp:
        for row in rows:
            key = (row["kernel"], row["params"], row["target"], row["lnc"])
            if key not in seen:
                seen[key] = prof(*key, pathlib.Path(tmp))
            most = prof(key[0], "B=32768", *key[2:], pathlib.Path(tmp)) if "plateau" in row["metric"] else None
            ours, theirs = value(row["metric"], seen[key], row["target"], row["lnc"], most), float(row["published"])
            error = 100 * (ours / theirs - 1)
            families.setdefault(row["family"], []).append((error, row["held"] == "1"))
            if row["family"] == "collective":
                links.setdefault(row["target"], []).append(abs(error))
            note = f"  ({row['reason']})" if row["reason"] else ""
            print(f"{row['id']:8} {row['family']:12} {row['what'][:58]:58} {theirs:12.5g} {ours:12.5g} {error:+7.1f}%{note}")
    print()
    for name, errors in families.items():
        used = [abs(e) for e, held in errors if not held]
        held = [abs(e) for e, h in errors if h]
        print(f"{name:12} mean {sum(used + held) / len(errors):5.1f}% over {len(errors)} rows"
              + (f" (fitted {sum(used) / max(1, len(used)):.1f}%, held out {sum(held) / len(held):.1f}%)" if held else ""))
    kernels = [abs(e) for name, errors in families.items() if name != "collective" for e, _ in errors]
    print("collective rows: mean absolute error " + ", ".join(f"{sum(e) / len(e):.1f}% over {len(e)} of {chip}" for chip, e in links.items()))
    print(f"kernel rows: mean absolute error {sum(kernels) / len(kernels):.1f}% over {len(kernels)}")
    every = [abs(e) for errors in families.values() for e, _ in errors]
    print(f"mean absolute error: {sum(every) / len(every):.1f}% over {len(every)} rows")


main()
