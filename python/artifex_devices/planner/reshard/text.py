# SPDX-License-Identifier: Apache-2.0
"""Texts and bars of plans of reshards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from artifex_devices._base import html, svg
from artifex_devices._base.text import bytes_text, seconds_text
from artifex_devices.planner.collective import time_text
from artifex_devices.planner.report import Layout

if TYPE_CHECKING:
    from artifex_devices.planner.reshard.values import PlanStep, ReshardPlan

_BARS = 64  # devices in a bar chart
_STEPS = ("step", "devices", "all receive", "busiest receives", "shard", "time", "how")


def reshard_layout(plan: ReshardPlan) -> Layout:
    """Formats the facts of a plan, and its steps as a table."""
    bound = plan.lower_bound
    links = ", ".join(f"{bytes_text(count)} {name}" for name, count in plan.bytes_by_link.items() if count)
    strategy, other = plan.way, plan.other
    if other is not None:
        time = f"{seconds_text(other.seconds)}, " if all(step.estimate for step in other.steps) else ""
        strategy += f" (the other: {other.way}, {time}{bytes_text(other.busiest_bytes)} by the busiest device)"
    facts = [("strategy", strategy)]
    if plan.why_no_other:
        facts.append(("no other strategy", plan.why_no_other))
    facts += [
        (
            "bytes received",
            f"{bytes_text(plan.bytes_received)} by all, {bytes_text(plan.busiest_bytes)} by the busiest device; at "
            f"least {bytes_text(bound.total_bytes)} and {bytes_text(bound.busiest_bytes)}",
        ),
        ("bytes copied", links or "none"),
        ("memory", f"{bytes_text(plan.peak_bytes)} on a device at most"),
    ]
    if plan.seconds_from is not None and all(step.estimate for step in plan.steps):
        facts.append(("time", time_text(plan.seconds, bound.estimate_seconds, plan.seconds_from)))
    else:
        missing = next((step.why_no_estimate for step in plan.steps if step.why_no_estimate), "")
        facts.append(("time", f"not known ({missing})" if missing else "0 s"))
    if plan.xla_answer:
        facts.append(("XLA", "gathers the global array on each device here (involuntary full rematerialization)"))
    ends = " -> ".join(repr(getattr(end, "spec", end)) for end in (plan.source, plan.destination))
    title = f"reshard of {plan.shape} {plan.dtype.name}: {ends}, {plan.destination.num_devices} devices"
    return Layout(title, facts, _STEPS, [_row(step) for step in plan.steps])


def _row(step: PlanStep) -> tuple[str, ...]:
    before, after = map(bytes_text, step.shard_bytes)
    return (
        step.text,
        str(step.devices),
        bytes_text(step.bytes_received),
        bytes_text(step.busiest_bytes),
        before if before == after else f"{before} -> {after}",
        "not known" if step.estimate is None else seconds_text(step.seconds),
        "" if step.estimate is None else step.estimate.algorithm,
    )


def picture_lines(plan: ReshardPlan) -> list[str]:
    """Returns two lines for each step."""
    lines = []
    for step in plan.steps:
        time = "" if step.estimate is None else f", {seconds_text(step.seconds)}"
        lines += [step.text, f"{bytes_text(step.busiest_bytes)} into the busiest{time}"]
    return lines or ["nothing to do"]


def received_bars(plan: ReshardPlan) -> tuple[str, ...]:
    """Draws the received bytes of the first devices, with the least that each must receive as a line."""
    most = plan.busiest_bytes
    if most == 0:
        return ()
    devices = list(plan.bytes_by_device.items())[:_BARS]
    height, step = 60, 12
    bars = []
    for i, (device, count) in enumerate(devices):
        top = 1 + height - height * count / most
        least = 1 + height - height * plan.lower_bound.bytes_by_device.get(device, 0) / most
        bars.append(
            f'<rect x="{i * step}" y="{top:.4g}" width="9" height="{height + 1 - top:.4g}" fill-opacity="0.4">'
            f"<title>device {device}: {bytes_text(count)}</title></rect>"
            f'<path d="M{i * step},{least:.4g}h9" stroke="currentColor" fill="none"/>\n'
        )
    more = len(plan.bytes_by_device) - len(devices)
    caption = "bytes received by device; lines: the least possible" + (f"; {more} more devices" if more else "")
    picture = svg.draw("bytes received by device", len(devices) * step, height + 2, "".join(bars))
    return picture._repr_html_(), html.note(caption)
