# SPDX-License-Identifier: Apache-2.0
"""What `calibrate()` found of this machine, as values that can be written down and read again."""

from __future__ import annotations

import dataclasses
import datetime
import json
import math
import numbers
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from artifex_devices import _core
from artifex_devices._base.nearest_name import did_you_mean
from artifex_devices._base.public_path import public
from artifex_devices._base.safe_repr import shown
from artifex_devices._base.state_validation import checked_count, checked_fields, checked_number, checked_text
from artifex_devices._base.timing import Repeats
from artifex_devices.planner.calibration_text import calibration_text

__all__ = [
    "COLLECTIVE_TERMS",
    "TERMS",
    "Calibration",
    "CalibrationConditions",
    "Link",
    "ProcessLink",
    "Sample",
    "fitted",
]

COLLECTIVE_TERMS = (
    "cooperative programs",
    "cooperative participants",
    "threads programs",
    "threads participants",
    "results",
    "added in caches",
    "added from memory",
)
"""What the seconds of collectives are a sum of, beside the terms of copies."""

TERMS: tuple[str, ...] = (*_core._copy_term_names(), *COLLECTIVE_TERMS)
"""Each has a coefficient: seconds a call, copy, program or participant, or seconds a byte."""

_MOST = 4096
_BUSY = 0.25
_RATES = ("alone", "cached", "warm", "memory", "added in caches", "added from memory")


@public("artifex_devices.calibration")
@dataclass(frozen=True)
class Sample:
    """One measurement that the model was fitted to.

    Attributes:
        name: What was done.
        terms: How many calls, copies and bytes it is, by the names of TERMS; those that are 0 are left out.
        seconds: First quartile of the repeats, as other work on the machine only ever makes them slower.
        spread: From there to the third quartile, in seconds.
        repeats: How many there were.
        model: Seconds by the fitted model.
    """

    name: str
    terms: Mapping[str, float]
    seconds: float
    spread: float
    repeats: int
    model: float

    @property
    def error(self) -> float:
        """Of the model, relative: 0.1 is 10 % too slow."""
        return self.model / self.seconds - 1


@public("artifex_devices.calibration")
@dataclass(frozen=True)
class Link:
    """Dense copies from one memory of this machine to another (or to itself), by all workers.

    Attributes:
        source: Number of the memory node that is read.
        destination: Number of the one that is written.
        rate: Bytes/s of the value: each byte is read and written once. Median.
    """

    source: int
    destination: int
    rate: float


@public("artifex_devices.calibration")
@dataclass(frozen=True)
class ProcessLink:
    """What lies between the processes of a job, by MPI and by memory that they share.

    Attributes:
        processes: How many.
        hosts: On how many machines they are.
        transport: What carries messages: name and version of the MPI.
        latency: Seconds in which every process hands 16 floats to the next one.
        rate: Bytes/s into each process when all hand large blocks to the next one.
        sum_latency: Seconds of a psum of 16 floats over all devices.
        sum_rate: Bytes/s of one device's block in psums of large blocks.
        shared_memory: Whether they share memory for sums; else sums go by messages.
    """

    processes: int
    hosts: int
    transport: str
    latency: float
    rate: float
    sum_latency: float
    sum_rate: float
    shared_memory: bool


@public("artifex_devices.calibration")
@dataclass(frozen=True)
class CalibrationConditions:
    """Under which it was measured. What the system does not say is None.

    Attributes:
        date: UTC, ISO 8601.
        cpu_model: What the processor calls itself.
        workers: Threads that copy.
        memory_nodes: Memories that the CPU devices have.
        cache_bytes: Last-level caches of the cores.
        model_cache_bytes: Those that the model reckons with: less where memory had no room for arrays twice as large.
        cpu_quota: CPUs that the cgroup leaves.
        load_average: Of the last minute, before.
        seconds: That it took.
        array_bytes: Of the largest array that was moved.
        memory_bytes: That its arrays took at most.
        numpy_version: Of the NumPy at hand.
        library_version: Of this package.
        rounds: Turns that each case had.
    """

    date: str
    cpu_model: str
    workers: int
    memory_nodes: int
    cache_bytes: int | None
    model_cache_bytes: int | None
    cpu_quota: float | None
    load_average: float | None
    seconds: float
    array_bytes: int
    memory_bytes: int
    numpy_version: str
    library_version: str
    rounds: int


