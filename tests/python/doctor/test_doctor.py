# SPDX-License-Identifier: Apache-2.0
"""The doctor: facts with their sources, findings that follow from them, the report as JSON and as text."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import re
import resource
import subprocess
import sys
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import artifex_devices as ad
import jsonschema
import numpy as np
import pytest
import threadpoolctl
from artifex_devices import doctor
from artifex_devices._hardware.system_files import SystemFiles
from artifex_devices.command_line import doctor as doctor_command
from artifex_devices.command_line import main
from artifex_devices.command_line.doctor import report_lines, verdict, write_report
from artifex_devices.distributed import job
from artifex_devices.doctor import Section, libraries
from artifex_devices.doctor import machine as machine_facts
from artifex_devices.doctor.advice import findings
from artifex_devices.doctor.libraries import distributed, mpi
from artifex_devices.doctor.machine import cgroup, environment_variables, speed

SCHEMA = json.loads((resources.files("artifex_devices.doctor") / "report.schema.json").read_text(encoding="utf-8"))


def check_schema(document: Any) -> None:
    jsonschema.Draft202012Validator(SCHEMA).validate(document)


@pytest.fixture(scope="module")
def report() -> doctor.Report:
    return doctor.examine(measure=False)


# --- Facts ---


def test_facts_are_those_of_the_libraries_and_the_system(report: doctor.Report) -> None:
    machine = ad.Machine.live()
    topology, mine = report.sections["topology"], report.sections["affinity"]
    assert topology.value("pus") == machine.counts["pus"]
    assert topology.value("numa_nodes") == machine.counts["numanodes"]
    assert topology.value("devices") == 8
    assert topology.value("memory_of_device") == ad.devices()[0].memory_bytes
    assert mine.value("affinity_count") == len(os.sched_getaffinity(0))
    assert mine.value("usable_cpus") == machine.usable_cpus
    soft = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    assert report.sections["memory"].value("locked_memory_limit") == (
        "unlimited" if soft == resource.RLIM_INFINITY else soft
    )
    assert report.sections["versions"].value("numpy") == np.__version__
    blas = [row for row in threadpoolctl.threadpool_info() if row["user_api"] == "blas"]
    assert report.sections["blas"].value("threads") == max(row["num_threads"] for row in blas)
    assert report.sections["gpus"].value("count") == len(ad.find_accelerators().accelerators)


def test_the_topology_of_a_described_machine(tmp_path: Path) -> None:
    machine = ad.Machine.from_synthetic(
        "pack:2 numa:1(memory=1073741824) l3:1(size=8388608) l2:2(size=1048576) core:1 pu:2"
    )
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "cpuinfo").write_text("processor : 0\nmodel name\t: A processor\n")
    section = machine_facts.topology(machine, SystemFiles(tmp_path))
    found = {name: section.value(name) for name in section.facts}
    described = ("cpu_model", "packages", "cores", "l3_caches", "pus", "caches", "numa_nodes", "memory_of_nodes")
    assert [found[name] for name in described] == [
        "A processor",
        2,
        4,
        2,
        8,
        {"L3": 8388608, "L2": 1048576},
        2,
        [1073741824, 1073741824],
    ]
    assert found["cpu_domains"] == [domain["cpus"] for domain in machine.cpu_domains]
    assert found["devices"] == 8
    assert section.source("cpu_model") == "/proc/cpuinfo"
    assert {section.source(name) for name in described[1:]} == {section.source("packages")}
    assert section.source("packages").startswith("hwloc 2")
    assert all(fact.problem is None for fact in section.facts.values())
    assert (section.facts["caches"].unit, section.facts["memory_of_nodes"].unit) == ("bytes each", "bytes")


def test_what_a_machine_does_not_have_is_not_known(tmp_path: Path) -> None:
    section = machine_facts.topology(ad.Machine.from_synthetic("numa:1 l2:2(size=65536) pu:2"), SystemFiles(tmp_path))
    for name in ("packages", "cores", "l3_caches"):
        assert (section.value(name), section.facts[name].problem) == (None, "hwloc reports none")
    assert section.facts["cpu_model"].problem == "/proc/cpuinfo cannot be read (No such file or directory)"


def test_caches_of_several_sizes_are_listed() -> None:
    sizes = (("L2Cache", 1), ("L2Cache", 2), ("L2Cache", 1), ("L1Cache", 0), ("Core", 5))
    described: Any = SimpleNamespace(objects=[{"type": kind, "bytes": size, "model": None} for kind, size in sizes])
    assert machine_facts._caches(described) == {"L2": [1, 2]}
    assert machine_facts._caches(ad.Machine.from_synthetic("numa:2 pu:2")) == {}


@pytest.mark.parametrize(
    ("packages", "cpuinfo", "found"),
    [
        (["By hwloc"], "model name : B\n", "By hwloc"),
        ([], "processor : 0\nmodel name : \nmodel name\t: Fast CPU \nmodel name: B\n", "Fast CPU"),
        ([], "processor : 0\n", "/proc/cpuinfo names no model"),
    ],
)
def test_the_model_is_that_of_hwloc_or_the_first_one_of_the_system(
    packages: list[str], cpuinfo: str, found: str, tmp_path: Path
) -> None:
    described: Any = SimpleNamespace(objects=[{"type": "Package", "bytes": 0, "model": name} for name in packages])
    write(tmp_path, {"proc/cpuinfo": cpuinfo})
    model, _, problem = machine_facts._cpu_model(described, SystemFiles(tmp_path))
    assert (model or problem) == found


def test_a_process_that_stands_alone_says_why_it_has_no_rank(report: doctor.Report) -> None:
    facts = report.sections["distributed"].facts
    assert {name: fact.problem for name, fact in facts.items()} == {
        "launcher": "no launcher of MPI has started this process",
        "rank": "it was not called in this process",
    }
    assert facts["rank"].source == "distributed.initialize()"


def test_the_launcher_is_recognized_by_its_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PMI_RANK", "1")
    monkeypatch.setenv("PMI_SIZE", "4")
    section = distributed()
    assert section.value("launcher") == "mpiexec of MPICH"
    assert section.value("launched_processes") == 4


def test_a_process_of_a_job_names_its_share_and_those_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    members = (SimpleNamespace(name="0 on one", cpus=(0, 1)), SimpleNamespace(name="1 on one", cpus=(2, 3)))
    monkeypatch.setattr(job, "members", lambda: (1, members, (0,)))
    section = distributed()
    assert {name: section.value(name) for name in ("rank", "processes", "cpus", "shares_memory_with")} == {
        "rank": 1,
        "processes": 2,
        "cpus": "2-3",
        "shares_memory_with": [0],
    }
    assert [share["cpus"] for share in section.value("shares")] == ["0-1", "2-3"]


def test_a_blas_that_is_not_found_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("threadpoolctl.threadpool_info", lambda: [{"user_api": "openmp", "num_threads": 8}])
    facts = libraries.blas().facts
    assert (facts["libraries"].value, facts["threads"].value) == ([], None)
    assert {facts[name].problem for name in ("libraries", "threads")} == {"no BLAS that threadpoolctl knows is loaded"}
    two = [{"user_api": "blas", "internal_api": "openblas", "num_threads": threads} for threads in (2, 4)]
    monkeypatch.setattr("threadpoolctl.threadpool_info", lambda: two)
    facts = libraries.blas().facts
    assert [row["library"] for row in facts["libraries"].value] == ["openblas"] * 2
    assert [row["threads"] for row in facts["libraries"].value] == [2, 4]
    assert (facts["threads"].value, facts["threads"].unit) == (4, "threads")
    assert (facts["libraries"].problem, facts["threads"].problem) == (None, None)


def test_a_library_that_is_missing_is_needed_or_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries, "_version", lambda name: None)
    problems = {name: fact.problem for name, fact in libraries.versions().facts.items()}
    assert problems["ml_dtypes"] == "not installed (needed)"
    assert problems["mpi4py"] == "not installed (optional)"


def test_an_empty_list_is_written_as_none() -> None:
    lines = "\n".join(doctor_command._words([], "") + doctor_command._words(["one", "two"], ""))
    assert lines == "none\none, two"


def test_every_fact_has_a_source_and_every_gap_a_reason(report: doctor.Report) -> None:
    for section in report.sections.values():
        assert section.title
        for name, fact in section.facts.items():
            assert fact.source, name
            assert fact.value is not None or fact.problem, name


def test_examining_initializes_no_mpi_and_starts_no_program() -> None:
    script = (
        "import sys, os\n"
        "def seen(event, args):\n"
        "    assert event not in ('subprocess.Popen', 'os.system', 'os.posix_spawn', 'os.fork'), (event, args)\n"
        "sys.addaudithook(seen)\n"
        "from artifex_devices import doctor\n"
        "doctor.examine(measure=False)\n"
        "print('mpi4py.MPI' in sys.modules, 'jax' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("False False\n", "")


def write(root: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def test_memory_is_read_from_its_files(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "proc/meminfo": "MemTotal: 4096 kB\nMemAvailable: 1024 kB\nHugePages_Total:  7\nHugepagesize: 2048 kB\n",
            "sys/kernel/mm/transparent_hugepage/enabled": "always madvise [never]\n",
        },
    )
    section = doctor.examine(measure=False, root=tmp_path).sections["memory"]
    assert section.value("total") == 4096 * 1024
    assert section.value("available") == 1024 * 1024
    assert section.value("hugetlb_pages") == 7
    assert section.value("transparent_huge_pages") == "never"
    absent = "cannot be read (No such file or directory)"
    assert section.facts["locks_without_limit"].problem == f"/proc/self/status {absent}"
    assert section.facts["swap"] == doctor.Fact(None, "/proc/meminfo", "bytes", "/proc/meminfo has no SwapTotal")
    defrag = "/sys/kernel/mm/transparent_hugepage/defrag"
    assert section.facts["huge_page_defrag"] == doctor.Fact(None, defrag, None, f"{defrag} {absent}")


@pytest.mark.parametrize(("mask", "may"), [("000001fffeffffff", True), ("0000000000004000", True), ("0", False)])
def test_privileged_processes_lock_without_limit(mask: str, may: bool, tmp_path: Path) -> None:
    write(tmp_path, {"proc/self/status": f"Name:\tpython\nCapEff:\t{mask}\n"})
    assert doctor.examine(measure=False, root=tmp_path).sections["memory"].value("locks_without_limit") is may


def test_limits_of_a_cgroup_name_their_files(tmp_path: Path) -> None:
    mount = "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
    files = {"proc/self/mountinfo": mount, "proc/self/cgroup": "0::/job\n"}
    files |= {"sys/fs/cgroup/job/cpu.max": "50000 100000\n", "sys/fs/cgroup/job/memory.max": "max\n"}
    section = cgroup(str(write(tmp_path, files)))
    group = f"{tmp_path}/sys/fs/cgroup/job"
    assert section.facts["cpu_limit"] == doctor.Fact(0.5, f"{group}/cpu.max", "CPUs")
    assert section.facts["memory_limit"] == doctor.Fact("unlimited", "no limit in the files below", "bytes")
    assert section.value("files") == {f"{group}/cpu.max": "50000 100000", f"{group}/memory.max": "max"}


def test_a_cgroup_that_cannot_be_seen_is_not_an_answer(tmp_path: Path) -> None:
    fact = cgroup(str(tmp_path)).facts["cpu_limit"]
    assert fact.value is None
    assert fact.problem is not None
    assert f"{tmp_path}/proc/self/cgroup cannot be read" in fact.problem


def test_variables_that_act_are_shown_and_no_others() -> None:
    section = environment_variables({"PASSWORD": "x", "JAX_NUM_CPU_DEVICES": "8", "OMP_PROC_BIND": "true", "HOME": "/"})
    assert {name: fact.value for name, fact in section.facts.items()} == {
        "JAX_NUM_CPU_DEVICES": "8",
        "OMP_PROC_BIND": "true",
    }
    assert section.source("JAX_NUM_CPU_DEVICES") == "environment; acts on number of CPU devices"


def test_a_broken_mpi4py_is_a_fact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"mpi4py/__init__.py": "raise RuntimeError('no libmpi.so')"})
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [name for name in sys.modules if name.partition(".")[0] == "mpi4py"]:
        monkeypatch.delitem(sys.modules, name)  # a whole one that was imported before
    section = mpi({"OMPI_COMM_WORLD_SIZE": "4"})
    assert section.facts["library"].problem == "mpi4py cannot be imported (RuntimeError: no libmpi.so)"
    assert section.value("processes") == {"OMPI_COMM_WORLD_SIZE": "4"}


def test_a_section_that_fails_does_not_end_the_examination(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Section:
        raise OSError("no disk")

    monkeypatch.setattr("artifex_devices.doctor.libraries.blas", broken)
    report = doctor.examine(measure=False)
    assert report.sections["blas"].facts["examination"].problem == "it failed (OSError: no disk)"
    assert report.sections["versions"].value("numpy") == np.__version__
    check_schema(report.to_json())


# --- Findings: each with the facts that make it, and with those that just do not ---


def made(**facts: Any) -> dict[str, Section]:
    """Sections with facts given as section__name=value."""
    sections: dict[str, Section] = {}
    for key, value in facts.items():
        section, _, name = key.partition("__")
        sections.setdefault(section, Section(section)).add(name, value, "a test")
    return sections


CASES: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
    ("devices-refused", "attention", {"topology__devices": None}, {"topology__devices": 8}),
    (
        "cpu-quota-below-cpus",
        "attention",
        {"cgroup__cpu_limit": 0.5, "affinity__affinity_count": 2},
        {"cgroup__cpu_limit": 2.0, "affinity__affinity_count": 2},
    ),
    (
        "blas-threads-oversubscribed",
        "attention",
        {"blas__threads": 64, "affinity__usable_cpus": 2},
        {"blas__threads": 2, "affinity__usable_cpus": 2},
    ),
    (
        "blas-threads-few",
        "hint",
        {"blas__threads": 1, "affinity__usable_cpus": 2},
        {"blas__threads": 2, "affinity__usable_cpus": 2},
    ),
    (
        "huge-pages-off",
        "attention",
        {"memory__transparent_huge_pages": "never"},
        {"memory__transparent_huge_pages": "madvise"},
    ),
    (
        "small-address-space",
        "attention",
        {"memory__address_space_limit": 1 << 30, "memory__total": 1 << 34},
        {"memory__address_space_limit": "unlimited", "memory__total": 1 << 34},
    ),
    (
        "mpi4py-missing",
        "attention",
        {"mpi__processes": {"OMPI_COMM_WORLD_SIZE": "4"}, "mpi__mpi4py": None},
        {"mpi__processes": {"OMPI_COMM_WORLD_SIZE": "1"}, "mpi__mpi4py": None},
    ),
    (
        "affinity-narrower-than-allowed",
        "hint",
        {"affinity__affinity": "0", "affinity__cgroup_cpuset": "0-1", "affinity__online": "0-7"},
        {"affinity__affinity": "0-1", "affinity__cgroup_cpuset": "0-1", "affinity__online": "0-7"},
    ),
    (
        "memory-policy-set",
        "hint",
        {"numa_policy__policy": "bind", "numa_policy__nodes": [1]},
        {"numa_policy__policy": "default", "numa_policy__nodes": []},
    ),
    (
        "numa-balancing-on",
        "hint",
        {"numa_policy__balancing": "1", "topology__numa_nodes": 2},
        {"numa_policy__balancing": "1", "topology__numa_nodes": 1},
    ),
    ("little-locked-memory", "hint", {"memory__locked_memory_limit": 0}, {"memory__locked_memory_limit": 64 << 20}),
    (
        "gpu-without-driver",
        "hint",
        {"gpus__accelerator_0": {"type": "gpu", "pci_id": "10de:1db1"}, "gpus__driver": None},
        {"gpus__accelerator_0": {"type": "gpu", "pci_id": "10de:1db1"}, "gpus__driver": "535.104"},
    ),
    ("facts-missing", "hint", {"topology__missing_facts": ["memory nodes: hidden"]}, {"topology__missing_facts": []}),
]


@pytest.mark.parametrize(("name", "severity", "bad", "good"), CASES, ids=[case[0] for case in CASES])
def test_a_finding_follows_from_its_facts(name: str, severity: str, bad: dict[str, Any], good: dict[str, Any]) -> None:
    (finding,) = findings(made(**bad))
    assert (finding.id, finding.severity) == (name, severity)
    for text in dataclasses.astuple(finding)[2:5]:
        assert len(text) > 10
    sections = made(**bad)
    assert all(fact.partition(".")[0] in sections for fact in finding.facts)
    assert findings(made(**good)) == []


def test_findings_say_numbers_and_the_repair() -> None:
    (finding,) = findings(made(cgroup__cpu_limit=0.5, affinity__affinity_count=2))
    assert finding.what == "the cgroup grants the time of 0.5 CPUs, and the process runs on 2"
    assert "OMP_NUM_THREADS=1" in finding.repair
    assert "file a test" in finding.repair
    (finding,) = findings(made(affinity__affinity="0", affinity__online="0-3"))
    assert finding.what == "the process may run on CPUs 0, while are online: 0-3"


def test_what_needs_attention_comes_first_and_unknown_facts_give_no_finding() -> None:
    both = made(memory__locked_memory_limit=0, memory__transparent_huge_pages="never")
    assert [finding.id for finding in findings(both)] == ["huge-pages-off", "little-locked-memory"]
    assert findings({}) == []
    assert findings(made(memory__locked_memory_limit=0, memory__locks_without_limit=True)) == []
    assert findings(made(cgroup__cpu_limit=None, affinity__affinity_count=2, blas__threads=None)) == []


# --- The report ---


def test_the_document_is_as_its_schema_says(report: doctor.Report) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    document = json.loads(json.dumps(report.to_json()))
    check_schema(document)
    assert document["format"] == doctor.FORMAT == SCHEMA["$id"]


def drop_source(document: dict[str, Any]) -> None:
    del document["sections"]["topology"]["facts"]["pus"]["source"]


def drop_reason(document: dict[str, Any]) -> None:
    document["sections"]["versions"]["facts"]["numpy"].update(value=None, problem=None)


def drop_section(document: dict[str, Any]) -> None:
    del document["sections"]["cgroup"]


def count_as_text(document: dict[str, Any]) -> None:
    document["sections"]["topology"]["facts"]["pus"]["value"] = "2"


def other_severity(document: dict[str, Any]) -> None:
    document["findings"] = [
        {"id": "x", "severity": "grave", "what": "a", "cost": "b", "repair": "c", "facts": ["memory.total"]}
    ]


@pytest.mark.parametrize("spoil", [drop_source, drop_reason, drop_section, count_as_text, other_severity])
def test_the_schema_refuses_what_is_wrong(report: doctor.Report, spoil: Callable[[dict[str, Any]], None]) -> None:
    document = json.loads(json.dumps(report.to_json()))
    spoil(document)
    with pytest.raises(jsonschema.ValidationError):
        check_schema(document)


def report_of(**facts: Any) -> doctor.Report:
    sections = made(**facts)
    return doctor.Report("2026-01-02T03:04:05+00:00", sections, findings(sections))


def test_the_text_has_values_sources_and_findings() -> None:
    report = report_of(memory__transparent_huge_pages="never", memory__locked_memory_limit=0)
    report.sections["memory"].add("total", 3 << 30, "/proc/meminfo", unit="bytes")
    report.sections["memory"].add("swap", None, "/proc/meminfo", problem="hidden")
    lines = report_lines(report, 80)
    assert lines[2:7] == [
        "memory",
        "  transparent huge pages   never  [a test]",
        "  locked memory limit      0  [a test]",
        "  total                    3.0 GiB  [/proc/meminfo]",
        "  swap                     (hidden)  [/proc/meminfo]",
    ]
    assert "  ! transparent huge pages are off (never) (huge-pages-off)" in lines
    assert lines[-1] == "1 finding needs attention, 1 hint."
    assert max(len(line) for line in lines) <= 80
    assert verdict(report_of()) == "Nothing to repair."


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_colours_and_the_same_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("NO_COLOR", raising=False)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    write_report(report_of(memory__transparent_huge_pages="never", versions__numpy="[red]2[/red]"))
    text = terminal.getvalue()
    assert "\x1b[" in text
    assert "[red]2[/red]" in text  # no markup of rich in what comes from outside
    assert "1 finding needs attention, 0 hints." in text


def test_what_a_terminal_would_obey_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    report = report_of(environment_variables__OMP_PLACES="a\x1b[2J\udcffß")
    assert "  OMP PLACES               a\\x1b[2J\\udcffß  [a test]" in report_lines(report, 100)
    terminal = Terminal()
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(sys, "stdout", terminal)
    write_report(report)
    assert "a\\x1b[2J\\udcffß" in terminal.getvalue()


def test_a_terminal_without_richs_signs_gets_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    class AsciiTerminal(io.TextIOWrapper):
        def isatty(self) -> bool:
            return True

    written = io.BytesIO()
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(sys, "stdout", AsciiTerminal(written, encoding="ascii"))
    report = report_of(versions__numpy="ß" * 300)
    write_report(report)
    sys.stdout.flush()
    assert written.getvalue().decode("ascii").splitlines() == [
        line.replace("ß", "\\xdf") for line in report_lines(report, 100)
    ]


def test_a_terminal_without_rich_gets_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setitem(sys.modules, "rich.console", None)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(sys, "stdout", terminal)
    report = report_of(memory__transparent_huge_pages="never")
    write_report(report)
    assert terminal.getvalue().splitlines() == report_lines(report, 100)


def test_measured_rates_say_when_how_and_how_sure() -> None:
    section = speed(seconds=0.1)
    for name, unit in (("products_float32", "GFLOP/s"), ("products_float64", "GFLOP/s"), ("memory_bandwidth", "GB/s")):
        fact = section.facts[name]
        assert fact.value > 0.1
        assert fact.unit == unit
        assert re.match(r"measured \d{4}-\d\d-\d\dT.*, \+-\d+ %, best of \d+: ", fact.source)
    ridge = section.value("products_float32") / section.value("memory_bandwidth")
    assert section.value("ridge_float32") == pytest.approx(ridge, rel=0.02)
    assert section.source("ridge_float32").startswith("model: ")


def test_a_measurement_that_fails_is_a_fact(monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(**options: Any) -> None:
        raise RuntimeError("no repeat ended in time")

    monkeypatch.setattr("artifex_devices.roofline.measure_roofline", busy)
    report = doctor.examine()
    assert report.sections["speed"].facts["examination"].problem == "it failed (RuntimeError: no repeat ended in time)"
    check_schema(report.to_json())


def test_the_guide_shows_the_sections_and_the_findings_that_there_are(report: doctor.Report) -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "how_to" / "command_line.md").read_text(encoding="utf-8")
    block = next(block for block in re.findall(r"(?ms)^```text\n(.*?)^```$", page) if block.startswith("Examined"))
    titles = re.findall(r"(?m)^[A-Z].*$", block.partition("\n")[2])[:-1]  # the last line is the verdict
    shown = [section.title for name, section in report.sections.items()]
    assert [title for title in titles if title != "Measured"] == [*shown, "Findings"]
    assert set(re.findall(r"`([a-z0-9]+(?:-[a-z0-9]+)+)`", page.partition("| finding |")[2].partition("## ")[0])) == {
        name for name, *_ in CASES
    }


# --- The command ---


@pytest.mark.parametrize(
    ("facts", "words", "code"),
    [
        ({}, [], 0),
        ({"memory__locked_memory_limit": 0}, [], 0),
        ({"memory__locked_memory_limit": 0}, ["--strict"], 1),
        ({"memory__transparent_huge_pages": "never"}, [], 1),
        ({}, ["--strict"], 0),
    ],
)
def test_the_exit_code_says_whether_something_needs_attention(
    facts: dict[str, Any],
    words: list[str],
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(doctor, "examine", lambda *, measure: report_of(**facts))
    assert main(["doctor", *words]) == code
    assert capsys.readouterr().out.startswith("Examined 2026-01-02T03:04:05+00:00. ")


def test_the_command_prints_json_and_its_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json", "--no-measure"]) in (0, 1)
    document = json.loads(capsys.readouterr().out)
    check_schema(document)
    assert main(["doctor", "--schema"]) == 0
    assert json.loads(capsys.readouterr().out) == SCHEMA


@pytest.mark.parametrize(
    ("variable", "value"),
    [("JAX_NUM_CPU_DEVICES", "0"), ("JAX_PLATFORMS", "tpu"), ("XLA_FLAGS", "--xla_force_host_platform_device_count=x")],
)
def test_a_variable_that_costs_the_devices_is_found(variable: str, value: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "artifex_devices", "doctor", "--no-measure", "--json"],
        capture_output=True,
        env={**os.environ, variable: value},
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, "")
    report = json.loads(done.stdout)
    check_schema(report)
    assert report["findings"][0]["id"] == "devices-refused"
    assert variable in report["findings"][0]["what"]
    topology = report["sections"]["topology"]["facts"]
    assert topology["pus"]["value"] == ad.Machine.live().counts["pus"]
    assert (topology["devices"]["value"], topology["memory_of_device"]["value"]) == (None, None)


def test_the_command_without_utf8_and_with_the_c_locale() -> None:
    place = "köln".encode()
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "artifex_devices", "doctor", "--no-measure"],
        capture_output=True,
        env={**os.environb, b"LC_ALL": b"C", b"PYTHONUTF8": b"1", b"PYTHONIOENCODING": b"ascii", b"OMP_PLACES": place},
        check=False,
    )
    assert done.stderr == b""
    assert done.returncode in (0, 1)
    assert b"OMP_PLACES               k\\xf6ln" in done.stdout
