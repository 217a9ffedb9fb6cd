# SPDX-License-Identifier: Apache-2.0
"""Calibrations in a job: all processes measure what lies between them, and agree on it."""

import json

import artifex_devices as ad
import pytest
from artifex_devices import calibration
from artifex_devices.calibration import measurement as calibration_measurement
from artifex_devices.planner.calibration.values import Calibration

pytestmark = pytest.mark.real_processes


def measure(folder):
    """A small one."""
    calibration_measurement._DEFAULT_ARRAY = 8 << 20
    calibration_measurement._CACHE_MULTIPLE = 0
    before = [str(device) for device in ad.devices()]
    found = calibration.calibrate(rounds=1, cache=folder, progress=False)
    assert [str(device) for device in ad.devices()] == before
    assert Calibration.from_dict(json.loads(json.dumps(found.to_dict()))).processes == found.processes
    return found


@pytest.mark.parametrize("count", [2, 3])
def test_all_processes_agree_on_what_lies_between_them(processes, count, tmp_path):
    reports = processes(count, measure, str(tmp_path / "kept"), timeout=120).values
    first = reports[0].processes
    assert all(each.processes == first for each in reports)
    assert (first.processes, first.hosts, first.shared_memory) == (count, 1, True)
    assert min(first.latency, first.sum_latency, first.rate, first.sum_rate) > 0
    assert first.transport
    assert all(any(note.startswith("not stored: in a job") for note in each.notes) for each in reports)
    assert not (tmp_path / "kept").exists()
    assert f"between {count} processes" in str(reports[0])


def plan(found):
    mesh = ad.make_mesh((ad.device_count(),), ("x",))
    rows, whole = ad.NamedSharding(mesh, ad.P("x")), ad.NamedSharding(mesh, ad.P())
    from artifex_devices.planner import plan_reshard

    return plan_reshard((64, 64), "float32", rows, whole, calibration=found)


def test_a_calibration_has_no_seconds_of_devices_of_other_processes(processes):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calibration_measurement, "_DEFAULT_ARRAY", 8 << 20)
        patch.setattr(calibration_measurement, "_CACHE_MULTIPLE", 0)
        found = calibration.calibrate(rounds=1, cache=False)
    errors = processes(2, plan, found).errors
    assert all(name == "ValueError" and "expected devices of this process for seconds" in text for name, text in errors)
