# SPDX-License-Identifier: Apache-2.0
"""Suggestions as tables, HTML and JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from artifex_devices._base.text import seconds_text
from artifex_devices.planner.plan_text import facts_html, table_lines
from artifex_devices.planner.suggestion_reasons import memory_text

if TYPE_CHECKING:
    from artifex_devices.planner.suggestion_values import Suggestion, Suggestions

__all__ = ["suggestions_html", "suggestions_json", "suggestions_text"]

_HEAD = ("", "mesh", "cut", "step", "bound", "memory")


def suggestions_text(found: Suggestions) -> str:
    """The options as a table, why each is where it is, then what was searched."""
    rows = _rows(found)
    facts = [*((place, each.why) for place, each in _places(found)), *_facts(found)]
    width = max(len(name) for name, _ in facts)
    lines = [_title(found), *(f"  {line}" for line in table_lines(_HEAD, rows))]
    return "\n".join([*lines, *(f"  {name:<{width}}  {text}" for name, text in facts)])


def suggestions_html(found: Suggestions) -> str:
    """The same as HTML."""
    rows = [(*row, each.why) for row, (_, each) in zip(_rows(found), _places(found), strict=True)]
    return facts_html(_title(found), _facts(found), (*_HEAD, "why"), rows)


def _title(found: Suggestions) -> str:
    best = f"best {len(found.options)} of {found.space.fit:,} ways" if found.fits else "no way that fits"
    return f"{found.model.name} on {found.cluster.name}: {best} to cut it"


def _places(found: Suggestions) -> list[tuple[str, Suggestion]]:
    """The options by number; "+" is the fastest that does not fit, "-" the one with the least memory."""
    places = [(str(place), each) for place, each in enumerate(found.options, 1)]
    rejected = (("+", found.too_large), ("-", found.smallest))
    return [*places, *((place, each) for place, each in rejected if each is not None)]


def _rows(found: Suggestions) -> list[tuple[str, ...]]:
    return [_row(place, each, found.overlap) for place, each in _places(found)]


def _row(place: str, each: Suggestion, overlap: bool) -> tuple[str, ...]:
    plan = each.plan
    seconds = plan.seconds.overlapped if overlap else plan.seconds.serial
    return (
        place,
        " x ".join(f"{name} {size}" for name, size in plan.mesh_shape.items()),
        ", ".join(f"{axis}: {' '.join(axes)}" for axis, axes in each.rules.items()) or "nothing",
        seconds_text(seconds),
        plan.bound if overlap else plan.serial_bound,
        memory_text(plan),
    )


def _facts(found: Suggestions) -> list[tuple[str, str]]:
    space = found.space
    plan = next(each for each in (*found.options, found.smallest, found.too_large) if each is not None).plan
    return [
        ("seconds", f"of a step {'whose parts all overlap' if found.overlap else 'whose parts do not overlap'}"),
        (
            "searched",
            f"{space.options:,} options: {space.meshes} meshes of up to {space.max_axes} axes, each of which cuts any "
            f"of {', '.join(space.axes)}",
        ),
        (
            "of these",
            f"{space.rules_unfit:,} do not divide or cut a tensor twice by one axis, {space.too_large:,} do not fit in "
            f"memory, {space.without_network:,} have groups that are no boxes of the cluster, {space.fit:,} fit",
        ),
        ("excluded", "; ".join(space.excluded)),
        ("from", plan.seconds_from.text),
    ]


def suggestions_json(found: Suggestions) -> str:
    """All options with their plans, and the space."""
    space = found.space
    content = {
        "kind": "suggestions",
        "model": found.model.name,
        "cluster": found.cluster.name,
        "overlap": found.overlap,
        "options": [_content(each) for each in found.options],
        "too_large": None if found.too_large is None else _content(found.too_large),
        "smallest": None if found.smallest is None else _content(found.smallest),
        "space": {
            "axes": list(space.axes),
            "max_axes": space.max_axes,
            "meshes": space.meshes,
            "options": space.options,
            "rules_unfit": space.rules_unfit,
            "without_network": space.without_network,
            "too_large": space.too_large,
            "fit": space.fit,
            "excluded": list(space.excluded),
        },
    }
    return json.dumps(content, indent=1)


def _content(each: Suggestion) -> dict[str, Any]:
    return {
        "mesh": dict(each.plan.mesh_shape),
        "rules": {axis: list(axes) for axis, axes in each.rules.items()},
        "order": each.order,
        "device_ids": [device.id for device in each.mesh.devices.flat],
        "why": each.why,
        "plan": json.loads(each.plan.to_json()),
    }
