# SPDX-License-Identifier: Apache-2.0
"""Facts about libraries (BLAS, MPI, those of GPUs, versions) and about the job of this process."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import shutil
from collections.abc import Mapping
from typing import Any

from artifex_devices.doctor.facts import Section

_OPTIONAL = ("rich", "mpi4py", "jax", "jaxlib")
_NEEDED = ("ml_dtypes", "optree", "greenlet", "threadpoolctl")
_RANK_VARIABLES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")


def blas() -> Section:
    """The BLAS libraries of the process, as threadpoolctl finds them."""
    import numpy as np
    import threadpoolctl

    section = Section("BLAS")
    source = f"threadpoolctl {threadpoolctl.__version__}"
    np.ones((2, 2)) @ np.ones((2, 2))  # so that it is loaded
    found = [row for row in threadpoolctl.threadpool_info() if row["user_api"] == "blas"]
    rows = [
        {
            "library": row["internal_api"],
            "version": row["version"],
            "threads": row["num_threads"],
            "kernels": row.get("architecture"),
            "threading": row.get("threading_layer"),
        }
        for row in found
    ]
    none = None if rows else "no BLAS that threadpoolctl knows is loaded"
    section.add("libraries", rows, source, problem=none)
    threads = max((row["threads"] for row in rows), default=None)
    section.add("threads", threads, source, unit="threads", problem=none)
    return section


def mpi(environment: Mapping[str, str]) -> Section:
    """Whether programs of several processes can run; MPI is not initialized."""
    section = Section("MPI")
    there = importlib.util.find_spec("mpi4py") is not None
    section.add(
        "mpi4py", _version("mpi4py") if there else None, "importlib", problem=None if there else "not installed"
    )
    library, problem = None, None if there else "mpi4py is not installed"
    if there:
        library, problem = _mpi_library()
    section.add("library", library, "mpi4py.get_config()", problem=problem)
    launcher = shutil.which("mpiexec") or shutil.which("mpirun")
    problem = None if launcher else "neither mpiexec nor mpirun is there"
    section.add("launcher", os.path.basename(launcher) if launcher else None, "PATH", problem=problem)
    ranks = {name: environment[name] for name in _RANK_VARIABLES if name in environment}
    section.add("processes", ranks, "environment variables of launchers")
    return section


def gpus() -> Section:
    """The GPUs and TPUs of the machine, and why something is not known of them; devices of the runtime they are not."""
    from artifex_devices._hardware.find import find_accelerators

    section = Section("GPUs and TPUs")
    report = find_accelerators()
    problem = "; ".join(report.problems) or None
    source = "NVIDIA's management library, hwloc, sysfs"
    section.add("count", len(report.accelerators), source, problem=problem)
    for number, found in enumerate(report.accelerators):
        row = {
            "model": found.name,
            "type": found.device_type.value,
            "memory_bytes": found.memory_bytes,
            "pci": found.pci_address,
            "pci_id": found.pci_id,
            "numa_nodes": list(found.numa_os_indexes),
            "compute_capability": found.compute_capability,
        }
        problem = "; ".join(found.problems) or None
        known = {key: value for key, value in row.items() if value not in (None, [])}
        section.add(f"accelerator_{number}", known, ", ".join(found.sources), problem=problem)
    for name, version in (("driver", report.driver_version), ("cuda", report.cuda_version)):
        absent = None if version else "no NVIDIA driver that answers"
        section.add(name, version, "NVIDIA's management library", problem=absent)
    return section


def versions() -> Section:
    """Of everything that the results depend on."""
    import numpy as np

    import artifex_devices as ad
    from artifex_devices._core import _build_facts

    section = Section("Versions")
    section.add("artifex_devices", ad.__version__, "the package")
    section.add("python", f"{platform.python_implementation()} {platform.python_version()}", "the interpreter")
    section.add("numpy", np.__version__, "the package")
    built = _build_facts()
    section.add("hwloc", built["hwloc"], "the build of the core")
    section.add("compiler", built["compiler"], "the build of the core")
    for name in (*_NEEDED, *_OPTIONAL):
        version = _version(name)
        role = "needed" if name in _NEEDED else "optional"
        problem = None if version else f"not installed ({role})"
        section.add(name, version, "package metadata", problem=problem)
    return section


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _mpi_library() -> tuple[Any, str | None]:
    try:
        import mpi4py

        return (
            mpi4py.get_config() or None,
            None if mpi4py.get_config() else "mpi4py does not say what it was built with",
        )
    except Exception as error:  # a foreign package may fail in any way; the examination goes on
        return None, f"mpi4py cannot be imported ({type(error).__name__}: {error})"


def distributed() -> Section:
    """What launchers and distributed.initialize() say; MPI is not initialized."""
    from artifex_devices._base.text import cpu_list
    from artifex_devices.distributed import job
    from artifex_devices.distributed.launcher import find_launcher

    section = Section("Many processes")
    launcher = find_launcher()
    variables = "environment variables of launchers"
    absent = None if launcher else "no launcher of MPI has started this process"
    section.add("launcher", launcher.name if launcher else None, variables, problem=absent)
    if launcher is not None:
        count = launcher.process_count
        problem = None if count is not None else "the launcher does not say it"
        section.add("launched_processes", count, variables, unit="processes", problem=problem)

    joined = job.members()
    source = "distributed.initialize()"
    if joined is None:
        section.add("rank", None, source, problem="it was not called in this process")
        return section
    me, members, near = joined
    section.add("rank", me, source)
    section.add("processes", len(members), source, unit="processes")
    section.add("cpus", cpu_list(members[me].cpus), source)
    shares = [{"process": each.name, "cpus": cpu_list(each.cpus)} for each in members]
    section.add("shares", shares, source)
    section.add("shares_memory_with", list(near), source)
    return section
