# SPDX-License-Identifier: Apache-2.0
"""What reshards, collectives and training steps cost before they run: bytes, seconds, memory, on other machines too."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from artifex_devices import _core
from artifex_devices._base.safe_repr import shown
from artifex_devices._core import Cluster, Mesh, Sharding
from artifex_devices.planner.calibration_values import Calibration
from artifex_devices.planner.collective_arguments import checked_bytes, checked_pairs, peak_bytes, whole_bytes
from artifex_devices.planner.device_bytes import DeviceBytes, counted
from artifex_devices.planner.machine_plans import (
    calibrated,
    check_calibration,
    copies_estimate,
    machine_collective,
)
from artifex_devices.planner.plan_text import move_text
from artifex_devices.planner.plan_values import (
    Algorithm,
    CollectiveBound,
    CollectivePlan,
    Copy,
    Estimate,
    LowerBound,
    PlanStep,
    ReshardPlan,
    bytes_shape,
)
from artifex_devices.planner.step_planner import plan_step
from artifex_devices.planner.step_values import (
    StepCollective,
    StepMemory,
    StepPlan,
    StepProduct,
    StepRegime,
    StepSeconds,
)
from artifex_devices.planner.suggestion import suggest
from artifex_devices.planner.suggestion_values import SearchSpace, Suggestion, Suggestions
from artifex_devices.roofline import Provenance

__all__ = [
    "Algorithm",
    "CollectiveBound",
    "CollectivePlan",
    "Copy",
    "Estimate",
    "LowerBound",
    "PlanStep",
    "ReshardPlan",
    "SearchSpace",
    "StepCollective",
    "StepMemory",
    "StepPlan",
    "StepProduct",
    "StepRegime",
    "StepSeconds",
    "Suggestion",
    "Suggestions",
    "plan_collective",
    "plan_reshard",
    "plan_step",
    "suggest",
]

_WAYS = (None, "copies", "collectives")
_NO_CLUSTER = (
    "plan_reshard: seconds are not known without a network; expected a cluster, got none; give cluster=, such as "
    "cluster.tpu('v5e', (4, 4)), or a mesh of a cluster's devices, or calibration= for this machine's own"
)
_NOT_DONE_HERE = (
    "plan_reshard: on this machine's own devices collectives do not do it, and a calibration has no seconds for them; "
    "expected way='copies'"
)


def plan_reshard(
    shape: Sequence[int],
    dtype: Any,
    src: Sharding,
    dst: Sharding,
    *,
    cluster: Cluster | None = None,
    memory_limit: int | None = None,
    way: str | None = None,
    calibration: Calibration | None = None,
) -> ReshardPlan:
    """What it takes to bring an array from one sharding to another; nothing is moved.

    There are two ways. Direct copies from shard to shard, each device taking from the nearest holder just what it
    lacks: that is what `device_put` and `reshard` do here. And a sequence of collectives (slice, all-to-all, permute,
    all-gather) with the fewest bytes into the busiest device, of which no shard on the way is larger than the larger
    of both ends: what a compiled program of one shape for all devices can do.

    Args:
        shape: Of the array.
        dtype: Of the array. On a cluster an int4 takes half a byte (see ReshardPlan).
        src: Sharding before, on devices of this machine, of a cluster, or on an AbstractMesh (with `cluster`).
        dst: Sharding afterwards.
        cluster: The network, for seconds; devices are taken by id. None is the cluster that the devices are of, if any.
        memory_limit: Bytes that no device may hold more of during the reshard, its shard before included. None: no
            limit.
        way: "copies" or "collectives"; None is the faster one on a cluster, else "copies".
        calibration: What `calibrate()` found, for seconds of copies between devices of this process.

    Returns:
        A ReshardPlan; `print` shows it as a table, notebooks with a picture.

    Raises:
        ValueError: The shardings do not fit the shape; a mesh has devices that the cluster lacks; the way that is asked
            for does not exist (the text says why), or none keeps to `memory_limit`; `calibration` with `cluster`, or
            with devices that are not all of this process.
        TypeError: An argument is of the wrong type.

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
    if dtype is None:
        raise ValueError("plan_reshard: dtype is None; expected a dtype; say np.float32")
    kind = _dtype(dtype)
    for name, sharding in (("src", src), ("dst", dst)):
        if not isinstance(sharding, Sharding):
            raise TypeError(
                f"plan_reshard: {name} is {shown(sharding)} ({type(sharding).__name__}); expected a Sharding; write "
                "NamedSharding(mesh, P('x'))"
            )
    if cluster is not None and not isinstance(cluster, Cluster):
        raise TypeError(
            f"plan_reshard: cluster is {shown(cluster)} ({type(cluster).__name__}); expected a Cluster or None; make "
            "one by artifex_devices.cluster"
        )
    told: object = way  # of any type: that of an array, say, has no truth value
    if told is not None and (not isinstance(told, str) or told not in _WAYS):
        raise ValueError(f"plan_reshard: way is {shown(way)}; expected None, 'copies' or 'collectives'; leave it out")
    check_calibration("plan_reshard", calibration)
    if cluster is not None and calibration is not None:
        raise ValueError(
            "plan_reshard: both cluster and calibration are given; expected one; calibration is for this machine's own "
            "devices"
        )
    limit = _limit(memory_limit)
    try:
        sizes = tuple(operator.index(size) for size in shape)
    except TypeError:
        raise TypeError(
            f"plan_reshard: shape is {shown(shape)}; expected a sequence of integers; write (4096, 4096)"
        ) from None
    if math.prod(sizes) * kind.itemsize >= 2**63 > math.prod(sizes):
        raise ValueError(
            f"plan_reshard: shape {sizes} of {kind.name} has {math.prod(sizes) * kind.itemsize} bytes; expected fewer "
            "than 2**63; use smaller sizes"
        )
    found = _core._plan_reshard(sizes, kind.itemsize, src, dst, cluster, limit, way == "copies")
    counted_shape, along = bytes_shape(sizes, kind, src, dst, found["cluster"])
    if along is not None:  # the first call has checked the shape itself
        found = _core._plan_reshard(counted_shape, kind.itemsize, src, dst, cluster, limit, way == "copies")
    return _Planner(sizes, kind, src, dst, found, limit, calibration).plan(way)


