# SPDX-License-Identifier: Apache-2.0
"""One probe: a batch of one size is made, the step is called on it, time and memory are measured."""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any, Literal

from artifex_devices._base.public_path import public
from artifex_devices._placement.device_put import block_until_ready
from artifex_devices.batch_measurement.memory import MemoryMeter, MemoryUse
from artifex_devices.tree_util import tree_leaves

# Mistakes in the program and not a size that does not suit it: they end the measurement as they are.
_MISTAKES = (NameError, AttributeError, TypeError, ImportError, SyntaxError, NotImplementedError)
_MOST_CALLS = 200
# What a function returns that has not begun its work: its times would be those of nothing.
_NOT_BEGUN = (GeneratorType, CoroutineType, AsyncGeneratorType, map, filter)


@public("artifex_devices.batch_measurement")
@dataclass(frozen=True)
class BatchProbe:
    """The evidence of one batch size; all measured.

    Attributes:
        batch_size: Examples in the batch.
        outcome: "measured"; "out of memory" or "raised" (see `error`); "out of time" where no call could be timed.
        calls: How many calls were timed, those to warm up not counted.
        make_batch_s: Seconds to make the (first) batch; None if it was not made. In no other time.
        first_call_s: Seconds of the first call on this size, which warms up; None if it did not end.
        best_s: Seconds of the fastest timed call; throughput and model go by it, as whatever else the machine does can
            only make calls slower.
        median_s: Seconds of the middle one; far from the best where the machine was busy, or the step varies.
        spread: The half of the calls in the middle lies in this share of the median (0.02: 2 %).
        memory: By memory ("cpu:0", "host"), what batch and calls took at their peak.
        error: Type and text of what was raised.
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


@dataclass(frozen=True)
class Prober:
    """How probes are run; the same for all of a measurement.

    Attributes:
        step_fn: Takes a batch; what it returns is waited for.
        make_batch: Takes a number of examples.
        clock: Seconds.
        meter: Counts memory.
        warmup_calls: Calls before the timed ones.
        min_calls: Timed calls at least, unless time runs out.
        min_seconds: Timed seconds at least, up to 200 calls.
        reuse_batch: One batch for all calls, or a new one for each.
        deadline: When time runs out, by the clock.
    """

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
        """Probes a size; what the step raises is evidence, unless it is a mistake of the program."""
        times: list[float] = []
        outcome: Literal["measured", "out of memory", "raised"] = "measured"
        error: str | None = None
        made: list[float] = []
        self.meter.start()
        try:
            # Its frames, and the Arrays in them, are gone when it returns or its exception was dealt with.
            self._call_often(size, made, times)
        except MemoryError as raised:  # ResourceExhaustedError is one
            outcome, error = "out of memory", _text_of(raised)
        except BaseException as raised:
            if isinstance(raised, _MISTAKES) or not isinstance(raised, Exception):
                self.meter.stop()
                raise
            outcome, error = "raised", _text_of(raised)
        if error is not None:
            gc.collect()  # what the exception held may lie in cycles
        memory = self.meter.stop()
        to_make = made[0] if made else None
        first = times[0] if times else None
        timed = times[self.warmup_calls :]
        if error is not None:
            return BatchProbe(size, outcome, 0, to_make, first, memory=memory, error=error)
        if not timed:
            return BatchProbe(size, "out of time", 0, to_make, first, memory=memory)
        median = statistics.median(timed)
        spread = _middle_half(timed) / median
        return BatchProbe(size, outcome, len(timed), to_make, times[0], min(timed), median, spread, memory=memory)

    def _call_often(self, size: int, made: list[float], times: list[float]) -> None:
        """Appends the seconds to make each batch, and of each call, of those to warm up too."""
        batch = self._batch(size, made)
        total = 0.0
        while True:
            began = self.clock()
            result = block_until_ready(self.step_fn(batch))
            now = self.clock()
            if isinstance(result, _NOT_BEGUN):
                raise _not_begun(result)
            del result  # let go of before the next call
            # A clock too coarse for the step gives no zero to divide by.
            times.append(max(now - began, 1e-9))
            timed = len(times) - self.warmup_calls
            if timed > 0:
                total += times[-1]
                if timed >= self.min_calls and (total >= self.min_seconds or timed >= _MOST_CALLS):
                    return
            # At least one call is timed if the first two can be expected to end in time.
            if now + times[-1] + (0.0 if self.reuse_batch else made[-1]) > self.deadline:
                return
            if not self.reuse_batch:
                del batch
                batch = self._batch(size, made)

    def _batch(self, size: int, made: list[float]) -> Any:
        began = self.clock()
        batch = block_until_ready(self.make_batch(size))
        made.append(self.clock() - began)
        if self.reuse_batch:
            for leaf in tree_leaves(batch):
                if isinstance(leaf, Iterator):
                    raise TypeError(
                        "measure_batch_size: make_batch returned an iterator, which the first call uses up; expected a "
                        f"batch that all calls on its size can use, got {type(leaf).__name__}; return a list or an "
                        "array, or say reuse_batch=False"
                    )
        return batch


def _not_begun(result: Any) -> TypeError:
    if isinstance(result, CoroutineType):
        result.close()  # else Python warns that nobody awaited it
    return TypeError(
        "measure_batch_size: step_fn returned work that has not begun, so that there is nothing to time; expected a "
        f"result, got {type(result).__name__}; let it finish in the step, say by list(...) or asyncio.run(...)"
    )


def _middle_half(values: list[float]) -> float:
    """Between the quartiles; for fewer than 4 values between the extremes."""
    if len(values) < 4:
        return max(values) - min(values)
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return high - low


def _text_of(error: BaseException) -> str:
    """Type and first line, terminal codes spelt out; the object, which holds the frames of the step, is not kept."""
    lines = str(error).splitlines()
    text = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in lines[0][:200]) if lines else ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
