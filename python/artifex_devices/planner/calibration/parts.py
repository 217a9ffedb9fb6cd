# SPDX-License-Identifier: Apache-2.0
"""The parts of a calibration: samples and the model that is fitted to them, links and conditions."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from artifex_devices import _planner
from artifex_devices._base.checks import failure
from artifex_devices._base.public_path import public
from artifex_devices._base.state_validation import checked_number, checked_record
from artifex_devices._base.timing import Repeats

TERMS: tuple[str, ...] = (*_planner.COPY_TERMS, *_planner.PROGRAM_TERMS)
"""Each has a coefficient: seconds per call, copy, program or participant, or seconds per byte."""

SECONDS = (0, 1e6)  # limits of stored numbers


@public("artifex_devices.calibration")
@dataclass(frozen=True)
class Sample:
    """One measurement that the model was fitted to.

    Attributes:
        name: Name of the measurement.
        terms: Number of calls, copies and bytes, by the names of TERMS; zeros are left out.
        seconds: First quartile of the repeats, as other work on the machine can only make them slower.
        spread: Seconds from the first to the third quartile.
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
    """Conditions of a calibration; fields that the system does not report are None.

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


def fitted(
    names: Sequence[str], terms: Sequence[Mapping[str, float]], repeats: Sequence[Repeats]
) -> tuple[Mapping[str, float], tuple[Sample, ...]]:
    """Fits non-negative coefficients by least squares of relative errors; also returns samples with modelled seconds.

    `names`, `terms` (by the names of TERMS) and `repeats` have one entry for each sample.

    Raises:
        ValueError: No sample has one of TERMS, or a time is not above 0.
    """
    missing = [name for name in TERMS if not any(each.get(name) for each in terms)]
    if missing:
        raise failure(
            ValueError,
            "calibrate",
            f"no sample has {', '.join(missing)}",
            expected="at least one for each term",
            fix="measure more",
        )
    rows = [[each.get(name, 0.0) for name in TERMS] for each in terms]
    coefficients, errors = _planner.fit_relative(rows, [each.seconds for each in repeats])
    samples = []
    for name, each, timed, error in zip(names, terms, repeats, errors, strict=True):
        own = MappingProxyType({term: float(count) for term, count in each.items() if count})
        samples.append(Sample(name, own, timed.seconds, timed.spread, timed.count, timed.seconds * (1 + error)))
    return MappingProxyType(dict(zip(TERMS, coefficients, strict=True))), tuple(samples)


def sample_from(value: object) -> Sample:
    """Reads a stored sample; ValueError where it cannot have been measured."""
    limits = {"seconds": (math.ulp(0.0), 1e6), "spread": SECONDS, "model": SECONDS}
    fields = checked_record(Sample, value, "a sample", **limits)
    terms = fields["terms"]
    if not isinstance(terms, dict) or not set(terms) <= set(TERMS):
        raise ValueError("terms do not match the model's")
    counts = {name: checked_number(count, name, 0, 2.0**63) for name, count in terms.items()}
    return Sample(**{**fields, "terms": MappingProxyType(counts)})


def conditions_from(value: object) -> CalibrationConditions:
    """Reads stored conditions; ValueError where they cannot have been measured."""
    limits = {"load_average": (0, 1e12), "cpu_quota": (0, 1e12), "seconds": SECONDS}
    fields = checked_record(CalibrationConditions, value, "conditions", **limits)
    datetime.datetime.fromisoformat(fields["date"])
    return CalibrationConditions(**fields)
