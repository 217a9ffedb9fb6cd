# SPDX-License-Identifier: Apache-2.0
"""The extensions leave the GIL of a free-threaded interpreter off."""

import os
import subprocess
import sys

import pytest
from many_threads import IS_FREE_THREADED

PROGRAM = """
import sys
import numpy as np
import artifex_devices as ad
import artifex_devices._planner

def total(block):
    return ad.lax.psum(block, "x")

with ad.simulate(4):
    mesh = ad.make_mesh((4,), ("x",))
    print(ad.shard_map(total, mesh=mesh, in_specs=ad.P("x"), out_specs=ad.P())(np.arange(4.0)))
print([name for name in ("artifex_devices._core", "artifex_devices._planner", "greenlet") if name in sys.modules])
print("GIL", sys._is_gil_enabled())
"""


@pytest.mark.skipif(not IS_FREE_THREADED, reason="this interpreter always has the GIL")
def test_an_import_leaves_the_gil_off():
    environment = {name: value for name, value in os.environ.items() if name != "PYTHON_GIL"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "[6.]",
        "['artifex_devices._core', 'artifex_devices._planner', 'greenlet']",
        "GIL False",
    ]
