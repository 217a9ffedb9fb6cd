# SPDX-License-Identifier: Apache-2.0
"""Plans as tables, HTML and JSON."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from artifex_devices._base.text import bytes_text, seconds_text

if TYPE_CHECKING:
    from artifex_devices.planner.plan_values import CollectivePlan, PlanStep, ReshardPlan

_BARS = 64  # devices that a picture shows at most


def reshard_text(plan: ReshardPlan) -> str:
    """The facts of a plan, then its steps as a table."""
    rows = [(name, text) for name, text in _reshard_facts(plan)]
    width = max(len(name) for name, _ in rows)
    lines = [reshard_title(plan), *(f"  {name:<{width}}  {text}" for name, text in rows)]
    return "\n".join([*lines, *(f"  {line}" for line in table_lines(_HEAD, [_step_row(step) for step in plan.steps]))])


def collective_text(plan: CollectivePlan) -> str:
    """The facts of a plan, then its algorithms as a table."""
    rows = _collective_facts(plan)
    width = max(len(name) for name, _ in rows)
    lines = [_collective_title(plan), *(f"  {name:<{width}}  {text}" for name, text in rows)]
    return "\n".join([*lines, *(f"  {line}" for line in table_lines(_ALGORITHMS, _algorithm_rows(plan)))])


def reshard_html(plan: ReshardPlan) -> str:
    """The same as HTML, with a picture of both ends and a bar for what each device receives."""
    from artifex_devices.planner.plan_picture import has_devices

    rows = [_step_row(step) for step in plan.steps]
    picture = (
        f'<div style="overflow-x:auto">{plan.to_svg()}</div>'
        if has_devices(plan)
        else '<div style="opacity:0.7">no picture: an AbstractMesh has no devices to draw</div>'
    )
    pictures = "\n".join([picture, _bars(plan)]).rstrip()
    return facts_html(reshard_title(plan), _reshard_facts(plan), _HEAD, rows, pictures)


def collective_html(plan: CollectivePlan) -> str:
    """The same as HTML."""
    return facts_html(_collective_title(plan), _collective_facts(plan), _ALGORITHMS, _algorithm_rows(plan))


def json_text(plan: ReshardPlan | CollectivePlan) -> str:
    """All figures of a plan as JSON."""
    from artifex_devices.planner.plan_values import ReshardPlan

    content = _reshard_content(plan) if isinstance(plan, ReshardPlan) else _collective_content(plan)
    return json.dumps(content, indent=1)


_HEAD = ("step", "devices", "all receive", "busiest receives", "shard", "time", "how")
_ALGORITHMS = ("algorithm", "time", "latency", "transfer", "waits for")


def _time_text(step: PlanStep) -> str:
    return "not known" if step.estimate is None else seconds_text(step.seconds)


def _step_row(step: PlanStep) -> tuple[str, ...]:
    before, after = step.shard_bytes
    return (
        step.text,
        str(step.devices),
        bytes_text(step.bytes_received),
        bytes_text(step.busiest_bytes),
        bytes_text(before) if before == after else f"{bytes_text(before)} -> {bytes_text(after)}",
        _time_text(step),
        "" if step.estimate is None else step.estimate.algorithm,
    )


def table_lines(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns as wide as their widest text."""
    if not rows:
        return ["nothing to do: every device has its shard"]
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    return [
        "  ".join(f"{text:<{width}}" for text, width in zip(row, widths, strict=True)).rstrip() for row in (head, *rows)
    ]


def _end_text(sharding: Any) -> str:
    spec = getattr(sharding, "spec", None)
    return repr(sharding) if spec is None else repr(spec)


def reshard_title(plan: ReshardPlan) -> str:
    """Array, both ends and the number of devices on one line."""
    return (
        f"reshard of {plan.shape} {plan.dtype.name}: {_end_text(plan.source)} -> {_end_text(plan.destination)}, "
        f"{plan.destination.num_devices} devices"
    )


