# SPDX-License-Identifier: Apache-2.0
"""otrn launch: processes that meet at the launcher's root without JAX's coordinator, and a job that is killed and goes on from its
checkpoint with the numbers of one that was not."""

import subprocess
import sys

from opentrn._root import Root

LIMIT = 300

TRAIN = """
import os, signal, sys
import jax, jax.numpy as jnp, numpy as np
from jax.experimental import multihost_utils
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
folder, again = sys.argv[1], os.environ["OTRN_GENERATION"] != "0"
print("process", jax.process_index(), "of", jax.process_count(), "devices", len(jax.local_devices()), "of", len(jax.devices()), flush=True)
mesh = jax.make_mesh((len(jax.devices()),), ("x",), axis_types=(AxisType.Auto,))
put = lambda a, *spec: jax.make_array_from_callback(a.shape, NamedSharding(mesh, P(*spec)), lambda i: a[i])
rng = np.random.default_rng(0)
x, w, begin = put(rng.standard_normal((16, 32)).astype(np.float32), "x"), rng.standard_normal((32, 8)).astype(np.float32), 0
file = folder + "/checkpoint.npz"
if os.path.exists(file):
    saved = np.load(file)
    w, begin = saved["w"], int(saved["step"])
    print("from step", begin, flush=True)
w = put(w, "x")
loss = lambda w, x: (jnp.tanh(x @ w) ** 2).mean()
step = jax.jit(lambda w, x: (w - 0.1 * jax.grad(loss)(w, x), loss(w, x)), out_shardings=(w.sharding, NamedSharding(mesh, P())))
for i in range(begin, 6):
    w, l = step(w, x)
    whole = multihost_utils.process_allgather(w, tiled=True)
    if jax.process_index() == 0:
        np.savez(file[:-4] + ".new.npz", w=whole, step=i + 1)
        os.replace(file[:-4] + ".new.npz", file)
    multihost_utils.sync_global_devices("saved")
    if i == 2 and "kill" in sys.argv and not again and jax.process_index() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
print("loss", float(l).hex(), flush=True)
"""


def launch(folder, *words):
    folder.mkdir()
    (folder / "train.py").write_text(TRAIN)
    return subprocess.run(
        [sys.executable, "-m", "opentrn", "launch", "-n", "2", "--devices=2", *words[:1], sys.executable, str(folder / "train.py"), str(folder), *words[1:]],
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )


def losses(done):
    return sorted(line.split()[-1] for line in done.stdout.splitlines() if "loss" in line)


def test_a_killed_job_goes_on_from_its_checkpoint(tmp_path, monkeypatch):
    monkeypatch.setenv("JAX_PLATFORMS", "opentrn,cpu")
    monkeypatch.delenv("OPENTRN_DEVICES", raising=False)
    whole = launch(tmp_path / "whole", "--restarts=0")
    assert whole.returncode == 0, whole.stderr[-3000:]
    assert "[0] process 0 of 2 devices 2 of 4" in whole.stdout and "[1] process 1 of 2 devices 2 of 4" in whole.stdout
    killed = launch(tmp_path / "killed", "--restarts=1", "kill")
    assert killed.returncode == 0, killed.stderr[-3000:]
    assert "was killed by signal 9" in killed.stderr and "the job starts again, 1 of 1" in killed.stderr
    assert "[0] from step 3" in killed.stdout
    assert len(losses(whole)) == 2 and losses(killed) == losses(whole)


def test_a_missing_plugin_is_named(monkeypatch):
    """As on a host where the package is not installed: no process trains alone on the CPU."""
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
    alone = "import importlib.metadata as m; m.entry_points = lambda **_: (); import jax; print('trains on', jax.devices())"
    words = [sys.executable, "-m", "opentrn", "launch", sys.executable, "-c", alone]
    done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 1 and "trains on" not in done.stdout, done.stdout
    assert "opentrn" in done.stderr.splitlines()[-2] + done.stderr.splitlines()[-1], done.stderr


def test_the_store_holds_bytes():
    first = Root("127.0.0.1:0", "words", serve=True)
    other = Root(first.address, "words")
    first.put("key", b"a\0b")
    assert other.get("key", 60) == b"a\0b"
    other.close()
    first.close()
