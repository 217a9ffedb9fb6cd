# SPDX-License-Identifier: Apache-2.0
"""Texts and bars of plans of reshards."""

from __future__ import annotations

from collections.abc import Sequence

from artifex_devices._base import html, svg
from artifex_devices._base.text import bytes_text, seconds_text
from artifex_devices.planner.reshard.device_bytes import DeviceBytes
from artifex_devices.planner.reshard.values import LowerBound, PlanStep

_BARS = 64  # devices in a bar chart
STEP_COLUMNS = ("step", "devices", "all receive", "busiest receives", "shard", "time", "how")


def row_of(step: PlanStep) -> tuple[str, ...]:
    """Returns the cells of STEP_COLUMNS."""
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


def picture_lines(steps: Sequence[PlanStep]) -> list[str]:
    """Returns two lines for each step."""
    lines = []
    for step in steps:
        time = "" if step.estimate is None else f", {seconds_text(step.seconds)}"
        lines += [step.text, f"{bytes_text(step.busiest_bytes)} into the busiest{time}"]
    return lines or ["nothing to do"]


def received_bars(bytes_by_device: DeviceBytes, bound: LowerBound) -> tuple[str, ...]:
    """Draws the received bytes of the first devices, with the least that each must receive as a line."""
    most = bytes_by_device.most
    if most == 0:
        return ()
    devices = list(bytes_by_device.items())[:_BARS]
    height, step = 60, 12
    bars = []
    for i, (device, count) in enumerate(devices):
        top = 1 + height - height * count / most
        least = 1 + height - height * bound.bytes_by_device.get(device, 0) / most
        bars.append(
            f'<rect x="{i * step}" y="{top:.4g}" width="9" height="{height + 1 - top:.4g}" fill-opacity="0.4">'
            f"<title>device {device}: {bytes_text(count)}</title></rect>"
            f'<path d="M{i * step},{least:.4g}h9" stroke="currentColor" fill="none"/>\n'
        )
    more = len(bytes_by_device) - len(devices)
    caption = "bytes received by device; lines: the least possible" + (f"; {more} more devices" if more else "")
    picture = svg.draw("bytes received by device", len(devices) * step, height + 2, "".join(bars))
    return picture._repr_html_(), html.note(caption)
