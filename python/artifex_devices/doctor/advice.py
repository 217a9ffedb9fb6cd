# SPDX-License-Identifier: Apache-2.0
"""Findings that follow from the facts: the problem, its cost, and the repair."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from artifex_devices._base.text import bytes_text, cpu_list, parse_cpu_list
from artifex_devices.doctor.report import Finding, Section

_Sections = Mapping[str, Section]
_ATTENTION, _HINT = "attention", "hint"
_NVIDIA = "10de:"  # vendor of PCI devices
_LITTLE_LOCKED = 64 << 20  # bytes: the buffers of one network card or GPU


def findings(sections: _Sections) -> list[Finding]:
    """Returns all findings that follow from sections by name, the most urgent first; missing facts give no finding."""
    rules = (_devices, _cpus, _memory, _processes, _silent_gpus, _unusable_cuda, _missing_facts)
    found = [finding for rule in rules for finding in rule(sections)]
    return sorted(found, key=lambda finding: finding.severity != _ATTENTION)


def _value(sections: _Sections, section: str, name: str) -> Any:
    return sections[section].value(name) if section in sections else None


def _number(sections: _Sections, section: str, name: str) -> float | None:
    value = _value(sections, section, name)
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _devices(sections: _Sections) -> Iterator[Finding]:
    fact = sections["topology"].facts.get("devices") if "topology" in sections else None
    if fact is not None and fact.value is None:
        yield Finding(
            "devices-refused",
            _ATTENTION,
            f"programs get no devices here: {fact.problem}",
            "the first use of a device raises this error",
            "correct or unset the environment variable that it names",
            ("topology.devices",),
        )


def _cpus(sections: _Sections) -> Iterator[Finding]:
    quota, cpus = _number(sections, "cgroup", "cpu_limit"), _number(sections, "affinity", "affinity_count")
    if quota is not None and cpus is not None and quota < cpus:
        whole = max(1, int(quota))
        yield Finding(
            "cpu-quota-below-cpus",
            _ATTENTION,
            f"the cgroup grants the time of {quota:g} CPUs, and the process runs on {cpus:g}",
            "the kernel stops all threads for the rest of each period (100 ms by default) once the time is used up: "
            "threads of libraries that count CPUs, such as BLAS, in the middle of their work. This library's own "
            "workers "
            "count the quota",
            f"start with `taskset -c` on {whole} CPU{'s' if whole > 1 else ''} or OMP_NUM_THREADS={whole}, or raise "
            f"the quota (docker run --cpus={cpus:g}; file {sections['cgroup'].source('cpu_limit')})",
            ("cgroup.cpu_limit", "affinity.affinity_count"),
        )
    threads, usable = _number(sections, "blas", "threads"), _number(sections, "affinity", "usable_cpus")
    if threads is not None and usable is not None and threads > usable:
        yield Finding(
            "blas-threads-oversubscribed",
            _ATTENTION,
            f"BLAS takes {threads:g} threads, and the process may keep {usable:g} CPU{'s' if usable > 1 else ''} busy",
            "threads of one product wait for each other while they take turns on a CPU: products are slower than with "
            "fewer threads, the more so the smaller they are",
            f"export OMP_NUM_THREADS={usable:g} OPENBLAS_NUM_THREADS={usable:g} MKL_NUM_THREADS={usable:g}",
            ("blas.threads", "affinity.usable_cpus"),
        )
    if threads is not None and usable is not None and threads < usable:
        yield Finding(
            "blas-threads-few",
            _HINT,
            f"BLAS takes {threads:g} thread{'s' if threads > 1 else ''}, and the process may keep {usable:g} CPUs busy",
            f"products of big matrices use {threads:g} of {usable:g} CPUs",
            "unset OMP_NUM_THREADS OPENBLAS_NUM_THREADS MKL_NUM_THREADS, if programs of one process are run",
            ("blas.threads", "affinity.usable_cpus"),
        )
    names = ("affinity", "cgroup_cpuset", "online")
    mine, allowed, online = (parse_cpu_list(str(_value(sections, "affinity", name) or "")) for name in names)
    whose = "the cgroup allows" if allowed else "are online"
    wider = allowed & online if allowed and online else allowed or online
    if mine and mine < wider:
        yield Finding(
            "affinity-narrower-than-allowed",
            _HINT,
            f"the process may run on CPUs {cpu_list(mine)}, while {whose}: {cpu_list(wider)}",
            f"{len(wider) - len(mine)} of {len(wider)} CPUs are not used",
            "if that is not intended: start without taskset or numactl, or set the launcher not to bind (mpiexec "
            "--bind-to none, srun --cpu-bind=none)",
            tuple(f"affinity.{name}" for name in names),
        )


def _memory(sections: _Sections) -> Iterator[Finding]:
    if _value(sections, "memory", "transparent_huge_pages") == "never":
        yield Finding(
            "huge-pages-off",
            _ATTENTION,
            "transparent huge pages are off (never)",
            "the first use of a big array's memory costs 5 to 10 times a copy of it, and about 2 times with huge pages "
            "(measured by this project on a virtual machine with 2 CPUs of AMD EPYC 9004)",
            "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled  (on the host; this library asks for "
            "huge pages by madvise, so `always` is not needed)",
            ("memory.transparent_huge_pages",),
        )
    limit, total = _number(sections, "memory", "address_space_limit"), _number(sections, "memory", "total")
    if limit is not None and (total is None or limit < total):
        yield Finding(
            "small-address-space",
            _ATTENTION,
            f"the address space is limited to {bytes_text(int(limit))}",
            "programs and libraries count too, not only data: arrays are refused before memory is short. This library "
            "takes it as the limit of its devices",
            "ulimit -v unlimited",
            ("memory.address_space_limit", "memory.total"),
        )
    policy = _value(sections, "numa_policy", "policy")
    if policy not in (None, "default", "local"):
        yield Finding(
            "memory-policy-set",
            _HINT,
            f"the memory policy of the process is {policy!r}, nodes {_value(sections, 'numa_policy', 'nodes')}",
            "small arrays and all memory of other libraries come from there; big arrays of a device still come from "
            "its own node",
            "start without numactl, or with `numactl --localalloc`",
            ("numa_policy.policy", "numa_policy.nodes"),
        )
    nodes = _number(sections, "topology", "numa_nodes") or 0
    if str(_value(sections, "numa_policy", "balancing") or "0") != "0" and nodes > 1:
        yield Finding(
            "numa-balancing-on",
            _HINT,
            f"the kernel moves pages between {nodes:g} memory nodes (kernel.numa_balancing)",
            "it unmaps pages now and then to see which node uses them; memory here is bound to its node already",
            "sudo sysctl kernel.numa_balancing=0",
            ("numa_policy.balancing", "topology.numa_nodes"),
        )
    locked = _number(sections, "memory", "locked_memory_limit")
    is_free = _value(sections, "memory", "locks_without_limit") is True
    if locked is not None and locked < _LITTLE_LOCKED and not is_free:
        yield Finding(
            "little-locked-memory",
            _HINT,
            f"the process may lock {bytes_text(int(locked))} of memory",
            "arrays of memory kind pinned_host are placed without the lock beyond that, with a warning; other "
            "libraries lock memory for InfiniBand and for copies to GPUs, and fail or go slower",
            "ulimit -l unlimited (limits.conf: memlock; docker run --ulimit memlock=-1; systemd: "
            "LimitMEMLOCK=infinity)",
            ("memory.locked_memory_limit", "memory.locks_without_limit"),
        )


def _missing_facts(sections: _Sections) -> Iterator[Finding]:
    missing = _value(sections, "topology", "missing_facts")
    if missing:
        yield Finding(
            "facts-missing",
            _HINT,
            f"the system does not show: {'; '.join(missing)}",
            "devices are divided and bound by assumed values; limits that cannot be seen show as failures",
            "mount /sys and /proc into the container (docker run -v /sys:/sys:ro), and unset HWLOC_ variables",
            ("topology.missing_facts",),
        )


def _processes(sections: _Sections) -> Iterator[Finding]:
    ranks = _value(sections, "mpi", "processes")
    if not isinstance(ranks, dict) or _value(sections, "mpi", "mpi4py") is not None:
        return
    many = [f"{name}={value}" for name, value in ranks.items() if value.isdigit() and int(value) > 1]
    if many:
        yield Finding(
            "mpi4py-missing",
            _ATTENTION,
            f"a launcher has started several processes ({', '.join(many)}), and mpi4py is not installed",
            "the processes do not know of each other: each of them does all of the work",
            "pip install mpi4py",
            ("mpi.processes", "mpi.mpi4py"),
        )


def _unusable_cuda(sections: _Sections) -> Iterator[Finding]:
    driver, fact = _value(sections, "gpus", "driver"), None
    if driver is not None:
        fact = sections["gpus"].facts.get("cuda_devices")
    if fact is not None and fact.value is None:
        yield Finding(
            "cuda-not-usable",
            _ATTENTION,
            f"NVIDIA's driver {driver} answers, and CUDA is not usable: {fact.problem}",
            'devices("gpu") raises this error; arrays are placed on CPU devices',
            str(_value(sections, "gpus", "cuda_repair")),
            ("gpus.driver", "gpus.cuda_devices"),
        )


def _silent_gpus(sections: _Sections) -> Iterator[Finding]:
    if "gpus" not in sections or sections["gpus"].value("driver") is not None:
        return
    facts = sections["gpus"].facts.items()
    found = [(name, fact.value) for name, fact in facts if name.startswith("accelerator_")]
    silent = [name for name, row in found if str(row.get("pci_id", "")).startswith(_NVIDIA) and row["type"] == "gpu"]
    if silent:
        yield Finding(
            "gpu-without-driver",
            _HINT,
            f"{len(silent)} NVIDIA GPU{'s are' if len(silent) > 1 else ' is'} on the PCI bus, and no driver answers",
            'devices("gpu") raises an error, and other libraries cannot use the hardware either',
            str(_value(sections, "gpus", "cuda_repair") or "install NVIDIA's driver"),
            (*(f"gpus.{name}" for name in silent), "gpus.driver"),
        )
