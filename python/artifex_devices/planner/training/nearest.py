# SPDX-License-Identifier: Apache-2.0
"""The nearest configurations that fit in memory, for a plan that does not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from artifex_devices.planner.training.config import RECOMPUTES, TrainingConfig
from artifex_devices.planner.training.search import SEARCHED, largest_tensor, plan_on, suggest_training
from artifex_devices.planner.training.values import TrainingPlan

_MOST = 5
_DERIVED = ("data", "overlap")
_FOUND = (
    *(name for name in SEARCHED if name != "optimizer"),
    "data",
    "expert_tensor",
    "sequence_parallel",
    "schedule",
    "recompute_layers",
    "batch",
    "sequence",
)


class NearestFits(NamedTuple):
    """Plans that fit, fastest first; without any, changes of the model's input or the cluster that would fit."""

    plans: tuple[TrainingPlan, ...]
    ways_out: tuple[str, ...]

    def content(self, config: TrainingConfig) -> list[dict[str, Any]]:
        """Returns what each plan changes in a configuration, with its bytes and expected seconds."""
        return [
            {"changes": changes(config, plan.config), "memory": plan.memory, "seconds": plan.seconds}
            for plan in self.plans
        ]


def changes(before: TrainingConfig, after: TrainingConfig) -> dict[str, Any]:
    """Returns the fields that differ, with their later values; without `data`, which follows from the others."""
    found = {name: value for name, value in vars(after).items() if value != getattr(before, name)}
    if (before.expert_tensor or 1) == (after.expert_tensor or 1):  # None means 1
        found.pop("expert_tensor", None)
    return {name: value for name, value in found.items() if name not in _DERIVED}


def nearest_fits(plan: TrainingPlan) -> NearestFits:
    """Returns the nearest configurations that fit.

    These are the smallest changes of one field with which the plan fits. Where no single field is enough, a search over
    all of them finds the fastest configurations; where it finds none, it says what else would fit.
    """
    found = [fitting for choices in _single_changes(plan) if (fitting := _first_fit(plan, choices)) is not None]
    if found:
        return NearestFits(tuple(sorted(found, key=lambda each: each.seconds)[:_MOST]), ())
    config = plan.config
    kept = {name: value for name, value in vars(config).items() if name not in _FOUND}
    kept["overlap"] = config._unusual_overlap()
    searched = suggest_training(
        plan.shape, plan.cluster, batch=config.batch, sequence=config.sequence, top=3, memory_headroom=0.0,
        device_counts=[plan.devices], efficiency=plan.efficiency, progress=False, **kept,
    )  # fmt: skip
    return NearestFits(tuple(choice.plan for choice in searched.options), searched.ways_out)


def _first_fit(plan: TrainingPlan, choices: Iterator[dict[str, Any]]) -> TrainingPlan | None:
    for change in choices:
        try:
            changed = plan.config.replaced(data=None, **change)
            found = plan_on(plan.shape, plan.cluster, changed, plan.efficiency, plan.devices)
        except ValueError:  # the change does not suit the model, the batch or the cluster
            continue
        if found.fits:
            return found
    return None


def _single_changes(plan: TrainingPlan) -> Iterator[Iterator[dict[str, Any]]]:
    """Yields the changes of each field, the smallest one first."""
    config, shape, devices = plan.config, plan.shape, plan.devices
    stronger = RECOMPUTES[RECOMPUTES.index(config.recompute) + 1 :]
    yield ({"recompute": each} for each in stronger if each == "full" or not config.flash_attention)
    if config.recompute_layers is not None:
        yield iter([{"recompute_layers": None}])
    if config.recompute == "full" and config.recompute_method == "block":
        yield ({"recompute_method": "uniform", "recompute_layers": each} for each in (2, 4))
    yield ({"zero": each} for each in range(config.zero + 1, 4))
    if config.zero_shards is not None:
        yield iter([{"zero_shards": None}])
    smaller = range(config.microbatch - 1, 0, -1)
    yield ({"microbatch": each} for each in smaller if config.microbatch % each == 0)
    most = largest_tensor(plan.cluster, None)
    more = {} if config.tensor > 1 else {"sequence_parallel": True}
    wider = range(config.tensor + 1, min(most, shape.heads) + 1)
    yield ({"tensor": each, **more} for each in wider if shape.heads % each == 0)
    if config.tensor > 1 and not config.sequence_parallel:
        yield iter([{"sequence_parallel": True}])
    yield ({"context": config.context << i} for i in range(1, 5))
    longer = range(config.pipeline + 1, min(devices, shape.layers) + 1)
    yield ({"pipeline": each} for each in longer if devices % each == 0)
    if config.schedule != "1f1b":
        yield iter([{"schedule": "1f1b", "chunks": 1}])
    yield ({"expert": each} for each in range(config.expert + 1, shape.experts + 1) if shape.experts % each == 0)
    for name in ("offload_optimizer", "offload_activations"):
        yield iter([{name: not getattr(config, name)}])
