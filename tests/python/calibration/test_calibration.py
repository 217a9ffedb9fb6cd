# SPDX-License-Identifier: Apache-2.0
"""Calibrations: fits find what samples are made of, plans use them, the cache survives any file content."""

from __future__ import annotations

import dataclasses
import gc
import io
import json
import os
import pickle
import subprocess
import sys
import threading
from types import MappingProxyType, SimpleNamespace

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import calibration, cluster, command_line
from artifex_devices._base.timing import Repeats
from artifex_devices._placement.device_put import device_put
from artifex_devices.calibration import TERMS, Calibration, CalibrationConditions, Link, ProcessLink, Sample
from artifex_devices.calibration import accuracy as calibration_check
from artifex_devices.calibration import measurement as calibration_measurement
from artifex_devices.calibration import run as calibration_run
from artifex_devices.calibration.accuracy import CalibrationCheck, CheckedRow
from artifex_devices.calibration.cases import BODIES, Case, time_cases
from artifex_devices.calibration.run import progress_on
from artifex_devices.distributed import job
from artifex_devices.planner import plan_collective, plan_reshard
from artifex_devices.planner.calibration_values import fitted
from artifex_devices.roofline.cache import measurement_lock
from artifex_devices.sharding import Mesh, NamedSharding, P, SingleDeviceSharding

MIB = 1 << 20
COEFFICIENTS = {
    "calls": 2e-6,
    "calls on workers": 1e-5,
    "copies": 1e-6,
    "alone": 2e-10,
    "cached": 1e-10,
    "warm": 3e-10,
    "memory": 5e-10,
    "read in 4 B": 9e-10,
    "read in 32 B": 8e-10,
    "read in 64 B": 7e-10,
    "read in 512 B": 6e-10,
    "written in 4 B": 1e-9,
    "written in 32 B": 2e-9,
    "written in 64 B": 3e-9,
    "written in 512 B": 4e-9,
    "cooperative programs": 2e-5,
    "cooperative participants": 3e-6,
    "threads programs": 4e-5,
    "threads participants": 5e-5,
    "results": 7e-6,
    "added in caches": 1e-11,
    "added from memory": 2e-11,
}
CONDITIONS = CalibrationConditions(
    "2026-11-22T14:00:00+00:00",
    "a processor",
    2,
    1,
    32 * MIB,
    32 * MIB,
    None,
    0.5,
    4.0,
    96 * MIB,
    384 * MIB,
    "2.0",
    "0.1.0",
    10,
)


ONE_MEMORY = (Link(0, 0, 2e9),)


def made(links=ONE_MEMORY, **changes):
    sample = Sample("a gather", MappingProxyType({"calls": 1.0}), 2e-6, 1e-7, 12, 2.2e-6)
    known = Calibration(MappingProxyType(COEFFICIENTS), links, 1e-10, None, (sample,), CONDITIONS)
    return dataclasses.replace(known, **changes)


@pytest.fixture
def fresh(monkeypatch):
    """Nothing is clearable_cache of earlier measurements of this process."""
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


def test_the_terms_are_those_of_the_model():
    assert set(COEFFICIENTS) == set(TERMS)


def test_a_fit_finds_the_coefficients_that_times_are_made_of():
    random = np.random.default_rng(3)
    terms = []
    for i in range(80):
        scale = {name: 10.0 ** random.integers(0, 8) for name in TERMS}
        chosen = [TERMS[i % len(TERMS)], *random.choice(TERMS, 3)]
        terms.append({name: scale[name] for name in chosen})
    seconds = [sum(COEFFICIENTS[name] * count for name, count in each.items()) for each in terms]
    repeats = [Repeats([each]) for each in seconds]
    coefficients, samples = fitted([f"sample {i}" for i in range(80)], terms, repeats)
    for name in TERMS:
        assert coefficients[name] == pytest.approx(COEFFICIENTS[name], rel=1e-6), name
    assert [sample.seconds for sample in samples] == seconds
    assert max(abs(sample.error) for sample in samples) < 1e-6
    assert samples[7].name == "sample 7"
    assert samples[7].terms == terms[7]


