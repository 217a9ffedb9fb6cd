# SPDX-License-Identifier: Apache-2.0
"""Roofline plots: FLOP/s over FLOP for each byte, with points by batch size."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from artifex_devices import _core
from artifex_devices._base.checks import MAX_DIMENSIONS, bounded_list, check_int, check_number, check_type, wrong_value
from artifex_devices._base.public_path import public
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._base.svg import Picture

if TYPE_CHECKING:
    from artifex_devices.roofline.measured import MeasuredRoofline
    from artifex_devices.roofline.model import Roofline


@public("artifex_devices.roofline")
@dataclass(frozen=True)
class RooflinePoint:
    """A computation in a roofline plot.

    Attributes:
        label: Text beside the point.
        flops_per_byte: FLOP for each byte that it moves.
        flops: Measured FLOP/s; None puts the point on the limit.
    """

    label: str
    flops_per_byte: float
    flops: float | None = None


def batch_points(
    batches: Iterable[int], weight_bytes: float, activation_bytes: float, layer: Sequence[int] | None
) -> list[RooflinePoint]:
    """Points of X[batch, inputs] @ W[inputs, outputs] by batch; `layer` None means a layer far larger than the batch.

    Example:
        >>> [point.flops_per_byte for point in batch_points([1, 64], 2, 2, None)]
        [1.0, 64.0]
        >>> [round(point.flops_per_byte, 2) for point in batch_points([1, 64], 2, 2, (4096, 4096))]
        [1.0, 62.06]
    """
    sizes = None
    if layer is not None:
        expected, fix = "two sizes, inputs and outputs", "write layer=(4096, 16384)"
        check_type("to_svg", "layer", layer, Iterable, expected, fix)
        sizes = [_size("layer", size) for size in bounded_list("to_svg", "layer", layer, MAX_DIMENSIONS)]
        if len(sizes) != 2:
            raise wrong_value("to_svg", "layer", layer, expected, fix)
    check_type("to_svg", "batches", batches, Iterable, "a sequence of ints", "write to_svg([1, 64])")
    points = []
    for each in bounded_list("to_svg", "batches", batches):
        batch = _size("batches", each)
        moved = weight_bytes
        if sizes is not None:
            moved += activation_bytes * batch * (1 / sizes[0] + 1 / sizes[1])
        points.append(RooflinePoint(f"batch {batch}", 2 * batch / moved))
    return points


def roofline_svg(
    roof: Roofline, points: Sequence[Any], network_bandwidth: float | None, notes: Sequence[str]
) -> Picture:
    """The plot of one hardware and number format."""
    roofs = [(roof.dtype, roof.peak_flops, False), ("memory", roof.memory_bandwidth, True)]
    if network_bandwidth is not None:
        fix = "write network_bandwidth=45e9"
        check_number("to_svg", "network_bandwidth", network_bandwidth, fix, above=0, expected="bytes/s or None")
        roofs.append(("network, for each byte that crosses it", float(network_bandwidth), True))
    rows = []
    for each in points:
        if not isinstance(each, RooflinePoint) or not isinstance(each.label, str):
            raise TypeError(
                f"to_svg: a point is {safe_repr(each)}; expected a RooflinePoint with a str as its label; correct it"
            )
        rows.append((each.label, float(each.flops_per_byte), float(each.flops or 0.0), each.flops is not None, -1))
    sources = dict.fromkeys(f"{each.kind}: {each.text}" for each in (roof.peak_from, roof.bandwidth_from))
    title = f"roofline of {roof.hardware}, {roof.dtype}"
    return Picture(_core._roofline_svg(title, roofs, rows, [*notes, *sources]))


def measured_svg(found: MeasuredRoofline) -> Picture:
    """The plot of a measurement: a level for each number format."""
    fastest_first = sorted(found.peak_flops.items(), key=lambda each: -each[1].best)
    roofs = [(name, rate.best, False) for name, rate in fastest_first]
    roofs.append(("memory", found.bandwidth.best, True))
    rates = [*fastest_first, ("memory", found.bandwidth)]
    notes = [f"{name}: ±{100 * rate.relative_error:.0f} %, {rate.how}" for name, rate in rates]
    title = f"roofline of {found.scope} ({found.conditions.cpu_model})"
    return Picture(_core._roofline_svg(title, roofs, [], [*notes, f"measured {found.conditions.date}"]))


def _size(argument: str, value: Any) -> int:
    name, most = f"a value of {argument}", 2**63 - 1
    return check_int("to_svg", name, value, minimum=1, maximum=most, expected="a whole number")
