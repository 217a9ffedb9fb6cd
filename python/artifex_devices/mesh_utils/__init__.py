# SPDX-License-Identifier: Apache-2.0
"""Meshes that suit the network: orders of devices on a TPU torus, on several slices and on GPU nodes."""

from artifex_devices._base.public_lookup import add_public_lookup
from artifex_devices.mesh_utils.explanation import AxisExplanation, MeshExplanation, explain
from artifex_devices.mesh_utils.orders import create_device_mesh, create_hybrid_device_mesh

__all__ = ["AxisExplanation", "MeshExplanation", "create_device_mesh", "create_hybrid_device_mesh", "explain"]
add_public_lookup(__name__)
