# SPDX-License-Identifier: Apache-2.0
"""What lies outside: a cache folder that is not ours alone, a host without memory."""

import os
import shutil
import subprocess
import sys


def python(text, **env):
    return subprocess.run([sys.executable, "-c", text], env=dict(os.environ, **env), capture_output=True, text=True)


def test_a_cache_that_cannot_be_used_is_a_warning(tmp_path):
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    text = "import jax; print(jax.jit(lambda x: x + 1)(1.0), jax.jit(lambda x: x + 2)(1.0))"
    done = python(text, OTRN_CACHE_DIR=str(open_to_all), OTRN_CACHE="on")
    assert done.stdout == "2.0 3.0\n", done
    assert done.stderr.count("can be written by others and is not used") == 1, done.stderr
    assert not list(open_to_all.iterdir())
    done = python(text, OTRN_CACHE_DIR=str(tmp_path / "own"), OTRN_CACHE="on")
    assert done.stdout == "2.0 3.0\n" and "cache folder" not in done.stderr, done


def test_a_copied_entry_is_not_anothers_result(tmp_path):
    text = "import jax, opentrn; print(jax.jit(lambda x: x + NUMBER)(1.0))"
    folder = tmp_path / "cache"
    env = dict(OTRN_CACHE_DIR=str(folder), OTRN_CACHE="on")
    assert python(text.replace("NUMBER", "1"), **env).stdout == "2.0\n"
    first = set(folder.glob("*.otrn"))
    assert first
    assert python(text.replace("NUMBER", "5"), **env).stdout == "6.0\n"
    for other in set(folder.glob("*.otrn")) - first:
        for one in first:
            shutil.copy(one, other)
    assert python(text.replace("NUMBER", "5"), **env).stdout == "6.0\n"


def test_kept_memory_goes_when_the_host_has_no_other():
    done = python(
        """
import resource, jax, jax.numpy as jnp
def ones(mb):
    return jax.block_until_ready(jax.jit(lambda: jnp.full((mb << 18,), 1, jnp.float32))())
ones(1)
big = jax.jit(lambda: jnp.full((224 << 18,), 1, jnp.float32)).lower().compile()
for mb in (64, 80, 96, 112, 128):
    ones(mb)  # freed at once, and kept
size = next(int(line.split()[1]) << 10 for line in open("/proc/self/status") if line.startswith("VmSize"))
resource.setrlimit(resource.RLIMIT_AS, (size + (100 << 20), resource.RLIM_INFINITY))
print(jax.block_until_ready(big()).nbytes)
"""
    )
    assert done.stdout == f"{224 << 20}\n", done
