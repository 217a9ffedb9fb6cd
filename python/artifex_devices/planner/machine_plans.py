# SPDX-License-Identifier: Apache-2.0
"""Plans on this machine's own CPU devices: what is executed here, with the seconds of a calibration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from artifex_devices import _core
from artifex_devices._base.safe_repr import shown
from artifex_devices._core import Mesh, NamedSharding, PartitionSpec, Sharding
from artifex_devices.planner.calibration_terms import (
    COLLECTIVES,
    collective_terms,
    executor_for,
    reshard_terms,
)
from artifex_devices.planner.calibration_values import Calibration
from artifex_devices.planner.collective_arguments import peak_bytes, whole_bytes
from artifex_devices.planner.plan_values import Algorithm, CollectivePlan, Estimate
from artifex_devices.roofline import Provenance

__all__ = ["calibrated", "check_calibration", "copies_estimate", "machine_collective"]

_LATENCIES = ("calls", "calls on workers", "copies")
_PROGRAM = (*_LATENCIES, "results")


def check_calibration(operation: str, calibration: Any) -> None:
    """Raises TypeError for what is neither a Calibration nor None."""
    if calibration is not None and not isinstance(calibration, Calibration):
        raise TypeError(
            f"{operation}: calibration is {shown(calibration)} ({type(calibration).__name__}); expected a Calibration "
            "or None; give what artifex_devices.calibration.calibrate() returns"
        )


def calibrated(calibration: Calibration) -> Provenance:
    """Where the seconds are from."""
    told = calibration.conditions
    return Provenance(
        "measured",
        f"model fitted on {told.date} to this machine, {told.cpu_model}, {told.workers} workers; warm sources, results "
        "on reused pages",
    )


def copies_estimate(
    shape: tuple[int, ...], itemsize: int, source: Sharding, destination: Sharding, calibration: Calibration
) -> Estimate:
    """Seconds of the direct copies: the sum over their terms, and no less than the busiest memory needs.

    Raises:
        ValueError: Devices are not of this process, or the shardings do not fit the shape.
    """
    terms, memories = reshard_terms(shape, itemsize, source, destination, calibration.conditions.model_cache_bytes)
    latency = calibration.seconds_of({name: terms[name] for name in _LATENCIES})
    transfer = calibration.seconds_of(terms) - latency
    limit = "memory"
    rates = {(link.source, link.destination): link.rate for link in calibration.links}
    if len(rates) > 1:
        busy: dict[tuple[str, int], float] = {}
        for read, written, count in memories:
            seconds = count / rates[read, written] if (read, written) in rates else 0.0
            for end in (("reads", read), ("writes", written)):
                busy[end] = busy.get(end, 0.0) + seconds
        (what, node), most = max(busy.items(), key=lambda each: each[1], default=(("", 0), 0.0))
        if most > transfer:
            transfer, limit = most, f"{what} of memory node {node}"
    return Estimate(latency, transfer, "copies by the workers", limit)


def machine_collective(
    op: str, nbytes: float, axes: tuple[Any, ...], mesh: Mesh, groups: Sequence[Sequence[int]], calibration: Calibration
) -> CollectivePlan:
    """One program of one collective, as `shard_map` runs it here.

    Raises:
        ValueError: The op has no model, or the mesh has devices of a cluster or of other processes.
    """
    if op not in COLLECTIVES:
        raise ValueError(
            f"plan_collective: {shown(op)} is no collective that a calibration knows; expected one of "
            f"{', '.join(COLLECTIVES)}; plan it on a cluster"
        )
    of_cluster = _core._cluster_of_device(mesh.devices.flat[0]) is not None
    if of_cluster or not NamedSharding(mesh, PartitionSpec()).is_fully_addressable:
        raise ValueError(
            f"plan_collective: the mesh has devices of {'a cluster' if of_cluster else 'other processes'}; expected "
            "devices of this process for seconds that a calibration gives; leave calibration= out"
        )
    devices, count = len(groups[0]), len(groups)
    executor = executor_for(op, nbytes, devices)
    terms = dict(collective_terms(op, nbytes, devices, count, executor, calibration.conditions.model_cache_bytes))
    fixed = {name: value for name, value in terms.items() if name in _PROGRAM or name.startswith(executor)}
    latency = calibration.seconds_of(fixed)
    transfer = calibration.seconds_of(terms) - latency
    limit = "memory" if transfer > 0 else "nothing"
    return CollectivePlan(
        op=op,
        nbytes=whole_bytes(nbytes),  # type: ignore[arg-type]
        axes=axes,
        cluster=None,
        devices=devices,
        groups=count,
        steps=(Algorithm(Estimate(latency, transfer, f"{executor} executor", limit), False),),
        bytes_by_device=_received(op, nbytes, devices),
        peak_bytes=peak_bytes(op, nbytes, devices),
        seconds_from=calibrated(calibration),
    )


def _received(op: str, nbytes: float, devices: int) -> float:
    """As on a cluster."""
    if op == "permute":
        return nbytes / devices if devices > 1 else 0.0
    received = nbytes * (devices - 1) / devices
    return 2 * received if op == "all_reduce" else received / devices if op == "all_to_all" else received
