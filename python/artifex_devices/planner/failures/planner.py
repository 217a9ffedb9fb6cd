# SPDX-License-Identifier: Apache-2.0
"""plan_failures: how much of its time a training run with failures is useful."""

from __future__ import annotations

from math import ceil, prod
from typing import Any

from artifex_devices import _planner
from artifex_devices._base.checks import check_int, check_number, check_type, failure
from artifex_devices.planner.failures.plan import FailurePlan, PolicyOutcome
from artifex_devices.planner.plain_numbers import plain
from artifex_devices.planner.training import TrainingPlan, itemsize_of

_OPERATION = "plan_failures"
_STATE_BYTES = {"adamw-fp32-master": 12, "adam": 8, "adafactor": 4, "muon": 8, "sgd": 0}  # of a parameter


def plan_failures(
    plan: TrainingPlan,
    *,
    restart_seconds: float,
    mtbf_hours: float | None = None,
    failure_rate: float | None = None,
    save_seconds: float | None = None,
    restore_seconds: float | None = None,
    storage_bandwidth: float | None = None,
    spares: int = 0,
    repair_hours: float = 24,
    interval_seconds: float | None = None,
    days: float = 30,
    runs: int = 400,
    seed: int = 0,
) -> FailurePlan:
    """Plans checkpoints of a training run whose devices fail, and compares what it may do after a failure.

    Policies: "restart" starts all processes again and restores the last checkpoint. "spare" replaces the failed node by
    a spare whose processes run already, and restores; when no spare is left it restarts. "drop-a-replica" goes on with
    the other replicas until the node is repaired. It loses no work if the others hold all that the failed replica
    holds: without ZeRO, or with `zero_shards` below the number of replicas. Otherwise it restores the last checkpoint.

    Failures are at random times, independent of each other, also during recoveries. Give their rate as `mtbf_hours` or
    `failure_rate`, and the seconds of a checkpoint as `save_seconds` or `storage_bandwidth`.

    Args:
        plan: The training run, from `plan_training`.
        restart_seconds: Seconds to notice a failure and to start all processes again.
        mtbf_hours: Mean hours between failures of the run.
        failure_rate: Failures of 1,000 devices in a day.
        save_seconds: Seconds that training stops for a checkpoint; those of an asynchronous save are its copy only.
        restore_seconds: Seconds to read a checkpoint; by default as many as `storage_bandwidth` or a save takes.
        storage_bandwidth: Bytes per second of the storage, of all devices together.
        spares: Number of spare nodes, which are idle until a node fails.
        repair_hours: Hours until a failed node is a spare again, or its replica returns.
        interval_seconds: Seconds of work between checkpoints; by default the best by Daly's formula.
        days: Simulated days of each run.
        runs: Number of simulated runs.
        seed: Seed of the failures.

    Returns:
        A FailurePlan; `print` shows it.

    Raises:
        ValueError: A number is out of its range, or one of two alternatives is missing or both are given.
        TypeError: An argument has the wrong type.

    Example:
        >>> from artifex_devices import cluster
        >>> from artifex_devices.planner import TrainingConfig, plan_failures, plan_training
        >>> config = TrainingConfig(batch=2048, sequence=8192, tensor=8, pipeline=16, zero=1)
        >>> plan = plan_training("llama-3.1-405b", cluster.dgx("h100", nodes=2048), config)
        >>> drill = plan_failures(plan, mtbf_hours=3.1, restart_seconds=600, storage_bandwidth=2e12)
        >>> 0.9 < drill.useful < 0.95
        True

    Source: Young, Communications of the ACM 17 (1974), 530-531; Daly, Future Generation Computer Systems 22 (2006),
        303-312, equations 20 and 37.
    """
    check_type(_OPERATION, "plan", plan, TrainingPlan, "a TrainingPlan", "write plan_training(...)")
    _one_of("mtbf_hours", mtbf_hours, "failure_rate", failure_rate, "mtbf_hours=3")
    _one_of("save_seconds", save_seconds, "storage_bandwidth", storage_bandwidth, "save_seconds=30")
    if failure_rate is not None:
        mtbf_hours = 24_000 / (_number("failure_rate", failure_rate) * plan.devices)
    nbytes = _checkpoint_bytes(plan)
    if storage_bandwidth is not None:
        save_seconds = nbytes / _number("storage_bandwidth", storage_bandwidth)
    mtbf, save = _number("mtbf_hours", mtbf_hours), _number("save_seconds", save_seconds)
    restore = save if restore_seconds is None else _number("restore_seconds", restore_seconds, zero=True)
    restart = _number("restart_seconds", restart_seconds, zero=True)
    repair = _number("repair_hours", repair_hours, zero=True)
    simulated: dict[str, Any] = {
        "days": _number("days", days),
        "runs": check_int(_OPERATION, "runs", plain(runs), "write 400", minimum=1, maximum=2**20),
        "seed": check_int(_OPERATION, "seed", plain(seed), "write 0", minimum=0, maximum=2**62),
    }
    spares = check_int(_OPERATION, "spares", plain(spares), "write 8", minimum=0, maximum=2**31)
    config = plan.config
    replicas = config.data or 1
    model: dict[str, Any] = {
        "mtbf": 3600 * mtbf,
        "save": save,
        "restore": restore,
        "restart": restart,
        "repair": 3600 * repair,
        "step": plan.seconds,
        "interval": 0.0 if interval_seconds is None else _number("interval_seconds", interval_seconds),
        "horizon": 86_400 * simulated["days"],
        "spares": spares,
        "replicas": replicas,
        "keeps_state": config.zero == 0 or (config.zero_shards or replicas) < replicas,
        "runs": simulated["runs"],
        "seed": simulated["seed"],
    }
    found: dict[str, Any] = _planner.drill_failures(model)
    with_spares = plan.devices + spares * prod(plan.cluster.parts["host_shape"] or (1,))
    outcomes = []
    for each in found.pop("outcomes"):
        used = plan.devices / with_spares if each["policy"] == "spare" else 1
        outcomes.append(PolicyOutcome(**each, useful_of_devices=each["useful"] * used))
    return FailurePlan(
        plan=plan, mtbf_hours=mtbf, save_seconds=save, restore_seconds=restore, restart_seconds=restart,
        repair_hours=repair, spares=spares, checkpoint_bytes=nbytes, outcomes=tuple(outcomes), **found, **simulated,
    )  # fmt: skip


def _checkpoint_bytes(plan: TrainingPlan) -> int:
    """Returns the bytes of parameters and optimizer state."""
    config = plan.config
    each = itemsize_of(_OPERATION, "parameter_dtype", config.parameter_dtype) + _STATE_BYTES[str(config.optimizer)]
    return ceil(plan.model.parameters.total * each)


def _number(name: str, value: object, *, zero: bool = False) -> float:
    """Returns a float above 0, or of 0 or more."""
    limits: dict[str, Any] = {"minimum": 0} if zero else {"above": 0}
    return float(check_number(_OPERATION, name, plain(value), "write 60", **limits))


def _one_of(first: str, value: object, second: str, other: object, fix: str) -> None:
    if (value is None) == (other is None):
        given = "neither" if value is None else "both"
        raise failure(
            ValueError,
            _OPERATION,
            f"{given} of {first} and {second} given",
            expected="one of them",
            fix=f"write {fix}",
        )
