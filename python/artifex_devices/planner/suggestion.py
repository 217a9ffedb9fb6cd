# SPDX-License-Identifier: Apache-2.0
"""Which mesh and which rules suit a model on a cluster: every one is priced."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artifex_devices import _core, mesh_utils
from artifex_devices._base.nearest_name import did_you_mean
from artifex_devices._base.progress import progress_bar
from artifex_devices._base.safe_repr import shown
from artifex_devices._core import Cluster, Mesh
from artifex_devices.planner.step_model import StepModel, core_model
from artifex_devices.planner.step_planner import plan_step
from artifex_devices.planner.suggestion_reasons import is_faster, why_first, why_too_large, why_worse
from artifex_devices.planner.suggestion_values import SearchSpace, Suggestion, Suggestions

__all__ = ["suggest"]

_MOST_AXES = 4

Found = tuple[int, list[int], float]  # mesh, rules as bits, bytes


def suggest(
    model: StepModel,
    cluster: Cluster,
    top: int = 5,
    *,
    max_axes: int = 2,
    axes: Sequence[str] | None = None,
    overlap: bool = True,
    progress: bool = True,
) -> Suggestions:
    """The best meshes and rules for a model on all devices of a cluster.

    Every mesh of 1 to `max_axes` axes is tried with the devices in order of id and in JAX's order, and on each every
    set of rules: each axis of the mesh may cut any set of logical axes. Nothing else is guessed or left out, so that
    the answer is the best of this space by the model of `plan_step`. The space does not have pipeline parallelism: no
    layer is placed on devices of its own.

    Better is: fewer seconds; of equals (to 1 in 2**24) fewer by the other measure, with or without overlap; then less
    memory, fewer axes of the mesh, fewer cuts. Meshes that cut the same axes into as many parts count once.

    Args:
        model: The step; `artifex_devices.models` makes some.
        cluster: Of which all devices are used.
        top: How many to return.
        max_axes: Of a mesh, 1 to 4. Each one more multiplies the search by the number of sets of logical axes.
        axes: Logical axes that rules may be about; None is all that are dimensions of a product's operands or results.
        overlap: Whether seconds are those of a step whose communication overlaps with its products
            (`StepSeconds.overlapped`) or not (`serial`).
        progress: A bar on standard error, if that is a terminal. Ctrl-C ends the search in any case.

    Returns:
        Suggestions; `print` shows them as a table with the reasons.

    Raises:
        ValueError: `top` or `max_axes` is out of range, an axis is not the model's, or there is too much to search.
        TypeError: An argument is of the wrong type.
        RuntimeError: A figure of the cluster that is needed is not known.

    Example:
        >>> from artifex_devices import cluster, models
        >>> from artifex_devices.planner import suggest
        >>> small = models.mlp(embed=1024, mlp=4096, layers=4, tokens=2**16)
        >>> found = suggest(small, cluster.tpu("v5e", (4, 4)), top=1)
        >>> dict(found.options[0].plan.mesh_shape), found.options[0].rules
        ({'data': 16}, {'batch': ('data',), 'embed': ('data',)})
    """
    if not isinstance(model, StepModel):
        raise TypeError(
            f"suggest: model is {shown(model)} ({type(model).__name__}); expected a StepModel; make one by "
            "artifex_devices.models"
        )
    if not isinstance(cluster, Cluster):
        raise TypeError(
            f"suggest: cluster is {shown(cluster)} ({type(cluster).__name__}); expected a Cluster; make one by "
            "artifex_devices.cluster"
        )
    count = _number("top", top, 1, 1000)
    most = _number("max_axes", max_axes, 1, _MOST_AXES)
    for name, value in (("overlap", overlap), ("progress", progress)):
        if not isinstance(value, (bool, np.bool_)):
            raise TypeError(
                f"suggest: {name} is {shown(value)} ({type(value).__name__}); expected True or False; correct it"
            )
    may_cut = _may_cut(model, axes)
    devices = cluster.devices()
    laid = [
        (shape, order, ids)
        for shape in _core._mesh_shapes(len(devices), most)
        for order, ids in _orders(cluster, devices, shape).items()
    ]
    described = core_model(model)
    meshes = [(shape, ids.tolist()) for shape, _, ids in laid]
    numbers = [model.logical_axes.index(axis) for axis in may_cut]
    candidates = _core._suggestion_candidates(described, meshes, numbers)
    with progress_bar("suggest", candidates, is_wanted=bool(progress)) as report:
        found = _core._suggest_steps(described, cluster, meshes, numbers, bool(overlap), count, report)
    options = sum(2 ** (len(shape) * len(may_cut)) for shape, _, _ in laid)
    space = SearchSpace(
        axes=may_cut,
        max_axes=most,
        meshes=len(laid),
        options=options,
        rules_unfit=options - found["possible"] - found["without_network"],
        without_network=found["without_network"],
        too_large=found["too_large"],
        fit=found["possible"] - found["too_large"],
        excluded=_excluded(model, most, may_cut),
    )
    made = [_suggestion(model, devices, laid, each) for each in found["best"]]
    return _answer(model, cluster, bool(overlap), made, found, space, devices, laid)


def _answer(
    model: StepModel,
    cluster: Cluster,
    overlap: bool,
    made: list[Suggestion],
    found: dict[str, Any],
    space: SearchSpace,
    devices: Sequence[Any],
    laid: list[Any],
) -> Suggestions:
    options = []
    for place, each in enumerate(made):
        why = why_worse(each.plan, made[place - 1].plan, overlap) if place else why_first(each.plan, overlap)
        options.append(_with(each, why))
    best = options[0].plan if options else None

    def rejected(one: Found | None) -> Suggestion | None:
        if one is None:
            return None
        other = _suggestion(model, devices, laid, one)
        return _with(other, why_too_large(other.plan, best, overlap))

    too_large, smallest = rejected(found["fastest_too_large"]), None
    if best is not None and too_large is not None and not is_faster(too_large.plan, best, overlap):
        too_large = None
    if best is None and found["smallest"] != found["fastest_too_large"]:
        smallest = rejected(found["smallest"])
    return Suggestions(model, cluster, overlap, tuple(options), too_large, smallest, space)


def _with(each: Suggestion, why: str) -> Suggestion:
    return Suggestion(each.mesh, each.rules, each.order, each.plan, why)


def _suggestion(model: StepModel, devices: Sequence[Any], laid: list[Any], found: Found) -> Suggestion:
    shape, order, ids = laid[found[0]]
    cut = {axis: bits for axis, bits in zip(model.logical_axes, found[1], strict=True) if bits}
    names = _names(model, len(shape), cut)
    rules = {axis: tuple(name for place, name in enumerate(names) if bits >> place & 1) for axis, bits in cut.items()}
    ordered = np.empty(len(devices), dtype=object)
    ordered[:] = [devices[number] for number in ids]
    mesh = Mesh(ordered.reshape(shape), names)
    return Suggestion(mesh, rules, order, plan_step(model, mesh, rules), "")


def _names(model: StepModel, count: int, cut: dict[str, int]) -> tuple[str, ...]:
    """Names that say what an axis cuts: "data" the batch, "model" something else, "spare" nothing."""
    names: list[str] = []
    for place in range(count):
        axes = [axis for axis, bits in cut.items() if bits >> place & 1]
        name = "spare" if not axes else "data" if set(axes) & set(model.batch_axes) else "model"
        same = sum(each.rstrip("0123456789") == name for each in names)
        names.append(f"{name}{same + 1}" if same else name)
    return tuple(names)


def _orders(cluster: Cluster, devices: Sequence[Any], shape: list[int]) -> dict[str, NDArray[np.int64]]:
    """Ids by position, by the name of the order; JAX's only where it is another one."""
    orders = {"id": np.arange(len(devices))}
    if cluster.platform != "tpu" or (cluster.slices > 1 and shape[0] % cluster.slices):
        return orders
    try:
        if cluster.slices > 1:
            inside = [shape[0] // cluster.slices, *shape[1:]]
            across = [cluster.slices, *[1] * (len(shape) - 1)]
            mesh = mesh_utils.create_hybrid_device_mesh(inside, across, devices, allow_split_physical_axes=True)
        else:
            mesh = mesh_utils.create_device_mesh(shape, devices, allow_split_physical_axes=True)
    except NotImplementedError:  # the torus has none by JAX's rule
        return orders
    ids = np.array([device.id for device in mesh.flat])
    if not np.array_equal(ids, orders["id"]):
        orders["jax"] = ids
    return orders


def _may_cut(model: StepModel, axes: Sequence[str] | None) -> tuple[str, ...]:
    if axes is None:
        tensors = {tensor.name: tensor for tensor in model.tensors}
        products = [each for each in model.operations if each.kind != "elementwise"]
        named = {axis for each in products for name in (*each.inputs, each.output) for axis in tensors[name].axes}
        return tuple(axis for axis in model.logical_axes if axis in named)
    given: Any = axes
    axes = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else None
    if axes is None or not all(isinstance(axis, str) for axis in axes):
        raise TypeError(
            f"suggest: axes is {shown(given)} ({type(given).__name__}); expected a sequence of logical axes, or None; "
            "write ('batch', 'mlp')"
        )
    unknown = [
        f"{shown(axis)}{did_you_mean(axis, model.logical_axes)}" for axis in axes if axis not in model.logical_axes
    ]
    if unknown:
        raise ValueError(
            f"suggest: the model has no logical axes {', '.join(unknown)}; expected some of "
            f"{', '.join(model.logical_axes)}; correct them"
        )
    return tuple(dict.fromkeys(axes))


def _number(name: str, value: Any, least: int, most: int) -> int:
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise TypeError(
            f"suggest: {name} is {shown(value)} ({type(value).__name__}); expected an int; correct it"
        ) from None
    if not least <= number <= most:
        raise ValueError(f"suggest: {name} is {number}; expected {least} to {most}; correct it")
    return number


def _excluded(model: StepModel, most: int, may_cut: tuple[str, ...]) -> tuple[str, ...]:
    texts = [
        "pipeline parallelism (no layer is placed on devices of its own)",
        f"meshes of more than {most} axes, and of some of the devices only",
        "orders of devices other than by id and JAX's",
    ]
    whole = [axis for axis in model.logical_axes if axis not in may_cut]
    if whole:
        texts.append(f"cuts of {', '.join(whole)}")
    return tuple(texts)
