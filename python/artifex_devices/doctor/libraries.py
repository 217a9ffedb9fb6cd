# SPDX-License-Identifier: Apache-2.0
"""Facts about libraries (BLAS, MPI, GPU libraries, versions) and about the job of this process."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
import shutil
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from artifex_devices.doctor.report import Section

_ROLES = {
    **dict.fromkeys(("ml_dtypes", "greenlet", "threadpoolctl"), "needed"),
    **dict.fromkeys(("rich", "mpi4py", "jax", "jaxlib"), "optional"),
}
_RANK_VARIABLES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")


def blas() -> Section:
    """Lists the BLAS libraries of the process, as threadpoolctl finds them."""
    import numpy as np
    import threadpoolctl

    section = Section("BLAS")
    source = f"threadpoolctl {threadpoolctl.__version__}"
    np.ones((2, 2)) @ np.ones((2, 2))  # so that it is loaded
    keys = {
        "library": "internal_api",
        "version": "version",
        "threads": "num_threads",
        "kernels": "architecture",
        "threading": "threading_layer",
    }
    found = [row for row in threadpoolctl.threadpool_info() if row["user_api"] == "blas"]
    rows = [{name: row.get(key) for name, key in keys.items()} for row in found]
    none = None if rows else "no BLAS that threadpoolctl knows is loaded"
    section.add("libraries", rows, source, problem=none)
    threads = max((row["threads"] for row in rows), default=None)
    section.add("threads", threads, source, unit="threads", problem=none)
    return section


def mpi(environment: Mapping[str, str]) -> Section:
    """Reports whether programs of several processes can run; MPI is not initialized."""
    section = Section("MPI")
    is_there = importlib.util.find_spec("mpi4py") is not None
    section.add("mpi4py", _version("mpi4py") if is_there else None, "importlib", absent="not installed")
    library, problem = _mpi_library() if is_there else (None, "mpi4py is not installed")
    section.add("library", library, "mpi4py.get_config()", problem=problem)
    launcher = next((name for name in ("mpiexec", "mpirun") if shutil.which(name)), None)
    section.add("launcher", launcher, "PATH", absent="neither mpiexec nor mpirun is there")
    ranks = {name: environment[name] for name in _RANK_VARIABLES if name in environment}
    section.add("processes", ranks, "environment variables of launchers")
    return section


def gpus() -> Section:
    """Reports the GPUs and TPUs of the machine, which need not be devices of the runtime, and why facts are missing."""
    from artifex_devices._hardware.find import find_accelerators

    section = Section("GPUs and TPUs")
    report = find_accelerators()
    source = "NVIDIA's management library, hwloc, sysfs"
    section.add("count", len(report.accelerators), source, problem="; ".join(report.problems) or None)
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
        known = {key: value for key, value in row.items() if value not in (None, [])}
        section.add(f"accelerator_{number}", known, ", ".join(found.sources), problem="; ".join(found.problems) or None)
    for name, version in (("driver", report.driver_version), ("cuda", report.cuda_version)):
        section.add(name, version, "NVIDIA's management library", absent="no NVIDIA driver that answers")
    _add_cuda(section)
    return section


def _add_cuda(section: Section) -> None:
    from artifex_devices._core.internal import cuda_report

    report = cuda_report()
    source = f"the CUDA driver, {report['library'] or 'libcuda.so.1'}"
    section.add("cuda_devices", report["gpus"] or None, source, problem=report["problem"] or None)
    section.add("cuda_repair", report["fix"] or "none needed", source)


def versions() -> Section:
    """Returns the versions of everything that the results depend on."""
    import numpy as np

    import artifex_devices as ad
    from artifex_devices._core.internal import build_facts

    section = Section("Versions")
    section.add("artifex_devices", ad.__version__, "the package")
    section.add("python", f"{platform.python_implementation()} {platform.python_version()}", "the interpreter")
    section.add("numpy", np.__version__, "the package")
    for name in ("hwloc", "compiler"):
        section.add(name, build_facts()[name], "the build of the core")
    for name, role in _ROLES.items():
        section.add(name, _version(name), "package metadata", absent=f"not installed ({role})")
    return section


def _version(name: str) -> str | None:
    with suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(name)
    return None


def _mpi_library() -> tuple[Any, str | None]:
    try:
        import mpi4py

        built_with = mpi4py.get_config()
    except Exception as error:  # a foreign package may fail in any way; the examination continues
        return None, f"mpi4py cannot be imported ({type(error).__name__}: {error})"
    return (built_with, None) if built_with else (None, "mpi4py does not report the MPI that it was built with")


def distributed() -> Section:
    """Reports what launchers and distributed.initialize() say; MPI is not initialized."""
    from artifex_devices._base.text import cpu_list
    from artifex_devices.distributed import job
    from artifex_devices.distributed.launcher import find_launcher

    section = Section("Many processes")
    launcher = find_launcher()
    variables = "environment variables of launchers"
    name = launcher.name if launcher else None
    section.add("launcher", name, variables, absent="no launcher of MPI has started this process")
    if launcher is not None:
        count, absent = launcher.process_count, "the launcher does not say it"
        section.add("launched_processes", count, variables, unit="processes", absent=absent)
    joined = job.members()
    source = "distributed.initialize()"
    section.add("rank", joined and joined[0], source, absent="it was not called in this process")
    if joined is not None:
        me, members, near = joined
        section.add("processes", len(members), source, unit="processes")
        section.add("cpus", cpu_list(members[me].cpus), source)
        shares = [{"process": each.name, "cpus": cpu_list(each.cpus)} for each in members]
        section.add("shares", shares, source)
        section.add("shares_memory_with", list(near), source)
    return section
