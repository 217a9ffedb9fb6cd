# SPDX-License-Identifier: Apache-2.0
"""Plans of steps. Immutable."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from artifex_devices._base.checks import failure, wrong_type
from artifex_devices._base.public_path import public
from artifex_devices._base.state_validation import checked_state
from artifex_devices._base.text import bytes_text, count_text, seconds_text
from artifex_devices._core import Cluster
from artifex_devices.planner.report import Report, Summary, picked
from artifex_devices.planner.step.model import StepModel
from artifex_devices.planner.step.pictures import StepPoint, plot_steps
from artifex_devices.planner.step.text import (
    axis_texts,
    collective_row,
    largest_batch_text,
    memory_parts_text,
    regimes_text,
    step_title,
)
from artifex_devices.planner.step.values import (
    MEMORY_PARTS,
    StepCollective,
    StepMemory,
    StepProduct,
    StepRegime,
    StepSeconds,
)
from artifex_devices.roofline import Provenance

if TYPE_CHECKING:
    from artifex_devices._base.charts import Axes

_COLLECTIVES = ("collective", "of", "over", "times", "bytes", "seconds", "in the", "for", "how")


@public("artifex_devices.planner")
@dataclass(frozen=True, eq=False)
class StepPlan(Report):
    """Costs of one step on each device of a mesh.

    Attributes:
        model: The step.
        cluster: Cluster that the mesh's devices belong to.
        mesh_shape: Axes of the mesh and their sizes.
        rules: Logical axis to the mesh axes that shard it; () for none.
        memory: Bytes on each device.
        largest_batch: Largest size of the model's batch axis that fits in memory and divides; 0 where none fits, inf
            where nothing grows with it.
        products: Products that each device computes.
        collectives: Collectives that the rules imply, in the order in which they are needed.
        update_bytes: Bytes that the optimiser reads and writes on each device.
        seconds: Seconds of one step.
        bound: Limit of a step whose communication overlaps with its products.
        serial_bound: Limit of a step without overlap: "network" where collectives take longer than products.
        regimes: Limit of each range of batches, with overlap; solved exactly.
        serial_regimes: The same without overlap.
        seconds_from: Source of the seconds.
    """

    model: StepModel
    cluster: Cluster
    mesh_shape: Mapping[Hashable, int]
    rules: Mapping[str, tuple[Hashable, ...]]
    memory: StepMemory
    largest_batch: float
    products: tuple[StepProduct, ...]
    collectives: tuple[StepCollective, ...]
    update_bytes: float
    seconds: StepSeconds
    bound: str
    serial_bound: str
    regimes: tuple[StepRegime, ...]
    serial_regimes: tuple[StepRegime, ...]
    seconds_from: Provenance

    @property
    def devices(self) -> int:
        """Number of devices of the mesh."""
        return math.prod(self.mesh_shape.values())

    @property
    def fits(self) -> bool:
        """Whether the step fits in the memory of a device."""
        return self.memory.total <= self.memory.available

    @property
    def flops(self) -> float:
        """FLOPs on each device, recomputed products included."""
        return sum(product.flops for product in self.products)

    @property
    def tokens_per_device(self) -> float:
        """Tokens in a step divided by the number of devices."""
        return self.model.tokens / self.devices

    @property
    def compute_bound_tokens(self) -> float:
        """Number of tokens from which compute is the bound, with overlap; inf where it never is."""
        last = self.regimes[-1]
        return last.tokens_from if last.bound == "compute" else math.inf

    @property
    def utilization(self) -> float:
        """Part of the peak FLOP/s, with overlap. Recomputed products do not count; 0 without products."""
        return self._useful_seconds / self.seconds.overlapped if self.flops else 0.0

    @property
    def serial_utilization(self) -> float:
        """Part of the peak FLOP/s, without overlap; 0 without products."""
        return self._useful_seconds / self.seconds.serial if self.flops else 0.0

    @property
    def _useful_seconds(self) -> float:
        return sum(product.seconds for product in self.products if product.kind != "recomputed")

    def plot(self, others: Iterable[StepPlan] = (), *, ax: Axes | None = None) -> Axes:
        """Draws the roofline of a device with the step in it, and `others`.

        Args:
            others: Plans of other batches with the same mesh and rules.
            ax: Axes of matplotlib to draw into, by default of a new figure.

        Returns:
            The axes.

        Raises:
            ImportError: matplotlib is not installed.
            ValueError: A plan has another mesh or other rules, or the step has no products.
            TypeError: `others` are not StepPlans.

        Example:
            >>> from artifex_devices import cluster, mesh_utils, models
            >>> from artifex_devices.planner import plan_step
            >>> from artifex_devices.sharding import Mesh
            >>> devices = mesh_utils.create_device_mesh((4, 4), cluster.tpu("v5e", (4, 4)).devices())
            >>> mesh, rules = Mesh(devices, ("data", "tensor")), {"batch": "data", "mlp": "tensor"}
            >>> sizes = [models.transformer("llama-2-7b", batch=batch, sequence=2048) for batch in (4, 64)]
            >>> small, large = (plan_step(model, mesh, rules) for model in sizes)
            >>> ax = small.plot([large])  # doctest: +SKIP
        """
        if not self.flops:
            raise failure(
                ValueError,
                "StepPlan.plot",
                f"{self.model.name!r} has no FLOPs",
                expected="a step with a product, because a roofline shows products",
                fix="give it a matmul",
            )
        given: Any = others
        found: list[Any] = list(given) if isinstance(given, Iterable) else [None]
        if not all(isinstance(each, StepPlan) for each in found):
            fix = "write plan.plot([other])"
            raise wrong_type("StepPlan.plot", "others", others, "StepPlans of other batches", fix)
        plans: list[StepPlan] = sorted([self, *found], key=lambda each: each.model.batch)
        for each in plans:
            if (each.cluster, each.mesh_shape, each.rules) != (self.cluster, self.mesh_shape, self.rules):
                raise failure(
                    ValueError,
                    "StepPlan.plot",
                    f"a plan of {each._title()} has another mesh or other rules",
                    expected=f"those of {self._title()}",
                    fix="plan them with the same mesh and rules",
                )
        return plot_steps(self._title(), self._peaks(), self._point(), [each._point() for each in plans], ax)

    def _peaks(self) -> dict[str, float]:
        """Returns the FLOP/s of the number formats in use, in descending order of their FLOPs."""
        flops: dict[str, float] = {}
        peaks: dict[str, float] = {}
        for product in self.products:
            if product.seconds > 0:
                flops[product.format] = flops.get(product.format, 0.0) + product.flops
                peaks[product.format] = product.flops / product.seconds
        return {name: peaks[name] for name in sorted(peaks, key=lambda name: -flops[name])}

    def _point(self) -> StepPoint:
        memory = sum(product.bytes for product in self.products) + self.update_bytes
        network = sum(each.bytes_received * each.count for each in self.collectives)
        return StepPoint(f"batch {self.model.batch}", self.flops, memory, network, self.seconds)

    def _title(self) -> str:
        return step_title(self.model, self.mesh_shape, self.cluster)

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "mesh_shape": dict(self.mesh_shape), "rules": dict(self.rules)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        fields = checked_state(type(self), state, mesh_shape=dict, rules=dict)
        views = {name: MappingProxyType(fields[name]) for name in ("mesh_shape", "rules")}
        vars(self).update(fields | views)

    def _summary(self) -> Summary:
        """Formats the facts, and the collectives as a table."""
        memory, seconds, texts = self.memory, self.seconds, axis_texts(self.mesh_shape)
        sharded = ", ".join(
            f"{axis}: {' '.join(texts[each] for each in axes)}" for axis, axes in self.rules.items() if axes
        )
        facts = [
            ("sharded", sharded or "nothing"),
            (
                "memory",
                f"{bytes_text(memory.total)} of {bytes_text(memory.available)} on a device: "
                f"{'fits' if self.fits else 'does not fit'}; {largest_batch_text(self.model, self.largest_batch)}",
            ),
            ("", memory_parts_text(memory)),
            ("FLOPs", f"{count_text(self.flops)} on a device, {count_text(self.tokens_per_device)} tokens each"),
            (
                "seconds",
                f"compute {seconds_text(seconds.compute)}, memory {seconds_text(seconds.memory)}, network "
                f"{seconds_text(seconds.network)}",
            ),
            (
                "step",
                f"{seconds_text(seconds.overlapped)} if all overlaps (bound by {self.bound}, {self.utilization:.1%} of "
                f"the peak), {seconds_text(seconds.serial)} if nothing does (bound by {self.serial_bound}, "
                f"{self.serial_utilization:.1%})",
            ),
            ("overlapping", regimes_text(self.regimes, self.devices)),
            ("one by one", regimes_text(self.serial_regimes, self.devices)),
            ("from", self.seconds_from.text),
        ]
        rows = [collective_row(each, texts) for each in self.collectives]
        return Summary(self._title(), facts, _COLLECTIVES, rows)

    def _content(self) -> dict[str, object]:
        """Returns all numbers; infinity, which JSON cannot represent, becomes None."""
        model, texts = self.model, axis_texts(self.mesh_shape)
        return {
            "kind": "step",
            "model": model.name,
            "training": model.is_training,
            **picked(model, "tokens", "parameters"),
            "cluster": self.cluster.name,
            "mesh": {texts[name]: size for name, size in self.mesh_shape.items()},
            "rules": {axis: [texts[each] for each in axes] for axis, axes in self.rules.items()},
            "memory": picked(self.memory, *MEMORY_PARTS, "total", "available"),
            "fits": self.fits,
            "largest_batch": _finite(self.largest_batch),
            **picked(self, "flops", "tokens_per_device"),
            "seconds": asdict(self.seconds),
            "seconds_from": picked(self.seconds_from, "kind", "text"),
            **picked(self, "bound", "serial_bound", "utilization", "serial_utilization"),
            "compute_bound_tokens": _finite(self.compute_bound_tokens),
            **{
                name: [{**asdict(each), "tokens_to": _finite(each.tokens_to)} for each in getattr(self, name)]
                for name in ("regimes", "serial_regimes")
            },
            "update_bytes": self.update_bytes,
            "products": [asdict(each) for each in self.products],
            "collectives": [
                picked(each, "op", "tensor", "is_gradient", "is_parameter", "phase", "operation")
                | {"axes": [texts[axis] for axis in each.axes]}
                | picked(each, "devices", "count", "nbytes", "bytes_received", "seconds")
                | picked(each.estimate, "algorithm", "limit")
                for each in self.collectives
            ],
        }


def _finite(value: float) -> float | None:
    return None if math.isinf(value) else value
