# SPDX-License-Identifier: Apache-2.0
"""The whole result of measure_batch_size for steps with known times and memory."""

import math
import re

import artifex_devices as ad
import pytest
from artifex_devices.batch_measurement import MemoryUse
from recorded_texts import check_recorded
from synthetic_steps import Bench


def affine(fixed=1.0, rate=16):
    return lambda size, call: fixed + size / rate


def raised_for(condition, error=ValueError):
    return lambda size: error(f"size {size}\nmore") if condition(size) else None


def no_room(limit):
    return raised_for(lambda size: size > limit, ad.errors.ResourceExhaustedError)


class TwoMemories(Bench):
    """A host that grows evenly, and a device that grows with the square of the batch."""

    def stop(self):
        found = {"host": MemoryUse(1000, 5 << 20, 1000, "the host's counter")}
        if self.size:
            found["host"] = MemoryUse(1000, (5 << 20) + (self.size << 20), 1000, "the host's counter")
            found["cpu:1"] = MemoryUse(0, 512 + 3 * self.size**2, 0, "the device's counter")
        found["cpu:2"] = MemoryUse(7, None, 7, "not observed")
        return found

    def bounds(self):
        return {"host": 600 << 20, "cpu:1": 1 << 20}


def noisy(size, call):
    return (0.5 + size / 64) * (1 + 0.06 * ((call * 7) % 5))


def with_make_seconds(bench, seconds):
    bench.make_seconds = seconds
    return bench


CASES = {
    "affine": lambda: Bench(affine()).measure(),
    "affine, from 24 to 500, multiples of 8": lambda: Bench(affine()).measure(
        min_batch_size=20, max_batch_size=505, multiple_of=8
    ),
    "affine, too small a range": lambda: Bench(affine()).measure(max_batch_size=100),
    "affine, two sizes": lambda: Bench(affine()).measure(max_batch_size=2),
    "affine, three sizes": lambda: Bench(affine()).measure(max_batch_size=4),
    "affine, five sizes": lambda: Bench(affine()).measure(max_batch_size=16, target=0.3),
    "a floor": lambda: Bench(lambda size, call: max(4.0, size / 25)).measure(),
    "a floor above fixed seconds": lambda: Bench(lambda size, call: max(3.0, 1.0 + size / 50)).measure(target=0.8),
    "linear": lambda: Bench(lambda size, call: size / 8).measure(multiple_of=4),
    "constant": lambda: Bench(lambda size, call: 0.5).measure(max_batch_size=1000),
    "blocks of 64": lambda: Bench(lambda size, call: 1.0 + math.ceil(size / 64)).measure(),
    "falls beyond 64": lambda: Bench(lambda size, call: (1 + size / 16) * (1 if size <= 64 else 3)).measure(),
    "falls and rises again": lambda: Bench(lambda size, call: (1 + size / 16) * (1.5 if size == 128 else 1)).measure(),
    "falls slowly": lambda: Bench(lambda size, call: 0.1 + size / 100 + (size / 300) ** 2).measure(),
    "noisy": lambda: Bench(noisy).measure(min_calls=7),
    "noisy, few calls": lambda: Bench(noisy).measure(min_calls=2, warmup_calls=0, probe_seconds=0.0),
    "very noisy": lambda: Bench(lambda size, call: (0.5 + size / 64) * (1 + (call * 7) % 5)).measure(),
    "jumps": lambda: Bench(lambda size, call: (1.0 + size / 16) * (170 if size >= 128 else 1)).measure(),
    "one size is slow": lambda: Bench(lambda size, call: (1.0 + size / 16) * (2 if size == 256 else 1)).measure(),
    "memory of a device": lambda: Bench(
        affine(1e-3, 16_000), peak=lambda size: 1000 + 1024 * size, bound=200_000
    ).measure(),
    "memory of a device, multiples of 16": lambda: Bench(
        affine(0.1, 1600), peak=lambda size: 1000 + 1024 * size, bound=200_000
    ).measure(multiple_of=16),
    "memory with the square": lambda: Bench(affine(), peak=lambda size: 10 * size * size, bound=200_000).measure(),
    "memory with the square of the host": lambda: Bench(
        affine(), peak=lambda size: 10_000 * size * size, bound=500_000_000, memory="host"
    ).measure(),
    "memory of the host": lambda: Bench(
        affine(), peak=lambda size: (1 << 20) * (8 + size), bound=300 << 20, memory="host"
    ).measure(),
    "memory of the host that hardly grows": lambda: Bench(
        affine(), peak=lambda size: 1_000_000 + size, bound=1_000_500, memory="host"
    ).measure(),
    "memory that is mostly state": lambda: Bench(affine(), peak=lambda size: 6000 + 10 * size, bound=10_000).measure(
        min_batch_size=10
    ),
    "memory without a bound": lambda: Bench(affine(), peak=lambda size: 6000 + 10 * size).measure(max_batch_size=64),
    "several memories": lambda: TwoMemories(affine()).measure(),
    "out of memory beyond 100": lambda: Bench(affine(), raises=no_room(100)).measure(),
    "out of memory beyond 7": lambda: Bench(affine(), raises=no_room(7)).measure(multiple_of=2, min_batch_size=32),
    "raises for odd sizes": lambda: Bench(affine(), raises=raised_for(lambda size: size % 4)).measure(),
    "raises for one size": lambda: Bench(affine(), raises=raised_for(lambda size: size == 8)).measure(),
    "raises beyond 30": lambda: Bench(affine(), raises=raised_for(lambda size: size > 30)).measure(),
    "time runs out": lambda: Bench(affine()).measure(max_seconds=100.0),
    "time runs out at the first size": lambda: Bench(affine()).measure(max_seconds=3.0),
    "time runs out before the recommended size": lambda: Bench(affine()).measure(max_seconds=1112.0),
    "batches take time": lambda: with_make_seconds(Bench(affine()), 0.05).measure(max_seconds=300.0),
    "a new batch for each call": lambda: with_make_seconds(Bench(affine()), 0.05).measure(
        max_seconds=300.0, reuse_batch=False
    ),
    "microseconds": lambda: Bench(affine(2e-6, 1e8)).measure(min_calls=3),
}


