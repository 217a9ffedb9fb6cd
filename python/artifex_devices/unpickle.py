# SPDX-License-Identifier: Apache-2.0
"""Functions and classes that pickles of this library name beside its public classes.

Programs do not call them. An unpickler with a list of allowed names allows `artifex_devices.unpickle` as a whole. Names
and arguments stay readable for later versions.
"""

from __future__ import annotations

import importlib
from typing import Any

# Public name: the module that defines it, and its name there.
_DEFINED_IN = {
    "Aux": ("_tree.nodes", "Aux"),
    "PlacedMesh": ("mesh_utils.picture", "PlacedMesh"),
    "allocator_kind": ("_runtime.client", "_kind"),
    "array": ("_core", "_array_from_pickle"),
    "calibration": ("planner.calibration_values", "_with"),
    "cluster": ("_core", "_make_cluster"),
    "device": ("_core", "_find_device"),
    "device_assignment": ("_core", "_device_assignment"),
    "device_bytes": ("planner.device_bytes", "of_counts"),
    "device_list": ("_core", "_device_list_from_pickle"),
    "device_topology": ("_core", "_device_topology"),
    "layout": ("_core", "_layout_from_text"),
    "measured_roofline": ("roofline.measured", "_with"),
    "memory": ("_core", "_find_memory"),
    "mesh": ("_core", "_mesh_from_pickle"),
    "named_sharding": ("_core", "_named_sharding_from_pickle"),
    "shape_dtype_struct": ("_array.shape_dtype", "_remake"),
    "single_device_sharding": ("_core", "_single_device_sharding_from_pickle"),
    "tree_structure": ("_tree.treedef", "from_pickle"),
    "unconstrained": ("_core", "_UNCONSTRAINED"),
}

__all__ = sorted(_DEFINED_IN)


def __getattr__(name: str) -> Any:
    if name not in _DEFINED_IN:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _DEFINED_IN[name]
    globals()[name] = found = getattr(importlib.import_module(f"artifex_devices.{module}"), attribute)
    return found
