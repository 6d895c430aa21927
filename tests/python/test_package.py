# SPDX-License-Identifier: Apache-2.0
"""The wheel and the sdist: what is in them, where the wheel runs, and that it runs there without this tree.
`make wheel-check` goes further: fresh environments, several JAX versions, a type checker."""

import email
import importlib
import inspect
import os
import re
import shutil
import subprocess
import sys
import tarfile
import typing
import zipfile

import pytest
from conftest import ROOT

import opentrn

sys.path.insert(0, str(ROOT / "scripts"))
import otrn_wheel  # noqa: E402

MOST_BYTES = 6_000_000
SONAME = f"libotrn.so.{opentrn.__version__.rpartition('.')[0]}"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    return folder / otrn_wheel.build_wheel(str(folder))


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """A folder with the package in it and nothing else."""
    folder = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", folder, wheel]
    subprocess.run(pip, check=True)
    return folder


def run(installed, *words, **variables):
    """A command with the installed package, in its folder, with an empty HOME."""
    env = {"PATH": os.environ["PATH"], "HOME": str(installed / "home"), "PYTHONPATH": str(installed), **variables}
    return subprocess.run(words, env=env, cwd=installed, capture_output=True, text=True, timeout=300)


def names(wheel):
    return zipfile.ZipFile(wheel).namelist()


def metadata(wheel):
    archive = zipfile.ZipFile(wheel)
    (name,) = (n for n in archive.namelist() if n.endswith("/METADATA"))
    return email.message_from_bytes(archive.read(name))


def test_wheel_is_small_and_has_all(wheel):
    assert wheel.stat().st_size <= MOST_BYTES
    found = names(wheel)
    assert [n for n in found if ".so" in n] == [f"opentrn/{SONAME}"]
    for wanted in ("__main__.py", "py.typed", "include/otrn.h", "chips/trn2.chip", "chips/instances.table"):
        assert f"opentrn/{wanted}" in found
    assert any(n.endswith("/licenses/LICENSE") for n in found)
    assert not [n for n in found if "__pycache__" in n or n.endswith(".pyc")]


def test_metadata(wheel):
    about = metadata(wheel)
    assert about["Version"] == opentrn.__version__
    assert about["License-Expression"] == "Apache-2.0" and about["Summary"] and about.get_all("Classifier")
    assert about["Description-Content-Type"] == "text/markdown" and about.get_payload().startswith("# opentrn")
    wants = about.get_all("Requires-Dist")
    assert all("extra ==" in w for w in wants)  # the command and PyTorch need no JAX
    assert "jax>=0.9.2; extra == 'jax'" in wants


@pytest.mark.skipif(not shutil.which("readelf"), reason="no readelf")
def test_tag_is_that_of_the_symbols(wheel, tmp_path):
    library = zipfile.ZipFile(wheel).extract(f"opentrn/{SONAME}", tmp_path)
    versions = subprocess.run(["readelf", "-V", library], capture_output=True, text=True, check=True).stdout
    newest = max(int(v) for v in re.findall(r"Name: GLIBC_2\.(\d+)", versions))
    assert f"-manylinux_2_{newest}_" in wheel.name
    sections = subprocess.run(["readelf", "-S", "-W", library], capture_output=True, text=True, check=True).stdout
    assert ".debug_info" not in sections and ".symtab" not in sections


def test_glibc_of_made_up_libraries():
    assert otrn_wheel.glibc(b"\0GLIBC_2.2.5\0GLIBC_2.17\0GLIBC_2.3.4\0") == (2, 17)
    assert otrn_wheel.glibc(b"\0GLIBC_2.17\0GLIBC_ABI_DT_RELR\0") == (2, 36)
    assert otrn_wheel.glibc(b"GLIBC_PRIVATE, musl") is None


def test_command_runs_installed(installed):
    (installed / "add.mlir").write_text(
        "func.func @main(%a: tensor<f32>) -> tensor<f32> { %0 = stablehlo.add %a, %a : tensor<f32>\n return %0 : tensor<f32> }"
    )
    for command in ([installed / "bin" / "otrn"], [sys.executable, "-m", "opentrn"]):
        done = run(installed, *command, "--version")
        assert (done.returncode, done.stdout) == (0, f"otrn {opentrn.__version__}\n"), done.stderr
        done = run(installed, *command, "prof", "add.mlir", f"--target={installed}/opentrn/chips/trn1.chip")
        assert done.returncode == 0 and " us" in done.stdout, done.stderr
        assert run(installed, *command, "prof", "missing.mlir").returncode == 1
        assert run(installed, *command, "nonsense").returncode == 2


def test_installed_package_needs_no_jax(installed):
    """-S leaves out site-packages, so that neither JAX nor PyTorch is there."""
    code = "import opentrn; print(opentrn.__version__, opentrn.library_path()); opentrn.report"
    done = run(installed, sys.executable, "-S", "-c", code)
    assert done.stdout.split() == [opentrn.__version__, f"{installed}/opentrn/{SONAME}"], done.stderr


