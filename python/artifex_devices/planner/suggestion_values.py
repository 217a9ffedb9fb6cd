# SPDX-License-Identifier: Apache-2.0
"""Results of a search for meshes and rules. Immutable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from artifex_devices._base.html import NotebookText
from artifex_devices._base.public_path import public
from artifex_devices._base.state_validation import checked_state
from artifex_devices._core import Cluster, Mesh
from artifex_devices.planner.step_model import StepModel
from artifex_devices.planner.step_values import StepPlan
from artifex_devices.planner.suggestion_text import suggestions_html, suggestions_json, suggestions_text


@public("artifex_devices.planner")
@dataclass(frozen=True)
class SearchSpace:
    """Size of the search space. Each mesh with one set of rules is one option.

    Attributes:
        axes: Logical axes that rules could shard.
        max_axes: Maximum number of mesh axes.
        meshes: Number of meshes: shapes times orders of devices.
        options: Number of options: each axis of each mesh may shard any set of `axes`.
        rules_unfit: Options in which a dimension does not divide, or one axis shards two dimensions of a tensor.
        without_network: Options with a collective that has no price, because its groups are not boxes of the cluster.
        too_large: Options that do not fit in memory.
        fit: Options that fit: the answer is the best of these.
        excluded: Descriptions of what the space leaves out.
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
    """One sharding of a model.

    Attributes:
        mesh: Mesh of the cluster's devices. An axis that shards the batch is called "data", another "model", one that
            shards nothing "spare"; several of a kind are numbered.
        rules: Logical axis to the mesh axes that shard it; logical axes that are not sharded are left out.
        order: Order of the devices: "id", or "jax" as by `mesh_utils.create_device_mesh` (over several slices
            `create_hybrid_device_mesh`).
        plan: Costs of a step.
        why: What it loses to the option before; for the first option its bound.
    """

    mesh: Mesh
    rules: dict[str, tuple[str, ...]]
    order: str
    plan: StepPlan
    why: str

    def __getstate__(self) -> dict[str, Any]:
        # A mesh of absent devices cannot be unpickled; the plan's cluster has them.
        ids = [device.id for device in self.mesh.devices.flat]
        return {**vars(self), "mesh": (self.mesh.devices.shape, self.mesh.axis_names, ids)}

    def __setstate__(self, state: Any) -> None:
        fields = checked_state(type(self), state, mesh=tuple, plan=StepPlan)
        by_id = {device.id: device for device in fields["plan"].cluster.devices()}
        try:
            shape, names, ids = fields["mesh"]
            devices = np.empty(len(ids), dtype=object)
            devices[:] = [by_id[number] for number in ids]
            mesh = Mesh(devices.reshape(shape), names)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                "Suggestion: in the pickle's state mesh is not a shape, names and ids of the cluster's "
                f"devices ({type(error).__name__}: {error}); pickle it again with this version"
            ) from error
        vars(self).update(fields | {"mesh": mesh})


@public("artifex_devices.planner")
@dataclass(frozen=True, eq=False)
class Suggestions(NotebookText):
    """The best shardings of a model, best first.

    Attributes:
        model: The step.
        cluster: The cluster.
        overlap: Whether seconds are those of a step whose communication overlaps with its products.
        options: Options that fit in memory.
        too_large: Fastest option that does not fit, if it is faster than the best that does or nothing fits, else None.
        smallest: Where nothing fits, the option with the least memory, if that is another one, else None.
        space: The search space.
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
        """Returns all options with their plans, and the space, as JSON."""
        return suggestions_json(self)

    def __str__(self) -> str:
        """Returns a readable table, the reasons, and the search space."""
        return suggestions_text(self)

    def _repr_html_(self) -> str:
        return suggestions_html(self)
