# SPDX-License-Identifier: Apache-2.0
"""What `planner.plan_step` answers with. Immutable."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from artifex_devices._base.public_path import public
from artifex_devices._base.state_validation import checked_state
from artifex_devices._base.svg import Picture
from artifex_devices._core import Cluster
from artifex_devices.planner.plan_values import Estimate
from artifex_devices.planner.step_model import StepModel
from artifex_devices.planner.step_text import step_html, step_json, step_text
from artifex_devices.roofline import Provenance

__all__ = ["StepCollective", "StepMemory", "StepPlan", "StepProduct", "StepRegime", "StepSeconds"]


@public("artifex_devices.planner")
@dataclass(frozen=True)
class StepMemory:
    """Bytes on each device.

    Attributes:
        parameters: Shards of all parameters.
        gradients: Of all parameters at once, in `gradient_dtype`; 0 where the optimiser does not hold them.
        optimizer: State, cut as the parameters are.
        activations: Kept for the backward pass, over all layers.
        given: Data and caches.
        working: The largest product's: operands as gathered, operands that are not kept, and its result.
        available: Of a device.
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
        """All of them together."""
        return self.parameters + self.gradients + self.optimizer + self.activations + self.given + self.working


@public("artifex_devices.planner")
@dataclass(frozen=True)
class StepProduct:
    """One product of an operation on each device, all its times a step together.

    Attributes:
        operation: Its name.
        kind: "forward", "recomputed", "gradient of the first input" or "gradient of the second input".
        format: That it is computed in.
        flops: On each device.
        bytes: Of operands and result, once each, on each device.
        seconds: Of the FLOPs at the peak.
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
        tensor: What it is of.
        is_gradient: Whether it is of the tensor's gradient.
        is_parameter: Whether the tensor is a parameter: such collectives wait for no activation.
        phase: "forward" or "backward".
        operation: The first that needs it.
        axes: Of the mesh.
        devices: That work together.
        count: Times a step.
        nbytes: Of the whole array of a group, each time: the gathered result, one device's unreduced input, all that
            an all-to-all holds.
        bytes_received: By each device, each time.
        estimate: Of one time.
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
        """All its times together."""
        return self.estimate.seconds * self.count


@public("artifex_devices.planner")
@dataclass(frozen=True)
class StepSeconds:
    """Seconds of one step on each device, by the model of docs/guide/step.md.

    Attributes:
        compute: FLOPs at the chip's peak.
        memory: Bytes of operands, results and the update at the bandwidth of the memory.
        network: Collectives, one after the other.
        overlapped: All three at once: the largest. A lower bound.
        serial: Products one after the other, each at its own limit, then the update, then the collectives. Measured
            steps usually take longer still, as nothing reaches published peaks.
    """

    compute: float
    memory: float
    network: float
    overlapped: float
    serial: float


@public("artifex_devices.planner")
@dataclass(frozen=True)
class StepRegime:
    """Batches that one limit bounds.

    Attributes:
        bound: "compute", "memory" or "network".
        tokens_from: Tokens a step from which it does.
        tokens_to: Up to which it does; inf.
    """

    bound: str
    tokens_from: float
    tokens_to: float


@public("artifex_devices.planner")
@dataclass(frozen=True, eq=False)
class StepPlan:
    """What one step costs on each device of a mesh.

    Attributes:
        model: The step.
        cluster: That the mesh's devices are of.
        mesh_shape: Axes of the mesh and their sizes.
        rules: Logical axis to the axes of the mesh that cut it; () for none.
        memory: Bytes on each device.
        largest_batch: The largest size of the model's batch axis that fits in memory and divides; 0 where none fits,
            inf where nothing grows with it.
        products: What each device computes.
        collectives: What the rules imply, in the order in which it is needed.
        update_bytes: That the optimiser reads and writes on each device.
        seconds: Of one step.
        bound: What limits a step whose communication overlaps with its products.
        serial_bound: What limits one where nothing overlaps: "network" where collectives take longer than products.
        regimes: Which limit bounds which batches, with overlap; solved exactly.
        serial_regimes: The same without overlap.
        seconds_from: Where the seconds are from.
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
        """Of the mesh."""
        return math.prod(self.mesh_shape.values())

    @property
    def fits(self) -> bool:
        """Whether the memory of a device is enough."""
        return self.memory.total <= self.memory.available

    @property
    def flops(self) -> float:
        """On each device, recomputed products included."""
        return sum(product.flops for product in self.products)

    @property
    def tokens_per_device(self) -> float:
        """Tokens a step over all devices."""
        return self.model.tokens / self.devices

    @property
    def compute_bound_tokens(self) -> float:
        """Tokens a step from which on compute is the bound, with overlap; inf where it never is."""
        last = self.regimes[-1]
        return last.tokens_from if last.bound == "compute" else math.inf

    @property
    def utilization(self) -> float:
        """Of the peak FLOP/s, with overlap; recomputed products are no use. 0 where a step has no products."""
        return self._useful_seconds / self.seconds.overlapped if self.flops else 0.0

    @property
    def serial_utilization(self) -> float:
        """Of the peak FLOP/s, without overlap. 0 where a step has no products."""
        return self._useful_seconds / self.seconds.serial if self.flops else 0.0

    @property
    def _useful_seconds(self) -> float:
        return sum(product.seconds for product in self.products if product.kind != "recomputed")

    def to_json(self) -> str:
        """The plan as JSON: all figures, with where they are from."""
        return step_json(self)

    def to_svg(self, others: Iterable[StepPlan] = ()) -> Picture:
        """A stand-alone SVG picture: the roofline of a device with the step in it, and with `others` of other batches.

        Args:
            others: Plans with the same mesh and rules.

        Raises:
            ValueError: One of them has another mesh or other rules, or the step has no products.

        Example:
            >>> from artifex_devices import cluster, mesh_utils, models
            >>> from artifex_devices.planner import plan_step
            >>> from artifex_devices.sharding import Mesh
            >>> devices = mesh_utils.create_device_mesh((4, 4), cluster.tpu("v5e", (4, 4)).devices())
            >>> mesh, rules = Mesh(devices, ("data", "tensor")), {"batch": "data", "mlp": "tensor"}
            >>> sizes = [models.transformer("llama-2-7b", batch=batch, sequence=2048) for batch in (4, 64)]
            >>> small, large = (plan_step(model, mesh, rules) for model in sizes)
            >>> picture = small.to_svg([large])
            >>> ">batch 4<" in picture, ">batch 64<" in picture
            (True, True)
        """
        from artifex_devices.planner.step_picture import step_svg

        if not self.flops:
            raise ValueError(
                f"StepPlan.to_svg: {self.model.name!r} has no FLOPs; expected a step with a product, as a roofline has "
                "no other points; give it a matmul"
            )
        return step_svg(self, others)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "mesh_shape": dict(self.mesh_shape), "rules": dict(self.rules)}

    def __setstate__(self, state: Any) -> None:
        told = checked_state(type(self), state, mesh_shape=dict, rules=dict)
        views = {name: MappingProxyType(told[name]) for name in ("mesh_shape", "rules")}
        vars(self).update(told | views)

    def __str__(self) -> str:
        """A readable table."""
        return step_text(self)

    def _repr_html_(self) -> str:
        return step_html(self)
