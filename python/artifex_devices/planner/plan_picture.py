# SPDX-License-Identifier: Apache-2.0
"""Pictures of reshards."""

from __future__ import annotations

from artifex_devices import _core
from artifex_devices._base.svg import Picture
from artifex_devices._base.text import bytes_text, seconds_text
from artifex_devices.planner.plan_text import reshard_title
from artifex_devices.planner.plan_values import ReshardPlan, bytes_shape


def reshard_svg(plan: ReshardPlan) -> Picture:
    """Draws both ends with the steps between them, and for direct copies the bytes between devices."""
    picture = _core._reshard_svg(
        reshard_title(plan),
        _steps(plan),
        bytes_shape(plan.shape, plan.dtype, plan.source, plan.destination, plan.cluster)[0],
        plan.dtype.itemsize,
        plan.source,
        plan.destination,
        plan.cluster,
        plan.way == "copies",
        list(plan.bytes_by_link.items()),
    )
    return Picture(picture)


def _steps(plan: ReshardPlan) -> list[str]:
    if not plan.steps:
        return ["nothing to do"]
    lines = []
    for step in plan.steps:
        lines.append(step.text)
        time = "" if step.estimate is None else f", {seconds_text(step.seconds)}"
        lines.append(f"{bytes_text(step.busiest_bytes)} into the busiest{time}")
    return lines
