# SPDX-License-Identifier: Apache-2.0
"""Hypothesis strategies and checks for code that uses artifex_devices.

The strategies draw meshes, partition specs, shardings that fit a shape, and NumPy arrays in every dtype with the memory
layouts that often break code: reversed, stepped, transposed, unaligned, broadcast and read-only. The checks compare
bits (so that NaN payloads count), or check that the shards of a sharding tile an array. They need the package
hypothesis: `pip install hypothesis`.

Example:
    >>> from hypothesis import given
    >>> import artifex_devices as ad
    >>> from artifex_devices.testing import assert_same_bits, placements
    >>> @given(placements())
    ... def comes_back(placement):
    ...     assert_same_bits(ad.device_get(ad.device_put(placement.value, placement.sharding)), placement.value)
    >>> comes_back()
"""

from artifex_devices.testing.arrays import arrays, dtypes, layouts, shapes
from artifex_devices.testing.checks import assert_same_bits, assert_shards_tile
from artifex_devices.testing.meshes import MeshLayout, mesh_layouts, meshes
from artifex_devices.testing.shardings import Placement, fitting_shapes, placements, shardings, spec_entries, specs

__all__ = [
    "MeshLayout",
    "Placement",
    "arrays",
    "assert_same_bits",
    "assert_shards_tile",
    "dtypes",
    "fitting_shapes",
    "layouts",
    "mesh_layouts",
    "meshes",
    "placements",
    "shapes",
    "shardings",
    "spec_entries",
    "specs",
]
