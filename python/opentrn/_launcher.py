# SPDX-License-Identifier: Apache-2.0
"""What Slurm's srun and Open MPI's mpirun tell the processes they start, in the words torchrun has for it."""

import itertools
import os
import re
import zlib

_FIRST_PORT, _PORTS = 30000, 2700  # below those that systems give away; the ports behind one are the coordinator's and the root's


def first_node(nodes):
    """The first of Slurm's list: "h[03-12,20],g1" begins with h03."""
    name, _, rest = nodes.partition(",")[0].partition("[")
    return name + "".join(itertools.takewhile(str.isdigit, rest))


def head(env):
    """The host of mpirun, where the first process is unless somebody asked for it elsewhere; None: nothing tells.

    Open MPI 4 has its address in a variable, Open MPI 5 its name in the job's."""
    address = re.search(r"://(\[[^\]]+\]|[^,:]+)", env.get("OMPI_MCA_orte_hnp_uri", ""))
    name = re.match(r"prterun-(.+)-[^-]*$", env.get("PMIX_NAMESPACE", ""))
    found = address or name
    return found and found.group(1)


def variables(env=os.environ):
    """RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT of a job of several processes; empty where nothing is known."""
    if {"SLURM_PROCID", "SLURM_NTASKS"} <= set(env):
        names = ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID")
        job = env.get("SLURM_JOB_ID", "")
        nodes = env.get("SLURM_STEP_NODELIST") or env.get("SLURM_JOB_NODELIST") or ""
        host = first_node(nodes) if nodes else None
    elif {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"} <= set(env):
        names = ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK")
        job = env.get("PMIX_NAMESPACE", "")
        one_host = env.get("OMPI_COMM_WORLD_LOCAL_SIZE", env["OMPI_COMM_WORLD_SIZE"]) == env["OMPI_COMM_WORLD_SIZE"]
        host = "127.0.0.1" if one_host else head(env)
    else:
        return {}
    rank, size, local = (env.get(name, "0") for name in names)
    if host is None or size == "1":
        return {}
    port = _FIRST_PORT + zlib.crc32(job.encode()) % (_PORTS // 3) * 3
    return {"RANK": rank, "WORLD_SIZE": size, "LOCAL_RANK": local, "MASTER_ADDR": host.strip("[]"), "MASTER_PORT": str(port)}


def adopt(env=os.environ):
    """Sets them where the program and the launcher did not, for torch.distributed's own way to begin."""
    if "WORLD_SIZE" not in env and "RANK" not in env:
        for name, value in variables(env).items():
            env.setdefault(name, value)