def _reshard_facts(plan: ReshardPlan) -> list[tuple[str, str]]:
    bound = plan.lower_bound
    links = ", ".join(f"{bytes_text(count)} {name}" for name, count in plan.bytes_by_link.items() if count)
    facts = [("way", plan.way + ("" if plan.other is None else f" (the other: {_other_text(plan.other)})"))]
    if plan.why_no_other:
        facts.append(("no other way", plan.why_no_other))
    facts += [
        (
            "bytes received",
            f"{bytes_text(plan.bytes_received)} by all, {bytes_text(plan.busiest_bytes)} by the busiest device; at "
            f"least {bytes_text(bound.total_bytes)} and {bytes_text(bound.busiest_bytes)}",
        ),
        ("bytes copied", links or "none"),
        ("memory", f"{bytes_text(plan.peak_bytes)} on a device at most"),
    ]
    if all(step.estimate for step in plan.steps) and plan.seconds_from is not None:
        least = "" if bound.estimate_seconds is None else f", at least {seconds_text(bound.estimate_seconds)}"
        facts.append(("time", f"{seconds_text(plan.seconds)}{least} ({plan.seconds_from.text})"))
    else:
        missing = next((step.why_no_estimate for step in plan.steps if step.why_no_estimate), "")
        facts.append(("time", f"not known ({missing})" if missing else "0 s"))
    if plan.xla_answer:
        facts.append(("XLA", "gathers the whole array on each device here (involuntary full rematerialization)"))
    return facts


def _other_text(plan: ReshardPlan) -> str:
    time = f"{seconds_text(plan.seconds)}, " if all(step.estimate for step in plan.steps) else ""
    return f"{plan.way}, {time}{bytes_text(plan.busiest_bytes)} by the busiest device"


def _collective_title(plan: CollectivePlan) -> str:
    where = "this machine" if plan.cluster is None else plan.cluster.name
    return f"{plan.op} of {bytes_text(plan.nbytes)} by {plan.devices} devices of {where}"


def _collective_facts(plan: CollectivePlan) -> list[tuple[str, str]]:
    whom = "the busiest device" if plan.op in ("broadcast", "permute") else "each device"
    bound = plan.lower_bound.estimate_seconds
    least = "" if bound is None else f", at least {seconds_text(bound)}"
    return [
        ("axes", ", ".join(map(str, plan.axes)) + (f" ({plan.groups} groups)" if plan.groups > 1 else "")),
        ("bytes received", f"{bytes_text(round(plan.bytes_by_device))} by {whom}"),
        ("memory", f"{bytes_text(round(plan.peak_bytes))} for input and result of a device"),
        ("time", f"{seconds_text(plan.seconds)}{least} ({plan.seconds_from.text})"),
    ]


def _algorithm_rows(plan: CollectivePlan) -> list[tuple[str, ...]]:
    return [
        (
            each.name + (" (bound)" if each.is_bound else ""),
            seconds_text(each.seconds),
            seconds_text(each.estimate.latency),
            seconds_text(each.estimate.transfer),
            each.estimate.limit,
        )
        for each in plan.steps
    ]


def facts_html(
    title: str, facts: Sequence[tuple[str, str]], head: Sequence[str], rows: Sequence[Sequence[str]], picture: str = ""
) -> str:
    """A title, facts in two columns, a table and a picture."""
    cell = 'style="padding:0 1em 0 0;text-align:left"'
    parts = [
        '<div style="font-family:system-ui,sans-serif;font-size:13px;line-height:1.5">',
        f'<div style="font-weight:600">{html.escape(title)}</div>',
        '<div style="display:grid;grid-template-columns:max-content auto;column-gap:1em">',
        *(f'<div style="opacity:0.7">{html.escape(name)}</div><div>{html.escape(text)}</div>' for name, text in facts),
        "</div>",
    ]
    if rows:
        lines = [f"<tr>{''.join(f'<th {cell}>{html.escape(text)}</th>' for text in head)}</tr>"]
        lines += [f"<tr>{''.join(f'<td {cell}>{html.escape(text)}</td>' for text in row)}</tr>" for row in rows]
        parts.append(f'<div style="overflow-x:auto"><table>{"".join(lines)}</table></div>')
    return "\n".join([*parts, picture, "</div>"]) if picture else "\n".join([*parts, "</div>"])


def _bars(plan: ReshardPlan) -> str:
    """Received bytes of the first devices, with the least that each must receive as a line."""
    most = plan.busiest_bytes
    if most == 0:
        return ""
    devices = list(plan.bytes_by_device.items())[:_BARS]
    height, step = 60, 12
    bars = []
    for i, (device, count) in enumerate(devices):
        top = height - height * count / most
        least = height - height * plan.lower_bound.bytes_by_device.get(device, 0) / most
        bars.append(
            f'<rect x="{i * step}" y="{top:.4g}" width="9" height="{height - top:.4g}" fill="currentColor" '
            f'opacity="0.4"><title>device {device}: {html.escape(bytes_text(count))}</title></rect>'
            f'<path d="M{i * step},{least:.4g}h9" stroke="currentColor" fill="none"/>'
        )
    more = len(plan.bytes_by_device) - len(devices)
    caption = "bytes received by device; lines: the least possible" + (f"; {more} more devices" if more else "")
    return (
        f'<div style="overflow-x:auto"><svg width="{len(devices) * step}" height="{height + 2}" '
        f'viewBox="0 -1 {len(devices) * step} {height + 2}">{"".join(bars)}</svg>'
        f'<div style="opacity:0.7">{caption}</div></div>'
    )


