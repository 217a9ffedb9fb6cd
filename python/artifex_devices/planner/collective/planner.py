# SPDX-License-Identifier: Apache-2.0
"""Costs of a collective before it runs, on a cluster or on this machine's own devices."""

from __future__ import annotations

import math
import operator
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from artifex_devices import _planner
from artifex_devices._base.checks import check_sequence, check_str, failure, wrong_type
from artifex_devices._base.nearest_name import did_you_mean
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import Cluster, Mesh
from artifex_devices.planner.calibration import Calibration
from artifex_devices.planner.collective.machine import check_calibration, machine_collective
from artifex_devices.planner.collective.plan import CollectivePlan
from artifex_devices.planner.collective.text import rates_of
from artifex_devices.planner.collective.values import Algorithm, CollectiveBound, Estimate
from artifex_devices.planner.training import Efficiency, checked_efficiency

_OPS = ("all_gather", "reduce_scatter", "all_reduce", "all_to_all", "broadcast", "permute")
_OPS_BY_LAX = {"psum": "all_reduce", "pmean": "all_reduce", "psum_scatter": "reduce_scatter", "ppermute": "permute"}


def plan_collective(
    op: str,
    nbytes: float,
    axes: str | Sequence[Any],
    cluster: Cluster | Mesh,
    *,
    perm: Sequence[tuple[int, int]] | None = None,
    calibration: Calibration | None = None,
    efficiency: Efficiency | None = None,
) -> CollectivePlan:
    """Prices a collective on a cluster, by ring, torus, switch, full-mesh and hierarchical models with latencies.

    The expected seconds are at the part of the published rates that messages of this size reach by `efficiency`; the
    bound is at the published rates. On a mesh of this machine's own devices, a calibration gives the time of one
    `shard_map` program. The switches of NVLink 4 and 5 can compute the sums of an all-reduce inside a node; sums in the
    switches between nodes (SHARP on InfiniBand) are not modelled. The lower bound does not hold for either.

    Args:
        op: "all_gather", "reduce_scatter", "all_reduce", "all_to_all", "permute", or without a calibration "broadcast".
        nbytes: Bytes of the global array of a group: the gathered result, one device's unreduced input, the blocks of
            all devices together in an all-to-all or a permute, the value that is broadcast.
        axes: Axes along which the devices of a group differ. For a Cluster: "x", "y", "z" of a torus, "chip" of nodes
            without one, and "slice", the network between slices or nodes. For a Mesh: its axis names.
        cluster: A Cluster, or a Mesh of devices of a cluster or of GPUs of the catalogue (`simulate("4 x h100")`), all
            of whose groups along `axes` work at once; with a calibration a Mesh of devices of this process.
        perm: Pairs of a permute, as in JAX: (source, destination) as positions in a group. Positions count along `axes`
            in the order of their names, the last fastest; two devices of one chip are neighbours.
        calibration: Result of `calibrate()`. Blocks are assumed to be dense, and joined along their first dimension.
        efficiency: Factors of the expected seconds, by default `Efficiency.published` of the cluster, whose factors of
            links were measured with collectives alone. Factors of training steps count contention too.

    Returns:
        A CollectivePlan with every algorithm that the network allows.

    Raises:
        ValueError: Unknown op or axis; bytes below 0; groups of a mesh that are not boxes of the cluster; a `perm` with
            positions that a group does not have or that send or receive twice, or without "permute"; "permute" without
            a `perm`; a calibration with devices of other processes.
        TypeError: An argument has the wrong type.
        RuntimeError: A rate of the cluster that is needed is not known.

    Example:
        >>> from artifex_devices import cluster
        >>> from artifex_devices.planner import plan_collective
        >>> plan = plan_collective("all_gather", 4 * 8.4e6, "x", cluster.tpu("v5e", (4, 4)))
        >>> plan.algorithm, *(round(each * 1e6) for each in (plan.seconds, plan.bound, plan.lower_bound.seconds))
        ('line, both directions', 609, 563, 280)
        >>> shift = plan_collective("permute", 4 * 8.4e6, "x", cluster.tpu("v5e", (4, 4)), perm=[(0, 1), (1, 2)])
        >>> shift.bytes_by_device, round(shift.bound * 1e6)
        (8400000.0, 188)
    """
    check_str("plan_collective", "op", op, "write 'all_gather'")
    if op not in _OPS:
        hint = f" (did you mean {_OPS_BY_LAX[op]}?)" if op in _OPS_BY_LAX else did_you_mean(op, _OPS)
        raise failure(
            ValueError,
            "plan_collective",
            f"{safe_repr(op)} is not a collective{hint}",
            expected=f"{', '.join(_OPS[:-1])} or {_OPS[-1]}",
        )
    nbytes = _checked_bytes(nbytes)
    check_calibration("plan_collective", calibration)
    listed = [axes] if isinstance(axes, str) else axes
    names = tuple(check_sequence("plan_collective", "axes", listed, "a name or a sequence of names", "write 'x'"))
    groups: list[list[int]] = []
    network: Any = cluster
    if isinstance(cluster, Mesh):
        groups = _groups(cluster, names)
        if calibration is not None:
            if perm is not None:
                _checked_pairs(op, perm)  # the seconds do not depend on the pairs
            return machine_collective(op, nbytes, names, cluster, groups, calibration)
        network = _planner.network_of_device(cluster.devices.flat[0])
    if not isinstance(network, Cluster):
        fix = "write cluster.tpu('v5e', (16, 16)); give calibration= for this machine's own devices"
        raise wrong_type("plan_collective", "cluster", cluster, "a Cluster, or a Mesh of a cluster's devices", fix)
    if calibration is not None:
        raise failure(
            ValueError,
            "plan_collective",
            f"cluster is {safe_repr(cluster)} and calibration is given",
            expected="a Mesh of this machine's own devices with it",
            fix="leave calibration= out",
        )
    pairs = _checked_pairs(op, perm)
    factors = checked_efficiency("plan_collective", efficiency or Efficiency.published(network), network)
    try:
        found: Any = _planner.plan_collective(
            op, float(nbytes), network, [str(name) for name in names], groups, pairs, factors._described()
        )
    except RuntimeError as error:  # from the cluster, which does not know the operation
        text = str(error)
        raise RuntimeError(text if text.startswith("plan_collective: ") else f"plan_collective: {text}") from None
    parts: dict[str, Any] = {
        "steps": tuple(Algorithm(Estimate(**each["estimate"]), each["is_bound"]) for each in found["steps"]),
        "lower_bound": CollectiveBound(**found["lower_bound"]),
    }
    return CollectivePlan(
        op=op,
        nbytes=nbytes,
        axes=names,
        cluster=network,
        efficiency=factors,
        seconds_from=rates_of(network),
        **{**found, **parts},
    )


