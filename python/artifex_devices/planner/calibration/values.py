# SPDX-License-Identifier: Apache-2.0
"""Results of `calibrate()`, as values that can be written to a file and read again."""

from __future__ import annotations

import dataclasses
import datetime
import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from artifex_devices import _planner
from artifex_devices._base.checks import check_number, check_type
from artifex_devices._base.nearest_name import did_you_mean
from artifex_devices._base.public_path import public, unpickles
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._base.state_validation import checked_fields, checked_number, checked_record
from artifex_devices._base.timing import Repeats
from artifex_devices.planner.calibration.text import calibration_text

TERMS: tuple[str, ...] = (*_planner.COPY_TERMS, *_planner.PROGRAM_TERMS)
"""Each has a coefficient: seconds per call, copy, program or participant, or seconds per byte."""

_MAX_ENTRIES = 4096
_BUSY_SPREAD = 0.25
_RATES = ("alone", "cached", "warm", "memory", "added in caches", "added from memory")
_SECONDS = (0, 1e6)
_RATE = (1, 1e16)


@public("artifex_devices.calibration")
@dataclass(frozen=True)
class Sample:
    """One measurement that the model was fitted to.

    Attributes:
        name: What was measured.
        terms: Number of calls, copies and bytes, by the names of TERMS; those that are 0 are left out.
        seconds: First quartile of the repeats, as other work on the machine can only make them slower.
        spread: Seconds from there to the third quartile.
        repeats: Number of repeats.
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
        """Relative error of the model: 0.1 is 10 % too slow."""
        return self.model / self.seconds - 1


@public("artifex_devices.calibration")
@dataclass(frozen=True)
class Link:
    """Dense copies from one memory of this machine to another (or to itself), by all workers.

    Attributes:
        source: Number of the memory node that is read.
        destination: Number of the memory node that is written.
        rate: Bytes/s of the value: each byte is read and written once. Median.
    """

    source: int
    destination: int
    rate: float


@public("artifex_devices.calibration")
@dataclass(frozen=True)
class ProcessLink:
    """Links between the processes of a job, through MPI and through memory that they share.

    Attributes:
        processes: Number of processes.
        hosts: Number of machines that run them.
        transport: Name and version of the MPI that carries messages.
        latency: Seconds in which every process sends 16 floats to the next one.
        rate: Bytes/s into each process while all send large blocks to the next one.
        sum_latency: Seconds of a psum of 16 floats over all devices.
        sum_rate: Bytes/s of one device's block in psums of large blocks.
        shared_memory: Whether they share memory for sums; otherwise sums use messages.
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
    """Conditions of a calibration. What the system does not report is None.

    Attributes:
        date: Date and time in UTC, ISO 8601.
        cpu_model: Name that the processor reports.
        workers: Number of threads that copy.
        memory_nodes: Number of memories of the CPU devices.
        cache_bytes: Bytes of the last-level caches of the cores.
        model_cache_bytes: Cache bytes in the model: fewer where memory had no room for arrays twice as large.
        cpu_quota: CPUs that the cgroup allows.
        load_average: Load of the minute before.
        seconds: Duration of the calibration.
        array_bytes: Size of the largest array that was moved.
        memory_bytes: Largest memory of its arrays.
        numpy_version: Version of NumPy.
        library_version: Version of this package.
        rounds: Number of times that each case was run.
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
        """Seconds of calls, copies and bytes, by the names of TERMS.

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
            raise ValueError(
                f"seconds_of: {', '.join(unknown)} {'is not a term' if len(unknown) == 1 else 'are not terms'}; "
                f"expected some of {', '.join(TERMS)}; correct the names"
            )
        for name, count in terms.items():
            check_number("seconds_of", repr(name), count, minimum=0, expected="a number of calls, copies or bytes")
        return sum(count * self.coefficients[name] for name, count in terms.items())

    def __str__(self) -> str:
        """The rates, the latencies and the error of the fit, as a table."""
        return calibration_text(self)

    def __format__(self, width: str) -> str:
        """Returns the table in lines of so many characters at most: f"{calibration:80}"."""
        return calibration_text(self, int(width or 0))

    def __reduce__(self) -> tuple[Any, ...]:
        return _with, (self.to_dict(), self.from_cache, self.notes)

    def to_json(self) -> str:
        """All figures as JSON, with the samples that they are fitted to."""
        content = {**self.to_dict(), "from_cache": self.from_cache, "notes": list(self.notes)}
        return json.dumps(content, indent=1, allow_nan=False)

    def to_dict(self) -> dict[str, Any]:
        """All numbers as dicts, lists, strings and numbers, for `from_dict`."""
        return {
            "coefficients": dict(self.coefficients),
            "links": [dataclasses.asdict(link) for link in self.links],
            "fresh_page_seconds": self.fresh_page_seconds,
            "processes": None if self.processes is None else dataclasses.asdict(self.processes),
            "samples": [{**vars(sample), "terms": dict(sample.terms)} for sample in self.samples],
            "conditions": dataclasses.asdict(self.conditions),
        }

    @classmethod
    def from_dict(cls, content: Any) -> Calibration:
        """Reads the result of `to_dict`.

        Raises:
            ValueError: An entry is missing, unknown, of another type, or a number that cannot have been measured.
        """
        names = {"coefficients", "links", "fresh_page_seconds", "processes", "samples", "conditions"}
        fields = checked_fields(content, names, "from_dict: the calibration")
        found = checked_fields(fields["coefficients"], set(TERMS), "coefficients")
        coefficients = {name: checked_number(found[name], name, *_SECONDS) for name in TERMS}
        links = [
            Link(**checked_record(Link, each, "a link", source=0, destination=0, rate=_RATE))
            for each in _list(fields["links"], "links")
        ]
        between = fields["processes"]
        if between is not None:
            limits = {"rate": _RATE, "sum_rate": _RATE, "latency": _SECONDS, "sum_latency": _SECONDS}
            between = checked_record(ProcessLink, between, "processes", processes=2, **limits)
        return cls(
            coefficients=MappingProxyType(coefficients),
            links=tuple(links),
            fresh_page_seconds=checked_number(fields["fresh_page_seconds"], "fresh_page_seconds", 0, 1.0),
            processes=between and ProcessLink(**between),
            samples=tuple(_sample(each) for each in _list(fields["samples"], "samples")),
            conditions=_conditions(fields["conditions"]),
        )


