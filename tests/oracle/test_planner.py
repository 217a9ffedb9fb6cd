# SPDX-License-Identifier: Apache-2.0
"""Which reshards XLA does by gathering everything: foretold against what it logs when it compiles them."""

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices.planner import plan_reshard

jax = pytest.importorskip("jax", reason="jax is not installed")

SPECS = [
    spec
    for rows in ((), ("x",), ("y",), ("x", "y"))
    for columns in ((), ("x",), ("y",), ("y", "x"))
    if not set(rows) & set(columns)
    for spec in [(rows or None, columns or None)]
]


@pytest.mark.parametrize("before", SPECS, ids=str)
def test_involuntary_full_rematerialization(before, capfd):
    theirs = jax.sharding.Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "y"))
    ours = ad.Mesh(np.array(ad.devices()).reshape(4, 2), ("x", "y"))
    shape = jax.ShapeDtypeStruct((16, 16), np.float32)
    for after in SPECS:
        ends = [jax.sharding.NamedSharding(theirs, jax.sharding.PartitionSpec(*spec)) for spec in (before, after)]
        capfd.readouterr()
        jax.jit(lambda x: x, in_shardings=ends[0], out_shardings=ends[1]).lower(shape).compile()
        logged = "Involuntary full rematerialization" in capfd.readouterr().err
        plan = plan_reshard((16, 16), np.float32, *(ad.NamedSharding(ours, ad.P(*spec)) for spec in (before, after)))
        assert plan.xla_gathers_everything is logged, after
