# SPDX-License-Identifier: Apache-2.0
"""Plans of steps as tables, HTML and JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from artifex_devices._base import html
from artifex_devices._base.text import bytes_text, seconds_text
from artifex_devices.planner.plan_text import facts_text, picked

if TYPE_CHECKING:
    from artifex_devices.planner.step_values import StepPlan, StepRegime

_COLLECTIVES = ("collective", "of", "over", "times", "bytes", "seconds", "in the", "for", "how")
_MEMORY = ("parameters", "gradients", "optimizer", "activations", "given", "working")


def count_text(value: float) -> str:
    """Formats four digits and a unit of a thousand: "4.194M".

    Example:
        >>> count_text(4194304), count_text(468.1), count_text(7e9), count_text(float("inf"))
        ('4.194M', '468.1', '7G', 'inf')
    """
    for factor, unit in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k")):
        if factor <= value < math.inf:
            return f"{value / (1e3 if unit == 'k' else factor):.4g}{unit}"
    return f"{value:.4g}"


def axis_texts(names: Iterable[Any]) -> dict[Any, str]:
    """Returns the axes of a mesh as texts: their repr where two would look alike.

    Example:
        >>> axis_texts(("data", 0)), axis_texts((1, "1"))
        ({'data': 'data', 0: '0'}, {1: '1', '1': "'1'"})
    """
    known = list(names)
    texts = [str(name) for name in known]
    return {name: repr(name) if texts.count(text) > 1 else text for name, text in zip(known, texts, strict=True)}


def step_text(plan: StepPlan) -> str:
    """Formats the facts of a plan, then its collectives as a table."""
    return facts_text(step_title(plan), _facts(plan), _COLLECTIVES, _rows(plan))


def step_html(plan: StepPlan) -> str:
    """Formats a plan as HTML, with the roofline of a device where there are FLOPs."""
    picture = plan.to_svg()._repr_html_() if plan.flops else ""
    return html.page(step_title(plan), html.facts(_facts(plan)), html.table(_COLLECTIVES, _rows(plan)), picture)


def step_title(plan: StepPlan) -> str:
    """Formats model, tokens, mesh and cluster as one line."""
    kind = "training" if plan.model.is_training else "forward"
    texts = axis_texts(plan.mesh_shape)
    mesh = " x ".join(f"{texts[name]} {size}" for name, size in plan.mesh_shape.items())
    return f"{plan.model.name}, {kind} step of {count_text(plan.model.tokens)} tokens on {mesh} of {plan.cluster.name}"


def _facts(plan: StepPlan) -> list[tuple[str, str]]:
    memory, seconds = plan.memory, plan.seconds
    parts = ", ".join(f"{name} {bytes_text(getattr(memory, name))}" for name in _MEMORY if getattr(memory, name))
    largest, batch = plan.largest_batch, plan.model.batch_axes[0]
    if largest == 0:
        room = f"no {batch} fits"
    elif largest == math.inf:
        room = f"any {batch} fits"
    else:
        tokens = largest * plan.model.tokens / plan.model.batch
        room = f"largest {batch} that fits: {largest:.0f} ({count_text(tokens)} tokens)"
    texts = axis_texts(plan.mesh_shape)
    sharded = ", ".join(
        f"{axis}: {' '.join(texts[each] for each in axes)}" for axis, axes in plan.rules.items() if axes
    )
    return [
        ("sharded", sharded or "nothing"),
        (
            "memory",
            f"{bytes_text(memory.total)} of {bytes_text(memory.available)} on a device: "
            f"{'fits' if plan.fits else 'does not fit'}; {room}",
        ),
        ("", parts),
        ("FLOPs", f"{count_text(plan.flops)} on a device, {count_text(plan.tokens_per_device)} tokens each"),
        (
            "seconds",
            f"compute {seconds_text(seconds.compute)}, memory {seconds_text(seconds.memory)}, network "
            f"{seconds_text(seconds.network)}",
        ),
        (
            "step",
            f"{seconds_text(seconds.overlapped)} if all overlaps (bound by {plan.bound}, {plan.utilization:.1%} of the "
            f"peak), {seconds_text(seconds.serial)} if nothing does (bound by {plan.serial_bound}, "
            f"{plan.serial_utilization:.1%})",
        ),
        ("overlapping", _regimes_text(plan.regimes, plan.devices)),
        ("one by one", _regimes_text(plan.serial_regimes, plan.devices)),
        ("from", plan.seconds_from.text),
    ]


def _regimes_text(regimes: tuple[StepRegime, ...], devices: int) -> str:
    """Formats which bound applies from how many tokens on, in all and on each device."""
    texts = [
        each.bound
        if each.tokens_from == 0
        else f"{each.bound} from {count_text(each.tokens_from)} tokens ({count_text(each.tokens_from / devices)} each)"
        for each in regimes
    ]
    return ", ".join(texts)


def _rows(plan: StepPlan) -> list[tuple[str, ...]]:
    texts = axis_texts(plan.mesh_shape)
    return [
        (
            each.op.replace("_", "-"),
            f"gradient of {each.tensor}" if each.is_gradient else each.tensor,
            " ".join(texts[axis] for axis in each.axes),
            str(each.count),
            bytes_text(round(each.nbytes)),
            seconds_text(each.seconds),
            each.phase,
            each.operation,
            each.estimate.algorithm,
        )
        for each in plan.collectives
    ]


def _finite(value: float) -> float | None:
    """Returns None for infinity, which JSON does not have."""
    return None if math.isinf(value) else value


def _regimes_content(regimes: tuple[StepRegime, ...]) -> list[dict[str, Any]]:
    return [{**asdict(each), "tokens_to": _finite(each.tokens_to)} for each in regimes]


def step_json(plan: StepPlan) -> str:
    """Formats all numbers of a plan as JSON; null is infinity."""
    model, texts = plan.model, axis_texts(plan.mesh_shape)
    content = {
        "kind": "step",
        "model": model.name,
        "training": model.is_training,
        "tokens": model.tokens,
        "parameters": model.parameters,
        "cluster": plan.cluster.name,
        "mesh": {texts[name]: size for name, size in plan.mesh_shape.items()},
        "rules": {axis: [texts[each] for each in axes] for axis, axes in plan.rules.items()},
        "memory": picked(plan.memory, *_MEMORY, "total", "available"),
        "fits": plan.fits,
        "largest_batch": _finite(plan.largest_batch),
        "flops": plan.flops,
        "tokens_per_device": plan.tokens_per_device,
        "seconds": asdict(plan.seconds),
        "seconds_from": picked(plan.seconds_from, "kind", "text"),
        **picked(plan, "bound", "serial_bound", "utilization", "serial_utilization"),
        "compute_bound_tokens": _finite(plan.compute_bound_tokens),
        "regimes": _regimes_content(plan.regimes),
        "serial_regimes": _regimes_content(plan.serial_regimes),
        "update_bytes": plan.update_bytes,
        "products": [asdict(each) for each in plan.products],
        "collectives": [
            picked(each, "op", "tensor", "is_gradient", "is_parameter", "phase", "operation")
            | {"axes": [texts[axis] for axis in each.axes]}
            | picked(each, "devices", "count", "nbytes", "bytes_received", "seconds")
            | picked(each.estimate, "algorithm", "limit")
            for each in plan.collectives
        ],
    }
    return json.dumps(content, indent=1)
