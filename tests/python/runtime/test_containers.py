# SPDX-License-Identifier: Apache-2.0
"""Containers: parts of /sys and /proc hidden, few CPUs, small limits, no rights. Each case is a process of its own.

Files are hidden by mounts in a mount namespace that the test makes; where the system does not let it, the test is
skipped with the system's reason.
"""

from __future__ import annotations

import functools
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import jsonschema
import pytest
from many_threads import IS_FREE_THREADED

SCHEMA = json.loads((resources.files("artifex_devices.doctor") / "report.schema.json").read_text(encoding="utf-8"))

# What any program does: devices, a placement, arithmetic on all workers, a made-up world.
PROGRAM = """
import faulthandler
faulthandler.dump_traceback_later(50, exit=True)
import os
import artifex_devices as ad, numpy as np
from artifex_devices._base.text import parse_cpu_list
machine = ad.Machine.live()
cpus = sum(len(parse_cpu_list(domain["cpus"])) for domain in machine.cpu_domains)
assert cpus == len(os.sched_getaffinity(0)), machine.cpu_domains
x = ad.device_put(np.ones(1 << 20, np.float32))
assert float((x + x).sum()) == 1 << 21
with ad.simulate(4):
    assert len(ad.devices()) == 4 and ad.devices()[3].memory_bytes > 0
assert machine.usable_memory_bytes > 0 and machine.numa_nodes[0]["memory_bytes"] > 0
assert len(machine.objects) > 2 and machine.to_xml()
for row in machine.missing_facts:
    print(row["fact"], "|", row["reason"], "|", row["assumed"])
print("usable", machine.usable_cpus)
""".replace("import os\n", "import os, artifex_devices._base.text\n", 1)

MISSING = "import json, artifex_devices as ad; print(json.dumps(ad.Machine.live().missing_facts))"

CPU = "/sys/devices/system/cpu"
NODE = "/sys/devices/system/node"


@functools.cache
def unshare() -> tuple[list[str], str]:
    """The words that run a shell in a mount namespace of its own; or none, and why."""
    why = "unshare is not installed"
    for words in (["unshare", "-m"], ["unshare", "-r", "-m"]):
        try:
            test = [*words, "sh", "-c", "mount --bind /dev/null /proc/meminfo"]
            done = subprocess.run(test, capture_output=True, text=True, timeout=20, check=False)
        except OSError as error:
            return [], f"unshare: {error.strerror}"
        if done.returncode == 0:
            return words, ""
        why = done.stderr.strip()
    return [], f"mounts in a namespace of one's own are not permitted here ({why})"


@pytest.fixture
def empty() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        yield folder


def python(
    *words: str, mounts: str = "", environment: dict[str, str] | None = None, before: str = ""
) -> subprocess.CompletedProcess[str]:
    """Runs Python after shell commands: `mounts` in a namespace of its own, `before` as they are."""
    command = "; ".join(["set -e", *filter(None, [mounts, before]), f"exec {shlex.join([sys.executable, *words])}"])
    namespace: list[str] = []
    if mounts:
        if "SANITIZED_CORE" in os.environ and mounts.endswith(" /proc"):
            pytest.skip("the sanitizers read /proc")
        namespace, why = unshare()
        if not namespace:
            pytest.skip(why)
    variables = {name: value for name, value in os.environ.items() if name not in ("XLA_FLAGS", "JAX_NUM_CPU_DEVICES")}
    variables["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    return subprocess.run(
        [*namespace, "sh", "-c", command],
        capture_output=True,
        text=True,
        timeout=100,
        env={**variables, **(environment or {})},
        check=False,
    )


def program(*, mounts: str = "", before: str = "", environment: dict[str, str] | None = None) -> list[str]:
    """The program's lines; it ends well and writes nothing to standard error, nor does hwloc."""
    done = python("-W", "error", "-c", PROGRAM, mounts=mounts, before=before, environment=environment)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    return done.stdout.splitlines()


def new_cgroup(controller: str, v1: dict[str, str], v2: dict[str, str]) -> tuple[Path, str] | None:
    """A group in the hierarchy of a controller, with these files; and the name of the last one."""
    name = f"artifex_devices_test_{os.getpid()}"
    for parent, files in ((Path("/sys/fs/cgroup") / controller, v1), (Path("/sys/fs/cgroup"), v2)):
        group = parent / name
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            for file, text in files.items():
                (group / file).write_text(text)
        except OSError:
            group.rmdir()
            continue
        return group, list(files)[-1]
    return None


