# SPDX-License-Identifier: Apache-2.0
"""The choice of batch sizes to probe: doubling sizes up to the knee or a bound, then the recommended ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from artifex_devices.batch_measurement.memory import HOST, MemoryUse, predicted_peak
from artifex_devices.batch_measurement.probe import BatchProbe, Prober, rate_of
from artifex_devices.batch_measurement.throughput import ThroughputModel, fit_throughput

_FEWEST_SIZES = 6
# Sizes in a row that raise before the search gives up: at first, and once some have worked.
_FAILURES_AT_FIRST = 8
_FAILURES_LATER = 2
_REFINEMENTS = 3
# Smallest ratio of neighbouring sizes that justifies another probe.
_WORTH = 1.2
# Sizes up to this multiple of the size that reaches the target are measured, for the throughput of large batches.
_BEYOND = 4
_FALLS = 0.9
_RISES = 1.2


@dataclass
class Search:
    """State of a search; `run` probes until the answer is known or a bound is reached."""

    prober: Prober
    multiple_of: int
    smallest: int  # a multiple, as all sizes; the first one
    largest: int
    target: float
    watch: Callable[[int], None]  # called before each probe
    reports: list[Callable[[BatchProbe], None]]  # called after each probe
    evidence: list[BatchProbe] = field(default_factory=list)  # in the order in which the probes ran
    notes: list[str] = field(default_factory=list)  # observations, and the reason why the search ended
    too_large: int | None = None  # smallest size that ran out of memory
    bounds: dict[str, int] = field(default_factory=dict)  # allowed peak of the last probe, by memory
    stopped_by_memory: bool = False  # larger sizes were not tried because of their predicted memory
    _is_out_of_time: bool = False
    _fit: tuple[int, ThroughputModel | None] | None = None  # number of probes, and their fit

    @property
    def measured(self) -> list[BatchProbe]:
        """Probes with times, by ascending size."""
        return sorted((p for p in self.evidence if p.outcome == "measured"), key=lambda p: p.batch_size)

    @property
    def step_of_sizes(self) -> int:
        """Divisor of all batch sizes: `multiple_of`, or the divisor that the failed sizes suggest."""
        worked = [probe.batch_size for probe in self.measured]
        raised = [probe.batch_size for probe in self.evidence if probe.outcome == "raised"]
        common = math.gcd(*worked)
        is_suggested = raised and worked and all(size % common for size in raised)
        return common if is_suggested else self.multiple_of

    def run(self) -> None:
        """Probes growing sizes, then the recommended ones."""
        self._grow()
        for _ in range(_REFINEMENTS):
            size = self.wanted_size()
            if size is None or self._is_out_of_time or self._was_tried(size):
                return
            self.bounds = self.prober.meter.bounds()
            if (self.too_large is not None and size >= self.too_large) or self._overfull(size):
                return
            if not self._probe(size):
                return

    def model(self) -> ThroughputModel | None:
        """Returns the fit over the rising probes."""
        if self._fit is None or self._fit[0] != len(self.evidence):
            times = [(p.batch_size, p.best_s) for p in self.rising() if p.best_s is not None]
            self._fit = (len(self.evidence), fit_throughput(times))
        return self._fit[1]

    def rising(self) -> list[BatchProbe]:
        """Returns the measured probes up to the fastest one if throughput falls after it, otherwise all."""
        last = self.fastest().batch_size if self.falls() else math.inf
        return [probe for probe in self.measured if probe.batch_size <= last]

    def falls(self) -> bool:
        """Returns whether the largest size is clearly slower than the fastest."""
        probes = self.measured
        return bool(probes) and rate_of(probes[-1]) < _FALLS * rate_of(self.fastest())

    def fastest(self) -> BatchProbe:
        """Returns the probe with the best throughput."""
        return max(self.measured, key=rate_of)

    def reference(self) -> float | None:
        """Returns the throughput for the target: the model's, or the best measured one if throughput falls."""
        model = self.model()
        if model is None:
            return None
        return min(model.examples_per_s, rate_of(self.fastest())) if self.falls() else model.examples_per_s

    def model_size(self) -> float:
        """Returns the smallest batch that reaches the target by the model; math.inf without a model."""
        model, reference = self.model(), self.reference()
        return math.inf if model is None or reference is None else model.size_reaching(self.target * reference)

    def wanted_size(self) -> int | None:
        """Returns `model_size` rounded up to a valid size; None if it is larger than all measured ones."""
        size, probes = self.model_size(), self.measured
        if not probes or size > probes[-1].batch_size:
            return None
        return max(self.rounded_up(size), min(self.smallest, probes[0].batch_size))

    def _grow(self) -> None:
        following: int | None = self.smallest
        failures = 0
        while following is not None:
            size = following
            if self.evidence:
                possible = self._within_memory(size)
                if possible is None or self._was_tried(possible):
                    return
                size = possible
            if not self._probe(size):
                return
            outcome = self.evidence[-1].outcome
            if outcome != "out of memory":
                failures = failures + 1 if outcome == "raised" else 0
                if failures >= (_FAILURES_LATER if self.measured else _FAILURES_AT_FIRST):
                    self.notes.append(f"Not tried beyond {size}: the step raised for {failures} sizes in a row.")
                    return
                if self._is_enough():
                    return
            following = self._following(size)

    def _largest_measured(self) -> int:
        return max((probe.batch_size for probe in self.measured), default=0)

    def _was_tried(self, size: int) -> bool:
        return any(probe.batch_size == size for probe in self.evidence)

    def _following(self, size: int) -> int | None:
        """Returns the next larger size, or None at the end of the range."""
        if self.too_large is not None:
            return self._below_failure()
        following = min(2 * size, self.largest // self.step_of_sizes * self.step_of_sizes)
        if following <= size:
            self.notes.append(f"Not tried beyond {size}: larger batches were not allowed (max_batch_size).")
            return None
        return following

    def _below_failure(self) -> int | None:
        """Returns the middle between the largest size that ran and `too_large`; None if they are close."""
        assert self.too_large is not None
        low, step = self._largest_measured(), self.step_of_sizes
        size = (low + self.too_large) // 2 // step * step
        if size <= low * _WORTH or size < step or size >= self.too_large:
            self.stopped_by_memory = True
            return None
        return size

    def _is_enough(self) -> bool:
        """Returns whether the probes show that throughput no longer grows."""
        probes = self.measured
        if len(probes) < _FEWEST_SIZES:
            return False
        if self.falls():
            # After a drop, throughput may rise again above the earlier best.
            is_behind = all(rate_of(probe) < _FALLS * rate_of(self.fastest()) for probe in probes[-2:])
            return is_behind and rate_of(probes[-1]) < _RISES * rate_of(probes[-2])
        return probes[-1].batch_size >= _BEYOND * self.model_size()

    def _within_memory(self, size: int) -> int | None:
        """Returns the size, or the largest smaller size, whose predicted peak fits, or None to stop."""
        self.bounds = self.prober.meter.bounds()
        low, step = self._largest_measured(), self.step_of_sizes
        if not self._overfull(size):
            return size
        # Predictions grow with the size.
        possible = step * largest_true(
            lambda multiple: not self._overfull(multiple * step), low // step, -(-size // step)
        )
        names = ", ".join(self._overfull(size))
        if possible < max(low * _WORTH, self.smallest):
            self.stopped_by_memory = True
            self.notes.append(
                f"Stopped at {low}: a batch of {size} was predicted to exceed the bound on the memory of {names}; it "
                "was not tried."
            )
            return None
        return possible

    def _overfull(self, size: int) -> list[str]:
        """Returns the memories whose bound the size is predicted to exceed."""
        return [
            memory
            for memory, bound in self.bounds.items()
            if (uses := self.uses_of(memory)) and predicted_peak(uses, size, is_host=memory == HOST) > bound
        ]

    def uses_of(self, memory: str) -> list[tuple[int, MemoryUse]]:
        """Returns (size, use) of probes with this peak, ascending; repeats are omitted because caches fill once."""
        found: list[tuple[int, MemoryUse]] = []
        for probe in self.evidence:
            use = probe.memory.get(memory)
            if probe.outcome not in ("measured", "out of time") or use is None or use.peak is None:
                continue
            if not found or probe.batch_size > found[-1][0]:
                found.append((probe.batch_size, use))
        return found

    def _probe(self, size: int) -> bool:
        """Probes a size; returns False if time runs out before or after."""
        if self._expected_end(size) > self.prober.deadline:
            self.notes.append(f"Not tried: {size}, because the remaining time is too short.")
            self._is_out_of_time = True
            return False
        self.bounds = self.prober.meter.bounds()
        self.watch(size)
        probe = self.prober.run(size)
        self.evidence.append(probe)
        for report in self.reports:
            report(probe)
        if probe.outcome == "out of memory":
            self.too_large = min(size, self.too_large or size)
            self.notes.append(f"A batch of {size} ran out of memory; larger ones were not tried.")
        if probe.outcome == "out of time" or self.prober.clock() >= self.prober.deadline:
            self.notes.append(f"Time ran out at batch size {size}.")
            self._is_out_of_time = True
            return False
        return True

    def _expected_end(self, size: int) -> float:
        """Returns the expected end of two calls on that size; -inf for the first probe, which always runs."""
        now = self.prober.clock()
        probes = self.measured
        if not probes:
            return -math.inf if not self.evidence else now
        last = probes[-1]
        assert last.median_s is not None
        model = self.model()
        ratio = max(1.0, size / last.batch_size)
        call = last.median_s * ratio if model is None else model.seconds(size)
        to_make = (last.make_batch_s or 0.0) * ratio
        return now + 2 * call + to_make

    def rounded_up(self, size: float) -> int:
        """Returns the next valid size."""
        step = self.step_of_sizes
        # Rounding errors of the fit must not lead to the next multiple.
        return max(1, math.ceil(size / step * (1 - 1e-9))) * step


def largest_true(holds: Callable[[int], bool], low: int, beyond: int) -> int:
    """Finds by bisection the largest number in `range(low, beyond)` that satisfies a condition."""
    while beyond - low > 1:
        middle = (low + beyond) // 2
        low, beyond = (middle, beyond) if holds(middle) else (low, middle)
    return low
