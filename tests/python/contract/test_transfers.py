# SPDX-License-Identifier: Apache-2.0
"""transfers.record on every backend: each transfer once, on its route, with the bytes of its plan and its line."""

from __future__ import annotations

import inspect
import itertools

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices.prefetch import prefetch_to_device

X = np.arange(128, dtype=np.float32).reshape(8, 16)


@pytest.fixture
def devices(world):
    return ad.devices()


def routes(report):
    return {(route.source, route.destination): (route.calls, route.bytes) for route in report.routes}


def here(offset=0):
    frame = inspect.currentframe().f_back
    return __file__, frame.f_lineno + offset


def test_device_put_is_one_call_with_the_bytes_of_each_device(devices, platform):
    sharding = ad.NamedSharding(ad.Mesh(np.array(devices[:2]), ("x",)), ad.P("x"))
    with ad.transfers.record() as report:
        ad.device_put(X, sharding)
    assert routes(report) == {("host", f"{platform}:0"): (1, 256), ("host", f"{platform}:1"): (1, 256)}
    (line,) = report.lines
    assert (line.direction, line.calls, line.bytes) == ("host-to-device", 1, 512)
    assert (line.file, line.line) == here(-4)
    kinds = {(route.source_kind, route.destination_kind) for route in report.routes}
    assert kinds == {("", devices[0].device_kind)}


def planned_bytes(array, sharding):
    return ad.planner.plan_reshard(array.shape, array.dtype, array.sharding, sharding, way="copies").bytes_copied


def test_every_reshard_records_the_planned_bytes(grid):
    specs = [ad.P(), ad.P("x"), ad.P("y"), ad.P("x", "y"), ad.P("y", "x"), ad.P(None, ("x", "y")), ad.P(("x", "y"))]
    for source, target in itertools.permutations(specs, 2):
        array = ad.device_put(X, ad.NamedSharding(grid, source))
        to = ad.NamedSharding(grid, target)
        planned = planned_bytes(array, to)
        with ad.transfers.record() as report:
            ad.reshard(array, to).block_until_ready()
        assert report.bytes() == report.bytes("device-to-device") == planned, (source, target)
        assert sum(route.bytes for route in report.routes) == report.bytes()
        assert report.calls() == (1 if planned else 0)


def test_routes_between_devices_have_the_bytes_that_each_one_receives(devices, platform):
    array = ad.device_put(X, devices[0])
    with ad.transfers.record() as report:
        ad.device_put(array, devices[5], may_alias=False).block_until_ready()
    assert routes(report) == {(f"{platform}:0", f"{platform}:5"): (1, X.nbytes)}


def test_routes_and_bytes_of_the_planner_are_recorded(grid, platform):
    for source, target in itertools.permutations([ad.P("x"), ad.P("x", "y"), ad.P(None, "y"), ad.P()], 2):
        array = ad.device_put(X, ad.NamedSharding(grid, source))
        to = ad.NamedSharding(grid, target)
        plan = ad.planner.plan_reshard(X.shape, X.dtype, array.sharding, to, way="copies")
        planned: dict[tuple[str, str], int] = {}
        for copy in plan.copies:
            route = f"{platform}:{copy.source}", f"{platform}:{copy.destination}"
            planned[route] = planned.get(route, 0) + copy.bytes
        with ad.transfers.record() as report:
            ad.device_put(array, to).block_until_ready()
        assert report.bytes() == plan.bytes_copied, (source, target)
        assert {(route.source, route.destination): route.bytes for route in report.routes} == planned


def test_reads_are_recorded_once_for_each_array(grid, platform):
    array = ad.device_put(X, ad.NamedSharding(grid, ad.P(None, "x")))  # columns: the host has to gather
    with ad.transfers.record() as report:
        np.asarray(array)
        ad.device_get(array)
    assert routes(report) == {(f"{platform}:0", "host"): (1, 256), (f"{platform}:4", "host"): (1, 256)}
    with ad.transfers.record() as report:
        copy = ad.device_put(X + 1, ad.NamedSharding(grid, ad.P(None, "x"))).copy_to_host_async()
        copy.result()
    assert (report.calls("device-to-host"), report.bytes("device-to-host")) == (1, X.nbytes)


def test_memory_that_the_host_can_read_is_read_without_a_transfer(devices, platform):
    array = ad.device_put(X, devices[3])
    with ad.transfers.record() as report:
        float(np.asarray(array).sum())
    assert report.bytes() == (X.nbytes if platform == "gpu" else 0)
    pinned = ad.SingleDeviceSharding(devices[3], memory_kind="pinned_host")
    with ad.transfers.record() as report:
        array = ad.device_put(X, pinned)
        np.asarray(array)
    assert routes(report) == {("host", f"{platform}:3 pinned_host"): (1, X.nbytes)}


