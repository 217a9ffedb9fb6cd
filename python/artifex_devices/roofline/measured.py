# SPDX-License-Identifier: Apache-2.0
"""What a measurement of the machine's CPU devices found, as values that can be written down and read again."""

from __future__ import annotations

import dataclasses
import datetime
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from artifex_devices._array.html import page
from artifex_devices._base.public_path import public
from artifex_devices._base.safe_repr import shown
from artifex_devices._base.state_validation import checked_count, checked_fields, checked_number, checked_text
from artifex_devices._base.svg import Picture

__all__ = ["Conditions", "MeasuredRoofline", "Rate"]

_FEW = 3  # from so many repeats on the spread is known
_ERROR_OF_FEW = 0.25


@public("artifex_devices.roofline")
@dataclass(frozen=True)
class Rate:
    """A measured rate, in FLOP/s or bytes/s.

    Attributes:
        best: The highest of the repeats: what the hardware can do, as other work only ever slows it down.
        median: The middle one.
        spread: Distance of the quartiles.
        relative_error: By how much of itself `best` may be wrong: the largest of a floor (5 % for FLOP/s, 10 % for
            bytes/s: clocks, placement in memory, neighbours on the host), the distance from the best to the third
            best repeat, and what the best repeat missed of the CPU time that it could have had.
        repeats: How many there are: stretches of time, each of many calls.
        how: What was run.
    """

    best: float
    median: float
    spread: float
    relative_error: float
    repeats: int
    how: str

    def agrees_with(self, other: Rate) -> bool:
        """Whether the two differ by no more than their errors together.

        Raises:
            TypeError: `other` is no Rate.
        """
        if not isinstance(other, Rate):
            raise TypeError(
                f"agrees_with: other is {shown(other)} ({type(other).__name__}); expected a Rate; give one of "
                "measure_roofline(), say found.bandwidth"
            )
        return abs(self.best - other.best) <= self.best * self.relative_error + other.best * other.relative_error


