# SPDX-License-Identifier: Apache-2.0
"""What limits a training step, and the changes of its settings that shorten it most."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from artifex_devices._base.text import seconds_text
from artifex_devices.planner.training.config import CONTEXT_METHODS, RECOMPUTES, TrainingConfig
from artifex_devices.planner.training.nearest import Plan
from artifex_devices.planner.training.space import largest_tensor
from artifex_devices.planner.training.spelling import Spelling, changes
from artifex_devices.planner.training.values import TIME_PARTS, TrainingSeconds

_LEAST_SAVED = 0.01  # of a step
_MOST = 3


class FasterChange(NamedTuple):
    """A change of settings that shortens a step."""

    changes: dict[str, object]
    memory: int
    needed: int
    seconds: float
    saved: float


def faster_changes(plan: Plan, others: Iterable[TrainingConfig] = ()) -> tuple[FasterChange, ...]:
    """Returns the changes that save most seconds, the best one first; none for a plan that does not fit.

    Each changes one setting to its next smaller or larger value or to another kind, fits in memory, and saves
    a hundredth of the step at least. The seconds are of a plan with the change. Products in float8 are tried with the
    settings of `others` too.
    """
    if not plan.fits:
        return ()
    found = [best for choices in _changes(plan, others) if (best := _fastest(plan, choices)) is not None]
    most = _LEAST_SAVED * plan.seconds
    helpful = sorted((each for each in found if each.saved >= most), key=lambda each: each.seconds)
    return tuple(helpful[:_MOST])


def faster_text(found: tuple[FasterChange, ...], seconds: float, spell: Spelling) -> str:
    """Formats changes of a plan that takes `seconds`, with the seconds that each saves."""
    if not found:
        return "none of the changes that were tried saves 1% or more"
    return "; ".join(
        f"{spell(each.changes)} saves {seconds_text(each.saved, 3)} ({each.saved / seconds:.1%})" for each in found
    )


def limit_content(seconds: TrainingSeconds) -> dict[str, object]:
    """Returns the largest part of a step as JSON has it."""
    part, value = _largest(seconds)[0]
    return {"part": part, "seconds": value}


def limits_text(seconds: TrainingSeconds) -> str:
    """Formats the two largest parts of a step: "matrix products, 2 s of 3 s (66.7%); then attention, 0.5 s (16.7%)"."""
    (first, most), (second, less) = _largest(seconds)
    then = f"; then {TIME_PARTS[second]}, {seconds_text(less, 3)} ({less / seconds.total:.1%})" if less else ""
    of = f"{seconds_text(most, 3)} of {seconds_text(seconds.total, 3)} ({most / seconds.total:.1%})"
    return f"{TIME_PARTS[first]}, {of}{then}"


def _largest(seconds: TrainingSeconds) -> list[tuple[str, float]]:
    return sorted(seconds.parts.items(), key=lambda part: -part[1])[:2]


def _fastest(plan: Plan, choices: Iterator[dict[str, Any]]) -> FasterChange | None:
    best: FasterChange | None = None
    for choice in choices:
        try:
            found = plan._with_config(plan.config.replaced(data=None, **choice))
        except ValueError:  # the change does not suit the model, the batch or the cluster
            continue
        if not found.fits:
            continue
        if best is None or found.seconds < best.seconds:
            changed = changes(plan.config, found.config)
            best = FasterChange(changed, found.memory, found.needed, found.seconds, plan.seconds - found.seconds)
    return best


def _changes(plan: Plan, others: Iterable[TrainingConfig]) -> Iterator[Iterator[dict[str, Any]]]:
    """Yields the choices of each setting."""
    config, shape, cluster = plan.config, plan.model, plan.cluster
    if not config.flash_attention:
        yield iter([{"flash_attention": True}])
    if config._attention_kernel == "flash2":
        yield iter([{"attention_kernel": "native"}])
    if config.dtype in ("bfloat16", "float16") and cluster.parts["peak_flops"].get("float8") is not None:
        yield ({**changes(config, each), "dtype": "float8"} for each in (config, *others))
    yield ({"microbatch": each} for each in _next(_divisors(config.batch), config.microbatch))
    yield _lighter_recomputation(plan)
    more = {} if config.tensor > 1 else {"sequence_parallel": True}
    tensor = [each for each in _divisors(shape.heads) if each <= largest_tensor(cluster, None)]
    yield ({"tensor": each, **(more if each > 1 else {})} for each in _next(tensor, config.tensor))
    if config.tensor > 1 and not config.sequence_parallel:
        yield iter([{"sequence_parallel": True}])
    yield ({"context": each} for each in _next([1 << i for i in range(10)], config.context))
    if config.context > 1:
        yield ({"context_method": each} for each in CONTEXT_METHODS if each != config.context_method)
    stages = [each for each in _divisors(plan.devices) if each <= shape.layers]
    one_chunk: dict[str, Any] = {"schedule": "1f1b", "chunks": 1} if config.chunks > 1 else {}
    yield ({"pipeline": each, **(one_chunk if each == 1 else {})} for each in _next(stages, config.pipeline))
    if config.pipeline > 1:
        chunks = range(2, shape.layers // config.pipeline + 1)
        yield ({"schedule": "interleaved", "chunks": each} for each in chunks if each != config.chunks)
    yield ({"zero": each, **_same_kernel(config, each)} for each in range(4) if each != config.zero)
    if config.zero and cluster.slices > 1:
        inside = cluster.device_count // cluster.slices
        yield ({"zero_shards": each} for each in (None, inside) if each != config.zero_shards)
    if shape.experts > 1:
        yield ({"expert": each} for each in _next(_divisors(shape.experts), config.expert))
    for name in ("offload_optimizer", "offload_activations"):
        if getattr(config, name):
            yield iter([{name: False}])


def _same_kernel(config: TrainingConfig, zero: int) -> dict[str, Any]:
    """Returns what keeps the kernel of attention where its default depends on the ZeRO stage."""
    kernel = config._attention_kernel
    return {} if config.replaced(zero=zero, data=None)._attention_kernel == kernel else {"attention_kernel": kernel}


def _lighter_recomputation(plan: Plan) -> Iterator[dict[str, Any]]:
    config = plan.config
    for kind in RECOMPUTES[: RECOMPUTES.index(config.recompute)]:
        if kind == "none" or not config.flash_attention:
            yield {"recompute": kind, "recompute_layers": None}
    if config.recompute == "full" and config.recompute_method == "block":
        layers = config.recompute_layers or max(stage.layers for stage in plan.stages)
        yield from ({"recompute_layers": each} for each in sorted({layers // 4, layers // 2, layers * 3 // 4} - {0}))


def _divisors(number: int) -> list[int]:
    return [each for each in range(1, min(number, 1 << 16) + 1) if number % each == 0]


def _next(values: list[int], value: int) -> list[int]:
    """Returns the next smaller and the next larger value."""
    smaller, larger = [each for each in values if each < value], [each for each in values if each > value]
    return smaller[-1:] + larger[:1]
