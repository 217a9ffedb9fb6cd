# SPDX-License-Identifier: Apache-2.0
"""Parts of plans of steps: memory, products, collectives and seconds. Immutable."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from artifex_devices._base.public_path import public
from artifex_devices.planner.collective import Estimate

MEMORY_PARTS = ("parameters", "gradients", "optimizer", "activations", "given", "working")


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
        total: Sum of all that is needed.
    """

    parameters: int
    gradients: int
    optimizer: int
    activations: int
    given: int
    working: int
    available: int
    total: int


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
        seconds: Expected seconds of all repetitions.
        bound: Seconds of the FLOPs at the peak.
    """

    operation: str
    kind: str
    format: str
    flops: float
    bytes: float
    seconds: float
    bound: float


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
            blocks of all devices together in an all-to-all.
        bytes_received: Bytes that each device receives, each time.
        estimate: Expected time of one repetition.
    """

    op: str
    tensor: str
    is_gradient: bool
    is_parameter: bool
    phase: str
    operation: str
    axes: tuple[Hashable, ...]
    devices: int
    count: int
    nbytes: float
    bytes_received: float
    estimate: Estimate

    @property
    def seconds(self) -> float:
        """Expected seconds of all repetitions."""
        return self.estimate.seconds * self.count


@public("artifex_devices.planner")
@dataclass(frozen=True)
class StepSeconds:
    """Seconds of one step on each device at published rates: bounds (docs/how_to/plan_a_step.md).

    Attributes:
        compute: Seconds of the FLOPs at the chip's peak.
        memory: Seconds of the bytes of operands, results and the update at the bandwidth of the memory.
        network: Seconds of the collectives, in sequence.
        overlapped: Maximum of the three, as if they ran at once. A lower bound.
        serial: Products in sequence, each at its own limit, then the update, then the collectives.
    """

    compute: float
    memory: float
    network: float
    overlapped: float
    serial: float


@public("artifex_devices.planner")
@dataclass(frozen=True)
class ExpectedStep:
    """Expected seconds of the parts of a step on each device, by the model that `plan_training` uses.

    Attributes:
        products: Seconds of products, with the tiles and the fraction of the peak that they reach.
        attention: Seconds of products with a tensor that stays on the chip.
        elementwise: Seconds of norms, activation functions and sums, which read and write memory.
        update: Seconds of the optimiser's update.
        layers: Seconds of launches and gaps.
        once: Seconds of a training step for data, logging and stragglers.
        weights: Seconds of the collectives of parameters and of their gradients.
        activations: Seconds of the other collectives. Products wait for them.
        hidden: Part of `weights` that overlaps with the rest.
        overlapped: Seconds of the step: the sum of the parts without what is hidden.
        serial: Sum of the parts, as if nothing overlapped.
    """

    products: float
    attention: float
    elementwise: float
    update: float
    layers: float
    once: float
    weights: float
    activations: float
    hidden: float
    overlapped: float
    serial: float


@public("artifex_devices.planner")
@dataclass(frozen=True)
class StepRegime:
    """Range of batches in which one resource limits a step at published rates.

    Attributes:
        bound: "compute", "memory" or "network".
        tokens_from: Smallest number of tokens in a step.
        tokens_to: Largest number of tokens in a step, or inf.
    """

    bound: str
    tokens_from: float
    tokens_to: float
