# SPDX-License-Identifier: Apache-2.0
"""Search for the configuration of a training run that suits a model on a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from artifex_devices._base.checks import check_bool, check_int
from artifex_devices._core import Cluster
from artifex_devices.planner.arguments import check_given
from artifex_devices.planner.shape import TransformerShape
from artifex_devices.planner.training.arguments import checked_efficiency
from artifex_devices.planner.training.choice import TrainingChoice
from artifex_devices.planner.training.choices import TrainingSuggestions
from artifex_devices.planner.training.config import TrainingConfig
from artifex_devices.planner.training.efficiency import Efficiency
from artifex_devices.planner.training.plan import planned
from artifex_devices.planner.training.space import find_configs


def suggest_configs(
    model: TransformerShape,
    cluster: Cluster,
    *,
    batch: Any,
    sequence: Any,
    top: int,
    max_tensor: int | None,
    device_counts: Iterable[int] | None,
    efficiency: Efficiency | None,
    progress: bool,
    pinned: Mapping[str, object],
) -> TrainingSuggestions:
    """Finds the fastest configurations of a training run that fit in memory; `suggest` describes the arguments."""
    name = "suggest"
    check_given(name, batch, sequence)
    factors = checked_efficiency(name, efficiency, cluster)
    count = check_int(name, "top", top, minimum=1, maximum=1000)
    check_bool(name, "progress", progress)
    found = find_configs(
        model, cluster, factors, pinned, batch=batch, sequence=sequence, top=count,
        max_tensor=max_tensor, device_counts=device_counts, progress=bool(progress),
    )  # fmt: skip

    def choices(configs: Iterable[tuple[TrainingConfig, int]]) -> tuple[TrainingChoice, ...]:
        return tuple(TrainingChoice(planned(model, cluster, config, factors, devices)) for config, devices in configs)

    front, nearest = _front(choices(found.front)), choices(found.nearest)
    options = tuple(replace(each, same=same) for each, same in zip(choices(found.options), found.same, strict=True))
    return TrainingSuggestions(model, cluster, found.config, options, front, nearest, found.ways_out, found.space)


def _front(choices: Iterable[TrainingChoice]) -> tuple[TrainingChoice, ...]:
    """Returns the choices that no other one beats in seconds, memory and devices, without near equals.

    A slower choice with as many devices counts only where it saves a twentieth of the memory.
    """

    def numbers(each: TrainingChoice) -> tuple[float, float, int]:
        return (each.plan.seconds, each.plan.memory, each.plan.devices)

    kept: list[TrainingChoice] = []
    for each in sorted(choices, key=numbers):
        own = numbers(each)
        if not any(other.plan.devices <= own[2] and 0.95 * other.plan.memory <= own[1] for other in kept):
            kept.append(each)
    return tuple(kept)
