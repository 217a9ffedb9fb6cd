# SPDX-License-Identifier: Apache-2.0
"""What the kernel's files say of the memory of a process: limits of groups, missing and odd files."""

import resource

import pytest
from artifex_devices.batch_measurement.memory import HostMemory

MIB = 1 << 20
UNIFIED = "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"


@pytest.fixture
def machine(tmp_path):
    """The root folder of a process with 1 MiB resident on a machine with 4 MiB available."""
    (tmp_path / "proc" / "self").mkdir(parents=True)
    write(tmp_path, resident=1, highest=2)
    (tmp_path / "proc" / "meminfo").write_text(f"MemTotal: 9 kB\nMemAvailable:   {4 << 10} kB\n")
    (tmp_path / "proc" / "self" / "mountinfo").write_text(UNIFIED)
    return tmp_path


def write(folder, resident, highest):
    (folder / "proc" / "self" / "status").write_text(
        f"Name:\tpython\nVmSize:\t{8 << 10} kB\nVmHWM:\t{highest << 10} kB\nVmRSS:\t{resident << 10} kB\n"
    )


def memory(folder):
    return HostMemory(str(folder))


def group(folder, path, **files):
    at = folder / "sys" / "fs" / "cgroup" / path
    at.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (at / name.replace("_", ".", 1)).write_text(text)


def test_what_the_system_has_available(machine):
    assert memory(machine).in_use_and_free() == (MIB, 4 * MIB)


def test_what_the_limit_of_address_space_leaves(machine, monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (10 * MIB, -1) if kind == resource.RLIMIT_AS else (-1, -1))
    assert memory(machine).in_use_and_free() == (MIB, 2 * MIB)
    status = machine / "proc" / "self" / "status"
    status.write_text(status.read_text().replace("VmSize", "VmOther"))
    assert memory(machine).in_use_and_free() == (MIB, 4 * MIB)


def test_a_group_of_version_2_and_those_above_it(machine):
    (machine / "proc" / "self" / "cgroup").write_text("0::/job/step\n")
    group(
        machine,
        "job",
        memory_max=f"{3 * MIB}\n",
        memory_current=f"{2 * MIB + 500}\n",
        memory_stat="anon 9\nempty\ninactive_file 100\n",
    )
    group(machine, "job/step", memory_max="max\n", memory_current="7\n")
    assert memory(machine).in_use_and_free() == (MIB, MIB - 500 + 100)


def test_a_group_that_a_container_sees_as_its_root(machine):
    # The process is in /job/box of the machine; what is mounted is that group.
    (machine / "proc" / "self" / "cgroup").write_text("0::/job/box\n")
    (machine / "proc" / "self" / "mountinfo").write_text(UNIFIED.replace("0:28 /", "0:28 /job/box"))
    group(machine, "", memory_max=f"{2 * MIB}\n", memory_current=f"{MIB}\n")
    assert memory(machine).in_use_and_free() == (MIB, MIB)


def test_a_group_of_version_1(machine):
    (machine / "proc" / "self" / "mountinfo").write_text(
        "33 23 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    )
    (machine / "proc" / "self" / "cgroup").write_text("5:cpu:/x\n4:memory:/box\n0::/\n")
    group(machine, "memory", memory_limit_in_bytes=f"{2**63 - 4096}", memory_usage_in_bytes=f"{5 * MIB}")
    group(
        machine,
        "memory/box",
        memory_limit_in_bytes=f"{2 * MIB}",
        memory_usage_in_bytes=f"{MIB}",
        memory_stat="inactive_file 9\ntotal_inactive_file 5",
    )
    assert memory(machine).in_use_and_free() == (MIB, MIB + 5)


def test_a_full_group_leaves_nothing(machine):
    (machine / "proc" / "self" / "cgroup").write_text("0::/\n")
    group(machine, "", memory_max=f"{MIB}", memory_current=f"{2 * MIB}")
    assert memory(machine).in_use_and_free() == (MIB, 0)


def test_a_limit_without_its_usage_says_nothing(machine):
    (machine / "proc" / "self" / "cgroup").write_text("0::/\n")
    group(machine, "", memory_max=f"{MIB}")
    assert memory(machine).in_use_and_free() == (MIB, 4 * MIB)


@pytest.mark.parametrize("text", ["", "\n", "0", "0:", "0::/../../etc\n", "memory", "::::", "0::/" + "a/" * 300])
def test_odd_group_files(machine, text):
    (machine / "proc" / "self" / "cgroup").write_text(text)
    group(machine, "", memory_max="many\n", memory_current="x\n")
    assert memory(machine).in_use_and_free() == (MIB, 4 * MIB)


def test_without_proc(tmp_path):
    counted = memory(tmp_path)
    counted.start()
    assert counted.stop() is None
    assert counted.in_use_and_free() is None


def test_the_peak_after_a_reset(machine):
    counted = memory(machine)
    write(machine, resident=1, highest=1)
    counted.start()
    assert (machine / "proc" / "self" / "clear_refs").read_text() == "5"
    write(machine, resident=1, highest=3)
    before, peak, after, source = counted.stop()
    assert (before, peak, after) == (MIB, 3 * MIB, MIB)
    assert source.endswith("reset before the probe through clear_refs")


def test_a_peak_that_could_not_be_reset(machine):
    (machine / "proc" / "self" / "clear_refs").mkdir()  # cannot be written
    counted = memory(machine)
    counted.start()
    assert counted.stop() == (MIB, None, MIB, counted.stop()[3])
    counted.start()
    write(machine, resident=1, highest=3)
    before, peak, _, source = counted.stop()
    assert (before, peak) == (MIB, 3 * MIB)
    assert "could not be reset" in source
