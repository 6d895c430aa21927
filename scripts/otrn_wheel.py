# SPDX-License-Identifier: Apache-2.0
"""A build backend (PEP 517 and PEP 660) for this one package.

A wheel is a zip file with a few text files beside the code. Writing it here keeps `pip install .`
free of downloads: the library is built by make, so a build system for C extensions would add
nothing. One stripped library is in it: the C interface, JAX's plugin and the `otrn` program.
"""

import base64
import hashlib
import io
import os
import pathlib
import re
import shutil
import subprocess
import sysconfig
import tarfile
import tempfile
import tomllib
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "opentrn"
LIBRARY = ROOT / "build" / "libotrn.so"
LEFT_OUT = re.compile(r"[^/]+/(build[^/]*|dist)|.*/(\.[^/]*|[^/]*\.egg-info|__pycache__|[^/]*\.(otrn|pyc))")  # of an sdist
TIME = 1767225600  # of every file in an archive: equal trees give equal archives


def _project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    header = (ROOT / "include" / "otrn.h").read_text()
    project["version"] = re.search(r'#define OTRN_RELEASE "(.+)"', header).group(1)
    return project


def _make():
    jobs = f"-j{os.cpu_count() or 1}"
    try:
        subprocess.run(["make", jobs, str(LIBRARY.relative_to(ROOT))], cwd=ROOT, check=True)
    except FileNotFoundError:
        raise SystemExit("opentrn: building needs make and a C compiler") from None


def _stripped():
    """The library without what only a debugger reads (three quarters of it)."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / LIBRARY.name
        strip = os.environ.get("STRIP", "strip")
        if shutil.which(strip):
            subprocess.run([strip, "--strip-unneeded", "-o", out, LIBRARY], check=True)
        else:
            shutil.copy(LIBRARY, out)
        return out.read_bytes()


def glibc(library):
    """The newest glibc whose symbols the library (bytes) asks for, as (2, minor); None without glibc."""
    found = [int(minor) for minor in re.findall(rb"\0GLIBC_2\.(\d+)(?:\.\d+)?(?=\0)", library)]
    if b"\0GLIBC_ABI_DT_RELR\0" in library:
        found.append(36)
    return (2, max(found)) if found else None


def _tag(library):
    """manylinux as old as the symbols allow; a library without glibc runs where it was built."""
    system, _, machine = sysconfig.get_platform().partition("-")
    version = glibc(library) if system == "linux" else None
    if version:  # nothing older has wheels of this kind
        return f"py3-none-manylinux_2_{max(version[1], 17)}_{machine}"
    return "py3-none-" + re.sub(r"[-.]", "_", sysconfig.get_platform())


def _metadata(project):
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {project['name']}",
        f"Version: {project['version']}",
        f"Summary: {project['description']}",
        f"Keywords: {','.join(project['keywords'])}",
        *(f"Classifier: {c}" for c in project["classifiers"]),
        f"License-Expression: {project['license']}",
        *(f"License-File: {f}" for f in project["license-files"]),
        f"Requires-Python: {project['requires-python']}",
        *(f"Requires-Dist: {d}" for d in project["dependencies"]),
    ]
    for extra, wants in project["optional-dependencies"].items():
        lines += [f"Provides-Extra: {extra}"] + [
            f"Requires-Dist: {d}; extra == '{extra}'" for d in wants
        ]
    lines += ["Description-Content-Type: text/markdown", "", (ROOT / project["readme"]).read_text()]
    return "\n".join(lines)


def _entry_points(project):
    groups = {"console_scripts": project["scripts"], **project["entry-points"]}
    return "\n".join(
        f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in names.items())
        for group, names in groups.items()
    )


def _write_wheel(folder, files, tag):
    """files: archive name -> bytes. Adds the dist-info and returns the wheel's name."""
    project = _project()
    stem = f"{project['name']}-{project['version']}"
    info = f"{stem}.dist-info"
    wheel = f"Wheel-Version: 1.0\nGenerator: opentrn\nRoot-Is-Purelib: false\nTag: {tag}\n"
    files = dict(files)
    files |= {f"{info}/licenses/{f}": (ROOT / f).read_bytes() for f in project["license-files"]}
    files[f"{info}/METADATA"] = _metadata(project).encode()
    files[f"{info}/WHEEL"] = wheel.encode()
    files[f"{info}/entry_points.txt"] = _entry_points(project).encode()
    record = ""
    name = f"{stem}-{tag}.whl"
    path = os.path.join(folder, name)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:

        def add(name, data):
            entry = zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0))
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o100644 << 16
            archive.writestr(entry, data, compresslevel=9)

        for path, data in files.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record += f"{path},sha256={digest},{len(data)}\n"
            add(path, data)
        add(f"{info}/RECORD", record + f"{info}/RECORD,,\n")
    return name


def get_requires_for_build_wheel(config_settings=None):
    return []


get_requires_for_build_editable = get_requires_for_build_sdist = get_requires_for_build_wheel


def _package_files():
    """Beside the code: chip files to copy and change, the header for C programs, the mark of a typed
    package."""
    yield from (p for p in PACKAGE.rglob("*") if p.suffix in (".py", ".csv", ".cpp", ".h") or p.name == "py.typed")
    yield from (ROOT / "chips").iterdir()
    yield ROOT / "include" / "otrn.h"


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    _make()
    files = {}
    for path in sorted(_package_files()):
        base = PACKAGE if PACKAGE in path.parents else ROOT
        files[f"opentrn/{path.relative_to(base).as_posix()}"] = path.read_bytes()
    library = _stripped()
    files[f"opentrn/{LIBRARY.name}.{_project()['version'].rpartition('.')[0]}"] = library  # its SONAME
    return _write_wheel(wheel_directory, files, _tag(library))


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """Points at the source tree; the package then loads build/libotrn.so, whatever make left there."""
    _make()
    files = {"_opentrn_editable.pth": f"{PACKAGE.parent}\n".encode()}
    return _write_wheel(wheel_directory, files, _tag(LIBRARY.read_bytes()))


def build_sdist(sdist_directory, config_settings=None):
    """The whole tree but for what is built, and the metadata."""
    project = _project()
    stem = f"{project['name']}-{project['version']}"

    def wanted(entry):
        if LEFT_OUT.fullmatch(entry.name):
            return None
        entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname = TIME, 0, 0, "", ""
        return entry

    with tarfile.open(
        os.path.join(sdist_directory, f"{stem}.tar.gz"), "w:gz", format=tarfile.PAX_FORMAT
    ) as archive:
        for path in sorted(ROOT.iterdir()):
            archive.add(path, f"{stem}/{path.name}", filter=wanted)
        data = _metadata(project).encode()
        entry = wanted(tarfile.TarInfo(f"{stem}/PKG-INFO"))
        entry.size = len(data)
        archive.addfile(entry, io.BytesIO(data))
    return f"{stem}.tar.gz"
