# SPDX-License-Identifier: Apache-2.0
"""A step by rules and a training plan with ZeRO 3 are the same run, and one cost model prices both.

The two plans count the same products, attention, update and bytes of collectives. They differ in what follows, which
is worth less than a tenth: a training plan also rotates queries and keys, reads and writes logits in float32,
multiplies queries, keys and values as one matrix and gate and up as another, sends all parameters of a layer in one
message, and computes the last product of each part of a layer again under full recomputation, which a step does not
need.
"""

import numpy as np
import pytest
from artifex_devices import cluster, models
from artifex_devices.planner import Efficiency, TrainingConfig, plan_step, plan_training
from artifex_devices.sharding import Mesh

TOLERANCE = 0.1
GRADIENTS = models.Optimizer(12, gradient_dtype="float32")  # as in TrainingConfig
PODS = {"64 x h100": cluster.dgx("h100", nodes=8), "32 x a100": cluster.dgx("a100", nodes=4)}


@pytest.mark.parametrize("pod", PODS)
@pytest.mark.parametrize(("keep", "recompute"), [("all", "none"), ("layers", "full")])
@pytest.mark.parametrize(
    ("shape", "batch", "sequence"),
    [("llama-2-7b", 64, 4096), ("llama-2-13b", 128, 4096), ("llama-3-8b", 64, 8192), ("llama-2-7b", 256, 1024)],
)
def test_a_step_and_a_training_run_take_the_same_time(pod, shape, batch, sequence, keep, recompute):
    nodes = PODS[pod]
    config = TrainingConfig(
        batch=batch,
        sequence=sequence,
        microbatch=batch // nodes.device_count,
        zero=3,
        recompute=recompute,
        attention_kernel="native",  # as in a step
    )
    run = plan_training(shape, nodes, config)
    model = models.transformer(shape, batch=batch, sequence=sequence, keep=keep, optimizer=GRADIENTS)
    mesh = Mesh(np.array(nodes.devices()), ("data",))
    step = plan_step(model, mesh, {"batch": "data", "embed": "data"})
    assert step.efficiency == run.efficiency == Efficiency.of(nodes)
    assert step.seconds == pytest.approx(run.seconds, rel=TOLERANCE)
    if recompute == "none":
        assert step.expected.products == pytest.approx(run.expected.parts["products"], rel=0.01)
