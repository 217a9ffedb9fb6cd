# SPDX-License-Identifier: Apache-2.0
"""What a measurement of batch sizes found, with its evidence."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from artifex_devices._base.public_path import public
from artifex_devices.batch_measurement.memory import MemoryFit
from artifex_devices.batch_measurement.probe import BatchProbe
from artifex_devices.batch_measurement.throughput import ThroughputModel

if TYPE_CHECKING:
    from artifex_devices._hardware.batch_size import BatchSizeRecommendation


@public("artifex_devices.batch_measurement")
@dataclass(frozen=True)
class BatchSizeMeasurement:
    """Batch sizes for a function, measured; print it for the table of evidence. Sizes in examples.

    Attributes:
        recommended_batch_size: The smallest batch that reaches the share `target` of the throughput of large batches.
            It never is larger than what ran.
        recommended_by: "model, probed" (the fit, confirmed by a probe), "model" (not probed itself), "measured"
            (the best answer among the probes, see `notes`).
        recommended_range: Its smallest and largest value when any one probe is left out; None for too few probes.
        critical_batch_size: The knee, by the model: a batch whose own work takes as long as what each call costs
            anyway. None where no knee was seen.
        max_memory_batch_size: The largest batch whose predicted peak stays within the bounds on memory; by the fits in
            `memory`, not tried. None where memory does not grow measurably, or its bound is not known.
        fastest_batch_size: The batch with the best measured throughput, by the fastest call on each size.
        fastest_examples_per_s: That throughput, measured.
        asymptotic_examples_per_s: The throughput that large batches come near to, by the model; None without one.
        target: The share of the throughput that was asked for.
        model: The fit of time over batch size; None for fewer than 3 sizes, or where time did not grow.
        memory: The fit of each memory.
        evidence: The probes in the order in which they ran.
        confidence: "high", "medium" or "low".
        confidence_because: What the word rests on.
        notes: What stopped the search, and what else was seen.
        measured_at: Date and time, UTC, ISO 8601.
        measured_on: Function, devices, machine and versions.
        seconds: How long the measurement took.
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

    def __str__(self) -> str:
        """Answer, evidence and notes as text."""
        return self.describe()

    def describe(self) -> str:
        """The same text as `print` shows."""
        from artifex_devices.batch_measurement.report import text_of

        return text_of(self)

    def to_dict(self) -> dict[str, Any]:
        """All of it for JSON: numbers, text, lists and dicts; no infinities or NaN."""
        found = asdict(self)
        found["measured_on"] = dict(self.measured_on)
        found["notes"] = list(self.notes)
        found["recommended_range"] = None if self.recommended_range is None else list(self.recommended_range)
        found["memory"] = [asdict(fit) for fit in self.memory]
        found["evidence"] = [
            {
                **{name: value for name, value in asdict(probe).items() if name != "memory"},
                "examples_per_s": probe.examples_per_s,
                "memory": {name: asdict(use) for name, use in probe.memory.items()},
            }
            for probe in self.evidence
        ]
        return found

    def to_recommendation(self) -> BatchSizeRecommendation:
        """As the record that `get_batch_size_recommendation` returns.

        `min_batch_size` is the smallest batch with half the throughput by the model (without one: the smallest that
        ran), `optimal_batch_size` the recommended one. Without a knee `critical_batch_size` is the recommended one too.
        The notes say what was measured, when and on what.
        """
        from artifex_devices._hardware.batch_size import BatchSizeRecommendation

        measured = [probe.batch_size for probe in self.evidence if probe.outcome == "measured"]
        least = min(measured)
        if self.model is not None:
            half = self.model.size_reaching(0.5 * self.model.examples_per_s)
            least = max(least, math.ceil(half * (1 - 1e-9)))
        recommended = self.recommended_batch_size
        critical = recommended if self.critical_batch_size is None else self.critical_batch_size
        on = ", ".join(f"{name} {value}" for name, value in self.measured_on.items())
        notes = [f"Measured {self.measured_at} ({on}); confidence {self.confidence}: {self.confidence_because}."]
        if self.critical_batch_size is None:
            notes.append("No knee was seen: critical_batch_size is the recommended one.")
        return BatchSizeRecommendation(
            min_batch_size=min(least, recommended),
            optimal_batch_size=recommended,
            critical_batch_size=critical,
            max_memory_batch_size=self.max_memory_batch_size,
            notes=" ".join([*notes, *self.notes]),
        )
