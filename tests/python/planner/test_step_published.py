# SPDX-License-Identifier: Apache-2.0
"""The table of docs/how_to/plan_a_step.md: our plans beside the numbers of https://jax-ml.github.io/scaling-book.

Chapters Training and Training LLaMA 3, at commit 04d8de5 of github.com/jax-ml/scaling-book.
"""

import math
import re
from pathlib import Path

import pytest
from artifex_devices import cluster, mesh_utils, models
from artifex_devices.planner import plan_step
from artifex_devices.sharding import Mesh

PAGE = Path(__file__).resolve().parents[3] / "docs" / "how_to" / "plan_a_step.md"
RULES = {"batch": "data", "embed": "data", "mlp": "tensor", "activation_embed": "tensor"}
POD = 8960  # chips of a v5p pod
PEAK = 4.59e14


def mesh_of(slice_shape, shape, split=False):
    devices = cluster.tpu("v5p", slice_shape).devices()
    return Mesh(mesh_utils.create_device_mesh(shape, devices, allow_split_physical_axes=split), ("data", "tensor"))


def two_matrices(tokens, mlp=28672, layers=80, optimizer=models.ADAM):
    return models.mlp(embed=8192, mlp=mlp, layers=layers, tokens=tokens, optimizer=optimizer)


@pytest.fixture(scope="module")
def rows():
    """Ours and published, by the first column of the table."""
    text = PAGE.read_text(encoding="utf-8").partition("| figure | ours |")[2]
    found = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|", text, re.M)
    return {name: (ours, published) for name, ours, published in found}


@pytest.fixture(scope="module")
def whole_model():
    """4e6 tokens, three activations of each layer kept."""
    model = models.transformer("llama-3-70b", batch=1000, sequence=4000, keep=("x", "attention_in", "mlp_in"))
    return plan_step(model, mesh_of((4, 4, 4), (8, 8), True), RULES | {"kv_heads": "tensor", "vocab": "tensor"})


def test_parameters(rows):
    assert models.transformer("llama-3-70b", batch=1, sequence=1).parameters == 70_553_706_496
    assert rows["parameters"] == ("70.55e9", "70.4e9")


def test_flops(rows, whole_model):
    per_token = sum(
        product.flops * whole_model.devices / 4e6
        for product in whole_model.products
        if product.kind != "recomputed" and product.operation not in ("scores", "attend")
    )
    assert f"{per_token:.3g}".replace("+", "") == rows["FLOPs a token, without scores of attention"][0] == "4.17e11"
    days = per_token * 15e12 / (POD * PEAK * 0.4) / 86400
    assert f"{days:.1f}" == rows["days for 15e12 tokens, 8,960 chips, 40 % of the peak"][0] == "44.0"


def test_memory(rows, whole_model):
    memory, devices = whole_model.memory, whole_model.devices
    # Scales of norms, 1,318,912 of them, are not cut: each device has all.
    norms = 161 * 8192
    parameters = (memory.parameters - 2 * norms) * devices + 2 * norms
    state = (memory.optimizer - 8 * norms) * devices + 8 * norms
    activations = memory.activations * devices
    assert parameters == 2 * 70_553_706_496
    assert state == 8 * 70_553_706_496
    assert activations == 2 * 8192 * 4_000_000 * (3 * 80)
    assert f"{parameters / 1e9:.0f} GB" == rows["parameters, bfloat16"][0] == "141 GB"
    assert f"{state / 1e9:.0f} GB" == rows["Adam's state, float32"][0]
    assert f"{activations / 1e12:.1f} TB" == rows["4e6 tokens, three activations a layer of the model's width"][0]
    each = (parameters + state + activations) / POD
    assert f"{each / 1e9:.2f} GB" == rows["all three, of each of 8,960 chips"][0]


@pytest.mark.parametrize(
    ("name", "slice_shape", "shape"),
    [
        ("fully sharded over one axis: tokens a chip to be compute-bound", (16, 16, 16), (16, 256)),
        ("over three axes", (16, 16, 16), (4096, 1)),
    ],
)
def test_fully_sharded(rows, name, slice_shape, shape):
    mesh = mesh_of(slice_shape, shape)
    plan = plan_step(two_matrices(4096 * shape[0]), mesh, {"batch": "data", "embed": "data"})
    assert f"{plan.compute_bound_tokens / shape[0]:.0f}" == rows[name][0]


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("468 tokens a chip, fully sharded", (1024, 1)),
        ("468 tokens a chip, fully sharded and 4-way tensor parallel", (256, 4)),
    ],
)
def test_468_tokens_a_chip(rows, name, shape):
    plan = plan_step(two_matrices(468 * 1024), mesh_of((4, 16, 16), shape), RULES)
    assert (plan.limit, plan.limit) == rows[name]


def test_the_smallest_batch_of_the_mixture_of_experts(rows):
    mesh = mesh_of((4, 16, 16), (256, 4))
    forward = plan_step(two_matrices(468 * 1024, optimizer=None), mesh, RULES)
    name = "of that, tokens a chip to be compute-bound, forward"
    assert f"{forward.compute_bound_tokens / 1024:.0f}" == rows[name][0]
    whole = plan_step(two_matrices(468 * 1024), mesh, RULES)
    assert f"needs {whole.compute_bound_tokens / 1024:.0f} tokens per chip" in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("ways", [8, 16])
def test_tensor_parallel(rows, ways):
    mesh = mesh_of((ways, 16, 16), (256, ways))
    rules = {"mlp": "tensor", "activation_embed": "tensor"}
    plan = plan_step(two_matrices(65536, optimizer=None), mesh, rules)
    assert (plan.limit, plan.limit) == rows[f"tensor parallel, {ways}-way"]
    # However large the batch: only latencies do not grow with it.
    assert (plan.compute_bound_tokens == math.inf) == (ways == 16)
    ratio = plan.roofline.network / plan.roofline.compute
    assert ratio == pytest.approx((ways - 1) * (PEAK / 1.8e11) / 28672, rel=2e-3)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("4x4x4, 8192 x 32768, 750 tokens a chip: fully sharded", (64, 1)),
        ("the same, 32 ways and 2-way tensor parallel", (32, 2)),
    ],
)
def test_64_chips(rows, name, shape):
    plan = plan_step(two_matrices(48000, mlp=32768, layers=1), mesh_of((4, 4, 4), shape, True), RULES)
    assert (plan.limit, plan.limit) == rows[name]
