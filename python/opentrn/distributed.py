# SPDX-License-Identifier: Apache-2.0
"""Starting JAX in several processes: `import opentrn.distributed`, then jax.distributed.initialize() without arguments.

JAX knows Slurm, Open MPI 4, mpi4py and Kubernetes by itself. Importing this module teaches it the variables of torchrun, of Open MPI 5
and of the Neuron runtime. Where the latter say how many devices each process has, OPENTRN_DEVICES follows, unless it is set.
"""

import os
import zlib

from jax._src.clusters import ClusterEnv

from opentrn import _launcher


def _port(text):
    """A port of a job, the same in all its processes."""
    return 61440 + zlib.crc32(text.encode()) % 4096


def _with_port(address, port):
    return f"{address.rsplit(':', 1)[0]}:{port}" if port else address


class TorchrunCluster(ClusterEnv):
    """RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT: torchrun, and whoever sets them as it does.

    torchrun's own store listens at MASTER_PORT, so the coordinator takes the port behind it."""

    name = "torchrun"

    @classmethod
    def is_env_present(cls):
        return {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"} <= set(os.environ)

    @classmethod
    def get_coordinator_address(cls, timeout_secs=None, override_coordinator_port=None):
        port = override_coordinator_port or int(os.environ["MASTER_PORT"]) + 1
        return f"{os.environ['MASTER_ADDR']}:{port}"

    @classmethod
    def get_process_count(cls):
        return int(os.environ["WORLD_SIZE"])

    @classmethod
    def get_process_id(cls):
        return int(os.environ["RANK"])


class OpenMpi5Cluster(ClusterEnv):
    """Open MPI 5 says nowhere which host is the first: that of mpirun, unless JAX_COORDINATOR_ADDRESS tells another."""

    name = "ompi5"

    @classmethod
    def is_env_present(cls):
        return {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"} <= set(os.environ) and "OMPI_MCA_orte_hnp_uri" not in os.environ

    @classmethod
    def get_coordinator_address(cls, timeout_secs=None, override_coordinator_port=None):
        size = os.environ["OMPI_COMM_WORLD_SIZE"]
        host = "127.0.0.1" if os.environ.get("OMPI_COMM_WORLD_LOCAL_SIZE", size) == size else _launcher.head(os.environ)
        if host is None:
            raise RuntimeError("Open MPI 5 on several hosts: say where the first process listens, mpirun -x JAX_COORDINATOR_ADDRESS=HOST:PORT")
        return f"{host}:{override_coordinator_port or _port(os.environ.get('PMIX_NAMESPACE', ''))}"

    @classmethod
    def get_process_count(cls):
        return int(os.environ["OMPI_COMM_WORLD_SIZE"])

    @classmethod
    def get_process_id(cls):
        return int(os.environ["OMPI_COMM_WORLD_RANK"])


class NeuronCluster(ClusterEnv):
    """NEURON_RT_ROOT_COMM_ID, NEURON_PJRT_PROCESSES_NUM_DEVICES ("4,4") and NEURON_PJRT_PROCESS_INDEX."""

    name = "neuron"

    @classmethod
    def is_env_present(cls):
        return {"NEURON_RT_ROOT_COMM_ID", "NEURON_PJRT_PROCESSES_NUM_DEVICES", "NEURON_PJRT_PROCESS_INDEX"} <= set(os.environ)

    @classmethod
    def get_coordinator_address(cls, timeout_secs=None, override_coordinator_port=None):
        return _with_port(os.environ["NEURON_RT_ROOT_COMM_ID"], override_coordinator_port)

    @classmethod
    def get_process_count(cls):
        return len(os.environ["NEURON_PJRT_PROCESSES_NUM_DEVICES"].split(","))

    @classmethod
    def get_process_id(cls):
        index = int(os.environ["NEURON_PJRT_PROCESS_INDEX"])
        os.environ.setdefault("OPENTRN_DEVICES", os.environ["NEURON_PJRT_PROCESSES_NUM_DEVICES"].split(",")[index])
        return index
