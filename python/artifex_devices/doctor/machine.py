# SPDX-License-Identifier: Apache-2.0
"""Facts about the machine: CPUs, memory, environment variables and measured speed."""

from __future__ import annotations

import os
import re
import resource
from collections.abc import Mapping
from typing import Any

from artifex_devices._base.text import cpu_list
from artifex_devices._core import Machine
from artifex_devices._core.internal import build_facts, cgroup_report
from artifex_devices._core.internal import memory_policy as _memory_policy
from artifex_devices._hardware.system_files import SystemFiles
from artifex_devices.doctor.report import Section


def topology(machine: Machine, files: SystemFiles) -> Section:
    """Packages to processing units, memory, the devices that they make."""
    import artifex_devices as ad

    section = Section("Topology")
    reasons: dict[str, list[str]] = {}
    for row in machine.missing_facts:  # a fact may be missing for several reasons
        reasons.setdefault(row["fact"], []).append(f"{row['reason']}; assumed: {row['assumed']}")
    missing = {fact: "; ".join(found) for fact, found in reasons.items()}
    no_cores, node_problem = missing.get("cores, caches and packages"), missing.get("memory nodes")
    hwloc = f"hwloc {build_facts()['hwloc']}" if no_cores is None else "affinity mask of the process"
    model, source, problem = _cpu_model(machine, files)
    section.add("cpu_model", model, source, problem=problem)
    for name, key in (("packages", "packages"), ("cores", "cores"), ("l3_caches", "l3caches")):
        section.add(name, machine.counts[key] or None, hwloc, absent=no_cores or "hwloc reports none")
    section.add("pus", machine.counts["pus"], hwloc)
    section.add("caches", _caches(machine), hwloc, unit="bytes each", problem=no_cores)
    nodes = [node for node in machine.numa_nodes if node["subtype"] != "GPUMemory"]  # of the host (POWER9, Grace)
    section.add("numa_nodes", len(nodes), hwloc, problem=node_problem)
    section.add("cpu_domains", [domain["cpus"] for domain in machine.cpu_domains], hwloc, problem=node_problem)
    section.add("memory_of_nodes", [node["memory_bytes"] for node in nodes], hwloc, unit="bytes")
    devices, refused = [], None
    try:
        devices = ad.devices()
    except (RuntimeError, ValueError) as error:  # an environment variable requests devices that are missing
        refused = str(error)
    section.add("devices", len(devices) or None, "artifex_devices.devices()", problem=refused)
    memory = devices[0].memory_bytes if devices else None
    section.add("memory_of_device", memory, "artifex_devices.devices()[0].memory_bytes", unit="bytes", problem=refused)
    kernel = os.uname()
    section.add("kernel", f"{kernel.sysname} {kernel.release} {kernel.machine}", "uname")
    section.add("missing_facts", [f"{fact}: {why}" for fact, why in missing.items()], "files of /sys and /proc")
    return section


def affinity(machine: Machine, files: SystemFiles) -> Section:
    """Reports which CPUs the process may run on, and what limits them."""
    section = Section("CPUs of this process")
    mine = sorted(os.sched_getaffinity(0))
    section.add("affinity", cpu_list(mine), "sched_getaffinity")
    section.add("affinity_count", len(mine), "sched_getaffinity", unit="CPUs")
    report = cgroup_report()
    cpuset, file = report["cpuset"] or None, report["cpuset_from"] or "cgroup"
    section.add("cgroup_cpuset", cpuset, file, absent="no file of a cpuset can be seen")
    _add_file(section, files, "online", "/sys/devices/system/cpu/online")
    section.add("usable_cpus", machine.usable_cpus, "affinity and CPU quota of the cgroup", unit="CPUs")
    return section


def cgroup(root: str = "") -> Section:
    """Limits of the control groups and the files that they are from."""
    section = Section("Control group")
    report = cgroup_report(root)
    problem = "; ".join(report["problems"]) or None
    for name, key, unit in (("cpu_limit", "cpus", "CPUs"), ("memory_limit", "memory_bytes", "bytes")):
        source = report[f"{key.removesuffix('_bytes')}_from"] or "no limit in the files below"
        is_unlimited = report[key] is None and problem is None
        section.add(name, "unlimited" if is_unlimited else report[key], source, unit=unit, problem=problem)
    section.add("files", dict(report["files"]), "read in this order, from the inside out")
    return section


def _cpu_model(machine: Machine, files: SystemFiles) -> tuple[str | None, str, str | None]:
    for row in machine.objects:
        if row["type"] in ("Machine", "Package") and row["model"]:
            return row["model"], f"hwloc {build_facts()['hwloc']}", None
    path = "/proc/cpuinfo"
    text, problem = files.read(path)
    for line in (text or "").splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("model name", "cpu model", "cpu") and value.strip():
            return value.strip(), path, None
    return None, path, problem or f"{path} names no model"


def _caches(machine: Machine) -> dict[str, Any]:
    """Returns the size of each kind of cache; a list where sizes differ."""
    sizes: dict[str, dict[int, None]] = {}  # a dict keeps the order
    for row in machine.objects:
        if row["type"].endswith("Cache") and row["bytes"]:
            sizes.setdefault(row["type"].removesuffix("Cache"), {})[row["bytes"]] = None
    return {kind: [*found] if len(found) > 1 else next(iter(found)) for kind, found in sizes.items()}


def _add_file(section: Section, files: SystemFiles, name: str, path: str) -> None:
    """Adds a file's text, or the word in brackets of a text such as "always [madvise] never"."""
    text, problem = files.read(path)
    chosen = re.search(r"\[(.*?)\]", text or "")
    section.add(name, chosen[1] if chosen else text, path, problem=problem)


