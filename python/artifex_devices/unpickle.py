# SPDX-License-Identifier: Apache-2.0
"""Functions and classes that pickles of this library name beside its public classes.

Programs do not call them. Names and arguments stay readable for later versions. An unpickler with a list of allowed
names lists each of them as a pair, such as `("artifex_devices.unpickle", "array")`. It must not allow this module as a
whole: pickle resolves a dotted name by one attribute after the other, and the attributes of any function lead to every
module. docs/how_to/pickle_threads_and_forks.md has such an unpickler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from artifex_devices._core import internal

if TYPE_CHECKING:
    from typing import Any

# Public name: the module that defines it, and its name there. The core has functions of its own.
_DEFINED_IN = {
    "Aux": ("_tree.nodes", "Aux"),
    "PlacedMesh": ("mesh_utils.explanation", "PlacedMesh"),
    "allocator_kind": ("_runtime.client", "_kind"),
    "calibration": ("planner.calibration.values", "_with"),
    "device_bytes": ("planner.reshard.device_bytes", "of_counts"),
    "measured_roofline": ("roofline.measured", "_with"),
    "shape_dtype_struct": ("_array.shape_dtype", "_remake"),
    "tree_structure": ("_tree.treedef", "from_pickle"),
    "unconstrained": ("_core.internal", "UNCONSTRAINED"),
}

__all__ = sorted({*_DEFINED_IN, *internal.unpickle_functions})

# Plain names, not names that __getattr__ finds: pickle turns a Ctrl-C during its look-up into a PicklingError.
globals().update(internal.unpickle_functions)

# No module is an attribute of this one, also for unpicklers that allow dotted names.
del TYPE_CHECKING, annotations, internal


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _DEFINED_IN:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _DEFINED_IN[name]
    globals()[name] = found = getattr(import_module(f"artifex_devices.{module}"), attribute)
    return found
