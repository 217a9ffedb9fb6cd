# SPDX-License-Identifier: Apache-2.0
"""Plans of steps. Immutable."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from artifex_devices._base.public_path import public
from artifex_devices._base.state_validation import checked_state
from artifex_devices._core import Cluster
from artifex_devices.planner.collective import Estimate
from artifex_devices.planner.report import Layout, Report, picked
from artifex_devices.planner.step.model import StepModel
from artifex_devices.planner.step.pictures import plot_step
from artifex_devices.planner.step.text import MEMORY_PARTS, axis_texts, step_layout
from artifex_devices.roofline import Provenance

if TYPE_CHECKING:
    from artifex_devices._base.charts import Axes


@public("artifex_devices.planner")
@dataclass(frozen=True)
class StepMemory:
    """Bytes on each device.

    Attributes:
        parameters: Shards of all parameters.
        gradients: Gradients of all parameters, in `gradient_dtype`; 0 where the optimiser does not hold them.
        optimizer: Optimiser state, sharded like the parameters.
        activations: Activations kept for the backward pass, over all layers.
        given: Data and caches.
        working: Operands as gathered, operands that are not kept, and the result, of the product with the largest sum.
        available: Memory of a device.
    """

    parameters: int
    gradients: int
    optimizer: int
    activations: int
    given: int
    working: int
    available: int

    @property
    def total(self) -> int:
        """Sum of all that is needed."""
        return sum(getattr(self, name) for name in MEMORY_PARTS)


@public("artifex_devices.planner")
@dataclass(frozen=True)
class StepProduct:
    """One product of an operation on each device, summed over its repetitions in a step.

    Attributes:
        operation: Name of the operation.
        kind: "forward", "recomputed", "gradient of the first input" or "gradient of the second input".
        format: Number format of the product.
        flops: FLOPs on each device.
        bytes: Bytes of operands and result, once each, on each device.
        seconds: Seconds of the FLOPs at the peak.
    """

    operation: str
    kind: str
    format: str
    flops: float
    bytes: float
    seconds: float


@public("artifex_devices.planner")
@dataclass(frozen=True)
class StepCollective:
    """One collective that the rules imply.

    Attributes:
        op: "all_gather", "reduce_scatter", "all_reduce" or "all_to_all".
        tensor: Name of the tensor.
        is_gradient: Whether the collective is on the tensor's gradient.
        is_parameter: Whether the tensor is a parameter: such collectives wait for no activation.
        phase: "forward" or "backward".
        operation: Name of the first operation that needs it.
        axes: Axes of the mesh.
        devices: Number of devices that work together.
        count: Repetitions in a step.
        nbytes: Bytes of the global array of a group, each time: the gathered result, one device's unreduced input, the
            sum of what all devices hold in an all-to-all.
        bytes_received: Bytes that each device receives, each time.
        estimate: Estimated time of one repetition.
    """

    op: str
    tensor: str
    is_gradient: bool
    is_parameter: bool
    phase: str
    operation: str
    axes: tuple[Any, ...]
    devices: int
    count: int
    nbytes: float
    bytes_received: float
    estimate: Estimate

    @property
    def seconds(self) -> float:
        """Seconds of all repetitions."""
        return self.estimate.seconds * self.count


@public("artifex_devices.planner")
@dataclass(frozen=True)
class StepSeconds:
    """Seconds of one step on each device, by the model of docs/how_to/plan_a_step.md.

    Attributes:
        compute: Seconds of the FLOPs at the chip's peak.
        memory: Seconds of the bytes of operands, results and the update at the bandwidth of the memory.
        network: Seconds of the collectives, one after the other.
        overlapped: Maximum of the three, as if they ran at once. A lower bound.
        serial: Products one after the other, each at its own limit, then the update, then the collectives. Measured
            steps usually take longer, because hardware does not reach published peaks.
    """

    compute: float
    memory: float
    network: float
    overlapped: float
    serial: float


@public("artifex_devices.planner")
@dataclass(frozen=True)
class StepRegime:
    """Range of batches that one limit bounds.

    Attributes:
        bound: "compute", "memory" or "network".
        tokens_from: Smallest number of tokens in a step.
        tokens_to: Largest number of tokens in a step, or inf.
    """

    bound: str
    tokens_from: float
    tokens_to: float


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
    mesh_shape: Mapping[Any, int]
    rules: Mapping[str, tuple[Any, ...]]
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
            ax: Axes of matplotlib to draw into; None means those of a new figure.

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
            raise ValueError(
                f"StepPlan.plot: {self.model.name!r} has no FLOPs; expected a step with a product, because a "
                "roofline shows products; give it a matmul"
            )
        return plot_step(self, others, ax)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "mesh_shape": dict(self.mesh_shape), "rules": dict(self.rules)}

    def __setstate__(self, state: Any) -> None:
        fields = checked_state(type(self), state, mesh_shape=dict, rules=dict)
        views = {name: MappingProxyType(fields[name]) for name in ("mesh_shape", "rules")}
        vars(self).update(fields | views)

    def _layout(self) -> Layout:
        return step_layout(self)

    def _content(self) -> dict[str, Any]:
        """Returns all numbers; None is infinity, which JSON does not have."""
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