@pytest.fixture
def half_a_cpu() -> Iterator[tuple[Path, str]]:
    made = new_cgroup("cpu", {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "50000"}, {"cpu.max": "50000 100000"})
    if made is None:
        pytest.skip("no group of the cpu controller can be made here")
    yield made
    made[0].rmdir()


@pytest.fixture
def half_a_gibibyte() -> Iterator[Path]:
    limit = str(512 << 20)
    made = new_cgroup("memory", {"memory.limit_in_bytes": limit}, {"memory.swap.max": "0", "memory.max": limit})
    if made is None:
        pytest.skip("no group of the memory controller can be made here")
    yield made[0]
    made[0].rmdir()


@functools.cache
def lacking() -> frozenset[str]:
    """What this machine itself does not show."""
    return frozenset(facts(program()))


def facts(lines: list[str]) -> list[str]:
    return [line.split(" | ")[0] for line in lines[:-1]]


@pytest.mark.parametrize(
    ("hidden", "missing"),
    [
        ("/sys", ["cores, caches and packages", "memory nodes", "limits of the cgroup"]),
        ("/sys/devices", ["cores, caches and packages", "memory nodes"]),
        (CPU, ["cores, caches and packages"]),
        (NODE, ["cores, caches and packages", "memory nodes"]),  # hwloc would end the process
        (f"{CPU}/cpu{min(os.sched_getaffinity(0))}", ["cores, caches and packages"]),
        ("/proc", ["memory size from the kernel's table", "limits of the cgroup"]),
        ("/sys/fs/cgroup", ["limits of the cgroup"]),
    ],
)
def test_folders_that_are_empty(hidden: str, missing: list[str], empty: str) -> None:
    lines = program(mounts=f"mount --bind {empty} {hidden}")
    assert set(facts(lines)) == {*missing, *lacking()}
    for line in lines[:-1]:
        _, reason, assumed = line.split(" | ")
        assert hidden in reason
        assert assumed


def test_neither_proc_nor_sys(empty: str) -> None:
    lines = program(mounts=f"mount --bind {empty} /sys; mount --bind {empty} /proc")
    assert set(facts(lines)) == {
        "cores, caches and packages",
        "memory nodes",
        "memory size from the kernel's table",
        "limits of the cgroup",
    }


@pytest.mark.parametrize("hidden", [["/sys"], ["/proc"], ["/sys", "/proc"], [NODE], ["/sys/fs/cgroup"]], ids="+".join)
def test_the_doctor_names_what_is_hidden(hidden: list[str], empty: str) -> None:
    mounts = "; ".join(f"mount --bind {empty} {folder}" for folder in hidden)
    words = ["-W", "error", "-m", "artifex_devices", "doctor", "--no-measure"]
    done = python(*words, "--json", mounts=mounts)
    assert done.stderr == ""
    report = json.loads(done.stdout)
    jsonschema.Draft202012Validator(SCHEMA).validate(report)
    assert "facts-missing" in [finding["id"] for finding in report["findings"]]
    gaps = [fact["problem"] for section in report["sections"].values() for fact in section["facts"].values()]
    for folder in hidden:
        assert any(folder in gap for gap in gaps if gap), folder
    (named,) = (finding["what"] for finding in report["findings"] if finding["id"] == "facts-missing")
    for row in json.loads(python("-c", MISSING, mounts=mounts).stdout):
        assert row["reason"] in named
    assert python(*words, mounts=mounts).stdout.endswith(".\n")


def test_the_doctor_finds_half_a_cpu(half_a_cpu: tuple[Path, str]) -> None:
    group, file = half_a_cpu
    words = ["-m", "artifex_devices", "doctor", "--no-measure", "--json"]
    done = python(*words, before=f"echo $$ > {group}/cgroup.procs")
    report = json.loads(done.stdout)
    limit = report["sections"]["cgroup"]["facts"]["cpu_limit"]
    assert limit == {"value": 0.5, "unit": "CPUs", "source": f"{group}/{file}", "problem": None}
    assert "cpu-quota-below-cpus" in [finding["id"] for finding in report["findings"]]
    assert done.returncode == 1


@pytest.mark.parametrize(
    "file",
    [
        "/proc/meminfo",
        "/proc/self/mountinfo",
        f"{CPU}/online",
        f"{NODE}/online",
        f"{NODE}/node0/cpumap",
        f"{NODE}/node0/meminfo",
    ],
)
def test_files_that_are_empty(file: str) -> None:
    if not Path(file).exists():
        pytest.skip(f"this machine has no {file}")
    target = file.replace("/self/", "/$$/")  # exec keeps the number of the process
    lines = program(mounts=f"mount --bind /dev/null {target}")
    if file == "/proc/self/mountinfo":
        assert "limits of the cgroup | no cgroup is mounted" in lines[0]
    else:
        assert any(f"{file} is empty" in line for line in lines), lines


