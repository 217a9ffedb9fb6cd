# SPDX-License-Identifier: Apache-2.0
"""Parts of plans of training runs: memory of stages, and seconds as a waterfall."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from artifex_devices._base.public_path import public

MEMORY_PARTS = ("parameters", "gradients", "optimizer", "activations", "working")
TIME_PARTS = {
    "products": "matrix products",
    "attention": "attention",
    "elementwise": "norms, activation functions, loss",
    "recompute": "recomputed activations",
    "tensor": "tensor-parallel communication that is not hidden",
    "context": "context-parallel communication that is not hidden",
    "expert": "all-to-all of experts that is not hidden",
    "pipeline": "messages between stages that are not hidden",
    "bubble": "waiting for other stages",
    "data": "gradients and parameters between replicas that are not hidden",
    "offload": "transfers to the host that are not hidden",
    "update": "update of parameters",
    "fixed": "launches, gaps and the rest",
}


@public("artifex_devices.planner")
@dataclass(frozen=True)
class TrainingStage:
    """One pipeline stage; bytes are counted per device.

    Attributes:
        layers: Number of layers.
        parameters_held: Number of parameters, before ZeRO shards them.
        parameters: Bytes of parameters.
        gradients: Bytes of gradients.
        optimizer: Bytes of optimizer state.
        activations: Bytes of activations of all microbatches that are in flight.
        working: Bytes that one layer needs while it runs: gathered parameters, and the recomputed activations that do
            not fit into the memory of the output's activations, which are freed before.
        forward: Expected seconds of the forward pass of one microbatch, exposed communication included.
        backward: Expected seconds of its backward pass, recomputation included.
        host: Bytes of each device in the memory of its host: offloaded optimizer state with its gradients, and
            activations.
        total: Sum of all bytes of a device.
    """

    layers: int
    parameters_held: int
    parameters: int
    gradients: int
    optimizer: int
    activations: int
    working: int
    forward: float
    backward: float
    host: int
    total: int


@public("artifex_devices.planner")
@dataclass(frozen=True)
class TrainingCollective:
    """Equal messages of one device in a step.

    Attributes:
        op: "all_gather", "reduce_scatter", "all_reduce", "all_to_all" or "send": to the next stage, or along a ring.
        axes: Axes of the mesh, as `TrainingChoice.to_jax_code` names them: "data", "context", "tensor", "pipeline", and
            "replica" or "expert" where ZeRO shards over a part of the ranks of an axis, or experts are spread over it.
        devices: Number of devices that work together.
        bytes_sent: Bytes that a ring sends from one device, each time.
        count: Repetitions in a step; not whole where a part of a stage's layers of two kinds is computed again.
        seconds: Expected seconds of all repetitions, hidden or not.
    """

    op: str
    axes: tuple[str, ...]
    devices: int
    bytes_sent: float
    count: float
    seconds: float


@public("artifex_devices.planner")
@dataclass(frozen=True)
class TrainingSeconds:
    """Seconds of one step.

    Attributes:
        parts: Exposed seconds by part, in the order of a waterfall; they sum to the step.
        hidden: Seconds of communication behind computation, by kind.
        total: Seconds of the step.
    """

    parts: Mapping[str, float]
    hidden: Mapping[str, float]
    total: float

    def __post_init__(self) -> None:
        for name in ("parts", "hidden"):
            object.__setattr__(self, name, MappingProxyType(getattr(self, name)))

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "parts": dict(self.parts), "hidden": dict(self.hidden)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        views = {name: MappingProxyType(dict(state[name])) for name in ("parts", "hidden")}
        vars(self).update({**state, **views})
