# SPDX-License-Identifier: Apache-2.0
"""`otrn train` against JAX: the same models, data order and update, and steps exported from JAX."""

import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import OTRN, ROOT

sys.path.insert(0, str(ROOT / "scripts"))
import gpt_same

SIZES = {"layers": 2, "dim": 32, "heads": 2, "vocab": 256, "seq": 16, "batch": 4}


def otrn(*words):
    done = subprocess.run([OTRN, *map(str, words)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_gpt_steps_equal_jax(tmp_path):
    """From the checkpoint behind the first step JAX makes the same five; `make gpt-same` does it with GPT-2 124M and 20."""
    assert gpt_same.compare(str(OTRN), tmp_path, SIZES, 5, ["jax"], rate=1e-3) == []


def test_a_terminal_is_not_commanded(tmp_path):
    """What a model writes, and its prompt, cannot clear a terminal; a pipe gets the characters as they are."""
    otrn("train", f"--data={ROOT}/LICENSE", "--layers=1", "--dim=16", "--heads=1", "--seq=8", "--batch=2", "--steps=1", "--sample=0", f"--checkpoint={tmp_path}/run", "--devices=1")
    words = [OTRN, "generate", tmp_path / "run", "--prompt=a\tb\x1b[2J\x9b\xe9\x7f", "--sample=1", "--temperature=0"]
    piped = subprocess.run(words, capture_output=True, timeout=300).stdout
    assert piped.startswith("a\tb\x1b[2J\x9b\xe9\x7f".encode())
    ours, theirs = pty.openpty()
    with subprocess.Popen(words, stdout=theirs) as run:
        os.close(theirs)
        told = b""
        while not told.endswith(b"\n"):
            told += os.read(ours, 1000)
        assert run.wait(300) == 0
    os.close(ours)
    assert told.startswith("a\tb\\x1b[2J\\x9b\xe9\\x7f".encode())


def test_top_fits_a_terminal(tmp_path):
    """A line of a process takes one line of a terminal."""
    words = ["--layers=1", "--dim=16", "--heads=1", "--seq=8", "--batch=2", "--steps=10000000", "--devices=1", f"--data={ROOT}/LICENSE", f"--log={tmp_path}/log"]
    env, (ours, theirs) = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}, pty.openpty()
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 60, 0, 0))
    with subprocess.Popen([OTRN, "train", *words], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
        deadline = time.time() + 200
        while time.time() < deadline and (not (tmp_path / "log").exists() or (tmp_path / "log").read_text().count("loss") < 2):
            time.sleep(0.05)
        assert subprocess.run([OTRN, "top", "--once"], env=env, stdout=theirs, timeout=200).returncode == 0
        run.kill()
    os.close(theirs)
    lines = os.read(ours, 10000).decode().split("\r\n")
    os.close(ours)
    assert len(lines) == 4 and "1 process" in lines[0] and [len(line) for line in lines[1:]] == [60, 60, 0]


def test_exported_step_trains_and_resumes(tmp_path, cpu):
    """A step of JAX, trained without it: the same losses as JAX's own loop, and the same bits after a resume."""
    import opentrn

    def step(state, batch):
        def loss_of(params):
            hidden = jnp.tanh(params["embed"][batch["x"]] @ params["w"])
            logits = hidden @ params["out"]
            return -jnp.take_along_axis(jax.nn.log_softmax(logits), batch["y"][..., None], -1).mean()

        loss, grads = jax.value_and_grad(loss_of)(state["params"])
        speed = jax.tree.map(lambda s, g: 0.9 * s + g, state["speed"], grads)
        params = jax.tree.map(lambda p, s: p - 0.1 * s, state["params"], speed)
        return {"params": params, "speed": speed, "count": state["count"] + 1}, loss

    rng = np.random.default_rng(0)
    params = {
        "embed": rng.normal(size=(256, 16)).astype(np.float32) * 0.1,
        "w": rng.normal(size=(16, 16)).astype(np.float32) * 0.3,
        "out": rng.normal(size=(16, 256)).astype(np.float32) * 0.1,
    }
    state = {"params": params, "speed": jax.tree.map(np.zeros_like, params), "count": np.int32(0)}
    example = {"x": np.zeros((4, 8), np.int32), "y": np.zeros((4, 8), np.int32)}
    manifest = opentrn.export_step(step, state, example, tmp_path / "step")
    assert [row["kind"] for row in manifest["arguments"]].count("parameter") == 3
    words = ["train", tmp_path / "step", f"--data={ROOT}/LICENSE"]
    otrn(*words, "--steps=6", f"--checkpoint={tmp_path}/a", "--checkpoint-every=3", f"--log={tmp_path}/log")
    otrn(*words, "--steps=3", f"--checkpoint={tmp_path}/b")
    otrn(*words, "--steps=6", f"--checkpoint={tmp_path}/b", "--resume")
    checked = subprocess.run([OTRN, "check", "--train", tmp_path / "step", "--steps=2", "--seeds=1", words[2]], capture_output=True, text=True, timeout=300)  # fmt: skip
    assert checked.returncode in (0, 3) and "differences from f32" in checked.stdout
    assert files(tmp_path / "a" / "step-00000006") == files(tmp_path / "b" / "step-00000006")
    log = [json.loads(line) for line in open(tmp_path / "log")][1:]
    text = np.frombuffer((ROOT / "LICENSE").read_bytes(), np.uint8)
    fast = jax.jit(step)
    with jax.default_device(cpu):
        for i in range(6):
            x, y = gpt_same.batch(text, 0, i, 4, 8)
            state, loss = fast(state, {"x": x, "y": y})
            assert abs(float(loss) - log[i]["loss"]) < 1e-5 * abs(float(loss))


WAYS = [(1, 4), (2, 2), (4, 1)]


def layout(way, *words, status=0):
    """`otrn train` in so many processes of so many devices."""
    processes, devices = way
    launch = [OTRN, "launch", "-n", str(processes)] if processes > 1 else []
    done = subprocess.run([*launch, OTRN, "train", *map(str, words), f"--devices={devices}"], capture_output=True, text=True, timeout=300)
    assert done.returncode == status, done.stderr
    return done.stdout + done.stderr


def test_exported_over_a_mesh_in_every_layout(tmp_path):
    """Parameters cut one way, the batch another: the same checkpoints in one process, two and four, resumed in others too."""
    import opentrn
    from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

    mesh = Mesh(np.array(jax.devices("opentrn")[:4]).reshape(2, 2), ("dp", "tp"))

    def put(array, *spec):
        return jax.device_put(array, NamedSharding(mesh, P(*spec)))

    def step(state, batch):
        def loss_of(params):
            logits = jnp.tanh(params["embed"][batch["x"]] @ params["w"]) @ params["out"]
            return -jnp.take_along_axis(jax.nn.log_softmax(logits), batch["y"][..., None], -1).mean()

        loss, grads = jax.value_and_grad(loss_of)(state["params"])
        speed = jax.tree.map(lambda s, g: 0.9 * s + g, state["speed"], grads)
        return {"params": jax.tree.map(lambda p, s: p - 0.1 * s, state["params"], speed), "speed": speed, "count": state["count"] + 1}, loss

    rng = np.random.default_rng(0)
    first = {"embed": rng.normal(size=(256, 16)), "w": rng.normal(size=(16, 32)) * 0.3, "out": rng.normal(size=(32, 256)) * 0.1}
    specs = {"embed": ("dp", None), "w": (None, "tp"), "out": ("tp", None)}
    params = {k: put(v.astype(np.float32), *specs[k]) for k, v in first.items()}
    state = {"params": params, "speed": {k: put(np.zeros(v.shape, np.float32), *specs[k]) for k, v in first.items()}, "count": np.int32(0)}
    example = {k: put(np.zeros((4, 8), np.int32), "dp") for k in "xy"}
    manifest = opentrn.export_step(step, state, example, tmp_path / "step")
    assert manifest["mesh"] == {"dp": 2, "tp": 2}
    opentrn.export_step(step, jax.tree.map(np.asarray, state), jax.tree.map(np.asarray, example), tmp_path / "one")
    words = [tmp_path / "step", f"--data={ROOT}/LICENSE", "--checkpoint-every=3"]
    otrn("train", *words, "--steps=6", f"--checkpoint={tmp_path}/a", f"--log={tmp_path}/log")
    otrn("train", tmp_path / "one", *words[1:], "--steps=6", f"--log={tmp_path}/log1")
    losses = [[json.loads(line)["loss"] for line in open(tmp_path / log) if '"loss"' in line] for log in ("log", "log1")]
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-5)
    want = files(tmp_path / "a" / "step-00000006")
    for way, other in zip(WAYS, WAYS[1:] + WAYS[:1]):
        layout(way, *words, "--steps=3", f"--checkpoint={tmp_path}/{way[0]}")
        layout(other, *words, "--steps=6", f"--checkpoint={tmp_path}/{way[0]}", "--resume")
        assert files(tmp_path / str(way[0]) / "step-00000006") == want, (way, other)
    said = layout((2, 1), *words, "--steps=1", status=2)
    assert "exported for 4 devices, and this run has 2" in said and "--devices=2 for each process" in said
    said = layout((2, 2), tmp_path / "one", *words[1:], "--steps=1", status=2)
    assert "exported for 1 device, and this run has 4" in said and "export it over a mesh" in said


