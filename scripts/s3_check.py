# SPDX-License-Identifier: Apache-2.0
"""Training with checkpoints on a real S3 server (`make s3`): saved, read back, killed, full, refusing; the weights are those of a folder.

The server is the one that AWS_ENDPOINT_URL and the other variables name; RGW_PID, RGW_START and RGW_ADMIN, where set, kill it, start it
again and limit its space (scripts/s3_server.sh).
"""

import hashlib
import hmac
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

OTRN = sys.argv[1]
SMALL = ["--data=LICENSE", "--layers=1", "--dim=32", "--heads=2", "--seq=16", "--batch=4", "--sample=0"]
LARGE = ["--model=mlp", "--layers=2", "--dim=2048", "--batch=4", "--sample=0", "--schedule=constant", "--warmup=0"]  # 57 MB of state, four parts


def bucket_make(name):
    """One request that the run itself never makes, signed here."""
    at, key, secret = os.environ["AWS_ENDPOINT_URL"], os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"]
    stamp, region = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()), os.environ["AWS_REGION"]
    scope, empty, names = f"{stamp[:8]}/{region}/s3/aws4_request", hashlib.sha256(b"").hexdigest(), "host;x-amz-content-sha256;x-amz-date"
    lines = f"host:{at.split('//')[1]}\nx-amz-content-sha256:{empty}\nx-amz-date:{stamp}\n"
    canonical = hashlib.sha256(f"PUT\n/{name}\n\n{lines}\n{names}\n{empty}".encode()).hexdigest()
    for part in (stamp[:8], region, "s3", "aws4_request", f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{canonical}"):
        secret = hmac.new(("AWS4" + secret).encode() if isinstance(secret, str) else secret, part.encode(), "sha256").digest()
    sign = f"AWS4-HMAC-SHA256 Credential={key}/{scope}, SignedHeaders={names}, Signature={secret.hex()}"
    request = urllib.request.Request(f"{at}/{name}", method="PUT", headers={"Authorization": sign, "x-amz-date": stamp, "x-amz-content-sha256": empty})
    urllib.request.urlopen(request, timeout=60).read()


def train(*words, status=0, **more):
    done = subprocess.run([OTRN, "train", *words], capture_output=True, text=True, env={**os.environ, **more}, timeout=600)
    if done.returncode != status:
        sys.exit(f"FAIL: status {done.returncode} of {' '.join(words)}\n{done.stdout}{done.stderr}")
    if os.environ["AWS_SECRET_ACCESS_KEY"] in done.stdout + done.stderr:
        sys.exit("FAIL: the secret was printed")
    return done.stdout + done.stderr


def loss(said):
    return re.findall(r"^(?:\[0\] )?(step \d+, loss \S+)", said, re.M)[-1]


def same(name, ours, theirs):
    if ours != theirs:
        sys.exit(f"FAIL: {name}: {ours} and {theirs}")
    print(f"ok {name}: {ours}")


def checks(folder):
    bucket = f"trn-{os.getpid()}"
    bucket_make(bucket)
    at = f"--checkpoint=s3://{bucket}/a/run"
    train(*SMALL, at, "--steps=6", "--checkpoint-every=2", "--keep=2")
    train(*SMALL, f"--checkpoint={folder}/a", "--steps=6", "--checkpoint-every=2", "--keep=2")
    goes_on = ["--resume", "--steps=9", "--sample=0"]
    same("saved, kept and resumed", loss(train(at, *goes_on)), loss(train(f"--checkpoint={folder}/a", *goes_on)))
    at = f"--checkpoint=s3://{bucket}/b"
    alone = loss(train(*LARGE, "--steps=6"))
    same("in parts", loss(train(*LARGE, at, "--steps=6", "--checkpoint-every=2")), alone)
    same("read back", loss(train(at, "--resume", "--steps=8", "--sample=0")), loss(train(*LARGE, "--steps=8")))
    wrong = train(*SMALL, at, "--steps=1", status=1, AWS_SECRET_ACCESS_KEY="wrong") if "RGW_PID" in os.environ else "Signature"
    same("a wrong secret is told", "Signature" in wrong or "AccessDenied" in wrong, True)
    if "RGW_PID" in os.environ:
        server_checks(bucket)


def kill():
    os.kill(int(Path(os.environ["RGW_PID"]).read_text()), 9)


def start():
    subprocess.run([os.environ["RGW_START"]], check=True)
    for _ in range(600):
        try:
            urllib.request.urlopen(os.environ["AWS_ENDPOINT_URL"], timeout=60).read()
            return
        except OSError:
            time.sleep(0.1)
    sys.exit("FAIL: the server does not come up again")


def killed_checks(bucket, processes):
    """The server is killed while the processes of a run upload their shards."""
    at, whole = f"--checkpoint=s3://{bucket}/c{processes}", [*LARGE, f"--devices={processes}"]
    launch = [OTRN, "launch", "-n", str(processes)] if processes > 1 else []
    run = subprocess.Popen([*launch, OTRN, "train", *LARGE, at, "--steps=150", "--checkpoint-every=1"], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    for _ in range(3):  # somewhere in an upload, as it saves all the time
        time.sleep(2)
        kill()
        time.sleep(2)
        start()
    out, err = run.communicate(timeout=600)
    if run.returncode:
        sys.exit(f"FAIL: {err}")
    same(f"killed three times during uploads of {processes} process(es)", loss(out), loss(train(*whole, "--steps=150")))
    print(f"   it said: {err.count('warning:')} warnings, {err.count('written again')} times that it goes again")
    goes_on = train(at, "--resume", "--steps=152", "--sample=0", f"--devices={processes}")
    same("and resumed from what is there", loss(goes_on), loss(train(*whole, "--steps=152")))


def server_checks(bucket):
    for processes in 1, 2:
        killed_checks(bucket, processes)
    admin = os.environ["RGW_ADMIN"].split()
    subprocess.run([*admin, "quota", "set", "--uid=trn", "--quota-scope=user", "--max-size=1024"], check=True, capture_output=True)
    subprocess.run([*admin, "quota", "enable", "--uid=trn", "--quota-scope=user"], check=True, capture_output=True)
    kill()
    start()  # it remembers quotas for a while otherwise
    full = train(*LARGE, f"--checkpoint=s3://{bucket}/d", "--steps=4", status=1)
    print("  ", *[line for line in full.splitlines() if "error" in line or "hint" in line][-2:], sep="\n   ")
    same("no room is told", "Quota" in full and "make room" in full, True)


with tempfile.TemporaryDirectory() as there:
    checks(there)
