# SPDX-License-Identifier: Apache-2.0
"""The launcher that started this process: mpiexec of an MPI, or srun."""

from __future__ import annotations

import os
from typing import NamedTuple


class Launcher(NamedTuple):
    """A program that starts processes."""

    name: str  # for messages: "mpiexec of MPICH"
    process_count: int | None  # processes that it has started; None where it does not report it
    bind_flag: str  # command-line flag that gives every process its own cores


# Variable that identifies it, variable with the number of processes, name, flag; the first match counts.
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
    """Returns the launcher by its environment variables, or None for a process that was started directly."""
    environment = os.environ
    for variable, count, name, flag in _LAUNCHERS:
        if variable not in environment:
            continue
        if name == "srun" and "SLURM_STEP_ID" not in environment:
            continue  # a batch script or an allocation's shell: one process, however many the job has
        text = environment.get(count, "")
        return Launcher(name, int(text) if text.isdecimal() else None, flag)
    return None