@public("artifex_devices.calibration")
@dataclass(frozen=True, eq=False)
class Calibration:
    """A model of this machine's own seconds, fitted to measurements: see docs/guide/calibration.md.

    Attributes:
        coefficients: Seconds by the names of TERMS: of a call, a copy, a program or a participant, or of a byte.
        links: Dense copies between each pair of memories.
        fresh_page_seconds: A byte of a result on pages that the process has not had before takes so much longer.
        processes: What lies between processes; None where there is one only, which `notes` say.
        samples: What the model was fitted to.
        conditions: Under which it was measured.
        from_cache: Whether it was read from the cache, not measured now.
        notes: What a reader must know: what could not be measured, a busy machine, where it is kept or why not.
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
        """Bytes/s of copies by where they go through (bytes of the value), and of sums (bytes read and written).

        Terms whose bytes cost nothing in the fit are left out.
        """
        return MappingProxyType({name: 1 / self.coefficients[name] for name in _RATES if self.coefficients[name] > 0})

    @property
    def fit_error(self) -> float:
        """Median of the absolute relative errors of the samples: how well the model fits what it was made of."""
        return statistics.median(abs(sample.error) for sample in self.samples)

    @property
    def was_busy(self) -> bool:
        """Whether the quartiles of repeats lie further apart than 25 % of the first, in half of the samples.

        With fewer than 3 rounds repeats follow each other too closely to show it: False says nothing then, which
        `notes` say.
        """
        return statistics.median(sample.spread / sample.seconds for sample in self.samples) > _BUSY

    def seconds_of(self, terms: Mapping[str, float]) -> float:
        """Seconds of calls, copies and bytes, by the names of TERMS.

        Raises:
            TypeError: `terms` is no mapping of numbers.
            ValueError: A name is none of TERMS, or a number is negative or not finite.
        """
        if not isinstance(terms, Mapping):
            raise TypeError(
                f"seconds_of: terms is {shown(terms)} ({type(terms).__name__}); expected a dict of numbers by the "
                'names of TERMS; write seconds_of({"calls": 1})'
            )
        names: list[Any] = list(terms)
        unknown = [
            f"{shown(name)}{did_you_mean(name, TERMS) if isinstance(name, str) else ''}"
            for name in names
            if name not in self.coefficients
        ]
        if unknown:
            raise ValueError(
                f"seconds_of: {', '.join(unknown)} {'is no term' if len(unknown) == 1 else 'are no terms'}; expected "
                f"some of {', '.join(TERMS)}; correct it"
            )
        count: Any
        for name, count in terms.items():
            if isinstance(count, bool) or not isinstance(count, numbers.Real):
                raise TypeError(
                    f"seconds_of: {name!r} is {shown(count)} ({type(count).__name__}); expected a number of calls, "
                    "copies or bytes; correct it"
                )
            number: Any = count
            if not 0 <= number <= sys.float_info.max:
                raise ValueError(
                    f"seconds_of: {name!r} is {shown(count)}; expected a finite number of 0 or more; correct it"
                )
        return sum(count * self.coefficients[name] for name, count in terms.items())

    def __str__(self) -> str:
        """The rates, the latencies, and how well they fit, as a table."""
        return calibration_text(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return _with, (self.to_dict(), self.from_cache, self.notes)

    def to_json(self) -> str:
        """All figures as JSON, with the samples that they are from."""
        told = {**self.to_dict(), "from_cache": self.from_cache, "notes": list(self.notes)}
        return json.dumps(told, indent=1, allow_nan=False)

    def to_dict(self) -> dict[str, Any]:
        """All numbers as dicts, lists, strings and numbers; `from_dict` reads them again."""
        return {
            "coefficients": dict(self.coefficients),
            "links": [dataclasses.asdict(link) for link in self.links],
            "fresh_page_seconds": self.fresh_page_seconds,
            "processes": None if self.processes is None else dataclasses.asdict(self.processes),
            "samples": [
                {**{field: getattr(sample, field) for field in _SAMPLE}, "terms": dict(sample.terms)}
                for sample in self.samples
            ],
            "conditions": dataclasses.asdict(self.conditions),
        }

    @classmethod
    def from_dict(cls, told: Any) -> Calibration:
        """Reads what `to_dict` gave.

        Raises:
            ValueError: If anything is missing, too much, of another type, or no number that can have been measured.
        """
        names = {"coefficients", "links", "fresh_page_seconds", "processes", "samples", "conditions"}
        fields = checked_fields(told, names, "from_dict: the calibration")
        coefficients = checked_fields(fields["coefficients"], set(TERMS), "coefficients")
        processes = fields["processes"]
        return cls(
            coefficients=MappingProxyType({name: checked_number(coefficients[name], name, 0, 1e6) for name in TERMS}),
            links=tuple(_link(each) for each in _list(fields["links"], "links")),
            fresh_page_seconds=checked_number(fields["fresh_page_seconds"], "fresh_page_seconds", 0, 1.0),
            processes=None if processes is None else _process_link(processes),
            samples=tuple(_sample(each) for each in _list(fields["samples"], "samples")),
            conditions=_conditions(fields["conditions"]),
        )


def fitted(
    names: Sequence[str], terms: Sequence[Mapping[str, float]], repeats: Sequence[Repeats]
) -> tuple[Mapping[str, float], tuple[Sample, ...]]:
    """The coefficients with the least sum of squared relative errors, none below 0, and the samples with its seconds.

    Args:
        names: Of the samples.
        terms: Of each sample, by the names of TERMS.
        repeats: Of each sample.

    Raises:
        ValueError: No sample has one of TERMS, or a time is not above 0.
    """
    missing = [name for name in TERMS if not any(each.get(name) for each in terms)]
    if missing:
        raise ValueError(
            f"calibrate: no sample has {', '.join(missing)}; expected one at least for each term; measure more"
        )
    seconds = [each.seconds for each in repeats]
    coefficients, errors = _core._fit_relative([[each.get(name, 0.0) for name in TERMS] for each in terms], seconds)
    samples = []
    for name, each, timed, error in zip(names, terms, repeats, errors, strict=True):
        own = MappingProxyType({term: float(count) for term, count in each.items() if count})
        samples.append(Sample(name, own, timed.seconds, timed.spread, timed.count, timed.seconds * (1 + error)))
    return MappingProxyType(dict(zip(TERMS, coefficients, strict=True))), tuple(samples)


_SAMPLE = tuple(field.name for field in dataclasses.fields(Sample))


def _with(told: Any, from_cache: bool, notes: tuple[str, ...]) -> Calibration:
    return dataclasses.replace(Calibration.from_dict(told), from_cache=from_cache, notes=notes)


def _list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list) or not 1 <= len(value) <= _MOST:
        raise ValueError(f"{what} is no list of 1 to {_MOST}")
    return value


def _link(value: Any) -> Link:
    told = checked_fields(value, {"source", "destination", "rate"}, "a link")
    ends = (checked_count(told["source"], "source", 0), checked_count(told["destination"], "destination", 0))
    return Link(*ends, checked_number(told["rate"], "rate", 1, 1e16))


def _process_link(value: Any) -> ProcessLink:
    told = checked_fields(value, {field.name for field in dataclasses.fields(ProcessLink)}, "processes")
    if not isinstance(told["shared_memory"], bool):
        raise ValueError("shared_memory is no bool")
    return ProcessLink(
        checked_count(told["processes"], "processes", 2),
        checked_count(told["hosts"], "hosts", 1),
        checked_text(told["transport"], "transport"),
        checked_number(told["latency"], "latency", 0, 1e6),
        checked_number(told["rate"], "rate", 1, 1e16),
        checked_number(told["sum_latency"], "sum_latency", 0, 1e6),
        checked_number(told["sum_rate"], "sum_rate", 1, 1e16),
        told["shared_memory"],
    )


def _sample(value: Any) -> Sample:
    told = checked_fields(value, set(_SAMPLE), "a sample")
    terms = told["terms"]
    if not isinstance(terms, dict) or not set(terms) <= set(TERMS):
        raise ValueError("terms are not those of the model")
    return Sample(
        checked_text(told["name"], "name"),
        MappingProxyType({name: checked_number(count, name, 0, 2.0**63) for name, count in terms.items()}),
        checked_number(told["seconds"], "seconds", math.ulp(0.0), 1e6),
        checked_number(told["spread"], "spread", 0, 1e6),
        checked_count(told["repeats"], "repeats", 1),
        checked_number(told["model"], "model", 0, 1e6),
    )


def _conditions(value: Any) -> CalibrationConditions:
    told = dict(
        checked_fields(value, {field.name for field in dataclasses.fields(CalibrationConditions)}, "conditions")
    )
    datetime.datetime.fromisoformat(checked_text(told["date"], "date"))
    for name in ("cpu_model", "numpy_version", "library_version"):
        checked_text(told[name], name)
    for name in ("workers", "memory_nodes", "array_bytes", "memory_bytes", "rounds"):
        checked_count(told[name], name, 1)
    for name in ("load_average", "cpu_quota"):
        if told[name] is not None:
            told[name] = checked_number(told[name], name, 0, 1e12)
    for name in ("cache_bytes", "model_cache_bytes"):
        if told[name] is not None:
            checked_count(told[name], name, 1)
    told["seconds"] = checked_number(told["seconds"], "seconds", 0, 1e6)
    return CalibrationConditions(**told)
