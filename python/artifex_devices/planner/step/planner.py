# SPDX-License-Identifier: Apache-2.0
"""Costs of a training or forward step before it runs, on other machines too."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from artifex_devices import _planner
from artifex_devices._base.checks import check_type, failure, wrong_type
from artifex_devices._base.nearest_name import did_you_mean
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import Cluster, Mesh
from artifex_devices.planner.arguments import check_given, refuse
from artifex_devices.planner.collective import Estimate, rates_of
from artifex_devices.planner.shape import ModelLike, shape_of
from artifex_devices.planner.step.model import StepModel, description_of
from artifex_devices.planner.step.plan import StepPlan
from artifex_devices.planner.step.text import axis_texts
from artifex_devices.planner.step.transformer import transformer
from artifex_devices.planner.step.values import (
    ExpectedStep,
    StepCollective,
    StepMemory,
    StepProduct,
    StepRegime,
    StepSeconds,
)
from artifex_devices.planner.training import Efficiency, checked_efficiency


def plan_step(
    model: ModelLike | StepModel,
    mesh: Mesh,
    rules: Mapping[str, Hashable | Sequence[Hashable]],
    *,
    batch: int | None = None,
    sequence: int | None = None,
    efficiency: Efficiency | None = None,
) -> StepPlan:
    """Plans memory, FLOPs, collectives and seconds of one step of a model that rules shard over a mesh.

    The expected seconds are by the model of `plan_training`, with the same factors. The bound is at published rates.

    Args:
        model: The step: tensors, operations, optimiser. `artifex_devices.models` has functions that make some. Or a
            model as `plan_training` takes it, for the step of `models.transformer` with its defaults.
        mesh: Mesh of devices of a cluster, or of GPUs of the catalogue (`simulate("4 x h100")`). The links under its
            axes matter.
        rules: Logical axis to the mesh axis that shards it, by name, or several, or None. Logical axes that are left
            out are not sharded.
        batch: Number of sequences in a step, over all devices. A StepModel has its own.
        sequence: Number of tokens in a sequence. A StepModel has its own.
        efficiency: Factors of the expected seconds, by default `Efficiency.of` the devices' cluster.

    Returns:
        A StepPlan; `print` shows it as a table.

    Raises:
        ValueError: A rule is about an unknown axis; dimensions do not divide; a mesh axis shards two dimensions of one
            tensor; groups of the mesh are not boxes of the cluster. The text names every mistake of one kind.
        TypeError: An argument has the wrong type, or `batch` and `sequence` are missing or do not belong to the model.
        RuntimeError: A rate of the cluster that is needed is not known, such as the FLOP/s of a dtype.

    Example:
        >>> from artifex_devices import cluster, mesh_utils
        >>> from artifex_devices.planner import plan_step
        >>> from artifex_devices.sharding import Mesh
        >>> pod = cluster.tpu("v5p", (4, 4, 4))
        >>> mesh = Mesh(mesh_utils.create_device_mesh((16, 4), pod.devices()), ("data", "tensor"))
        >>> rules = {"batch": "data", "embed": "data", "mlp": "tensor", "kv_heads": "tensor"}
        >>> plan = plan_step("llama-2-7b", mesh, rules, batch=64, sequence=4096)
        >>> plan.fits, plan.limit, plan.seconds > plan.bound
        (True, 'compute', True)
    """
    step = _step_of("plan_step", model, batch, sequence)
    checked_mesh: Any = mesh
    network = _planner.network_of_device(mesh.devices.flat[0]) if isinstance(checked_mesh, Mesh) and mesh.size else None
    if not isinstance(network, Cluster):
        fix = "make one of cluster.tpu('v5p', (4, 4, 4)).devices()"
        raise wrong_type("plan_step", "mesh", mesh, "a Mesh of a cluster's devices", fix)
    factors = checked_efficiency("plan_step", efficiency, network)
    names = mesh.axis_names
    sharded = _sharded_axes(step, names, rules)
    bits = [sum(1 << names.index(axis) for axis in sharded[logical]) for logical in step.logical_axes]
    texts = list(axis_texts(names).values())
    found = _planner.plan_step(description_of(step), network, mesh, texts, bits, factors._described())
    return step_plan(step, network, dict(zip(names, mesh.axis_sizes, strict=True)), sharded, factors, found)


def _step_of(operation: str, model: object, batch: int | None, sequence: int | None) -> StepModel:
    """Returns the step of a `model` argument."""
    if isinstance(model, StepModel):
        refuse(operation, {"batch": batch, "sequence": sequence}, "a StepModel", "neither, as the step has its own")
        return model
    shape = shape_of(operation, model)
    check_given(operation, batch, sequence)
    sizes: dict[str, Any] = {"batch": batch, "sequence": sequence}
    return transformer(shape, **sizes)


def _sharded_axes(model: StepModel, names: tuple[Hashable, ...], rules: Any) -> dict[str, tuple[Hashable, ...]]:
    """Returns the mesh axes by the logical axis that they shard."""
    check_type("plan_step", "rules", rules, Mapping, "a mapping", "write {'batch': 'data', 'mlp': 'tensor'}")
    result: dict[str, tuple[Hashable, ...]] = dict.fromkeys(model.logical_axes, ())
    wrong = []
    for logical, value in rules.items():
        axes = () if value is None else (value,) if isinstance(value, str) or _is_in(value, names) else value
        if not isinstance(axes, Sequence) or not all(isinstance(axis, str) or _is_in(axis, names) for axis in axes):
            rule, expected = f"the rule of {safe_repr(logical)}", "an axis of the mesh, several, or None"
            raise wrong_type("plan_step", rule, value, expected, "write 'data', ('data', 'tensor') or None")
        if logical not in result:
            meant = did_you_mean(logical, model.logical_axes) if isinstance(logical, str) else ""
            wrong.append(
                f"{safe_repr(logical)} is not a logical axis of the model ({', '.join(model.logical_axes)}){meant}"
            )
        unknown = [axis for axis in axes if axis not in names]
        if unknown:
            texts = [name for name in names if isinstance(name, str)]
            wrong.append(
                f"{safe_repr(logical)} is sharded over "
                f"{', '.join(f'{safe_repr(axis)}{did_you_mean(axis, texts)}' for axis in unknown)}, which the mesh "
                f"does not have ({', '.join(axis_texts(names).values())})"
            )
        if len(set(axes)) != len(axes):
            wrong.append(f"{safe_repr(logical)} names an axis twice: {tuple(axes)}")
        result[logical] = tuple(axes)
    if wrong:
        raise failure(
            ValueError,
            "plan_step",
            "; ".join(wrong),
            expected="logical axes of the model to axes of the mesh",
            fix="correct the rules",
        )
    return result


def _is_in(axis: Hashable, names: tuple[Hashable, ...]) -> bool:
    """Returns whether it is the name of a mesh axis, and not a number that equals one (True, 1.0)."""
    return any(type(axis) is type(name) and axis == name for name in names)


def step_plan(
    model: StepModel,
    cluster: Cluster,
    mesh_shape: dict[Hashable, int],
    rules: dict[str, tuple[Hashable, ...]],
    efficiency: Efficiency,
    found: dict[str, Any],
) -> StepPlan:
    """Builds the plan from the core's result."""

    def collective_of(each: dict[str, Any]) -> StepCollective:
        bits = each["axes"]
        axes = tuple(name for place, name in enumerate(mesh_shape) if bits >> place & 1)
        return StepCollective(**{**each, "axes": axes, "estimate": Estimate(**each["estimate"])})

    parts: dict[str, Any] = {
        "memory": StepMemory(**found["memory"]),
        "products": tuple(StepProduct(**each) for each in found["products"]),
        "collectives": tuple(map(collective_of, found["collectives"])),
        "expected": ExpectedStep(**found["expected"]),
        "roofline": StepSeconds(**found["roofline"]),
        **{name: tuple(StepRegime(**each) for each in found[name]) for name in ("regimes", "serial_regimes")},
    }
    return StepPlan(
        model=model,
        cluster=cluster,
        mesh_shape=MappingProxyType(mesh_shape),
        rules=MappingProxyType(rules),
        efficiency=efficiency,
        seconds_from=rates_of(cluster, {product.format for product in parts["products"]}),
        **{**found, **parts},
    )
