# SPDX-License-Identifier: Apache-2.0
"""Plans of training runs: memory of each stage, seconds as a waterfall, utilisation."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from artifex_devices import _planner
from artifex_devices._base.checks import check_choice, check_number
from artifex_devices._base.public_path import public
from artifex_devices._base.svg import Picture
from artifex_devices._base.text import bytes_text, count_text, rate_text, seconds_text
from artifex_devices._core import Cluster
from artifex_devices.planner.report import Report, Summary, picked, with_model
from artifex_devices.planner.shape import TransformerShape
from artifex_devices.planner.training.config import TrainingConfig, config_content
from artifex_devices.planner.training.efficiency import Efficiency
from artifex_devices.planner.training.nearest import nearest_fits
from artifex_devices.planner.training.pictures import PICTURES, memory_svg, schedule_svg, waterfall_svg
from artifex_devices.planner.training.published import PublishedError, published_error
from artifex_devices.planner.training.text import (
    dtypes_facts,
    error_text,
    factor_facts,
    rates_text,
    recomputed_text,
    ways_text,
)
from artifex_devices.planner.training.values import MEMORY_PARTS, TIME_PARTS, TrainingSeconds, TrainingStage


@public("artifex_devices.planner")
@dataclass(frozen=True, eq=False)
class TrainingPlan(Report):
    """Memory and seconds of one training step; `print` shows them.

    Attributes:
        model: The model.
        cluster: The devices.
        config: Configuration, with `data` derived.
        efficiency: Factors of the expected seconds.
        measured: Measured seconds of a step, or None if none were given.
        devices: Number of devices.
        microbatches: Microbatches of each replica in a step.
        stages: Pipeline stages, first to last.
        roofline: Seconds at published rates, with the configuration's overlap. A bound.
        expected: Seconds with the factors of `efficiency`.
        model_flops: FLOPs of a step as publications count them: attention in full, nothing for recomputation.
        executed_flops: The same with recomputation.
        peak_flops: FLOP/s of a device in the configured format.
        bubble_fraction: Bubble over the work of a pipeline with equal stages: (stages - 1) / (chunks x microbatches).
        memory: Bytes of a device of the fullest stage.
        available: Bytes of memory of a device.
        host_memory: Bytes that are offloaded to the fullest host.
        host_available: Bytes of memory of a host, or None if nothing is offloaded or the size is unknown.
    """

    model: TransformerShape
    cluster: Cluster
    config: TrainingConfig
    efficiency: Efficiency
    measured: float | None
    devices: int
    microbatches: int
    stages: tuple[TrainingStage, ...]
    roofline: TrainingSeconds
    expected: TrainingSeconds
    model_flops: float
    executed_flops: float
    peak_flops: float
    bubble_fraction: float
    memory: int
    available: int
    host_memory: int
    host_available: int | None

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(with_model(state))

    @property
    def fits(self) -> bool:
        """Whether all stages fit in the memory of a device and of a host, where that is known."""
        return self.memory <= self.available and self._fits_on_hosts

    @property
    def _fits_on_hosts(self) -> bool:
        return self.host_available is None or self.host_memory <= self.host_available

    @property
    def seconds(self) -> float:
        """Expected seconds of a step."""
        return self.expected.total

    @property
    def tokens_per_second(self) -> float:
        """Expected tokens per second of all devices."""
        return self.config.tokens / self.seconds

    @property
    def mfu(self) -> float:
        """Expected model FLOPs utilisation."""
        return self.utilization(self.seconds)

    def utilization(self, seconds: float) -> float:
        """Returns the model FLOPs utilisation of a step that takes `seconds`.

        Args:
            seconds: Seconds of a step.

        Raises:
            ValueError: `seconds` is not above 0.
            TypeError: `seconds` is not a number.
        """
        seconds = check_number("TrainingPlan.utilization", "seconds", seconds, above=0)
        return self.model_flops / (seconds * self.devices * self.peak_flops)

    @property
    def flops_per_second(self) -> float:
        """Expected model FLOP/s of each device."""
        return self.model_flops / (self.seconds * self.devices)

    def to_svg(self, kind: str = "waterfall") -> Picture:
        """Draws the plan as a stand-alone SVG picture.

        Args:
            kind: "waterfall" (parts of a step), "memory" (of each stage, by kind) or "schedule" (passes of each stage
                over time, with the bubble).

        Raises:
            ValueError: `kind` is another text.
        """
        check_choice("TrainingPlan.to_svg", "kind", kind, PICTURES)
        title = f"{self.model.name} on {self.devices} devices of {self.cluster.name}"
        if kind == "memory":
            return memory_svg(f"{title}: memory by stage", self.stages, self.available)
        if kind == "schedule":
            return schedule_svg(f"{title}: {self.config.schedule}", self.config, self.stages, self.microbatches)
        title += f": {seconds_text(self.seconds)} a step, {self.mfu:.1%} MFU"
        return waterfall_svg(title, self.expected, self.roofline.total)

    def _error(self) -> PublishedError | None:
        """Returns the error of the expected seconds on published runs, or None for factors not compared with them."""
        return published_error(self.cluster, self.efficiency)

    def _with_config(self, config: TrainingConfig) -> TrainingPlan:
        """Plans another configuration on as many devices."""
        return planned(self.model, self.cluster, config, self.efficiency, self.devices)

    def _summary(self) -> Summary:
        """Formats the facts, and the waterfall as a table."""
        config, fullest = self.config, max(self.stages, key=lambda stage: stage.total)
        parts = ", ".join(
            f"{name} {bytes_text(getattr(fullest, name))}" for name in MEMORY_PARTS if getattr(fullest, name)
        )
        recompute = "" if config.recompute == "none" else f", recomputes {recomputed_text(config)}"
        facts = [
            ("spread", ways_text(config)),
            (
                "batch",
                f"{config.batch} x {config.sequence} = {count_text(config.tokens)} tokens, {self.microbatches} "
                f"microbatch{'' if self.microbatches == 1 else 'es'} of {config.microbatch}{recompute}",
            ),
            (
                "memory",
                f"{bytes_text(self.memory)} of {bytes_text(self.available)} on a device of stage "
                f"{self.stages.index(fullest)}: {'fits' if self.memory <= self.available else 'does not fit'}",
            ),
            ("", parts),
            *self._host_facts(),
            *nearest_fits(self).facts(self),
            *dtypes_facts(config),
            (
                "roofline",
                f"{seconds_text(self.roofline.total)}, {self.utilization(self.roofline.total):.1%} MFU, a bound: "
                f"published rates (table; {rates_text(self.cluster, config)})",
            ),
            (
                "expected",
                f"{seconds_text(self.seconds)}, {self.mfu:.1%} MFU, "
                f"{count_text(self.tokens_per_second)} tokens/s, {rate_text(self.flops_per_second, 'FLOP/s')} each "
                "(model; the factors below)",
            ),
            ("error", error_text(self._error())),
        ]
        if self.measured is not None:
            error = self.seconds / self.measured - 1
            measured = f"{seconds_text(self.measured)}, {self.utilization(self.measured):.1%} MFU"
            facts.append(("measured", f"{measured}; expected is {error:+.1%}"))
        hidden = ", ".join(f"{name} {seconds_text(value)}" for name, value in self.expected.hidden.items() if value > 0)
        facts.append(("hidden", hidden or "nothing"))
        facts += factor_facts(self.efficiency, sharp=config.sharp)
        facts += [("note", note) for note in self.model.notes]
        rows = [
            (text, seconds_text(self.roofline.parts[name]), seconds_text(value), f"{value / self.seconds:.1%}")
            for name, text in TIME_PARTS.items()
            if (value := self.expected.parts[name]) > 0 or self.roofline.parts[name] > 0
        ]
        title = f"{self.model.name}, training on {self.devices} devices of {self.cluster.name}"
        return Summary(title, facts, ("part of a step", "roofline", "expected", "share"), rows)

    def _host_facts(self) -> list[tuple[str, str]]:
        if not self.host_memory:
            return []
        if self.host_available is None:
            return [("host", f"{bytes_text(self.host_memory)} on the fullest host, whose memory is not known")]
        source = self.cluster.parts["host_memory_bytes"][1]
        fits = "fits" if self.host_memory <= self.host_available else "does not fit"
        used = f"{bytes_text(self.host_memory)} of {bytes_text(self.host_available)}"
        return [("host", f"{used} on the fullest host [{source}]: {fits}")]

    def _repr_html_(self) -> str:
        return self._summary().html(self.to_svg()._repr_html_())

    def _content(self) -> dict[str, object]:
        nearest, error = nearest_fits(self), self._error()
        return {
            "kind": "training",
            "model": self.model.name,
            "cluster": self.cluster.name,
            "devices": self.devices,
            "config": config_content(self.config),
            "microbatches": self.microbatches,
            "memory": {"bytes": self.memory, "available": self.available, "fits": self.fits},
            "host_memory": {"bytes": self.host_memory, "available": self.host_available},
            "fits_with": nearest.content(self.config),
            "ways_out": list(nearest.ways_out),
            "stages": [asdict(stage) for stage in self.stages],
            "seconds": {
                name: {"total": each.total, "parts": dict(each.parts), "hidden": dict(each.hidden)}
                for name, each in (("roofline", self.roofline), ("expected", self.expected))
            },
            "seconds_from": rates_text(self.cluster, self.config),
            "error": None if error is None else asdict(error),
            "measured": self.measured,
            **picked(self, "model_flops", "executed_flops", "peak_flops", "mfu", "tokens_per_second"),
            **picked(self, "bubble_fraction"),
            "efficiency": self.efficiency._content()["factors"],
            **({"notes": list(self.model.notes)} if self.model.notes else {}),
        }


def planned(
    model: TransformerShape,
    cluster: Cluster,
    config: TrainingConfig,
    efficiency: Efficiency,
    devices: int,
    measured: float | None = None,
) -> TrainingPlan:
    """Returns the plan on the first `devices` devices of a cluster."""
    described = config._described(devices)
    found = _planner.plan_training(vars(model), cluster, described, efficiency._described(), devices)
    parts: dict[str, Any] = {
        "stages": tuple(TrainingStage(**stage) for stage in found["stages"]),
        "roofline": TrainingSeconds(**found["roofline"]),
        "expected": TrainingSeconds(**found["expected"]),
    }
    return TrainingPlan(
        model=model,
        cluster=cluster,
        config=config.replaced(data=described["data"]),
        efficiency=efficiency,
        measured=measured,
        **{**found, **parts},
    )
