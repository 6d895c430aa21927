# SPDX-License-Identifier: Apache-2.0
"""Checkpoints in S3: `otrn train --checkpoint=s3://…` against a server that checks what it gets and fails as it is told to."""

import ctypes
import os
import re
import signal
import subprocess
import time

import pytest
from conftest import OTRN, ROOT
from s3_server import KEY, SECRET, Server

try:
    ctypes.CDLL("libcurl.so.4")
except OSError:
    pytest.skip("no libcurl.so.4", allow_module_level=True)

SMALL = [f"--data={ROOT / 'LICENSE'}", "--layers=1", "--dim=32", "--heads=2", "--seq=16", "--batch=4", "--sample=0"]
LARGE = ["--model=mlp", "--layers=2", "--dim=2112", "--batch=4", "--sample=0"]  # a matrix and its two moments of 18 MB: two parts each
AT = "--checkpoint=s3://runs/a b/run"


@pytest.fixture
def server():
    with Server() as s:
        yield s
        s.shutdown()


def environment(server, **more):
    return {**os.environ, "HOME": "/nonexistent", **server.variables, **more}


def train(server, *words, status=0, **more):
    done = subprocess.run([OTRN, "train", *words], capture_output=True, text=True, timeout=300, env=environment(server, **more))
    assert done.returncode == status, done.stderr
    assert SECRET not in done.stdout + done.stderr
    return done.stdout + done.stderr


