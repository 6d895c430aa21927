# SPDX-License-Identifier: Apache-2.0
"""Four hosts on one: network namespaces on a bridge, each with its name and address (`make namespaces`; needs root).

Training over them has the bits of one process with all devices, over sockets and, where it is installed, libfabric. A link taken
down and a host that is stopped are named by the others; a host slowed to 1 Gbit/s and one that loses packets by `otrn health`. A job
one of whose processes is killed goes on from its checkpoint to the same loss, and strangers at every port disturb nobody.
Only namespaces that this program makes are touched, and all are taken away at its end."""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
HOSTS = 4
TAG = f"otrn{os.getpid()}"
LIMIT = 300  # against hanging only


def sh(*words):
    subprocess.run(words, check=True, capture_output=True, text=True)


def inside(host, *words):
    sh("ip", "netns", "exec", f"{TAG}h{host}", *words)


class Hosts:
    """h0 … h3 at 10.77.0.10 and so on; `agent HOST LINE` runs a line there, as ssh would."""

    def __enter__(self):
        self.folder = tempfile.mkdtemp()
        self.agent = os.path.join(self.folder, "agent")
        names = os.path.join(self.folder, "hosts")
        with open(names, "w") as f:
            f.write("127.0.0.1 localhost\n" + "".join(f"10.77.0.{10 + i} h{i}\n" for i in range(HOSTS)))
        with open(self.agent, "w") as f:
            f.write(
                f"#!/bin/sh\nh=$1; shift\nexec nsenter --net=/run/netns/{TAG}$h unshare --uts --mount --propagation private "
                f'sh -c "hostname $h; mount --bind {names} /etc/hosts; $*"\n'
            )
        os.chmod(self.agent, 0o755)
        self.made = []
        self.make("s")
        sh("ip", "netns", "exec", f"{TAG}s", "ip", "link", "add", "br0", "type", "bridge")
        sh("ip", "netns", "exec", f"{TAG}s", "ip", "link", "set", "br0", "up")
        for i in range(HOSTS):
            self.make(f"h{i}")
            sh("ip", "link", "add", f"e{i}", "netns", f"{TAG}h{i}", "type", "veth", "peer", "name", f"p{i}", "netns", f"{TAG}s")
            sh("ip", "netns", "exec", f"{TAG}s", "ip", "link", "set", f"p{i}", "master", "br0", "up")
            inside(i, "ip", "link", "set", "lo", "up")
            inside(i, "ip", "addr", "add", f"10.77.0.{10 + i}/24", "dev", f"e{i}")
            inside(i, "ip", "link", "set", f"e{i}", "up")
        return self

    def make(self, name):
        sh("ip", "netns", "add", TAG + name)
        self.made.append(TAG + name)

    def __exit__(self, *_):
        for name in self.made:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)
        shutil.rmtree(self.folder)

    def launch(self, otrn, command, devices=2, options=(), **variables):
        env = {**os.environ, "JAX_PLATFORMS": "opentrn,cpu", **variables}
        hosts = ",".join(f"h{i}" for i in range(HOSTS))
        words = [otrn, "launch", f"--hosts={hosts}", f"--ssh={self.agent}", f"--devices={devices}", *options, *command]
        return subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def shards(text):
    return sorted(re.findall(r"shard \w+ \d+ \w+", text))


def tell(what, ok, detail=""):
    print(f"{'ok' if ok else 'FAIL'} {what}{': ' if detail else ''}{detail}", flush=True)
    return ok


def same_bits(hosts, otrn):
    env = {**os.environ, "JAX_PLATFORMS": "opentrn,cpu", "OPENTRN_DEVICES": str(2 * HOSTS)}
    one = subprocess.run([sys.executable, f"{HERE}/fsdp.py", "4"], env=env, capture_output=True, text=True, timeout=LIMIT)
    want, good = shards(one.stdout), True
    assert len(want) == 4 * 2 * HOSTS, one.stderr
    for fabric in ("sockets", "auto"):
        out = hosts.launch(otrn, [sys.executable, f"{HERE}/fsdp.py", "4"], OTRN_FABRIC=fabric).communicate(timeout=LIMIT)[0]
        got = shards(out)
        good &= tell(f"4 hosts x 2 devices = 1 x 8, OTRN_FABRIC={fabric}", got == want, f"{len(got)} shards" if got == want else out[-1500:])
    return good