def test_numpy_functions_record_operands_of_the_host_and_moves(grid, platform):
    array = ad.device_put(X, ad.NamedSharding(grid, ad.P("x", "y")))
    row = X[0].copy()
    for compute, sent in (
        (lambda: array + 1, 0),
        (lambda: array + X, X.nbytes),
        (lambda: array * row, 2 * row.nbytes),  # the row is whole along x: each of 2 rows of devices gets its part
        (lambda: array @ X.T, 2 * X.nbytes),  # columns of X.T are needed by both rows of devices
    ):
        with ad.transfers.record() as report:
            compute()
        assert report.bytes() == (sent if platform == "gpu" else 0)


def test_one_element_is_a_transfer_of_its_bytes(grid, platform):
    array = ad.device_put(X, ad.NamedSharding(grid, ad.P("x", "y")))
    with ad.transfers.record() as report:
        assert array.item(17) == 17
    assert routes(report) == ({("gpu:0", "host"): (1, 4)} if platform == "gpu" else {})
    np.asarray(array)
    with ad.transfers.record() as report:
        array.item(17)  # the value has been read
    assert report.calls() == 0


def test_results_in_host_memory_are_recorded(grid, platform):
    array = ad.device_put(X, ad.NamedSharding(grid, ad.P("x", "y")))
    out = np.empty_like(X)
    with ad.transfers.record() as report:
        np.add(array, array, out=out)
    assert report.bytes("device-to-host") == (X.nbytes if platform == "gpu" else 0)
    np.testing.assert_array_equal(out, X * 2)


@pytest.mark.parametrize(
    ("find", "bytes_found"),
    [(np.nonzero, 127 * 2 * 8), (np.flatnonzero, 127 * 2 * 8), (np.unique, 128 * 4), (lambda x: x[x > 120], 7 * 2 * 8)],
    ids=["nonzero", "flatnonzero", "unique", "mask"],
)
def test_positions_and_values_that_are_found_are_read_by_the_host(grid, platform, find, bytes_found):
    array = ad.device_put(X, ad.NamedSharding(grid, ad.P("x", "y")))
    with ad.transfers.record() as report:
        find(array)
    assert report.bytes("device-to-host") == (bytes_found if platform == "gpu" else 0)
    with ad.transfer_guard_device_to_host("disallow"):
        if platform == "cpu":
            find(array)
        else:
            with pytest.raises(ad.errors.TransferGuardError, match="disallowed implicit device-to-host"):
                find(array)


def test_arguments_of_shard_map_are_recorded(grid, platform):
    double = ad.shard_map(lambda block: block * 2, mesh=grid, in_specs=ad.P("x", "y"), out_specs=ad.P("x", "y"))
    array = ad.device_put(X, ad.NamedSharding(grid, ad.P("x", "y")))
    moved = ad.device_put(X, ad.NamedSharding(grid, ad.P("y", "x")))
    for argument, bytes_moved in ((array, 0), (moved, None), (X, X.nbytes if platform == "gpu" else 0)):
        if bytes_moved is None:
            bytes_moved = planned_bytes(moved, array.sharding)
        with ad.transfers.record() as report:
            double(argument)
        assert report.bytes() == bytes_moved


def test_assembled_arrays_are_recorded_as_one_call(grid, platform):
    sharding = ad.NamedSharding(grid, ad.P("x", "y"))
    with ad.transfers.record() as report:
        ad.make_array_from_callback(X.shape, sharding, lambda index: X[index])
    assert (report.calls(), report.bytes()) == (1, X.nbytes)
    assert len(report.routes) == 8


def test_prefetching_is_recorded_at_the_line_that_reads_batches(devices):
    batches = prefetch_to_device(iter([X, X]), devices[0])
    with ad.transfers.record() as report:
        total = 0
        for batch in batches:
            total += batch.shape[0]
    assert (report.calls(), report.bytes()) == (2, 2 * X.nbytes)
    (line,) = report.lines
    assert (line.file, line.line) == here(-4)


def test_large_copies_count_when_they_are_started(grid):
    big = np.zeros((1024, 4096), np.float32)
    with ad.transfers.record() as report:
        array = ad.device_put(big, ad.NamedSharding(grid, ad.P("x")))
        moved = ad.device_put(array, ad.NamedSharding(grid, ad.P(None, "x")))
    moved.block_until_ready()
    assert report.bytes("device-to-device") == planned_bytes(array, moved.sharding)
