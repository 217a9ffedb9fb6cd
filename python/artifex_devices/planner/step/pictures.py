# SPDX-License-Identifier: Apache-2.0
"""Roofline charts of plans of steps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from artifex_devices._base.checks import wrong_type
from artifex_devices.planner.step.text import step_title
from artifex_devices.roofline import RooflinePoint
from artifex_devices.roofline.chart import Mark, Roof, draw_roofline

if TYPE_CHECKING:
    from artifex_devices._base.charts import Axes
    from artifex_devices.planner.step.values import StepPlan


def plot_step(plan: StepPlan, others: Any, ax: Any) -> Axes:
    """Draws the roofline of a device, with the FLOP/s that each plan reaches."""
    found: list[Any] = list(others) if isinstance(others, Iterable) else [None]
    if not all(isinstance(each, type(plan)) for each in found):
        fix = "write plan.plot([other])"
        raise wrong_type("StepPlan.plot", "others", others, "StepPlans of other batches", fix)
    plans: list[StepPlan] = sorted([plan, *found], key=lambda each: each.model.batch)
    for each in plans:
        if (each.cluster, each.mesh_shape, each.rules) != (plan.cluster, plan.mesh_shape, plan.rules):
            raise ValueError(
                f"StepPlan.plot: a plan of {step_title(each)} has another mesh or other rules; expected those of "
                f"{step_title(plan)}; plan them with the same mesh and rules"
            )
    roofs = [Roof(name, rate) for name, rate in _peaks(plan).items()]
    roofs.append(Roof("memory", _memory_bytes(plan) / plan.seconds.memory, True))
    if plan.seconds.network > 0:
        roofs.append(Roof("network, for each byte received", _network_bytes(plan) / plan.seconds.network, True))
    marks = []
    for each in plans:
        rate = each.flops / each.seconds.overlapped
        moved = [_memory_bytes(each), *([_network_bytes(each)] if each.seconds.network > 0 else [])]
        marks += [
            Mark(RooflinePoint(f"batch {each.model.batch}", each.flops / count, rate), slope, is_measured=False)
            for slope, count in enumerate(moved)
        ]
    notes = ["two points for each step: FLOPs of a device for each byte of its memory, and for each byte received"]
    return draw_roofline("StepPlan.plot", ax, step_title(plan), roofs, marks, notes)


def _peaks(plan: StepPlan) -> dict[str, float]:
    """Returns the FLOP/s of the number formats in use, the one with the most FLOPs first."""
    flops: dict[str, float] = {}
    peaks: dict[str, float] = {}
    for product in plan.products:
        if product.seconds > 0:
            flops[product.format] = flops.get(product.format, 0.0) + product.flops
            peaks[product.format] = product.flops / product.seconds
    return {name: peaks[name] for name in sorted(peaks, key=lambda name: -flops[name])}


def _memory_bytes(plan: StepPlan) -> float:
    return sum(product.bytes for product in plan.products) + plan.update_bytes


def _network_bytes(plan: StepPlan) -> float:
    return sum(each.bytes_received * each.count for each in plan.collectives)