def rate_of(rates: Sequence[float], shares: Sequence[float], *, expected_share: float, floor: float, how: str) -> Rate:
    """The Rate that repeats give.

    Args:
        rates: Of each repeat.
        shares: Part of each repeat in which the workers had a CPU.
        expected_share: What a quota leaves of it; 1 without one.
        floor: Least relative error.
        how: What was run.
    """
    if not rates or max(rates) <= 0:
        raise RuntimeError(
            f"measure_roofline: no repeat of {how!r} ended in time; expected at least one; give it more seconds or "
            "free the machine"
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
    """Under which the rates were measured. What the system does not say is None.

    Attributes:
        date: UTC, ISO 8601.
        cpu_model: What the processor calls itself.
        isa: Instruction set of the product: "baseline", "avx2", "avx512".
        workers: Threads that worked at the same time.
        bound_workers: Of these, those that the system keeps on the device's cores.
        devices_sharing: Devices of this world on the same cores: when all are busy each has its part of the rates. 1
            where all devices were measured together.
        together: Whether all devices of the process were measured at the same time; else the others were given no work.
        load_average: Of the last minute, before.
        frequency_hz: Of a core, before.
        cpu_quota: CPUs that the cgroup leaves.
        array_bytes: Of each of the three arrays that were streamed over.
        cache_bytes: Last-level caches of the cores.
        numpy_version: Of the NumPy at hand.
        library_version: Of this package.
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
class MeasuredRoofline:
    """Measured rates of one CPU device, or of all of the process together.

    Attributes:
        scope: "cpu:0", or "all CPU devices".
        peak_flops: The best FLOP/s by dtype: "float32" and "float64".
        products: By dtype, what each way of multiplying reached.
        bandwidth: The best bytes/s, as STREAM counts them.
        streams: What each loop over memory reached.
        conditions: Under which it was measured.
        from_cache: Whether it was read from the cache, not measured now.
        notes: What a reader must know: what could not be measured, large errors, where it is kept or why not.
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
        """Lines of text: rates with their errors, how, and when."""
        lines = [f"{self.scope}: {self.conditions.cpu_model}, {self.conditions.workers} workers"]
        for dtype, rate in self.peak_flops.items():
            lines.append(f"  {dtype} {rate.best / 1e9:.1f} GFLOP/s ±{100 * rate.relative_error:.0f} %, {rate.how}")
        rate = self.bandwidth
        lines.append(f"  memory {rate.best / 1e9:.1f} GB/s ±{100 * rate.relative_error:.0f} %, {rate.how}")
        lines.append(f"  measured {self.conditions.date}{', kept from then' if self.from_cache else ''}")
        return "\n".join(lines + [f"  {note}" for note in self.notes])

    def to_svg(self) -> Picture:
        """A stand-alone SVG picture: the roofline of each number format."""
        from artifex_devices.roofline.picture import measured_svg

        return measured_svg(self)

    def _repr_html_(self) -> str:
        title, *lines = str(self).splitlines()
        return page(title, [], picture=self.to_svg(), text="\n".join(lines))

    def __reduce__(self) -> tuple[Any, ...]:
        return _with, (self.to_dict(), self.from_cache, self.notes)

    def to_dict(self) -> dict[str, Any]:
        """All numbers as dicts, lists, strings and numbers; `from_dict` reads them again."""
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
        """The best of each becomes the limit.

        Args:
            scope: "cpu:0", or "all CPU devices".
            products: By dtype, one Rate or more.
            streams: One Rate or more.
            conditions: Under which they were measured.
            notes: What a reader must know.

        Raises:
            TypeError: An argument is of another type.
            ValueError: There is no dtype, or a dtype or the streams have no rate.
        """
        _check_parts(scope, products, streams, conditions, notes)
        return cls(
            scope=scope,
            peak_flops=MappingProxyType({name: max(rates, key=_best) for name, rates in products.items()}),
            products=MappingProxyType({name: tuple(rates) for name, rates in products.items()}),
            bandwidth=max(streams, key=_best),
            streams=tuple(streams),
            conditions=conditions,
            notes=tuple(notes),
        )

    @classmethod
    def from_dict(cls, told: Any) -> MeasuredRoofline:
        """Reads what `to_dict` gave.

        Raises:
            ValueError: If anything is missing, too much, of another type, or no number that can have been measured.
        """
        fields = checked_fields(told, {"scope", "products", "streams", "conditions"}, "from_dict: the measurement")
        products = checked_fields(fields["products"], {"float32", "float64"}, "products")
        return cls.from_rates(
            checked_text(fields["scope"], "scope"),
            {dtype: _rates(products[dtype], dtype) for dtype in ("float32", "float64")},
            _rates(fields["streams"], "streams"),
            _conditions(fields["conditions"]),
        )


def _with(told: Any, from_cache: bool, notes: tuple[str, ...]) -> MeasuredRoofline:
    return dataclasses.replace(MeasuredRoofline.from_dict(told), from_cache=from_cache, notes=notes)


def _check_parts(scope: Any, products: Any, streams: Any, conditions: Any, notes: Any) -> None:
    """All that is wrong at once."""
    wrong = [
        f"{name} is {shown(value)} ({type(value).__name__}), expected a {kind.__name__}"
        for name, value, kind in (
            ("scope", scope, str),
            ("products", products, Mapping),
            ("conditions", conditions, Conditions),
        )
        if not isinstance(value, kind)
    ]
    named = [(f"products[{shown(dtype)}]", rates) for dtype, rates in products.items()] if not wrong else []
    for name, rates in (*named, ("streams", streams)):
        if not isinstance(rates, Sequence) or not all(isinstance(rate, Rate) for rate in rates):
            wrong.append(f"{name} is {shown(rates)} ({type(rates).__name__}), expected a sequence of Rates")
    if isinstance(notes, str) or not isinstance(notes, Sequence) or not all(isinstance(note, str) for note in notes):
        wrong.append(f"notes is {shown(notes)} ({type(notes).__name__}), expected a sequence of texts")
    if wrong:
        raise TypeError(f"from_rates: {'; '.join(wrong)}; give what measure_roofline() found")
    empty = [name for name, rates in (*named, ("streams", streams)) if len(rates) == 0]
    if empty or not named:
        raise ValueError(
            f"from_rates: {', '.join(empty) or 'products'} is empty; expected one Rate or more; give what "
            "measure_roofline() found"
        )


def _best(rate: Rate) -> float:
    return rate.best


def _rates(value: Any, what: str) -> list[Rate]:
    if not isinstance(value, list) or not 1 <= len(value) <= 16:
        raise ValueError(f"{what} is no list of rates")
    made = []
    for each in value:
        told = checked_fields(each, {field.name for field in dataclasses.fields(Rate)}, f"a rate of {what}")
        best = checked_number(told["best"], "best", 1e3, 1e19)
        made.append(
            Rate(
                best,
                checked_number(told["median"], "median", 0, best),
                checked_number(told["spread"], "spread", 0, best),
                checked_number(told["relative_error"], "relative_error", 0, 1e3),
                checked_count(told["repeats"], "repeats", 1),
                checked_text(told["how"], "how"),
            )
        )
    return made


def _conditions(value: Any) -> Conditions:
    told = dict(checked_fields(value, {field.name for field in dataclasses.fields(Conditions)}, "conditions"))
    date = checked_text(told["date"], "date")
    datetime.datetime.fromisoformat(date)
    for name in ("cpu_model", "isa", "numpy_version", "library_version"):
        checked_text(told[name], name)
    for name in ("workers", "devices_sharing"):
        checked_count(told[name], name, 1)
    for name in ("bound_workers", "array_bytes"):
        checked_count(told[name], name, 0)
    if not isinstance(told["together"], bool):
        raise ValueError("together is no bool")
    for name in ("load_average", "frequency_hz", "cpu_quota"):
        if told[name] is not None:
            told[name] = checked_number(told[name], name, 0, 1e12)
    if told["cache_bytes"] is not None:
        checked_count(told["cache_bytes"], "cache_bytes", 1)
    return Conditions(**told)