def text_of(found):
    text = re.sub(r"(?m)^Measured .*\n", "", str(found))
    shares = [found.target, found.asymptotic_examples_per_s, found.seconds]
    lines = [text, repr([None if each is None else float(f"{each:.6g}") for each in shares])]
    lines += [
        f"{fit.memory}: {fit.base_bytes:.0f} + {fit.bytes_per_example:.6g}, misses {fit.residual_bytes:.0f}, "
        f"bound {fit.bound_bytes}, size {fit.max_batch_size}, {fit.source}"
        for fit in found.memory
    ]
    lines.append(
        " ".join(
            f"{probe.batch_size}:{probe.calls}:{probe.outcome[0]}"
            + ("" if probe.first_call_s is None else f":{probe.first_call_s:.4g}")
            for probe in found.evidence
        )
    )
    record = found.to_recommendation()
    lines.append(
        f"{record.min_batch_size} {record.optimal_batch_size} {record.critical_batch_size} "
        f"{record.max_memory_batch_size} {record.notes.partition('; confidence')[2] or record.notes[-60:]}"
    )
    return "\n".join(lines)


def test_recorded_measurements_are_found_again():
    check_recorded("batch_measurement", {name: text_of(measure()) for name, measure in CASES.items()})


@pytest.mark.parametrize(
    ("bench", "options", "error", "message"),
    [
        (
            Bench(affine(), raises=raised_for(lambda size: True)),
            {"max_batch_size": 4},
            RuntimeError,
            "raised for every batch size; expected one that works, got 1: ValueError: size 1; 2: ValueError: size 2; "
            "4: ValueError: size 4; if sizes must be divisible, as by a mesh axis of the 8 devices, pass multiple_of",
        ),
        (
            Bench(affine(), raises=no_room(0)),
            {},
            MemoryError,
            "not even the smallest batch fits; expected one that does, got 1: ResourceExhaustedError: size 1; free",
        ),
        (
            Bench(affine()),
            {"max_seconds": 0.0},
            RuntimeError,
            "no call could be timed on a batch of 1 before time ran out; expected max_seconds for make_batch (0 s here)",
        ),
        (
            Bench(affine()),
            {"multiple_of": 8, "min_batch_size": 9, "max_batch_size": 15},
            ValueError,
            "the range of batch sizes is empty; expected a multiple of multiple_of between min_batch_size and "
            "max_batch_size, got 8, 9 and 15; raise max_batch_size",
        ),
    ],
)
def test_searches_without_any_time_name_what_was_tried(bench, options, error, message):
    with pytest.raises(error) as caught:
        bench.measure(**options)
    assert message in str(caught.value)
