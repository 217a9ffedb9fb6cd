# SPDX-License-Identifier: Apache-2.0
"""Measurement of the machine's copies and collectives, and the fit of their model: see `calibrate`."""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artifex_devices._base.argument_types import Operand
from artifex_devices._base.checks import failure
from artifex_devices._base.text import bytes_text
from artifex_devices._base.timing import Repeats
from artifex_devices._core import Device, Machine, Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding, internal
from artifex_devices._placement.device_put import device_put
from artifex_devices._runtime.devices import devices
from artifex_devices._runtime.world import simulate
from artifex_devices.calibration.cases import (
    BODIES,
    Case,
    collective_case,
    host_values,
    reshard_case,
    time_cases,
)
from artifex_devices.planner.calibration import Calibration, CalibrationConditions, Link, fitted
from artifex_devices.roofline.measurement import conditions_before

_DEVICES = 6  # simulated ones; the check has 4 and 8
_SMALL_GROUP = 2
_MANY = 512  # devices of the transfer with many copies
_REPEATS = 3
_CONCLUSIVE_ROUNDS = 3  # repeats of one round are milliseconds apart: other work slows down all of them or none
_RUNS = (4, 32, 64, 512)
_MIN_ARRAY = 8 << 20
_DEFAULT_ARRAY = 96 << 20
_CACHE_MULTIPLE = 3
_MEMORY_SHARE = 16  # of the memory that the process may use, for the largest array
_ARRAYS = 5  # of that size: the host's values, source, result, the result before it, and all smaller ones
_FRESH_BYTES = 24 << 20
_DENSE = (16 << 10, 96 << 10, 384 << 10, 640 << 10, 1536 << 10, 3 << 20, 5 << 20)


def largest_array_bytes(cache_bytes: int | None) -> int:
    """Returns the bytes of the largest array: three times the caches, at least 96 MiB, at most 1/16 of memory."""
    limit = Machine.live().usable_memory_bytes // _MEMORY_SHARE
    if limit < _MIN_ARRAY:
        raise failure(
            MemoryError,
            "calibrate",
            f"a sixteenth of the memory that the process may use is {limit} bytes",
            expected=f"at least {_MIN_ARRAY}",
            fix="raise the limit (ulimit -v, the cgroup's memory.max)",
        )
    return min(max(_CACHE_MULTIPLE * (cache_bytes or 0), _DEFAULT_ARRAY), limit)


