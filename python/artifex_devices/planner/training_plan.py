# SPDX-License-Identifier: Apache-2.0
"""Plans of training runs: memory of each stage, seconds as a waterfall, utilisation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any

from artifex_devices._base.public_path import public
from artifex_devices._base.svg import Picture
from artifex_devices._base.text import bytes_text, seconds_text
from artifex_devices._core import Cluster
from artifex_devices.planner.efficiency import Efficiency
from artifex_devices.planner.report import Layout, Report, picked
from artifex_devices.planner.step_text import count_text
from artifex_devices.planner.training_config import TrainingConfig
from artifex_devices.planner.training_pictures import plan_svg
from artifex_devices.planner.transformer_shape import TransformerShape

MEMORY_PARTS = ("parameters", "gradients", "optimizer", "activations", "working")
TIME_PARTS = {
    "products": "matrix products",
    "attention": "attention",
    "elementwise": "norms, activation functions, loss",
    "recompute": "recomputed activations",
    "tensor": "tensor-parallel communication that is not hidden",
    "context": "context-parallel communication that is not hidden",
    "expert": "all-to-all of experts that is not hidden",
    "pipeline": "messages between stages that are not hidden",
    "bubble": "waiting for other stages",
    "data": "gradients and parameters between replicas that are not hidden",
    "offload": "transfers to the host that are not hidden",
    "update": "update of parameters",
    "fixed": "launches, gaps and the rest",
}


@public("artifex_devices.planner")
@dataclass(frozen=True)
class TrainingStage:
    """One pipeline stage; bytes are those of each of its devices.

    Attributes:
        layers: Number of layers.
        parameters_held: Number of parameters, before ZeRO shards them.
        parameters: Bytes of parameters.
        gradients: Bytes of gradients.
        optimizer: Bytes of optimizer state.
        activations: Bytes of activations of all microbatches that are in flight.
        working: Bytes of what one layer needs while it runs: gathered parameters, recomputed activations.
        forward: Expected seconds of the forward pass of one microbatch, exposed communication included.
        backward: Expected seconds of its backward pass, recomputation included.
    """

    layers: int
    parameters_held: int
    parameters: int
    gradients: int
    optimizer: int
    activations: int
    working: int
    forward: float
    backward: float

    @property
    def total(self) -> int:
        """Sum of all bytes."""
        return sum(getattr(self, name) for name in MEMORY_PARTS)


@public("artifex_devices.planner")
@dataclass(frozen=True)
class TrainingSeconds:
    """Seconds of one step.

    Attributes:
        parts: Exposed seconds by part, in the order of a waterfall; they sum to the step.
        hidden: Seconds of communication behind computation, by kind.
    """

    parts: Mapping[str, float]
    hidden: Mapping[str, float]

    @property
    def total(self) -> float:
        """Seconds of the step."""
        return sum(self.parts.values())

    def __getstate__(self) -> dict[str, Any]:
        return {name: dict(value) for name, value in vars(self).items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update({name: MappingProxyType(dict(value)) for name, value in state.items()})


@public("artifex_devices.planner")
@dataclass(frozen=True, eq=False)
class TrainingPlan(Report):
    """Memory and seconds of one training step; `print` shows them.

    Attributes:
        shape: The model.
        cluster: The devices.
        config: Configuration, with `data` derived.
        efficiency: Factors of the expected seconds.
        stages: Pipeline stages, first to last.
        roofline: Seconds at published rates, with the configuration's overlap. A bound.
        expected: Seconds with the factors of `efficiency`.
        measured: Measured seconds of a step, or None if none were given.
        model_flops: FLOPs of a step as publications count them: attention in full, nothing for recomputation.
        executed_flops: The same with recomputation.
        peak_flops: FLOP/s of a device in the configured format.
        available: Bytes of memory of a device.
        bubble_fraction: Bubble over the work of a pipeline with equal stages: (stages - 1) / (chunks x microbatches).
    """

    shape: TransformerShape
    cluster: Cluster
    config: TrainingConfig
    efficiency: Efficiency
    stages: tuple[TrainingStage, ...]
    roofline: TrainingSeconds
    expected: TrainingSeconds
    measured: float | None
    model_flops: float
    executed_flops: float
    peak_flops: float
    available: int
    bubble_fraction: float

    @property
    def devices(self) -> int:
        """Number of devices."""
        return self.config.tensor * self.config.context * self.config.pipeline * (self.config.data or 1)

    @property
    def microbatches(self) -> int:
        """Microbatches of each replica in a step."""
        return self.config.batch // ((self.config.data or 1) * self.config.microbatch)

    @property
    def memory(self) -> int:
        """Bytes of a device of the fullest stage."""
        return max(stage.total for stage in self.stages)

    @property
    def fits(self) -> bool:
        """Whether all stages fit in the memory of a device."""
        return self.memory <= self.available

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

    @property
    def hfu(self) -> float:
        """Expected hardware FLOPs utilisation: with recomputation."""
        return self.mfu * self.executed_flops / self.model_flops

    def utilization(self, seconds: float) -> float:
        """Returns the model FLOPs utilisation of a step of so many seconds.

        Args:
            seconds: Seconds of a step.
        """
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
        return plan_svg(self, kind, TIME_PARTS, MEMORY_PARTS)

    def _layout(self) -> Layout:
        return plan_layout(self)

    def _repr_html_(self) -> str:
        return self._layout().html(self.to_svg()._repr_html_())

    def _content(self) -> dict[str, Any]:
        return {
            "kind": "training",
            "model": self.shape.name,
            "cluster": self.cluster.name,
            "devices": self.devices,
            "config": config_content(self.config),
            "microbatches": self.microbatches,
            "memory": {"bytes": self.memory, "available": self.available, "fits": self.fits},
            "stages": [asdict(stage) | {"total": stage.total} for stage in self.stages],
            "seconds": {
                name: {"total": each.total, "parts": dict(each.parts), "hidden": dict(each.hidden)}
                for name, each in (("roofline", self.roofline), ("expected", self.expected))
            },
            "measured": self.measured,
            **picked(self, "model_flops", "executed_flops", "peak_flops", "mfu", "hfu", "tokens_per_second"),
            **picked(self, "bubble_fraction"),
            "efficiency": self.efficiency._content()["factors"],
        }


def config_content(config: TrainingConfig) -> dict[str, Any]:
    """Returns the fields of a configuration as JSON has them."""
    texts = {"parameter_dtype", "gradient_dtype", "activation_dtype"}
    content = {name: str(value) if name in texts else value for name, value in vars(config).items()}
    return {**content, "overlap": dict(config.overlap)}


def ways_text(config: TrainingConfig) -> str:
    """Formats the axes of a configuration: "tensor 8 (sequences too) x pipeline 16 (1f1b) x data 128 (ZeRO 1)"."""
    parts = []
    if config.tensor > 1:
        parts.append(f"tensor {config.tensor}{' (sequences too)' if config.sequence_parallel else ''}")
    if config.context > 1:
        parts.append(f"context {config.context} ({config.context_method.replace('_', '-')})")
    if config.pipeline > 1:
        chunks = f", {config.chunks} chunks" if config.chunks > 1 else ""
        parts.append(f"pipeline {config.pipeline} ({config.schedule}{chunks})")
    zero = f"ZeRO {config.zero}" if config.zero else "no ZeRO"
    shards = f" over {config.zero_shards}" if config.zero and config.zero_shards else ""
    parts.append(f"data {config.data} ({zero}{shards})")
    if config.expert > 1:
        parts.append(f"experts over {config.expert}")
    return " x ".join(parts)


def plan_layout(plan: TrainingPlan) -> Layout:
    """Formats a plan: facts, and the waterfall as a table."""
    config, fullest = plan.config, max(plan.stages, key=lambda stage: stage.total)
    parts = ", ".join(f"{name} {bytes_text(getattr(fullest, name))}" for name in MEMORY_PARTS if getattr(fullest, name))
    recompute = "" if config.recompute == "none" else f", recomputes {config.recompute}"
    facts = [
        ("spread", ways_text(config)),
        (
            "batch",
            f"{config.batch} x {config.sequence} = {count_text(config.tokens)} tokens, {plan.microbatches} "
            f"microbatches of {config.microbatch}{recompute}",
        ),
        (
            "memory",
            f"{bytes_text(plan.memory)} of {bytes_text(plan.available)} on a device of stage "
            f"{plan.stages.index(fullest)}: {'fits' if plan.fits else 'does not fit'}",
        ),
        ("", parts),
        (
            "roofline",
            f"{seconds_text(plan.roofline.total)}, {plan.utilization(plan.roofline.total):.1%} MFU: "
            "published rates (table)",
        ),
        (
            "expected",
            f"{seconds_text(plan.seconds)}, {plan.mfu:.1%} MFU, {plan.hfu:.1%} HFU, "
            f"{count_text(plan.tokens_per_second)} tokens/s, {count_text(plan.flops_per_second)}FLOP/s each (model)",
        ),
    ]
    if plan.measured is not None:
        error = plan.seconds / plan.measured - 1
        facts.append(
            (
                "measured",
                f"{seconds_text(plan.measured)}, {plan.utilization(plan.measured):.1%} MFU; expected is {error:+.1%}",
            )
        )
    hidden = ", ".join(f"{name} {seconds_text(value)}" for name, value in plan.expected.hidden.items() if value > 0)
    facts.append(("hidden", hidden or "nothing"))
    used = {
        name: source for name, source in plan.efficiency.sources.items() if getattr(plan.efficiency, name) not in (0, 1)
    }
    facts.extend(
        ("factors" if i == 0 else "", f"{name} {getattr(plan.efficiency, name):.4g} [{source}]")
        for i, (name, source) in enumerate(used.items())
    )
    rows = [
        (text, seconds_text(plan.roofline.parts[name]), seconds_text(value), f"{value / plan.seconds:.1%}")
        for name, text in TIME_PARTS.items()
        if (value := plan.expected.parts[name]) > 0 or plan.roofline.parts[name] > 0
    ]
    title = f"{plan.shape.name}, training on {plan.devices} devices of {plan.cluster.name}"
    return Layout(title, facts, ("part of a step", "roofline", "expected", "share"), rows)
