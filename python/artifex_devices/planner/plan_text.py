# SPDX-License-Identifier: Apache-2.0
"""Plans as tables, HTML and JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from artifex_devices._base import html, svg
from artifex_devices._base.text import bytes_text, seconds_text
from artifex_devices._core import AbstractMesh

if TYPE_CHECKING:
    from artifex_devices.planner.plan_values import Algorithm, CollectivePlan, PlanStep, ReshardPlan

_BARS = 64  # devices in a bar chart
_STEPS = ("step", "devices", "all receive", "busiest receives", "shard", "time", "how")
_ALGORITHMS = ("algorithm", "time", "latency", "transfer", "waits for")

Facts = Sequence[tuple[str, str]]
Rows = Sequence[Sequence[str]]


def reshard_text(plan: ReshardPlan) -> str:
    """Formats the facts of a plan, then its steps as a table."""
    lines = facts_text(reshard_title(plan), _reshard_facts(plan), _STEPS, [_step_row(step) for step in plan.steps])
    return lines if plan.steps else f"{lines}\n  nothing to do: every device has its shard"


def collective_text(plan: CollectivePlan) -> str:
    """Formats the facts of a plan, then its algorithms as a table."""
    rows = [_algorithm_row(each) for each in plan.steps]
    return facts_text(_collective_title(plan), _collective_facts(plan), _ALGORITHMS, rows)


def reshard_html(plan: ReshardPlan) -> str:
    """Formats a plan as HTML, with a picture of both ends and a bar for the bytes that each device receives."""
    if has_devices(plan):
        picture = plan.to_svg()._repr_html_()
    else:
        picture = html.note("no picture: an AbstractMesh has no devices to draw")
    return html.page(
        reshard_title(plan),
        html.facts(_reshard_facts(plan)),
        html.table(_STEPS, [_step_row(step) for step in plan.steps]),
        picture,
        *_bars(plan),
    )


def has_devices(plan: ReshardPlan) -> bool:
    """Whether both ends have devices to draw, unlike an AbstractMesh."""
    return not any(isinstance(getattr(end, "mesh", None), AbstractMesh) for end in (plan.source, plan.destination))


def collective_html(plan: CollectivePlan) -> str:
    """Formats a plan as HTML."""
    rows = [_algorithm_row(each) for each in plan.steps]
    return html.page(_collective_title(plan), html.facts(_collective_facts(plan)), html.table(_ALGORITHMS, rows))


def facts_text(title: str, facts: Facts, head: Sequence[str], rows: Rows) -> str:
    """Formats a title, facts in two columns and a table, if it has rows."""
    width = max(len(name) for name, _ in facts)
    lines = [title, *(f"  {name:<{width}}  {text}" for name, text in facts)]
    return "\n".join([*lines, *(f"  {line}" for line in table_lines(head, rows))])


def table_lines(head: Sequence[str], rows: Rows) -> list[str]:
    """Formats columns as wide as their widest text; without rows there are no lines."""
    if not rows:
        return []
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    return [
        "  ".join(f"{text:<{width}}" for text, width in zip(row, widths, strict=True)).rstrip() for row in (head, *rows)
    ]


def _step_row(step: PlanStep) -> tuple[str, ...]:
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


def _end_text(sharding: Any) -> str:
    spec = getattr(sharding, "spec", None)
    return repr(sharding if spec is None else spec)


def reshard_title(plan: ReshardPlan) -> str:
    """Formats array, both ends and the number of devices as one line."""
    return (
        f"reshard of {plan.shape} {plan.dtype.name}: {_end_text(plan.source)} -> {_end_text(plan.destination)}, "
        f"{plan.destination.num_devices} devices"
    )


def _has_seconds(plan: ReshardPlan) -> bool:
    return all(step.estimate for step in plan.steps)


def _reshard_facts(plan: ReshardPlan) -> Facts:
    bound = plan.lower_bound
    links = ", ".join(f"{bytes_text(count)} {name}" for name, count in plan.bytes_by_link.items() if count)
    facts = [("strategy", plan.way + ("" if plan.other is None else f" (the other: {_other_text(plan.other)})"))]
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
    if _has_seconds(plan) and plan.seconds_from is not None:
        facts.append(("time", _time_text(plan.seconds, bound.estimate_seconds, plan.seconds_from.text)))
    else:
        missing = next((step.why_no_estimate for step in plan.steps if step.why_no_estimate), "")
        facts.append(("time", f"not known ({missing})" if missing else "0 s"))
    if plan.xla_answer:
        facts.append(("XLA", "gathers the global array on each device here (involuntary full rematerialization)"))
    return facts


def _time_text(seconds: float, bound: float | None, source: str) -> str:
    least = "" if bound is None else f", at least {seconds_text(bound)}"
    return f"{seconds_text(seconds)}{least} ({source})"


def _other_text(plan: ReshardPlan) -> str:
    time = f"{seconds_text(plan.seconds)}, " if _has_seconds(plan) else ""
    return f"{plan.way}, {time}{bytes_text(plan.busiest_bytes)} by the busiest device"


def _collective_title(plan: CollectivePlan) -> str:
    place = "this machine" if plan.cluster is None else plan.cluster.name
    return f"{plan.op} of {bytes_text(plan.nbytes)} by {plan.devices} devices of {place}"


def _collective_facts(plan: CollectivePlan) -> Facts:
    receiver = "the busiest device" if plan.op in ("broadcast", "permute") else "each device"
    return [
        ("axes", ", ".join(map(str, plan.axes)) + (f" ({plan.groups} groups)" if plan.groups > 1 else "")),
        ("bytes received", f"{bytes_text(round(plan.bytes_by_device))} by {receiver}"),
        ("memory", f"{bytes_text(round(plan.peak_bytes))} for input and result of a device"),
        ("time", _time_text(plan.seconds, plan.lower_bound.estimate_seconds, plan.seconds_from.text)),
    ]


def _algorithm_row(each: Algorithm) -> tuple[str, ...]:
    seconds = (each.seconds, each.estimate.latency, each.estimate.transfer)
    return each.name + (" (bound)" if each.is_bound else ""), *map(seconds_text, seconds), each.estimate.limit


def _bars(plan: ReshardPlan) -> tuple[str, ...]:
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


def reshard_json(plan: ReshardPlan) -> str:
    """Formats all numbers of a plan as JSON."""
    return json.dumps(_reshard_content(plan), indent=1)


def picked(value: Any, *names: str) -> dict[str, Any]:
    """Returns these attributes as a dict."""
    return {name: getattr(value, name) for name in names}


def _reshard_content(plan: ReshardPlan) -> dict[str, Any]:
    bound = plan.lower_bound
    return {
        "kind": "reshard",
        "shape": list(plan.shape),
        "dtype": plan.dtype.name,
        "source": repr(plan.source),
        "destination": repr(plan.destination),
        "cluster": None if plan.cluster is None else plan.cluster.name,
        "way": plan.way,
        "steps": [
            picked(step, "move", "text", "devices", "bytes_received", "busiest_bytes", "shard_bytes")
            | {name: getattr(step.estimate, name, None) for name in ("seconds", "algorithm", "limit")}
            for step in plan.steps
        ],
        "seconds": plan.seconds if _has_seconds(plan) and plan.seconds_from is not None else None,
        "seconds_from": None if plan.seconds_from is None else picked(plan.seconds_from, "kind", "text"),
        "bytes_by_device": dict(plan.bytes_by_device),
        "bytes_by_link": dict(plan.bytes_by_link),
        "bytes_copied": plan.bytes_copied,
        "peak_bytes": plan.peak_bytes,
        "lower_bound": {
            "bytes_by_device": dict(bound.bytes_by_device),
            "bytes_by_host": bound.bytes_by_host,
            "seconds": bound.estimate_seconds,
        },
        "is_cheapest": plan.is_cheapest,
        "xla_gathers_everything": plan.xla_answer,
        "why_xla_is_not_known": plan.why_xla_is_not_known,
        "other": None if plan.other is None else _reshard_content(plan.other),
        "why_no_other": plan.why_no_other,
    }


def collective_json(plan: CollectivePlan) -> str:
    """Formats all numbers of a plan as JSON."""
    bound = plan.lower_bound
    content = {
        "kind": "collective",
        "op": plan.op,
        "nbytes": plan.nbytes,
        "axes": [str(axis) for axis in plan.axes],
        "cluster": None if plan.cluster is None else plan.cluster.name,
        "devices": plan.devices,
        "groups": plan.groups,
        "algorithms": [asdict(each.estimate) | picked(each, "seconds", "is_bound") for each in plan.steps],
        "seconds": plan.seconds,
        "seconds_from": picked(plan.seconds_from, "kind", "text"),
        "bytes_by_device": plan.bytes_by_device,
        "peak_bytes": plan.peak_bytes,
        "lower_bound": picked(bound, "bytes_by_device", "bytes_by_chip", "bytes_by_slice")
        | {"seconds": bound.estimate_seconds},
    }
    return json.dumps(content, indent=1)
