# SPDX-License-Identifier: Apache-2.0
"""The nearest configurations that fit in memory, for a plan that does not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from artifex_devices._base.text import bytes_text, seconds_text
from artifex_devices._core import Cluster
from artifex_devices.planner.shape import TransformerShape
from artifex_devices.planner.training.config import RECOMPUTES, TrainingConfig
from artifex_devices.planner.training.efficiency import Efficiency
from artifex_devices.planner.training.frameworks import LOSSES
from artifex_devices.planner.training.space import SEARCHED, find_configs, largest_tensor
from artifex_devices.planner.training.spelling import Spelling, changes
from artifex_devices.planner.training.values import TrainingStage

_MOST = 5
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


class Plan(Protocol):
    """Arguments of a TrainingPlan."""

    @property
    def model(self) -> TransformerShape:
        """Sizes of the model."""

    @property
    def cluster(self) -> Cluster:
        """The devices."""

    @property
    def config(self) -> TrainingConfig:
        """Configuration, with `data` derived."""

    @property
    def efficiency(self) -> Efficiency:
        """Factors of the expected seconds."""

    @property
    def devices(self) -> int:
        """Number of devices."""

    @property
    def stages(self) -> tuple[TrainingStage, ...]:
        """Pipeline stages, first to last."""

    @property
    def memory(self) -> int:
        """Bytes of a device of the fullest stage."""

    @property
    def needed(self) -> int:
        """Bytes that a device must have."""

    @property
    def seconds(self) -> float:
        """Expected seconds of a step."""

    @property
    def fits(self) -> bool:
        """Whether all stages fit in memory."""

    def _with_config(self, config: TrainingConfig) -> Plan: ...


class NearestFits(NamedTuple):
    """Plans that fit, fastest first; without any, changes of the model's input or the cluster that would fit."""

    plans: tuple[Plan, ...]
    ways_out: tuple[Mapping[str, object], ...]

    def content(self, config: TrainingConfig) -> list[dict[str, Any]]:
        """Returns what each plan changes in a configuration, with its bytes and expected seconds."""
        return [
            {
                "changes": changes(config, plan.config),
                "memory": plan.memory,
                "needed": plan.needed,
                "seconds": plan.seconds,
            }
            for plan in self.plans
        ]

    def facts(self, plan: Plan, spell: Spelling) -> list[tuple[str, str]]:
        """Formats them for a plan that may not fit."""
        texts = [
            f"{spell(found['changes'])}: {bytes_text(found['needed'])}, {seconds_text(found['seconds'])} (model)"
            for found in self.content(plan.config)
        ]
        texts += (way_text(way, spell) for way in self.ways_out)
        if not plan.fits and not texts:
            texts = ["no configuration that was tried, on this cluster or on one of up to 64 times its size"]
        return [("fits with" if i == 0 else "", text) for i, text in enumerate(texts)]


def way_text(way: Mapping[str, object], spell: Spelling) -> str:
    """Formats a change that would make a run fit: "sequence=4096", "32 devices"."""
    return f"{way['devices']} devices" if "devices" in way else spell(way)


def nearest_fits(plan: Plan) -> NearestFits:
    """Returns the nearest configurations that fit; none where the plan fits itself.

    They are the smallest changes of one field that make the plan fit. Where no single field is enough, a search over
    all of them finds the fastest configurations; where it finds none, it reports what else would fit.
    """
    if plan.fits:
        return NearestFits((), ())
    found = [fitting for choices in _single_changes(plan) if (fitting := _first_fit(plan, choices)) is not None]
    if found:
        return NearestFits(tuple(sorted(found, key=lambda each: each.seconds)[:_MOST]), ())
    config = plan.config
    kept = {name: value for name, value in vars(config).items() if name not in _FOUND}
    kept["overlap"] = config._unusual_overlap()
    searched = find_configs(
        plan.model, plan.cluster, plan.efficiency, kept, batch=config.batch, sequence=config.sequence, top=3,
        device_counts=[plan.devices],
    )  # fmt: skip
    usual = {name: getattr(config, name) for name in ("attention_kernel", "context_balanced")}
    options = tuple(plan._with_config(chosen.replaced(**usual)) for chosen, _ in searched.options)
    return NearestFits(options, searched.ways_out)


def _first_fit(plan: Plan, choices: Iterator[dict[str, object]]) -> Plan | None:
    for change in choices:
        try:
            found = plan._with_config(plan.config.replaced(data=None, **change))
        except ValueError:  # the change does not suit the model, the batch or the cluster
            continue
        if found.fits:
            return found
    return None


def _single_changes(plan: Plan) -> Iterator[Iterator[dict[str, object]]]:
    """Yields the changes of each field, the smallest one first."""
    config, shape, devices = plan.config, plan.model, plan.devices
    stronger = RECOMPUTES[RECOMPUTES.index(config.recompute) + 1 :]
    yield ({"recompute": each} for each in stronger if each == "full" or not config.flash_attention)
    if config.recompute_layers is not None:
        yield iter([{"recompute_layers": None}])
    if config.recompute == "full" and config.recompute_method == "block":
        yield ({"recompute_method": "uniform", "recompute_layers": each} for each in (2, 4))
    yield ({"loss": each} for each in LOSSES[LOSSES.index(str(config.loss)) + 1 :])
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
