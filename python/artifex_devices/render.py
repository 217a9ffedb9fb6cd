# SPDX-License-Identifier: Apache-2.0
"""Pictures of meshes and shardings, as text and as SVG."""

from __future__ import annotations

from artifex_devices._core import mesh_svg, mesh_text, sharding_svg, sharding_text

__all__ = ["mesh_svg", "mesh_text", "sharding_svg", "sharding_text"]
