# SPDX-License-Identifier: Apache-2.0
"""Eight threads plan with the same clusters, shapes and configurations at once."""

import artifex_devices as ad
import numpy as np
from artifex_devices import cluster, planner
from many_threads import THREADS, together


def test_plans_of_all_threads_are_equal():
    nodes = cluster.dgx("h100", nodes=2)
    config = planner.TrainingConfig(batch=64, sequence=4096, zero=1)

    def work(_):
        mesh = ad.Mesh(np.array(nodes.devices()), ("x",))
        rows, columns = (ad.NamedSharding(mesh, spec) for spec in (ad.P("x"), ad.P(None, "x")))
        return (
            repr(planner.plan_reshard((64, 64), np.float32, rows, columns)),
            repr(planner.plan_training("llama-2-7b", nodes, config)),
            repr(planner.plan_inference("llama-2-7b", nodes, batch=8, prompt=1024, output=64)),
        )

    plans = together(work)
    assert plans == [work(0)] * THREADS