def plan_collective(
    op: str,
    nbytes: float,
    axes: str | Sequence[Any],
    cluster: Cluster | Mesh,
    *,
    perm: Sequence[tuple[int, int]] | None = None,
    calibration: Calibration | None = None,
) -> CollectivePlan:
    """What a collective costs on a cluster, by ring, torus, switch, full-mesh and hierarchical models with latencies.

    On a mesh of this machine's own devices it is what a program of `shard_map` takes, by a calibration. Switches that
    add up themselves (NVLink SHARP, SHARP on InfiniBand) are not modelled, and the lower bound does not hold for them.

    Args:
        op: "all_gather", "reduce_scatter", "all_reduce", "all_to_all", "permute", or without a calibration "broadcast".
        nbytes: Bytes of the whole array of a group: the gathered result, one device's unreduced input, all that an
            all-to-all or a permute holds, the value that is broadcast.
        axes: What the devices of a group differ in. Of a Cluster: "x", "y", "z" of a torus, "chip" of nodes without
            one, and "slice", the network between slices or nodes. Of a Mesh: its axis names.
        cluster: A Cluster, or a Mesh of a cluster's devices, all of whose groups along `axes` do the same at once; with
            a calibration a Mesh of devices of this process.
        perm: Of a permute, as in JAX: pairs of places in a group, (source, destination). Places count along `axes` in
            the order in which they are named, the last fastest; two devices of one chip stand together.
        calibration: What `calibrate()` found. Blocks are taken to be dense, and joined along their first dimension.

    Returns:
        A CollectivePlan, with every algorithm that the network allows.

    Raises:
        ValueError: No such op or axis; bytes below 0; groups of a mesh that are no boxes of the cluster; a `perm` with
            places that a group does not have or that send or receive twice, without "permute", or none with it; a
            calibration with devices that are not of this process.
        TypeError: An argument is of the wrong type.
        RuntimeError: A figure of the cluster that is needed is not known.

    Example:
        >>> from artifex_devices import cluster
        >>> from artifex_devices.planner import plan_collective
        >>> plan = plan_collective("all_gather", 4 * 8.4e6, "x", cluster.tpu("v5e", (4, 4)))
        >>> plan.algorithm, round(plan.steps[0].estimate.transfer * 1e6), round(plan.lower_bound.seconds * 1e6)
        ('line, both directions', 560, 280)
        >>> shift = plan_collective("permute", 4 * 8.4e6, "x", cluster.tpu("v5e", (4, 4)), perm=[(0, 1), (1, 2)])
        >>> shift.bytes_by_device, round(shift.steps[0].estimate.transfer * 1e6)
        (8400000.0, 187)
    """
    if not isinstance(op, str):
        raise TypeError(f"plan_collective: op is {shown(op)} ({type(op).__name__}); expected a str; say 'all_gather'")
    nbytes = checked_bytes(nbytes)
    check_calibration("plan_collective", calibration)
    try:
        names = (axes,) if isinstance(axes, str) else tuple(axes)
    except TypeError:
        raise TypeError(
            f"plan_collective: axes is {shown(axes)} ({type(axes).__name__}); expected a name or a sequence of names; "
            "say 'x'"
        ) from None
    groups: list[list[int]] = []
    if isinstance(cluster, Mesh):
        groups = _groups(cluster, names)
        if calibration is not None:
            if perm is not None:
                checked_pairs(op, perm)  # whoever hands its block to whom, it takes as long
            return machine_collective(op, nbytes, names, cluster, groups, calibration)
        network = _core._cluster_of_device(cluster.devices.flat[0])
    else:
        network = cluster
    if not isinstance(network, Cluster):
        raise TypeError(
            f"plan_collective: cluster is {shown(cluster)} ({type(cluster).__name__}); expected a Cluster, or a Mesh "
            "of a cluster's devices; make one by artifex_devices.cluster; give calibration= for this machine's own "
            "devices"
        )
    if calibration is not None:
        raise ValueError(
            f"plan_collective: cluster is {shown(cluster)} and calibration is given; expected a Mesh of this machine's "
            "own devices with it; leave calibration= out"
        )
    pairs = checked_pairs(op, perm)
    try:
        found: dict[str, Any] = _core._plan_collective(
            op, float(nbytes), network, [str(name) for name in names], groups, pairs
        )
    except RuntimeError as error:  # of the cluster, which does not know what for
        text = str(error)
        raise RuntimeError(text if text.startswith("plan_collective: ") else f"plan_collective: {text}") from None
    by_device, by_chip, by_slice = found["bound_bytes"]
    count = found["devices"]
    return CollectivePlan(
        op=op,
        nbytes=whole_bytes(nbytes),  # type: ignore[arg-type]
        axes=names,
        cluster=network,
        devices=count,
        groups=found["groups"],
        steps=tuple(
            Algorithm(Estimate(latency, transfer, name, limit), is_bound)
            for name, limit, latency, transfer, is_bound in found["costs"]
        ),
        bytes_by_device=found["bytes_in"],
        peak_bytes=peak_bytes(op, nbytes, count),
        seconds_from=_rates(network),
        lower_bound=CollectiveBound(by_device, by_chip, by_slice, found["bound_seconds"], found["bound_error"]),
    )


