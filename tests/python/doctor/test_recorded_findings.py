# SPDX-License-Identifier: Apache-2.0
"""Whole reports of the doctor for given facts: each finding with the facts that just make it."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import artifex_devices as ad
import pytest
from artifex_devices import doctor
from artifex_devices.command_line import doctor as doctor_command
from artifex_devices.command_line.doctor import report_lines
from artifex_devices.doctor import Section, machine
from artifex_devices.doctor.advice import findings
from recorded_texts import check_recorded


def made(**facts: Any) -> dict[str, Section]:
    sections: dict[str, Section] = {}
    for key, value in facts.items():
        section, _, name = key.partition("__")
        sections.setdefault(section, Section(section)).add(name, value, "a test", absent="not known")
    return sections


def cpus(quota: Any, count: Any) -> dict[str, Any]:
    return {"cgroup__cpu_limit": quota, "affinity__affinity_count": count}


def blas(threads: Any, usable: Any) -> dict[str, Any]:
    return {"blas__threads": threads, "affinity__usable_cpus": usable}


def sets(mine: Any, allowed: Any, online: Any) -> dict[str, Any]:
    return {"affinity__affinity": mine, "affinity__cgroup_cpuset": allowed, "affinity__online": online}


FACTS: dict[str, dict[str, Any]] = {
    "nothing known": {},
    "no devices": {"topology__devices": None},
    "half a CPU": cpus(0.5, 2),
    "one CPU and a half": cpus(1.5, 2),
    "two CPUs and a half": cpus(2.5, 4),
    "as many CPUs": cpus(2.0, 2),
    "no quota": cpus("unlimited", 2),
    "unknown CPUs": cpus(1.0, None),
    "many threads for one CPU": blas(2, 1),
    "many threads": blas(64, 2),
    "one thread": blas(1, 2),
    "few threads": blas(2, 4),
    "as many threads": blas(2, 2),
    "unknown threads": blas(None, 2),
    "threads of another type": blas(True, 2),
    "allowed by the cgroup": sets("0", "0-1", "0-7"),
    "allowed by the cgroup, partly online": sets("0", "0-9", "0-7"),
    "online": sets("0-1", None, "0-7"),
    "allowed only": sets("0-1", "0-3", None),
    "all that are allowed": sets("0-1", "0-1", "0-7"),
    "others": sets("8", "0-1", "0-7"),
    "unknown set": sets(None, "0-1", "0-7"),
    "no huge pages": {"memory__transparent_huge_pages": "never"},
    "huge pages": {"memory__transparent_huge_pages": "always"},
    "small address space": {"memory__address_space_limit": 1 << 30, "memory__total": (1 << 30) + 1},
    "address space as large as memory": {"memory__address_space_limit": 1 << 30, "memory__total": 1 << 30},
    "address space and unknown memory": {"memory__address_space_limit": 1 << 30},
    "bound memory": {"numa_policy__policy": "bind", "numa_policy__nodes": [1]},
    "local memory": {"numa_policy__policy": "local"},
    "default memory": {"numa_policy__policy": "default"},
    "pages are moved": {"numa_policy__balancing": "1", "topology__numa_nodes": 2},
    "pages are moved in another way": {"numa_policy__balancing": "2", "topology__numa_nodes": 4},
    "pages are not moved": {"numa_policy__balancing": "0", "topology__numa_nodes": 2},
    "one node": {"numa_policy__balancing": "1", "topology__numa_nodes": 1},
    "little locked memory": {"memory__locked_memory_limit": (64 << 20) - 1},
    "enough locked memory": {"memory__locked_memory_limit": 64 << 20},
    "privileged": {"memory__locked_memory_limit": 0, "memory__locks_without_limit": True},
    "not privileged": {"memory__locked_memory_limit": 0, "memory__locks_without_limit": False},
    "hidden facts": {"topology__missing_facts": ["memory nodes: hidden", "caches: hidden too"]},
    "two processes": {"mpi__processes": {"OMPI_COMM_WORLD_SIZE": "2", "A": "1", "B": "x"}, "mpi__mpi4py": None},
    "two processes with mpi4py": {"mpi__processes": {"OMPI_COMM_WORLD_SIZE": "2"}, "mpi__mpi4py": "4.0"},
    "one process": {"mpi__processes": {"OMPI_COMM_WORLD_SIZE": "1"}, "mpi__mpi4py": None},
    "a GPU without a driver": {"gpus__accelerator_0": {"type": "gpu", "pci_id": "10de:1db1"}, "gpus__driver": None},
    "two GPUs without a driver": {
        "gpus__accelerator_0": {"type": "gpu", "pci_id": "10de:1db1"},
        "gpus__accelerator_1": {"type": "gpu", "pci_id": "10de:1db1"},
        "gpus__accelerator_2": {"type": "gpu", "pci_id": "1002:1db1"},
        "gpus__accelerator_3": {"type": "other", "pci_id": "10de:1db1"},
        "gpus__driver": None,
    },
    "a GPU with a driver": {"gpus__accelerator_0": {"type": "gpu", "pci_id": "10de:1db1"}, "gpus__driver": "535"},
    "CUDA is not usable": {"gpus__driver": "535", "gpus__cuda_devices": None, "gpus__cuda_repair": "install it"},
    "CUDA is usable": {"gpus__driver": "535", "gpus__cuda_devices": 1, "gpus__cuda_repair": "install it"},
}


def test_recorded_findings_follow_from_facts() -> None:
    check_recorded(
        "findings",
        {
            name: "\n".join(
                f"{each.id} ({each.severity}): {each.what}\n  {each.cost}\n  {each.repair}\n  {', '.join(each.facts)}"
                for each in findings(made(**facts))
            )
            for name, facts in FACTS.items()
        },
    )


def test_recorded_reports() -> None:
    sections = made(
        blas__threads=64,
        affinity__usable_cpus=2,
        memory__locked_memory_limit=0,
        memory__transparent_huge_pages="never",
        memory__swap=None,
        memory__text="",
        memory__lines="one\ntwo",
        memory__flag=True,
        memory__list=[1, 2, 3],
        memory__long_list=[f"entry number {i}" for i in range(9)],
        memory__table={"a": 1.5, "b": None},
        memory__rate=2.50,
    )
    sections["memory"].add("bytes", 3 << 30, "a file", unit="bytes")
    sections["memory"].add("caches", [32 << 10, 1 << 20], "hwloc", unit="bytes each")
    sections["memory"].add("count", 3, "hwloc", unit="CPUs")
    sections["memory"].add("partly", [1], "a file", problem="the rest is hidden")
    sections["empty"] = Section("Empty")
    sections["variables"] = Section("Environment variables")
    sections["variables"].add("OMP_NUM_THREADS", "2", "environment")
    report = doctor.Report("2026-01-02T03:04:05+00:00", sections, findings(sections))
    hints = doctor.Report("2026-01-02T03:04:05+00:00", {}, findings(made(**blas(1, 2))))
    check_recorded(
        "doctor",
        {f"width {width}": "\n".join(report_lines(report, width)) for width in (100, 60, 30)}
        | {"one hint": "\n".join(report_lines(hints, 80))},
    )
    assert report.needs_attention
    assert not hints.needs_attention


@pytest.mark.parametrize(
    ("serious", "hints", "text"),
    [
        (0, 0, "Nothing to repair."),
        (1, 0, "1 finding needs attention, 0 hints."),
        (2, 1, "2 findings need attention, 1 hint."),
        (0, 2, "0 findings need attention, 2 hints."),
    ],
)
def test_the_last_line_counts_findings(serious: int, hints: int, text: str) -> None:
    kinds = itertools.chain(["attention"] * serious, ["hint"] * hints)
    report: Any = SimpleNamespace(findings=[SimpleNamespace(severity=kind) for kind in kinds])
    assert doctor_command.verdict(report) == text


def write(root: Any, files: dict[str, str]) -> None:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


def test_memory_has_units_and_sources(tmp_path: Any) -> None:
    names = ("MemTotal", "MemAvailable", "SwapTotal", "HugePages_Total", "HugePages_Free", "Hugepagesize")
    lines = [f"{name}: {10 + i}{' kB' if 'HugePages' not in name else ''}" for i, name in enumerate(names)]
    write(
        tmp_path,
        {
            "proc/meminfo": "\n".join(lines),
            "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
            "sys/kernel/mm/transparent_hugepage/defrag": "plain\n",
            "proc/self/status": "CapEff: 0000000000003fff\n",
            "proc/sys/kernel/numa_balancing": "1\n",
        },
    )
    sections = doctor.examine(measure=False, root=tmp_path).sections
    section = sections["memory"]
    found = {name: (fact.value, fact.unit) for name, fact in section.facts.items()}
    assert [found[name] for name in ("total", "available", "swap")] == [(n << 10, "bytes") for n in (10, 11, 12)]
    assert [found[name] for name in ("hugetlb_pages", "hugetlb_free")] == [(13, None), (14, None)]
    assert found["hugetlb_page_size"] == (15 << 10, "bytes")
    assert found["transparent_huge_pages"] == ("madvise", None)
    assert found["huge_page_defrag"] == ("plain", None)
    assert found["usable"] == (ad.Machine.live().usable_memory_bytes, "bytes")
    assert found["locks_without_limit"] == (False, None)  # bit 14 is not set
    policy = sections["numa_policy"]
    assert policy.value("balancing") == "1"
    assert set(policy.facts) == {"policy", "nodes", "balancing"}


def test_each_variable_names_what_it_acts_on() -> None:
    section = machine.environment_variables({name + "X": "1" for name in machine._ACTS} | {"HOME": "/"})
    assert len(section.facts) == len(machine._ACTS)
    for name, acts in machine._ACTS.items():
        assert section.source(name + "X") == f"environment; acts on {acts}"
