# SPDX-License-Identifier: Apache-2.0
"""What the kernel's files say of the memory of a process: limits of groups, missing and odd files."""

import artifex_devices as ad
import pytest
from artifex_devices.batch_measurement.host_memory import HostMemory

GIB = 1 << 30


@pytest.fixture
def machine(tmp_path):
    """proc and cgroup folders of a process with 1 GiB resident on a machine with 8 GiB available."""
    (tmp_path / "proc" / "self").mkdir(parents=True)
    (tmp_path / "cg").mkdir()
    write(tmp_path, resident=1, highest=2)
    (tmp_path / "proc" / "meminfo").write_text(f"MemTotal: 9 kB\nMemAvailable:   {GIB >> 8} kB\n")  # 4 GiB
    return tmp_path


def write(folder, resident, highest):
    (folder / "proc" / "self" / "status").write_text(
        f"Name:\tpython\nVmSize:\t{GIB >> 7} kB\nVmHWM:\t{highest * (GIB >> 10)} kB\n"
        f"VmRSS:\t{resident * (GIB >> 10)} kB\n"
    )


def memory(folder):
    return HostMemory(folder / "proc", folder / "cg")


def group(folder, path, **files):
    (folder / "cg" / path).mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / "cg" / path / name.replace("_", ".", 1)).write_text(text)


def test_what_the_system_has_available(machine, monkeypatch):
    if ad.Machine.live().usable_memory_bytes < 6 * GIB:
        pytest.skip("this machine itself has less than the files say")
    assert memory(machine).in_use_and_free() == (GIB, 4 * GIB)


def test_a_group_of_version_2_and_those_above_it(machine):
    (machine / "proc" / "self" / "cgroup").write_text("0::/job/step\n")
    group(
        machine,
        "job",
        memory_max=f"{3 * GIB}\n",
        memory_current=f"{2 * GIB + 500}\n",
        memory_stat="inactive_file 100\n",
    )
    group(machine, "job/step", memory_max="max\n", memory_current="7\n")
    assert memory(machine).in_use_and_free() == (GIB, GIB - 500 + 100)


def test_a_group_of_version_1(machine):
    (machine / "proc" / "self" / "cgroup").write_text("5:cpu:/x\n4:memory:/box\n0::/\n")
    group(
        machine,
        "memory/box",
        memory_limit_in_bytes=f"{2 * GIB}",
        memory_usage_in_bytes=f"{GIB}",
        memory_stat="total_inactive_file 5",
    )
    assert memory(machine).in_use_and_free() == (GIB, GIB + 5)


def test_a_full_group_leaves_nothing(machine):
    (machine / "proc" / "self" / "cgroup").write_text("0::/\n")
    group(machine, "", memory_max=f"{GIB}", memory_current=f"{2 * GIB}")
    assert memory(machine).in_use_and_free() == (GIB, 0)


@pytest.mark.parametrize("text", ["", "\n", "0", "0:", "0::/../../etc\n", "memory", "::::", "0::/" + "a/" * 300])
def test_odd_group_files(machine, text):
    (machine / "proc" / "self" / "cgroup").write_text(text)
    in_use, free = memory(machine).in_use_and_free()
    assert in_use == GIB
    assert 0 < free <= 4 * GIB


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
    assert (before, peak, after) == (GIB, 3 * GIB, GIB)
    assert source.endswith("reset before the probe through clear_refs")


def test_a_peak_that_could_not_be_reset(machine):
    (machine / "proc" / "self" / "clear_refs").mkdir()  # cannot be written
    counted = memory(machine)
    counted.start()
    assert counted.stop() == (GIB, None, GIB, counted.stop()[3])
    counted.start()
    write(machine, resident=1, highest=3)
    before, peak, _, source = counted.stop()
    assert (before, peak) == (GIB, 3 * GIB)
    assert "could not be reset" in source
