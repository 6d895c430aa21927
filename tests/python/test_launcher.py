# SPDX-License-Identifier: Apache-2.0
"""What srun and mpirun tell, in torchrun's words."""

import pytest

from opentrn import _launcher

OMPI = {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "1", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}
SLURM = {"SLURM_PROCID": "3", "SLURM_NTASKS": "4", "SLURM_LOCALID": "1", "SLURM_JOB_ID": "17"}


@pytest.mark.parametrize(
    "env,host",
    [
        (SLURM | {"SLURM_STEP_NODELIST": "h[03-12,20],g1", "SLURM_JOB_NODELIST": "x"}, "h03"),
        (SLURM | {"SLURM_JOB_NODELIST": "a,b"}, "a"),
        (OMPI | {"OMPI_MCA_orte_hnp_uri": "12.0;tcp://10.0.0.1,10.1.0.1:3456", "PMIX_NAMESPACE": "12"}, "10.0.0.1"),
        (OMPI | {"OMPI_MCA_orte_hnp_uri": "12.0;tcp6://[fe80::1]:3456"}, "fe80::1"),
        (OMPI | {"PMIX_NAMESPACE": "prterun-host-a-812@1"}, "host-a"),
        (OMPI | {"OMPI_COMM_WORLD_LOCAL_SIZE": "4", "PMIX_NAMESPACE": "prterun-host-a-812@1"}, "127.0.0.1"),
    ],
)
def test_launchers(env, host):
    found = dict(env)
    _launcher.adopt(found)
    assert [found[k] for k in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR")] == ["3", "4", "1", host]
    assert 1024 < int(found["MASTER_PORT"]) < 32768 - 2


@pytest.mark.parametrize("env", [{}, OMPI, SLURM, SLURM | {"SLURM_NTASKS": "1", "SLURM_JOB_NODELIST": "a"}, SLURM | {"SLURM_JOB_NODELIST": "a", "RANK": "0", "WORLD_SIZE": "2"}])
def test_nothing_is_set(env):
    found = dict(env)
    _launcher.adopt(found)
    assert found == env
