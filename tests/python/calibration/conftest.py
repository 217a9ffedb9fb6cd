# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests of calibrations."""

from __future__ import annotations

import dataclasses

import pytest
from artifex_devices.calibration import run as calibration_run
from calibrations import CONDITIONS, made


@pytest.fixture
def fresh(monkeypatch):
    """Forgets earlier calibrations of this process."""
    monkeypatch.setattr(calibration_run, "_calibrations", {})


@pytest.fixture
def stand_in(monkeypatch, fresh):
    """Measurements that take no time; counts them."""
    calls = []

    def measure(rounds, step):
        calls.append(rounds)
        step("a gather", 1)
        return made(conditions=dataclasses.replace(CONDITIONS, rounds=rounds))

    monkeypatch.setattr(calibration_run, "measure_calibration", measure)
    return calls