def _dtype(dtype: Any) -> np.dtype[Any]:
    if isinstance(dtype, str):
        import ml_dtypes  # noqa: F401 - gives NumPy the names of narrow formats
    try:
        found: np.dtype[Any] = np.dtype(dtype)
    except TypeError:
        raise TypeError(
            f"plan_reshard: {shown(dtype)} ({type(dtype).__name__}) is no dtype; expected one or its name; say "
            "np.float32"
        ) from None
    if found.hasobject or found.itemsize == 0 or found.kind in "USMm" or found.names is not None:
        raise TypeError(
            f"plan_reshard: dtype is {found}; expected one of numbers or booleans, as Arrays have; say np.float32"
        )
    return found


def _limit(memory_limit: int | None) -> int | None:
    if memory_limit is None:
        return None
    if isinstance(memory_limit, bool) or not hasattr(memory_limit, "__index__"):
        raise TypeError(
            f"plan_reshard: memory_limit is {shown(memory_limit)} ({type(memory_limit).__name__}); expected a number "
            "of bytes or None; say 16 * 2**30"
        )
    limit = operator.index(memory_limit)
    if not 0 <= limit < 2**63:
        raise ValueError(f"plan_reshard: memory_limit is {limit}; expected 0 to 2**63 - 1 bytes; say 16 * 2**30")
    return limit


