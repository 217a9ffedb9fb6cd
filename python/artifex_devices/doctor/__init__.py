# SPDX-License-Identifier: Apache-2.0
"""An examination of the machine and the process: facts with their sources, and recommended repairs.

Example:
    >>> from artifex_devices import doctor
    >>> report = doctor.examine(measure=False)
    >>> report.sections["affinity"].source("affinity")
    'sched_getaffinity'
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime

from artifex_devices._base.public_lookup import add_public_lookup
from artifex_devices.doctor.report import FORMAT, Fact, Finding, Report, Section

__all__ = ["FORMAT", "Fact", "Finding", "Report", "Section", "examine"]
add_public_lookup(__name__)


def examine(*, measure: bool = True, root: str | os.PathLike[str] = "/") -> Report:
    """Examines the machine and this process.

    A fact that cannot be read has no value but a reason. No program is started, no file is written, and MPI is not
    initialized.

    Args:
        measure: Whether to measure the speed of the devices, which takes some seconds.
        root: Folder of the small files of /proc and /sys, "/" or a copy of a machine's files. Results of calls and
            libraries always come from this process.

    Returns:
        Report with sections of facts and findings.
    """
    from artifex_devices._core import Machine
    from artifex_devices._hardware.system_files import SystemFiles
    from artifex_devices.doctor import libraries, machine
    from artifex_devices.doctor.advice import findings

    files = SystemFiles(root)
    variables = dict(os.environ)
    live = Machine.live()
    makers: dict[str, Callable[[], Section]] = {
        "topology": lambda: machine.topology(live, files),
        "affinity": lambda: machine.affinity(live, files),
        "cgroup": lambda: machine.cgroup("" if os.fspath(root) == "/" else os.fspath(root)),
        "numa_policy": lambda: machine.memory_policy(files),
        "memory": lambda: machine.memory(live, files),
        "blas": libraries.blas,
        "mpi": lambda: libraries.mpi(variables),
        "distributed": libraries.distributed,
        "gpus": libraries.gpus,
        **({"speed": machine.speed} if measure else {}),
        "versions": libraries.versions,
        "environment_variables": lambda: machine.environment_variables(variables),
    }
    sections = {}
    for name, make in makers.items():
        try:
            sections[name] = make()
        except Exception as error:  # the other sections are still examined
            section = sections[name] = Section(name)
            section.add("examination", None, name, problem=f"it failed ({type(error).__name__}: {error})")
    date = datetime.now(UTC).isoformat(timespec="seconds")
    return Report(date, sections, findings(sections))
