# SPDX-License-Identifier: Apache-2.0
"""Plans of steps as tables, HTML and JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from artifex_devices._base.text import bytes_text, seconds_text
from artifex_devices.planner.plan_text import facts_html, table_lines

if TYPE_CHECKING:
    from artifex_devices.planner.step_values import StepCollective, StepPlan, StepRegime

_COLLECTIVES = ("collective", "of", "over", "times", "bytes", "seconds", "in the", "for", "how")
_MEMORY = ("parameters", "gradients", "optimizer", "activations", "given", "working")


def count_text(value: float) -> str:
    """Four digits and a unit of a thousand: "4.194M".

    Example:
        >>> count_text(4194304), count_text(468.1), count_text(7e9), count_text(float("inf"))
        ('4.194M', '468.1', '7G', 'inf')
    """
    for factor, unit in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k")):
        if factor <= value < math.inf:
            return f"{value / (1e3 if unit == 'k' else factor):.4g}{unit}"
    return f"{value:.4g}"


def axis_texts(names: Iterable[Any]) -> dict[Any, str]:
    """How axes of a mesh are written: as Python does where two would look alike.

    Example:
        >>> axis_texts(("data", 0)), axis_texts((1, "1"))
        ({'data': 'data', 0: '0'}, {1: '1', '1': "'1'"})
    """
    known = list(names)
    texts = [str(name) for name in known]
    return {name: repr(name) if texts.count(text) > 1 else text for name, text in zip(known, texts, strict=True)}


def step_text(plan: StepPlan) -> str:
    """The facts of a plan, then its collectives as a table."""
    rows = _facts(plan)
    width = max(len(name) for name, _ in rows)
    lines = [step_title(plan), *(f"  {name:<{width}}  {text}" for name, text in rows)]
    if plan.collectives:
        texts = axis_texts(plan.mesh_shape)
        lines += [f"  {line}" for line in table_lines(_COLLECTIVES, [_row(each, texts) for each in plan.collectives])]
    return "\n".join(lines)


def step_html(plan: StepPlan) -> str:
    """The same as HTML, with the roofline of a device where there are FLOPs."""
    picture = f'<div style="overflow-x:auto">{plan.to_svg()}</div>' if plan.flops else ""
    texts = axis_texts(plan.mesh_shape)
    rows = [_row(each, texts) for each in plan.collectives]
    return facts_html(step_title(plan), _facts(plan), _COLLECTIVES, rows, picture)


def step_title(plan: StepPlan) -> str:
    """Model, tokens, mesh and cluster on one line."""
    kind = "training" if plan.model.is_training else "forward"
    texts = axis_texts(plan.mesh_shape)
    mesh = " x ".join(f"{texts[name]} {size}" for name, size in plan.mesh_shape.items())
    return f"{plan.model.name}, {kind} step of {count_text(plan.model.tokens)} tokens on {mesh} of {plan.cluster.name}"


def _facts(plan: StepPlan) -> list[tuple[str, str]]:
    memory, seconds, devices = plan.memory, plan.seconds, plan.devices
    parts = ", ".join(f"{name} {bytes_text(getattr(memory, name))}" for name in _MEMORY if getattr(memory, name))
    largest = plan.largest_batch
    batch = plan.model.batch_axes[0]
    tokens = largest * plan.model.tokens / plan.model.batch
    room = (
        f"no {batch} fits"
        if largest == 0
        else f"largest {batch} that fits: {largest:.0f} ({count_text(tokens)} tokens)"
        if largest < math.inf
        else f"any {batch} fits"
    )
    texts = axis_texts(plan.mesh_shape)
    cut = ", ".join(f"{axis}: {' '.join(texts[each] for each in axes)}" for axis, axes in plan.rules.items() if axes)
    return [
        ("cut", cut or "nothing"),
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
        ("overlapping", _regimes_text(plan.regimes, devices)),
        ("one by one", _regimes_text(plan.serial_regimes, devices)),
        ("from", plan.seconds_from.text),
    ]


def _regimes_text(regimes: tuple[StepRegime, ...], devices: int) -> str:
    """Which bound holds from how many tokens on, in all and of each device."""
    texts = [
        each.bound
        if each.tokens_from == 0
        else f"{each.bound} from {count_text(each.tokens_from)} tokens ({count_text(each.tokens_from / devices)} each)"
        for each in regimes
    ]
    return ", ".join(texts)


def _row(each: StepCollective, texts: Mapping[Any, str]) -> tuple[str, ...]:
    return (
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


def _finite(value: float) -> float | None:
    """JSON has no infinity."""
    return None if math.isinf(value) else value


def _regimes_content(regimes: tuple[StepRegime, ...]) -> list[dict[str, Any]]:
    return [
        {"bound": each.bound, "tokens_from": each.tokens_from, "tokens_to": _finite(each.tokens_to)} for each in regimes
    ]


def step_json(plan: StepPlan) -> str:
    """All figures of a plan as JSON; null is infinity."""
    memory, seconds = plan.memory, plan.seconds
    texts = axis_texts(plan.mesh_shape)
    content = {
        "kind": "step",
        "model": plan.model.name,
        "training": plan.model.is_training,
        "tokens": plan.model.tokens,
        "parameters": plan.model.parameters,
        "cluster": plan.cluster.name,
        "mesh": {texts[name]: size for name, size in plan.mesh_shape.items()},
        "rules": {axis: [texts[each] for each in axes] for axis, axes in plan.rules.items()},
        "memory": {name: getattr(memory, name) for name in (*_MEMORY, "total", "available")},
        "fits": plan.fits,
        "largest_batch": _finite(plan.largest_batch),
        "flops": plan.flops,
        "tokens_per_device": plan.tokens_per_device,
        "seconds": {name: getattr(seconds, name) for name in ("compute", "memory", "network", "overlapped", "serial")},
        "seconds_from": {"kind": plan.seconds_from.kind, "text": plan.seconds_from.text},
        "bound": plan.bound,
        "serial_bound": plan.serial_bound,
        "utilization": plan.utilization,
        "serial_utilization": plan.serial_utilization,
        "compute_bound_tokens": _finite(plan.compute_bound_tokens),
        "regimes": _regimes_content(plan.regimes),
        "serial_regimes": _regimes_content(plan.serial_regimes),
        "update_bytes": plan.update_bytes,
        "products": [
            {
                "operation": each.operation,
                "kind": each.kind,
                "format": each.format,
                "flops": each.flops,
                "bytes": each.bytes,
                "seconds": each.seconds,
            }
            for each in plan.products
        ],
        "collectives": [
            {
                "op": each.op,
                "tensor": each.tensor,
                "is_gradient": each.is_gradient,
                "is_parameter": each.is_parameter,
                "phase": each.phase,
                "operation": each.operation,
                "axes": [texts[axis] for axis in each.axes],
                "devices": each.devices,
                "count": each.count,
                "nbytes": each.nbytes,
                "bytes_received": each.bytes_received,
                "seconds": each.seconds,
                "algorithm": each.estimate.algorithm,
                "limit": each.estimate.limit,
            }
            for each in plan.collectives
        ],
    }
    return json.dumps(content, indent=1)
