# SPDX-License-Identifier: Apache-2.0
"""Tables of the configurations of a search."""

from __future__ import annotations

from collections.abc import Sequence

from artifex_devices._base.text import bytes_text, seconds_text, shortened
from artifex_devices.planner.training.choice import TrainingChoice
from artifex_devices.planner.training.config import TrainingConfig
from artifex_devices.planner.training.frameworks import defaults_of
from artifex_devices.planner.training.plan import TrainingPlan
from artifex_devices.planner.training.spelling import Spelling, changes
from artifex_devices.planner.training.text import offloaded_text, recomputed_text

TABLE_HEAD = ("", "memory", "expected", "bound", "MFU", "settings")
SETTINGS_TEXT = (
    "TP, CP, PP, EP: devices for tensor, context, pipeline (x chunks) and expert parallelism, 1 where it is left out; "
    "micro: sequences of a microbatch; data parallelism is the rest of the devices; memory: what a device must have, "
    "close within 10 % of what it has"
)
_SHOWN_SAME = 1


def table_rows(groups: Sequence[tuple[str, Sequence[TrainingChoice]]], spell: Spelling) -> list[Sequence[str]]:
    """Formats groups of choices. A group with a title has a line above its rows, a choice with equals one below."""
    rows: list[Sequence[str]] = []
    number = 0
    for title, group in groups:
        if group and title:
            rows.append((title,))
        for choice in group:
            number += 1
            rows.append((str(number), *_cells(choice.plan)))
            others = [spell(changes(choice.config, each)) for each in choice.same]
            if others:
                rows.append((f"   the same with {'; '.join(shortened(others, _SHOWN_SAME))}",))
    return rows


def _cells(plan: TrainingPlan) -> tuple[str, ...]:
    settings = settings_text(plan.config)
    if plan.devices < plan.cluster.device_count:
        settings += f", on {plan.devices} devices"
    bound = seconds_text(plan.roofline.total, 3)
    memory = f"{bytes_text(plan.needed)}{' close' if plan.close else ''}"
    return (memory, seconds_text(plan.seconds), bound, f"{plan.mfu:.1%}", settings)


def settings_text(config: TrainingConfig) -> str:
    """Formats the settings that a search chooses: "TP 2, PP 4 x 5, ZeRO 1, recompute 8 layers"."""
    texts = []
    if config.tensor > 1:
        texts.append(f"TP {config.tensor}")
    if config.context > 1:
        texts.append(f"CP {config.context} {config.context_method.replace('_', '-')}")
    if config.pipeline > 1:
        texts.append(f"PP {config.pipeline}{f' x {config.chunks}' if config.chunks > 1 else ''}")
    if config.expert > 1:
        texts.append(f"EP {config.expert}")
    if config.zero:
        texts.append(f"ZeRO {config.zero}{f' of {config.zero_shards}' if config.zero_shards else ''}")
    if config.microbatch > 1:
        texts.append(f"micro {config.microbatch}")
    if config.recompute != "none":
        texts.append(f"recompute {recomputed_text(config).removeprefix('full, ')}")
    if config.optimizer != defaults_of(config.framework)["optimizer"]:
        texts.append(str(config.optimizer))
    offloaded = offloaded_text(config)
    if offloaded != "nothing":
        texts.append(f"offload {offloaded}")
    return ", ".join(texts) or "data parallelism alone"