def test_export_says_what_is_wrong(tmp_path):
    import opentrn

    with pytest.raises(ValueError, match="another structure"):
        opentrn.export_step(lambda s, b: ((s, s), 0.0 * b), np.float32(1), np.float32(1), tmp_path)
    with pytest.raises(ValueError, match="one loss"):
        opentrn.export_step(lambda s, b: (s, (b, b)), np.float32(1), np.float32(1), tmp_path)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return (crc >> 15 | crc << 17) + 0xA282EAD8 & 0xFFFFFFFF


def test_tensorboard_records(tmp_path):
    """Records of the event file: lengths, checksums, and the loss of each step among them."""
    words = ["--model=mlp", "--layers=1", "--dim=16", "--batch=4", "--steps=3"]
    otrn("train", *words, f"--tensorboard={tmp_path}", f"--log={tmp_path}/log")
    log = [json.loads(line) for line in open(tmp_path / "log")][1:]
    raw = next(tmp_path.glob("events.out.tfevents.*")).read_bytes()
    events = []
    while raw:
        n = int.from_bytes(raw[:8], "little")
        assert int.from_bytes(raw[8:12], "little") == masked(raw[:8])
        assert int.from_bytes(raw[12 + n : 16 + n], "little") == masked(raw[12 : 12 + n])
        events.append(raw[12 : 12 + n])
        raw = raw[16 + n :]
    assert b"brain.Event:2" in events[0] and len(events) == 4
    for step, event in zip(log, events[1:], strict=True):
        assert event[9] == 0x10 and event[10] == step["step"]
        assert b"\x0a\x04loss\x15" + np.float32(step["loss"]).tobytes() in event


