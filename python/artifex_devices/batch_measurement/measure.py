# SPDX-License-Identifier: Apache-2.0
"""`measure_batch_size`: arguments, and the course of a measurement."""

from __future__ import annotations

import math
import platform
import time
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from artifex_devices._base.checks import check_callable, check_number, failure
from artifex_devices._core import Machine
from artifex_devices._runtime.device_arguments import whole_number
from artifex_devices._runtime.devices import devices
from artifex_devices.batch_measurement.measurement import BatchSizeMeasurement
from artifex_devices.batch_measurement.memory import MemoryMeter, ProcessMemory
from artifex_devices.batch_measurement.probe import BatchProbe, Prober
from artifex_devices.batch_measurement.report import progress_on
from artifex_devices.batch_measurement.result import conclude
from artifex_devices.batch_measurement.search import Search

Batch = TypeVar("Batch")


def measure_batch_size(
    step_fn: Callable[[Batch], object],
    make_batch: Callable[[int], Batch],
    *,
    target: float = 0.9,
    multiple_of: int = 1,
    min_batch_size: int | None = None,
    max_batch_size: int = 1 << 20,
    max_seconds: float = 30.0,
    memory_fraction: float = 0.9,
    warmup_calls: int = 1,
    min_calls: int = 5,
    probe_seconds: float = 0.1,
    reuse_batch: bool = True,
    progress: bool = True,
    on_probe: Callable[[BatchProbe], None] | None = None,
    _clock: Callable[[], float] = time.perf_counter,
    _meter: MemoryMeter | None = None,
) -> BatchSizeMeasurement:
    """Measures the batch size that suits a function on this machine: its throughput knee and its memory bound.

    The function is called on batches that double from probe to probe, until throughput no longer grows. The peak memory
    of each probe is predicted from earlier probes; a batch that is predicted to exceed the bound is not created. The
    model of a call is seconds = max(floor, fixed + batch / rate). The fit is robust against single wrong times.

    Args:
        step_fn: Function of a batch. `block_until_ready` waits for its result (a tree, also of JAX arrays). Its side
            effects stay: pass a copy of parameters that must not be trained. Work on arrays that it neither returns nor
            waits for is not timed.
        make_batch: Function of a number of examples that returns a batch; not an iterator if it is reused.
        target: Share of the throughput of large batches to reach, between 0 and 1.
        multiple_of: Divisor of all batch sizes, for example the size of the mesh's data axis.
        min_batch_size: First size, rounded up to a multiple, by default `multiple_of`. It runs without a prediction.
        max_batch_size: Largest size.
        max_seconds: Seconds for the measurement, exceeded by at most about one call. The first probe always runs.
        memory_fraction: Share of the free bytes that probes may take: of each device its limit minus the bytes in use;
            of the host the memory that the system, control groups and limits leave to this process.
        warmup_calls: Calls on each size before the timed ones.
        min_calls: Timed calls on each size, unless time runs out.
        probe_seconds: Minimum of timed seconds on each size, for up to 200 calls.
        reuse_batch: Whether all calls on a size share one batch; False for steps that donate or change their batch.
        progress: Whether to show the probes on standard error: a table with rich on a terminal, otherwise lines.
        on_probe: Function of each finished BatchProbe; an exception of it ends the measurement.

    Returns:
        A BatchSizeMeasurement; print it.

    Raises:
        ValueError: A number is out of range.
        TypeError: An argument has a wrong type, or the step returned a generator or coroutine, whose work has not
            begun. A TypeError, NameError, AttributeError or ImportError of the step itself also ends the measurement.
        MemoryError: The smallest batch does not fit.
        RuntimeError: The function raised for all sizes; the message has its errors. An error for some of the sizes is
            evidence and does not end the measurement.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> weights = np.ones((64, 64))
        >>> found = ad.measure_batch_size(
        ...     lambda batch: batch @ weights, lambda size: np.ones((size, 64)), max_seconds=1, progress=False
        ... )
        >>> found.recommended_batch_size <= max(probe.batch_size for probe in found.evidence)
        True
    """
    check_callable("measure_batch_size", "step_fn", step_fn, "a function of one argument")
    check_callable("measure_batch_size", "make_batch", make_batch, "a function of one argument")
    if on_probe is not None:
        check_callable("measure_batch_size", "on_probe", on_probe, "a function of one BatchProbe, or None")
    step, least, largest, warmup_calls, min_calls = _check(
        counts={
            "multiple_of": (multiple_of, 1),
            "min_batch_size": (multiple_of if min_batch_size is None else min_batch_size, 1),
            "max_batch_size": (max_batch_size, 1),
            "warmup_calls": (warmup_calls, 0),
            "min_calls": (min_calls, 1),
        },
        shares={"target": target, "memory_fraction": memory_fraction},
        durations={"max_seconds": max_seconds, "probe_seconds": probe_seconds},
    )
    smallest = -(-least // step) * step
    if smallest > largest:
        raise failure(
            ValueError,
            "measure_batch_size",
            "the range of batch sizes is empty",
            expected="a multiple of multiple_of between min_batch_size and max_batch_size",
            got=f"{step}, {least} and {largest}",
            fix="raise max_batch_size",
        )
    meter = ProcessMemory(memory_fraction) if _meter is None else _meter
    began = _clock()
    deadline = began + max_seconds
    prober = Prober(step_fn, make_batch, _clock, meter, warmup_calls, min_calls, probe_seconds, reuse_batch, deadline)
    bar = progress_on(shown=progress)
    reports: list[Callable[[BatchProbe], None]] = [bar.finished] if on_probe is None else [bar.finished, on_probe]
    search = Search(prober, step, smallest, largest // step * step, target, bar.starting, reports)
    try:
        search.run()
    finally:
        bar.close()
    if not search.measured:
        raise _nothing_worked(search.evidence)
    return conclude(search, measured_on=_conditions(step_fn), seconds=_clock() - began)


def _conditions(step_fn: Callable[[Any], Any]) -> dict[str, str | int]:
    found = devices()
    name = getattr(step_fn, "__qualname__", type(step_fn).__name__)
    return {
        "function": f"{getattr(step_fn, '__module__', '?')}.{name}",
        "devices": f"{len(found)} x {found[0].device_kind or found[0].platform}",
        "usable CPUs": Machine.live().usable_cpus,
        "machine": platform.machine(),
        "Python": platform.python_version(),
        "NumPy": np.__version__,
    }


def _nothing_worked(probes: list[BatchProbe]) -> Exception:
    """Returns the error for a search without any time."""
    last = probes[-1]
    if last.outcome == "out of time":
        return failure(
            RuntimeError,
            "measure_batch_size",
            f"no call could be timed on a batch of {last.batch_size} before time ran out",
            expected=f"max_seconds for make_batch ({last.make_batch_s or 0:.3g} s here) and two calls",
            fix="increase max_seconds or reduce min_batch_size",
        )
    errors = "; ".join(f"{probe.batch_size}: {probe.error}" for probe in probes)
    if any(probe.outcome == "out of memory" for probe in probes):
        return failure(
            MemoryError,
            "measure_batch_size",
            "not even the smallest batch fits",
            expected="one that does",
            got=errors,
            fix="free memory, or reduce min_batch_size or multiple_of",
        )
    return failure(
        RuntimeError,
        "measure_batch_size",
        "step_fn or make_batch raised for every batch size",
        expected="one that works",
        got=errors,
        fix=f"if sizes must be divisible, as by a mesh axis of the {len(devices())} devices, pass multiple_of",
    )


def _check(counts: dict[str, tuple[Any, int]], shares: dict[str, Any], durations: dict[str, Any]) -> list[int]:
    """Returns the counts as ints; reports all wrong values in one error."""
    numbers = {name: whole_number("measure_batch_size", name, value) for name, (value, _) in counts.items()}
    for name, value in {**shares, **durations}.items():
        check_number("measure_batch_size", name, value, "write a float")
    wrong = [(name, numbers[name], f"{least} or more") for name, (_, least) in counts.items() if numbers[name] < least]
    wrong += [(name, share, "more than 0 and less than 1") for name, share in shares.items() if not 0 < share < 1]
    finite = "a finite number of seconds, 0 or more"
    wrong += [(name, seconds, finite) for name, seconds in durations.items() if not 0 <= seconds < math.inf]
    if wrong:
        listed = "; ".join(f"{name} is {value}; expected {expected}" for name, value, expected in wrong)
        raise ValueError(f"measure_batch_size: {listed}; correct the numbers")
    return list(numbers.values())
