# SPDX-License-Identifier: Apache-2.0
"""Results of a search for meshes and rules. Immutable."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from artifex_devices._base.public_path import public
from artifex_devices._base.state_validation import checked_state
from artifex_devices._base.text import bytes_text, seconds_text
from artifex_devices._core import Cluster, Mesh
from artifex_devices.planner.report import Report, Summary
from artifex_devices.planner.step.model import StepModel
from artifex_devices.planner.step.plan import StepPlan
from artifex_devices.planner.training import error_text

_HEAD = ("", "mesh", "sharded", "expected", "bound", "memory")


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
        without_network: Options with a collective whose time the model cannot estimate, because its groups are not
            boxes of the cluster.
        too_large: Options that do not fit in memory.
        fit: Options that fit; the search returns the best ones.
        excluded: Descriptions of options that the space leaves out.
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
        mesh: Mesh of the cluster's devices. An axis that shards the batch is called "data", an axis that shards other
            dimensions "model", and an unused axis "spare"; several of a kind are numbered.
        rules: Logical axis to the mesh axes that shard it; logical axes that are not sharded are left out.
        order: Order of the devices: "id", or "jax" as by `mesh_utils.create_device_mesh` (over several slices
            `create_hybrid_device_mesh`).
        plan: Costs of a step.
        why: What makes it slower than the option before; for the first option, the parts of its seconds.
    """

    mesh: Mesh
    rules: dict[str, tuple[str, ...]]
    order: str
    plan: StepPlan
    why: str

    def _content(self) -> dict[str, object]:
        return {
            "mesh": dict(self.plan.mesh_shape),
            "rules": self.rules,
            "order": self.order,
            "device_ids": [device.id for device in self.mesh.devices.flat],
            "why": self.why,
            "plan": self.plan._content(),
        }

    def __getstate__(self) -> dict[str, object]:
        # A mesh of absent devices cannot be unpickled; the plan's cluster has them.
        ids = [device.id for device in self.mesh.devices.flat]
        return {**vars(self), "mesh": (self.mesh.devices.shape, self.mesh.axis_names, ids)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        fields = checked_state(type(self), state, mesh=tuple, plan=StepPlan)
        by_id = {device.id: device for device in fields["plan"].cluster.devices()}
        try:
            shape, names, ids = fields["mesh"]
            mesh = Mesh(np.array([by_id[number] for number in ids], object).reshape(shape), names)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                "Suggestion: in the pickle's state mesh is not a shape, names and ids of the cluster's "
                f"devices ({type(error).__name__}: {error}); pickle it again with this version"
            ) from error
        vars(self).update(fields | {"mesh": mesh})


@public("artifex_devices.planner")
@dataclass(frozen=True, eq=False)
class Suggestions(Report):
    """The best shardings of a model, best first.

    Attributes:
        model: The step.
        cluster: The cluster.
        overlap: Whether seconds assume that collectives of parameters overlap with the rest of the step.
        options: Options that fit in memory.
        too_large: Fastest option that does not fit, if it is faster than the best option or if nothing fits, else None.
        smallest: Where nothing fits, the option with the least memory, if it differs from `too_large`, else None.
        space: The search space.
        fits_with: Where nothing fits, changes of the step that make a sharding fit, such as "batch=32".
    """

    model: StepModel
    cluster: Cluster
    overlap: bool
    options: tuple[Suggestion, ...]
    too_large: Suggestion | None
    smallest: Suggestion | None
    space: SearchSpace
    fits_with: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether any option fits in memory."""
        return bool(self.options)

    def _places(self) -> list[tuple[str, Suggestion]]:
        """Draws the options by number, and "+" and "-" as the legend explains them."""
        places = [(str(place), each) for place, each in enumerate(self.options, 1)]
        rejected = (("+", self.too_large), ("-", self.smallest))
        return [*places, *((place, each) for place, each in rejected if each is not None)]

    def _rows(self) -> list[tuple[str, ...]]:
        return [
            (
                place,
                " x ".join(f"{name} {size}" for name, size in each.plan.mesh_shape.items()),
                ", ".join(f"{axis}: {' '.join(axes)}" for axis, axes in each.rules.items()) or "nothing",
                seconds_text(each.plan.seconds if self.overlap else each.plan.expected.serial),
                seconds_text(each.plan.bound if self.overlap else each.plan.roofline.serial),
                memory_text(each.plan),
            )
            for place, each in self._places()
        ]

    def _summary(self) -> Summary:
        """Builds the table, the reasons below it, and the search space."""
        title, space, places = f"{self.model.name} on {self.cluster.name}", self.space, self._places()
        first = places[0][1].plan
        legend = {"+": "the fastest sharding that does not fit", "-": "the sharding with the least memory"}
        below = [
            *((place, each.why) for place, each in places),
            *((place, f"is {legend[place]}") for place, _ in places if place in legend),
            ("expected", f"{'collectives of weights overlap' if self.overlap else 'nothing overlaps'} (model)"),
            ("error", error_text(first._error(), first._kind())),
            ("bound", f"at published rates, {'all parts overlap' if self.overlap else 'nothing overlaps'}"),
            (
                "searched",
                f"{space.options:,} options: {space.meshes} meshes of up to {space.max_axes} axes, each of which "
                f"shards any of {', '.join(space.axes)}",
            ),
            (
                "of these",
                f"{space.rules_unfit:,} do not divide or shard a tensor twice over one axis, {space.too_large:,} do "
                f"not fit in memory, {space.without_network:,} have groups that are not boxes of the cluster, "
                f"{space.fit:,} fit",
            ),
            ("excluded", "; ".join(space.excluded)),
            *first._factor_facts(),
            ("rates", first.seconds_from.text),
        ]
        best = f"best {len(self.options)} of {space.fit:,} shardings that fit in memory"
        other = f"; one fits with {' or with '.join(self.fits_with)}" if self.fits_with else ""
        title = f"{title}: {best if self.fits else f'no sharding fits in memory{other}'}"
        return Summary(title, (), _HEAD, self._rows(), below)

    def _content(self) -> dict[str, object]:
        rejected = {"too_large": self.too_large, "smallest": self.smallest}
        return {
            "kind": "suggestions",
            "model": self.model.name,
            "cluster": self.cluster.name,
            "overlap": self.overlap,
            "fits_with": self.fits_with,
            "options": [each._content() for each in self.options],
            **{name: None if each is None else each._content() for name, each in rejected.items()},
            "space": asdict(self.space),
        }


def memory_text(plan: StepPlan) -> str:
    """Formats the needed and the available memory of a device: "19.2 of 16.0 GiB"."""
    (needed, unit), available = bytes_text(plan.memory.total).split(" "), bytes_text(plan.memory.available)
    return f"{needed}{'' if available.endswith(f' {unit}') else f' {unit}'} of {available}"
