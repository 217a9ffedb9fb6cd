# SPDX-License-Identifier: Apache-2.0
"""Search for the mesh and the rules that suit a model on a cluster; it computes the time of every option."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artifex_devices import _planner, mesh_utils
from artifex_devices._base.checks import check_int, check_type, failure, wrong_type
from artifex_devices._base.nearest_name import did_you_mean
from artifex_devices._base.progress import progress_bar
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import Cluster, Mesh
from artifex_devices.planner.step.choices import SearchSpace, Suggestion, Suggestions, memory_text
from artifex_devices.planner.step.model import StepModel, description_of
from artifex_devices.planner.step.planner import step_plan
from artifex_devices.planner.training import Efficiency, checked_efficiency

_MAX_AXES = 4


def suggest_shardings(
    model: StepModel,
    cluster: Cluster,
    *,
    top: int,
    max_axes: int,
    axes: Sequence[str] | None,
    overlap: bool,
    efficiency: Efficiency | None,
    progress: bool,
) -> Suggestions:
    """Finds the best meshes and rules for a step on all devices of a cluster; `suggest` describes the arguments.

    The search tries every mesh of 1 to `max_axes` axes with the devices in order of id and in JAX's order, and on each
    mesh every set of rules. Better means fewer expected seconds; between equals (to 1 in 2**24) fewer seconds by the
    other measure, with or without overlap; then less memory, fewer mesh axes, fewer sharded dimensions. Meshes that
    shard the same axes into as many parts count once.
    """
    count = check_int("suggest", "top", top, minimum=1, maximum=1000)
    max_axes = check_int("suggest", "max_axes", max_axes, minimum=1, maximum=_MAX_AXES)
    for name, value in (("overlap", overlap), ("progress", progress)):
        check_type("suggest", name, value, (bool, np.bool_), "True or False", "correct it")
    shardable = _shardable_axes(model, axes)
    devices = cluster.devices()
    placed = [
        (shape, order, ids)
        for shape in _planner.mesh_shapes(len(devices), max_axes)
        for order, ids in _orders(cluster, devices, shape).items()
    ]
    factors = checked_efficiency("suggest", efficiency, cluster)
    described = description_of(model)
    meshes = [(shape, ids.tolist()) for shape, _, ids in placed]
    numbers = [model.logical_axes.index(axis) for axis in shardable]
    candidates = _planner.suggestion_candidates(described, meshes, numbers)
    with progress_bar("suggest", candidates, is_wanted=bool(progress)) as report:
        found = _planner.suggest_steps(
            described, cluster, meshes, numbers, bool(overlap), count, factors._described(), report
        )
    unsharded = [axis for axis in model.logical_axes if axis not in shardable]
    options = sum(2 ** (len(shape) * len(shardable)) for shape, _, _ in placed)
    space = SearchSpace(
        axes=shardable,
        max_axes=max_axes,
        meshes=len(placed),
        options=options,
        rules_unfit=options - found["possible"] - found["without_network"],
        without_network=found["without_network"],
        too_large=found["too_large"],
        fit=found["possible"] - found["too_large"],
        excluded=(
            "pipeline parallelism (layers with devices of their own)",
            f"meshes of more than {max_axes} axes, and of some of the devices only",
            "orders of devices other than by id and JAX's",
            *([f"sharding of {', '.join(unsharded)}"] if unsharded else []),
        ),
    )

    def option(each: dict[str, Any]) -> Suggestion:
        shape, order, ids = placed[each["mesh"]]
        names = tuple(each["axis_names"])
        rules = {
            logical: tuple(name for place, name in enumerate(names) if bits >> place & 1)
            for logical, bits in zip(model.logical_axes, each["rules"], strict=True)
        }
        plan = step_plan(model, cluster, dict(zip(names, shape, strict=True)), rules, factors, each["plan"])
        mesh = Mesh(np.array([devices[number] for number in ids], object).reshape(shape), names)
        why = each["why"]
        if not plan.fits:
            why = f"does not fit: {memory_text(plan)}{'; ' * bool(why)}{why}"
        return Suggestion(mesh, {logical: used for logical, used in rules.items() if used}, order, plan, why)

    options_found = tuple(map(option, found["options"]))
    too_large, smallest = (each and option(each) for each in (found["fastest_too_large"], found["smallest"]))
    batch = found["largest_batch"]
    fits_with = (f"{model.batch_axes[0]}={batch:.0f}",) if 0 < batch < np.inf else ()
    return Suggestions(model, cluster, bool(overlap), options_found, too_large, smallest, space, fits_with)


def _orders(cluster: Cluster, devices: Sequence[Any], shape: list[int]) -> dict[str, NDArray[np.int64]]:
    """Returns device ids by position, by the name of the order; JAX's order only where it differs."""
    orders = {"id": np.arange(len(devices))}
    if cluster.platform != "tpu" or (cluster.slices > 1 and shape[0] % cluster.slices):
        return orders
    try:
        if cluster.slices > 1:
            inside = [shape[0] // cluster.slices, *shape[1:]]
            between = [cluster.slices, *[1] * (len(shape) - 1)]
            mesh = mesh_utils.create_hybrid_device_mesh(inside, between, devices, allow_split_physical_axes=True)
        else:
            mesh = mesh_utils.create_device_mesh(shape, devices, allow_split_physical_axes=True)
    except NotImplementedError:  # JAX's rule has no such mesh for this torus
        return orders
    ids = np.array([device.id for device in mesh.flat])
    if not np.array_equal(ids, orders["id"]):
        orders["jax"] = ids
    return orders


def _shardable_axes(model: StepModel, axes: object) -> tuple[str, ...]:
    if axes is None:
        tensors = {tensor.name: tensor for tensor in model.tensors}
        products = [each for each in model.operations if each.kind != "elementwise"]
        used = {axis for each in products for name in (*each.inputs, each.output) for axis in tensors[name].axes}
        return tuple(axis for axis in model.logical_axes if axis in used)
    names = tuple(axes) if np.iterable(axes) and not isinstance(axes, str) else (None,)
    if not all(isinstance(axis, str) for axis in names):
        raise wrong_type("suggest", "axes", axes, "a sequence of logical axes, or None", "write ('batch', 'mlp')")
    unknown = [
        f"{safe_repr(axis)}{did_you_mean(axis, model.logical_axes)}" for axis in names if axis not in model.logical_axes
    ]
    if unknown:
        raise failure(
            ValueError,
            "suggest",
            f"the model has no logical axes {', '.join(unknown)}",
            expected=f"some of {', '.join(model.logical_axes)}",
            fix="correct them",
        )
    return tuple(dict.fromkeys(names))
