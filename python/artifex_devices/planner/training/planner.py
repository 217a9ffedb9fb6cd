# SPDX-License-Identifier: Apache-2.0
"""The analytic planner of training runs."""

from __future__ import annotations

from artifex_devices._base.checks import check_number
from artifex_devices._core import Cluster
from artifex_devices.planner.arguments import cluster_of
from artifex_devices.planner.shape import ModelLike, shape_of
from artifex_devices.planner.training.arguments import checked_efficiency, config_of
from artifex_devices.planner.training.config import TrainingConfig
from artifex_devices.planner.training.efficiency import Efficiency
from artifex_devices.planner.training.plan import TrainingPlan, planned

_OPERATION = "plan_training"


def plan_training(
    model: ModelLike,
    cluster: str | Cluster,
    config: TrainingConfig | None = None,
    *,
    batch: int | None = None,
    sequence: int | None = None,
    efficiency: Efficiency | None = None,
    measured: float | None = None,
    **fields: object,
) -> TrainingPlan:
    """Plans memory, seconds and utilisation of a training run with pipelines, ZeRO, recomputation and overlap.

    It is analytic: formulas of published papers, and the collectives of `plan_collective` on the cluster's links. It
    costs microseconds to milliseconds, whatever the number of devices. `plan_step` counts each tensor of a step, but
    knows no pipelines. docs/how_to/plan_a_training_run.md has the formulas and their sources.

    Args:
        model: A name of `models.SHAPES`, an id on the Hugging Face Hub, the path of a config.json, of its folder or of
            a TOML file, or a shape.
        cluster: Cluster whose devices are used, all of them, or a text as `cluster.from_text` takes.
        config: Batch, parallelism, memory savings and overlap. Give either this or its fields.
        batch: Number of sequences in a step, over all devices.
        sequence: Number of tokens in a sequence.
        efficiency: Factors of the expected seconds, by default `Efficiency.of(cluster)`.
        measured: Measured seconds of a step, to show next to the expected seconds.
        **fields: Other fields of a TrainingConfig, such as `tensor=8`. With `chunks` above 1 the schedule is
            "interleaved" unless it is given.

    Returns:
        A TrainingPlan; `print` shows it, `to_svg` draws it.

    Raises:
        ValueError: The model is unknown, or values of the configuration do not fit the model, the cluster or each
            other; the text names all of them.
        TypeError: An argument has the wrong type, `batch` or `sequence` is missing, or both `config` and fields are
            given.
        RuntimeError: A rate of the cluster that is needed is not known.

    Example:
        >>> from artifex_devices.planner import plan_training
        >>> plan = plan_training(
        ...     "llama-3.1-405b", "2048 x dgx h100", batch=2048, sequence=8192, tensor=8, sequence_parallel=True,
        ...     pipeline=16, zero=1,
        ... )
        >>> plan.config.data, plan.microbatches, [stage.layers for stage in plan.stages][:3], plan.close
        (128, 16, [7, 8, 8], True)
    """
    shape, network = shape_of(_OPERATION, model), cluster_of(_OPERATION, cluster)
    found = config_of(_OPERATION, config, batch, sequence, fields)
    factors = checked_efficiency(_OPERATION, efficiency, network)
    if measured is not None:
        measured = float(check_number(_OPERATION, "measured", measured, above=0))
    return planned(shape, network, found, factors, network.device_count, measured)
