# SPDX-License-Identifier: Apache-2.0
"""Results of a search for a training configuration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from artifex_devices._base.charts import axes_for
from artifex_devices._base.checks import failure
from artifex_devices._base.public_path import public
from artifex_devices._base.text import bytes_text
from artifex_devices._core import Cluster
from artifex_devices.planner.report import Report, Summary, with_model
from artifex_devices.planner.shape import TransformerShape
from artifex_devices.planner.training.choice import TrainingChoice
from artifex_devices.planner.training.config import TrainingConfig, config_content
from artifex_devices.planner.training.faster import (
    FasterChange,
    faster_changes,
    faster_text,
    limit_content,
    limits_text,
)
from artifex_devices.planner.training.nearest import way_text
from artifex_devices.planner.training.space import TrainingSpace
from artifex_devices.planner.training.spelling import Spelling, arguments_text, changes, options_text, settings
from artifex_devices.planner.training.table import SETTINGS_TEXT, TABLE_HEAD, table_rows
from artifex_devices.planner.training.text import error_text, rates_text, ways_text

if TYPE_CHECKING:
    from artifex_devices._base.charts import Axes

_SHOWN_FRONT = 4
_AS_MUCH = 1.02
_NOT_CONSISTENT = (
    "no combination divides the batch, the layers and the cluster; change the batch, the sequence or the pinned fields"
)


@public("artifex_devices.planner")
@dataclass(frozen=True, eq=False)
class TrainingSuggestions(Report):
    """Options of a training run, fastest first; `print` shows them.

    Attributes:
        model: The model.
        cluster: The devices.
        config: Fields that all options share.
        options: Fastest configurations that fit on all devices. Configurations that differ by nothing that matters are
            one option.
        front: Configurations that no other one beats in seconds, memory and number of devices at once.
        nearest: Where nothing fits, the configurations that need the least memory.
        ways_out: Where nothing fits, changes that would make it fit, each tried: values of fields, or "devices".
        space: The space that was searched.
    """

    model: TransformerShape
    cluster: Cluster
    config: TrainingConfig
    options: tuple[TrainingChoice, ...]
    front: tuple[TrainingChoice, ...]
    nearest: tuple[TrainingChoice, ...]
    ways_out: tuple[Mapping[str, object], ...]
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

    def _summary(self) -> Summary:
        return self._spelled(arguments_text)

    def _command_summary(self) -> Summary:
        return self._spelled(options_text)

    def _spelled(self, spell: Spelling) -> Summary:
        """Formats the options as a table, what limits the best one and what would help, and details of the search."""
        title = (
            f"training {self.model.name} on {self.cluster.name}: {self.config.batch} x {self.config.sequence} tokens"
        )
        if not self.options and not self.nearest:
            return Summary(title, [("fits", _NOT_CONSISTENT)], details=self._details())
        listed = {config for each in self.options for config in (each.config, *each.same)}
        front = [each for each in self.front if each.config not in listed]
        shown = front[:_SHOWN_FRONT]
        of = f" ({len(shown)} of {len(front)})" if len(front) > len(shown) else ""
        groups = [
            ("", _worth_a_row(self.options)),
            (f"slower, with less memory or fewer devices{of}", shown),
            ("nothing fits; the nearest, least memory first", self.nearest),
        ]
        best = self.best.plan
        advice = [("" if i else "fits with", way_text(way, spell)) for i, way in enumerate(self.ways_out)]
        if self.options:
            advice = [("would help", faster_text(self._faster(), best.seconds, spell))]
        below = [
            ("best" if self.options else "nearest", spell(settings(best.config)) or "the defaults of TrainingConfig"),
            ("limited by", limits_text(best.expected)),
            *advice,
            ("error", error_text(best._error(), best._kind())),
        ]
        return Summary(title, (), TABLE_HEAD, table_rows(groups, spell), below, self._details())

    def _faster(self) -> tuple[FasterChange, ...]:
        if not self.options:
            return ()
        others = [each.config for each in (*self.options, *self.front) if each.plan.devices == self.best.plan.devices]
        return faster_changes(self.best.plan, others)

    def _details(self) -> list[tuple[str, str]]:
        space = self.space
        return [
            ("settings", SETTINGS_TEXT),
            (
                "searched",
                f"{space.combinations:,} combinations: {space.consistent:,} consistent, {space.too_large:,} too large, "
                f"{space.skipped:,} skipped as no faster, {space.priced:,} estimated",
            ),
            ("limit", f"{self._limit_text()}, tensor at most {space.max_tensor}"),
            ("expected", "model: published rates (table) with the factors of Efficiency"),
            ("bound", f"published rates (table): {rates_text(self.cluster, self.config)}"),
            (
                "rows",
                "the same: as long within 1%, as much memory within 2%; slower options with as much memory have no row",
            ),
        ]

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

    def _content(self) -> dict[str, object]:
        def content(choice: TrainingChoice) -> dict[str, object]:
            plan = choice.plan
            return {
                "config": config_content(plan.config),
                "same": [changes(plan.config, each) for each in choice.same],
                "devices": plan.devices,
                "memory": plan.memory,
                "needed": plan.needed,
                "close": plan.close,
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
            "ways_out": [dict(way) for way in self.ways_out],
            "limited_by": limit_content(self.best.plan.expected) if self.options else None,
            "would_help": [each._asdict() for each in self._faster()],
            "run": None,
            "seconds_from": rates_text(self.cluster, self.config),
            "error": None if error is None else asdict(error),
            "space": {**vars(space), "choices": {key: list(value) for key, value in space.choices.items()}},
        }


def _worth_a_row(options: Iterable[TrainingChoice]) -> list[TrainingChoice]:
    """Returns the options without those that need as much memory as a faster one, on devices and hosts."""
    kept: list[TrainingChoice] = []
    for each in options:
        own = each.plan
        if not any(
            other.plan.memory <= _AS_MUCH * own.memory
            and other.plan.host_memory <= _AS_MUCH * own.host_memory
            and other.config.optimizer == each.config.optimizer
            for other in kept
        ):
            kept.append(each)
    return kept
