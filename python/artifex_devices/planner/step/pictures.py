# SPDX-License-Identifier: Apache-2.0
"""Roofline charts of steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from artifex_devices.planner.step.values import StepSeconds
from artifex_devices.roofline import RooflinePoint
from artifex_devices.roofline.chart import Mark, Roof, draw_roofline

if TYPE_CHECKING:
    from artifex_devices._base.charts import Axes


class StepPoint(NamedTuple):
    """A step of one device in a roofline chart."""

    name: str
    flops: float
    memory_bytes: float
    network_bytes: float
    bound: StepSeconds
    seconds: float


def plot_steps(
    title: str, peaks: Mapping[str, float], first: StepPoint, points: Sequence[StepPoint], ax: object
) -> Axes:
    """Draws the roofline of a device, with the FLOP/s that each step is expected to reach.

    `peaks` are FLOP/s by number format. The slopes of memory and network are taken from the `first` step.
    """
    roofs = [Roof(name, rate) for name, rate in peaks.items()]
    roofs.append(Roof("memory", first.memory_bytes / first.bound.memory, True))
    if first.bound.network > 0:
        roofs.append(Roof("network, for each byte received", first.network_bytes / first.bound.network, True))
    marks = []
    for each in points:
        rate = each.flops / each.seconds
        moved = [("memory", each.memory_bytes)]
        if each.bound.network > 0:
            moved.append(("network", each.network_bytes))
        marks += [
            Mark(RooflinePoint(f"{each.name}, {of}", each.flops / count, rate), slope, is_measured=False)
            for slope, (of, count) in enumerate(moved)
        ]
    notes = ["points of a step: FLOPs of a device for each byte of its memory, and for each byte that it receives"]
    return draw_roofline("StepPlan.plot", ax, title, roofs, marks, notes)
