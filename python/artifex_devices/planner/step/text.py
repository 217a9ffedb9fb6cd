# SPDX-License-Identifier: Apache-2.0
"""Texts of plans of steps."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from artifex_devices._base.text import bytes_text, count_text, seconds_text
from artifex_devices.planner.report import Layout

if TYPE_CHECKING:
    from artifex_devices.planner.step.values import StepPlan, StepRegime

_COLLECTIVES = ("collective", "of", "over", "times", "bytes", "seconds", "in the", "for", "how")
MEMORY_PARTS = ("parameters", "gradients", "optimizer", "activations", "given", "working")


def axis_texts(names: Iterable[Any]) -> dict[Any, str]:
    """Returns the axes of a mesh as texts: their repr where two would look alike.

    Example:
        >>> axis_texts(("data", 0)), axis_texts((1, "1"))
        ({'data': 'data', 0: '0'}, {1: '1', '1': "'1'"})
    """
    known = list(names)
    texts = [str(name) for name in known]
    return {name: repr(name) if texts.count(text) > 1 else text for name, text in zip(known, texts, strict=True)}


def step_layout(plan: StepPlan) -> Layout:
    """Formats the facts of a plan, and its collectives as a table."""
    memory, seconds = plan.memory, plan.seconds
    parts = ", ".join(f"{name} {bytes_text(getattr(memory, name))}" for name in MEMORY_PARTS if getattr(memory, name))
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
    facts = [
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
    rows = [
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
    return Layout(step_title(plan), facts, _COLLECTIVES, rows)


def step_title(plan: StepPlan) -> str:
    """Formats model, tokens, mesh and cluster as one line."""
    kind = "training" if plan.model.is_training else "forward"
    texts = axis_texts(plan.mesh_shape)
    mesh = " x ".join(f"{texts[name]} {size}" for name, size in plan.mesh_shape.items())
    return f"{plan.model.name}, {kind} step of {count_text(plan.model.tokens)} tokens on {mesh} of {plan.cluster.name}"


def _regimes_text(regimes: tuple[StepRegime, ...], devices: int) -> str:
    """Formats which bound applies from how many tokens on, in all and on each device."""
    texts = [
        each.bound
        if each.tokens_from == 0
        else f"{each.bound} from {count_text(each.tokens_from)} tokens ({count_text(each.tokens_from / devices)} each)"
        for each in regimes
    ]
    return ", ".join(texts)
