# SPDX-License-Identifier: Apache-2.0
"""The instruction set of copies can be chosen from outside; each gives the same bits."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from artifex_devices._core import internal

PROGRAM = """
import numpy as np
import artifex_devices as ad
from artifex_devices import _core

with ad.simulate(8):
    mesh = ad.Mesh(np.array(ad.devices()), ("x",))
    value = np.arange(1024 * 1536, dtype=np.float32).reshape(1024, 1536)
    columns = ad.device_put(value, ad.NamedSharding(mesh, ad.P(None, "x")))
    rows = ad.device_put(columns, ad.NamedSharding(mesh, ad.P("x")))
    turned = ad.device_put(value.T, ad.NamedSharding(mesh, ad.P(None, "x")))
    assert all((np.asarray(shard.data) == value[shard.index]).all() for shard in columns.addressable_shards)
    assert np.asarray(rows).tobytes() == np.asarray(columns).tobytes() == value.tobytes()
    assert (np.asarray(turned) == value.T).all()
print(_core.internal.copy_isa())
"""


def run(isa: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "ARTIFEX_DEVICES_COPY_ISA": isa}
    return subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment)


@pytest.mark.parametrize("isa", internal.supported_isas())
def test_each_set_that_runs_here_keeps_every_bit(isa):
    done = run(isa)
    assert (done.stdout, done.stderr) == (f"{isa}\n", "")


def test_an_unknown_set_ends_the_import_with_those_that_run():
    done = run("mmx")
    assert done.returncode == 1
    expected = (
        'ARTIFEX_DEVICES_COPY_ISA: the instruction set of copies is "mmx", which is not known here; expected one of '
    )
    assert expected + '"baseline"' in done.stderr


def test_the_greatest_set_is_used_unless_another_is_chosen():
    if "ARTIFEX_DEVICES_COPY_ISA" not in os.environ:
        assert internal.copy_isa() == internal.supported_isas()[-1]
