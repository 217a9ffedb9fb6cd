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
from artifex_devices.planner.collective import SUMS_IN_SWITCH, link_factors
from artifex_devices.planner.report import Report, Summary, picked
from artifex_devices.planner.step.model import StepModel
from artifex_devices.planner.step.pictures import StepPoint, plot_steps
from artifex_devices.planner.step.text import (
    axis_texts,
    collective_row,
    expected_parts_text,
    largest_batch_text,
    memory_parts_text,
    regimes_text,
    step_title,
)
from artifex_devices.planner.step.values import (
    MEMORY_PARTS,
    ExpectedStep,
    StepCollective,
    StepMemory,
    StepProduct,
    StepRegime,
    StepSeconds,
)
from artifex_devices.planner.training import (
    FACTORS,
    Efficiency,
    PublishedError,
    RunKind,
    error_text,
    factor_facts,
    kind_on,
    published_error,
)
from artifex_devices.roofline import Provenance

if TYPE_CHECKING:
    from artifex_devices._base.charts import Axes

_FEW_BITS = ("float8", "int8", "float4", "int4")  # formats of products with the factor matmul_float8
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
        elementwise_bytes: Bytes that element-wise kernels read and write on each device.
        expected: Expected seconds of one step with the factors of `efficiency`.
        roofline: Seconds of one step at published rates. A bound.
        limit: Resource that limits the bound: "compute", "memory" or "network".
        serial_limit: Limit of the bound without overlap: "network" where collectives take longer than products.
        regimes: Limit of the bound in each range of batches, with overlap; solved exactly.
        serial_regimes: The same without overlap.
        efficiency: Factors of the expected seconds.
        seconds_from: Source of the published rates.
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
    elementwise_bytes: float
    expected: ExpectedStep
    roofline: StepSeconds
    limit: str
    serial_limit: str
    regimes: tuple[StepRegime, ...]
    serial_regimes: tuple[StepRegime, ...]
    efficiency: Efficiency
    seconds_from: Provenance

    @property
    def seconds(self) -> float:
        """Expected seconds of one step."""
        return self.expected.overlapped

    @property
    def bound(self) -> float:
        """Seconds of one step at published rates if all its parts overlap. A lower bound."""
        return self.roofline.overlapped

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
        """Number of tokens from which compute limits the bound; inf where it never does."""
        last = self.regimes[-1]
        return last.tokens_from if last.bound == "compute" else math.inf

    @property
    def utilization(self) -> float:
        """Expected part of the peak FLOP/s. Recomputed products do not count; 0 without products."""
        useful = sum(product.bound for product in self.products if product.kind != "recomputed")
        return useful / self.seconds if self.flops else 0.0

    def _error(self) -> PublishedError | None:
        """Returns the error of the expected seconds on published runs of the same kind, or None."""
        return published_error(self._kind(), self.cluster, self.efficiency)

    def _kind(self) -> RunKind:
        """Returns the kind of published runs that the step is like: training runs of dense models."""
        has_experts = any(each.kind == "route" for each in self.model.operations)
        kind = "forward step" if not self.model.is_training else "step with experts" if has_experts else "dense"
        return kind_on(self.cluster, kind, next(iter(self._peaks()), "no products"))

    def _factor_facts(self) -> list[tuple[str, str]]:
        """Formats the factors that can act on the step."""
        acting = {"memory", "layer_seconds"}
        if self.expected.products > 0:
            formats = {product.format for product in self.products}
            acting |= {"matmul_float8" if name in _FEW_BITS else "matmul" for name in formats}
            acting |= {"tile_rows", "tile_columns", "processors"}
        if self.expected.attention > 0:
            acting |= {"attention_forward", *(("attention_backward",) if self.model.is_training else ())}
        if self.model.is_training:
            acting.add("step_seconds")
        if self.collectives:
            sums = any(each.estimate.algorithm == SUMS_IN_SWITCH for each in self.collectives)
            acting.update(link_factors(self.cluster, sums=sums))
        return factor_facts(self.efficiency, [name for name in FACTORS if name not in acting])

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
            if product.bound > 0:
                flops[product.format] = flops.get(product.format, 0.0) + product.flops
                peaks[product.format] = product.flops / product.bound
        return {name: peaks[name] for name in sorted(peaks, key=lambda name: -flops[name])}

    def _point(self) -> StepPoint:
        memory = sum(product.bytes for product in self.products) + self.update_bytes
        network = sum(each.bytes_received * each.count for each in self.collectives)
        name = f"batch {self.model.batch}"
        return StepPoint(name, self.flops, memory, network, self.roofline, self.seconds)

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
        memory, bound, texts = self.memory, self.roofline, axis_texts(self.mesh_shape)
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
                "expected",
                f"{seconds_text(self.seconds)}, {self.utilization:.1%} of the peak (model; the factors below); "
                f"{seconds_text(self.expected.serial)} if nothing overlaps",
            ),
            ("error", error_text(self._error(), self._kind())),
            ("", expected_parts_text(self.expected)),
            (
                "bound",
                f"{seconds_text(self.bound)} at published rates if all overlaps (limited by {self.limit}), "
                f"{seconds_text(bound.serial)} if nothing does (limited by {self.serial_limit})",
            ),
            (
                "",
                f"compute {seconds_text(bound.compute)}, memory {seconds_text(bound.memory)}, network "
                f"{seconds_text(bound.network)}",
            ),
            ("overlapping", regimes_text(self.regimes, self.devices)),
            ("one by one", regimes_text(self.serial_regimes, self.devices)),
            *self._factor_facts(),
            ("rates", self.seconds_from.text),
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
            **picked(self, "seconds", "bound", "utilization"),
            "expected": asdict(self.expected),
            "roofline": asdict(self.roofline),
            "seconds_from": picked(self.seconds_from, "kind", "text"),
            "error": None if (error := self._error()) is None else asdict(error),
            "efficiency": self.efficiency._content()["factors"],
            **picked(self, "limit", "serial_limit"),
            "compute_bound_tokens": _finite(self.compute_bound_tokens),
            **{
                name: [{**asdict(each), "tokens_to": _finite(each.tokens_to)} for each in getattr(self, name)]
                for name in ("regimes", "serial_regimes")
            },
            **picked(self, "update_bytes", "elementwise_bytes"),
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
