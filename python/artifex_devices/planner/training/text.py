# SPDX-License-Identifier: Apache-2.0
"""Texts of plans of training runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from artifex_devices._base.text import bytes_text, count_text, rate_text, seconds_text
from artifex_devices.planner.report import Layout
from artifex_devices.planner.training.efficiency import FACTORS
from artifex_devices.planner.training.tensor_dtypes import dtypes_text

if TYPE_CHECKING:
    from artifex_devices._core import Cluster
    from artifex_devices.planner.training.config import TrainingConfig
    from artifex_devices.planner.training.efficiency import Efficiency
    from artifex_devices.planner.training.published import PublishedError
    from artifex_devices.planner.training.values import TrainingPlan

_RATES = (  # of a cluster
    ("memory_bandwidth", "memory", "B/s"),
    ("bandwidth", "link", "B/s"),
    ("network_bandwidth", "network", "B/s a chip"),
)


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
    if config.expert_capacity is not None:
        parts[-1] += f", capacity {config.expert_capacity:g}{' padded' if config.expert_padding else ''}"
    offloaded = _offloaded(config)
    more = "" if offloaded == "nothing" else f", {_OFFLOADED[offloaded]} in host memory"
    return " x ".join(parts) + more + (", sums in switches between nodes (SHARP)" if config.sharp else "")


def rates_text(cluster: Cluster, config: TrainingConfig) -> str:
    """Formats the published rates of a roofline, each with its sources: "989 TFLOP/s bfloat16 [S8], memory ..."."""
    parts = cluster.parts
    texts = []
    flops = parts["peak_flops"].get(config.dtype)
    if flops is not None:
        texts.append(
            f"{rate_text(flops[0] / int(parts['devices_per_chip']), 'FLOP/s')} {config.dtype}{_from(flops[1])}"
        )
    for key, name, unit in _RATES:
        found = parts[key]
        if found is not None and (key != "network_bandwidth" or parts["slices"] > 1):
            texts.append(f"{name} {rate_text(found[0], unit)}{_from(found[1])}")
    return ", ".join(texts)


def _from(source: str) -> str:
    return f" [{source}]" if source else ""


def error_text(error: PublishedError | None) -> str:
    """Formats how far expected seconds were from published runs."""
    if error is None:
        return "not known: no published run of this chip was compared with these factors"
    if error.runs == 1:
        return f"{error.median:.1%} on the only published run on {error.chip} that was held out [{error.source}]"
    return (
        f"median {error.median:.1%}, nine of ten within {error.tail:.1%}: {error.runs} published runs on {error.chip} "
        f"that no factor was fitted to [{error.source}]"
    )


def factor_facts(efficiency: Efficiency, *, sharp: bool) -> list[tuple[str, str]]:
    """Formats the factors that act, numbered by source, and the sources as footnotes."""
    numbers: dict[str, int] = {}
    texts = []
    for name in FACTORS:
        value, source = getattr(efficiency, name), efficiency.sources[name]
        if value not in (0, 1) and (sharp or name != "sharp"):
            texts.append(f"{name} {value:.4g} [{numbers.setdefault(source, len(numbers) + 1)}]")
    if not texts:
        return [("factors", "none: the expected seconds are the roofline")]
    coded = {source: re.sub(r"^(S[0-9]+)\b", r"[\1]", source) for source in numbers}
    return [("factors", ", ".join(texts)), *((f"[{number}]", coded[source]) for source, number in numbers.items())]


def changes_text(changes: Mapping[str, object]) -> str:
    """Formats changed fields of a configuration: "zero=3, recompute='full'"."""
    return ", ".join(f"{name}={value!r}" for name, value in changes.items())


def plan_layout(plan: TrainingPlan, time_parts: Mapping[str, str], memory_parts: tuple[str, ...]) -> Layout:
    """Formats a plan: facts, and the waterfall as a table."""
    config, fullest = plan.config, max(plan.stages, key=lambda stage: stage.total)
    parts = ", ".join(f"{name} {bytes_text(getattr(fullest, name))}" for name in memory_parts if getattr(fullest, name))
    recompute = "" if config.recompute == "none" else f", recomputes {_recomputed(config)}"
    facts = [
        ("spread", ways_text(config)),
        (
            "batch",
            f"{config.batch} x {config.sequence} = {count_text(config.tokens)} tokens, {plan.microbatches} "
            f"microbatch{'' if plan.microbatches == 1 else 'es'} of {config.microbatch}{recompute}",
        ),
        (
            "memory",
            f"{bytes_text(plan.memory)} of {bytes_text(plan.available)} on a device of stage "
            f"{plan.stages.index(fullest)}: {'fits' if plan.memory <= plan.available else 'does not fit'}",
        ),
        ("", parts),
        *_host_facts(plan),
        *_nearest_facts(plan),
        *_dtypes_facts(config),
        (
            "roofline",
            f"{seconds_text(plan.roofline.total)}, {plan.utilization(plan.roofline.total):.1%} MFU, a bound: published "
            f"rates (table; {rates_text(plan.cluster, config)})",
        ),
        (
            "expected",
            f"{seconds_text(plan.seconds)}, {plan.mfu:.1%} MFU, "
            f"{count_text(plan.tokens_per_second)} tokens/s, {rate_text(plan.flops_per_second, 'FLOP/s')} each "
            "(model; the factors below)",
        ),
        ("error", error_text(plan._error())),
    ]
    if plan.measured is not None:
        error = plan.seconds / plan.measured - 1
        measured = f"{seconds_text(plan.measured)}, {plan.utilization(plan.measured):.1%} MFU"
        facts.append(("measured", f"{measured}; expected is {error:+.1%}"))
    hidden = ", ".join(f"{name} {seconds_text(value)}" for name, value in plan.expected.hidden.items() if value > 0)
    facts.append(("hidden", hidden or "nothing"))
    facts += factor_facts(plan.efficiency, sharp=config.sharp)
    rows = [
        (text, seconds_text(plan.roofline.parts[name]), seconds_text(value), f"{value / plan.seconds:.1%}")
        for name, text in time_parts.items()
        if (value := plan.expected.parts[name]) > 0 or plan.roofline.parts[name] > 0
    ]
    title = f"{plan.shape.name}, training on {plan.devices} devices of {plan.cluster.name}"
    return Layout(title, facts, ("part of a step", "roofline", "expected", "share"), rows)


def _host_facts(plan: TrainingPlan) -> list[tuple[str, str]]:
    if not plan.host_memory:
        return []
    if plan.host_available is None:
        return [("host", f"{bytes_text(plan.host_memory)} on the fullest host, whose memory is not known")]
    source = plan.cluster.parts["host_memory_bytes"][1]
    fits = "fits" if plan.host_memory <= plan.host_available else "does not fit"
    text = f"{bytes_text(plan.host_memory)} of {bytes_text(plan.host_available)} on the fullest host [{source}]: {fits}"
    return [("host", text)]


def _dtypes_facts(config: TrainingConfig) -> list[tuple[str, str]]:
    if not config.parameter_dtypes and not config.gradient_dtypes and not config.parameter_scale:
        return []
    parameters = dtypes_text(config.parameter_dtype, config.parameter_dtypes)
    if config.parameter_scale:
        parameters += f", {config.parameter_scale:.3g} bytes of scales for each of 8 bits or fewer"
    return [
        ("dtypes", f"parameters {parameters}; gradients {dtypes_text(config.gradient_dtype, config.gradient_dtypes)}")
    ]


def _nearest_facts(plan: TrainingPlan) -> list[tuple[str, str]]:
    nearest = plan._nearest_fits()
    texts = [
        f"{changes_text(found['changes'])}: {bytes_text(found['memory'])}, {seconds_text(found['seconds'])} (model)"
        for found in nearest.content(plan.config)
    ]
    texts += nearest.ways_out
    if not plan.fits and not texts:
        texts = ["no configuration that was tried, on this cluster or on one of up to 64 times its size"]
    return [("fits with" if i == 0 else "", text) for i, text in enumerate(texts)]


def choices_table(
    kinds: Sequence[tuple[str, Sequence[TrainingPlan]]],
) -> tuple[list[tuple[str, str]], tuple[str, ...], list[Sequence[str]]]:
    """Formats groups of plans: facts that hold for all, the head of a table of what differs, and its rows.

    Each group has a line with its title above its rows. The table has no column for data parallelism, which is the rest
    of the devices, so that it fits in 80 characters for most searches.
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


