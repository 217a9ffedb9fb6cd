# SPDX-License-Identifier: Apache-2.0
"""The messages of a training plan, along the axes of its mesh."""

from __future__ import annotations

from artifex_devices import _planner
from artifex_devices._core import Cluster
from artifex_devices.planner.shape import TransformerShape
from artifex_devices.planner.training.config import TrainingConfig
from artifex_devices.planner.training.efficiency import Efficiency
from artifex_devices.planner.training.mesh_axes import mesh_axes
from artifex_devices.planner.training.values import TrainingCollective


def collectives_of(
    model: TransformerShape, cluster: Cluster, config: TrainingConfig, efficiency: Efficiency, devices: int
) -> tuple[TrainingCollective, ...]:
    """Returns the messages that a plan prices."""
    described = config._described(devices)
    messages = _planner.training_messages(vars(model), cluster, described, efficiency._described())
    sizes = _mesh_sizes(model, config)
    found = []
    for message in messages:
        axes = _axes_along(sizes, message["devices"], message.pop("stride"))
        found.append(TrainingCollective(axes=axes, **message))
    return tuple(found)


def _mesh_sizes(model: TransformerShape, config: TrainingConfig) -> dict[str, int]:
    """Returns the size of each axis, slowest first; whole axes where ZeRO and experts use parts that do not nest."""
    try:
        return mesh_axes(model, config).sizes
    except ValueError:
        return {axis: getattr(config, axis) for axis in ("pipeline", "data", "context", "tensor")}


def _axes_along(sizes: dict[str, int], devices: int, stride: int) -> tuple[str, ...]:
    """Returns the axes that a group of ranks spans, each `stride` from the next; the last axis is the fastest."""
    axes, apart = [], 1
    for name, size in reversed(sizes.items()):
        if apart < stride * devices and apart * size > stride:
            axes.append(name)
        apart *= size
    return tuple(reversed(axes))
