# SPDX-License-Identifier: Apache-2.0
"""The analytic planner of training runs."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from artifex_devices import _planner
from artifex_devices._base.checks import check_number, check_type, wrong_type
from artifex_devices._base.nearest_name import did_you_mean
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import Cluster
from artifex_devices.planner.shape import SHAPES, TransformerShape
from artifex_devices.planner.training.config import TrainingConfig
from artifex_devices.planner.training.efficiency import Efficiency
from artifex_devices.planner.training.values import TrainingPlan, TrainingSeconds, TrainingStage


def plan_training(
    shape: str | TransformerShape,
    cluster: Cluster,
    config: TrainingConfig,
    *,
    efficiency: Efficiency | None = None,
    measured: float | None = None,
) -> TrainingPlan:
    """Plans memory, seconds and utilisation of a training run with pipelines, ZeRO, recomputation and overlap.

    It is analytic: formulas of published papers, and the collectives of `plan_collective` on the cluster's links. It
    costs microseconds to milliseconds, whatever the number of devices. `plan_step` counts each tensor of a step, but
    knows no pipelines. docs/how_to/plan_a_training_run.md has the formulas and their sources.

    Args:
        shape: A name of `models.SHAPES`, or a shape.
        cluster: Cluster whose devices are used, all of them.
        config: Batch, parallelism, memory savings and overlap.
        efficiency: Factors of the expected seconds; None means `Efficiency.of(cluster)`.
        measured: Measured seconds of a step, to show beside the expected ones.

    Returns:
        A TrainingPlan; `print` shows it, `to_svg` draws it.

    Raises:
        ValueError: The shape is unknown, or values of the configuration do not fit the model, the cluster or each
            other; the text names all of them.
        TypeError: An argument has the wrong type.
        RuntimeError: A rate of the cluster that is needed is not known.

    Example:
        >>> from artifex_devices import cluster
        >>> from artifex_devices.planner import TrainingConfig, plan_training
        >>> config = TrainingConfig(
        ...     batch=2048, sequence=8192, tensor=8, sequence_parallel=True, pipeline=16, zero=1
        ... )
        >>> plan = plan_training("llama-3.1-405b", cluster.dgx("h100", nodes=2048), config)
        >>> plan.config.data, plan.microbatches, [stage.layers for stage in plan.stages][:3], plan.fits
        (128, 16, [7, 8, 8], True)
    """
    shape = checked_shape("plan_training", shape)
    check_type("plan_training", "cluster", cluster, Cluster, "a Cluster", "make one by artifex_devices.cluster")
    check_type("plan_training", "config", config, TrainingConfig, "a TrainingConfig", "write TrainingConfig(...)")
    efficiency = checked_efficiency("plan_training", efficiency, cluster)
    if measured is not None:
        measured = float(check_number("plan_training", "measured", measured, above=0))
    described = config._described(cluster.device_count)
    found = _planner.plan_training(vars(shape), cluster, described, efficiency._described(), cluster.device_count)
    return training_plan(shape, cluster, config.replaced(data=described["data"]), efficiency, measured, found)


def checked_shape(operation: str, shape: Any) -> TransformerShape:
    """Returns a shape for a name of `models.SHAPES`, in any case, or a shape."""
    if isinstance(shape, str):
        if shape.lower() not in SHAPES:
            raise ValueError(
                f"{operation}: shape is {safe_repr(shape)}{did_you_mean(shape, SHAPES)}; expected one of "
                f"{', '.join(SHAPES)}; or give a TransformerShape"
            )
        return SHAPES[shape.lower()]
    if not isinstance(shape, TransformerShape):
        raise wrong_type(operation, "shape", shape, "a name or a TransformerShape", "write 'llama-2-7b'")
    return shape


def checked_efficiency(operation: str, efficiency: Any, cluster: Cluster) -> Efficiency:
    """Returns the factors, or the published ones of the cluster for None."""
    if efficiency is None:
        return Efficiency.of(cluster)
    check_type(operation, "efficiency", efficiency, Efficiency, "an Efficiency or None", "write Efficiency.of(cluster)")
    checked: Efficiency = efficiency
    return checked


def training_plan(
    shape: TransformerShape,
    cluster: Cluster,
    config: TrainingConfig,
    efficiency: Efficiency,
    measured: float | None,
    found: dict[str, Any],
) -> TrainingPlan:
    """Builds the plan from what the core found."""
    expected, known = found["expected"], cluster.parts["host_memory_bytes"]
    stages = [
        TrainingStage(**stage, forward=expected["forward"][i], backward=expected["backward"][i])
        for i, stage in enumerate(found["stages"])
    ]
    return TrainingPlan(
        shape=shape,
        cluster=cluster,
        config=config,
        efficiency=efficiency,
        stages=tuple(stages),
        roofline=_seconds(found["roofline"]),
        expected=_seconds(expected),
        measured=measured,
        **{
            name: found[name]
            for name in ("model_flops", "executed_flops", "peak_flops", "available", "bubble_fraction", "host_memory")
        },
        host_available=int(known[0]) if known is not None and found["host_memory"] else None,
    )


def _seconds(found: dict[str, Any]) -> TrainingSeconds:
    return TrainingSeconds(MappingProxyType(found["parts"]), MappingProxyType(found["hidden"]))