def test_files_that_cannot_be_written_and_no_home() -> None:
    lines = program(mounts="mount -o remount,bind,ro /sys", environment={"HOME": "/nowhere", "TMPDIR": "/nowhere"})
    assert set(facts(lines)) == lacking()


def test_one_cpu() -> None:
    cpu = max(os.sched_getaffinity(0))
    done = python("-c", f"import os; os.sched_setaffinity(0, {{{cpu}}})\n{PROGRAM}")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "usable 1"


def test_one_cpu_without_proc_keeps_its_core(empty: str) -> None:
    """hwloc learns from /proc which CPUs the process may run on."""
    cpu = max(os.sched_getaffinity(0))
    one = f"import os; os.sched_setaffinity(0, {{{cpu}}})\n"
    done = python("-W", "error", "-c", f"{one}{PROGRAM}", mounts=f"mount --bind {empty} /proc")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert set(facts(lines)) == {"memory size from the kernel's table", "limits of the cgroup", *lacking()}
    assert lines[-1] == "usable 1"


@pytest.mark.skipif("SANITIZED_CORE" in os.environ, reason="the sanitizers take terabytes of address space")
@pytest.mark.skipif(IS_FREE_THREADED, reason="a free-threaded interpreter maps a gibibyte at its start")
def test_an_address_space_of_a_gibibyte() -> None:
    cpu = min(os.sched_getaffinity(0))  # other libraries take address space for each CPU's thread
    limit = f"import os, resource; os.sched_setaffinity(0, {{{cpu}}})\n"
    limit += "resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\n"
    done = python("-c", f"{limit}{PROGRAM}\nassert machine.usable_memory_bytes <= 1 << 30")
    assert (done.returncode, done.stderr) == (0, "")


def test_no_memory_may_be_locked() -> None:
    done = python("-c", f"import resource; resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, 0))\n{PROGRAM}")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_user_without_rights() -> None:
    """Root becomes nobody after the start: the interpreter's own files may be root's alone."""
    if os.geteuid() != 0:
        pytest.skip("the tests run as a user without rights already")
    loaded = "import sys\nprint(*(name for name in sys.modules if name.startswith(('artifex_devices', 'numpy'))))"
    names = python("-c", f"{PROGRAM}\n{loaded}").stdout.splitlines()[-1].split()
    become = "import importlib, os\n"
    become += f"for name in {names}:\n    importlib.import_module(name)\n"
    become += "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
    done = python("-c", f"{become}{PROGRAM}\nassert os.geteuid() == 65534")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_quota_of_half_a_cpu(half_a_cpu: tuple[Path, str]) -> None:
    group, file = half_a_cpu
    lines = program(before=f"echo $$ > {group}/cgroup.procs")
    assert lines[-1] == "usable 1"
    done = python(
        "-c",
        "from artifex_devices import _core; r = _core.internal.cgroup_report(); print(r['cpus'], r['cpus_from'])",
        before=f"echo $$ > {group}/cgroup.procs",
    )
    assert (done.stdout, done.stderr) == (f"0.5 {group}/{file}\n", "")


@pytest.mark.skipif("SANITIZED_CORE" in os.environ, reason="the sanitizers' own memory passes the limit")
@pytest.mark.parametrize(("source", "cached", "asked"), [(0, 250, 300), (120, 150, 230)])
def test_cached_memory_goes_before_the_group_is_killed(
    half_a_gibibyte: Path, source: int, cached: int, asked: int
) -> None:
    """In MiB; `source` is what the program holds beside its Arrays."""
    work = f"""
import artifex_devices as ad, numpy as np
held = np.ones({source} << 20, np.uint8)
byte = np.ones(1, np.uint8)
ad.config.update("cache_bytes", 256 << 20)
ad.device_put(np.broadcast_to(byte, ({cached} << 20,))).block_until_ready()
stats = lambda: ad.devices()[0].memory_stats()["pool_bytes_cached"]
assert stats() >= {cached} << 20
x = ad.device_put(np.broadcast_to(byte, ({asked} << 20,)))
assert stats() < {cached} << 20
print(x.nbytes, held.nbytes)
"""
    done = python("-c", work, before=f"echo $$ > {half_a_gibibyte}/cgroup.procs")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{asked << 20} {source << 20}\n", "")
