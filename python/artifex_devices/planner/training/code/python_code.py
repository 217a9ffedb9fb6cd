# SPDX-License-Identifier: Apache-2.0
"""Meshes, parameter shapes and PartitionSpecs of a plan as Python code, for this library and for JAX."""

from __future__ import annotations

from collections.abc import Callable

from artifex_devices._base.checks import failure
from artifex_devices.planner.training.code.parameter_tree import (
    EXPERT_FULL,
    EXPERT_TENSOR,
    EXPERTS,
    FULL,
    LAYERS,
    TENSOR,
    Array,
    Tree,
    parameter_tree,
)
from artifex_devices.planner.training.mesh_axes import MeshAxes, Names, mesh_axes
from artifex_devices.planner.training.plan import TrainingPlan

_IMPORTS = {
    "artifex_devices": (
        "import artifex_devices as ad",
        "import numpy as np",
        "from artifex_devices.sharding import Mesh, NamedSharding, PartitionSpec as P",
    ),
    "jax": ("import jax", "import numpy as np", "from jax.sharding import Mesh, NamedSharding, PartitionSpec as P"),
}


def mesh_code(plan: TrainingPlan) -> str:
    """Returns code for this library; it runs on a simulated world of as many devices."""
    return _code("TrainingChoice.to_mesh_code", "artifex_devices", "ad", plan)


def jax_code(plan: TrainingPlan) -> str:
    """Returns code for JAX."""
    return _code("TrainingChoice.to_jax_code", "jax", "jax", plan)


def _code(operation: str, library: str, short: str, plan: TrainingPlan) -> str:
    shape = plan.model
    for name in ("linear_value_heads", "other_parameters"):
        if getattr(shape, name):
            raise failure(
                ValueError,
                operation,
                f"{shape.name} has {name}={getattr(shape, name)}, parameters whose arrays are not known",
                expected="a model whose sizes describe all parameters",
                fix=f"plan a model with {name}=0",
            )
    axes = mesh_axes(plan.model, plan.config)
    tree = _padded(parameter_tree(shape), axes.count(axes.pipeline))
    with_zero = plan.config.zero == 3
    lines = [
        *_comments(plan),
        *_IMPORTS[library],
        "",
        f"devices = np.array({short}.devices()[:{plan.devices}], object)",
        f"mesh = Mesh(devices.reshape{tuple(axes.sizes.values())!r}, {tuple(axes.sizes)!r})",
        *_tree_text("shapes", tree, lambda array: repr(tuple(size for size, _ in array))),
        *_tree_text("specs", tree, lambda array: _spec(axes, array, with_zero=with_zero, plan=plan)),
    ]
    if plan.config.zero in (1, 2):
        lines.append("# The state of the optimizer, which ZeRO shards.")
        lines += _tree_text("state_specs", tree, lambda array: _spec(axes, array, with_zero=True, plan=plan))
    lines += [
        "activation_specs = {",
        *(f"    {name!r}: {spec}," for name, spec in _activations(axes, plan).items()),
        "}",
        f"shardings = {short}.tree.map(",
        "    lambda spec: NamedSharding(mesh, spec), specs, is_leaf=lambda node: isinstance(node, P)",
        ")",
    ]
    return "\n".join(lines) + "\n"


def _comments(plan: TrainingPlan) -> list[str]:
    config = plan.config
    pipeline = f", {config.pipeline} stages" if config.pipeline > 1 else ""
    lines = [
        f"# {plan.model.name} on {plan.devices} devices: microbatches of {config.microbatch} sequences, "
        f"{plan.microbatches} per step, ZeRO {config.zero}{pipeline}, recompute {config.recompute}"
    ]
    counts = plan.model.parameters
    for count in (counts.dense_layers, counts.expert_layers):
        if count >= config.pipeline and count % config.pipeline:
            padded = count + -count % config.pipeline
            lines.append(f"# {count} layers do not divide into {config.pipeline} stages: they are padded to {padded}.")
    return lines


def _padded(tree: Tree, stages: int) -> Tree:
    """Rounds the number of stacked layers up to a multiple of the stages, where there is a layer for each stage."""

    def padded(array: Array) -> Array:
        return tuple(
            (size + -size % stages if role == LAYERS and size >= stages else size, role) for size, role in array
        )

    return {name: _padded(node, stages) if isinstance(node, dict) else padded(node) for name, node in tree.items()}


def _tree_text(name: str, tree: Tree, leaf: Callable[[Array], str]) -> list[str]:
    def lines(tree: Tree, indent: str) -> list[str]:
        found = []
        for key, node in tree.items():
            if isinstance(node, dict):
                found += [f"{indent}{key!r}: {{", *lines(node, indent + "    "), f"{indent}}},"]
            else:
                found.append(f"{indent}{key!r}: {leaf(node)},")
        return found

    return [f"{name} = {{", *lines(tree, "    "), "}"]


def _spec(axes: MeshAxes, array: Array, *, with_zero: bool, plan: TrainingPlan) -> str:
    """Formats the spec of a parameter; a dimension that axes do not divide is not sharded over them."""
    zero = axes.zero if with_zero else ()
    shares_expert = (plan.config.expert_tensor or 1) == plan.config.tensor
    names = {
        LAYERS: axes.pipeline,
        TENSOR: axes.tensor,
        FULL: zero,
        EXPERTS: axes.expert,
        EXPERT_TENSOR: axes.tensor if shares_expert else (),
        EXPERT_FULL: tuple(name for name in zero if name not in axes.expert),
    }
    entries = []
    for size, role in array:
        over = names.get(role, ())
        entries.append(over if size % axes.count(over) == 0 else ())
    return _spec_text(entries)


def _activations(axes: MeshAxes, plan: TrainingPlan) -> dict[str, str]:
    between = axes.context + (axes.tensor if plan.config.sequence_parallel else ())
    return {
        "tokens": _spec_text([axes.data, axes.context]),
        "between_layers": _spec_text([axes.data, between, ()]),
        "inside_layers": _spec_text([axes.data, axes.context, axes.tensor]),
    }


def _spec_text(entries: list[Names]) -> str:
    """Formats a PartitionSpec without the last entries that shard nothing."""
    while entries and not entries[-1]:
        entries = entries[:-1]
    texts = [repr(over[0]) if len(over) == 1 else repr(over) if over else "None" for over in entries]
    return f"P({', '.join(texts)})"