def test_a_fit_needs_a_sample_of_each_term():
    with pytest.raises(ValueError, match=r"^calibrate: no sample has calls, calls on workers, .*measure more$"):
        fitted(["a"], [{"copies": 1.0}], [Repeats([1.0])])


def test_the_first_quartile_of_repeats_counts():
    timed = Repeats([5.0, 1.0, 2.0, 3.0, 4.0])
    assert (timed.seconds, timed.median, timed.spread, timed.count) == (2.0, 3.0, 2.0, 5)
    assert Repeats([1.5]).spread == 0.0


def test_seconds_are_the_sum_over_terms():
    assert made().seconds_of({"calls": 2, "alone": 1e6}) == pytest.approx(4e-6 + 2e-4)
    assert made().seconds_of({}) == 0
    with pytest.raises(ValueError, match=r"^seconds_of: 'bytes' is not a term; expected some of calls, "):
        made().seconds_of({"bytes": 1})


def test_rates_and_text():
    found = made()
    assert found.rates["memory"] == pytest.approx(2e9)
    assert found.rates["added in caches"] == pytest.approx(1e11)
    assert found.fit_error == pytest.approx(0.1)
    text = str(found)
    assert text.startswith(
        "a processor, 2 workers, 1 memory node; measured 2026-11-22T14:00:00+00:00 in 4.0 s, 10 rounds\n"
    )
    assert "copied from memory to memory             2 GB/s" in text
    assert "a program, threads                       40 us and 50 us a participant" in text
    assert "fit                                      1 samples, median error 10.0 %" in text
    assert "memory node 0 to 0" not in text  # of several memories only
    free = dict(COEFFICIENTS, warm=0.0)
    assert "warm" not in made(coefficients=free).rates
    between = ProcessLink(2, 1, "an MPI", 1e-4, 3e9, 2e-4, 4e9, True)
    text = str(made(links=(Link(0, 0, 2e9), Link(0, 1, 1e9)), processes=between,
                    conditions=dataclasses.replace(CONDITIONS, memory_nodes=2)))  # fmt: skip
    assert "memory node 0 to 1                       1 GB/s" in text
    assert "between 2 processes                      3 GB/s, 100 us (an MPI)" in text
    assert "sums of theirs, in shared memory         4 GB/s, 200 us" in text


def test_values_are_immutable_and_go_through_json_and_pickle():
    found = made(processes=ProcessLink(2, 1, "an MPI", 1e-4, 3e9, 2e-4, 4e9, True), notes=("a note",))
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.notes = ()
    with pytest.raises(TypeError):
        found.coefficients["calls"] = 0.0
    content = json.loads(found.to_json())
    assert content.pop("notes") == ["a note"]
    assert content.pop("from_cache") is False
    again = Calibration.from_dict(content)
    assert again.to_dict() == found.to_dict()
    copied = pickle.loads(pickle.dumps(found))
    assert (copied.to_dict(), copied.notes) == (found.to_dict(), found.notes)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("coefficients", {}, "coefficients does not have the entries"),
        ("coefficients", dict(COEFFICIENTS, calls=-1.0), "calls is not a number from 0"),
        ("coefficients", dict(COEFFICIENTS, calls=float("nan")), "calls is not a number from 0"),
        ("links", [], "links is not a list"),
        ("links", [{"source": -1, "destination": 0, "rate": 1e9}], "source is not an integer from 0"),
        ("fresh_page_seconds", "1", "fresh_page_seconds is not a number"),
        ("processes", {"processes": 2}, "processes does not have the entries"),
        ("samples", [{"name": "a"}], "a sample does not have the entries"),
        (
            "samples",
            [{**made().to_dict()["samples"][0], "terms": {"bytes": 1.0}}],
            "terms are not those of the model",
        ),
        ("samples", [{**made().to_dict()["samples"][0], "terms": []}], "terms are not those of the model"),
        ("conditions", {}, "conditions does not have the entries"),
        (
            "conditions",
            {**made().to_dict()["conditions"], "date": "yesterday"},
            "Invalid isoformat string: 'yesterday'",
        ),
    ],
)
def test_impossible_measurements_are_refused(key, value, message):
    with pytest.raises(ValueError, match=message):
        Calibration.from_dict({**made().to_dict(), key: value})


