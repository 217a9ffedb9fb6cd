# SPDX-License-Identifier: Apache-2.0
"""How facts of the doctor are written, and which launcher is found."""

import shutil

import pytest
from artifex_devices import doctor
from artifex_devices.command_line.doctor import report_lines
from artifex_devices.doctor.libraries import mpi


@pytest.mark.parametrize(
    ("value", "unit", "lines"),
    [
        (True, "", ["true"]),
        ([None], "", ["null"]),
        ([], "", ["none"]),
        ({}, "", ["none"]),
        (["a" * 29, "b" * 29], "", ["a" * 29 + ", " + "b" * 29]),  # 60 characters
        (["a" * 29, "b" * 30], "", ["a" * 29, "b" * 30]),
        ({"x": 1, "y": [2, 3]}, "", ["x: 1, y: 2, 3"]),
        ([1 << 30, 512], "bytes", ["1.0 GiB, 512 bytes"]),
        ("one\ntwo", "", ["one", "two"]),
        ("", "", ["(empty)"]),
        (2 << 20, "bytes/s", ["2.0 MiB/s"]),
        (1.23456789, "s", ["1.23457 s"]),
        (3, "threads", ["3 threads"]),
        (12345678, "threads", ["12345678 threads"]),
        (3, "", ["3"]),
    ],
)
def test_words_of_a_value(value, unit, lines):
    section = doctor.Section("Title", {"name": doctor.Fact(value, "a test", unit)})
    found = report_lines(doctor.Report("today", {"title": section}, []), 200)
    first, *more = found[found.index("Title") + 1 : found.index("Findings") - 1]
    assert first.split(maxsplit=1) == ["name", f"{lines[0]}  [a test]"]
    assert [line.strip() for line in more] == lines[1:]


@pytest.mark.parametrize(
    ("there", "launcher", "problem"),
    [
        ({"mpiexec", "mpirun"}, "mpiexec", None),
        ({"mpirun"}, "mpirun", None),
        (set(), None, "neither mpiexec nor mpirun is there"),
    ],
)
def test_the_launcher_is_the_first_one_of_the_path(monkeypatch, there, launcher, problem):
    monkeypatch.setattr(shutil, "which", lambda name, *_, **__: f"/bin/{name}" if name in there else None)
    fact = mpi({}).facts["launcher"]
    assert (fact.value, fact.problem) == (launcher, problem)


def test_a_report_is_a_document():
    fact = doctor.Fact(3, "a test", problem="a reason")
    assert fact.to_json() == {"value": 3, "source": "a test", "unit": None, "problem": "a reason"}
    found = doctor.Finding("id", "hint", "what", "cost", "repair", ("memory.total",))
    section = doctor.Section("Memory", {"total": fact})
    document = doctor.Report("2026-01-02T03:04:05+00:00", {"memory": section}, [found]).to_json()
    assert document == {
        "format": doctor.FORMAT,
        "date": "2026-01-02T03:04:05+00:00",
        "needs_attention": False,
        "sections": {"memory": {"title": "Memory", "facts": {"total": fact.to_json()}}},
        "findings": [
            {
                "id": "id",
                "severity": "hint",
                "what": "what",
                "cost": "cost",
                "repair": "repair",
                "facts": ["memory.total"],
            }
        ],
    }
