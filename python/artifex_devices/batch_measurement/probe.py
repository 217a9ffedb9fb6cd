# SPDX-License-Identifier: Apache-2.0
"""One probe: calls of the step on a batch of one size, with their time and memory."""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any, Literal

from artifex_devices._base.checks import failure
from artifex_devices._base.public_path import public
from artifex_devices._base.text import printable
from artifex_devices._placement.device_put import block_until_ready
from artifex_devices.batch_measurement.memory import MemoryMeter, MemoryUse
from artifex_devices.tree_util import tree_leaves

# Mistakes in the program. They do not depend on the size, and end the measurement unchanged.
_MISTAKES = (NameError, AttributeError, TypeError, ImportError, SyntaxError, NotImplementedError)
_MOST_CALLS = 200
# Results of functions that have not begun their work: their time cannot be measured.
_NOT_BEGUN = (GeneratorType, CoroutineType, AsyncGeneratorType, map, filter)


@public("artifex_devices.batch_measurement")
@dataclass(frozen=True)
class BatchProbe:
    """Measurements of one batch size.

    Attributes:
        batch_size: Number of examples in the batch.
        outcome: "measured"; "out of memory" or "raised" (see `error`); "out of time" if no call could be timed.
        calls: Number of timed calls, without warm-up.
        make_batch_s: Seconds to create the first batch; None if it was not created. Not part of the other times.
        first_call_s: Seconds of the first call on this size; None if it did not end.
        best_s: Seconds of the fastest timed call, the base of throughput and model: other programs on the machine only
            make calls slower.
        median_s: Median seconds of the timed calls; far from the best if the machine was busy or the step varies.
        spread: Distance of the quartiles as a share of the median (0.02: 2 %).
        memory: MemoryUse of batch and calls, by memory ("cpu:0", "host").
        error: Type and text of the exception.
    """

    batch_size: int
    outcome: Literal["measured", "out of memory", "raised", "out of time"]
    calls: int = 0
    make_batch_s: float | None = None
    first_call_s: float | None = None
    best_s: float | None = None
    median_s: float | None = None
    spread: float | None = None
    memory: Mapping[str, MemoryUse] = field(default_factory=dict)
    error: str | None = None

    @property
    def examples_per_s(self) -> float | None:
        """Examples per second by the fastest call."""
        return None if self.best_s is None else self.batch_size / self.best_s


def rate_of(probe: BatchProbe) -> float:
    """Returns the examples per second of a probe that has times."""
    assert probe.examples_per_s is not None
    return probe.examples_per_s


@dataclass(frozen=True)
class Prober:
    """Runs probes with the arguments of a measurement; `deadline` is a time of `clock`."""

    step_fn: Callable[[Any], Any]
    make_batch: Callable[[int], Any]
    clock: Callable[[], float]
    meter: MemoryMeter
    warmup_calls: int
    min_calls: int
    min_seconds: float
    reuse_batch: bool
    deadline: float

    def run(self, size: int) -> BatchProbe:
        """Probes a size; exceptions of the step are evidence, unless they are mistakes of the program."""
        times: list[float] = []
        made: list[float] = []
        outcome: Literal["measured", "out of memory", "raised"] = "measured"
        error: str | None = None
        self.meter.start()
        try:
            # A separate function: its frame and the Arrays in it are freed before memory is counted.
            self._call_often(size, made, times)
        except MemoryError as raised:  # ResourceExhaustedError is one
            outcome, error = "out of memory", _text_of(raised)
        except BaseException as raised:
            if isinstance(raised, _MISTAKES) or not isinstance(raised, Exception):
                self.meter.stop()
                raise
            outcome, error = "raised", _text_of(raised)
        if error is not None:
            gc.collect()  # cycles may hold objects of the exception's frames
        memory = self.meter.stop()
        to_make = made[0] if made else None
        first = times[0] if times else None
        timed = times[self.warmup_calls :]
        if error is not None or not timed:
            ended = "out of time" if error is None else outcome
            return BatchProbe(size, ended, 0, to_make, first, memory=memory, error=error)
        median = statistics.median(timed)
        spread = _middle_half(timed) / median
        return BatchProbe(size, outcome, len(timed), to_make, first, min(timed), median, spread, memory=memory)

    def _call_often(self, size: int, made: list[float], times: list[float]) -> None:
        """Appends the seconds of each creation of a batch and of each call, with the warm-up."""
        batch = self._batch(size, made)
        total = 0.0
        while True:
            began = self.clock()
            result = block_until_ready(self.step_fn(batch))
            now = self.clock()
            if isinstance(result, _NOT_BEGUN):
                if isinstance(result, CoroutineType):
                    result.close()  # prevents the warning about a coroutine that was never awaited
                raise failure(
                    TypeError,
                    "measure_batch_size",
                    "step_fn returned work that has not begun and cannot be timed",
                    expected="a result",
                    got=type(result).__name__,
                    fix="finish it in the step, for example by list(...) or asyncio.run(...)",
                )
            del result  # freed before the next call
            # A coarse clock must not yield zero, because seconds are a divisor.
            times.append(max(now - began, 1e-9))
            timed = len(times) - self.warmup_calls
            if timed > 0:
                total += times[-1]
                if timed >= self.min_calls and (total >= self.min_seconds or timed >= _MOST_CALLS):
                    return
            # Stops if another call is not expected to end in time.
            if now + times[-1] + (0.0 if self.reuse_batch else made[-1]) > self.deadline:
                return
            if not self.reuse_batch:
                del batch
                batch = self._batch(size, made)

    def _batch(self, size: int, made: list[float]) -> Any:
        began = self.clock()
        batch = block_until_ready(self.make_batch(size))
        made.append(self.clock() - began)
        leaves = tree_leaves(batch) if self.reuse_batch else []
        if iterators := [type(leaf).__name__ for leaf in leaves if isinstance(leaf, Iterator)]:
            raise failure(
                TypeError,
                "measure_batch_size",
                "make_batch returned an iterator, which the first call uses up",
                expected="a batch that all calls on its size can use",
                got=iterators[0],
                fix="return a list or an array, or pass reuse_batch=False",
            )
        return batch


def _middle_half(values: list[float]) -> float:
    """Returns the distance of the quartiles, of the extremes for fewer than 4 values."""
    if len(values) < 4:
        return max(values) - min(values)
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return high - low


def _text_of(error: BaseException) -> str:
    """Returns the type and the first line, with escaped control characters."""
    lines = str(error).splitlines()
    text = printable(lines[0][:200]) if lines else ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
