# SPDX-License-Identifier: Apache-2.0
"""BatchSizeMeasurement: the result of measure_batch_size and its text."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal

from artifex_devices._base.leaf_types import Record
from artifex_devices._base.public_path import public
from artifex_devices._base.text import bytes_text, seconds_text
from artifex_devices.batch_measurement.memory import HOST, MemoryFit
from artifex_devices.batch_measurement.probe import BatchProbe
from artifex_devices.batch_measurement.report import COLUMNS, DIGITS, row_of
from artifex_devices.batch_measurement.throughput import ThroughputModel

if TYPE_CHECKING:
    from artifex_devices._hardware.batch_size import BatchSizeRecommendation

_WIDTH = 100


@public("artifex_devices.batch_measurement")
@dataclass(frozen=True)
class BatchSizeMeasurement:
    """Batch sizes for a function, measured; print it for the table of evidence. Sizes in examples.

    Attributes:
        recommended_batch_size: Smallest batch that reaches the share `target` of the throughput of large batches.
            It is never larger than the largest measured batch.
        recommended_by: "model, probed" (the fit, confirmed by a probe), "model" (not probed), or "measured" (the best
            probe, see `notes`).
        recommended_range: Smallest and largest recommendation if any one probe is omitted; None for too few probes.
        critical_batch_size: Knee of the model: a batch whose work takes as long as the constant cost of a call. None
            if no knee was observed.
        max_memory_batch_size: Largest batch whose predicted peak stays within the bounds on memory, by the fits in
            `memory`. None if memory does not grow measurably or its bound is not known.
        fastest_batch_size: Batch with the best measured throughput, by the fastest call on each size.
        fastest_examples_per_s: Throughput of `fastest_batch_size`.
        asymptotic_examples_per_s: Throughput that large batches approach by the model; None without a model.
        target: Requested share of the throughput.
        model: Fit of time over batch size; None for fewer than 3 sizes, or if time did not grow.
        memory: Fits, one for each memory.
        evidence: Probes in the order in which they ran.
        confidence: "high", "medium" or "low".
        confidence_because: Reason for the confidence.
        notes: Observations, and the reason why the search ended.
        measured_at: Date and time in UTC, as ISO 8601.
        measured_on: Function, devices, machine and versions.
        seconds: Duration of the measurement.
    """

    recommended_batch_size: int
    recommended_by: Literal["model, probed", "model", "measured"]
    recommended_range: tuple[int, int] | None
    critical_batch_size: int | None
    max_memory_batch_size: int | None
    fastest_batch_size: int
    fastest_examples_per_s: float
    asymptotic_examples_per_s: float | None
    target: float
    model: ThroughputModel | None
    memory: tuple[MemoryFit, ...]
    evidence: tuple[BatchProbe, ...]
    confidence: Literal["high", "medium", "low"]
    confidence_because: str
    notes: tuple[str, ...]
    measured_at: str
    measured_on: Mapping[str, str | int] = field(default_factory=dict)
    seconds: float = 0.0

    def describe(self) -> str:
        """Returns the text that `print` shows: answer, evidence and notes."""
        return _text_of(self)

    __str__ = describe

    def to_dict(self) -> Record:
        """Returns all values for JSON, without infinities or NaN."""
        found: dict[str, Any] = json.loads(json.dumps(asdict(self)))  # tuples become lists
        for row, probe in zip(found["evidence"], self.evidence, strict=True):
            row["examples_per_s"] = probe.examples_per_s
        return found

    def to_recommendation(self) -> BatchSizeRecommendation:
        """Returns a record of the type that `get_batch_size_recommendation` returns.

        `min_batch_size` is the smallest batch with half the throughput by the model (without a model: the smallest that
        ran), `optimal_batch_size` the recommended one. Without a knee `critical_batch_size` is the recommended one too.
        The notes have the function, the machine and the date.
        """
        from artifex_devices._hardware.batch_size import BatchSizeRecommendation

        least = min(probe.batch_size for probe in self.evidence if probe.outcome == "measured")
        if self.model is not None:
            half = self.model.size_reaching(0.5 * self.model.examples_per_s)
            least = max(least, math.ceil(half * (1 - 1e-9)))
        recommended, critical = self.recommended_batch_size, self.critical_batch_size
        on = ", ".join(f"{name} {value}" for name, value in self.measured_on.items())
        notes = [f"Measured {self.measured_at} ({on}); confidence {self.confidence}: {self.confidence_because}."]
        if critical is None:
            critical = recommended
            notes.append("No knee was seen: critical_batch_size is the recommended one.")
        return BatchSizeRecommendation(
            min_batch_size=min(least, recommended),
            optimal_batch_size=recommended,
            critical_batch_size=critical,
            max_memory_batch_size=self.max_memory_batch_size,
            notes=" ".join([*notes, *self.notes]),
        )


def _text_of(found: BatchSizeMeasurement) -> str:
    """Returns answer, evidence and notes."""
    share = f"{found.target:.0%} of the throughput"
    by = {
        "model, probed": "by the fitted model, and a probe of it agrees",
        "model": "by the fitted model, not probed itself",
        "measured": "from the sizes that ran; see the notes",
    }[found.recommended_by]
    lines = [f"Recommended batch size {found.recommended_batch_size:,} ({share}; {by})"]
    if found.recommended_range is not None:
        low, high = found.recommended_range
        lines.append(f"  {low:,} to {high:,} when any one probe is left out")
    fastest = f"{found.fastest_batch_size:,}: {found.fastest_examples_per_s:,.0f} examples/s (measured)"
    lines.append(f"Fastest         {fastest}")
    model = found.model
    if model is not None and found.critical_batch_size is not None:
        least = seconds_text(max(model.fixed_s, model.floor_s), DIGITS)
        larger = f"larger ones approach {model.examples_per_s:,.0f} examples/s (model)"
        knee = f"{found.critical_batch_size:,}: smaller batches also cost {least} a call, {larger}"
        lines.append(f"Knee            {knee}")
    on = ", ".join(f"{name} {value}" for name, value in found.measured_on.items())
    lines += [
        _memory_text(found),
        f"Confidence      {found.confidence}: {found.confidence_because}",
        f"Measured        {found.measured_at} in {found.seconds:.1f} s; {on}",
        "",
    ]
    marks = {"recommended": found.recommended_batch_size, "fastest": found.fastest_batch_size}
    rows: list[tuple[str, ...]] = [COLUMNS]
    for probe in sorted(found.evidence, key=lambda each: each.batch_size):
        *cells, error = row_of(probe)
        rows.append((*cells, error or ", ".join(mark for mark, size in marks.items() if size == probe.batch_size)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [cell.rjust(width) for cell, width in zip(row[:-1], widths, strict=False)]
        lines.append("  ".join(["", *cells, row[-1]]).rstrip())
    sources = {name: use.source for probe in found.evidence for name, use in probe.memory.items()}
    notes = list(found.notes)
    if HOST in sources:
        notes.append(f"Host peak: {sources[HOST]}.")
    if devices := [name for name in sources if name != HOST]:
        notes.append(f"Device peak: {sources[devices[0]]}; of {len(devices)}, the highest.")
    lines.append("")
    for note in notes:
        lines += textwrap.wrap(note, _WIDTH, initial_indent="- ", subsequent_indent="  ", break_long_words=False)
    return "\n".join(lines)


def _memory_text(found: BatchSizeMeasurement) -> str:
    if found.max_memory_batch_size is None:
        return "Memory          no bound on the batch was found"
    largest = found.max_memory_batch_size
    ran = any(probe.batch_size == largest and probe.outcome == "measured" for probe in found.evidence)
    how = "fits (it ran)" if ran else "is predicted to fit (not tried)"
    text = f"Memory          {largest:,} is the largest batch that {how}"
    limiting = [(fit.max_batch_size, fit) for fit in found.memory if fit.max_batch_size is not None]
    if not limiting:
        return text
    _, fit = min(limiting, key=itemgetter(0))
    bound = "" if fit.bound_bytes is None else f", bound {bytes_text(fit.bound_bytes)}"
    base, each = bytes_text(max(0, round(fit.base_bytes))), bytes_text(round(fit.bytes_per_example))
    return f"{text}: {fit.memory} takes {base} + {each} an example{bound} (fit of the measured peaks)"