def _groups(mesh: Mesh, axes: tuple[Any, ...]) -> list[list[int]]:
    missing = [name for name in axes if name not in mesh.axis_names]
    if missing:
        raise ValueError(
            f"plan_collective: the mesh has no axes {missing}; expected some of {list(mesh.axis_names)}; name axes of "
            "the mesh"
        )
    if len(set(axes)) < len(axes):
        raise ValueError(f"plan_collective: axes {list(axes)} has a name twice; expected each once; leave one out")
    places = [mesh.axis_names.index(name) for name in axes]
    ids = np.array([device.id for device in mesh.devices.flat]).reshape(mesh.devices.shape)
    last = np.moveaxis(ids, places, range(-len(places), 0)) if places else ids[..., None]
    count = math.prod(mesh.devices.shape[place] for place in places)
    return [[int(each) for each in group] for group in last.reshape(-1, count)]


def _rates(cluster: Cluster) -> Provenance:
    parts = cluster.parts
    figures = [("link", "bandwidth", "B/s"), ("hop", "latency", "s")]
    if cluster.slices > 1:
        figures += [("network", "network_bandwidth", "B/s a chip"), ("network step", "network_latency", "s")]
    texts = [
        f"{name} {parts[key][0]:.4g} {unit} [{parts[key][1]}]" for name, key, unit in figures if parts[key] is not None
    ]
    return Provenance("model", "model; " + ", ".join(texts))


