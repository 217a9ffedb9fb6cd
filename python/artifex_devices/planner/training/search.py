# SPDX-License-Identifier: Apache-2.0
"""Search for the configuration of a training run that suits a model on a cluster."""

from __future__ import annotations

from collections.abc import Iterable

from artifex_devices._base.checks import check_bool, check_int, check_number, check_type
from artifex_devices._core import Cluster
from artifex_devices.planner.shape import TransformerShape
from artifex_devices.planner.training.arguments import checked_efficiency, checked_shape
from artifex_devices.planner.training.choices import TrainingChoice, TrainingSuggestions
from artifex_devices.planner.training.config import TrainingConfig
from artifex_devices.planner.training.efficiency import Efficiency
from artifex_devices.planner.training.plan import planned
from artifex_devices.planner.training.space import find_configs


def suggest_training(
    shape: str | TransformerShape,
    cluster: Cluster,
    *,
    batch: int,
    sequence: int,
    top: int = 5,
    max_tensor: int | None = None,
    memory_headroom: float = 0.1,
    device_counts: Iterable[int] | None = None,
    efficiency: Efficiency | None = None,
    progress: bool = True,
    **pinned: object,
) -> TrainingSuggestions:
    """Finds the fastest configurations of a training run that fit in memory, by the model of `plan_training`.

    The search combines tensor, context (with its method), pipeline, interleaved chunks, expert and data parallelism,
    microbatches, ZeRO stages, recomputation, and offloading to the host where a configuration does not fit without it.
    It is exact: a combination is skipped only if a lower bound of its seconds exceeds the best found. Ctrl-C ends it.

    Args:
        shape: A name of `models.SHAPES`, or a shape.
        cluster: Cluster whose devices are used.
        batch: Number of sequences in a step.
        sequence: Number of tokens in a sequence.
        top: Number of options to return.
        max_tensor: Largest tensor parallelism; None means the devices of a node, at most 8 behind switches and 16 on a
            torus.
        memory_headroom: Part of the memory of devices and hosts that stays free, for fragmentation and buffers.
        device_counts: Numbers of devices to compare. By default the best options use all devices of the cluster, and
            the Pareto front also considers half and a quarter.
        efficiency: Factors of the seconds, by default `Efficiency.of(cluster)`.
        progress: Whether to show a progress bar on standard error, if that is a terminal.
        **pinned: Fields of TrainingConfig. For a searched field (tensor, context, context_method, pipeline, chunks,
            expert, microbatch, zero, zero_shards, recompute, offload_optimizer, offload_activations), a value pins it
            and a list gives its choices. A list of optimizers is searched too; without a list all options have the
            same. Other fields apply to all options. Sequences are sharded over tensor ranks. Without
            `recompute_layers` (a number or a list), the search tries a quarter, half, three quarters and all layers of
            a stage, or units of 1, 2 and 4 layers for `recompute_method="uniform"`.

    Returns:
        TrainingSuggestions; `print` shows the options, the Pareto front and, where nothing fits, the nearest changes
        that would.

    Raises:
        ValueError: A number is out of range, or a pinned field is unknown.
        TypeError: An argument has the wrong type.
        RuntimeError: A rate of the cluster that is needed is not known.

    Example:
        >>> from artifex_devices import cluster
        >>> from artifex_devices.planner import suggest_training
        >>> found = suggest_training("llama-2-7b", cluster.dgx("h100", nodes=4), batch=256, sequence=4096)
        >>> found.best.plan.fits, found.best.plan.devices
        (True, 32)
    """
    name = "suggest_training"
    shape = checked_shape(name, shape)
    check_type(name, "cluster", cluster, Cluster, "a Cluster", "write cluster.tpu('v5e', (16, 16))")
    factors = checked_efficiency(name, efficiency, cluster)
    count = check_int(name, "top", top, minimum=1, maximum=1000)
    headroom = check_number(name, "memory_headroom", memory_headroom, minimum=0)
    if headroom >= 1:
        raise ValueError(f"{name}: memory_headroom is {headroom}; expected 0 to below 1; write 0.1 for a tenth")
    check_bool(name, "progress", progress)
    found = find_configs(
        shape, cluster, factors, pinned, batch=batch, sequence=sequence, top=count, headroom=headroom,
        max_tensor=max_tensor, device_counts=device_counts, progress=bool(progress),
    )  # fmt: skip

    def choices(configs: Iterable[tuple[TrainingConfig, int]]) -> tuple[TrainingChoice, ...]:
        return tuple(TrainingChoice(planned(shape, cluster, config, factors, devices)) for config, devices in configs)

    front = _front(choices(found.front))
    options, nearest = choices(found.options), choices(found.nearest)
    return TrainingSuggestions(shape, cluster, found.config, options, front, nearest, found.ways_out, found.space)


def _front(choices: Iterable[TrainingChoice]) -> tuple[TrainingChoice, ...]:
    """Returns the choices that no other one beats in seconds, memory and devices, without near equals.

    A slower choice with as many devices counts only where it saves a twentieth of the memory.
    """

    def numbers(each: TrainingChoice) -> tuple[float, float, int]:
        return (each.plan.seconds, each.plan.memory, each.plan.devices)

    kept: list[TrainingChoice] = []
    for each in sorted(choices, key=numbers):
        own = numbers(each)
        if not any(other.plan.devices <= own[2] and 0.95 * other.plan.memory <= own[1] for other in kept):
            kept.append(each)
    return tuple(kept)
