# SPDX-License-Identifier: Apache-2.0
"""Fingerprint of the machine: a measurement with another fingerprint is not valid."""

from __future__ import annotations

import functools
import platform
from typing import Any

import numpy as np

from artifex_devices._core import Machine, __version__, internal
from artifex_devices._hardware.system_files import SystemFiles

_LONGEST = 200


def machine_fingerprint() -> dict[str, Any]:
    """Returns processor, microcode, instruction sets, CPUs, memory nodes, quota, and the versions of the software."""
    machine = Machine.live()
    cpu = _first_processor()
    return {
        "architecture": platform.machine(),
        "cpu_model": cpu_model(),
        "microcode": cpu.get("microcode", ""),
        "instruction_sets": list(internal.supported_isas()),
        "cpu_domains": [domain["cpus"] for domain in machine.cpu_domains],
        "numa_nodes": len(machine.numa_nodes),
        "usable_cpus": machine.usable_cpus,
        "cpu_quota": internal.cgroup_report()["cpus"],
        "library_version": __version__,
        "numpy_version": np.__version__,
    }


def cpu_model() -> str:
    """Returns the name that the processor reports; on Arm its implementer and part if it has no name."""
    cpu = _first_processor()
    arm = " ".join(cpu[key] for key in ("CPU implementer", "CPU part", "CPU revision") if key in cpu)
    return cpu.get("model name") or arm or platform.machine() or "unknown processor"


def core_frequency_hz() -> float | None:
    """Returns the current frequency of a core in hertz, or None if the system does not report it."""
    for name in ("scaling_cur_freq", "cpuinfo_cur_freq"):
        if kilohertz := SystemFiles().number(f"/sys/devices/system/cpu/cpu0/cpufreq/{name}"):
            return kilohertz * 1e3
    try:
        return float(_read_first_processor()["cpu MHz"]) * 1e6
    except (KeyError, ValueError):
        return None


def _read_first_processor() -> dict[str, str]:
    text, _ = SystemFiles().read("/proc/cpuinfo")
    pairs = (line.partition(":") for line in (text or "").partition("\n\n")[0].splitlines())
    printable = {
        key.strip(): "".join(c for c in value.strip() if c.isprintable())[:_LONGEST] for key, _, value in pairs
    }
    return {key: value for key, value in printable.items() if value}


_first_processor = functools.cache(_read_first_processor)
