# SPDX-License-Identifier: Apache-2.0
"""Steps with known times and memory on a clock of their own, for tests of measure_batch_size."""

from artifex_devices.batch_measurement import MemoryUse, measure_batch_size


class Bench:
    """A clock that only the step moves, and a memory that only batches fill."""

    def __init__(self, seconds, peak=None, bound=None, raises=None, memory="cpu:0"):
        self.seconds = seconds  # of a call: a function of (size, number of the call)
        self.peak = peak  # bytes: a function of the size
        self.bound = bound
        self.memory = memory
        self.raises = raises or (lambda size: None)
        self.make_seconds = 0.0  # of an example
        self.now = 0.0
        self.size = 0
        self.calls = 0
        self.made = []
        self.highest = 0

    def clock(self):
        return self.now

    def make_batch(self, size):
        self.size = size
        self.made.append(size)
        self.now += self.make_seconds * size
        if self.peak is not None:
            self.highest = max(self.highest, self.peak(size))
        return size

    def step(self, size):
        self.calls += 1
        error = self.raises(size)
        if error is not None:
            raise error
        self.now += self.seconds(size, self.calls)
        return size

    def start(self):
        self.size = 0

    def stop(self):
        if self.peak is None:
            return {}
        return {self.memory: MemoryUse(0, self.peak(self.size), 0, "synthetic")}

    def bounds(self):
        return {} if self.bound is None else {self.memory: self.bound}

    def measure(self, **options):
        options = {"progress": False, "max_seconds": 1e6, **options}
        return measure_batch_size(self.step, self.make_batch, _clock=self.clock, _meter=self, **options)


def sizes_of(found):
    return [probe.batch_size for probe in found.evidence]
