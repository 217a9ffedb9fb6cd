# SPDX-License-Identifier: Apache-2.0
"""The messages that plan_training prices, against counts by hand for a small llama on 8 devices."""

import json
from dataclasses import replace

import pytest
from artifex_devices import cluster, models
from artifex_devices.planner import TrainingCollective, plan_training

LAYERS, EMBED, WIDTH, VOCAB, TOKENS = 4, 64, 128, 256, 32
SHAPE = models.TransformerShape("small", LAYERS, EMBED, WIDTH, 8, 8, 8, VOCAB)
SPARSE = replace(SHAPE, experts=4, experts_per_token=2)
LAYER = 4 * EMBED**2 + 3 * EMBED * WIDTH + 2 * EMBED  # parameters: attention, the MLP and two norms
EACH = (LAYERS * LAYER + 2 * VOCAB * EMBED + EMBED) // LAYERS  # with a part of the embedding and of the output
STREAM = TOKENS * EMBED * 2  # bytes of the activations of one sequence in bfloat16


def plan(shape=SHAPE, **values):
    return plan_training(shape, cluster.dgx("h100"), **{"sequence": TOKENS, **values})


def messages(shape=SHAPE, **values):
    """Operation, axes, devices, bytes and count of each message; parameters have 2 bytes, gradients 4."""
    found = plan(shape, **values).collectives
    return {(each.op, each.axes, each.devices, each.bytes_sent, each.count) for each in found}


