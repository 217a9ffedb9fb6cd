# SPDX-License-Identifier: Apache-2.0
"""What the system says about the processor: its name, and the frequency of a core."""

import platform

import pytest
from artifex_devices._hardware import fingerprint
from artifex_devices._hardware.system_files import SystemFiles

CPUFREQ = "/sys/devices/system/cpu/cpu0/cpufreq/"


@pytest.fixture
def machine(monkeypatch):
    """machine(numbers, lines): the numbers of files in /sys, and the lines of /proc/cpuinfo."""

    def make(numbers, lines):
        monkeypatch.setattr(SystemFiles, "number", lambda self, path: numbers.get(path.removeprefix(CPUFREQ)))
        monkeypatch.setattr(fingerprint, "_read_first_processor", lambda: lines)
        monkeypatch.setattr(fingerprint, "_first_processor", lambda: lines)

    return make


@pytest.mark.parametrize(
    ("numbers", "lines", "hertz"),
    [
        ({"scaling_cur_freq": 2_500_000, "cpuinfo_cur_freq": 1}, {"cpu MHz": "1.0"}, 2.5e9),
        ({"cpuinfo_cur_freq": 3_000_000}, {}, 3e9),
        ({}, {"cpu MHz": "2000.125"}, 2.000125e9),
        ({}, {"cpu MHz": "unknown"}, None),
        ({}, {}, None),
    ],
)
def test_the_frequency_of_a_core(machine, numbers, lines, hertz):
    machine(numbers, lines)
    assert fingerprint.core_frequency_hz() == hertz


@pytest.mark.parametrize(
    ("lines", "name"),
    [
        ({"model name": "A processor", "CPU part": "0xd0c"}, "A processor"),
        ({"CPU implementer": "0x41", "CPU part": "0xd0c", "CPU revision": "1"}, "0x41 0xd0c 1"),
        ({"CPU part": "0xd0c"}, "0xd0c"),
        ({}, "some machine"),
    ],
)
def test_the_name_of_the_processor(machine, monkeypatch, lines, name):
    machine({}, lines)
    monkeypatch.setattr(platform, "machine", lambda: "some machine")
    assert fingerprint.cpu_model() == name


def test_a_processor_without_any_name(machine, monkeypatch):
    machine({}, {})
    monkeypatch.setattr(platform, "machine", lambda: "")
    assert fingerprint.cpu_model() == "unknown processor"
