# SPDX-License-Identifier: Apache-2.0
"""Functions and classes that pickles of this library name beside its public classes.

Programs do not call them. An unpickler with a list of allowed names allows `artifex_devices.unpickle` as a whole. Names
and arguments stay readable for later versions.
"""

from __future__ import annotations

import importlib
from typing import Any

from artifex_devices import _core

# Public name: the module that defines it, and its name there. The core has functions of its own.
_DEFINED_IN = {
    "Aux": ("_tree.nodes", "Aux"),
    "PlacedMesh": ("mesh_utils.explanation", "PlacedMesh"),
    "allocator_kind": ("_runtime.client", "_kind"),
    "calibration": ("planner.calibration_values", "_with"),
    "device_bytes": ("planner.device_bytes", "of_counts"),
    "measured_roofline": ("roofline.measured", "_with"),
    "shape_dtype_struct": ("_array.shape_dtype", "_remake"),
    "tree_structure": ("_tree.treedef", "from_pickle"),
    "unconstrained": ("_core", "_UNCONSTRAINED"),
}

__all__ = sorted({*_DEFINED_IN, *_core._unpickle_functions})

# Plain names, not names that __getattr__ finds: pickle turns a Ctrl-C during its look-up into a PicklingError.
globals().update(_core._unpickle_functions)


def __getattr__(name: str) -> Any:
    if name not in _DEFINED_IN:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _DEFINED_IN[name]
    globals()[name] = found = getattr(importlib.import_module(f"artifex_devices.{module}"), attribute)
    return found
