# SPDX-License-Identifier: Apache-2.0
"""Assertions, simulated processes and Hypothesis strategies for code that uses artifex_devices.

The assertions compare values and shardings; their failures name the shard, the index and the numbers. The strategies
draw meshes, partition specs, shardings that fit a shape, and NumPy arrays in every dtype with the memory layouts that
often break code: reversed, stepped, transposed, unaligned, broadcast and read-only. The strategies need the package
hypothesis: `pip install hypothesis`. `run_processes` runs a program of several processes in one process, and finds its
deadlocks and mismatches; see the guide "Test multi-host code on a laptop".

pytest loads the fixtures `artifex_devices` and `artifex_mesh` and the mark `artifex_devices` by itself; see the guide
"Test with pytest".

Example:
    >>> from hypothesis import given
    >>> import artifex_devices as ad
    >>> from artifex_devices.testing import assert_same_bits, shardable_arrays
    >>> @given(shardable_arrays())
    ... def comes_back(placement):
    ...     assert_same_bits(ad.device_get(ad.device_put(placement.value, placement.sharding)), placement.value)
    >>> comes_back()
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from artifex_devices._base.public_lookup import missing_name
from artifex_devices.distributed.simulated.faults import Fault
from artifex_devices.distributed.simulated.scheduler import Event
from artifex_devices.testing.assertions import (
    assert_allclose,
    assert_same_bits,
    assert_same_sharding,
    assert_shards_tile,
)
from artifex_devices.testing.processes import SimulatedRun, kill, run_processes, stall

if TYPE_CHECKING:
    from artifex_devices.testing.array_strategies import arrays, dtypes, layouts, shapes
    from artifex_devices.testing.mesh_strategies import MeshLayout, mesh_layouts, meshes
    from artifex_devices.testing.sharding_strategies import (
        ShardableArray,
        fitting_shapes,
        shardable_arrays,
        shardings,
        spec_entries,
        specs,
    )

__all__ = [
    "Event",
    "Fault",
    "MeshLayout",
    "ShardableArray",
    "SimulatedRun",
    "arrays",
    "assert_allclose",
    "assert_same_bits",
    "assert_same_sharding",
    "assert_shards_tile",
    "dtypes",
    "fitting_shapes",
    "kill",
    "layouts",
    "mesh_layouts",
    "meshes",
    "run_processes",
    "shapes",
    "shardable_arrays",
    "shardings",
    "spec_entries",
    "specs",
    "stall",
]

# Imported at first use, because the assertions must not need hypothesis.
_STRATEGIES = {
    "array_strategies": ("arrays", "dtypes", "layouts", "shapes"),
    "mesh_strategies": ("MeshLayout", "mesh_layouts", "meshes"),
    "sharding_strategies": (
        "ShardableArray",
        "fitting_shapes",
        "shardable_arrays",
        "shardings",
        "spec_entries",
        "specs",
    ),
}


def __getattr__(name: str) -> Any:
    for module, names in _STRATEGIES.items():
        if name in names:
            value = getattr(importlib.import_module(f"{__name__}.{module}"), name)
            globals()[name] = value
            return value
    raise missing_name(__name__, name)


def __dir__() -> list[str]:
    return sorted(__all__)
