# SPDX-License-Identifier: Apache-2.0
"""The analytic planner of training runs."""

from __future__ import annotations

from artifex_devices._base.checks import check_number, check_type
from artifex_devices._core import Cluster
from artifex_devices.planner.shape import TransformerShape
from artifex_devices.planner.training.arguments import checked_efficiency, checked_shape
from artifex_devices.planner.training.config import TrainingConfig
from artifex_devices.planner.training.efficiency import Efficiency
from artifex_devices.planner.training.plan import TrainingPlan, planned


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
        efficiency: Factors of the expected seconds, by default `Efficiency.of(cluster)`.
        measured: Measured seconds of a step, to show next to the expected seconds.

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
    check_type("plan_training", "cluster", cluster, Cluster, "a Cluster", "write cluster.tpu('v5e', (16, 16))")
    check_type("plan_training", "config", config, TrainingConfig, "a TrainingConfig", "write TrainingConfig(...)")
    efficiency = checked_efficiency("plan_training", efficiency, cluster)
    if measured is not None:
        measured = float(check_number("plan_training", "measured", measured, above=0))
    return planned(shape, cluster, config, efficiency, cluster.device_count, measured)
