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
from artifex_devices.planner.training.collectives import collectives_of
from artifex_devices.planner.training.config import TrainingConfig, config_content
from artifex_devices.planner.training.efficiency import Efficiency
from artifex_devices.planner.training.faster import faster_changes, faster_text, limit_content, limits_text
from artifex_devices.planner.training.nearest import nearest_fits
from artifex_devices.planner.training.pictures import PICTURES, memory_svg, schedule_svg, waterfall_svg
from artifex_devices.planner.training.published import PublishedError, RunKind, published_error, run_kind
from artifex_devices.planner.training.run_cost import RunCost, run_cost
from artifex_devices.planner.training.spelling import Spelling, arguments_text, options_text
from artifex_devices.planner.training.text import (
    batch_text,
    dtypes_facts,
    error_text,
    factor_facts,
    host_facts,
    idle_factors,
    rates_text,
    ways_text,
)
from artifex_devices.planner.training.values import TrainingCollective, TrainingSeconds, TrainingStage
from artifex_devices.planner.training.waterfall import (
    WATERFALL_HEAD,
    fits_text,
    hidden_text,
    margin_text,
    memory_text,
    waterfall_rows,
)


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
        memory: Bytes that the program allocates on a device of the fullest stage.
        reserved: Bytes that its allocator takes for them: 1.08 times as many for PyTorch's caching allocator.
        runtime: Further bytes of that device: the CUDA context and the buffers of communicators, or the TPU's runtime.
        available: Bytes of memory of a device.
        close: Whether the needed bytes are within 10 % of the available ones, which is the error of the memory model.
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
    reserved: int
    runtime: int
    available: int
    close: bool
    host_memory: int
    host_available: int | None

    def __setstate__(self, state: dict[str, object]) -> None:
        # The first pickles of version 0.1.0 lack the fields of the margin.
        margin = {"reserved": state["memory"], "runtime": 0, "close": False}
        vars(self).update({**margin, **with_model(state)})

    @property
    def needed(self) -> int:
        """Bytes that a device must have: the reserved ones and those of the runtime."""
        return self.reserved + self.runtime

    @property
    def fits(self) -> bool:
        """Whether a device has the needed bytes, and a host the offloaded ones, where its memory is known."""
        return self.needed <= self.available and self._fits_on_hosts

    @property
    def _fits_on_hosts(self) -> bool:
        return self.host_available is None or self.host_memory <= self.host_available

    @property
    def collectives(self) -> tuple[TrainingCollective, ...]:
        """Messages that the step prices, of a device of the slowest stage; equal ones are one entry.

        Gradients and gathered parameters of a stage are counted as one message for each layer, all of the same size:
        the embedding and the output are spread over the layers. Tokens of experts are one all-to-all, whether or not
        they are sent over each node's links separately.

        Example:
            >>> from artifex_devices.planner import plan_training
            >>> plan = plan_training("llama-2-7b", "8 x h100", batch=8, sequence=4096, zero=3)
            >>> [(each.op, each.axes, each.count) for each in plan.collectives]
            [('reduce_scatter', ('data',), 32), ('all_gather', ('data',), 64)]
        """
        return collectives_of(self.model, self.cluster, self.config, self.efficiency, self.devices)

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

    def cost_of_run(self, tokens: float | str, price_per_device_hour: float | None = None) -> RunCost:
        """Returns the days, device-hours and cost of a run of so many tokens, at the expected seconds of this plan.

        Failures, saves and evaluations are not counted; `plan_failures` estimates what they take.

        Args:
            tokens: Number of tokens of the run, or a text such as "15T" or "300B".
            price_per_device_hour: Price of one device for an hour, in any currency.

        Raises:
            ValueError: A number is not above 0, or a text is not a number of tokens.
            TypeError: An argument has the wrong type.

        Example:
            >>> from artifex_devices import cluster
            >>> from artifex_devices.planner import TrainingConfig, plan_training
            >>> config = TrainingConfig(batch=256, sequence=4096, zero=3)
            >>> plan = plan_training("llama-2-7b", cluster.dgx("h100", nodes=4), config)
            >>> run = plan.cost_of_run("2T", price_per_device_hour=2.5)
            >>> run.steps, run.cost == 2.5 * run.device_hours
            (1907349, True)
        """
        return run_cost(
            tokens,
            price_per_device_hour,
            tokens_per_step=self.config.tokens,
            seconds=self.seconds,
            devices=self.devices,
        )

    def _kind(self) -> RunKind:
        return run_kind(self.model, self.cluster, self.config)

    def _error(self) -> PublishedError | None:
        """Returns the error of the expected seconds on published runs of the same kind, or None if it is not known."""
        return published_error(self._kind(), self.cluster, self.efficiency)

    def _with_config(self, config: TrainingConfig) -> TrainingPlan:
        """Plans another configuration on as many devices."""
        return planned(self.model, self.cluster, config, self.efficiency, self.devices)

    def _summary(self) -> Summary:
        return self._spelled(arguments_text)

    def _command_summary(self) -> Summary:
        return self._spelled(options_text)

    def _spelled(self, spell: Spelling) -> Summary:
        """Formats the step and its memory, the waterfall as a table, what limits the step and what would help."""
        helps = [("would help", faster_text(faster_changes(self), self.seconds, spell))]
        below = [
            ("limited by", limits_text(self.expected)),
            *(helps if self.fits else nearest_fits(self).facts(self, spell)),
            ("error", error_text(self._error(), self._kind())),
            *(("note", note) for note in self.model.notes),
        ]
        title = f"{self.model.name}, training on {self.devices} devices of {self.cluster.name}"
        rows = waterfall_rows(self.expected, self.roofline)
        return Summary(title, self._facts(), WATERFALL_HEAD, rows, below, self._details())

    def _facts(self) -> list[tuple[str, str]]:
        config, fullest = self.config, max(self.stages, key=lambda stage: stage.total)
        expected = f"{seconds_text(self.seconds)} expected (model), {self.mfu:.1%} MFU"
        bound = f"{seconds_text(self.roofline.total)} is a bound, at published rates (table)"
        memory = f"{bytes_text(self.needed)} of {bytes_text(self.available)} on a device of stage"
        fits = fits_text(self.needed, self.available, close=self.close)
        measured = []
        if self.measured is not None:
            text = f"{seconds_text(self.measured)}, {self.utilization(self.measured):.1%} MFU"
            measured.append(("measured", f"{text}; expected is {self.seconds / self.measured - 1:+.1%}"))
        return [
            ("step", f"{expected}, {count_text(self.tokens_per_second)} tokens/s; {bound}"),
            *measured,
            ("memory", f"{memory} {self.stages.index(fullest)}: {fits}"),
            ("", f"{memory_text(fullest)}; {config.loss} loss"),
            ("", margin_text(self.memory, self.reserved, self.runtime)),
            *host_facts(self.host_memory, self.host_available),
            ("spread", ways_text(config)),
            ("batch", batch_text(config, self.microbatches)),
        ]

    def _details(self) -> list[tuple[str, str]]:
        """Formats rates, factors and their sources."""
        config = self.config
        details = [
            ("hidden", hidden_text(self.expected)),
            ("expected", f"{rate_text(self.flops_per_second, 'FLOP/s')} of each device (model; the factors below)"),
            ("bound", f"{self.utilization(self.roofline.total):.1%} MFU (table; {rates_text(self.cluster, config)})"),
        ]
        if self.host_available is not None:
            source = self.cluster.parts["host_memory_bytes"][1]
            details.append(("host", f"{bytes_text(self.host_available)} of memory [{source}]"))
        return [*details, *dtypes_facts(config), *factor_facts(self.efficiency, idle_factors(self.model, config))]

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
            "memory": {
                "bytes": self.memory,
                **picked(self, "reserved", "runtime", "needed", "available", "fits", "close"),
            },
            "host_memory": {"bytes": self.host_memory, "available": self.host_available},
            "fits_with": nearest.content(self.config),
            "ways_out": [dict(way) for way in nearest.ways_out],
            "limited_by": limit_content(self.expected),
            "would_help": [each._asdict() for each in faster_changes(self)],
            "stages": [asdict(stage) for stage in self.stages],
            "collectives": [asdict(each) for each in self.collectives],
            "seconds": {
                name: {"total": each.total, "parts": dict(each.parts), "hidden": dict(each.hidden)}
                for name, each in (("roofline", self.roofline), ("expected", self.expected))
            },
            "seconds_from": rates_text(self.cluster, self.config),
            "run_kind": asdict(self._kind()),
            "error": None if error is None else asdict(error),
            "measured": self.measured,
            "run": None,
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
