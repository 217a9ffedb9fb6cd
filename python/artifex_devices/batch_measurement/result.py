# SPDX-License-Identifier: Apache-2.0
"""Computes a BatchSizeMeasurement from the evidence of a search."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Literal

from artifex_devices.batch_measurement.measurement import BatchSizeMeasurement
from artifex_devices.batch_measurement.memory import HOST, MemoryFit, MemoryUse, fit_memory, predicted_peak
from artifex_devices.batch_measurement.probe import BatchProbe, rate_of
from artifex_devices.batch_measurement.search import Search, largest_true
from artifex_devices.batch_measurement.throughput import fit_throughput

_By = Literal["model, probed", "model", "measured"]
# Precision of resident memory.
_HOST_ERROR_BYTES = 4 << 20
# Tolerance of a probe against the model's share, in addition to its spread.
_TOLERANCE = 0.03
_AFFINE = 0.05
_CLEARLY = 1.2
# Plausible times of neighbouring sizes: less than ten times as long, and not clearly shorter for the larger one.
_JUMP = 10.0
_FALL = 0.9


def conclude(search: Search, *, measured_on: Mapping[str, str | int], seconds: float) -> BatchSizeMeasurement:
    """Returns the measurement for the evidence of a search, in which at least one probe has times."""
    notes, step, model = list(search.notes), search.step_of_sizes, search.model()
    if step != search.multiple_of:
        saved = f"multiple_of={step} saves these probes"
        notes.append(f"The step raised for sizes that are not multiples of {step}; {saved}.")
    recommended, by = _recommended(search, notes)
    fits, largest = _memory_bound(search, step, notes)
    interval = None if by == "measured" else _range_of(search)
    word, because = _confidence(search, recommended, by, interval)
    fastest = search.fastest()
    return BatchSizeMeasurement(
        recommended_batch_size=recommended,
        recommended_by=by,
        recommended_range=interval,
        critical_batch_size=None if model is None else max(1, round(model.critical)),
        max_memory_batch_size=largest,
        fastest_batch_size=fastest.batch_size,
        fastest_examples_per_s=rate_of(fastest),
        asymptotic_examples_per_s=None if model is None else model.examples_per_s,
        target=search.target,
        model=model,
        memory=tuple(fits),
        evidence=tuple(search.evidence),
        confidence=word,
        confidence_because=because,
        notes=tuple(notes),
        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
        measured_on=measured_on,
        seconds=seconds,
    )


def _recommended(search: Search, notes: list[str]) -> tuple[int, _By]:
    target, fastest, reference = search.target, search.fastest(), search.reference()
    if search.falls():
        notes.append(
            f"Throughput falls beyond a batch of {fastest.batch_size}: larger batches take longer per example."
        )
    if reference is None:
        few = "Fewer than 3 sizes up to the fastest: no model, the fastest that ran is recommended."
        flat = "Time did not grow with the batch: the fastest size that ran is recommended, no knee was seen."
        notes.append(few if len(search.rising()) < 3 else flat)
        return fastest.batch_size, "measured"
    wanted = search.wanted_size()
    if wanted is None:
        size = search.model_size()
        where = "at no size" if math.isinf(size) else f"at a batch of {math.ceil(size):,}"
        notes.append(f"The model reaches {target:.0%} {where}, beyond what ran: the fastest that ran is recommended.")
        return fastest.batch_size, "measured"
    # A clearly smaller measured size takes precedence over the model.
    attainable = target * min(reference, rate_of(fastest))
    reaching = [probe for probe in search.measured if rate_of(probe) >= attainable]
    smaller = [probe.batch_size for probe in reaching if probe.batch_size * _CLEARLY <= wanted]
    if smaller:
        notes.append(f"The model reaches {target:.0%} at a batch of {wanted}, the measured {smaller[0]} does already.")
        return smaller[0], "measured"
    tried = {probe.batch_size: probe for probe in search.evidence}
    if wanted not in tried or tried[wanted].outcome == "out of time":
        return wanted, "model"
    probe = tried[wanted]
    allowed = _TOLERANCE + min(probe.spread or 0.0, 0.1)
    if probe.outcome == "measured" and rate_of(probe) >= (target - allowed) * reference:
        return wanted, "model, probed"
    notes.append(
        f"The model reaches {target:.0%} at a batch of {wanted}, a probe of it did not: {reaching[0].batch_size} is "
        f"the smallest with {target:.0%} of what was measured."
    )
    return reaching[0].batch_size, "measured"


def _memory_bound(search: Search, step: int, notes: list[str]) -> tuple[list[MemoryFit], int | None]:
    """Returns the fits, and the largest size that all of them allow."""
    names = sorted({name for probe in search.evidence for name in probe.memory}, key=lambda name: (name == HOST, name))
    fits, sizes = [], []
    for name in names:
        uses, is_host = search.uses_of(name), name == HOST
        peaks = [(size, use.peak) for size, use in uses if use.peak is not None]
        if not peaks:
            notes.append(f"The peaks of {name} were not observed: it sets no bound.")
            continue
        growth = max(peak for _, peak in peaks) - min(peak for _, peak in peaks)
        error = _HOST_ERROR_BYTES if is_host else 0
        bound = search.bounds.get(name) if growth >= error else None
        fit = fit_memory(name, peaks, bound, step, uses[0][1].source)
        if fit is None:
            continue
        fits.append(fit)
        size = fit.max_batch_size
        if bound is None or size is None:
            continue
        if fit.residual_bytes > max(_AFFINE * growth, error):
            # Not affine: uses the cautious prediction of the search.
            fitting = partial(_fits, uses, is_host, bound, step)
            size = step * largest_true(fitting, 0, size // step + 1)
            notes.append(f"The memory of {name} does not grow evenly with the batch: its bound is a cautious one.")
        sizes.append(size)
    ran = search.measured[-1].batch_size
    if search.too_large is not None:
        notes.append(f"max_memory_batch_size is the largest batch that ran, as one of {search.too_large} did not fit.")
        return fits, ran
    if not sizes:
        return fits, ran if search.stopped_by_memory else None
    return fits, max(min(sizes), ran)


def _fits(uses: Sequence[tuple[int, MemoryUse]], is_host: bool, bound: int, step: int, multiple: int) -> bool:
    return predicted_peak(uses, multiple * step, is_host=is_host) <= bound


def _range_of(search: Search) -> tuple[int, int] | None:
    """Returns the range of recommendations if any one probe is omitted."""
    probes = search.rising()
    if len(probes) < 5 or search.model() is None:
        return None
    sizes = []
    for left_out in probes:
        rest = [(p.batch_size, p.best_s) for p in probes if p is not left_out and p.best_s is not None]
        model, reference = fit_throughput(rest), search.reference()
        if model is None or reference is None:
            return None
        sizes.append(model.size_reaching(search.target * min(reference, model.examples_per_s)))
    if math.inf in sizes:
        return None
    return search.rounded_up(min(sizes)), search.rounded_up(max(sizes))


def _implausible_times(probes: Sequence[BatchProbe]) -> str:
    """Returns a text about the first implausible pair of neighbouring sizes, or ""."""
    for smaller, larger in itertools.pairwise(probes):
        least = max(_JUMP, 2 * larger.batch_size / smaller.batch_size)
        for kind in ("best", "median"):
            before, after = getattr(smaller, f"{kind}_s"), getattr(larger, f"{kind}_s")
            if after > least * before or (kind == "best" and after < _FALL * before):
                times = f"{after / before:.3g} times that of {smaller.batch_size}"
                return f"the {kind} time of {larger.batch_size} is {times}"
    return ""


def _confidence(
    search: Search, recommended: int, by: _By, interval: tuple[int, int] | None
) -> tuple[Literal["high", "medium", "low"], str]:
    probes, model = search.measured, search.model()
    spread = statistics.median([probe.spread for probe in probes if probe.spread is not None])
    count = f"{len(probes)} size{'' if len(probes) == 1 else 's'} measured"
    implausible = _implausible_times(probes)
    if implausible:
        return "low", f"{count}; {implausible}: other programs or BLAS threads may have interfered"
    said = f"{count}, half of the calls on a size within {spread:.1%} of their median"
    if model is None:
        return "low", f"{said}, no model"
    reach = probes[-1].batch_size / recommended
    said += (
        f"; the model misses the best times by {model.residual:.1%} (at most {model.worst_residual:.1%}); "
        f"the largest batch was {reach:.1f} times the recommended"
    )
    width = math.inf if interval is None else interval[1] / interval[0] - 1
    if by == "measured":
        is_sure = spread <= 0.1 and reach >= 2
        return "medium" if is_sure else "low", f"{said}; the model's own size was not taken"
    if spread <= 0.05 and model.residual <= 0.05 and reach >= 2 and width <= 0.4 and by == "model, probed":
        return "high", said
    if spread <= 0.15 and model.residual <= 0.15 and width <= 1.5:
        return "medium", said
    return "low", said
