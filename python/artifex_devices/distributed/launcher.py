# SPDX-License-Identifier: Apache-2.0
"""What started this process: mpiexec of which MPI, srun, or nobody."""

from __future__ import annotations

import os
from typing import NamedTuple

__all__ = ["Launcher", "find_launcher"]


class Launcher(NamedTuple):
    """A program that starts processes, and what it has said of this one.

    Attributes:
        name: "mpiexec of MPICH".
        process_count: How many processes it has started; None where it does not say.
        bind_flag: How to have it give every process cores of its own.
    """

    name: str
    process_count: int | None
    bind_flag: str


# Variable that gives it away, variable with the number of processes, name, flag; the first that fits counts.
_LAUNCHERS = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "mpiexec of Open MPI", "--bind-to core --map-by slot:PE=n"),
    ("SLURM_PROCID", "SLURM_NTASKS", "srun", "--cpus-per-task=n --cpu-bind=cores"),
    ("I_MPI_HYDRA_HOST_FILE", "PMI_SIZE", "mpiexec of Intel MPI", "-genv I_MPI_PIN_DOMAIN=auto"),
    ("PMI_RANK", "PMI_SIZE", "mpiexec of MPICH", "-bind-to core:n"),
    ("PMIX_RANK", "", "a launcher with PMIx", "--bind-to core"),
    ("PMI_ID", "PMI_SIZE", "mpiexec of MPICH", "-bind-to core:n"),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "mpiexec of MVAPICH", "-bind-to core:n"),
)


def find_launcher() -> Launcher | None:
    """The launcher by its environment variables; None for a process that was started by hand."""
    environment = os.environ
    for sign, count, name, flag in _LAUNCHERS:
        if sign not in environment:
            continue
        if name == "srun" and "SLURM_STEP_ID" not in environment:
            continue  # a batch script or an allocation's shell: one process, whatever the job asks for
        text = environment.get(count, "")
        return Launcher(name, int(text) if text.isdecimal() else None, flag)
    return None