def _groups(mesh: Mesh, axes: tuple[Hashable, ...]) -> list[list[int]]:
    """Returns the device ids of the groups along `axes`."""
    missing = [name for name in axes if name not in mesh.axis_names]
    if missing:
        raise failure(
            ValueError,
            "plan_collective",
            f"the mesh has no axes {missing}",
            expected=f"some of {list(mesh.axis_names)}",
            fix="name axes of the mesh",
        )
    if len(set(axes)) < len(axes):
        raise ValueError(f"plan_collective: axes {list(axes)} has a name twice; expected each once; leave one out")
    return _planner.mesh_groups(mesh, [mesh.axis_names.index(name) for name in axes])


def _checked_bytes(nbytes: object) -> float:
    """Returns the bytes as a Python number; an int where it is one."""
    value = nbytes.item() if isinstance(nbytes, (np.integer, np.floating)) else nbytes
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise wrong_type("plan_collective", "nbytes", nbytes, "a number of bytes", "write 34e6")
    if not 0 <= value <= 2**63:  # also refuses nan
        text = "more than 1e30" if 1e30 < value < math.inf else repr(value)
        raise ValueError(f"plan_collective: nbytes is {text}; expected 0 to 2**63; give the bytes of the global array")
    return int(value) if float(value).is_integer() else value


def _checked_pairs(op: str, perm: Sequence[tuple[int, int]] | None) -> list[tuple[int, int]]:
    """Returns the pairs of a permute, none for another collective."""
    if (op == "permute") != (perm is not None):
        raise failure(
            ValueError,
            "plan_collective",
            f"op is {safe_repr(op)} and perm is {safe_repr(perm)}",
            expected="pairs of positions with 'permute' and with no other op",
            fix="write perm=[(0, 1), (1, 0)]",
        )
    try:
        pairs = [tuple(operator.index(place) for place in pair) for pair in perm or ()]
    except TypeError:
        pairs = [()]
    if any(len(pair) != 2 or not all(abs(place) < 2**62 for place in pair) for pair in pairs):
        raise failure(
            TypeError,
            "plan_collective",
            f"perm is {safe_repr(perm)}",
            expected="pairs (source, destination) of positions in a group",
            fix="write perm=[(0, 1), (1, 0)]",
        )
    return [(source, destination) for source, destination in pairs]