def failure(hosts, otrn, what, how, host):
    """Training until `how` happens to a host: the seconds until another process tells, and what it says."""
    job = hosts.launch(otrn, [sys.executable, f"{HERE}/fsdp.py", "endless"])
    said, ready, begin, took = [], 0, 0.0, None
    for line in job.stdout:
        said.append(line)
        ready += "ready" in line
        if "ready" in line and ready == HOSTS:
            time.sleep(1)
            how()
            begin = time.monotonic()
        if begin and took is None and re.search(rf"process {host} \(host h{host}, pid \d+, devices {2 * host} to {2 * host + 1}\)", line):
            took = time.monotonic() - begin
    status = job.wait(timeout=LIMIT)
    good = took is not None and took < 5 and status != 0
    return tell(what, good, f"named after {took:.1f} s, status {status}" if took is not None else "".join(said)[-1500:])


def pids(host, program):
    """Of the interpreters on a host that run a program."""
    out = subprocess.run(["ip", "netns", "pids", f"{TAG}h{host}"], check=True, capture_output=True, text=True).stdout
    words = {p: open(f"/proc/{p}/cmdline", "rb").read().split(b"\0") for p in map(int, out.split())}
    return [p for p, w in words.items() if len(w) > 1 and w[0] == sys.executable.encode() and w[1].endswith(program.encode())]


def stop(host):
    stopped = pids(host, "fsdp.py")
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    return stopped


def restarted(hosts, otrn):
    """A process is killed behind a step that is chosen at random; the job starts again from its checkpoint."""
    sys.path.insert(0, f"{HERE}/../python")
    from test_launch import TRAIN

    steps, step, losses = 30, random.randrange(2, 25), []
    text = TRAIN.replace("range(begin, 6)", f"range(begin, {steps})").replace("    multihost", '    print("saved", i, flush=True)\n    multihost')
    for kill in (False, True):
        folder = os.path.join(hosts.folder, f"kill{kill}")
        os.mkdir(folder)
        with open(f"{folder}/train.py", "w") as f:
            f.write(text)
        job = hosts.launch(otrn, [sys.executable, f"{folder}/train.py", folder], options=["--restarts=1"])
        said, killed = [], []
        for line in job.stdout:
            said.append(line)
            if kill and not killed and f"saved {step}\n" in line:
                killed = pids(1, "train.py")
                for pid in killed:
                    os.kill(pid, signal.SIGKILL)
        job.wait(timeout=LIMIT)
        losses.append([line.split()[-1] for line in said if " loss " in line])
        if kill != bool(killed) or kill != any("the job starts again" in line for line in said):
            return tell("killed and restarted", False, "".join(said)[-1500:])
    good = len(losses[0]) == HOSTS and losses[0] == losses[1] and len(set(losses[0])) == 1
    return tell(f"host 1 killed in step {step}, and the job restarted: the same loss", good, str(losses if not good else losses[0][0]))


def listeners(host):
    out = subprocess.run(["ip", "netns", "exec", f"{TAG}h{host}", "ss", "-Hltn"], check=True, capture_output=True, text=True).stdout
    return sorted({int(line.split()[3].rsplit(":", 1)[1]) for line in out.splitlines()})


STRANGER = """
import os, random, socket, sys
doors, kept = [(at.split(":")[0], int(at.split(":")[1])) for at in sys.argv[1:]], []
for i in range(10000):
    s = socket.socket()
    s.settimeout(5)
    try:
        s.connect(doors[i % len(doors)])
        if i % 4:
            s.send(os.urandom((7, 96, 4096)[i % 3]))
    except OSError:
        pass
    kept.append(s)  # some stay, without another word
    if len(kept) > 300:
        kept.pop(random.randrange(len(kept))).close()
"""


def until(done):
    """Waits for it; the limit is against hanging only."""
    end = time.monotonic() + LIMIT
    while not done() and time.monotonic() < end:
        time.sleep(0.05)
    return done()


