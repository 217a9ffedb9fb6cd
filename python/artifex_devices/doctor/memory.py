# SPDX-License-Identifier: Apache-2.0
"""Memory: how much, from which node, in pages of what size, and how much may be locked."""

from __future__ import annotations

import re
import resource

from artifex_devices._core import Machine, _memory_policy
from artifex_devices.doctor.facts import Files, Section

_THP = "/sys/kernel/mm/transparent_hugepage"
_MEMINFO = "/proc/meminfo"
_STATUS = "/proc/self/status"
_CAP_IPC_LOCK = 14


def memory_policy(files: Files) -> Section:
    """Which memory nodes new pages come from."""
    section = Section("NUMA policy")
    name, nodes, problem = _memory_policy()
    section.add("policy", name, "get_mempolicy", problem=problem)
    section.add("nodes", nodes, "get_mempolicy", problem=problem)
    files.add_text(section, "balancing", "/proc/sys/kernel/numa_balancing")
    return section


def memory(machine: Machine, files: Files) -> Section:
    """Sizes, huge pages, and limits of the process."""
    section = Section("Memory")
    table, problem = files.table(_MEMINFO)
    for name, key, unit in (
        ("total", "MemTotal", "bytes"),
        ("available", "MemAvailable", "bytes"),
        ("swap", "SwapTotal", "bytes"),
        ("hugetlb_pages", "HugePages_Total", None),
        ("hugetlb_free", "HugePages_Free", None),
        ("hugetlb_page_size", "Hugepagesize", "bytes"),
    ):
        missing = problem or (None if key in table else f"{_MEMINFO} has no {key}")
        section.add(name, table.get(key), _MEMINFO, unit=unit, problem=missing)
    section.add(
        "usable",
        machine.usable_memory_bytes,
        "the least of the machine's memory, the cgroup's limit and the address space",
        unit="bytes",
    )
    files.add_choice(section, "transparent_huge_pages", f"{_THP}/enabled")
    files.add_choice(section, "huge_page_defrag", f"{_THP}/defrag")
    for name, limit, source in (
        ("locked_memory_limit", resource.RLIMIT_MEMLOCK, "RLIMIT_MEMLOCK"),
        ("address_space_limit", resource.RLIMIT_AS, "RLIMIT_AS"),
    ):
        soft, _ = resource.getrlimit(limit)
        section.add(name, "unlimited" if soft == resource.RLIM_INFINITY else soft, source, unit="bytes")
    _add_privilege(section, files)
    return section


def _add_privilege(section: Section, files: Files) -> None:
    """Processes with CAP_IPC_LOCK are not held to the limit of locked memory."""
    text, problem = files.read(_STATUS)
    found = re.search(r"^CapEff:\s*([0-9a-fA-F]+)", text or "", re.MULTILINE)
    may = bool(int(found.group(1), 16) >> _CAP_IPC_LOCK & 1) if found else None
    missing = None if found else problem or f"{_STATUS} has no CapEff"
    section.add("locks_without_limit", may, f"{_STATUS}: CapEff, CAP_IPC_LOCK", problem=missing)
