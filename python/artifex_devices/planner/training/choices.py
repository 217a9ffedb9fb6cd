# SPDX-License-Identifier: Apache-2.0
"""Results of a search for a training configuration, and its options as code."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from artifex_devices._base.charts import axes_for
from artifex_devices._base.checks import check_choice, failure
from artifex_devices._base.public_path import public
from artifex_devices._base.text import bytes_text
from artifex_devices._core import Cluster
from artifex_devices.planner.report import Report, Summary, with_model
from artifex_devices.planner.shape import TransformerShape
from artifex_devices.planner.training.code import PROGRAMS, jax_code, mesh_code, problem_in, settings_for
from artifex_devices.planner.training.config import TrainingConfig, config_content
from artifex_devices.planner.training.plan import TrainingPlan
from artifex_devices.planner.training.space import TrainingSpace
from artifex_devices.planner.training.table import choices_table
from artifex_devices.planner.training.text import error_text, rates_text, ways_text

if TYPE_CHECKING:
    from artifex_devices._base.charts import Axes

_SHOWN_FRONT = 8
_COLUMNS_TEXT = "stages x chunks of a pipeline; micro: sequences of a microbatch; data: the rest of the devices"
_NOT_CONSISTENT = (
    "no combination divides the batch, the layers and the cluster; change the batch, the sequence or the pinned fields"
)


@public("artifex_devices.planner")
@dataclass(frozen=True, eq=False)
class TrainingChoice:
    """One configuration of a search.

    Attributes:
        plan: Its plan.
    """

    plan: TrainingPlan

    @property
    def config(self) -> TrainingConfig:
        """The configuration."""
        return self.plan.config

    def runs_in(self, program: str) -> bool:
        """Returns whether a program has settings that run this configuration.

        Args:
            program: "megatron", "maxtext", "torchtitan" or "deepspeed".

        Raises:
            ValueError: `program` is another text.

        Example:
            >>> from artifex_devices import cluster, planner
            >>> config = planner.TrainingConfig(batch=8, sequence=4096, pipeline=4, zero=1)
            >>> choice = planner.TrainingChoice(planner.plan_training("llama-3-8b", cluster.dgx("h100"), config))
            >>> choice.runs_in("megatron"), choice.runs_in("deepspeed")
            (True, False)
        """
        check_choice("TrainingChoice.runs_in", "program", program, tuple(PROGRAMS))
        return problem_in(program, self.plan) is None

    def to_mesh_code(self) -> str:
        """Returns Python code of a mesh, the shapes of the parameters and their PartitionSpecs for this library.

        Raises:
            ValueError: The model has parameters that its sizes do not describe.
        """
        return mesh_code(self.plan)

    def to_jax_code(self) -> str:
        """Returns Python code of a mesh, the shapes of the parameters and their PartitionSpecs for JAX.

        Raises:
            ValueError: The model has parameters that its sizes do not describe.
        """
        return jax_code(self.plan)

    def to_megatron_flags(self) -> str:
        """Returns command-line options of Megatron-LM.

        Raises:
            ValueError: Megatron-LM cannot run the configuration; the message has the nearest value that it can.
        """
        return settings_for("TrainingChoice.to_megatron_flags", "megatron", self.plan)

    def to_maxtext_flags(self) -> str:
        """Returns command-line settings of MaxText.

        Raises:
            ValueError: MaxText cannot run the configuration; the message has the nearest value that it can.
        """
        return settings_for("TrainingChoice.to_maxtext_flags", "maxtext", self.plan)

    def to_torchtitan_toml(self) -> str:
        """Returns a configuration file of torchtitan.

        Raises:
            ValueError: torchtitan cannot run the configuration; the message has the nearest value that it can.
        """
        return settings_for("TrainingChoice.to_torchtitan_toml", "torchtitan", self.plan)

    def to_deepspeed_json(self) -> str:
        """Returns a configuration file of DeepSpeed. The model's code decides where it recomputes activations.

        Raises:
            ValueError: DeepSpeed cannot run the configuration; the message has the nearest value that it can.
        """
        return settings_for("TrainingChoice.to_deepspeed_json", "deepspeed", self.plan)


@public("artifex_devices.planner")
@dataclass(frozen=True, eq=False)
class TrainingSuggestions(Report):
    """Options of a training run, fastest first; `print` shows them.

    Attributes:
        model: The model.
        cluster: The devices.
        config: Fields that all options share.
        options: Fastest configurations that fit on all devices.
        front: Configurations that no other one beats in seconds, memory and number of devices at once.
        nearest: Where nothing fits, the configurations that need the least memory.
        ways_out: Where nothing fits, changes that would make it fit, each tried.
        space: The space that was searched.
    """

    model: TransformerShape
    cluster: Cluster
    config: TrainingConfig
    options: tuple[TrainingChoice, ...]
    front: tuple[TrainingChoice, ...]
    nearest: tuple[TrainingChoice, ...]
    ways_out: tuple[str, ...]
    space: TrainingSpace

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(with_model(state))

    @property
    def best(self) -> TrainingChoice:
        """The fastest option; where nothing fits, the option that needs the least memory.

        Raises:
            ValueError: No combination is consistent with the batch and the cluster.
        """
        if self.options:
            return self.options[0]
        if self.nearest:
            return self.nearest[0]
        raise failure(
            ValueError,
            "suggest",
            "no combination divides the batch, the layers and the cluster",
            expected="a batch that data parallelism divides",
            got=self.config.batch,
            fix="change the batch or the pinned fields",
        )

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Draws the Pareto front of seconds over memory of a device; if it is empty, the options or the nearest.

        Args:
            ax: Axes of matplotlib to draw into, by default of a new figure.

        Returns:
            The axes.

        Raises:
            ImportError: matplotlib is not installed.
            ValueError: There are no configurations to draw.
        """
        chosen = self.front or self.options or self.nearest
        if not chosen:
            raise failure(
                ValueError,
                "TrainingSuggestions.plot",
                "there are no configurations",
                expected="one or more",
                fix="change the batch or the pinned fields",
            )
        notes = ["no other configuration is better in seconds, memory and devices at once; seconds are of the model"]
        title = f"{self.model.name} on {self.cluster.name}: seconds of a step over memory of a device"
        chart = axes_for("TrainingSuggestions.plot", ax, title, notes)
        chart.loglog()
        memories = sorted(each.plan.memory / 1e9 for each in chosen)
        for devices in sorted({each.plan.devices for each in chosen}, reverse=True):
            plans = sorted(
                (each.plan for each in chosen if each.plan.devices == devices), key=lambda plan: plan.seconds
            )
            points = [(plan.memory / 1e9, plan.seconds) for plan in plans]
            chart.plot(*zip(*points, strict=True), "o", label=f"{devices} devices")
            for i in {0, len(plans) - 1}:  # the fastest, and the option with the least memory
                is_right = points[i][0] ** 2 > memories[0] * memories[-1]  # of the middle; the text is to the left then
                chart.annotate(
                    ways_text(plans[i].config),
                    points[i],
                    (-6, 6) if is_right else (6, 6),
                    textcoords="offset points",
                    ha="right" if is_right else "left",
                    fontsize="x-small",
                )
        chart.set_xlabel("GB of a device")
        chart.set_ylabel("seconds of a step")
        chart.legend(fontsize="small")
        chart.grid(alpha=0.3)
        return chart

    def _limit_text(self) -> str:
        space, parts = self.space, self.cluster.parts
        text = f"{bytes_text(int(space.memory_limit))} of a device"
        if not any(True in space.choices[name] for name in ("offload_optimizer", "offload_activations")):
            return text
        if parts["host_memory_bytes"] is None:
            return f"{text}, a host's memory is not known"
        size, source = parts["host_memory_bytes"]
        part = space.memory_limit * parts["devices_per_chip"] / parts["memory_bytes"][0]
        return f"{text}, {bytes_text(int(part * size))} of a host [{source}]"

    def _summary(self) -> Summary:
        space = self.space
        facts = [
            ("batch", f"{self.config.batch} x {self.config.sequence} tokens"),
            (
                "searched",
                f"{space.combinations:,} combinations: {space.consistent:,} consistent, {space.too_large:,} too large, "
                f"{space.skipped:,} skipped as no faster, {space.priced:,} estimated",
            ),
            ("limit", f"{self._limit_text()}, tensor at most {space.max_tensor}"),
            ("seconds", "expected (model): published rates (table) with the factors of Efficiency"),
        ]
        plans = [choice.plan for choice in (*self.options, *self.front, *self.nearest)]
        if plans:
            facts.append(("error", error_text(plans[0]._error())))
            facts.append(("rates", rates_text(self.cluster, self.config)))
        if not self.options and not self.nearest:
            facts.append(("fits", _NOT_CONSISTENT))
        elif not self.options:
            facts.append(("fits", "nothing fits; the nearest are below"))
            facts.extend(("" if i else "fits with", text) for i, text in enumerate(self.ways_out))
        shown = self.front[:_SHOWN_FRONT]
        of = f", {len(shown)} of {len(self.front)}" if len(self.front) > len(shown) else ""
        if self.front:
            facts.append(("front", "no other configuration is better in time, memory and devices at once"))
        if plans:
            facts.append(("columns", _COLUMNS_TEXT))
        common, head, rows = choices_table(
            [
                ("options, fastest first", [each.plan for each in self.options]),
                (f"front{of}", [each.plan for each in shown]),
                ("nearest, least memory first", [each.plan for each in self.nearest]),
            ]
        )
        title = f"training {self.model.name} on {self.cluster.name}"
        return Summary(title, [*facts, *common], head, rows)

    def _content(self) -> dict[str, object]:
        def content(choice: TrainingChoice) -> dict[str, object]:
            plan = choice.plan
            return {
                "config": config_content(plan.config),
                "devices": plan.devices,
                "memory": plan.memory,
                "host_memory": plan.host_memory,
                "seconds": plan.seconds,
                "roofline": plan.roofline.total,
                "mfu": plan.mfu,
            }

        space = self.space
        found = self.front or self.options or self.nearest
        error = found[0].plan._error() if found else None
        return {
            "kind": "training suggestions",
            "model": self.model.name,
            "cluster": self.cluster.name,
            "batch": self.config.batch,
            "sequence": self.config.sequence,
            "options": [content(each) for each in self.options],
            "front": [content(each) for each in self.front],
            "nearest": [content(each) for each in self.nearest],
            "ways_out": list(self.ways_out),
            "seconds_from": rates_text(self.cluster, self.config),
            "error": None if error is None else asdict(error),
            "space": {**vars(space), "choices": {key: list(value) for key, value in space.choices.items()}},
        }
