# SPDX-License-Identifier: Apache-2.0
"""Pictures of the documentation are what the library draws now; UPDATE_RECORDED_TEXTS=1 writes them again."""

import os
from pathlib import Path

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import cluster
from artifex_devices.planner import TrainingConfig, plan_reshard, plan_training
from artifex_devices.render import sharding_svg
from artifex_devices.sharding import Mesh, NamedSharding, P

IMAGES = Path(__file__).resolve().parents[3] / "docs" / "images"


def training(kind):
    """The run of docs/how_to/plan_a_training_run.md."""
    config = TrainingConfig(batch=2048, sequence=8192, tensor=8, sequence_parallel=True, pipeline=16, zero=1)
    return plan_training("llama-3.1-405b", cluster.dgx("h100", nodes=2048), config).to_svg(kind)


def reshard():
    """The reshard of docs/how_to/plan_reshards.md."""
    mesh = Mesh(np.array(cluster.tpu("v5e", (2, 2)).devices()), ("x",))
    before, after = NamedSharding(mesh, P("x", None)), NamedSharding(mesh, P(None, "x"))
    return plan_reshard((4096, 4096), "bfloat16", before, after, way="copies").to_svg()


def sharding():
    """The sharding of docs/learn/specs.md."""
    with ad.simulate(8):
        mesh = Mesh(np.array(ad.devices()).reshape(4, 2), ("data", "model"))
        return sharding_svg(NamedSharding(mesh, P("data", "model")), (16, 4))


PICTURES = {
    "waterfall.svg": lambda: training("waterfall"),
    "schedule.svg": lambda: training("schedule"),
    "reshard.svg": reshard,
    "sharding.svg": sharding,
}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_of_a_page_is_drawn_so_now(name):
    path, text = IMAGES / name, str(PICTURES[name]())
    if os.environ.get("UPDATE_RECORDED_TEXTS") == "1":
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text
