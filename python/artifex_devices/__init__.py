# SPDX-License-Identifier: Apache-2.0
"""artifex_devices: the device runtime that NumPy never had.

Devices, meshes, shardings and sharded arrays with the names and semantics of JAX's device layer, on a
C++ core, for NumPy.
"""

from __future__ import annotations

import importlib.util
import sys
from typing import Any

import artifex_devices._core  # noqa: F401 - first, as it refuses sub-interpreters, in which NumPy warns

# isort: split
import numpy as np

from artifex_devices._base.absent_modules import AbsentModules as _AbsentModules
from artifex_devices._base.public_names import MODULES as _MODULES

# Modules whose names people look for here.
_SEARCHED = ("lax", "sharding", "tree_util", "debug", "multihost_utils", "mesh_utils", "profiler", "memory", "layout")
# The module of names that `dir` leaves out: names of the Artifex project.
_UNLISTED = f"{__name__}.compat.artifex"
# NumPy functions that create an array, and arguments of a call.
_CREATED = dict.fromkeys(("empty", "ones", "zeros"), "(8, 8)") | dict.fromkeys(("arange", "eye"), "8")
_CREATED |= dict.fromkeys(("array", "asarray"), "[[1, 2], [3, 4]]") | {"full": "(8, 8), 0.5", "linspace": "0, 1, 8"}
# NumPy functions for files, which do not take Arrays.
_FILES = {
    "save": "np.save(file, np.asarray(x)), or ad.checkpoint.save(folder, {'x': x})",
    "load": "ad.device_put(np.load(file), sharding), or ad.checkpoint.restore(folder)",
}


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return sorted(name for name in _MODULES if not name.startswith("_"))
    module = _MODULES.get(name)
    if module is not None:
        is_module = module == __name__
        found = importlib.import_module(f"{module}.{name}" if is_module else module)
        globals()[name] = value = found if is_module else getattr(found, name)
        return value
    if name.startswith("_"):  # Python and its tools ask for many of them
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from artifex_devices._base.public_lookup import lookup_error

    raise lookup_error(_explained(name))


def _explained(name: str) -> str:
    """Returns the text of the error for a name that this package does not have."""
    from artifex_devices._base.absent_names import explained, hint_for

    if hint_for(__name__, name) is not None:
        return explained(__name__, name, ())
    if importlib.util.find_spec(f"{__name__}.{name}") is not None:
        return (
            f"artifex_devices.{name}: this module is imported by its own name; expected it to be imported, got no such "
            f"attribute; write import artifex_devices.{name}"
        )
    if name in dir(np):
        fix = f"np.{name}"
        if name in _CREATED:
            fix = f"ad.numpy.{name}({_CREATED[name]}, device=sharding), which places its result"
        fix = _FILES.get(name, f"{fix}; NumPy's functions take Arrays")
        return (
            f"artifex_devices.{name}: NumPy is not part of this package; expected a name of this package, got NumPy's "
            f"{name}; write {fix}"
        )
    for module in _SEARCHED:
        if name in importlib.import_module(f"{__name__}.{module}").__all__:
            return f"artifex_devices.{name} is in another module; write ad.{module}.{name}"
    return explained(__name__, name, _MODULES)


def _import_eagerly(*modules: str) -> None:
    """Imports modules that nearly every program uses; a later import could run during another thread's fork."""
    for module in modules:
        importlib.import_module(f"{__name__}.{module}")
    for name, module in _MODULES.items():
        found = sys.modules.get(f"{module}.{name}" if module == __name__ else module)
        if found is not None:
            globals()[name] = found if module == __name__ else getattr(found, name)


sys.meta_path.append(_AbsentModules)


def __dir__() -> list[str]:
    return [name for name, module in sorted(_MODULES.items()) if module != _UNLISTED]


_import_eagerly(
    "_array.operators",  # gives Array its methods
    "_array.absent_members",
    "_array.core_reprs",  # lets pprint print the core's objects
    "_placement.device_put",
    "_placement.mesh_members",
    "_runtime.caches",
    "_runtime.world",
    "config",
    "sharding",
)