def test_plans_of_this_machine_have_seconds():
    with ad.simulate(4):
        mesh = Mesh(np.array(ad.devices()), ("x",))
        rows, whole = NamedSharding(mesh, P("x")), NamedSharding(mesh, P())
        plan = plan_reshard((512, 512), np.float32, rows, whole, calibration=made())
        assert plan.seconds == pytest.approx(1e-5 + 4e-6 + MIB * 1e-10)
        assert plan.steps[0].estimate.latency == pytest.approx(1.4e-5)
        assert plan.steps[0].estimate.limit == "memory"
        assert plan.seconds_from.kind == "measured"
        assert "2026-11-22T14:00:00+00:00 to this machine, a processor, 2 workers" in str(plan)
        assert json.loads(plan.to_json())["seconds"] == plan.seconds
        large = plan_reshard((4096, 4096), np.float32, rows, whole, calibration=made())
        assert large.seconds == pytest.approx(1.4e-5 + 64 * MIB * 5e-10)
        # Columns of 16 bytes, as if each run took a time of its own, in the calling thread.
        columns = NamedSharding(mesh, P(None, "x"))
        cut = plan_reshard((64, 16), np.float32, rows, columns, calibration=made())
        share = (1 / 4 - 1 / 16) / (1 / 4 - 1 / 32)
        per_byte = 2e-10 + 9e-10 * (1 - share) + 8e-10 * share
        assert cut.seconds == pytest.approx(2e-6 + 16e-6 + 4096 * per_byte)
        assert plan_reshard((512, 512), np.float32, rows, rows, calibration=made()).seconds == 0
        with pytest.raises(RuntimeError, match="collectives are not used on this machine's own devices"):
            _ = plan_reshard((512, 512), np.float32, rows, whole, way="collectives", calibration=made()).seconds
        with pytest.raises(RuntimeError, match=r"or calibration= for this machine's own"):
            _ = plan_reshard((512, 512), np.float32, rows, whole).seconds


def test_the_busiest_memory_counts_where_there_are_several():
    links = (Link(0, 0, 4e9), Link(0, 1, 1e9), Link(1, 0, 1e9), Link(1, 1, 4e9))
    with ad.simulate("numa:2 pu:2"):
        mesh = Mesh(np.array(ad.devices()), ("x",))
        assert mesh.size == 2
        rows, whole = NamedSharding(mesh, P("x")), NamedSharding(mesh, P())
        plan = plan_reshard((4096, 4096), np.float32, rows, whole, calibration=made(links))
        # Each memory gets half of the bytes from itself, half from the other one.
        each = 32 * MIB / 4e9 + 32 * MIB / 1e9
        estimate = plan.steps[0].estimate
        assert estimate.transfer == pytest.approx(max(each, 128 * MIB * 5e-10))
        fast = tuple(dataclasses.replace(link, rate=1e12) for link in links)
        other = plan_reshard((4096, 4096), np.float32, rows, whole, calibration=made(fast)).steps[0].estimate
        assert other.transfer == pytest.approx(128 * MIB * 5e-10)
        assert other.limit == "memory"
        slow = tuple(dataclasses.replace(link, rate=link.rate / 4) for link in links)
        bound = plan_reshard((4096, 4096), np.float32, rows, whole, calibration=made(slow)).steps[0].estimate
        assert bound.transfer == pytest.approx(4 * each)
        assert bound.limit in {f"{what} of memory node {node}" for what in ("reads", "writes") for node in (0, 1)}


