# SPDX-License-Identifier: Apache-2.0
"""Roofline charts: FLOP/s over FLOP for each byte, with points by batch size."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from math import log10
from typing import TYPE_CHECKING, Any, NamedTuple

from artifex_devices._base.charts import axes_for
from artifex_devices._base.checks import (
    MAX_DIMENSIONS,
    bounded_list,
    check_int,
    check_number,
    check_type,
    failure,
    wrong_value,
)
from artifex_devices._base.public_path import public
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._base.text import rate_text

if TYPE_CHECKING:
    from artifex_devices._base.charts import Axes


@public("artifex_devices.roofline")
@dataclass(frozen=True)
class RooflinePoint:
    """A computation in a roofline chart.

    Attributes:
        label: Text next to the point.
        flops_per_byte: FLOP for each byte that it moves.
        flops: Measured FLOP/s, or None to put the point on the limit.
    """

    label: str
    flops_per_byte: float
    flops: float | None = None


def batch_points(
    batches: Iterable[int], weight_bytes: float, activation_bytes: float, layer: Sequence[int] | None
) -> list[RooflinePoint]:
    """Returns points of X[batch, inputs] @ W[inputs, outputs] by batch; `layer` None means far more weights than batch.

    Example:
        >>> [point.flops_per_byte for point in batch_points([1, 64], 2, 2, None)]
        [1.0, 64.0]
        >>> [round(point.flops_per_byte, 2) for point in batch_points([1, 64], 2, 2, (4096, 4096))]
        [1.0, 62.06]
    """
    sizes = None
    if layer is not None:
        expected, fix = "two sizes, inputs and outputs", "write layer=(4096, 16384)"
        check_type("Roofline.plot", "layer", layer, Iterable, expected, fix)
        sizes = [_size("layer", size) for size in bounded_list("Roofline.plot", "layer", layer, MAX_DIMENSIONS)]
        if len(sizes) != 2:
            raise wrong_value("Roofline.plot", "layer", layer, expected, fix)
    check_type("Roofline.plot", "batches", batches, Iterable, "a sequence of ints", "write plot([1, 64])")
    points = []
    for each in bounded_list("Roofline.plot", "batches", batches):
        batch = _size("batches", each)
        moved = weight_bytes
        if sizes is not None:
            moved += activation_bytes * batch * (1 / sizes[0] + 1 / sizes[1])
        points.append(RooflinePoint(f"batch {batch}", 2 * batch / moved))
    return points


class Roof(NamedTuple):
    """A limit: FLOP/s of a number format, or bytes/s of a memory or a network."""

    name: str
    rate: float
    is_per_byte: bool = False


class Mark(NamedTuple):
    """A point of a chart: below a slope, by its number. Filled if it is measured."""

    point: RooflinePoint
    slope: int = 0
    is_measured: bool = True


def draw_roofline(
    operation: str, ax: object, title: str, roofs: Sequence[Roof], marks: Sequence[Mark], notes: Iterable[str] = ()
) -> Axes:
    """Draws roofs in logarithmic axes, their ridge points with the first level, and points.

    The first level and the first slope have solid lines. A point without FLOP/s is on its slope.
    """
    slopes = [roof for roof in roofs if roof.is_per_byte]
    level = next(roof for roof in roofs if not roof.is_per_byte)
    ridges = [level.rate / slope.rate for slope in slopes]
    reach = [ridge * factor for ridge in ridges for factor in (1 / 30, 10)]
    reach += [mark.point.flops_per_byte for mark in marks]
    low, high = min(reach), max(reach)
    legend = {
        (): [],
        (True,): ["points are measured"],
        (False,): ["points are predicted by the model"],
        (False, True): ["filled points are measured, hollow ones are predicted by the model"],
    }[tuple(sorted({mark.is_measured for mark in marks}))]
    chart = axes_for(operation, ax, title, [*legend, *notes])
    chart.loglog()
    colours = {}
    for roof in roofs:
        style = "-" if roof in (level, slopes[0]) else "--"
        if roof.is_per_byte:
            ridge = level.rate / roof.rate
            label = f"{roof.name}: {rate_text(roof.rate, 'B/s')}, ridge point at {ridge:.4g} FLOP per byte"
            (line,) = chart.plot([low, ridge], [low * roof.rate, level.rate], style, label=label)
            chart.vlines(ridge, 0, level.rate, colors=line.get_color(), linestyles="dotted")
        else:
            label = f"{roof.name}: {rate_text(roof.rate, 'FLOP/s')}"
            (line,) = chart.plot([min(ridges) if roof is level else low, high], [roof.rate] * 2, style, label=label)
        colours[roof] = line.get_color()
    drawn: list[tuple[float, float, int]] = []
    for point, number, is_measured in marks:
        slope = slopes[number]
        height = min(level.rate, slope.rate * point.flops_per_byte) if point.flops is None else point.flops
        fill = colours[slope] if is_measured else "none"
        chart.plot([point.flops_per_byte], [height], "o", color=colours[slope], markerfacecolor=fill)
        place = (point.flops_per_byte, height)
        is_right = place[0] ** 4 > low * high**3  # in the last quarter of the axis; the label is to the left then
        near = [
            row
            for x, y, row in drawn
            if abs(log10(x / place[0])) < log10(high / low) / 3 and abs(log10(y / height)) < 0.2
        ]
        row = next(row for row in count() if row not in near)  # labels of points next to each other are in rows
        drawn.append((*place, row))
        chart.annotate(
            point.label,
            place,
            (-6 if is_right else 6, -10 * (1 + row)),
            textcoords="offset points",
            ha="right" if is_right else "left",
            fontsize="small",
        )
    chart.set_xlabel("FLOP for each byte that moves")
    chart.set_ylabel("FLOP/s")
    chart.legend(fontsize="small", loc="lower right")
    chart.grid(alpha=0.3)
    return chart


def plot_roofline(
    title: str,
    limits: Sequence[Roof],
    points: Sequence[Any],
    network_bandwidth: float | None,
    notes: Iterable[str],
    ax: object,
) -> Axes:
    """Draws the chart of one hardware and number format."""
    roofs = list(limits)
    if network_bandwidth is not None:
        fix = "write network_bandwidth=45e9"
        check_number("Roofline.plot", "network_bandwidth", network_bandwidth, fix, above=0, expected="bytes/s or None")
        roofs.append(Roof("network, for each byte that crosses it", float(network_bandwidth), True))
    for each in points:
        if not isinstance(each, RooflinePoint) or not isinstance(each.label, str):
            raise failure(
                TypeError,
                "Roofline.plot",
                f"a point is {safe_repr(each)}",
                expected="a RooflinePoint with a str as its label",
                fix="correct it",
            )
        for name in ("flops_per_byte", "flops"):
            if name != "flops" or each.flops is not None:
                check_number("Roofline.plot", f"{name} of {each.label}", getattr(each, name), above=0)
    marks = [Mark(each, is_measured=each.flops is not None) for each in points]
    return draw_roofline("Roofline.plot", ax, title, roofs, marks, notes)


def _size(argument: str, value: object) -> int:
    name, most = f"a value of {argument}", 2**63 - 1
    return check_int("Roofline.plot", name, value, minimum=1, maximum=most, expected="a whole number")
