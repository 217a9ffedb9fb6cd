# SPDX-License-Identifier: Apache-2.0
"""suggest: one search for training runs and for shardings of a step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, overload

from artifex_devices._core import Cluster
from artifex_devices.planner.arguments import cluster_of, refuse
from artifex_devices.planner.shape import ModelLike, shape_of
from artifex_devices.planner.step import StepModel, Suggestions, suggest_shardings
from artifex_devices.planner.training import Efficiency, TrainingSuggestions, suggest_configs


@overload
def suggest(
    model: StepModel,
    cluster: str | Cluster,
    *,
    top: int = 5,
    max_axes: int = 2,
    axes: Sequence[str] | None = None,
    overlap: bool = True,
    efficiency: Efficiency | None = None,
    progress: bool = True,
) -> Suggestions: ...


@overload
def suggest(
    model: ModelLike,
    cluster: str | Cluster,
    *,
    batch: int,
    sequence: int,
    top: int = 5,
    max_tensor: int | None = None,
    device_counts: Iterable[int] | None = None,
    efficiency: Efficiency | None = None,
    max_axes: None = None,
    axes: None = None,
    progress: bool = True,
    **pinned: object,
) -> TrainingSuggestions: ...


def suggest(
    model: ModelLike | StepModel,
    cluster: str | Cluster,
    *,
    batch: int | None = None,
    sequence: int | None = None,
    top: int = 5,
    max_tensor: int | None = None,
    device_counts: Iterable[int] | None = None,
    efficiency: Efficiency | None = None,
    max_axes: int | None = None,
    axes: Sequence[str] | None = None,
    progress: bool = True,
    **pinned: object,
) -> Suggestions | TrainingSuggestions:
    """Finds the fastest way to run a model on a cluster, among all that fit in memory.

    For a model by name, or a `models.TransformerShape`, it searches training runs: tensor, context (with its method),
    pipeline, interleaved chunks, expert and data parallelism, microbatches, ZeRO stages, recomputation, and offloading
    to the host where a configuration does not fit without it. It prices them by the model of `plan_training`.

    For a `models.StepModel` it searches shardings by rules: every mesh of 1 to `max_axes` axes, with the devices in
    order of id and in JAX's order, and on each mesh every set of rules, priced by the model of `plan_step`. There is no
    pipeline parallelism in this space.

    Both searches are exact: a combination is skipped only if a lower bound of its seconds exceeds the best found.
    Ctrl-C ends them.

    Args:
        model: A name of `models.SHAPES`, an id on the Hugging Face Hub, the path of a config.json, of its folder or of
            a TOML file, a shape, or the StepModel of one step.
        cluster: Cluster whose devices are used, or a text as `cluster.from_text` takes.
        batch: Number of sequences in a step, over all devices. A StepModel has its own.
        sequence: Number of tokens in a sequence. A StepModel has its own.
        top: Number of options to return.
        max_tensor: For a training run, largest tensor parallelism; None means the devices of a node, at most 8 behind
            switches and 16 on a torus.
        device_counts: For a training run, numbers of devices to compare. By default the best options use all devices of
            the cluster, and the Pareto front also considers half and a quarter.
        efficiency: Factors of the expected seconds, by default `Efficiency.of(cluster)`.
        max_axes: For a StepModel, maximum number of mesh axes, 1 to 4; None means 2. Each axis multiplies the search by
            the number of sets of logical axes.
        axes: For a StepModel, logical axes that rules may shard, or None for all dimensions of a product's operands and
            results.
        progress: Whether to show a progress bar on standard error, if that is a terminal.
        **pinned: For a StepModel, `overlap=False` ranks steps by seconds without overlap of collectives and the rest.
            For a training run, fields of TrainingConfig. For a searched field (tensor, context, context_method,
            pipeline, chunks, expert, microbatch, zero, zero_shards, recompute, offload_optimizer, offload_activations),
            a value pins it and a list gives its choices. A list of optimizers is searched too; without a list all
            options have the same. Other fields apply to all options. Sequences are sharded over tensor ranks. Without
            `recompute_layers` (a number or a list), the search tries a quarter, half, three quarters and all layers of
            a stage, or units of 1, 2 and 4 layers for `recompute_method="uniform"`.

    Returns:
        TrainingSuggestions, or Suggestions for a StepModel; `print` shows the options and, where nothing fits, the
        nearest changes that would.

    Raises:
        ValueError: The model is unknown, a number is out of range, a pinned field or an axis is unknown, or the space
            is too large.
        TypeError: An argument has the wrong type, does not belong to this kind of model, or `batch` or `sequence` is
            missing.
        RuntimeError: A rate of the cluster that is needed is not known.

    Example:
        >>> from artifex_devices import models
        >>> from artifex_devices.planner import suggest
        >>> found = suggest("llama-3-8b", "8 x h100", batch=64, sequence=8192)
        >>> found.best.plan.fits, found.best.plan.devices
        (True, 8)
        >>> small = models.mlp(embed=1024, mlp=4096, layers=4, tokens=2**16)
        >>> suggest(small, "tpu v5e 4x4", top=1).options[0].rules
        {'batch': ('data',), 'embed': ('data',)}
    """
    name = "suggest"
    network = cluster_of(name, cluster)
    of_runs = {
        "batch": batch, "sequence": sequence, "max_tensor": max_tensor, "device_counts": device_counts,
    }  # fmt: skip
    of_steps = {"max_axes": max_axes, "axes": axes}
    if isinstance(model, StepModel):
        overlap: Any = pinned.pop("overlap", True)
        refuse(
            name,
            of_runs | pinned,
            "the search for a StepModel",
            "max_axes, axes, overlap, efficiency, top and progress",
        )
        axes_of_mesh = 2 if max_axes is None else max_axes
        return suggest_shardings(
            model, network, top=top, max_axes=axes_of_mesh, axes=axes, overlap=overlap, efficiency=efficiency,
            progress=progress,
        )  # fmt: skip
    shape = shape_of(name, model)
    refuse(
        name, of_steps, "the search for a training run", "fields of TrainingConfig, or a models.StepModel as the model"
    )
    return suggest_configs(
        shape, network, batch=batch, sequence=sequence, top=top, max_tensor=max_tensor,
        device_counts=device_counts, efficiency=efficiency, progress=progress,
        pinned=pinned,
    )  # fmt: skip
