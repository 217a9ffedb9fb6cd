# SPDX-License-Identifier: Apache-2.0
"""Results of a measurement of the machine's CPU devices, as values that can be stored and read again."""

from __future__ import annotations

import dataclasses
import datetime
import operator
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from artifex_devices._base.checks import check_type, failure
from artifex_devices._base.html import NotebookText, page, preformatted
from artifex_devices._base.leaf_types import Record
from artifex_devices._base.public_path import public, unpickles
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._base.state_validation import checked_fields, checked_number, checked_record, checked_text

if TYPE_CHECKING:
    from artifex_devices._base.charts import Axes

_FEW = 3  # the spread is known from this number of repeats on
_ERROR_OF_FEW = 0.25


@public("artifex_devices.roofline")
@dataclass(frozen=True)
class Rate:
    """A measured rate, in FLOP/s or bytes/s.

    Attributes:
        best: Highest rate of the repeats: the limit of the hardware, as other work can only slow it down.
        median: Median of the repeats.
        spread: Distance between the quartiles.
        relative_error: Relative error of `best`: the largest of a floor (5 % for FLOP/s, 10 % for bytes/s: clocks,
            placement in memory, other guests of the host), the distance from the best to the third best repeat, and
            the share of CPU time that the best repeat did not get.
        repeats: Number of repeats, each of many calls.
        how: The program that was run.
    """

    best: float
    median: float
    spread: float
    relative_error: float
    repeats: int
    how: str

    def agrees_with(self, other: Rate) -> bool:
        """Returns whether the two differ by at most the sum of their errors.

        Raises:
            TypeError: `other` is not a Rate.
        """
        check_type("agrees_with", "other", other, Rate, "a Rate", "pass measure_roofline().bandwidth")
        return abs(self.best - other.best) <= self.best * self.relative_error + other.best * other.relative_error


def rate_of(rates: Sequence[float], shares: Sequence[float], *, expected_share: float, floor: float, how: str) -> Rate:
    """Returns the Rate of several repeats; `floor` is the smallest relative error.

    `shares` has the share of each repeat in which the workers had a CPU; a CPU quota allows `expected_share`.
    """
    if not rates or max(rates) <= 0:
        raise failure(
            RuntimeError,
            "measure_roofline",
            f"no repeat of {how!r} ended in time",
            expected="at least one",
            fix="pass more seconds or stop other work",
        )
    best_first = sorted(rates, reverse=True)
    best = best_first[0]
    share = min(1.0, shares[list(rates).index(best)] / expected_share)
    error = max(floor, 1 - best_first[min(len(rates), _FEW) - 1] / best, 1 / max(share, 0.01) - 1)
    if len(rates) < _FEW:
        error = max(error, _ERROR_OF_FEW)
    quartiles = statistics.quantiles(rates, n=4, method="inclusive") if len(rates) > 1 else [best] * 3
    return Rate(best, statistics.median(rates), quartiles[2] - quartiles[0], error, len(rates), how)


@public("artifex_devices.roofline")
@dataclass(frozen=True)
class Conditions:
    """Conditions of a measurement; fields that the system does not report are None.

    Attributes:
        date: Date and time in UTC, ISO 8601.
        cpu_model: Name that the processor reports.
        isa: Instruction set of the product: "baseline", "avx2", "avx512".
        workers: Number of threads that worked at the same time.
        bound_workers: Number of threads that are bound to the device's cores.
        devices_sharing: Number of devices of this world on the same cores, which share the rates when all are busy; 1
            if all devices were measured together.
        together: Whether all devices of the process were measured at the same time; otherwise only one device had work.
        load_average: Load of the minute before.
        frequency_hz: Frequency of a core before, in hertz.
        cpu_quota: CPUs that the cgroup allows.
        array_bytes: Size of each of the three arrays that were streamed over.
        cache_bytes: Bytes of the last-level caches of the cores.
        numpy_version: Version of NumPy.
        library_version: Version of this package.
    """

    date: str
    cpu_model: str
    isa: str
    workers: int
    bound_workers: int
    devices_sharing: int
    together: bool
    load_average: float | None
    frequency_hz: float | None
    cpu_quota: float | None
    array_bytes: int
    cache_bytes: int | None
    numpy_version: str
    library_version: str


