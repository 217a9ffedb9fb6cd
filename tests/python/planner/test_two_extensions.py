# SPDX-License-Identifier: Apache-2.0
"""The runtime and the planner are two extensions over one library: state exists once."""

import subprocess
import sys
from pathlib import Path

import numpy as np
from artifex_devices import cluster, planner
from artifex_devices.sharding import AbstractMesh, NamedSharding, P

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


def test_both_extensions_use_one_runtime():
    lines = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    loaded = {line.split()[-1] for line in lines if "/artifex_devices/" in line and ".so" in line}
    names = sorted(Path(path).name.partition(".")[0] for path in loaded)
    assert names == ["_core", "_planner", "libartifex_devices"]


def test_a_plan_names_axes_that_the_runtime_made():
    pod = cluster.tpu("v5e", (2, 2))
    mesh = AbstractMesh((2, 2), ("an axis of this test", "y"))
    before, after = NamedSharding(mesh, P("an axis of this test", "y")), NamedSharding(mesh, P("y"))
    plan = planner.plan_reshard((8, 8), np.float32, before, after, cluster=pod, way="collectives")
    assert [step.text for step in plan.steps] == [
        "permute shards",
        "all-gather dimension 1 over an axis of this test",
    ]
    # Of its 4 x 8 numbers, a device on the diagonal has 4 x 4, the others none.
    assert plan.bytes_received == 2 * 64 + 2 * 128
    assert plan.destination.mesh == AbstractMesh((2, 2), ("an axis of this test", "y"))


def test_the_runtime_does_not_load_the_planner():
    for name in ("planner", "models", "calibration"):
        subprocess.run([sys.executable, "-c", UNLOADED.format(name=name)], check=True)