def test_the_busiest_memory_counts_where_two_links_are_known():
    links = (Link(0, 1, 1e8), Link(1, 0, 1e8))
    with ad.simulate("numa:2 pu:2"):
        mesh = Mesh(np.array(ad.devices()), ("x",))
        rows, whole = NamedSharding(mesh, P("x")), NamedSharding(mesh, P())
        estimate = plan_reshard((4096, 4096), np.float32, rows, whole, calibration=made(links)).steps[0].estimate
        assert estimate.transfer == pytest.approx(32 * MIB / 1e8)
        assert estimate.limit != "memory"


def test_a_job_of_one_process_has_no_process_links(monkeypatch):
    for members, is_in_job in ((None, False), ((0, ("me",), ()), False), ((0, ("me", "other"), ()), True)):
        monkeypatch.setattr(job, "members", lambda members=members: members)
        assert calibration_run._is_in_job() is is_in_job


def test_the_links_from_and_to_each_of_three_memories_count():
    third = 3 * MIB  # of the array, on each node before
    rates = {(0, 0): 4e8, (0, 1): 1e8, (0, 2): 2e8, (1, 0): 5e7, (1, 1): 4e8, (1, 2): 8e7, (2, 0): 1e8, (2, 1): 2e8}
    links = tuple(Link(*pair, rate) for pair, rate in rates.items())  # that of node 2 to itself is not known
    with ad.simulate("numa:3 pu:1"):
        nodes = [SingleDeviceSharding(device) for device in ad.devices()]
        mesh = Mesh(np.array(ad.devices()), ("x",))
        rows, whole = NamedSharding(mesh, P("x")), NamedSharding(mesh, P())

        def estimate(source, destination):
            plan = plan_reshard((1536, 1536), np.float32, source, destination, calibration=made(links))
            return plan.steps[0].estimate.transfer, plan.steps[0].estimate.limit

        # One way is not the other, and where a link is not known only the copy itself counts.
        assert estimate(nodes[0], nodes[1]) == (pytest.approx(3 * third / 1e8), "reads of memory node 0")
        assert estimate(nodes[1], nodes[0]) == (pytest.approx(3 * third / 5e7), "reads of memory node 1")
        assert estimate(rows, nodes[2]) == (pytest.approx(third / 2e8 + third / 8e7), "writes of memory node 2")
        reads = third * (1 / 5e7 + 1 / 4e8 + 1 / 8e7)
        assert estimate(nodes[1], rows) == (pytest.approx(reads), "reads of memory node 1")
        # Everybody reads everything: the reads of node 1 take longest, longer than the writes to node 0.
        assert estimate(rows, whole) == (pytest.approx(reads), "reads of memory node 1")


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
        placed = device_put(value, sharding, may_alias=may_alias)
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


