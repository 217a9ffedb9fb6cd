# SPDX-License-Identifier: Apache-2.0
"""What a training or forward step costs on a cluster that need not be here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from artifex_devices import _core
from artifex_devices._base.nearest_name import did_you_mean
from artifex_devices._base.safe_repr import shown
from artifex_devices._core import Cluster, Mesh
from artifex_devices.planner.plan_values import Estimate
from artifex_devices.planner.step_model import StepModel, core_model
from artifex_devices.planner.step_text import axis_texts
from artifex_devices.planner.step_values import (
    StepCollective,
    StepMemory,
    StepPlan,
    StepProduct,
    StepRegime,
    StepSeconds,
)
from artifex_devices.roofline import Provenance

__all__ = ["plan_step"]

Rules = Mapping[str, Any]  # an axis of the mesh, several, or None


def plan_step(model: StepModel, mesh: Mesh, rules: Rules) -> StepPlan:
    """Memory, FLOPs, collectives, seconds and bounds of one step, when a model is cut over a mesh by rules.

    Args:
        model: The step: tensors, operations, optimiser. `artifex_devices.models` makes some.
        mesh: Of a cluster's devices; which links its axes lie on counts.
        rules: Logical axis to the axis of the mesh that cuts it, by its name there, or several, or None. Logical axes
            that are not mentioned are not cut.

    Returns:
        A StepPlan; `print` shows it as a table.

    Raises:
        ValueError: A rule is about an unknown axis; dimensions do not divide; an axis of the mesh cuts two dimensions
            of one tensor; groups of the mesh are no boxes of the cluster. The text names all of a kind.
        TypeError: An argument is of the wrong type.
        RuntimeError: A figure of the cluster that is needed is not known, such as the FLOP/s of a dtype.

    Example:
        >>> from artifex_devices import cluster, mesh_utils, models
        >>> from artifex_devices.planner import plan_step
        >>> from artifex_devices.sharding import Mesh
        >>> pod = cluster.tpu("v5p", (4, 4, 4))
        >>> mesh = Mesh(mesh_utils.create_device_mesh((16, 4), pod.devices()), ("data", "tensor"))
        >>> model = models.transformer("llama-2-7b", batch=64, sequence=4096)
        >>> plan = plan_step(model, mesh, {"batch": "data", "embed": "data", "mlp": "tensor", "kv_heads": "tensor"})
        >>> plan.fits, plan.bound
        (True, 'compute')
    """
    if not isinstance(model, StepModel):
        raise TypeError(
            f"plan_step: model is {shown(model)} ({type(model).__name__}); expected a StepModel; make one by "
            "artifex_devices.models"
        )
    given: Any = mesh
    network = _core._cluster_of_device(mesh.devices.flat[0]) if isinstance(given, Mesh) and mesh.size else None
    if not isinstance(network, Cluster):
        raise TypeError(
            f"plan_step: mesh is {shown(mesh)} ({type(mesh).__name__}); expected a Mesh of a cluster's devices; make "
            "one of cluster.tpu('v5p', (4, 4, 4)).devices()"
        )
    names = mesh.axis_names
    cuts = _cuts(model, names, rules)
    bits = [sum(1 << names.index(axis) for axis in cuts[logical]) for logical in model.logical_axes]
    found = _core._plan_step(core_model(model), network, mesh, list(axis_texts(names).values()), bits)
    return _plan(model, network, dict(zip(names, mesh.axis_sizes, strict=True)), cuts, found)


def _cuts(model: StepModel, names: tuple[Any, ...], rules: Any) -> dict[str, tuple[Any, ...]]:
    """The axes of the mesh that cut each logical axis."""
    if not isinstance(rules, Mapping):
        raise TypeError(
            f"plan_step: rules is {shown(rules)} ({type(rules).__name__}); expected a mapping; write "
            "{'batch': 'data', 'mlp': 'tensor'}"
        )
    cuts: dict[str, tuple[Any, ...]] = dict.fromkeys(model.logical_axes, ())
    wrong = []
    for logical, value in rules.items():
        axes = () if value is None else (value,) if isinstance(value, str) or _is_in(value, names) else value
        if not isinstance(axes, Sequence) or not all(isinstance(axis, str) or _is_in(axis, names) for axis in axes):
            raise TypeError(
                f"plan_step: the rule of {shown(logical)} is {shown(value)} ({type(value).__name__}); expected an axis "
                "of the mesh, several, or None; write 'data', ('data', 'tensor') or None"
            )
        if logical not in cuts:
            meant = did_you_mean(logical, model.logical_axes) if isinstance(logical, str) else ""
            wrong.append(f"{shown(logical)} is no logical axis of the model ({', '.join(model.logical_axes)}){meant}")
        unknown = [axis for axis in axes if axis not in names]
        if unknown:
            texts = [name for name in names if isinstance(name, str)]
            wrong.append(
                f"{shown(logical)} goes to "
                f"{', '.join(f'{shown(axis)}{did_you_mean(axis, texts)}' for axis in unknown)}, which the mesh does "
                f"not have ({', '.join(axis_texts(names).values())})"
            )
        if len(set(axes)) != len(axes):
            wrong.append(f"{shown(logical)} names an axis twice: {tuple(axes)}")
        cuts[logical] = tuple(axes)
    if wrong:
        raise ValueError(
            f"plan_step: {'; '.join(wrong)}; expected logical axes of the model to axes of the mesh; correct the rules"
        )
    return cuts


def _is_in(axis: Any, names: tuple[Any, ...]) -> bool:
    """Whether it is the name of an axis of the mesh, and not a number that equals one (True, 1.0)."""
    return any(type(axis) is type(name) and axis == name for name in names)


def _plan(
    model: StepModel,
    cluster: Cluster,
    mesh_shape: dict[Any, int],
    cuts: dict[str, tuple[Any, ...]],
    found: dict[str, Any],
) -> StepPlan:
    names = list(mesh_shape)
    seconds = found["seconds"]
    memory = {name: round(value) for name, value in found["memory"].items()}
    parts = math.prod(mesh_shape[axis] for axis in cuts[model.batch_axes[0]])
    return StepPlan(
        model=model,
        cluster=cluster,
        mesh_shape=MappingProxyType(mesh_shape),
        rules=MappingProxyType(cuts),
        memory=StepMemory(**memory, available=found["memory_bytes"]),
        largest_batch=_largest(found["largest_scale"], model.batch, parts),
        products=tuple(
            StepProduct(
                model.operations[each["op"]].name,
                each["kind"],
                each["format"],
                _whole(each["flops"]),
                _whole(each["bytes"]),
                each["seconds"],
            )
            for each in found["products"]
        ),
        collectives=tuple(_collective(each, model, names) for each in found["collectives"]),
        update_bytes=_whole(found["update_bytes"]),
        seconds=StepSeconds(**{key: seconds[key] for key in ("compute", "memory", "network", "overlapped", "serial")}),
        bound=seconds["overlapped_bound"],
        serial_bound=seconds["serial_bound"],
        regimes=_regimes(found["regimes"], model.tokens),
        serial_regimes=_regimes(found["serial_regimes"], model.tokens),
        seconds_from=_figures(cluster, {each["format"] for each in found["products"]}),
    )


def _largest(scale: float, batch: int, parts: int) -> float:
    """The largest batch that fits and divides."""
    if math.isinf(scale):
        return math.inf
    # Rounding of the solution must not cost a batch that just fits.
    return max(math.floor(scale * batch / parts * (1 + 1e-12)), 0) * parts


def _collective(each: dict[str, Any], model: StepModel, names: list[Any]) -> StepCollective:
    tensor = model.tensors[each["tensor"]]
    return StepCollective(
        op=each["kind"],
        tensor=tensor.name,
        is_gradient=each["is_gradient"],
        is_parameter=tensor.role == "parameter",
        phase=each["pass"],
        operation=model.operations[each["op"]].name,
        axes=tuple(name for place, name in enumerate(names) if each["axes"] >> place & 1),
        devices=each["group"],
        count=each["count"],
        nbytes=_whole(each["bytes"]),
        bytes_received=_whole(each["received"]),
        estimate=Estimate(each["latency"], each["transfer"], each["algorithm"], each["limit"]),
    )


def _whole(value: float) -> float:
    """An int where it is one."""
    return int(value) if value.is_integer() else value


def _regimes(found: list[tuple[str, float, float]], tokens: int) -> tuple[StepRegime, ...]:
    return tuple(StepRegime(bound, begin * tokens, end * tokens) for bound, begin, end in found)


def _figures(cluster: Cluster, formats: set[str]) -> Provenance:
    parts = cluster.parts
    figures = [(name, parts["peak_flops"].get(name), "FLOP/s a chip") for name in sorted(formats)]
    figures += [
        ("memory", parts["memory_bandwidth"], "B/s"),
        ("link", parts["bandwidth"], "B/s"),
        ("hop", parts["latency"], "s"),
    ]
    if cluster.slices > 1:
        figures.append(("network", parts["network_bandwidth"], "B/s a chip"))
    texts = [f"{name} {figure[0]:.4g} {unit} [{figure[1]}]" for name, figure, unit in figures if figure is not None]
    return Provenance("model", "model; " + ", ".join(texts))
