# SPDX-License-Identifier: Apache-2.0
"""Roofline plots of steps, with a point for each batch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from artifex_devices import _core
from artifex_devices._base.checks import wrong_type
from artifex_devices._base.svg import Picture
from artifex_devices.planner.step_text import step_title

if TYPE_CHECKING:
    from artifex_devices.planner.step_values import StepPlan


def step_svg(plan: StepPlan, others: Iterable[StepPlan]) -> Picture:
    """Draws the roofline of a device, with the FLOP/s that each plan reaches."""
    plans = sorted([plan, *_plans(others, type(plan))], key=lambda each: each.model.batch)
    for each in plans:
        if (each.cluster, each.mesh_shape, each.rules) != (plan.cluster, plan.mesh_shape, plan.rules):
            raise ValueError(
                f"StepPlan.to_svg: a plan of {step_title(each)} has another mesh or other rules; expected those of "
                f"{step_title(plan)}; plan them with the same mesh and rules"
            )
    roofs = [(name, rate, False) for name, rate in _peaks(plan).items()]
    memory = len(roofs)
    roofs.append(("memory", _memory_bytes(plan) / plan.seconds.memory, True))
    if plan.seconds.network > 0:
        roofs.append(("network, for each byte received", _network_bytes(plan) / plan.seconds.network, True))
    points = []
    for each in plans:
        rate = each.flops / each.seconds.overlapped
        label = f"batch {each.model.batch}"
        points.append((label, each.flops / _memory_bytes(each), rate, False, memory))
        if each.seconds.network > 0:
            points.append((label, each.flops / _network_bytes(each), rate, False, memory + 1))
    notes = ["two points for each step: FLOPs of a device for each byte of its memory, and for each byte received"]
    return Picture(_core._roofline_svg(step_title(plan), roofs, points, notes))


def _plans(others: Any, kind: type[StepPlan]) -> list[StepPlan]:
    found: list[Any] = list(others) if isinstance(others, Iterable) else [None]
    if not all(isinstance(each, kind) for each in found):
        fix = "write plan.to_svg([other])"
        raise wrong_type("StepPlan.to_svg", "others", others, "StepPlans of other batches", fix)
    return found


def _peaks(plan: StepPlan) -> dict[str, float]:
    """FLOP/s of the number formats in use, the one with the most FLOPs first."""
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
