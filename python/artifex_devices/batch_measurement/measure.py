# SPDX-License-Identifier: Apache-2.0
"""`measure_batch_size`: arguments, and the course of a measurement."""

from __future__ import annotations

import datetime
import math
import platform
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from artifex_devices._base.safe_repr import shown
from artifex_devices._core import Machine
from artifex_devices._runtime.device_arguments import whole_number
from artifex_devices._runtime.devices import devices
from artifex_devices.batch_measurement.memory import MemoryMeter, ProcessMemory
from artifex_devices.batch_measurement.probe import BatchProbe, Prober
from artifex_devices.batch_measurement.report import progress_on
from artifex_devices.batch_measurement.result import BatchSizeMeasurement, conclude
from artifex_devices.batch_measurement.search import Search


def measure_batch_size(
    step_fn: Callable[[Any], Any],
    make_batch: Callable[[int], Any],
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
    """Measures which batch size suits a function on this machine: the knee of its throughput, and what memory allows.

    The function is called on batches that double from probe to probe, until the sizes show where throughput ends.
    Before a probe its peak memory is predicted from those before, and a batch that is predicted to pass the bound is
    not made. The model of a call is seconds = max(floor, fixed + batch / rate), fitted so that single wrong times
    change little.

    Args:
        step_fn: Called with a batch; what it returns (a tree of anything, arrays of JAX too) is waited for by
            `block_until_ready`. State that it changes stays changed: give it a copy of what must not be trained. Arrays
            that it neither returns nor waits for are not in the times.
        make_batch: Called with a number of examples; returns a batch of so many, no iterator if it is reused.
        target: Share of the throughput of large batches to reach, between 0 and 1.
        multiple_of: Batch sizes tried are multiples of it, say the size of the mesh's data axis.
        min_batch_size: The first size, rounded up to a multiple; None is `multiple_of`. It is run without a prediction.
        max_batch_size: The largest size.
        max_seconds: Seconds for the measurement, kept to about a call of the function. The first probe is always run.
        memory_fraction: Share of the free bytes that may be taken: of each device its limit less what is in use; of the
            host what the system, control groups and limits leave to this process.
        warmup_calls: Calls before the timed ones, on each size.
        min_calls: Timed calls on each size, unless time runs out.
        probe_seconds: Timed seconds on each size, at least; up to 200 calls.
        reuse_batch: One batch for all calls on a size. False: a new one each time, for steps that donate or change it.
        progress: Show the probes on standard error: a table with rich on a terminal, else lines.
        on_probe: Called with each BatchProbe as it ends; what it raises ends the measurement.

    Returns:
        A BatchSizeMeasurement; print it.

    Raises:
        ValueError: Numbers are out of range.
        TypeError: An argument is of a wrong type; the step returned a generator or coroutine, whose work has not begun;
            or the step itself raised it (as all that are mistakes of a program: NameError, AttributeError,
            ImportError).
        MemoryError: The smallest batch does not fit.
        RuntimeError: The function raised for all sizes tried; the text has what it said. A size that raises among
            others that work is evidence and no error.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> weights = np.ones((64, 64))
        >>> found = ad.measure_batch_size(
        ...     lambda batch: batch @ weights, lambda size: np.ones((size, 64)), max_seconds=1, progress=False
        ... )
        >>> found.recommended_batch_size <= max(probe.batch_size for probe in found.evidence)
        True
    """
    sizes = _check(
        callables={"step_fn": step_fn, "make_batch": make_batch},
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
    step = sizes["multiple_of"]
    smallest = -(-sizes["min_batch_size"] // step) * step
    if smallest > sizes["max_batch_size"]:
        raise ValueError(
            f"measure_batch_size: no batch size is allowed; expected a multiple of multiple_of between min_batch_size "
            f"and max_batch_size, got {step}, {sizes['min_batch_size']} and {sizes['max_batch_size']}; raise "
            "max_batch_size"
        )
    if on_probe is not None and not callable(on_probe):
        raise TypeError(
            f"measure_batch_size: on_probe is {shown(on_probe)} ({type(on_probe).__name__}); expected a function of "
            "one BatchProbe, or None; give the function itself"
        )
    meter = ProcessMemory(memory_fraction) if _meter is None else _meter
    began = _clock()
    prober = Prober(
        step_fn,
        make_batch,
        _clock,
        meter,
        sizes["warmup_calls"],
        sizes["min_calls"],
        probe_seconds,
        reuse_batch,
        began + max_seconds,
    )
    bar = progress_on(shown=progress)

    def report(probe: BatchProbe) -> None:
        bar.finished(probe)
        if on_probe is not None:
            on_probe(probe)

    search = Search(
        prober,
        meter,
        multiple_of=step,
        smallest=smallest,
        largest=sizes["max_batch_size"] // step * step,
        target=target,
        watch=bar.starting,
        report=report,
    )
    try:
        search.run()
    finally:
        bar.close()
    if not search.measured:
        raise _nothing_worked(search)
    return conclude(
        search,
        target=target,
        multiple_of=step,
        measured_at=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        measured_on=_conditions(step_fn),
        seconds=_clock() - began,
    )


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


def _nothing_worked(search: Search) -> Exception:
    """The error for a search without a single time."""
    probes = search.evidence
    last = probes[-1]
    if last.outcome == "out of time":
        return RuntimeError(
            f"measure_batch_size: no call could be timed on a batch of {last.batch_size} before time ran out; expected "
            f"max_seconds to hold make_batch ({last.make_batch_s or 0:.3g} s here) and two calls; give more or a "
            "smaller min_batch_size"
        )
    errors = "; ".join(f"{probe.batch_size}: {probe.error}" for probe in probes)
    if any(probe.outcome == "out of memory" for probe in probes):
        return MemoryError(
            f"measure_batch_size: not even the smallest batch fits; expected one that does, got {errors}; free memory, "
            "or give a smaller min_batch_size or multiple_of"
        )
    return RuntimeError(
        f"measure_batch_size: step_fn or make_batch raised for every batch size; expected one that works, got "
        f"{errors}; if sizes must be divisible, say by a mesh axis of the {len(devices())} devices, give multiple_of"
    )


def _check(
    *, callables: dict[str, Any], counts: dict[str, tuple[Any, int]], shares: dict[str, Any], durations: dict[str, Any]
) -> dict[str, int]:
    """The counts as ints; all that is wrong in one error."""
    for name, value in callables.items():
        if not callable(value):
            raise TypeError(
                f"measure_batch_size: {name} is {shown(value)} ({type(value).__name__}); expected a function of one "
                "argument; give the function itself, not its result"
            )
    whole = {name: whole_number("measure_batch_size", name, value) for name, (value, _) in counts.items()}
    for name, value in {**shares, **durations}.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TypeError(
                f"measure_batch_size: {name} is {shown(value)} ({type(value).__name__}); expected a number; give a "
                "float"
            )
    wrong = [
        f"{name} is {whole[name]}; expected {least} or more"
        for name, (_, least) in counts.items()
        if whole[name] < least
    ]
    wrong += [
        f"{name} is {value}; expected more than 0 and less than 1"
        for name, value in shares.items()
        if not 0 < value < 1
    ]
    wrong += [
        f"{name} is {value}; expected a finite number of seconds, 0 or more"
        for name, value in durations.items()
        if not (math.isfinite(value) and value >= 0)
    ]
    if wrong:
        raise ValueError(f"measure_batch_size: {'; '.join(wrong)}; give numbers in range")
    return whole
