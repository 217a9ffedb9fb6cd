# SPDX-License-Identifier: Apache-2.0
"""Meshes that suit the network: which device goes where in a mesh of a TPU torus, of several slices, of GPU nodes."""

from artifex_devices.mesh_utils.orders import (
    AxisExplanation,
    MeshExplanation,
    create_device_mesh,
    create_hybrid_device_mesh,
    explain,
)

__all__ = ["AxisExplanation", "MeshExplanation", "create_device_mesh", "create_hybrid_device_mesh", "explain"]