def test_collectives_of_this_machine_have_seconds(monkeypatch):
    with ad.simulate(8):
        mesh = Mesh(np.array(ad.devices()).reshape(2, 4), ("a", "b"))
        cooperative = 2e-5 + 8 * 3e-6
        threads = 4e-5 + 8 * 5e-5

        def seconds(op, nbytes, axes="b"):
            return plan_collective(op, nbytes, axes, mesh, calibration=made()).seconds

        assert seconds("permute", 64 * MIB) == pytest.approx(threads + 8 * 7e-6)
        assert seconds("permute", 1024) == pytest.approx(cooperative + 8 * 7e-6)
        # Two groups of 4: each joins 4 pieces.
        assert seconds("all_gather", MIB) == pytest.approx(cooperative + 2 * (7e-6 + 1e-5 + 4e-6 + MIB * 1e-10))
        assert seconds("all_to_all", MIB) == pytest.approx(cooperative + 2 * (4 * 7e-6 + 1e-5 + 16e-6 + MIB * 1e-10))
        # All inputs are read, one result a group is written.
        summed = threads + 1e-5 + 2 * 5 * 16 * MIB * 2e-11
        assert seconds("all_reduce", 16 * MIB) == pytest.approx(summed + 2 * 7e-6)
        assert seconds("reduce_scatter", 16 * MIB) == pytest.approx(summed + 8 * 7e-6)
        assert seconds("all_reduce", 1024, ("a", "b")) == pytest.approx(cooperative + 7e-6 + 9 * 1024 * 1e-11)
        monkeypatch.setitem(ad.config._values, "spmd_executor", "threads")
        assert seconds("permute", 1024) == pytest.approx(threads + 8 * 7e-6)
        plan = plan_collective("all_reduce", 1024, "b", mesh, calibration=made())
        assert (plan.algorithm, plan.cluster, plan.groups) == ("threads executor", None, 2)
        estimate = plan.steps[0].estimate
        assert 0 < estimate.transfer < estimate.latency  # of 1 KiB
        assert estimate.limit == "memory"
        assert plan.bytes_by_device == 2 * 1024 * 3 / 4
        assert str(plan).startswith("all_reduce of 1.0 KiB by 4 devices of this machine\n")
        assert json.loads(plan.to_json())["cluster"] is None
        with pytest.raises(RuntimeError, match=r"^plan_collective: the lower bound is not known; expected a cluster;"):
            _ = plan.lower_bound.seconds