def whole(folder, *words):
    """The weights of a run that nobody disturbed."""
    done = subprocess.run([OTRN, "train", f"--checkpoint={folder}", *words], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    last = sorted(folder.glob("step-*"))[-1]
    return {path.name: path.read_bytes() for path in last.glob("*.safetensors")}


def stored(server, step):
    start = f"a b/run/step-{step:08}/"
    return {k[len(start) :]: v for k, v in server.objects.items() if k.startswith(start) and k.endswith(".safetensors")}


def steps(server):
    return sorted(int(k.split("step-")[1][:8]) for k in server.objects if k.endswith("/manifest.json"))


def test_saved_kept_resumed_and_read(server, tmp_path):
    train(server, *SMALL, AT, "--steps=5", "--checkpoint-every=1", "--keep=2")
    assert steps(server)[-1] == 5 and len(steps(server)) <= 2
    assert not server.uploads and all("step-" in k for k in server.objects)
    said = train(server, AT, "--resume", "--steps=8", "--sample=0")
    assert "going on from step 5" in said
    assert stored(server, 8) == whole(tmp_path / "w", *SMALL, "--steps=5") | whole(tmp_path / "w", "--resume", "--steps=8", "--sample=0")
    text = subprocess.run([OTRN, "generate", "s3://runs/a b/run", "--sample=20"], capture_output=True, text=True, env=environment(server), timeout=300)
    assert text.returncode == 0, text.stderr


def test_two_processes_write_their_shards(server, tmp_path):
    """One of them is refused for a while: the other's shards wait without a manifest, and then all is there."""
    seen = []

    def refused(method, key, ask):
        seen.extend([key] * (method == "PUT" and "shard-00001" in key))
        return (403, "AccessDenied") if method == "PUT" and "shard-00001" in key and len(seen) == 1 else None

    server.fail = refused
    server.objects["a b/run/run-dead"] = b"the mark of a run that was killed"
    words = ["train", *SMALL, AT, "--steps=20", "--checkpoint-every=5", "--devices=1"]
    done = subprocess.run([OTRN, "launch", "-n", "2", OTRN, *words], capture_output=True, text=True, timeout=300, env=environment(server))
    assert done.returncode == 0 and done.stderr.count("process 1: warning") == 1, done.stderr
    assert steps(server)[-1] == 20 and all("/step-" in k for k in server.objects)
    assert stored(server, 20) == whole(tmp_path / "w", *SMALL, "--steps=20", "--devices=2")


def test_another_run_is_not_written_over(server):
    train(server, *SMALL, AT, "--steps=1")
    said = train(server, *SMALL, AT, "--steps=1", status=2)
    assert "there are checkpoints of another run" in said


def test_parts_that_are_there_are_not_sent_again(server, tmp_path):
    def dies(method, key, ask):
        return "cut" if ask.get("partNumber") == "2" or "manifest" in key else None

    server.fail = dies
    with subprocess.Popen([OTRN, "train", *LARGE, AT, "--steps=1"], env=environment(server), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as run:
        deadline = time.time() + 200
        while not any(parts for _, parts in server.uploads.values()) and time.time() < deadline:
            time.sleep(0.02)
        run.send_signal(signal.SIGKILL)
    server.fail = None
    ((begun, _),) = server.uploads.values()
    assert not steps(server)
    server.asked.clear()
    train(server, *LARGE, AT, "--resume", "--steps=1")
    sent = [ask["partNumber"] for method, key, ask in server.asked if method == "PUT" and "partNumber" in ask and key == begun]
    assert sent == ["2"] and not server.uploads
    assert stored(server, 1) == whole(tmp_path / "w", *LARGE, "--steps=1")


def test_a_damaged_one_is_put_aside(server):
    train(server, *SMALL, AT, "--steps=2", "--checkpoint-every=1")
    name = next(k for k in server.objects if "step-00000002/shard" in k)
    server.objects[name] = server.objects[name][:-1] + b"?"
    said = train(server, AT, "--resume", "--steps=3", "--sample=0")
    assert "its checksum is wrong" in said and "going on from step 1" in said
    assert "a b/run/damaged-step-00000002/manifest.json" in server.objects and steps(server)[-1] == 3


@pytest.mark.parametrize(("what", "times"), [((503, "SlowDown"), 4), ((507, "InsufficientStorage"), 1), ((403, "AccessDenied"), 1), ("cut", 4)])
def test_the_run_goes_on_says_so_once_and_catches_up(server, what, times):
    seen = []

    def bad_for_a_while(method, key, ask):  # as often as the client asks again by itself
        seen.extend([key] * (method == "PUT"))
        return what if method == "PUT" and len(seen) <= times else None

    server.fail = bad_for_a_while
    said = train(server, *SMALL, AT, "--steps=30", "--checkpoint-every=10")
    assert said.count("warning:") == 1 and said.count("can be written again") == 1, said
    assert steps(server)[-1] == 30


def test_a_slow_server_holds_nothing_up(server, tmp_path):
    log, seen = tmp_path / "log", []

    def slow(method, key, ask):  # the first object takes as long as a hundred steps do
        if method == "PUT" and "shard" in key and not seen:
            seen.append(key)
            deadline = time.time() + 100
            while time.time() < deadline and log.read_text().count('"loss"') < 100:
                time.sleep(0.01)
        return None

    server.fail = slow
    said = train(server, *SMALL, AT, "--steps=150", "--checkpoint-every=5", f"--log={log}")
    assert "warning" not in said and steps(server)[-1] == 150


def test_what_is_wrong_is_told_before_the_run(server):
    wrong = train(server, *SMALL, AT, "--steps=1", status=1, AWS_SECRET_ACCESS_KEY="other-secret")
    assert "SignatureDoesNotMatch" in wrong and "hint: are AWS_ACCESS_KEY_ID" in wrong and "other-secret" not in wrong
    wrong = train(server, *SMALL, AT, "--steps=1", status=1, AWS_ACCESS_KEY_ID="other-key")
    assert "InvalidAccessKeyId" in wrong and "other-key" not in wrong
    wrong = train(server, *SMALL, "--checkpoint=s3://nobody/x", "--steps=1", status=1)
    assert "NoSuchBucket" in wrong and "make the bucket first" in wrong
    wrong = train(server, *SMALL, AT, "--steps=1", status=2, AWS_ACCESS_KEY_ID="")
    assert "no credentials for S3" in wrong
    wrong = train(server, *SMALL, AT, "--steps=1", status=1, AWS_ENDPOINT_URL="http://127.0.0.1:1")
    assert "cannot list what is there" in wrong and "is the server up?" in wrong
    wrong = train(server, *SMALL, "--checkpoint=s3://", "--steps=1", status=2)
    assert "it is s3://BUCKET/PREFIX" in wrong


def test_credentials_from_a_profile(server, tmp_path):
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text(f"[default]\naws_access_key_id = no\n\n[work]\naws_access_key_id={KEY}\n# a comment\naws_secret_access_key = {SECRET}\n")
    (tmp_path / ".aws" / "config").write_text(f"[profile work]\nregion = us-east-1\nendpoint_url = {server.variables['AWS_ENDPOINT_URL']}\n")
    none = {name: "" for name in server.variables}
    train(server, *SMALL, AT, "--steps=1", **{**none, "HOME": str(tmp_path), "AWS_PROFILE": "work"})
    assert steps(server) == [1]
    shown = subprocess.run([OTRN, "info", "options"], capture_output=True, text=True, env=environment(server), timeout=60).stdout
    assert SECRET not in shown and re.search(r"s3-secret .*\(set\)", shown)
