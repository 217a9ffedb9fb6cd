# SPDX-License-Identifier: Apache-2.0
"""Traces that jax.profiler writes, read by the planner."""

import json

import numpy as np
import pytest
from artifex_devices import cluster
from artifex_devices.planner import TrainingConfig, fit_profile, plan_training, read_profile

jax = pytest.importorskip("jax", reason="jax is not installed")

STEPS = 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A profile of a data-parallel step: two products forward, three backward, and the sum of the gradients."""
    mesh = jax.make_mesh((8,), ("data",))
    spec = jax.sharding.PartitionSpec

    def loss(weights, x):
        return jax.numpy.mean((jax.numpy.tanh(x @ weights["a"]) @ weights["b"]) ** 2)

    @jax.jit
    def step(weights, x):
        gradients = jax.grad(loss)(weights, x)
        return jax.tree.map(lambda value, gradient: value - 0.1 * gradient, weights, gradients)

    weights = {"a": np.ones((256, 512), np.float32), "b": np.ones((512, 256), np.float32)}
    weights = jax.device_put(weights, jax.sharding.NamedSharding(mesh, spec()))
    x = jax.device_put(np.ones((64, 256), np.float32), jax.sharding.NamedSharding(mesh, spec("data")))
    weights = jax.block_until_ready(step(weights, x))
    where = tmp_path_factory.mktemp("profile")
    with jax.profiler.trace(where, create_perfetto_trace=True):
        for number in range(STEPS):
            with jax.profiler.StepTraceAnnotation("train", step_num=number):
                weights = jax.block_until_ready(step(weights, x))
    return where


def test_the_profile_of_each_device_has_products_and_messages(folder):
    devices = read_profile(folder).devices
    assert devices == tuple(f"cpu:{number}" for number in range(8))
    for device in devices:
        profile = read_profile(folder, device=device)
        assert (profile.steps, profile.steps_from) == (STEPS, "steps of jax.profiler.StepTraceAnnotation")
        assert {kind for kind, seconds in profile.busy.items() if seconds} == {"products", "elementwise", "all_reduce"}
        assert profile.unknown == {}
        assert sum(profile.alone.values()) + profile.idle == pytest.approx(profile.seconds)
        assert json.loads(profile.to_json())["source"] == "perfetto_trace.json.gz"


def test_a_plan_takes_its_factors(folder):
    node = cluster.dgx("h100")
    plan = plan_training("llama-3-8b", node, TrainingConfig(batch=8, sequence=128, zero=0))
    found = fit_profile(plan, read_profile(folder))
    assert "matmul" in found.fitted
    assert any(note.startswith("attention: no operation of the profile is of this kind") for note in found.notes)
