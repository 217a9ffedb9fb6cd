# SPDX-License-Identifier: Apache-2.0
"""Seconds of reshards and collectives on this machine's own CPU devices, by a calibration."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence

from artifex_devices import _planner
from artifex_devices._base.checks import check_type, failure
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import Mesh, NamedSharding, PartitionSpec, Sharding
from artifex_devices.config import config
from artifex_devices.planner.calibration import TERMS, Calibration
from artifex_devices.planner.collective.plan import CollectivePlan
from artifex_devices.planner.collective.values import Algorithm, Estimate
from artifex_devices.roofline import Provenance

_LATENCIES = ("calls", "calls on workers", "copies")


def reshard_terms(
    shape: tuple[int, ...], itemsize: int, source: Sharding, destination: Sharding, cache_bytes: int | None
) -> tuple[dict[str, float], list[tuple[int, int, int]]]:
    """Returns the terms of the direct copies, and (memory node read, memory node written, bytes)."""
    terms, memories = _planner.copy_terms(shape, itemsize, source, destination, cache_bytes or 0)
    return dict(zip(_planner.COPY_TERMS, terms, strict=True)), memories


def collective_terms(
    op: str, nbytes: float, devices: int, groups: int, executor: str, cache_bytes: int | None
) -> dict[str, float]:
    """Returns the terms of one program with one collective, in which `groups` groups of `devices` each do the same.

    `nbytes` is the size of the full array of a group, as `plan_collective` counts it; `cache_bytes` is the size of the
    last-level caches, or None if unknown. `executor` is "cooperative" or "threads".
    """
    terms = _planner.collective_terms(op, nbytes, devices, groups, executor, cache_bytes or 0)
    return {name: count for name, count in zip(TERMS, terms, strict=True) if count}


def executor_for(op: str, nbytes: float, devices: int) -> str:
    """Returns the executor that `shard_map` chooses for such blocks, by `config`."""
    chosen: str = config.spmd_executor
    return chosen if chosen != "auto" else _planner.executor_for(op, nbytes, devices, config.spmd_threads_bytes)


def check_calibration(operation: str, calibration: object) -> None:
    """Raises TypeError for anything but a Calibration or None."""
    fix = "give what artifex_devices.calibration.calibrate() returns"
    check_type(operation, "calibration", calibration, (Calibration, type(None)), "a Calibration or None", fix)


def calibrated(calibration: Calibration) -> Provenance:
    """Returns the source of the seconds."""
    conditions = calibration.conditions
    return Provenance(
        "measured",
        f"model fitted on {conditions.date} to this machine, {conditions.cpu_model}, {conditions.workers} workers; "
        "warm sources, results on reused pages",
    )


def copies_estimate(
    shape: tuple[int, ...], itemsize: int, source: Sharding, destination: Sharding, calibration: Calibration
) -> Estimate:
    """Estimates the seconds of direct copies: the sum over their terms, but at least the time of the busiest memory."""
    terms, memories = reshard_terms(shape, itemsize, source, destination, calibration.conditions.model_cache_bytes)
    latency = calibration.seconds_of({name: terms[name] for name in _LATENCIES})
    transfer = calibration.seconds_of(terms) - latency
    limit = "memory"
    rates = {(link.source, link.destination): link.rate for link in calibration.links}
    if len(rates) > 1:
        busy: defaultdict[tuple[str, int], float] = defaultdict(float)
        for read, written, count in memories:
            for end in (("reads", read), ("writes", written)):
                busy[end] += count / rates[read, written] if (read, written) in rates else 0.0
        (access, node), most = max(busy.items(), key=lambda each: each[1], default=(("", 0), 0.0))
        if most > transfer:
            transfer, limit = most, f"{access} of memory node {node}"
    return Estimate(latency, transfer, "copies by the workers", limit)


def machine_collective(
    op: str,
    nbytes: float,
    axes: tuple[Hashable, ...],
    mesh: Mesh,
    groups: Sequence[Sequence[int]],
    calibration: Calibration,
) -> CollectivePlan:
    """Prices one program of one collective, as `shard_map` runs it here."""
    if op not in _planner.PROGRAM_COLLECTIVES:
        raise failure(
            ValueError,
            "plan_collective",
            f"{safe_repr(op)} is not a calibrated collective",
            expected=f"one of {', '.join(_planner.PROGRAM_COLLECTIVES)}",
            fix="plan it on a cluster",
        )
    has_cluster = _planner.cluster_of_device(mesh.devices.flat[0]) is not None
    if has_cluster or not NamedSharding(mesh, PartitionSpec()).is_fully_addressable:
        raise failure(
            ValueError,
            "plan_collective",
            f"the mesh has devices of {('a cluster' if has_cluster else 'other processes')}",
            expected="devices of this process for seconds by a calibration",
            fix="leave calibration= out",
        )
    devices, count = len(groups[0]), len(groups)
    executor = executor_for(op, nbytes, devices)
    terms = collective_terms(op, nbytes, devices, count, executor, calibration.conditions.model_cache_bytes)
    fixed = (*_LATENCIES, "results", f"{executor} programs", f"{executor} participants")
    latency = calibration.seconds_of({name: value for name, value in terms.items() if name in fixed})
    transfer = calibration.seconds_of(terms) - latency
    estimate = Estimate(latency, transfer, f"{executor} executor", "memory" if transfer > 0 else "nothing")
    return CollectivePlan(
        op=op,
        nbytes=nbytes,
        axes=axes,
        cluster=None,
        devices=devices,
        groups=count,
        steps=(Algorithm(estimate, False),),
        bound=None,
        efficiency=None,
        seconds_from=calibrated(calibration),
        **_planner.collective_bytes(op, float(nbytes), devices),
    )
