# SPDX-License-Identifier: Apache-2.0
"""A mesh on a network, for `plan mesh --json`."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from artifex_devices._core import Cluster, Mesh
    from artifex_devices.mesh_utils.explanation import AxisExplanation, MeshExplanation


def mesh_content(
    mesh: Mesh, explanation: MeshExplanation, traffic: Sequence[float], cluster: Cluster, order: str
) -> dict[str, Any]:
    """The mesh and its explanation; `device_ids` are nested like the axes."""
    return {
        "kind": "mesh",
        "cluster": cluster.name,
        "title": explanation.title,
        "axis_names": list(mesh.axis_names),
        "shape": list(mesh.devices.shape),
        "order": order,
        "device_ids": _ids(mesh.devices.tolist()),
        "traffic": list(traffic),
        "axes": [_axis(axis) for axis in explanation.axes],
        "seconds": explanation.seconds,
        "naive_axes": [_axis(axis) for axis in explanation.naive_axes],
        "naive_seconds": explanation.naive_seconds,
        "source": explanation.source,
    }


def _ids(devices: Any) -> Any:
    return [_ids(each) for each in devices] if isinstance(devices, list) else devices.id


def _axis(axis: AxisExplanation) -> dict[str, Any]:
    content = dataclasses.asdict(axis)
    if math.isinf(axis.bandwidth):  # one device receives nothing
        content["bandwidth"] = None
    return content