@public("artifex_devices.roofline")
@dataclass(frozen=True, eq=False)
class MeasuredRoofline(NotebookText):
    """Measured rates of one CPU device, or of all of the process together.

    Attributes:
        scope: "cpu:0", or "all CPU devices".
        peak_flops: Best FLOP/s by dtype: "float32" and "float64".
        products: Rates of each matrix product by dtype.
        bandwidth: Best bytes/s, as STREAM counts them.
        streams: Rates of each loop over memory.
        conditions: Conditions of the measurement.
        from_cache: Whether it was read from the cache instead of measured now.
        notes: Caveats: what could not be measured, large errors, where the result is stored or why it is not.
    """

    scope: str
    peak_flops: Mapping[str, Rate]
    products: Mapping[str, tuple[Rate, ...]]
    bandwidth: Rate
    streams: tuple[Rate, ...]
    conditions: Conditions
    from_cache: bool = False
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Formats lines of text: rates with their errors, how, and when."""
        lines = [f"{self.scope}: {self.conditions.cpu_model}, {self.conditions.workers} workers"]
        for dtype, rate in self.peak_flops.items():
            lines.append(f"  {dtype} {rate.best / 1e9:.1f} GFLOP/s ±{100 * rate.relative_error:.0f} %, {rate.how}")
        rate = self.bandwidth
        lines.append(f"  memory {rate.best / 1e9:.1f} GB/s ±{100 * rate.relative_error:.0f} %, {rate.how}")
        lines.append(f"  measured {self.conditions.date}{', read from the cache' if self.from_cache else ''}")
        return "\n".join(lines + [f"  {note}" for note in self.notes])

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Draws the roofline of each number format.

        Args:
            ax: Axes of matplotlib to draw into, by default of a new figure.

        Returns:
            The axes.

        Raises:
            ImportError: matplotlib is not installed.
        """
        from artifex_devices.roofline.chart import Roof, draw_roofline

        fastest_first = sorted(self.peak_flops.items(), key=lambda each: -each[1].best)
        roofs = [*(Roof(name, rate.best) for name, rate in fastest_first), Roof("memory", self.bandwidth.best, True)]
        rates = [*fastest_first, ("memory", self.bandwidth)]
        notes = [f"{name}: ±{100 * rate.relative_error:.0f} %, {rate.how}" for name, rate in rates]
        notes.append(f"measured {self.conditions.date}")
        title = f"roofline of {self.scope} ({self.conditions.cpu_model})"
        return draw_roofline("MeasuredRoofline.plot", ax, title, roofs, [], notes)

    def _repr_html_(self) -> str:
        title, *lines = str(self).splitlines()
        return page(title, preformatted("\n".join(lines)))

    def __reduce__(self) -> tuple[Any, ...]:
        return _with, (self.to_dict(), self.from_cache, self.notes)

    def to_dict(self) -> Record:
        """Returns all numbers as dicts, lists, strings and numbers, for `from_dict`."""
        return {
            "scope": self.scope,
            "products": {dtype: [dataclasses.asdict(rate) for rate in rates] for dtype, rates in self.products.items()},
            "streams": [dataclasses.asdict(rate) for rate in self.streams],
            "conditions": dataclasses.asdict(self.conditions),
        }

    @classmethod
    def from_rates(
        cls,
        scope: str,
        products: Mapping[str, Sequence[Rate]],
        streams: Sequence[Rate],
        conditions: Conditions,
        notes: Sequence[str] = (),
    ) -> MeasuredRoofline:
        """Creates a measurement whose limits are the best rates.

        Args:
            scope: "cpu:0", or "all CPU devices".
            products: At least one Rate for each dtype.
            streams: At least one Rate.
            conditions: Conditions of the measurement.
            notes: Caveats for the reader.

        Raises:
            TypeError: An argument is of another type.
            ValueError: `products` is empty, or a dtype or `streams` has no rate.
        """
        _check_parts(scope, products, streams, conditions, notes)
        best = operator.attrgetter("best")
        return cls(
            scope=scope,
            peak_flops=MappingProxyType({name: max(rates, key=best) for name, rates in products.items()}),
            products=MappingProxyType({name: tuple(rates) for name, rates in products.items()}),
            bandwidth=max(streams, key=best),
            streams=tuple(streams),
            conditions=conditions,
            notes=tuple(notes),
        )

    @classmethod
    def from_dict(cls, content: object) -> MeasuredRoofline:
        """Reads the result of `to_dict`.

        Raises:
            ValueError: An entry is missing, unknown, of another type, or a number that cannot have been measured.
        """
        fields = checked_fields(content, {"scope", "products", "streams", "conditions"}, "from_dict: the measurement")
        products = checked_fields(fields["products"], {"float32", "float64"}, "products")
        return cls.from_rates(
            checked_text(fields["scope"], "scope"),
            {dtype: _rates(products[dtype], dtype) for dtype in ("float32", "float64")},
            _rates(fields["streams"], "streams"),
            _conditions(fields["conditions"]),
        )


