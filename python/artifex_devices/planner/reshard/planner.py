# SPDX-License-Identifier: Apache-2.0
"""Costs of a reshard before it runs: bytes, seconds, memory, on other machines too."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from artifex_devices import _planner
from artifex_devices._base.checks import (
    MAX_DIMENSIONS,
    check_choice,
    check_int,
    check_sequence_of_ints,
    check_type,
    failure,
    wrong_type,
    wrong_value,
)
from artifex_devices._core import Cluster, Sharding
from artifex_devices.planner.calibration import Calibration
from artifex_devices.planner.collective import Estimate, calibrated, check_calibration, copies_estimate, rates_of
from artifex_devices.planner.packed_dtypes import bytes_shape, dtype_of, holds_numbers, nearest_dtype
from artifex_devices.planner.reshard.device_bytes import DeviceBytes
from artifex_devices.planner.reshard.plan import ReshardPlan
from artifex_devices.planner.reshard.values import LowerBound, PlanStep
from artifex_devices.planner.training import Efficiency

_NOT_CALIBRATED = (
    "plan_reshard: collectives are not used on this machine's own devices, and a calibration has no seconds for them; "
    "expected way='copies'"
)


def plan_reshard(
    shape: Sequence[int],
    dtype: DTypeLike | None,
    src: Sharding,
    dst: Sharding,
    *,
    cluster: Cluster | None = None,
    memory_limit: int | None = None,
    way: str | None = None,
    calibration: Calibration | None = None,
    efficiency: Efficiency | None = None,
) -> ReshardPlan:
    """Plans how to bring an array from one sharding to another; moves nothing.

    There are two strategies. Direct copies from shard to shard, each device taking from the nearest holder exactly what
    it lacks: `device_put` and `reshard` do that here. And a sequence of collectives (slice, all-to-all, permute,
    all-gather) with the fewest bytes into the busiest device, whose intermediate shards are never larger than the
    larger of both ends: what one compiled program for all devices can do.

    Args:
        shape: Shape of the array.
        dtype: Dtype of the array. On a cluster an int4 takes half a byte (see ReshardPlan).
        src: Sharding before, on devices of this machine, of a cluster, or on an AbstractMesh (with `cluster`).
        dst: Sharding after.
        cluster: Network to compute seconds for; devices are matched by id. None is the cluster that the devices belong
            to, if any.
        memory_limit: Bytes that no device may exceed during the reshard, its old shard included, or None.
        way: "copies" or "collectives", or None for the faster one on a cluster, else "copies".
        calibration: Result of `calibrate()`, for seconds of copies between devices of this process.
        efficiency: Factors of the expected seconds, by default `Efficiency.published` of the cluster, whose factors of
            links were measured with collectives alone.

    Returns:
        A ReshardPlan; `print` shows it as a table, notebooks with a picture.

    Raises:
        ValueError: The shardings do not fit the shape; a mesh has devices that the cluster lacks; the requested
            strategy is not possible (the text has the reason), or none fits `memory_limit`; `calibration` together with
            `cluster`, or with devices of other processes.
        TypeError: An argument has the wrong type.

    Example:
        >>> from artifex_devices import cluster
        >>> from artifex_devices.planner import plan_reshard
        >>> from artifex_devices.sharding import Mesh, NamedSharding, P
        >>> import numpy as np
        >>> pod = cluster.tpu("v5e", (4, 4))
        >>> mesh = Mesh(np.array(pod.devices()).reshape(4, 4), ("x", "y"))
        >>> rows, columns = NamedSharding(mesh, P("x", None)), NamedSharding(mesh, P(None, "x"))
        >>> plan = plan_reshard((4096, 4096), "bfloat16", rows, columns, way="collectives")
        >>> [step.text for step in plan.steps], plan.busiest_bytes, plan.lower_bound.busiest_bytes
        (['all-to-all over x: dimension 0 to 1'], 6291456, 6291456)
    """
    kind = _checked_dtype(dtype)
    for name, end in (("src", src), ("dst", dst)):
        check_type("plan_reshard", name, end, Sharding, "a Sharding", "write NamedSharding(mesh, P('x'))")
    fix = "write cluster.tpu('v5e', (16, 16))"
    check_type("plan_reshard", "cluster", cluster, (Cluster, type(None)), "a Cluster or None", fix)
    check_choice("plan_reshard", "way", way, (None, "copies", "collectives"), "leave it out")
    check_calibration("plan_reshard", calibration)
    expected = "an Efficiency or None"
    check_type("plan_reshard", "efficiency", efficiency, (Efficiency, type(None)), expected, "write Efficiency.ideal()")
    factors = None if efficiency is None else efficiency._described()
    if cluster is not None and calibration is not None:
        raise failure(
            ValueError,
            "plan_reshard",
            "both cluster and calibration are given",
            expected="one",
            fix="calibration is for this machine's own devices",
        )
    if memory_limit is not None:
        fix, most, expected = "write 16 * 2**30", 2**63 - 1, "a number of bytes or None"
        name = "memory_limit"
        memory_limit = check_int("plan_reshard", name, memory_limit, fix, minimum=0, maximum=most, expected=expected)
    sizes = check_sequence_of_ints("plan_reshard", "shape", shape, "write (4096, 4096)", maximum=MAX_DIMENSIONS)
    nbytes = math.prod(sizes) * kind.itemsize
    if nbytes >= 2**63 > math.prod(sizes):
        raise failure(
            ValueError,
            "plan_reshard",
            f"shape {sizes} of {kind.name} has {nbytes} bytes",
            expected="fewer than 2**63",
            fix="use smaller sizes",
        )
    found = _planner.plan_reshard(sizes, kind.itemsize, src, dst, cluster, memory_limit, way, factors)
    packed_sizes, packed = bytes_shape(sizes, kind, src, dst, found["cluster"])
    if packed is not None:  # the first call has checked the shape itself
        found = _planner.plan_reshard(packed_sizes, kind.itemsize, src, dst, cluster, memory_limit, way, factors)
    if efficiency is None and found["cluster"] is not None:
        efficiency = Efficiency.published(found["cluster"])  # as the core does
    return _reshard_plan(sizes, packed_sizes, kind, src, dst, found, efficiency, calibration)


def _checked_dtype(dtype: DTypeLike | None) -> np.dtype[Any]:
    if dtype is None:  # float64 to NumPy
        raise wrong_value("plan_reshard", "dtype", dtype, "a dtype", "write np.float32")
    try:
        found = dtype_of(dtype)
    except TypeError:
        meant = nearest_dtype(dtype)
        fix = "write np.float32" if meant is None else f"did you mean {meant}?"
        raise wrong_type("plan_reshard", "dtype", dtype, "a dtype or its name", fix) from None
    if not holds_numbers(found):
        raise TypeError(f"plan_reshard: dtype is {found}; expected a dtype of numbers or booleans; write np.float32")
    return found


def _reshard_plan(
    shape: tuple[int, ...],
    packed_shape: tuple[int, ...],
    dtype: np.dtype[Any],
    source: Sharding,
    destination: Sharding,
    found: dict[str, Any],
    efficiency: Efficiency | None,
    calibration: Calibration | None,
) -> ReshardPlan:
    cluster: Cluster | None = found["cluster"]
    copies = None
    seconds_from = None if cluster is None else rates_of(cluster)
    if calibration is not None:
        copies = copies_estimate(shape, dtype.itemsize, source, destination, calibration)
        seconds_from = calibrated(calibration)
    bound = found["lower_bound"]
    needed = DeviceBytes(
        lambda: _planner.reshard_ingress(packed_shape, dtype.itemsize, source, destination),
        bound["total_bytes"],
        bound["busiest_bytes"],
    )

    def step_of(step: dict[str, Any]) -> PlanStep:
        estimate, why_not = step["estimate"], step["why_no_estimate"]
        if calibration is not None:
            estimate, why_not = (copies, "") if step["move"] == "copies" else (None, _NOT_CALIBRATED)
        elif estimate is not None:
            estimate = Estimate(**estimate)
        return PlanStep(**{**step, "estimate": estimate, "why_no_estimate": why_not})

    def plan_of(part: dict[str, Any], other: ReshardPlan | None, why_no_other: str) -> ReshardPlan:
        return ReshardPlan(
            shape=shape,
            dtype=dtype,
            source=source,
            destination=destination,
            cluster=cluster,
            steps=tuple(map(step_of, part["steps"])),
            bytes_by_device=DeviceBytes(part["count_bytes"], part["bytes_received"], part["busiest_bytes"]),
            bytes_by_link=MappingProxyType(dict(part["bytes_by_link"])),
            lower_bound=LowerBound(needed, bound["bytes_by_host"], bound["estimate_seconds"]),
            **{name: part[name] for name in ("way", "bytes_copied", "peak_bytes", "is_cheapest")},
            **{name: found[name] for name in ("xla_answer", "why_xla_is_not_known")},
            other=other,
            why_no_other=why_no_other,
            efficiency=None if cluster is None else efficiency,
            seconds_from=seconds_from,
        )

    other = None if found["other"] is None else plan_of(found["other"], None, "")
    return plan_of(found["plan"], other, found["why_no_other"])