def _recomputed(config: TrainingConfig) -> str:
    if config.recompute != "full" or config.recompute_layers is None:
        return config.recompute
    if config.recompute_method == "uniform":
        return f"full, units of {config.recompute_layers}"
    return f"full, {config.recompute_layers} layer{'' if config.recompute_layers == 1 else 's'}"


def _offloaded(config: TrainingConfig) -> str:
    kinds = [kind for kind in ("optimizer", "activations") if getattr(config, f"offload_{kind}")]
    return "both" if len(kinds) == 2 else "".join(kinds) or "nothing"


_COLUMNS: dict[str, Callable[[TrainingPlan], str]] = {
    "tensor": lambda plan: str(plan.config.tensor),
    "context": _context,
    "stages": _stages,
    "ZeRO": _zero,
    "experts over": lambda plan: str(plan.config.expert),
    "micro": lambda plan: str(plan.config.microbatch),
    "recompute": lambda plan: _recomputed(plan.config),
    "optimizer": lambda plan: plan.config.optimizer,
    "offload": lambda plan: _offloaded(plan.config),
    "devices": lambda plan: str(plan.devices),
    "memory": lambda plan: bytes_text(plan.memory),
    "step": lambda plan: seconds_text(plan.seconds),
    "MFU": lambda plan: f"{plan.mfu:.1%}",
}
_OFFLOADED = {"optimizer": "optimizer state", "activations": "activations", "both": "optimizer state and activations"}
_USUAL = {  # not worth a word where all plans have it
    **dict.fromkeys(("tensor", "context", "stages", "experts over"), "1"),
    "optimizer": "adamw-fp32-master",
    "offload": "nothing",
}
_ALWAYS_SHOWN = ("memory", "step", "MFU")
