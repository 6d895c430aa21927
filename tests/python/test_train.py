# SPDX-License-Identifier: Apache-2.0
"""`otrn train` against JAX: the same models, data order and update, and steps exported from JAX."""

import json
import subprocess

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import OTRN, ROOT

M64 = (1 << 64) - 1
SIZES = {"layers": 2, "dim": 32, "heads": 2, "seq": 16, "batch": 4}


def otrn(*words):
    done = subprocess.run([OTRN, *map(str, words)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def tensors(folder):
    """The safetensors of a checkpoint, read by hand: the format is the point."""
    found = {}
    for path in sorted(folder.glob("*.safetensors")):
        raw = path.read_bytes()
        n = int.from_bytes(raw[:8], "little")
        for name, row in json.loads(raw[8 : 8 + n]).items():
            a, b = row["data_offsets"]
            assert row["dtype"] == "F32"
            found[name] = np.frombuffer(raw[8 + n + a : 8 + n + b], np.float32).reshape(row["shape"])
    return found


# --- the order of samples, as src/train/random.h and data.c have it -----------------------------------


def mix(h):
    h = (h ^ h >> 30) * 0xBF58476D1CE4E5B9 & M64
    h = (h ^ h >> 27) * 0x94D049BB133111EB & M64
    return h ^ h >> 31


def random_at(seed, stream, i):
    key = mix((seed * 0x9E3779B97F4A7C15 + mix(stream + 0x632BE59BD9B4E019 & M64)) & M64)
    return mix((key + (i + 1) * 0x9E3779B97F4A7C15) & M64)


def order(seed, epoch, i, count):
    half = 1
    while half < 31 and 1 << 2 * half < count:
        half += 1
    mask = (1 << half) - 1
    while True:
        left, right = i >> half, i & mask
        for round in range(4):
            left, right = right, left ^ (random_at(seed ^ epoch << 32, (1 << 20) + (round << 24), right) & mask)
        i = left << half | right
        if i < count:
            return i


def window(text, seed, n, length):
    count = len(text) // length - 1
    epoch = n // count
    at = random_at(seed, (1 << 20) + 1, epoch) % length + order(seed, epoch, n % count, count) * length
    return np.frombuffer(text[at : at + length], np.uint8).astype(np.int32)


def batch(text, seed, step, rows, seq):
    both = np.stack([window(text, seed, step * rows + r, seq + 1) for r in range(rows)])
    return both[:, :-1], both[:, 1:]


# --- the model -----------------------------------------------------------------------------------------


def dense(p, name, x):
    return x @ p[name + ".weight"] + p[name + ".bias"]


def norm(p, name, x):
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / jnp.sqrt(var + 1e-5) * p[name + ".weight"] + p[name + ".bias"]


def loss_of(p, x, y, layers, heads):
    rows, seq = x.shape
    h = p["tokens.weight"][x] + p["places.weight"]
    mask = jnp.tril(jnp.ones((seq, seq), bool))
    for i in range(layers):
        at = f"layers.{i}"
        n = norm(p, at + ".norm1", h)
        q, k, v = (
            dense(p, f"{at}.attention.{w}", n).reshape(rows, seq, heads, -1).swapaxes(1, 2) for w in "qkv"
        )
        scores = jnp.where(mask, q @ k.swapaxes(2, 3) / np.sqrt(q.shape[-1]), -1e30)
        mixed = (jax.nn.softmax(scores) @ v).swapaxes(1, 2).reshape(rows, seq, -1)
        h = h + dense(p, at + ".attention.out", mixed)
        wide = jax.nn.gelu(dense(p, at + ".up", norm(p, at + ".norm2", h)), approximate=True)
        h = h + dense(p, at + ".down", wide)
    logits = norm(p, "norm", h) @ p["tokens.weight"].T
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), y[..., None], -1).mean()


def adamw(p, m, v, g, step, rate):
    length = jnp.sqrt(sum(jnp.sum(a * a) for a in g.values()))
    g = {k: a * jnp.minimum(1.0, 1.0 / (length + 1e-6)) for k, a in g.items()}
    m = {k: 0.9 * m[k] + 0.1 * g[k] for k in p}
    v = {k: 0.95 * v[k] + 0.05 * g[k] ** 2 for k in p}
    c1, c2 = 1 / (1 - 0.9 ** (step + 1)), 1 / (1 - 0.95 ** (step + 1))
    new = {}
    for k in p:
        by = m[k] * c1 / (jnp.sqrt(v[k] * c2) + 1e-8) + (0.1 * p[k] if p[k].ndim > 1 else 0)
        new[k] = p[k] - rate * by
    return new, m, v


def test_gpt_steps_equal_jax(tmp_path, cpu):
    """Six steps of the GPT: from the checkpoint behind the first, JAX makes the same five."""
    text = (ROOT / "LICENSE").read_bytes()
    words = [f"--{k}={v}" for k, v in SIZES.items()]
    otrn("train", f"--data={ROOT}/LICENSE", *words, "--steps=6", "--schedule=constant", "--warmup=0", "--seed=3", "--sample=0",
         f"--checkpoint={tmp_path}/run", "--checkpoint-every=1", "--keep=0", f"--log={tmp_path}/log")  # fmt: skip
    log = [json.loads(line) for line in open(tmp_path / "log")][1:]
    first = tensors(tmp_path / "run" / "step-00000001")
    names = [k for k in first if not k.endswith((".m", ".v"))]
    update = jax.jit(adamw)
    gradient = jax.jit(jax.value_and_grad(loss_of), static_argnums=(3, 4))
    with jax.default_device(cpu):
        p, m, v = ({k: jnp.asarray(first[k + end]) for k in names} for end in ("", ".m", ".v"))
        for step in range(1, 6):
            x, y = batch(text, 3, step, SIZES["batch"], SIZES["seq"])
            loss, g = gradient(p, x, y, SIZES["layers"], SIZES["heads"])
            assert abs(float(loss) - log[step]["loss"]) < 1e-5 * abs(float(loss))
            p, m, v = update(p, m, v, g, step, 1e-3)
    last = tensors(tmp_path / "run" / "step-00000006")
    for k in names:
        np.testing.assert_allclose(last[k], p[k], atol=2e-5, rtol=1e-4, err_msg=k)


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
    file = "step-00000006/shard-00000-of-00001.safetensors"
    assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()
    log = [json.loads(line) for line in open(tmp_path / "log")][1:]
    text = (ROOT / "LICENSE").read_bytes()
    fast = jax.jit(step)
    with jax.default_device(cpu):
        for i in range(6):
            x, y = batch(text, 0, i, 4, 8)
            state, loss = fast(state, {"x": x, "y": y})
            assert abs(float(loss) - log[i]["loss"]) < 1e-5 * abs(float(loss))


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