@unpickles("measured_roofline")
def _with(content: object, from_cache: bool, notes: tuple[str, ...]) -> MeasuredRoofline:
    return dataclasses.replace(MeasuredRoofline.from_dict(content), from_cache=from_cache, notes=notes)


def _check_parts(scope: object, products: Any, streams: object, conditions: object, notes: object) -> None:
    """Raises TypeError or ValueError with all mistakes."""
    kinds = (("scope", scope, str), ("products", products, Mapping), ("conditions", conditions, Conditions))
    wrong = [
        f"{name} is {safe_repr(value)} ({type(value).__name__}), expected a {kind.__name__}"
        for name, value, kind in kinds
        if not isinstance(value, kind)
    ]
    named = [(f"products[{safe_repr(dtype)}]", rates) for dtype, rates in products.items()] if not wrong else []
    for name, rates in (*named, ("streams", streams)):
        if not isinstance(rates, Sequence) or not all(isinstance(rate, Rate) for rate in rates):
            wrong.append(f"{name} is {safe_repr(rates)} ({type(rates).__name__}), expected a sequence of Rates")
    if isinstance(notes, str) or not isinstance(notes, Sequence) or not all(isinstance(note, str) for note in notes):
        wrong.append(f"notes is {safe_repr(notes)} ({type(notes).__name__}), expected a sequence of texts")
    if wrong:
        raise TypeError(f"from_rates: {'; '.join(wrong)}; pass rates of measure_roofline()")
    empty = [name for name, rates in (*named, ("streams", streams)) if len(rates) == 0]
    if empty or not named:
        raise failure(
            ValueError,
            "from_rates",
            f"{', '.join(empty) or 'products'} is empty",
            expected="at least one Rate",
            fix="pass rates of measure_roofline()",
        )


def _rates(value: object, what: str) -> list[Rate]:
    if not isinstance(value, list) or not 1 <= len(value) <= 16:
        raise ValueError(f"{what} is not a list of rates")
    limits = {"best": (1e3, 1e19), "median": (0, 1e19), "spread": (0, 1e19), "relative_error": (0, 1e3)}
    rates = [Rate(**checked_record(Rate, each, f"a rate of {what}", **limits)) for each in value]
    for rate in rates:
        for name in ("median", "spread"):
            checked_number(getattr(rate, name), name, 0, rate.best)
    return rates


def _conditions(value: object) -> Conditions:
    limits = dict.fromkeys(("load_average", "frequency_hz", "cpu_quota"), (0, 1e12))
    fields = checked_record(Conditions, value, "conditions", bound_workers=0, array_bytes=0, **limits)
    datetime.datetime.fromisoformat(fields["date"])
    return Conditions(**fields)
