# SPDX-License-Identifier: Apache-2.0
"""The runtime and the planner are two extensions over one library: state exists once."""

import subprocess
import sys
from pathlib import Path

import artifex_devices as ad
import numpy as np
from artifex_devices import _core, _planner, planner
from artifex_devices.sharding import Mesh, NamedSharding, P

UNLOADED = """
import sys
import numpy as np
import artifex_devices as ad
from artifex_devices.sharding import Mesh, NamedSharding, P

mesh = Mesh(np.array(ad.devices()[:1]), ("x",))
ad.device_put(np.ones(8), NamedSharding(mesh, P("x")))
ad.find_accelerators()
ad.DevicePlacement, ad.HardwareType, ad.lax, ad.shard_map
assert "artifex_devices._planner" not in sys.modules
from artifex_devices import {name}
assert "artifex_devices._planner" in sys.modules
"""


def linked_runtime(extension):
    """The file of the runtime that an extension has loaded."""
    lines = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    assert any(extension.__file__ in line for line in lines)
    return {line.split()[-1] for line in lines if "libartifex_devices.so" in line}


def test_both_extensions_use_one_runtime():
    assert len(linked_runtime(_core)) == 1
    assert linked_runtime(_core) == linked_runtime(_planner)


def test_the_planner_returns_the_sharding_and_mesh_that_it_got():
    names = ("first seen by the runtime", "y")
    with ad.simulate(4):
        mesh = Mesh(np.array(ad.devices()).reshape(2, 2), names)
        plan = planner.plan_reshard(
            (8, 8), np.float32, NamedSharding(mesh, P(*names)), NamedSharding(mesh, P(names[1]))
        )
        assert plan.source.mesh is mesh
        assert plan.source == NamedSharding(Mesh(np.array(ad.devices()).reshape(2, 2), names), P(*names))
        # Each device lacks half of its rows: 4 rows of 8 numbers, of which it has 4 numbers of each of at most 4.
        assert plan.bytes_received == sum(int(count) for count in plan.bytes_by_device.values())


def test_axis_names_first_seen_by_the_planner_are_those_of_the_runtime():
    code = """
import numpy as np
from artifex_devices import cluster, planner
pod = cluster.tpu("v5e", (2, 2))
from artifex_devices.sharding import AbstractMesh, NamedSharding, P
late = AbstractMesh((2, 2), ("late", "later"))
before, after = NamedSharding(late, P("late")), NamedSharding(late, P("later"))
plan = planner.plan_reshard((4, 4), np.float32, before, after, cluster=pod)
assert plan.destination == NamedSharding(AbstractMesh((2, 2), ("late", "later")), P("later"))
assert plan.destination.spec == P("later") and hash(plan.destination.spec) == hash(P("later"))
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_runtime_does_not_load_the_planner():
    for name in ("planner", "models", "calibration"):
        subprocess.run([sys.executable, "-c", UNLOADED.format(name=name)], check=True)