def fitted(
    names: Sequence[str], terms: Sequence[Mapping[str, float]], repeats: Sequence[Repeats]
) -> tuple[Mapping[str, float], tuple[Sample, ...]]:
    """The non-negative coefficients with the least sum of squared relative errors, and samples with modelled seconds.

    `names`, `terms` (by the names of TERMS) and `repeats` have one entry for each sample.

    Raises:
        ValueError: No sample has one of TERMS, or a time is not above 0.
    """
    missing = [name for name in TERMS if not any(each.get(name) for each in terms)]
    if missing:
        raise ValueError(
            f"calibrate: no sample has {', '.join(missing)}; expected at least one for each term; measure more"
        )
    rows = [[each.get(name, 0.0) for name in TERMS] for each in terms]
    coefficients, errors = _planner.fit_relative(rows, [each.seconds for each in repeats])
    samples = []
    for name, each, timed, error in zip(names, terms, repeats, errors, strict=True):
        own = MappingProxyType({term: float(count) for term, count in each.items() if count})
        samples.append(Sample(name, own, timed.seconds, timed.spread, timed.count, timed.seconds * (1 + error)))
    return MappingProxyType(dict(zip(TERMS, coefficients, strict=True))), tuple(samples)


@unpickles("calibration")
def _with(content: Any, from_cache: bool, notes: tuple[str, ...]) -> Calibration:
    return dataclasses.replace(Calibration.from_dict(content), from_cache=from_cache, notes=notes)


def _list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list) or not 1 <= len(value) <= _MAX_ENTRIES:
        raise ValueError(f"{what} is not a list of 1 to {_MAX_ENTRIES}")
    return value


def _sample(value: Any) -> Sample:
    limits = {"seconds": (math.ulp(0.0), 1e6), "spread": _SECONDS, "model": _SECONDS}
    fields = checked_record(Sample, value, "a sample", **limits)
    terms = fields["terms"]
    if not isinstance(terms, dict) or not set(terms) <= set(TERMS):
        raise ValueError("terms are not those of the model")
    counts = {name: checked_number(count, name, 0, 2.0**63) for name, count in terms.items()}
    return Sample(**{**fields, "terms": MappingProxyType(counts)})


def _conditions(value: Any) -> CalibrationConditions:
    limits = {"load_average": (0, 1e12), "cpu_quota": (0, 1e12), "seconds": _SECONDS}
    fields = checked_record(CalibrationConditions, value, "conditions", **limits)
    datetime.datetime.fromisoformat(fields["date"])
    return CalibrationConditions(**fields)
