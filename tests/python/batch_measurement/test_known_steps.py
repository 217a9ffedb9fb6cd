# SPDX-License-Identifier: Apache-2.0
"""What measure_batch_size finds for steps with known times and memory."""

import math

import artifex_devices as ad
import pytest
from artifex_devices.batch_measurement import MemoryUse
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


# recommended size, how it was chosen, confidence, fastest size, knee, largest size that fits in memory, probes
EXPECTED = {
    "affine": (144, "model, probed", "high", 1024, 16, None, 12),
    "affine, from 24 to 500, multiples of 8": (144, "model, probed", "high", 504, 16, None, 7),
    "affine, too small a range": (100, "measured", "low", 100, 16, None, 8),
    "affine, two sizes": (2, "measured", "low", 2, None, None, 2),
    "affine, three sizes": (4, "measured", "low", 4, 16, None, 3),
    "affine, five sizes": (4, "measured", "medium", 16, 16, None, 6),
    "a floor": (90, "model, probed", "high", 128, 100, None, 11),
    "a floor above fixed seconds": (200, "model, probed", "high", 1024, 150, None, 12),
    "linear": (4, "model, probed", "high", 4, 1, None, 6),
    "constant": (1000, "measured", "low", 1000, None, None, 11),
    "blocks of 64": (576, "model, probed", "high", 4096, 128, None, 14),
    "falls beyond 64": (42, "model, probed", "high", 64, 16, None, 10),
    "falls and rises again": (144, "model, probed", "low", 1024, 16, None, 12),
    "falls slowly": (32, "model, probed", "high", 128, 10, None, 11),
    "noisy": (288, "model, probed", "medium", 2048, 32, None, 13),
    "noisy, few calls": (288, "model, probed", "medium", 512, 32, None, 13),
    "very noisy": (288, "model, probed", "low", 2048, 32, None, 13),
    "jumps": (42, "model, probed", "low", 64, 16, None, 10),
    "one size is slow": (144, "model, probed", "high", 1024, 16, None, 12),
    "memory of a device": (144, "model, probed", "medium", 194, 16, 194, 10),
    "memory of a device, multiples of 16": (192, "measured", "low", 192, 160, 192, 5),
    "memory with the square": (128, "measured", "low", 128, 16, 128, 8),
    "memory with the square of the host": (144, "model, probed", "medium", 223, 16, 223, 10),
    "memory of the host": (144, "model, probed", "medium", 256, 16, 292, 10),
    "memory of the host that hardly grows": (1, "measured", "low", 1, None, 1, 1),
    "memory that is mostly state": (144, "model, probed", "high", 400, 16, 400, 8),
    "memory without a bound": (64, "measured", "low", 64, 16, None, 7),
    "several memories": (144, "model, probed", "high", 512, 16, 560, 11),
    "out of memory beyond 100": (96, "measured", "low", 96, 16, 96, 9),
    "out of memory beyond 7": (6, "measured", "low", 6, None, 6, 5),
    "raises for odd sizes": (144, "model, probed", "high", 1024, 16, None, 12),
    "raises for one size": (144, "model, probed", "high", 1024, 16, None, 12),
    "raises beyond 30": (16, "measured", "low", 16, 16, None, 7),
    "time runs out": (64, "measured", "low", 64, 16, None, 7),
    "time runs out at the first size": (1, "measured", "low", 1, None, None, 1),
    "time runs out before the recommended size": (144, "model, probed", "high", 1024, 16, None, 12),
    "batches take time": (144, "model", "medium", 256, 16, None, 9),
    "a new batch for each call": (144, "model", "medium", 256, 16, None, 9),
    "microseconds": (1800, "model, probed", "high", 8192, 200, None, 15),
}


def facts(found):
    return (
        *(found.recommended_batch_size, found.recommended_by, found.confidence),
        *(found.fastest_batch_size, found.critical_batch_size, found.max_memory_batch_size, len(found.evidence)),
    )


@pytest.mark.parametrize("name", CASES)
def test_sizes_that_are_found_are_exact(name):
    assert facts(CASES[name]()) == EXPECTED[name]


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
            "no call could be timed on a batch of 1 before time ran out; expected max_seconds for make_batch "
            "(0 s here)",
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
