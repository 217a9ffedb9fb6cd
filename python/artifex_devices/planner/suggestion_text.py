# SPDX-License-Identifier: Apache-2.0
"""Suggestions as tables, HTML and JSON."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from artifex_devices._base import html
from artifex_devices._base.text import bytes_text, seconds_text
from artifex_devices.planner.plan_text import facts_text, table_lines

if TYPE_CHECKING:
    from artifex_devices.planner.step_values import StepPlan
    from artifex_devices.planner.suggestion_values import Suggestion, Suggestions

_HEAD = ("", "mesh", "sharded", "step", "bound", "memory")


def memory_text(plan: StepPlan) -> str:
    """Formats the needed and the available memory of a device: "19.2 of 16.0 GiB"."""
    (needed, unit), available = bytes_text(plan.memory.total).split(" "), bytes_text(plan.memory.available)
    return f"{needed}{'' if available.endswith(f' {unit}') else f' {unit}'} of {available}"


def suggestions_text(found: Suggestions) -> str:
    """Formats the options as a table, the reasons for their order, then the search space."""
    facts = [*((place, each.why) for place, each in _places(found)), *_facts(found)]
    title = "\n".join([_title(found), *(f"  {line}" for line in table_lines(_HEAD, _rows(found)))])
    return facts_text(title, facts, (), ())


def suggestions_html(found: Suggestions) -> str:
    """Formats the same as HTML."""
    rows = [(*row, each.why) for row, (_, each) in zip(_rows(found), _places(found), strict=True)]
    return html.page(_title(found), html.table((*_HEAD, "why"), rows), html.facts(_facts(found)))


def _title(found: Suggestions) -> str:
    name = f"{found.model.name} on {found.cluster.name}"
    if found.fits:
        return f"{name}: best {len(found.options)} of {found.space.fit:,} shardings that fit in memory"
    return f"{name}: no sharding fits in memory"


def _places(found: Suggestions) -> list[tuple[str, Suggestion]]:
    """The options by number; "+" is the fastest that does not fit, "-" the one with the least memory."""
    places = [(str(place), each) for place, each in enumerate(found.options, 1)]
    rejected = (("+", found.too_large), ("-", found.smallest))
    return [*places, *((place, each) for place, each in rejected if each is not None)]


def _rows(found: Suggestions) -> list[tuple[str, ...]]:
    return [
        (
            place,
            " x ".join(f"{name} {size}" for name, size in each.plan.mesh_shape.items()),
            ", ".join(f"{axis}: {' '.join(axes)}" for axis, axes in each.rules.items()) or "nothing",
            seconds_text(each.plan.seconds.overlapped if found.overlap else each.plan.seconds.serial),
            each.plan.bound if found.overlap else each.plan.serial_bound,
            memory_text(each.plan),
        )
        for place, each in _places(found)
    ]


def _facts(found: Suggestions) -> list[tuple[str, str]]:
    space = found.space
    plan = next(each for each in (*found.options, found.smallest, found.too_large) if each is not None).plan
    return [
        ("seconds", f"of a step {'whose parts all overlap' if found.overlap else 'whose parts do not overlap'}"),
        (
            "searched",
            f"{space.options:,} options: {space.meshes} meshes of up to {space.max_axes} axes, each of which shards "
            f"any of {', '.join(space.axes)}",
        ),
        (
            "of these",
            f"{space.rules_unfit:,} do not divide or shard a tensor twice over one axis, {space.too_large:,} do not "
            f"fit in memory, {space.without_network:,} have groups that are not boxes of the cluster, {space.fit:,} "
            "fit",
        ),
        ("excluded", "; ".join(space.excluded)),
        ("from", plan.seconds_from.text),
    ]


def suggestions_json(found: Suggestions) -> str:
    """Formats all options with their plans, and the search space, as JSON."""
    rejected = {"too_large": found.too_large, "smallest": found.smallest}
    content = {
        "kind": "suggestions",
        "model": found.model.name,
        "cluster": found.cluster.name,
        "overlap": found.overlap,
        "options": [_content(each) for each in found.options],
        **{name: None if each is None else _content(each) for name, each in rejected.items()},
        "space": asdict(found.space),
    }
    return json.dumps(content, indent=1)


def _content(each: Suggestion) -> dict[str, Any]:
    return {
        "mesh": dict(each.plan.mesh_shape),
        "rules": each.rules,
        "order": each.order,
        "device_ids": [device.id for device in each.mesh.devices.flat],
        "why": each.why,
        "plan": json.loads(each.plan.to_json()),
    }