def measure_calibration(rounds: int, step: Callable[[str, int], None]) -> Calibration:
    """Measures in worlds of its own and fits; calls `step` with the name of each part and the number of parts."""
    begin = time.perf_counter()
    before = conditions_before()
    cache_bytes = internal.last_level_cache_bytes() or None
    largest = largest_array_bytes(cache_bytes)
    notes: list[str] = []
    if cache_bytes and largest < 2 * cache_bytes:
        notes.append(
            f"arrays of {bytes_text(largest)}, for lack of memory, are not well above the caches "
            f"({bytes_text(cache_bytes)}): copies from memory may be slower than predicted"
        )
    model_cache_bytes = min(cache_bytes, largest // 2) if cache_bytes else None
    host = host_values(largest)
    cases: list[Case] = []
    timed: list[Repeats] = []

    def run(world: int, make: Callable[[], Iterator[Case]]) -> None:
        with simulate(world):
            added = list(make())
            seconds = time_cases(added, rounds=rounds, repeats=_REPEATS, step=lambda name: step(name, total))
        internal.trim()  # releases the memory of this world's arrays before the next world needs its own
        cases.extend(added)
        timed.extend(map(Repeats, seconds))

    total = rounds * (len(_DENSE) + 2 + 2 * len(_RUNS) + 4 * len(BODIES) + 8 + 1) + 1
    run(_DEVICES, lambda: _reshards(host, model_cache_bytes))
    run(_DEVICES, lambda: _collectives(host, model_cache_bytes))
    run(_MANY, lambda: _many_copies(host, model_cache_bytes))
    step("links between memories", total)
    links = _links(host)
    if len(links) == 1:
        notes.append("one memory node: no links between memories to measure")
    internal.trim()
    fresh = _fresh_page_seconds(host)
    coefficients, samples = fitted([case.name for case in cases], [case.terms for case in cases], timed)
    conditions = CalibrationConditions(
        **before,
        workers=internal.measured_scope(None)[1],
        memory_nodes=len({link.source for link in links}),
        cache_bytes=cache_bytes,
        model_cache_bytes=model_cache_bytes,
        seconds=time.perf_counter() - begin,
        array_bytes=largest,
        memory_bytes=_ARRAYS * largest,
        rounds=rounds,
    )
    found = Calibration(coefficients, links, fresh, None, samples, conditions)
    if found.was_busy:
        notes.append("the machine was busy: repeats differ by more than a quarter; measure again on a quiet one")
    elif rounds < _CONCLUSIVE_ROUNDS:
        load = conditions.load_average
        load_text = "not known" if load is None else f"{load:.2g}"
        notes.append(
            f"{rounds} round{'s' * (rounds > 1)}: too few to detect a busy machine (its load before was {load_text}); "
            f"measure with {_CONCLUSIVE_ROUNDS} or more"
        )
    return dataclasses.replace(found, notes=tuple(notes))


def _reshards(host: NDArray[Any], cache_bytes: int | None) -> Iterator[Case]:
    """Measures dense copies of all sizes, and copies with short runs on either side."""
    mesh = Mesh(np.array(devices()), ("x",))
    rows, columns, replicated = (NamedSharding(mesh, PartitionSpec(*spec)) for spec in (("x",), (None, "x"), ()))
    warm = min(max((cache_bytes or 0) * 3 // 8, 8 << 20), host.nbytes // 2)
    for size in (*_DENSE, warm, host.nbytes):
        items = size // 4 // _DEVICES * _DEVICES
        yield reshard_case(f"gather of {bytes_text(4 * items)}", host, (items,), rows, replicated, cache_bytes)
    for run in _RUNS:
        width = _DEVICES * run // 4
        shape = host.nbytes // 4 // width // _DEVICES * _DEVICES, width
        yield reshard_case(f"rows to columns of {run} bytes", host, shape, rows, columns, cache_bytes)
        yield reshard_case(f"columns of {run} bytes to rows", host, shape, columns, rows, cache_bytes)


def _many_copies(host: NDArray[Any], cache_bytes: int | None) -> Iterator[Case]:
    """Measures a transfer with many small copies, whose time depends on their number."""
    all_devices = np.array(devices())
    items = (640 << 10) // 4 // _MANY * _MANY
    source, destination = (
        NamedSharding(Mesh(all_devices[:count], ("x",)), PartitionSpec("x")) for count in (_MANY, _MANY // 2)
    )
    name = f"{_MANY} copies of {4 * items // _MANY} bytes"
    yield reshard_case(name, host, (items,), source, destination, cache_bytes)


def _collectives(host: NDArray[Any], cache_bytes: int | None) -> Iterator[Case]:
    """Measures small programs, for their latency, and sums."""
    for count in (_SMALL_GROUP, _DEVICES):
        mesh = Mesh(np.array(devices()[:count]), ("i",))
        for executor in ("cooperative", "threads"):
            for op in BODIES:
                yield collective_case(op, host, 256 * count, mesh, cache_bytes, executor)
        for op in ("all_reduce", "reduce_scatter"):
            for size in (2 << 20, host.nbytes):
                yield collective_case(op, host, size // count, mesh, cache_bytes)


def _links(host: NDArray[Any]) -> tuple[Link, ...]:
    """Measures bytes/s from each memory to each memory."""
    with simulate(Machine.live()):
        memories: dict[int, Device] = {}
        for device in devices():
            memories.setdefault(device.numa_nodes[0] if device.numa_nodes else 0, device)
        found = []
        for source, holder in memories.items():
            array = device_put(host, SingleDeviceSharding(holder)).block_until_ready()
            for destination, receiver in memories.items():
                times = [_copied(array, SingleDeviceSharding(receiver))[1] for _ in range(_REPEATS + 2)]
                found.append(Link(source, destination, host.nbytes / statistics.median(times[2:])))
        return tuple(found)


def _fresh_page_seconds(host: NDArray[Any]) -> float:
    """Measures the additional seconds per byte of a result whose memory is new to the process."""
    with simulate(1):
        place = SingleDeviceSharding(devices()[0])
        values = host[: min(_FRESH_BYTES, host.nbytes) // 4]
        array = device_put(values, place).block_until_ready()
        results = [_copied(array, place) for _ in range(_REPEATS)]
        fresh = max(seconds for _, seconds in results)  # the first results may use memory that was cached before
        results.pop()
        reused = statistics.median(_copied(array, place)[1] for _ in range(_REPEATS))
        return float(max(0.0, fresh - reused) / values.nbytes)


def _copied(array: Operand, place: SingleDeviceSharding) -> tuple[Any, float]:
    """Copies an Array; returns the copy, and the seconds that it takes."""
    begin = time.perf_counter()
    copy = device_put(array, place, may_alias=False).block_until_ready()
    return copy, time.perf_counter() - begin
