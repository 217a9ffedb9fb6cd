# SPDX-License-Identifier: Apache-2.0
"""The check of a calibration: medians, steps and sizes."""

from __future__ import annotations

import json

import pytest
from artifex_devices.calibration import accuracy as calibration_check
from artifex_devices.calibration.accuracy import CalibrationCheck
from calibrations import MIB, made, rows_of


def test_medians_of_a_check():
    rows = rows_of(
        ("reshard", 64 * MIB, 0.1), ("reshard", 256 * MIB, -0.3), ("collective", 64 * MIB, 0.4), ("reshard", MIB, 9.0)
    )
    checked = CalibrationCheck(made(), rows, "2026-11-22T15:00:00+00:00")
    assert checked.median_error() == pytest.approx(0.3)
    assert checked.median_error(kind="reshard") == pytest.approx(0.2)
    assert checked.median_error(kind="collective") == pytest.approx(0.4)
    assert checked.median_error(least_bytes=0) == pytest.approx(0.35)
    assert "median error of reshards: 20.0 % from 64.0 MiB on, 30.0 % of all sizes" in str(checked)
    content = json.loads(checked.to_json())
    assert content["median_error_large"] == pytest.approx(0.3)
    assert content["rows"][1]["error"] == pytest.approx(-0.3)


def test_a_check_reports_its_number_of_steps(monkeypatch):
    steps = []

    def times(cases, *, rounds, repeats, step):
        for _ in range(rounds):
            for case in cases:
                step(case.name)
        return [[1.0] * repeats for _ in cases]

    monkeypatch.setattr(calibration_check, "time_cases", times)
    checked = calibration_check.check_rows(made(), rounds=2, max_bytes=4 * MIB, step=lambda *said: steps.append(said))
    assert {total for _, total in steps} == {len(steps)}
    assert len(steps) == 2 * len(checked.rows)
    assert {row.measured for row in checked.rows} == {1.0}


def test_sizes_beyond_the_limit_are_left_out_of_a_check_and_noted(monkeypatch):
    def times(cases, *, rounds, repeats, step):
        return [[1.0] * repeats for _ in cases]

    monkeypatch.setattr(calibration_check, "time_cases", times)

    def checked(max_bytes):
        return calibration_check.check_rows(made(), rounds=1, max_bytes=max_bytes, step=lambda *said: None)

    found = checked(4 * MIB)
    assert {row.nbytes for row in found.rows if row.kind == "collective"} == {MIB}
    assert max(row.nbytes for row in found.rows) == 4 * MIB
    assert [note.partition(", more than ")[2] for note in found.notes] == ["4.0 MiB"]
    nothing = checked(MIB - 1)
    assert nothing.rows == ()
    assert nothing.median_error(least_bytes=0) is None
    assert nothing.notes[0].startswith("left out: arrays of 1.0 MiB, ")