@pytest.mark.parametrize("op", ["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "permute"])
def test_the_largest_collectives_have_seconds_in_proportion(op):
    with ad.simulate(4):
        mesh = Mesh(np.array(ad.devices()), ("x",))

        def seconds(nbytes):
            return plan_collective(op, nbytes, "x", mesh, calibration=made()).seconds

        fixed = seconds(2**50) * 2 - seconds(2**51)
        for nbytes in (4.7e18, 5e18, 2**63):
            expected = fixed + (seconds(2**51) - fixed) * (nbytes / 2**51)
            assert seconds(nbytes) == pytest.approx(expected, rel=1e-6)


def test_wrong_arguments_of_plans_are_named():
    pod = cluster.tpu("v5e", (4, 4))
    far = Mesh(np.array(pod.devices()).reshape(4, 4), ("x", "y"))
    with ad.simulate(2):
        near = Mesh(np.array(ad.devices()), ("x",))
        rows = NamedSharding(near, P("x"))
        with pytest.raises(TypeError, match=r"^plan_reshard: calibration is 3 \(int\); expected a Calibration or None"):
            plan_reshard((4,), np.float32, rows, rows, calibration=3)
        with pytest.raises(ValueError, match=r"^plan_reshard: both cluster and calibration are given"):
            plan_reshard((4,), np.float32, rows, rows, calibration=made(), cluster=pod)
        with pytest.raises(TypeError, match=r"^plan_collective: calibration is 3 \(int\)"):
            plan_collective("all_gather", 4, "x", near, calibration=3)
        with pytest.raises(ValueError, match=r"'broadcast' is not a calibrated collective; expected one of"):
            plan_collective("broadcast", 4, "x", near, calibration=made())
        with pytest.raises(TypeError, match="give calibration= for this machine's own devices"):
            plan_collective("all_gather", 4, "x", near)
    cut = NamedSharding(far, P("x"))
    with pytest.raises(ValueError, match="expected devices of this process for seconds that a calibration gives"):
        plan_reshard((4,), np.float32, cut, NamedSharding(far, P()), calibration=made())
    with pytest.raises(ValueError, match=r"^plan_collective: the mesh has devices of a cluster; expected devices of"):
        plan_collective("all_gather", 4, "x", far, calibration=made())
    with pytest.raises(ValueError, match=r"and calibration is given; expected a Mesh of this machine's own devices"):
        plan_collective("all_gather", 4, "x", pod, calibration=made())


def test_the_cluster_of_this_machine_takes_its_links_and_latency():
    here = cluster.this_machine(calibration=made())
    domains = here.parts["dims"][0]
    assert here.parts["bandwidth"] == (pytest.approx(2e9 / domains), "measured")
    assert here.parts["latency"] == (pytest.approx(1e-5), "measured")
    assert "links calibrated on 2026-11-22T14:00:00+00:00" in here.parts["notes"][0]
    assert cluster.this_machine(calibration=made(), latency=1e-6).parts["latency"] == (1e-6, "given")
    slow = made(links=(Link(0, 0, 4e9), Link(0, 1, 1e9)))
    assert cluster.this_machine(calibration=slow).parts["bandwidth"][0] == pytest.approx(1e9 / domains)
    with pytest.raises(TypeError, match=r"^cluster.this_machine: calibration is 3 .int.; expected a Calibration"):
        cluster.this_machine(calibration=3)


def test_the_cache_keeps_it(stand_in, tmp_path, monkeypatch):
    first = calibration.calibrate(cache=tmp_path, rounds=7)
    (file,) = tmp_path.iterdir()
    assert file.name.startswith("calibration-")
    assert first.notes[-1] == f"stored in {file}"
    assert not first.from_cache
    again = calibration.calibrate(cache=str(tmp_path), rounds=7)
    assert again.from_cache
    monkeypatch.setattr(calibration_run, "_calibrations", {})  # as another process
    read = calibration.calibrate(cache=tmp_path, rounds=3)
    assert read.from_cache
    assert read.to_dict() == first.to_dict()
    assert read.notes[-1] == f"read from {file}"
    assert stand_in == [7]
    assert not calibration.calibrate(cache=tmp_path, refresh=True).from_cache
    assert len(stand_in) == 2
    calibration.calibrate(cache=False)
    monkeypatch.setenv("ARTIFEX_DEVICES_CACHE", "off")
    assert "not stored: ARTIFEX_DEVICES_CACHE=off" in calibration.calibrate().notes
    assert len(stand_in) == 4


def test_notes_say_what_one_process_cannot_measure(stand_in, tmp_path):
    (single, stored) = calibration.calibrate(cache=tmp_path).notes
    assert single == "one process: no links between processes to measure (mpiexec, distributed.initialize)"
    assert stored.startswith("stored in ")


def test_a_calibration_of_a_job_is_not_stored_and_has_the_links_between_its_processes(stand_in, tmp_path, monkeypatch):
    from artifex_devices.calibration import processes

    links = ProcessLink(2, 1, "an MPI", 1e-4, 3e9, 2e-4, 4e9, True)
    sizes = []
    monkeypatch.setattr(job, "members", lambda: (0, ("one", "two")))
    monkeypatch.setattr(processes, "measure_processes", lambda nbytes: sizes.append(nbytes) or links)
    found = calibration.calibrate(cache=tmp_path, rounds=5)
    assert found.processes == links
    assert sizes == [CONDITIONS.array_bytes]
    assert found.notes == (
        "not stored: in a job of several processes each measures its share of the machine while the others do",
    )
    assert list(tmp_path.iterdir()) == []
    assert not calibration.calibrate(cache=tmp_path, rounds=5).from_cache
    assert stand_in == [5, 5]
    monkeypatch.setattr(job, "members", lambda: (0, ("one",)))  # a job of one process is as none
    assert calibration.calibrate(cache=tmp_path, rounds=5).processes is None


@pytest.mark.parametrize("forget", [True, False])
def test_a_stored_calibration_needs_as_many_rounds(stand_in, tmp_path, monkeypatch, forget, capsys):
    def calibrated(**rounds):
        if forget:
            monkeypatch.setattr(calibration_run, "_calibrations", {})  # as another process
        found = calibration.calibrate(cache=tmp_path, **rounds)
        return found.from_cache, found.conditions.rounds

    assert calibrated(rounds=1) == (False, 1)
    assert calibrated(rounds=1) == (True, 1)
    assert calibrated() == (False, 10)  # a rough one does not serve a call that asks for no number
    assert calibrated(rounds=1) == (True, 10)
    assert calibrated(rounds=20) == (False, 20)
    assert calibrated() == (True, 20)
    assert stand_in == [1, 10, 20]
    (file,) = tmp_path.iterdir()
    found = calibration.calibrate(cache=tmp_path, rounds=90)
    assert f"{file} is not used: it was measured with rounds=20, not 90" in found.notes
    assert "in 4.0 s, 90 rounds\n" in str(found)
    monkeypatch.setenv("ARTIFEX_DEVICES_CACHE", str(tmp_path))
    assert command_line.main(["calibrate", "--rounds", "91", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert (content["from_cache"], content["conditions"]["rounds"]) == (False, 91)


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"format": 1}', '{"format": 2, "fingerprint": {}}', "\0"])
def test_a_damaged_file_is_not_used(stand_in, tmp_path, monkeypatch, content):
    calibration.calibrate(cache=tmp_path)
    (file,) = tmp_path.iterdir()
    file.write_text(content)
    monkeypatch.setattr(calibration_run, "_calibrations", {})
    found = calibration.calibrate(cache=tmp_path)
    assert not found.from_cache
    assert any(note.startswith(f"{file} is not used: ") for note in found.notes)


def test_a_file_of_another_machine_is_not_used(stand_in, tmp_path, monkeypatch):
    calibration.calibrate(cache=tmp_path)
    (file,) = tmp_path.iterdir()
    content = json.loads(file.read_text())
    content["fingerprint"]["cpu_model"] = "another one"
    file.write_text(json.dumps(content))
    monkeypatch.setattr(calibration_run, "_calibrations", {})
    assert f"{file} is not used: it is of another machine" in calibration.calibrate(cache=tmp_path).notes


def test_bad_arguments_are_named():
    for call, error, message in (
        (lambda: calibration.calibrate(rounds=0), ValueError, r"^calibrate: rounds is 0; expected 1 to 100"),
        (lambda: calibration.calibrate(rounds=1.5), TypeError, r"^calibrate: rounds is 1.5 \(float\)"),
        (lambda: calibration.calibrate(refresh=1), TypeError, r"^calibrate: refresh is 1 \(int\); expected True"),
        (lambda: calibration.calibrate(progress="a"), TypeError, r"^calibrate: progress is 'a' \(str\)"),
        (lambda: calibration.calibrate(cache=3), TypeError, r"^calibrate: cache is 3 \(int\)"),
        (lambda: calibration.calibrate(cache=""), ValueError, r"^calibrate: cache is ''; expected the path"),
        (lambda: calibration.check(3), TypeError, r"^check: calibration is 3 \(int\); expected a Calibration"),
        (lambda: calibration.check(made(), rounds=101), ValueError, r"^check: rounds is 101; .* write rounds=3$"),
        (lambda: calibration.calibrate(rounds=-1), ValueError, r"^calibrate: rounds is -1; .* write rounds=10$"),
        (lambda: calibration.check(made(), most_bytes=1), ValueError, r"^check: most_bytes is 1; expected 1 MiB"),
        (lambda: calibration.check(made(), most_bytes=1e9), TypeError, r"^check: most_bytes is 1000000000.0 \(float\)"),
    ):
        with pytest.raises(error, match=message):
            call()


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


def rows_of(*errors):
    return tuple(
        CheckedRow(f"row {i}", kind, nbytes, 4, 1 + error, 1.0, 1.0, 0.1)
        for i, (kind, nbytes, error) in enumerate(errors)
    )


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


def is_held_elsewhere(lock):
    """Whether a thread that comes now would have to wait."""
    got = []
    thread = threading.Thread(target=lambda: got.append(lock.acquire(blocking=False) and (lock.release() or True)))
    thread.start()
    thread.join()
    return not got[0]


def test_ctrl_c_leaves_everything_as_it_was(monkeypatch, tmp_path):
    before = ad.devices()

    def step(name, total):
        raise KeyboardInterrupt

    monkeypatch.setattr(calibration_measurement, "_DEFAULT_ARRAY", 8 * MIB)
    monkeypatch.setattr(calibration_measurement, "_CACHE_MULTIPLE", 0)
    with pytest.raises(KeyboardInterrupt):
        calibration_measurement.measure_calibration(1, step)
    assert ad.devices() == before
    assert gc.isenabled()
    monkeypatch.setattr(calibration_run, "measure_calibration", lambda rounds, _: step("", 1))
    with pytest.raises(KeyboardInterrupt):
        calibration.calibrate(cache=tmp_path)
    assert not is_held_elsewhere(measurement_lock())
    assert list(tmp_path.iterdir()) == []


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


def test_progress_is_printed_in_lines_without_a_terminal():
    stream = io.StringIO()
    with progress_on("calibrate", True, stream) as bar:
        for i in range(20):
            bar.step(f"part {i}", 20)
    lines = stream.getvalue().splitlines()
    assert len(lines) == 10
    assert lines[-1] == "calibrate: 100 %, part 19"
    for shown in (None, False):
        silent = io.StringIO()
        with progress_on("calibrate", shown, silent) as bar:
            bar.step("a part", 1)
        assert silent.getvalue() == ""


def test_progress_is_a_bar_on_a_terminal():
    pytest.importorskip("rich")

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    stream = Terminal()
    with progress_on("calibrate", None, stream) as bar:
        bar.step("a gather", 2)
    assert "a gather" in stream.getvalue()
    assert "1/2" in stream.getvalue()


def test_the_command(stand_in, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("ARTIFEX_DEVICES_CACHE", str(tmp_path))
    assert command_line.main(["calibrate", "--rounds", "12"]) == 0
    assert stand_in == [12]
    assert capsys.readouterr().out.startswith("a processor, 2 workers")
    assert command_line.main(["calibrate", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["from_cache"] is True

    def checked(error):
        rows = rows_of(("reshard", 64 * MIB, error))
        return lambda found, **_: CalibrationCheck(found, rows, "2026-11-22T15:00:00+00:00")

    monkeypatch.setattr(calibration, "check", checked(0.19))
    assert command_line.main(["calibrate", "--check"]) == 0
    assert "median error of all: 19.0 % from 64.0 MiB on" in capsys.readouterr().out
    monkeypatch.setattr(calibration, "check", checked(-0.21))
    assert command_line.main(["calibrate", "--check", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["median_error_large"] == pytest.approx(0.21)
    noisy = Sample("a gather", MappingProxyType({"calls": 1.0}), 1e-6, 1e-6, 12, 1e-6)
    monkeypatch.setattr(calibration_run, "measure_calibration", lambda rounds, step: made(samples=(noisy,)))
    assert command_line.main(["calibrate", "--refresh"]) == 1
    capsys.readouterr()
    for wrong in (["--rounds", "0"], ["--rounds", "a"], ["--never"]):
        with pytest.raises(SystemExit) as ended:
            command_line.main(["calibrate", *wrong])
        assert ended.value.code == 2


def test_two_threads_measure_one_after_the_other(monkeypatch, fresh):
    inside = []

    def measure(rounds, step):
        inside.append(is_held_elsewhere(measurement_lock()))
        return made()

    monkeypatch.setattr(calibration_run, "measure_calibration", measure)
    threads = [threading.Thread(target=lambda: calibration.calibrate(cache=False)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert inside == [True, True]


def test_importing_the_package_does_not_import_it():
    code = "import sys, artifex_devices; print([n for n in sys.modules if 'calibration' in n])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=dict(os.environ), check=True
    )
    assert done.stdout.strip() == "[]"


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
