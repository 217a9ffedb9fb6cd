# SPDX-License-Identifier: Apache-2.0
"""What the machine is, and which of its CPUs the process may use."""

from __future__ import annotations

import os
from typing import Any

from artifex_devices._base.text import cpu_list
from artifex_devices._core import Machine, _build_facts, _cgroup_report
from artifex_devices.doctor.facts import Files, Section


def topology(machine: Machine, files: Files) -> Section:
    """Packages to processing units, memory, the devices that they make."""
    import artifex_devices as ad

    section = Section("Topology")
    missing: dict[str, str] = {}
    for row in machine.missing_facts:  # a fact may be missing for several reasons
        reason = f"{row['reason']}; assumed: {row['assumed']}"
        missing[row["fact"]] = f"{missing[row['fact']]}; {reason}" if row["fact"] in missing else reason
    no_cores = missing.pop("cores, caches and packages", None)
    hwloc = f"hwloc {_build_facts()['hwloc']}" if no_cores is None else "affinity mask of the process"
    model, source, problem = _cpu_model(machine, files)
    section.add("cpu_model", model, source, problem=problem)
    for name, key in (("packages", "packages"), ("cores", "cores"), ("l3_caches", "l3caches")):
        count = machine.counts[key]
        section.add(name, count or None, hwloc, problem=no_cores if not count else None)
        if not count and no_cores is None:
            section.add(name, None, hwloc, problem="hwloc reports none")
    section.add("pus", machine.counts["pus"], hwloc)
    section.add("caches", _caches(machine), hwloc, unit="bytes each", problem=no_cores)
    nodes = machine.numa_nodes
    node_problem = missing.pop("memory nodes", None)
    section.add("numa_nodes", len(nodes), hwloc, problem=node_problem)
    section.add("cpu_domains", [domain["cpus"] for domain in machine.cpu_domains], hwloc, problem=node_problem)
    section.add("memory_of_nodes", [node["memory_bytes"] for node in nodes], hwloc, unit="bytes")
    devices, refused = [], None
    try:
        devices = ad.devices()
    except (RuntimeError, ValueError) as error:  # an environment variable asks for what there is not
        refused = str(error)
    section.add("devices", len(devices) or None, "artifex_devices.devices()", problem=refused)
    memory = devices[0].memory_bytes if devices else None
    section.add("memory_of_device", memory, "artifex_devices.devices()[0].memory_bytes", unit="bytes", problem=refused)
    kernel = os.uname()
    section.add("kernel", f"{kernel.sysname} {kernel.release} {kernel.machine}", "uname")
    unknown = [f"{fact}: {reason}" for fact, reason in missing.items()]
    if no_cores is not None:
        unknown.insert(0, f"cores, caches and packages: {no_cores}")
    if node_problem is not None:
        unknown.append(f"memory nodes: {node_problem}")
    section.add("missing_facts", unknown, "files of /sys and /proc")
    return section


def affinity(machine: Machine, files: Files) -> Section:
    """Which CPUs the process may run on, and what limits them."""
    section = Section("CPUs of this process")
    mine = sorted(os.sched_getaffinity(0))
    section.add("affinity", cpu_list(mine), "sched_getaffinity")
    section.add("affinity_count", len(mine), "sched_getaffinity", unit="CPUs")
    report = _cgroup_report()
    section.add(
        "cgroup_cpuset",
        report["cpuset"],
        report["cpuset_from"] or "cgroup",
        problem=None if report["cpuset"] else "no file of a cpuset can be seen",
    )
    files.add_text(section, "online", "/sys/devices/system/cpu/online")
    section.add("usable_cpus", machine.usable_cpus, "affinity and CPU quota of the cgroup", unit="CPUs")
    return section


def cgroup(root: str = "") -> Section:
    """Limits of the control groups and the files that they are from."""
    section = Section("Control group")
    report = _cgroup_report(root)
    problem = "; ".join(report["problems"]) or None
    for name, key, unit in (("cpu_limit", "cpus", "CPUs"), ("memory_limit", "memory_bytes", "bytes")):
        source = report[f"{key.removesuffix('_bytes')}_from"] or "no limit in the files below"
        limit = report[key]
        if limit is None and problem is None:
            limit = "unlimited"
        section.add(name, limit, source, unit=unit, problem=problem)
    section.add("files", dict(report["files"]), "read in this order, from the inside out")
    return section


def _cpu_model(machine: Machine, files: Files) -> tuple[str | None, str, str | None]:
    for row in machine.objects:
        if row["type"] in ("Machine", "Package") and row["model"]:
            return row["model"], f"hwloc {_build_facts()['hwloc']}", None
    path = "/proc/cpuinfo"
    text, problem = files.read(path)
    for line in (text or "").splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("model name", "cpu model", "cpu") and value.strip():
            return value.strip(), path, None
    return None, path, problem or f"{path} names no model"


def _caches(machine: Machine) -> dict[str, Any]:
    """Size of each kind of cache; a list where sizes differ."""
    sizes: dict[str, list[int]] = {}
    for row in machine.objects:
        if row["type"].endswith("Cache") and row["bytes"]:
            kind = sizes.setdefault(row["type"].removesuffix("Cache"), [])
            if row["bytes"] not in kind:
                kind.append(row["bytes"])
    return {kind: found[0] if len(found) == 1 else found for kind, found in sizes.items()}
