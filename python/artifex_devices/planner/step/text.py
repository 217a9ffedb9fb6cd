# SPDX-License-Identifier: Apache-2.0
"""Texts of plans of steps."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import asdict
from typing import Any

from artifex_devices._base.text import bytes_text, count_text, seconds_text
from artifex_devices._core import Cluster
from artifex_devices.planner.step.model import StepModel
from artifex_devices.planner.step.values import MEMORY_PARTS, ExpectedStep, StepCollective, StepMemory, StepRegime


def axis_texts(names: Iterable[Any]) -> dict[Any, str]:
    """Returns the axes of a mesh as texts: their repr where two would look alike.

    Example:
        >>> axis_texts(("data", 0)), axis_texts((1, "1"))
        ({'data': 'data', 0: '0'}, {1: '1', '1': "'1'"})
    """
    known = list(names)
    texts = [str(name) for name in known]
    return {name: repr(name) if texts.count(text) > 1 else text for name, text in zip(known, texts, strict=True)}


def step_title(model: StepModel, mesh_shape: Mapping[Hashable, int], cluster: Cluster) -> str:
    """Formats model, tokens, mesh and cluster as one line."""
    kind = "training" if model.is_training else "forward"
    texts = axis_texts(mesh_shape)
    mesh = " x ".join(f"{texts[name]} {size}" for name, size in mesh_shape.items())
    return f"{model.name}, {kind} step of {count_text(model.tokens)} tokens on {mesh} of {cluster.name}"


def largest_batch_text(model: StepModel, largest: float) -> str:
    """Formats the largest batch that fits, as `StepPlan.largest_batch` counts it."""
    batch = model.batch_axes[0]
    if largest == 0:
        return f"no {batch} fits"
    if largest == math.inf:
        return f"any {batch} fits"
    return f"largest {batch} that fits: {largest:.0f} ({count_text(largest * model.tokens / model.batch)} tokens)"


def memory_parts_text(memory: StepMemory) -> str:
    """Formats the bytes of each part that has any."""
    return ", ".join(f"{name} {bytes_text(getattr(memory, name))}" for name in MEMORY_PARTS if getattr(memory, name))


def expected_parts_text(expected: ExpectedStep) -> str:
    """Formats the parts of the expected seconds."""
    names = {"once": "each step", "layers": "launches", "weights": "collectives of weights",
             "activations": "collectives of activations"}  # fmt: skip
    parts = {name: value for name, value in asdict(expected).items() if name not in ("hidden", "overlapped", "serial")}
    texts = [f"{names.get(name, name)} {seconds_text(value)}" for name, value in parts.items() if value > 0]
    hidden = f"; {seconds_text(expected.hidden)} of it hidden" if expected.hidden > 0 else ""
    return ", ".join(texts) + hidden


def collective_row(collective: StepCollective, axes: Mapping[Any, str]) -> tuple[str, ...]:
    """Formats a collective as a row of a table; `axes` are the texts of the mesh's axes."""
    return (
        collective.op.replace("_", "-"),
        f"gradient of {collective.tensor}" if collective.is_gradient else collective.tensor,
        " ".join(axes[axis] for axis in collective.axes),
        str(collective.count),
        bytes_text(round(collective.nbytes)),
        seconds_text(collective.seconds),
        collective.phase,
        collective.operation,
        collective.estimate.algorithm,
    )


def regimes_text(regimes: tuple[StepRegime, ...], devices: int) -> str:
    """Formats which bound applies from how many tokens on, in all and on each device."""
    texts = [
        each.bound
        if each.tokens_from == 0
        else f"{each.bound} from {count_text(each.tokens_from)} tokens ({count_text(each.tokens_from / devices)} each)"
        for each in regimes
    ]
    return ", ".join(texts)