def test_jax_runs_installed(installed):
    code = """
import jax, jax.numpy as jnp, opentrn
w = jnp.ones((4, 4))
for _ in range(3):
    w = w - 0.1 * jax.jit(jax.grad(lambda w: (w @ w).sum()))(w)
print(jax.devices()[0].platform, opentrn.__file__, float(w[0, 0]))
"""
    done = run(installed, sys.executable, "-c", code, JAX_PLATFORMS="opentrn,cpu")
    platform, where, value = done.stdout.split()
    assert (platform, where) == ("opentrn", f"{installed}/opentrn/__init__.py"), done.stderr
    cpu = run(installed, sys.executable, "-c", code, JAX_PLATFORMS="cpu")
    assert float(value) == pytest.approx(float(cpu.stdout.split()[2]))


def test_old_jax_is_refused_with_what_to_do(python):
    done = python(
        "import jax; jax.__version_info__ = (0, 8, 2); jax.__version__ = '0.8.2'\n"
        "from opentrn import jax_plugin; jax_plugin.initialize()",
        JAX_PLATFORMS="opentrn",
    )
    assert "it needs jax 0.9.2 or newer, this is 0.8.2: pip install -U 'opentrn[jax]'" in done.stderr


def test_make_install_and_uninstall(tmp_path):
    """A C program builds against what is installed, and runs; all goes away again."""

    def make(target):
        return subprocess.run(
            ["make", "-s", target, f"DESTDIR={tmp_path}", "PREFIX=/usr"], cwd=ROOT, check=True, capture_output=True
        )

    def files():
        return {str(p.relative_to(tmp_path / "usr")) for p in (tmp_path / "usr").rglob("*") if p.is_file() or p.is_symlink()}

    make("install")
    found = files()
    commands = subprocess.run([tmp_path / "usr/bin/otrn", "info", "commands"], capture_output=True, text=True).stdout
    names = [line.split()[0] for line in commands.splitlines()]
    assert "compile" in names and {f"share/man/man1/otrn-{n}.1" for n in names} | {"share/man/man1/otrn.1"} <= found
    assert {"share/bash-completion/completions/otrn", "share/zsh/site-functions/_otrn"} <= found
    assert {"share/fish/vendor_completions.d/otrn.fish", "share/opentrn/chips/trn1.chip"} <= found
    assert {"lib/libotrn.so", f"lib/{SONAME}", f"lib/libotrn.so.{opentrn.__version__}"} <= found
    assert os.readlink(tmp_path / "usr" / "lib" / SONAME) == f"libotrn.so.{opentrn.__version__}"
    program = tmp_path / "use.c"
    program.write_text('#include <stdio.h>\n#include "otrn.h"\nint main(void) { puts(otrn_engine_name(0)); return 0; }\n')
    flags = [f"-I{tmp_path}/usr/include", f"-L{tmp_path}/usr/lib", f"-Wl,-rpath,{tmp_path}/usr/lib", "-lotrn"]
    subprocess.run(["cc", program, *flags, "-o", tmp_path / "use"], check=True)
    assert subprocess.run([tmp_path / "use"], capture_output=True, text=True).stdout == "tensor\n"
    (tmp_path / "use").unlink()
    (tmp_path / "usr" / "share" / "other").write_text("not ours")
    make("uninstall")
    assert files() == {"share/other"}


def test_sdist_is_the_whole_tree(tmp_path):
    name = otrn_wheel.build_sdist(str(tmp_path))
    with tarfile.open(tmp_path / name) as archive:
        found = {n.partition("/")[2] for n in archive.getnames()}
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if tracked.returncode:
        pytest.skip("not a checkout")
    wanted = {n for n in tracked.stdout.split("\n") if n and not n.startswith(".") and (ROOT / n).exists()}
    assert wanted <= found and "PKG-INFO" in found
    assert not [n for n in found if n.startswith((".git", ".venv", "build/")) or "__pycache__" in n]


def public(module):
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.isfunction(value):
            yield name, value
        elif inspect.isclass(value):
            yield from ((f"{name}.{k}", v) for k, v in vars(value).items() if inspect.isfunction(v) and k[0] != "_")


def test_the_package_is_free_of_type_errors():
    pytest.importorskip("mypy")
    done = subprocess.run([sys.executable, "-m", "mypy"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("module", ["opentrn", "opentrn.torch"])
def test_public_functions_have_types(module):
    if module == "opentrn.torch":
        pytest.importorskip("torch")
    for name, function in public(importlib.import_module(module)):
        signature = inspect.signature(inspect.unwrap(function))
        bare = [p.name for p in signature.parameters.values() if p.annotation is p.empty]
        assert not bare and signature.return_annotation is not signature.empty, f"{module}.{name}: {bare}"
        assert typing.get_type_hints(inspect.unwrap(function)) is not None
