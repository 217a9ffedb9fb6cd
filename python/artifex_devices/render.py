# SPDX-License-Identifier: Apache-2.0
"""Pictures of meshes and shardings, as text and as SVG; of machines, and of meshes on their network, as SVG."""

from __future__ import annotations

from artifex_devices._core import machine_svg, mesh_svg, mesh_text, placed_mesh_svg, sharding_svg, sharding_text

__all__ = ["machine_svg", "mesh_svg", "mesh_text", "placed_mesh_svg", "sharding_svg", "sharding_text"]