def test_validate_compares_precisions():
    """A step of JAX against its twin in double precision: f32 is as good, and what a cast does is told by parameter."""
    import opentrn

    def step(state, batch):
        loss, grads = jax.value_and_grad(
            lambda p: jnp.mean((jnp.tanh(batch["x"] @ p["a"]) @ p["b"] - batch["y"]) ** 2)
        )(state["params"])
        return {"params": jax.tree.map(lambda p, g: p - 0.1 * g, state["params"], grads)}, loss

    rng = np.random.default_rng(1)
    params = {k: rng.normal(size=(32, 32)).astype(np.float32) * 0.2 for k in ("a", "b")}
    example = {k: rng.normal(size=(16, 32)).astype(np.float32) for k in ("x", "y")}
    found = opentrn.validate(step, {"params": params}, example, steps=4, options=("--cache=off",))
    rows = {row["precision"]: row for row in found["precisions"]}
    assert rows["f64"]["reference"] and not rows["f32"]["worse"]
    assert abs(rows["f32"]["loss"] - rows["f64"]["loss"]) < 1e-6 < abs(rows["bf16"]["loss"] - rows["f64"]["loss"])
    assert rows["f32"]["gradients"].keys() == {"params.a", "params.b"}
    assert max(rows["f32"]["gradients"].values()) < 1e-4 < min(rows["bf16"]["gradients"].values())
