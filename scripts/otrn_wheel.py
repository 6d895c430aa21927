# SPDX-License-Identifier: Apache-2.0
"""A build backend (PEP 517 and PEP 660) for this one package.

A wheel is a zip file with three text files beside the code. Writing it here keeps `pip install .`
free of downloads: the plugin is built by make, so a build system for C extensions would add
nothing.
"""

import base64
import hashlib
import os
import pathlib
import re
import subprocess
import sysconfig
import tarfile
import tomllib
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "opentrn"
SOURCES = [
    "Makefile",
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "include",
    "src",
    "chips",
    "python",
    "scripts",
]


def _project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    header = (ROOT / "include" / "otrn.h").read_text()
    project["version"] = re.search(r'#define OTRN_RELEASE "(.+)"', header).group(1)
    return project


def _make():
    libraries = ["build/libotrn_pjrt.so", "build/libotrn.so"]  # for JAX, for the rest
    jobs = f"-j{os.cpu_count() or 1}"
    try:
        subprocess.run(["make", jobs, *libraries], cwd=ROOT, check=True)
    except FileNotFoundError:
        raise SystemExit("opentrn: building needs make and a C compiler") from None
    return [ROOT / library for library in libraries]


def _metadata(project):
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {project['name']}",
        f"Version: {project['version']}",
        f"Summary: {project['description']}",
        f"License: {project['license']}",
        f"Requires-Python: {project['requires-python']}",
    ]
    lines += [f"Requires-Dist: {d}" for d in project["dependencies"]]
    for extra, wants in project["optional-dependencies"].items():
        lines += [f"Provides-Extra: {extra}"] + [
            f"Requires-Dist: {d}; extra == '{extra}'" for d in wants
        ]
    return "\n".join(lines) + "\n"


def _entry_points(project):
    groups = project["entry-points"].items()
    return "\n".join(
        f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in names.items())
        for group, names in groups
    )


def _write_wheel(folder, files):
    """files: archive name -> bytes. Adds the dist-info and returns the wheel's name."""
    project = _project()
    tag = "py3-none-" + re.sub(r"[-.]", "_", sysconfig.get_platform())
    stem = f"{project['name']}-{project['version']}"
    info = f"{stem}.dist-info"
    wheel = f"Wheel-Version: 1.0\nGenerator: opentrn\nRoot-Is-Purelib: false\nTag: {tag}\n"
    files = dict(files)
    files[f"{info}/METADATA"] = _metadata(project).encode()
    files[f"{info}/WHEEL"] = wheel.encode()
    files[f"{info}/entry_points.txt"] = _entry_points(project).encode()
    record = ""
    name = f"{stem}-{tag}.whl"
    with zipfile.ZipFile(os.path.join(folder, name), "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in files.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record += f"{path},sha256={digest},{len(data)}\n"
            archive.writestr(zipfile.ZipInfo(path, (2026, 1, 1, 0, 0, 0)), data)
        archive.writestr(
            zipfile.ZipInfo(f"{info}/RECORD", (2026, 1, 1, 0, 0, 0)), record + f"{info}/RECORD,,\n"
        )
    return name


def get_requires_for_build_wheel(config_settings=None):
    return []


get_requires_for_build_editable = get_requires_for_build_sdist = get_requires_for_build_wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    libraries = _make()
    sources = sorted(PACKAGE.rglob("*.py"))
    files = {f"opentrn/{p.relative_to(PACKAGE).as_posix()}": p.read_bytes() for p in sources}
    files |= {f"opentrn/{library.name}": library.read_bytes() for library in libraries}
    return _write_wheel(wheel_directory, files)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """Points at the source tree; the package then loads build/libotrn_pjrt.so, whatever make left
    there."""
    _make()
    return _write_wheel(wheel_directory, {"_opentrn_editable.pth": f"{PACKAGE.parent}\n".encode()})


def build_sdist(sdist_directory, config_settings=None):
    project = _project()
    stem = f"{project['name']}-{project['version']}"
    with tarfile.open(os.path.join(sdist_directory, f"{stem}.tar.gz"), "w:gz") as archive:
        for name in SOURCES:
            if (ROOT / name).exists():
                archive.add(
                    ROOT / name,
                    f"{stem}/{name}",
                    filter=lambda t: None if "__pycache__" in t.name else t,
                )
    return f"{stem}.tar.gz"
