# SPDX-License-Identifier: Apache-2.0
"""Memory of hosts: what plans offload to it, whether that fits, and what searches make of it."""

import json
import pickle

import pytest
from artifex_devices import cluster, models
from artifex_devices.planner import TrainingConfig, plan_training, suggest

SMALL = models.TransformerShape("small", 8, 1024, 4096, 16, 16, 64, 32000)
GIB = 2**30
HELD = SMALL.parameters.total


def node(memory=None, nodes=1):
    return cluster.dgx("h100", nodes=nodes, host_memory=memory)


def plan(machine=None, **values):
    return plan_training(SMALL, machine or node(), TrainingConfig(**{"batch": 16, "sequence": 2048, **values}))


def test_states_and_gradients_of_all_devices_are_on_their_host():
    # Adam's 8 or 12 bytes and a gradient of 4 for each parameter that a device updates.
    assert plan(zero=1, offload_optimizer=True).host_memory == 16 * HELD
    assert plan(zero=1, offload_optimizer=True, optimizer="adam").host_memory == 12 * HELD
    assert plan(offload_optimizer=True).host_memory == 8 * 16 * HELD  # without ZeRO each device updates all
    narrow = plan(zero=1, offload_optimizer=True, gradient_dtype="bfloat16")
    assert narrow.host_memory == 14 * HELD
    assert plan(node(nodes=2), zero=1, offload_optimizer=True).host_memory == 8 * HELD
    assert plan().host_memory == 0


def test_gradients_of_two_layers_are_on_the_device_with_zero_2():
    kept, gone, plain = (
        plan(zero=zero, offload_optimizer=host).stages[0] for zero, host in ((1, True), (2, True), (2, False))
    )
    assert kept.gradients == 4 * HELD
    assert plain.gradients == 4 * HELD / 8
    assert gone.gradients == 2 * 4 * (SMALL.parameters.layers / 8) / 8  # of 8 layers, and 8 devices
    assert gone.host == kept.host == 16 * HELD / 8
    assert gone.total == plain.total - plain.optimizer - plain.gradients + gone.gradients
    # A stage of one layer has no more than its own.
    one, both = (plan(pipeline=8, zero=2, offload_optimizer=host) for host in (False, True))
    assert both.stages[3].gradients == one.stages[3].gradients == 4 * SMALL.parameters.layers / 8


def test_activations_on_the_host_are_those_that_left_the_device():
    without, offloaded = plan(), plan(offload_activations=True)
    gone = without.stages[0].activations - offloaded.stages[0].activations
    assert offloaded.stages[0].host == gone > 0
    assert offloaded.host_memory == 8 * gone


def test_stages_that_share_a_host_add_up():
    # 8 devices, 4 stages of 2: in flight are 4, 3, 2 and 1 microbatches.
    found = plan(pipeline=4, offload_activations=True)
    each = [stage.host for stage in found.stages]
    assert each[0] > each[1] > each[2]
    assert found.host_memory == pytest.approx(2 * sum(each), abs=8)
    # Stages of a node each: the fullest host has the first one.
    apart = plan(node(nodes=4), pipeline=4, offload_activations=True, batch=32)
    assert apart.host_memory == 8 * apart.stages[0].host


def test_devices_of_a_torus_count_as_those_of_the_fullest_stage():
    pod = cluster.tpu("v5e", (4, 4))
    found = plan(pod, pipeline=4, offload_activations=True)
    assert found.host_memory == pytest.approx(8 * found.stages[0].host, abs=8)


def test_what_does_not_fit_on_the_host_does_not_fit():
    need = 16 * HELD
    enough, short = (plan(node(memory), zero=1, offload_optimizer=True) for memory in (need, need - 1))
    assert (enough.fits, enough.host_available) == (True, need)
    assert (short.fits, short.host_available) == (False, need - 1)
    assert short.memory <= short.available
    unknown = plan(cluster.gpus("h100", chips_per_node=4), zero=1, offload_optimizer=True)
    assert (unknown.fits, unknown.host_available) == (True, None)
    assert plan(node(1)).fits  # nothing is offloaded
    assert plan(node(1)).host_available is None


def test_texts_and_json_compare_the_host():
    fits, short = plan(zero=1, offload_optimizer=True), plan(node(GIB), zero=1, offload_optimizer=True)
    unknown = plan(cluster.gpus("h100", chips_per_node=4), zero=1, offload_optimizer=True)
    assert "3.0 GiB of 2.0 TiB on the fullest host: fits" in str(fits)
    assert "2.0 TiB of memory [S26]" in fits.details()
    assert "3.0 GiB of 1.0 GiB on the fullest host: does not fit" in str(short)
    assert "3.0 GiB on the fullest host, whose memory is not known" in str(unknown)
    assert "fullest host" not in str(plan())
    content = json.loads(short.to_json())
    assert content["host_memory"] == {"bytes": 16 * HELD, "available": GIB}
    assert content["memory"]["fits"] is False


def test_the_nearest_fit_may_be_without_offloading_or_with_shards():
    lines = str(plan(node(GIB), zero=1, offload_optimizer=True))
    assert "offload_optimizer=False" in lines
    replicated = plan(node(20 * HELD), offload_optimizer=True)
    assert not replicated.fits
    assert "zero=1" in str(replicated)


def test_searches_leave_out_what_does_not_fit_on_the_host():
    values = {"batch": 16, "sequence": 2048, "progress": False, "pipeline": 1, "tensor": 1, "context": 1}
    values |= {"zero": 1, "zero_shards": None, "microbatch": 1, "recompute": "none", "device_counts": [8]}
    pinned = {**values, "offload_optimizer": True, "offload_activations": False}
    limit = 16 * HELD
    assert suggest(SMALL, node(limit + 1), **pinned).options
    short = suggest(SMALL, node(limit - 1), **pinned)
    assert not short.options
    assert short.space.too_large == short.space.consistent == 1
    assert short.nearest[0].config.offload_optimizer
    free = suggest(SMALL, node(limit - 1), **{**pinned, "offload_optimizer": [False, True]})
    assert [choice.config.offload_optimizer for choice in free.options] == [False]
    assert "2.0 TiB of a host [S26]" in suggest(SMALL, node(), **pinned).details()
    unknown = suggest(SMALL, cluster.gpus("h100", chips_per_node=4), **{**pinned, "device_counts": [4]})
    assert "a host's memory is not known" in unknown.details()


def test_ways_out_do_not_offload_more_than_a_host_has():
    pinned = {"batch": 8, "sequence": 1024, "zero": 0, "context": 1, "progress": False}
    pinned |= {"offload_optimizer": False, "offload_activations": False, "tensor": 1, "pipeline": 1}
    with_host = suggest("llama-2-7b", cluster.dgx("h100"), **pinned)
    assert {"offload_optimizer": True} in with_host.ways_out
    small_host = suggest("llama-2-7b", cluster.dgx("h100", host_memory=64 * GIB), **pinned)
    assert not any("offload" in name for way in small_host.ways_out for name in way)


def test_a_pickle_keeps_the_memory_of_hosts():
    found = plan(zero=1)
    again = pickle.loads(pickle.dumps(found))
    assert (again.host_memory, again.host_available, again.memory) == (0, None, found.memory)
