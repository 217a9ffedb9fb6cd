# SPDX-License-Identifier: Apache-2.0
"""Plans of training runs: memory of each stage, seconds as a waterfall, utilisation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from artifex_devices._base.checks import check_number
from artifex_devices._base.public_path import public
from artifex_devices._base.svg import Picture
from artifex_devices._core import Cluster
from artifex_devices.planner.report import Layout, Report, picked
from artifex_devices.planner.shape import TransformerShape
from artifex_devices.planner.training.config import TrainingConfig
from artifex_devices.planner.training.efficiency import Efficiency
from artifex_devices.planner.training.pictures import plan_svg
from artifex_devices.planner.training.published import PublishedError, published_error
from artifex_devices.planner.training.text import plan_layout, rates_text

if TYPE_CHECKING:
    from artifex_devices.planner.training.nearest import NearestFits

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
        working: Bytes of what one layer needs while it runs: gathered parameters, and recomputed activations, as far as
            they do not fit into the memory of the output's activations, which are freed before.
        forward: Expected seconds of the forward pass of one microbatch, exposed communication included.
        backward: Expected seconds of its backward pass, recomputation included.
        host: Bytes of each device in the memory of its host: offloaded optimizer state with its gradients, and
            activations.
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
    host: int = 0

    @property
    def total(self) -> int:
        """Sum of all bytes of a device."""
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
        host_memory: Bytes that are offloaded to the fullest host.
        host_available: Bytes of memory of a host; None where nothing is offloaded, or where it is not known.
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
    host_memory: int = 0
    host_available: int | None = None

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
        """Returns the model FLOPs utilisation of a step of so many seconds.

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
        return plan_svg(self, kind, TIME_PARTS, MEMORY_PARTS)

    def _error(self) -> PublishedError | None:
        """Returns the error of the expected seconds on published runs, or None for factors not compared with them."""
        return published_error(self.cluster, self.efficiency)

    def _nearest_fits(self) -> NearestFits:
        """Returns the nearest configurations that fit; none where the plan fits itself."""
        from artifex_devices.planner.training.nearest import NearestFits, nearest_fits  # it plans and searches

        return NearestFits((), ()) if self.fits else nearest_fits(self)

    def _layout(self) -> Layout:
        return plan_layout(self, TIME_PARTS, MEMORY_PARTS)

    def _repr_html_(self) -> str:
        return self._layout().html(self.to_svg()._repr_html_())

    def _content(self) -> dict[str, Any]:
        nearest, error = self._nearest_fits(), self._error()
        return {
            "kind": "training",
            "model": self.shape.name,
            "cluster": self.cluster.name,
            "devices": self.devices,
            "config": config_content(self.config),
            "microbatches": self.microbatches,
            "memory": {"bytes": self.memory, "available": self.available, "fits": self.fits},
            "host_memory": {"bytes": self.host_memory, "available": self.host_available},
            "fits_with": nearest.content(self.config),
            "ways_out": list(nearest.ways_out),
            "stages": [asdict(stage) | {"total": stage.total} for stage in self.stages],
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
        }


def config_content(config: TrainingConfig) -> dict[str, Any]:
    """Returns the fields of a configuration as JSON has them."""
    texts = {"parameter_dtype", "gradient_dtype", "activation_dtype"}
    content = {name: str(value) if name in texts else value for name, value in vars(config).items()}
    dtypes = {"parameter_dtypes": config.parameter_dtypes, "gradient_dtypes": config.gradient_dtypes}
    named = {name: {kind: str(each) for kind, each in mapping.items()} for name, mapping in dtypes.items()}
    return {**content, "overlap": dict(config.overlap), **named}