def hostile(hosts, otrn, fabric):
    """10,000 strangers with random bytes at every port that listens on any host, the root's and libfabric's, while a job runs there."""
    job = hosts.launch(otrn, [sys.executable, f"{HERE}/fsdp.py", "endless"], OTRN_FABRIC=fabric)
    said, ready, doors, seen = [], 0, [], {}

    def attack():
        doors.extend(f"10.77.0.{10 + host}:{port}" for host in range(HOSTS) for port in listeners(host))
        strangers = subprocess.run([hosts.agent, "h3", f"{sys.executable} {hosts.folder}/stranger.py {' '.join(doors)}"], check=False, timeout=LIMIT)
        before = len(said)
        seen.update(status=strangers.returncode, runs=job.poll() is None, goes_on=until(lambda: len(said) > before))
        for pid in pids(1, "fsdp.py"):
            os.kill(pid, signal.SIGKILL)

    with open(f"{hosts.folder}/stranger.py", "w") as f:
        f.write(STRANGER)
    thread = threading.Thread(target=attack)
    for line in job.stdout:
        said.append(line)
        ready += "ready" in line
        if ready == HOSTS and not thread.ident:
            thread.start()
    thread.join()
    job.wait(timeout=LIMIT)
    good = bool(doors) and seen == {"status": 0, "runs": True, "goes_on": True}
    told = f"{len(doors)} ports, and the job goes on" if good else f"{doors} {seen} " + "".join(said)[-1500:]
    return tell(f"10,000 strangers at every port, OTRN_FABRIC={fabric}", good, told)


def through_fabric(hosts, otrn):
    """Where libfabric is installed data goes through it, between all pairs."""
    out = hosts.launch(otrn, [otrn, "health", "--slower=99"], OTRN_FABRIC="tcp").communicate(timeout=LIMIT)[0]
    if "is not installed" in out or "built without" in out:
        print("skipped libfabric: not installed", flush=True)
        return True
    pairs = len(re.findall(r"(?m)  fabric \w+$", out))
    good = pairs == HOSTS * (HOSTS - 1) // 2
    return tell("libfabric between hosts", good, f"{pairs} pairs" if good else out[-1500:])


def health(hosts, otrn, what, pattern):
    job = hosts.launch(otrn, [otrn, "health", "--slower=60"])
    out = job.communicate(timeout=LIMIT)[0]
    found = [line for line in out.splitlines() if "behind:" in line]
    named = [line.split("behind: ")[1] for line in found if re.search(pattern, line)]
    good = job.returncode == 3 and bool(named)
    return tell(what, good, named[0] if good else out[-2500:])


def main():
    otrn = os.path.abspath(sys.argv[1])
    if os.geteuid() or not all(map(shutil.which, ("ip", "tc", "nsenter", "unshare"))):
        print("skipped: network namespaces need root and iproute2")
        return 0
    os.chdir(tempfile.gettempdir())
    good = True
    with Hosts() as hosts:
        good &= through_fabric(hosts, otrn)
        good &= same_bits(hosts, otrn)
        good &= restarted(hosts, otrn)
        for fabric in ("sockets", "auto"):
            good &= hostile(hosts, otrn, fabric)
        good &= failure(hosts, otrn, "link of host 2 taken down", lambda: inside(2, "ip", "link", "set", "e2", "down"), 2)
        inside(2, "ip", "link", "set", "e2", "up")
        good &= failure(hosts, otrn, "host 1 stopped", lambda: stop(1), 1)
        inside(1, "tc", "qdisc", "add", "dev", "e1", "root", "tbf", "rate", "1gbit", "burst", "256kb", "latency", "50ms")
        good &= health(hosts, otrn, "host 1 slowed to 1 Gbit/s", r"host h1, of process 1, sends")
        inside(1, "tc", "qdisc", "del", "dev", "e1", "root")
        if shutil.which("nft"):
            rules = os.path.join(hosts.folder, "loss")
            with open(rules, "w") as f:
                f.write("table ip loss {\nchain in {\ntype filter hook input priority 0;\nnumgen random mod 100 < 1 drop\n}\n}\n")
            inside(3, "nft", "-f", rules)
            good &= health(hosts, otrn, "host 3 loses 1 % of packets", r"to process 3 \(host h3.*sent again")
        else:
            print("skipped packet loss: no nft")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
