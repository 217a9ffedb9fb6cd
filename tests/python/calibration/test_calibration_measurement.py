# SPDX-License-Identifier: Apache-2.0
"""What a calibration measures: links, collectives, sizes of arrays, and a real one of small arrays."""

from __future__ import annotations

import gc
import json
from types import SimpleNamespace

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import calibration
from artifex_devices.calibration import TERMS, Calibration, Link
from artifex_devices.calibration import measurement as calibration_measurement
from artifex_devices.calibration import run as calibration_run
from artifex_devices.calibration.cases import BODIES, Case, time_cases
from artifex_devices.sharding import Mesh
from calibrations import MIB

STEPS = []  # of the real measurement: names, and how many there are to be


@pytest.fixture(scope="module")
def measured():
    """A real one, of small arrays."""
    measure = calibration_measurement.measure_calibration
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            calibration_run, "measure_calibration", lambda rounds, _: measure(rounds, lambda *said: STEPS.append(said))
        )
        patch.setattr(calibration_measurement, "_DEFAULT_ARRAY", 8 * MIB)
        patch.setattr(calibration_measurement, "_CACHE_MULTIPLE", 0)
        return calibration.calibrate(rounds=1, cache=False)


def test_links_are_measured_from_each_memory_to_each(monkeypatch):
    machine = ad.Machine.from_synthetic("numa:3 pu:2")
    monkeypatch.setattr(calibration_measurement, "Machine", SimpleNamespace(live=lambda: machine))
    with ad.simulate(machine):
        node_of = {device.id: tuple(device.numa_nodes) for device in ad.devices()}
    assert sorted(set(node_of.values())) == [(0,), (1,), (2,)]
    moved = []
    # Two copies to warm up, then three that count: the median of 3, 1 and 2 s; between other memories 10 s more.
    now = [0.0]
    durations = [50.0, 50.0, 3.0, 1.0, 2.0]

    def put(value, sharding, may_alias=None):
        placed = ad.device_put(value, sharding, may_alias=may_alias)
        if may_alias is False:
            source, destination = (node_of[next(iter(each.device_set)).id][0] for each in (value.sharding, sharding))
            now[0] += durations[len(moved) % 5] + 10.0 * (source != destination)
            moved.append((source, destination))
        return placed

    monkeypatch.setattr(calibration_measurement, "device_put", put)
    monkeypatch.setattr(calibration_measurement, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    host = np.ones(3 << 10, np.float32)
    pairs = [(source, destination) for source in range(3) for destination in range(3)]
    expected = tuple(Link(a, b, host.nbytes / (2.0 if a == b else 12.0)) for a, b in pairs)
    assert calibration_measurement._links(host) == expected
    assert moved == [pair for pair in pairs for _ in range(5)]


def test_too_little_memory_is_reported(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(calibration_measurement, "_MEMORY_SHARE", 1 << 40)
        with pytest.raises(MemoryError, match=r"^calibrate: a sixteenth of the memory that the process may use is "):
            calibration.calibrate(cache=False)
    assert calibration_measurement.largest_array_bytes(1 << 50) <= ad.Machine.live().usable_memory_bytes // 16


def test_the_largest_array_is_three_times_the_caches_within_bounds(monkeypatch):
    usable = [1 << 40]
    monkeypatch.setattr(
        calibration_measurement, "Machine", SimpleNamespace(live=lambda: SimpleNamespace(usable_memory_bytes=usable[0]))
    )
    largest = calibration_measurement.largest_array_bytes
    assert (largest(None), largest(32 * MIB), largest(33 * MIB)) == (96 * MIB, 96 * MIB, 99 * MIB)
    usable[0] = 16 * 40 * MIB
    assert (largest(None), largest(64 * MIB)) == (40 * MIB, 40 * MIB)
    usable[0] = 16 * 8 * MIB
    assert largest(None) == 8 * MIB
    usable[0] -= 16
    with pytest.raises(MemoryError, match=rf" is {8 * MIB - 1} bytes; expected at least {8 * MIB}; raise the limit"):
        largest(None)


def test_a_real_measurement_reports_its_number_of_steps(measured):
    assert {total for _, total in STEPS} == {len(STEPS)}
    assert [name for name, _ in STEPS].count("links between memories") == 1
    assert STEPS[-1][0] == "links between memories"


def test_a_real_measurement_has_samples_and_conditions(measured):
    assert set(measured.coefficients) == set(TERMS)
    assert all(value >= 0 for value in measured.coefficients.values())
    assert measured.conditions.workers >= 1
    assert measured.conditions.array_bytes == 8 * MIB
    assert measured.conditions.model_cache_bytes in (None, 4 * MIB)
    assert measured.conditions.date.endswith("+00:00")
    assert {(link.source, link.destination) for link in measured.links} >= {
        (link.source, link.source) for link in measured.links
    }
    assert len(measured.links) == measured.conditions.memory_nodes**2
    if measured.conditions.memory_nodes == 1:
        assert "one memory node: no links between memories to measure" in measured.notes
    assert measured.conditions.rounds == 1
    few = [note for note in measured.notes if note.startswith("1 round: too few to detect a busy machine")]
    assert len(few) == (not measured.was_busy)
    assert "s, 1 round\n" in str(measured)
    assert measured.processes is None
    assert any(note.startswith("one process: ") for note in measured.notes)
    assert {name for sample in measured.samples for name in sample.terms} == set(TERMS)
    assert all(sample.repeats == 3 and sample.seconds > 0 for sample in measured.samples)
    assert Calibration.from_dict(json.loads(json.dumps(measured.to_dict()))).to_dict() == measured.to_dict()


def test_a_real_check_predicts_what_was_not_fitted(measured):
    checked = calibration.check(measured, rounds=1, most_bytes=MIB)
    assert {row.nbytes for row in checked.rows} == {MIB}
    assert {row.devices for row in checked.rows} == {4, 8}
    assert {row.kind for row in checked.rows} == {"reshard", "collective"}
    assert not {row.name for row in checked.rows if row.kind == "reshard"} & {s.name for s in measured.samples}
    assert all(row.predicted > 0 and row.measured > 0 for row in checked.rows)
    assert checked.median_error() is None
    assert "left out: arrays of 4.0 MiB, 16.0 MiB, 64.0 MiB, 128.0 MiB, 256.0 MiB, more than 1.0 MiB" in checked.notes
    assert "median error of all: no rows from 64.0 MiB on" in str(checked)


@pytest.mark.parametrize("op", BODIES)
def test_collectives_that_are_timed_do_what_they_are_called(op):
    from artifex_devices.calibration.cases import collective_case, host_values

    with ad.simulate(4):
        mesh = Mesh(np.array(ad.devices()), ("i",))
        host = host_values(4096)
        host[:] = np.arange(1024)
        case = collective_case(op, host, 256, mesh, None)
        result = np.asarray(case.prepare()())
        blocks = host[: 64 * (4 if op in ("all_reduce", "reduce_scatter") else 1)].reshape(4, -1)
        expected = {
            "all_gather": lambda: blocks.ravel(),
            "all_reduce": lambda: blocks.sum(0),
            "reduce_scatter": lambda: blocks.sum(0),
            "all_to_all": lambda: blocks.reshape(4, 4, -1).swapaxes(0, 1).ravel(),
            "permute": lambda: np.roll(blocks, 1, 0).ravel(),
        }[op]()
        np.testing.assert_array_equal(result, expected)
        assert case.nbytes == 256


def test_the_collectives_that_are_fitted_are_small_ones_of_each_executor_and_sums_of_two_sizes():
    host = np.ones(8 * MIB // 4, np.float32)
    with ad.simulate(6):
        cases = list(calibration_measurement._collectives(host, None))
    # 256 bytes per device; sums and scattered sums also of 2 MiB and of all that there is, for all devices together.
    least = {2: 512, 6: 1536}
    small = [(case.name, case.devices, case.nbytes) for case in cases if case.nbytes <= 1536]
    assert len(small) == 2 * 2 * len(BODIES)
    for name, devices, nbytes in small:
        step = 4 * devices * (1 if name.startswith(("psum,", "psum_scatter,")) else devices)
        assert nbytes == least[devices] // step * step
    large = [(case.devices, case.nbytes) for case in cases if case.nbytes > 1536]
    assert large == [
        (devices, size // devices // (4 * devices) * (4 * devices))
        for devices in (2, 6)
        for _ in ("all_reduce", "reduce_scatter")
        for size in (2 * MIB, 8 * MIB)
    ]
    executors = [case.name.rpartition(", ")[2] for case in cases if case.nbytes <= 1536 and case.devices == 2]
    assert executors == ["cooperative"] * len(BODIES) + ["threads"] * len(BODIES)


def test_an_interrupt_within_a_case_lets_the_collector_go_on():
    def prepare():
        count = []

        def run():
            count.append(1)
            if len(count) == 3:  # the first that is timed
                raise KeyboardInterrupt
            return ad.device_put(1.0)

        return run

    with pytest.raises(KeyboardInterrupt):
        time_cases([Case("a", 4, 1, prepare)], rounds=1, repeats=3)
    assert gc.isenabled()


def test_cases_take_turns():
    order = []

    def case(name):
        def prepare():
            order.append(name)
            return lambda: ad.device_put(1.0)

        return Case(name, 4, 1, prepare)

    times = time_cases([case("a"), case("b")], rounds=2, repeats=3)
    assert order == ["a", "b", "a", "b"]
    assert [len(each) for each in times] == [6, 6]