def test_replicas_reduce_the_gradients_of_each_layer_once():
    assert messages(batch=16) == {("all_reduce", ("data",), 8, 2 * 7 * EACH * 4 // 8, LAYERS)}


def test_zero_gathers_parameters_after_the_update():
    scattered, gathered = 7 * EACH * 4 // 8, 7 * EACH * 2 // 8
    once = {("reduce_scatter", ("data",), 8, scattered, LAYERS), ("all_gather", ("data",), 8, gathered, LAYERS)}
    assert messages(batch=16, zero=1) == once
    # Of 2 microbatches; ZeRO 3 gathers before each forward pass and each backward pass.
    each_time = ("reduce_scatter", ("data",), 8, scattered, 2 * LAYERS)
    assert messages(batch=16, zero=2) == {each_time, ("all_gather", ("data",), 8, gathered, LAYERS)}
    assert messages(batch=16, zero=3) == {each_time, ("all_gather", ("data",), 8, gathered, 2 * 2 * LAYERS)}


def test_hybrid_sharding_sums_shards_over_replicas():
    assert messages(batch=8, zero=3, zero_shards=4) == {
        ("reduce_scatter", ("data",), 4, 3 * EACH * 4 // 4, LAYERS),
        ("all_reduce", ("replica",), 2, EACH * 4 // 4, LAYERS),
        ("all_gather", ("data",), 4, 3 * EACH * 2 // 4, 2 * LAYERS),
    }


def test_tensor_parallel_layers_sum_twice_in_each_pass():
    # After attention and the MLP; forward after the embedding, backward before the output. 2 microbatches.
    count = 2 * (4 * LAYERS + 2)
    assert messages(batch=2, tensor=8) == {("all_reduce", ("tensor",), 8, 2 * 7 * STREAM // 8, count)}
    assert messages(batch=2, tensor=8, recompute="full") == {
        ("all_reduce", ("tensor",), 8, 2 * 7 * STREAM // 8, count + 2 * 2 * LAYERS)
    }


def test_sequence_parallel_layers_gather_their_input_again_backward():
    # Each of two parts of a layer gathers and scatters in both passes, and gathers its input again.
    assert messages(batch=2, tensor=8, sequence_parallel=True) == {
        ("all_gather", ("tensor",), 8, 7 * STREAM // 8, 2 * (6 * LAYERS + 2)),
        ("reduce_scatter", ("tensor",), 8, 7 * STREAM // 8, 2 * (4 * LAYERS + 2)),
    }


def test_stages_send_the_stream_both_ways():
    sends = ("send", ("pipeline",), 2, STREAM, 2 * 4)  # of 4 microbatches
    assert {each for each in messages(batch=16, pipeline=2) if each[0] == "send"} == {sends}
    chunks = messages(batch=16, pipeline=2, chunks=2)
    assert ("send", ("pipeline",), 2, STREAM, 2 * 2 * 4) in chunks


RING = {("send", ("context",), 4, STREAM // 2, 3 * LAYERS), ("send", ("context",), 4, STREAM, 3 * LAYERS)}
GATHER = {
    ("all_gather", ("context",), 4, 3 * STREAM * 2 // 4, 2 * LAYERS),
    ("reduce_scatter", ("context",), 4, 3 * STREAM * 2 // 4, LAYERS),
}
# Queries, their result, and keys with values, of a fourth of the tokens.
HEADS = {
    ("all_to_all", ("context",), 4, 3 * STREAM // 16, 2 * 2 * LAYERS),
    ("all_to_all", ("context",), 4, 3 * STREAM * 2 // 16, 2 * LAYERS),
}


@pytest.mark.parametrize(("method", "expected"), [("ring", RING), ("all_gather", GATHER), ("all_to_all", HEADS)])
def test_parts_of_a_sequence_exchange_keys_and_values(method, expected):
    found = messages(batch=2, context=4, context_method=method)
    assert found == expected | {("all_reduce", ("data", "context"), 8, 2 * 7 * EACH * 4 // 8, LAYERS)}


def test_tokens_go_to_their_experts_and_back():
    found = messages(SPARSE, batch=8, expert=4)
    sent = TOKENS * 2 * EMBED * 2 * 3 // 4  # two copies of each token in bfloat16, of which three of four leave
    assert ("all_to_all", ("expert",), 4, sent, LAYERS * 4) in found
    # An expert is on each second device; all else is on all devices.
    assert {each[1:3] for each in found if each[0] == "all_reduce"} == {(("data",), 2), (("data", "expert"), 8)}
    assert ("all_reduce", ("data",), 2, 3 * EMBED * WIDTH * 4, LAYERS) in found


def test_axes_that_do_not_nest_are_named_whole():
    twelve = models.TransformerShape("twelve", 4, 96, 128, 8, 4, 16, 1024, 6, 2)
    values = {"batch": 48, "sequence": 128, "expert": 6, "zero": 3, "zero_shards": 4}
    found = plan_training(twelve, cluster.gpus("h100", chips_per_node=12), **values).collectives
    assert {each.axes for each in found} == {("data",)}


@pytest.mark.parametrize(
    "values",
    [
        {"batch": 8, "zero": 3},
        {"batch": 4, "tensor": 2, "sequence_parallel": True, "context": 2, "zero": 1},
        {"batch": 4, "tensor": 2, "context": 2, "recompute": "full"},
        {"shape": SPARSE, "batch": 8, "expert": 4, "zero": 2},
        {"batch": 2, "pipeline": 4, "tensor": 2, "chunks": 1},
    ],
)
def test_their_seconds_are_the_plans(values):
    found = plan(**values)
    kinds = ("tensor", "context", "expert", "pipeline", "data")
    expected = sum(found.expected.parts[kind] + found.expected.hidden[kind] for kind in kinds)
    assert sum(each.seconds for each in found.collectives) == pytest.approx(expected)


def test_json_lists_them():
    found = plan(batch=16)
    document = json.loads(found.to_json())
    (message,) = document["collectives"]
    assert TrainingCollective(**message | {"axes": tuple(message["axes"])}) == found.collectives[0]


def test_one_device_sends_nothing():
    assert plan_training(SHAPE, cluster.gpus("h100", chips_per_node=1), batch=1, sequence=TOKENS).collectives == ()
