# SPDX-License-Identifier: Apache-2.0
"""Results of `calibrate()`, as values that can be written to a file and read again."""

from __future__ import annotations

import dataclasses
import json
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from artifex_devices._base.checks import check_number, check_type, failure
from artifex_devices._base.leaf_types import Record
from artifex_devices._base.nearest_name import did_you_mean
from artifex_devices._base.public_path import public, unpickles
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._base.state_validation import checked_fields, checked_number, checked_record
from artifex_devices._base.text import seconds_text
from artifex_devices.planner.calibration.parts import (
    SECONDS,
    TERMS,
    CalibrationConditions,
    Link,
    ProcessLink,
    Sample,
    conditions_from,
    sample_from,
)
from artifex_devices.planner.report import Summary

_MAX_ENTRIES = 4096
_BUSY_SPREAD = 0.25
_RATES = ("alone", "cached", "warm", "memory", "added in caches", "added from memory")
_RATE = (1, 1e16)
_RATE_TEXTS = {
    "alone": "copied by the calling thread",
    "cached": "copied by workers, in caches",
    "warm": "copied past caches that hold the source",
    "memory": "copied from memory to memory",
    "added in caches": "summed, from caches",
    "added from memory": "summed, from memory",
}


@public("artifex_devices.calibration")
@dataclass(frozen=True, eq=False)
class Calibration:
    """A model of the seconds that this machine needs, fitted to measurements: see docs/how_to/calibrate.md.

    Attributes:
        coefficients: Seconds by the names of TERMS: per call, copy, program or participant, or per byte.
        links: Dense copies between each pair of memories.
        fresh_page_seconds: Additional seconds per byte of a result on pages that are new to the process.
        processes: Links between processes; None for a single process, as `notes` state.
        samples: Measurements that the model was fitted to.
        conditions: Conditions of the measurement.
        from_cache: Whether it was read from the cache instead of measured now.
        notes: Caveats: what could not be measured, a busy machine, where the result is stored or why it is not.
    """

    coefficients: Mapping[str, float]
    links: tuple[Link, ...]
    fresh_page_seconds: float
    processes: ProcessLink | None
    samples: tuple[Sample, ...]
    conditions: CalibrationConditions
    from_cache: bool = False
    notes: tuple[str, ...] = ()

    @property
    def rates(self) -> Mapping[str, float]:
        """Bytes/s of copies by their path (bytes of the value), and of sums (bytes read and written).

        Terms whose bytes cost nothing in the fit are left out.
        """
        return MappingProxyType({name: 1 / self.coefficients[name] for name in _RATES if self.coefficients[name] > 0})

    @property
    def fit_error(self) -> float:
        """Median of the absolute relative errors of the samples: how well the model fits its own measurements."""
        return statistics.median(abs(sample.error) for sample in self.samples)

    @property
    def was_busy(self) -> bool:
        """Whether the quartiles of repeats differ by more than 25 % of the first, in half of the samples.

        With fewer than 3 rounds the repeats follow each other too closely to show it: False is not conclusive then, as
        `notes` state.
        """
        return statistics.median(sample.spread / sample.seconds for sample in self.samples) > _BUSY_SPREAD

    def seconds_of(self, terms: Mapping[str, float]) -> float:
        """Predicts the seconds of calls, copies and bytes, by the names of TERMS.

        Raises:
            TypeError: `terms` is not a mapping of numbers.
            ValueError: A name is not in TERMS, or a number is negative or not finite.
        """
        expected = "a dict of numbers by the names of TERMS"
        check_type("seconds_of", "terms", terms, Mapping, expected, 'write seconds_of({"calls": 1})')
        names: list[Any] = list(terms)
        unknown = [
            f"{safe_repr(name)}{did_you_mean(name, TERMS) if isinstance(name, str) else ''}"
            for name in names
            if name not in self.coefficients
        ]
        if unknown:
            raise failure(
                ValueError,
                "seconds_of",
                f"{', '.join(unknown)} {('is not a term' if len(unknown) == 1 else 'are not terms')}",
                expected=f"some of {', '.join(TERMS)}",
                fix="correct the names",
            )
        for name, count in terms.items():
            check_number("seconds_of", repr(name), count, minimum=0, expected="a number of calls, copies or bytes")
        return sum(count * self.coefficients[name] for name, count in terms.items())

    def __str__(self) -> str:
        """Formats the rates, the latencies and the error of the fit as a table."""
        return self._summary().text()

    def __format__(self, width: str) -> str:
        """Returns the table in lines of at most `width` characters: f"{calibration:80}"."""
        return self._summary().text(int(width or 0))

    def _summary(self) -> Summary:
        conditions, coefficients, rates = self.conditions, self.coefficients, self.rates
        rows = [(text, _rate_text(rates[name]) if name in rates else "nothing") for name, text in _RATE_TEXTS.items()]
        if conditions.memory_nodes > 1:
            rows += [(f"memory node {link.source} to {link.destination}", _rate_text(link.rate)) for link in self.links]
        for side in ("read", "written"):
            prefix = f"{side} in "
            costs = [
                f"{name.removeprefix(prefix)}: {_microseconds_per_mib(cost)}"
                for name, cost in coefficients.items()
                if name.startswith(prefix)
            ]
            rows.append((f"{side} in runs of", f"{', '.join(costs)} us a MiB more"))
        once, on_workers, copy, result = (
            seconds_text(coefficients[name]) for name in ("calls", "calls on workers", "copies", "results")
        )
        rows += [
            ("a transfer", f"{once}; on workers {on_workers}"),
            ("a copy of it", copy),
            ("on fresh pages", f"{_microseconds_per_mib(self.fresh_page_seconds)} us a MiB more"),
        ]
        for kind in ("cooperative", "threads"):
            program, participant = (
                seconds_text(coefficients[f"{kind} {what}"]) for what in ("programs", "participants")
            )
            rows.append((f"a program, {kind}", f"{program} and {participant} a participant"))
        rows.append(("a result of it", result))
        between = self.processes
        if between is not None:
            shared = "in shared memory" if between.shared_memory else "by messages"
            link = f"{_rate_text(between.rate)}, {seconds_text(between.latency)} ({between.transport})"
            sums = f"{_rate_text(between.sum_rate)}, {seconds_text(between.sum_latency)}"
            rows += [(f"between {between.processes} processes", link), (f"sums of theirs, {shared}", sums)]
        rows.append(("fit", f"{len(self.samples)} samples, median error {100 * self.fit_error:.1f} %"))
        rounds = f"{conditions.rounds} round{'s' * (conditions.rounds > 1)}"
        cached = ", read from the cache" if self.from_cache else ""
        nodes = f"{conditions.memory_nodes} memory node{'s' * (conditions.memory_nodes > 1)}"
        title = (
            f"{conditions.cpu_model}, {conditions.workers} workers, {nodes}; measured {conditions.date} in "
            f"{conditions.seconds:.1f} s, {rounds}{cached}"
        )
        return Summary(title, [*rows, *(("note", each) for each in self.notes)])

    def __reduce__(self) -> tuple[Any, ...]:
        return _with, (self.to_dict(), self.from_cache, self.notes)

    def to_json(self) -> str:
        """Returns all figures as JSON, with the samples that they are fitted to."""
        content = {**self.to_dict(), "from_cache": self.from_cache, "notes": list(self.notes)}
        return json.dumps(content, indent=1, allow_nan=False)

    def to_dict(self) -> Record:
        """Returns all numbers as dicts, lists, strings and numbers, for `from_dict`."""
        return {
            "coefficients": dict(self.coefficients),
            "links": [dataclasses.asdict(link) for link in self.links],
            "fresh_page_seconds": self.fresh_page_seconds,
            "processes": None if self.processes is None else dataclasses.asdict(self.processes),
            "samples": [{**vars(sample), "terms": dict(sample.terms)} for sample in self.samples],
            "conditions": dataclasses.asdict(self.conditions),
        }

    @classmethod
    def from_dict(cls, content: object) -> Calibration:
        """Reads the result of `to_dict`.

        Raises:
            ValueError: An entry is missing, unknown, of another type, or a number that cannot have been measured.
        """
        names = {"coefficients", "links", "fresh_page_seconds", "processes", "samples", "conditions"}
        fields = checked_fields(content, names, "from_dict: the calibration")
        found = checked_fields(fields["coefficients"], set(TERMS), "coefficients")
        coefficients = {name: checked_number(found[name], name, *SECONDS) for name in TERMS}
        links = [
            Link(**checked_record(Link, each, "a link", source=0, destination=0, rate=_RATE))
            for each in _list(fields["links"], "links")
        ]
        between = fields["processes"]
        if between is not None:
            limits = {"rate": _RATE, "sum_rate": _RATE, "latency": SECONDS, "sum_latency": SECONDS}
            between = checked_record(ProcessLink, between, "processes", processes=2, **limits)
        return cls(
            coefficients=MappingProxyType(coefficients),
            links=tuple(links),
            fresh_page_seconds=checked_number(fields["fresh_page_seconds"], "fresh_page_seconds", 0, 1.0),
            processes=between and ProcessLink(**between),
            samples=tuple(sample_from(each) for each in _list(fields["samples"], "samples")),
            conditions=conditions_from(fields["conditions"]),
        )


@unpickles("calibration")
def _with(content: object, from_cache: bool, notes: tuple[str, ...]) -> Calibration:
    return dataclasses.replace(Calibration.from_dict(content), from_cache=from_cache, notes=notes)


def _list(value: object, what: str) -> list[Any]:
    if not isinstance(value, list) or not 1 <= len(value) <= _MAX_ENTRIES:
        raise ValueError(f"{what} is not a list of 1 to {_MAX_ENTRIES}")
    return value


def _rate_text(rate: float) -> str:
    return f"{rate / 1e9:.3g} GB/s"


def _microseconds_per_mib(seconds_per_byte: float) -> str:
    return f"{seconds_per_byte * 2**20 * 1e6:.3g}"
