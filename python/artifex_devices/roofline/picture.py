# SPDX-License-Identifier: Apache-2.0
"""Roofline plots: FLOP/s over FLOP for each byte, with points by batch size."""

from __future__ import annotations

import operator
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from artifex_devices import _core
from artifex_devices._base.public_path import public
from artifex_devices._base.safe_repr import shown
from artifex_devices._base.svg import Picture

if TYPE_CHECKING:
    from artifex_devices.roofline.measured import MeasuredRoofline
    from artifex_devices.roofline.model import Roofline

__all__ = ["RooflinePoint", "batch_points", "measured_svg", "roofline_svg"]


@public("artifex_devices.roofline")
@dataclass(frozen=True)
class RooflinePoint:
    """A computation in a roofline plot.

    Attributes:
        label: What stands beside it.
        flops_per_byte: FLOP for each byte that it moves.
        flops: FLOP/s that were measured; None: what the roofs allow.
    """

    label: str
    flops_per_byte: float
    flops: float | None = None


def batch_points(
    batches: Iterable[int], weight_bytes: float, activation_bytes: float, layer: Sequence[int] | None
) -> list[RooflinePoint]:
    """Points of X[batch, inputs] @ W[inputs, outputs] by batch; without `layer` of one that is far larger than that.

    Example:
        >>> [point.flops_per_byte for point in batch_points([1, 64], 2, 2, None)]
        [1.0, 64.0]
        >>> [round(point.flops_per_byte, 2) for point in batch_points([1, 64], 2, 2, (4096, 4096))]
        [1.0, 62.06]
    """
    if layer is not None and not isinstance(layer, Iterable):
        raise TypeError(
            f"to_svg: layer is of type {type(layer).__name__}; expected two sizes, inputs and outputs, got "
            f"{shown(layer)}; write layer=(4096, 16384)"
        )
    sizes = None if layer is None else [_whole("layer", size) for size in layer]
    if sizes is not None and len(sizes) != 2:
        raise ValueError(
            f"to_svg: layer is {shown(layer)}; expected two sizes, inputs and outputs; write layer=(4096, 16384)"
        )
    if not isinstance(batches, Iterable):
        raise TypeError(
            f"to_svg: batches is of type {type(batches).__name__}; expected a sequence of ints, got {shown(batches)}; "
            "write to_svg([1, 64])"
        )
    points = []
    for each in batches:
        batch = _whole("batches", each)
        moved = weight_bytes
        if sizes is not None:
            moved += activation_bytes * batch * (1 / sizes[0] + 1 / sizes[1])
        points.append(RooflinePoint(f"batch {batch}", 2 * batch / moved))
    return points


def roofline_svg(
    roof: Roofline, points: Sequence[RooflinePoint], network_bandwidth: float | None, notes: Sequence[str]
) -> Picture:
    """The plot of one hardware and number format."""
    roofs = [(roof.dtype, roof.peak_flops, False), ("memory", roof.memory_bandwidth, True)]
    if network_bandwidth is not None:
        roofs.append(("network, for each byte that crosses it", _rate(network_bandwidth), True))
    sources = (roof.peak_from, roof.bandwidth_from)
    told = list(dict.fromkeys(f"{each.kind}: {each.text}" for each in sources))
    title = f"roofline of {roof.hardware}, {roof.dtype}"
    return Picture(_core._roofline_svg(title, roofs, _told(points), [*notes, *told]))


def measured_svg(found: MeasuredRoofline) -> Picture:
    """The plot of all that was measured: a level for each number format."""
    fastest_first = sorted(found.peak_flops.items(), key=lambda each: -each[1].best)
    roofs = [(name, rate.best, False) for name, rate in fastest_first]
    roofs.append(("memory", found.bandwidth.best, True))
    rates = [*fastest_first, ("memory", found.bandwidth)]
    notes = [f"{name}: ±{100 * rate.relative_error:.0f} %, {rate.how}" for name, rate in rates]
    title = f"roofline of {found.scope} ({found.conditions.cpu_model})"
    return Picture(_core._roofline_svg(title, roofs, [], [*notes, f"measured {found.conditions.date}"]))


def _told(points: Sequence[Any]) -> list[tuple[str, float, float, bool, int]]:
    for each in points:
        if not isinstance(each, RooflinePoint) or not isinstance(each.label, str):
            raise TypeError(
                f"to_svg: a point is {shown(each)}; expected a RooflinePoint with a text as its label; correct it"
            )
    return [
        (each.label, float(each.flops_per_byte), float(each.flops or 0.0), each.flops is not None, -1)
        for each in points
    ]


def _whole(argument: str, value: Any) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(
            f"to_svg: {argument} has {shown(value)} ({type(value).__name__}); expected whole numbers; correct it"
        ) from None
    if not 1 <= number < 2**63:
        raise ValueError(f"to_svg: {argument} has {number}; expected 1 to 2**63 - 1; correct it")
    return number


def _rate(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(
            f"to_svg: network_bandwidth is {shown(value)} ({type(value).__name__}); expected bytes/s or None; say 45e9"
        )
    if not 0 < value <= sys.float_info.max:
        raise ValueError(f"to_svg: network_bandwidth is {shown(value)}; expected a finite number above 0; say 45e9")
    return float(value)