_THP = "/sys/kernel/mm/transparent_hugepage"
_MEMINFO = "/proc/meminfo"
_STATUS = "/proc/self/status"
_CAP_IPC_LOCK = 14


def memory_policy(files: SystemFiles) -> Section:
    """Reports which memory nodes new pages come from."""
    section = Section("NUMA policy")
    name, nodes, problem = _memory_policy()
    section.add("policy", name, "get_mempolicy", problem=problem)
    section.add("nodes", nodes, "get_mempolicy", problem=problem)
    _add_file(section, files, "balancing", "/proc/sys/kernel/numa_balancing")
    return section


def memory(machine: Machine, files: SystemFiles) -> Section:
    """Reports sizes, huge pages, and limits of the process."""
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
        section.add(name, table.get(key), _MEMINFO, unit=unit, problem=problem, absent=f"{_MEMINFO} has no {key}")
    usable_from = "the least of the machine's memory, the cgroup's limit and the address space"
    section.add("usable", machine.usable_memory_bytes, usable_from, unit="bytes")
    _add_file(section, files, "transparent_huge_pages", f"{_THP}/enabled")
    _add_file(section, files, "huge_page_defrag", f"{_THP}/defrag")
    for name, limit in (("locked_memory_limit", "RLIMIT_MEMLOCK"), ("address_space_limit", "RLIMIT_AS")):
        soft, _ = resource.getrlimit(getattr(resource, limit))
        section.add(name, "unlimited" if soft == resource.RLIM_INFINITY else soft, limit, unit="bytes")
    # Processes with CAP_IPC_LOCK are not held to the limit of locked memory.
    text, problem = files.read(_STATUS)
    mask = re.search(r"^CapEff:\s*([0-9a-fA-F]+)", text or "", re.MULTILINE)
    may = bool(int(mask[1], 16) >> _CAP_IPC_LOCK & 1) if mask else None
    absent = problem or f"{_STATUS} has no CapEff"
    section.add("locks_without_limit", may, f"{_STATUS}: CapEff, CAP_IPC_LOCK", absent=absent)
    return section


_ACTS = {  # by the beginning of the variable's name; the first one counts
    "XLA_FLAGS": "number of CPU devices",
    "JAX_NUM_CPU_DEVICES": "number of CPU devices",
    "JAX_PLATFORM": "which platforms may be used",
    "JAX_DEFAULT_DEVICE": "the default device",
    "JAX_ENABLE_X64": "whether 64-bit data is kept",
    "JAX_TRANSFER_GUARD": "which transfers are allowed",
    "OMP_NUM_THREADS": "threads of BLAS",
    "OPENBLAS_NUM_THREADS": "threads of OpenBLAS",
    "GOTO_NUM_THREADS": "threads of OpenBLAS",
    "MKL_NUM_THREADS": "threads of MKL",
    "BLIS_NUM_THREADS": "threads of BLIS",
    "VECLIB_MAXIMUM_THREADS": "threads of Accelerate",
    "CUDA_VISIBLE_DEVICES": "which GPUs other libraries see",
    "LD_PRELOAD": "libraries put before all others",
    "LD_LIBRARY_PATH": "where libraries are looked for",
    "MALLOC_ARENA_MAX": "the C library's memory",
    "PYTHONMALLOC": "Python's memory",
    "JAX_": "JAX",
    "OMP_": "OpenMP",
    "GOMP_": "OpenMP of GCC",
    "KMP_": "OpenMP of LLVM and Intel",
    "OPENBLAS_": "OpenBLAS",
    "MKL_": "MKL",
    "BLIS_": "BLIS",
    "HWLOC_": "hwloc: the topology that it reports",
    "ARTIFEX_": "this library",
    "XLA_": "XLA",
}


def environment_variables(environment: Mapping[str, str]) -> Section:
    """Lists the variables that are set, with the parts that they affect."""
    section = Section("Environment variables")
    for name in sorted(environment):
        acts = next((what for start, what in _ACTS.items() if name.startswith(start)), None)
        if acts is not None:
            section.add(name, environment[name].encode("utf-8", "replace").decode(), f"environment; acts on {acts}")
    return section


def speed(seconds: float = 2.0) -> Section:
    """Measures products and streaming over memory, on all CPU devices together, for at most about `seconds`."""
    from artifex_devices.roofline import measure_roofline

    section = Section("Measured")
    found = measure_roofline(seconds=seconds, cache=False)
    rates = {f"products_{dtype}": (rate, "GFLOP/s") for dtype, rate in found.peak_flops.items()}
    for name, (rate, unit) in {**rates, "memory_bandwidth": (found.bandwidth, "GB/s")}.items():
        how = f"+-{100 * rate.relative_error:.0f} %, best of {rate.repeats}: {rate.how}"
        section.add(name, round(rate.best / 1e9, 2), f"measured {found.conditions.date}, {how}", unit=unit)
    ridge = found.peak_flops["float32"].best / found.bandwidth.best
    section.add("ridge_float32", round(ridge, 2), "model: float32 products / memory bandwidth", unit="FLOP/byte")
    conditions = found.conditions
    section.add("workers", conditions.workers, "the devices' own workers", unit="threads")
    section.add("instruction_set", conditions.isa, "the processor and the build of the core")
    load = None if conditions.load_average is None else round(conditions.load_average, 2)
    section.add("load_average", load, "the system, before", absent="not known")
    notes = [note for note in found.notes if not note.startswith("not kept")]
    section.add("notes", notes, "measure_roofline")
    return section
