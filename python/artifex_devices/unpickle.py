# SPDX-License-Identifier: Apache-2.0
"""Functions and classes that pickles of this library name in addition to its public classes.

Programs do not call them. Names and arguments stay readable for later versions. An unpickler with a list of allowed
names lists each of them as a pair, such as `("artifex_devices.unpickle", "array")`. It must not allow this module as a
whole: pickle resolves a dotted name by one attribute after the other, and the attributes of any function lead to every
module. docs/how_to/pickle_threads_and_forks.md has such an unpickler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from artifex_devices._core import internal

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# Public name: the module that defines it, and its name there.
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

# Public name: the function of the core, the type of its result, and its arguments.
_OF_THE_CORE: dict[str, tuple[Callable[..., Any], str, str]] = {
    "array": (
        internal.array_from_pickle,
        "an Array",
        "(value, sharding, whether it is committed, XLA's layout as text or None)",
    ),
    "cluster": (internal.make_cluster, "a Cluster", "(the dict of Cluster.parts,)"),
    "device": (internal.find_device, "a Device", "(platform, id)"),
    "device_assignment": (internal.device_assignment, "a DeviceAssignment", "(bytes,)"),
    "device_list": (internal.device_list_from_pickle, "a DeviceList", "(platform, ids)"),
    "device_topology": (internal.device_topology, "a DeviceTopology", "(bytes,)"),
    "layout": (internal.layout_from_text, "a Layout", "(XLA's text,)"),
    "memory": (internal.find_memory, "a Memory", "(platform, id, kind)"),
    "mesh": (internal.mesh_from_pickle, "a Mesh", "(platform, an array of device ids, axis names, axis types)"),
    "named_sharding": (
        internal.named_sharding_from_pickle,
        "a NamedSharding",
        "(class, mesh, spec, memory_kind, uneven)",
    ),
    "single_device_sharding": (
        internal.single_device_sharding_from_pickle,
        "a SingleDeviceSharding",
        "(class, device, memory_kind)",
    ),
}

__all__ = sorted({*_DEFINED_IN, *_OF_THE_CORE})


def _reader(name: str) -> Callable[..., Any]:
    function, result, expected = _OF_THE_CORE[name]

    def read(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except (KeyError, TypeError) as error:  # a part of the state is missing, or of another type
            types = ", ".join(type(each).__name__ for each in args)
            raise TypeError(
                f"unpickle: the state of {result} is damaged; expected {expected}, got parts of the types ({types}); "
                "pickle the value again"
            ) from error

    read.__name__ = read.__qualname__ = name
    read.__doc__ = f"Returns {result} from {expected}."
    return read


# Plain names, not names that __getattr__ finds: pickle turns a Ctrl-C during its look-up into a PicklingError.
globals().update({_name: _reader(_name) for _name in _OF_THE_CORE})

# No module is an attribute of this module, also for unpicklers that allow dotted names.
del TYPE_CHECKING, annotations, internal


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _DEFINED_IN:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _DEFINED_IN[name]
    globals()[name] = found = getattr(import_module(f"artifex_devices.{module}"), attribute)
    return found
