# SPDX-License-Identifier: Apache-2.0
"""Tables of several plans of training runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from artifex_devices._base.text import bytes_text, seconds_text
from artifex_devices.planner.training.plan import TrainingPlan
from artifex_devices.planner.training.text import offloaded_text, recomputed_text


def choices_table(
    kinds: Sequence[tuple[str, Sequence[TrainingPlan]]],
) -> tuple[list[tuple[str, str]], tuple[str, ...], list[Sequence[str]]]:
    """Formats groups of plans: facts that hold for all, the head of a table of what differs, and its rows.

    Each group has a line with its title above its rows. To fit in 80 characters for most searches, the table has no
    column for data parallelism, which follows from the other columns and the number of devices.
    """
    plans = [plan for _, group in kinds for plan in group]
    columns = {name: [text(plan) for plan in plans] for name, text in _COLUMNS.items()}
    same = {name: cells[0] for name, cells in columns.items() if plans and len(set(cells)) == 1}
    shown = [name for name in columns if name not in same or name in _ALWAYS_SHOWN]
    hidden = {*_ALWAYS_SHOWN, *(name for name, cell in _USUAL.items() if same.get(name) == cell)}
    common = [f"{name} {text}" for name, text in same.items() if name not in hidden]
    if plans and all(plan.config.sequence_parallel for plan in plans if plan.config.tensor > 1):
        common += ["sequences sharded over tensor ranks too"] * any(plan.config.tensor > 1 for plan in plans)
    rows: list[Sequence[str]] = []
    at = 0
    for title, group in kinds:
        if group:
            rows.append((title,))
        for i in range(len(group)):
            rows.append((str(i + 1), *(columns[name][at] for name in shown)))
            at += 1
    return [("all have", ", ".join(common))] if common else [], ("", *shown), rows


def _stages(plan: TrainingPlan) -> str:
    chunks = plan.config.chunks
    return f"{plan.config.pipeline}{f' x {chunks}' if chunks > 1 else ''}"


def _zero(plan: TrainingPlan) -> str:
    config = plan.config
    return f"{config.zero}{f' of {config.zero_shards}' if config.zero and config.zero_shards else ''}"


def _context(plan: TrainingPlan) -> str:
    config = plan.config
    return f"{config.context} {config.context_method.replace('_', '-')}" if config.context > 1 else "1"


_COLUMNS: dict[str, Callable[[TrainingPlan], str]] = {
    "tensor": lambda plan: str(plan.config.tensor),
    "context": _context,
    "stages": _stages,
    "ZeRO": _zero,
    "experts over": lambda plan: str(plan.config.expert),
    "micro": lambda plan: str(plan.config.microbatch),
    "recompute": lambda plan: recomputed_text(plan.config),
    "optimizer": lambda plan: plan.config.optimizer,
    "offload": lambda plan: offloaded_text(plan.config),
    "devices": lambda plan: str(plan.devices),
    "memory": lambda plan: bytes_text(plan.memory),
    "step": lambda plan: seconds_text(plan.seconds),
    "MFU": lambda plan: f"{plan.mfu:.1%}",
}
_USUAL = {  # not worth a word where all plans have it
    **dict.fromkeys(("tensor", "context", "stages", "experts over"), "1"),
    "optimizer": "adamw-fp32-master",
    "offload": "nothing",
}
_ALWAYS_SHOWN = ("memory", "step", "MFU")