class _Planner:
    """Makes plans of what the core found."""

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        source: Sharding,
        destination: Sharding,
        found: dict[str, Any],
        limit: int | None,
        calibration: Calibration | None,
    ) -> None:
        self.found = found
        self.copying = (
            None if calibration is None else copies_estimate(shape, dtype.itemsize, source, destination, calibration)
        )
        self.limit = limit
        self.cluster: Cluster | None = found["cluster"]
        rates = None if self.cluster is None else _rates(self.cluster)
        bound = found["lower_bound"]
        price = bound.get("price", {"error": ""})
        counted_shape, _ = bytes_shape(shape, dtype, source, destination, self.cluster)
        ends = (counted_shape, dtype.itemsize, source, destination)
        self.bound = LowerBound(
            DeviceBytes(lambda: _core._reshard_ingress(*ends), bound["total"], bound["most"]),
            tuple(bound.get("host_bytes", ())),
            None if "error" in price else price["transfer"],
        )
        self.ids: Callable[[], Any] = lambda: _core._reshard_ingress(*ends)[0]
        self.same = {
            "shape": shape,
            "dtype": dtype,
            "source": source,
            "destination": destination,
            "cluster": self.cluster,
            "lower_bound": self.bound,
            "xla_answer": found["xla_gathers"],
            "why_xla_is_not_known": found["xla_error"],
            "seconds_from": rates if calibration is None else calibrated(calibration),
        }

    def plan(self, way: str | None) -> ReshardPlan:
        """The plan that is asked for, with the other one in it."""
        copies, why_no_copies = self._copies()
        collectives, why_no_collectives = self._collectives()
        if way is None:
            way = "copies" if copies is not None and self._is_faster(copies, collectives) else "collectives"
        made, why_not = (copies, why_no_copies) if way == "copies" else (collectives, why_no_collectives)
        other, why_no_other = (collectives, why_no_collectives) if way == "copies" else (copies, why_no_copies)
        if made is None:
            raise ValueError("; ".join(dict.fromkeys(text for text in (why_no_copies, why_not) if text)))
        rest = None if other is None else ReshardPlan(**other, other=None, why_no_other="")
        return ReshardPlan(**made, other=rest, why_no_other=why_no_other)

    def _is_faster(self, copies: dict[str, Any], collectives: dict[str, Any] | None) -> bool:
        if self.cluster is None or collectives is None:
            return True
        times = [[step.estimate for step in each["steps"]] for each in (copies, collectives)]
        if any(estimate is None for each in times for estimate in each):
            return True
        first, second = (sum(estimate.seconds for estimate in each) for each in times)
        return bool(first <= second)

    def _estimate(self, step: dict[str, Any]) -> tuple[Estimate | None, str]:
        if self.cluster is None:
            return None, _NO_CLUSTER if self.copying is None else _NOT_DONE_HERE
        price = step["price"]
        if "error" in price:
            return None, price["error"]
        return Estimate(price["latency"], price["transfer"], price["algorithm"], price["limit"]), ""

    def _copies(self) -> tuple[dict[str, Any] | None, str]:
        found = self.found["copies"]
        if found is None:
            return None, self.found["copies_error"]
        if self.limit is not None and found["peak_bytes"] > self.limit:
            return None, (
                f"plan_reshard: memory_limit is {self.limit} bytes; expected what direct copies need on each device, "
                f"{found['peak_bytes']} bytes; raise the limit or use more devices"
            )
        by_device = counted(self.ids, found["bytes_in"])
        steps: tuple[PlanStep, ...] = ()
        if found["count"]:
            estimate, why = self._estimate(found) if self.copying is None else (self.copying, "")
            before, after = (math.prod(self.found[key]) for key in ("source_shard_shape", "shard_shape"))
            size = self.same["dtype"].itemsize
            steps = (
                PlanStep(
                    "copies",
                    f"{found['count']} direct copies",
                    self.same["destination"].num_devices,
                    by_device.total,
                    by_device.most,
                    (before * size, after * size),
                    estimate,
                    why,
                ),
            )
        return {
            **self.same,
            "way": "copies",
            "steps": steps,
            "bytes_by_device": by_device,
            "bytes_by_link": MappingProxyType(found["bytes_by_link"]),
            "bytes_copied": found["bytes_copied"],
            "peak_bytes": found["peak_bytes"],
            "is_cheapest": True,
        }, ""

    def _most(self, steps: list[dict[str, Any]]) -> int | None:
        """What the busiest device receives over all steps; None where different devices are the busiest."""
        devices = self.same["destination"].num_devices
        differ = [step for step in steps if step["bytes"] != step["most"] * devices]
        return sum(step["most"] for step in steps) if len(differ) <= 1 else None

    def _collectives(self) -> tuple[dict[str, Any] | None, str]:
        found = self.found["sequence"]
        if found is None:
            return None, self.found["sequence_error"]
        steps = []
        counts: Callable[[], Any] = found["bytes_in"]
        network = sum(step["network_bytes"] for step in found["steps"])
        total = sum(step["bytes"] for step in found["steps"])
        for step in found["steps"]:
            estimate, why = self._estimate(step)
            steps.append(
                PlanStep(
                    step["move"],
                    move_text(step, found),
                    step["group"],
                    step["bytes"],
                    step["bytes_in"],
                    (step["shard_bytes"], step["shard_bytes_after"]),
                    estimate,
                    why,
                )
            )
        links = (
            {"between devices": total} if self.cluster is None else {"same slice": total - network, "network": network}
        )
        return {
            **self.same,
            "way": "collectives",
            "steps": tuple(steps),
            "bytes_by_device": DeviceBytes(lambda: (self.ids(), counts()), total, self._most(found["steps"])),
            "bytes_by_link": MappingProxyType(links),
            "bytes_copied": total,
            "peak_bytes": found["peak_bytes"],
            "is_cheapest": found["is_cheapest"],
        }, ""
