# SPDX-License-Identifier: Apache-2.0
"""What `planner.suggest` answers with. Immutable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from artifex_devices._base.public_path import public
from artifex_devices._base.state_validation import checked_state
from artifex_devices._core import Cluster, Mesh
from artifex_devices.planner.step_model import StepModel
from artifex_devices.planner.step_values import StepPlan
from artifex_devices.planner.suggestion_text import suggestions_html, suggestions_json, suggestions_text

__all__ = ["SearchSpace", "Suggestion", "Suggestions"]


@public("artifex_devices.planner")
@dataclass(frozen=True)
class SearchSpace:
    """How much was searched. Each mesh with one set of rules is one option.

    Attributes:
        axes: Logical axes that rules were about.
        max_axes: Of a mesh.
        meshes: Shapes and orders of devices.
        options: Of all meshes: each axis of a mesh may cut any set of `axes`.
        rules_unfit: Options in which a dimension does not divide, or one axis cuts two dimensions of a tensor.
        without_network: Options with a collective that is not priced: its groups are no boxes of the cluster.
        too_large: Options that do not fit in memory.
        fit: Options that do: the answer is the best of these.
        excluded: What is not in the space, in words.
    """

    axes: tuple[str, ...]
    max_axes: int
    meshes: int
    options: int
    rules_unfit: int
    without_network: int
    too_large: int
    fit: int
    excluded: tuple[str, ...]


@public("artifex_devices.planner")
@dataclass(frozen=True, eq=False)
class Suggestion:
    """One way to cut a model.

    Attributes:
        mesh: Of the cluster's devices. An axis that cuts the batch is called "data", another "model", one that cuts
            nothing "spare"; more of a kind are numbered.
        rules: Logical axis to the axes of the mesh that cut it; logical axes that are not cut are left out.
        order: How the devices are put in order: "id", or "jax" as `mesh_utils.create_device_mesh` does (over several
            slices `create_hybrid_device_mesh`).
        plan: What it costs.
        why: What it loses by to the one before; of the first why it is first.
    """

    mesh: Mesh
    rules: dict[str, tuple[str, ...]]
    order: str
    plan: StepPlan
    why: str

    def __getstate__(self) -> dict[str, Any]:
        # A mesh of devices that are not here is not unpickled; the plan's cluster has them.
        ids = [device.id for device in self.mesh.devices.flat]
        return {**vars(self), "mesh": (self.mesh.devices.shape, self.mesh.axis_names, ids)}

    def __setstate__(self, state: Any) -> None:
        told = checked_state(type(self), state, mesh=tuple, plan=StepPlan)
        by_id = {device.id: device for device in told["plan"].cluster.devices()}
        try:
            shape, names, ids = told["mesh"]
            devices = np.empty(len(ids), dtype=object)
            devices[:] = [by_id[number] for number in ids]
            mesh = Mesh(devices.reshape(shape), names)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                "Suggestion: in the pickle's state mesh is no shape, names and ids of the cluster's devices "
                f"({type(error).__name__}: {error}); pickle it again with this version"
            ) from error
        vars(self).update(told | {"mesh": mesh})


@public("artifex_devices.planner")
@dataclass(frozen=True, eq=False)
class Suggestions:
    """The best ways to cut a model, best first.

    Attributes:
        model: The step.
        cluster: On which.
        overlap: Whether seconds are those of a step whose communication overlaps with its products.
        options: That fit in memory; none where nothing does.
        too_large: The fastest of those that do not fit, where it is faster than the best that does, or nothing fits.
        smallest: Where nothing fits the option with the least memory, if that is another one; else None.
        space: What was searched.
    """

    model: StepModel
    cluster: Cluster
    overlap: bool
    options: tuple[Suggestion, ...]
    too_large: Suggestion | None
    smallest: Suggestion | None
    space: SearchSpace

    @property
    def fits(self) -> bool:
        """Whether any option fits in memory."""
        return bool(self.options)

    def to_json(self) -> str:
        """All options with their plans, and the space, as JSON."""
        return suggestions_json(self)

    def __str__(self) -> str:
        """A readable table, the reasons, and what was searched."""
        return suggestions_text(self)

    def _repr_html_(self) -> str:
        return suggestions_html(self)