def _source_content(plan: ReshardPlan | CollectivePlan) -> dict[str, Any] | None:
    found = plan.seconds_from
    return None if found is None else {"kind": found.kind, "text": found.text}


def _reshard_content(plan: ReshardPlan) -> dict[str, Any]:
    is_known = all(step.estimate for step in plan.steps)
    return {
        "kind": "reshard",
        "shape": list(plan.shape),
        "dtype": plan.dtype.name,
        "source": repr(plan.source),
        "destination": repr(plan.destination),
        "cluster": None if plan.cluster is None else plan.cluster.name,
        "way": plan.way,
        "steps": [
            {
                "move": step.move,
                "text": step.text,
                "devices": step.devices,
                "bytes_received": step.bytes_received,
                "busiest_bytes": step.busiest_bytes,
                "shard_bytes": list(step.shard_bytes),
                "seconds": None if step.estimate is None else step.seconds,
                "algorithm": None if step.estimate is None else step.estimate.algorithm,
                "limit": None if step.estimate is None else step.estimate.limit,
            }
            for step in plan.steps
        ],
        "seconds": plan.seconds if is_known and plan.seconds_from is not None else None,
        "seconds_from": _source_content(plan),
        "bytes_by_device": {str(device): count for device, count in plan.bytes_by_device.items()},
        "bytes_by_link": dict(plan.bytes_by_link),
        "bytes_copied": plan.bytes_copied,
        "peak_bytes": plan.peak_bytes,
        "lower_bound": {
            "bytes_by_device": {str(device): count for device, count in plan.lower_bound.bytes_by_device.items()},
            "bytes_by_host": list(plan.lower_bound.bytes_by_host),
            "seconds": plan.lower_bound.estimate_seconds,
        },
        "is_cheapest": plan.is_cheapest,
        "xla_gathers_everything": plan.xla_answer,
        "why_xla_is_not_known": plan.why_xla_is_not_known,
        "other": None if plan.other is None else _reshard_content(plan.other),
        "why_no_other": plan.why_no_other,
    }


def _collective_content(plan: CollectivePlan) -> dict[str, Any]:
    return {
        "kind": "collective",
        "op": plan.op,
        "nbytes": plan.nbytes,
        "axes": [str(axis) for axis in plan.axes],
        "cluster": None if plan.cluster is None else plan.cluster.name,
        "devices": plan.devices,
        "groups": plan.groups,
        "algorithms": [
            {
                "algorithm": each.name,
                "seconds": each.seconds,
                "latency": each.estimate.latency,
                "transfer": each.estimate.transfer,
                "limit": each.estimate.limit,
                "is_bound": each.is_bound,
            }
            for each in plan.steps
        ],
        "seconds": plan.seconds,
        "seconds_from": _source_content(plan),
        "bytes_by_device": plan.bytes_by_device,
        "peak_bytes": plan.peak_bytes,
        "lower_bound": {
            "bytes_by_device": plan.lower_bound.bytes_by_device,
            "bytes_by_chip": plan.lower_bound.bytes_by_chip,
            "bytes_by_slice": plan.lower_bound.bytes_by_slice,
            "seconds": plan.lower_bound.estimate_seconds,
        },
    }


def move_text(step: dict[str, Any], found: dict[str, Any]) -> str:
    """One step of a sequence of collectives, as the core found it, in words."""
    over = ", ".join(_axes_text([found["axes"][axis] for axis in step["axes"]], found["axes"]))
    if step["move"] == "slice":
        return f"slice dimension {step['to_dimension']} by {over}"
    if step["move"] == "all_to_all":
        return f"all-to-all over {over}: dimension {step['from_dimension']} to {step['to_dimension']}"
    if step["move"] == "all_gather":
        return f"all-gather dimension {step['from_dimension']} over {over}"
    return "permute shards"


def _axes_text(labels: list[str], known: list[str]) -> list[str]:
    """Parts of an axis that stand together, major to minor, under the axis's name."""
    result: list[str] = []
    at = 0
    while at < len(labels):
        name = labels[at].rpartition(".")[0]
        parts = [label for label in known if name and label.rpartition(".")[0] == name]
        if parts and labels[at : at + len(parts)] == parts:
            result.append(name)
            at += len(parts)
        else:
            result.append(labels[at])
            at += 1
    return result
