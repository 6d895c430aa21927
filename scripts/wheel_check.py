# SPDX-License-Identifier: Apache-2.0
"""Is the package whole? `make wheel-check` builds it as a stranger would and uses it elsewhere.

    sdist of this tree -> wheel from the sdist, in an empty folder with an empty HOME
    -> a fresh environment without JAX: `otrn` runs, a C program links, a type checker reads the package
    -> a fresh environment for each JAX that pyproject.toml admits at its ends: a program trains

The tree is hidden from the build and from what runs in those environments (a mount namespace, where the system allows it). pip
fetches JAX, so this needs a network; tests/python/test_package.py is the part that needs none.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import venv

import otrn_wheel

ROOT = otrn_wheel.ROOT
MOST_BYTES = 6_000_000
MOST_GLIBC = (2, 35)  # five years old
PROGRAM = """func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.add %a, %a : tensor<2xf32>
  return %0 : tensor<2xf32>
}
"""
TRAIN = """
import jax, jax.numpy as jnp, opentrn
assert jax.devices()[0].platform == "opentrn", jax.devices()
x = jax.random.normal(jax.random.key(0), (256, 8))
y = (x[:, 0] * x[:, 1] > 0).astype(jnp.float32)
def loss(p):
    h = jnp.tanh(x @ p[0])
    return jnp.mean(jnp.logaddexp(0.0, h @ p[1]) - y * (h @ p[1]))
@jax.jit
def step(p):
    value, grads = jax.value_and_grad(loss)(p)
    return [a - 2.0 * g for a, g in zip(p, grads)], value
p = [jax.random.normal(jax.random.key(1), (8, 32)) * 0.5, jnp.zeros(32)]
losses = []
for _ in range(60):
    p, value = step(p)
    losses.append(float(value))
assert losses[-1] < 0.8 * losses[0], losses
print(f"jax {jax.__version__}: loss {losses[0]:.4f} -> {losses[-1]:.4f}; "
      f"modelled step {opentrn.last_run()['total_us']:.1f} us")
"""
TYPED = """
import opentrn
version: str = opentrn.__version__
here: str = opentrn.chips_path()
with opentrn.profile("trn2", tokens=8) as p:
    pass
time: float = p.step_us
report = opentrn.report(b"", "trn1")
opentrn.report(1.5)
"""
C = '#include <stdio.h>\n#include "otrn.h"\nint main(void) { puts(otrn_engine_name(0)); return 0; }\n'


def clean(home):
    """The variables a stranger has: where programs are, and the compiler's own cache."""
    kept = {k: v for k, v in os.environ.items() if k in ("PATH", "CC", "LANG") or k.startswith(("CCACHE_", "PIP_"))}
    return {**kept, "HOME": str(home)}


def hider():
    """What to put before a command so that it does not see this tree."""
    hide = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', str(ROOT)]
    try:
        seen = subprocess.run([*hide, "ls", str(ROOT)], capture_output=True, text=True)
        return hide if seen.returncode == 0 and not seen.stdout else []
    except FileNotFoundError:
        return []


class Environment:
    def __init__(self, folder, hide):
        venv.create(folder, with_pip=True)
        self.bin, self.hide = folder / "bin", hide
        self.home = folder / "home"
        self.home.mkdir()

    def pip(self, *words):
        pip = [self.bin / "pip", "install", "--quiet", "--disable-pip-version-check", *words]
        subprocess.run(pip, env=clean(self.home), cwd=self.home, check=True)

    def run(self, *words, fails=False, **variables):
        env = {**clean(self.home), **variables}
        env["PATH"] = f"{self.bin}:{env['PATH']}"
        done = subprocess.run([*self.hide, *words], env=env, cwd=self.home, capture_output=True, text=True)
        if (done.returncode != 0) != fails:
            sys.exit(f"wheel-check: {' '.join(map(str, words))[:200]}\n{done.stdout}{done.stderr}")
        return (done.stdout + done.stderr).strip()


def build(folder, hide):
    """The wheel, by way of the sdist."""
    home, out = folder / "home", folder / "wheel"
    home.mkdir()
    sdist = folder / otrn_wheel.build_sdist(folder)
    print(f"sdist {sdist.name}: {sdist.stat().st_size / 1e6:.2f} MB", flush=True)
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-index"]
    hide = [] if ROOT in pathlib.Path(sys.prefix).parents else hide  # .venv is in the tree
    subprocess.run([*hide, *pip, "-w", out, sdist], env=clean(home), cwd=folder, check=True)
    (wheel,) = out.iterdir()
    print(f"wheel {wheel.name}: {wheel.stat().st_size / 1e6:.2f} MB")
    if wheel.stat().st_size > MOST_BYTES:
        sys.exit(f"wheel-check: more than {MOST_BYTES / 1e6:g} MB")
    tag = re.search(r"manylinux_(\d+)_(\d+)_", wheel.name)
    if not tag or tuple(map(int, tag.groups())) > MOST_GLIBC:
        sys.exit(f"wheel-check: it runs with no glibc as old as {MOST_GLIBC[0]}.{MOST_GLIBC[1]}")
    return wheel


def check_alone(env, wheel):
    """Without a framework: the command, the C interface, types."""
    env.pip(wheel, "mypy")
    (env.home / "add.mlir").write_text(PROGRAM)
    print(env.run("otrn", "--version"))
    assert env.run("python", "-m", "opentrn", "--version") == env.run("otrn", "--version")
    assert env.run("python", "-c", "import opentrn; print('otrn', opentrn.__version__)") == env.run("otrn", "--version")
    print(env.run("otrn", "prof", "add.mlir", "--target=trn1").splitlines()[0])
    chip = env.run("python", "-c", "import opentrn; print(opentrn.chips_path())") + "/trn1.chip"
    env.run("otrn", "prof", "add.mlir", f"--target={chip}")
    env.run("otrn", "compile", "missing.mlir", fails=True)
    (env.home / "use.py").write_text(TYPED)
    found = env.run("mypy", "--strict", "use.py", fails=True)
    assert re.search(r"use.py:9: error: Argument 1 to \"report\"", found) and "Found 1 error" in found, found
    print("mypy --strict: types are seen, and the one wrong call is found")
    shutil.copy(ROOT / "pyproject.toml", env.home)
    env.run("mypy")
    print("mypy: the package itself is clean")
    (env.home / "use.c").write_text(C)
    if shutil.which("cc"):
        include, library = env.run(
            "python", "-c", "import opentrn; print(opentrn.include_path()); print(opentrn.library_path())"
        ).split()
        env.run("cc", f"-I{include}", "use.c", library, f"-Wl,-rpath,{os.path.dirname(library)}", "-o", "use")
        print("a C program links and says:", env.run("./use"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jax", default="0.9.2,0.10.2", help="versions to try")
    parser.add_argument("--keep", type=pathlib.Path, help="copy the wheel there")
    given = parser.parse_args()
    hide = hider()
    print("the tree is", "hidden from what runs" if hide else "not hidden: no mount namespaces here")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        wheel = build(folder, hide)
        check_alone(Environment(folder / "alone", hide), wheel)
        for version in given.jax.split(","):
            env = Environment(folder / f"jax-{version}", hide)
            env.pip(f"{wheel}[jax]", f"jax=={version}")
            print(env.run("python", "-c", TRAIN, JAX_PLATFORMS="opentrn,cpu"))
        if given.keep:
            shutil.copy(wheel, given.keep)
    print("the wheel is whole")


if __name__ == "__main__":
    main()
