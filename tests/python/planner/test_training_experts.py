# SPDX-License-Identifier: Apache-2.0
"""plan_training of models with experts beside bytes, parameters and FLOPs that are counted here."""

from dataclasses import replace

import pytest
from artifex_devices import cluster, models
from artifex_devices.planner import (
    Efficiency,
    TrainingChoice,
    TrainingConfig,
    plan_inference,
    plan_training,
    suggest,
)

LAYERS, EMBED, WIDTH, EXPERTS, CHOSEN = 4, 1024, 512, 16, 2
SPARSE = models.TransformerShape(
    "sparse", LAYERS, EMBED, WIDTH, 16, 16, 64, 32000, experts=EXPERTS, experts_per_token=CHOSEN
)
NODES = cluster.dgx("h100", nodes=2)  # 8 GPUs each; links of 450e9 bytes/s, network of 50e9
EXPERT = 3 * EMBED * WIDTH  # elements of one expert
DENSE = SPARSE.parameters.total - LAYERS * EXPERTS * EXPERT


def plan(shape=SPARSE, **values):
    config = TrainingConfig(**{"batch": 16, "sequence": 2048, **values})
    return plan_training(shape, NODES, config, efficiency=Efficiency.ideal())


def more_seconds_of_experts(**values):
    """Seconds that 2048 more tokens of each device add to the all-to-alls: those of their bytes alone."""
    few, many = (plan(sequence=sequence, **values).expected.parts["expert"] for sequence in (2048, 4096))
    return many - few


# Each layer sends the chosen tokens to their experts and back, forward and backward: 4 times.
SENT = LAYERS * 4 * 2048 * CHOSEN * EMBED * 2  # bytes of a device in bfloat16


def test_all_to_all_bytes_inside_a_node():
    assert more_seconds_of_experts(expert=8) == pytest.approx(SENT * 7 / 8 / 450e9)
    assert more_seconds_of_experts(expert=2) == pytest.approx(SENT / 2 / 450e9)


def test_tokens_are_sent_to_another_node_once():
    # Two experts of a token are in 2 (1 - 1/4) = 1.5 of two nodes: half of these are the other node.
    assert more_seconds_of_experts(expert=16) == pytest.approx(SENT / CHOSEN * 1.5 / 2 / 50e9)
    one = replace(SPARSE, experts_per_token=1)
    assert more_seconds_of_experts(shape=one, expert=16) == pytest.approx(SENT / CHOSEN / 2 / 50e9)


@pytest.mark.parametrize(
    ("groups", "chosen", "nodes"),
    [(2, 1, 1), (4, 1, 1), (16, 2, 2 * (1 - 0.5**1.5)), (4, 2, 2 * (1 - 0.5**1.5)), (4, 4, 1.5)],
)
def test_groups_limit_the_nodes_of_a_token(groups, chosen, nodes):
    # Two experts of a token in 2 groups have 1.5 of them on average; these are in 2 (1 - (1/2)^1.5) of two nodes.
    limited = replace(SPARSE, expert_groups=groups, groups_per_token=chosen)
    assert more_seconds_of_experts(shape=limited, expert=16) == pytest.approx(SENT / CHOSEN * nodes / 2 / 50e9)
    assert more_seconds_of_experts(shape=limited, expert=8) == pytest.approx(SENT * 7 / 8 / 450e9)


def test_groups_that_do_not_fit():
    for groups, chosen in ((3, 1), (4, 5), (4, 0), (0, 1), (16, 1)):
        with pytest.raises(ValueError, match=rf"routed to 2 experts in {chosen} of {groups} groups of 16 experts"):
            replace(SPARSE, expert_groups=groups, groups_per_token=chosen)


def test_copies_of_a_token_are_forwarded_inside_the_node():
    # All 16 experts of each token: 16 copies over links that are 9 times as fast as the network.
    all_of_them = replace(SPARSE, experts_per_token=16)
    assert more_seconds_of_experts(shape=all_of_them, expert=16) == pytest.approx(SENT / CHOSEN * 16 * 7 / 8 / 450e9)


def test_one_expert_group_sends_nothing():
    assert plan(expert=1).expected.parts["expert"] == 0


def test_tensor_ranks_share_the_tokens_that_are_sent():
    shared = {"tensor": 2, "sequence_parallel": True, "batch": 8}
    # Without tensor parallelism in the experts, each of two ranks routes half of the 2048 tokens.
    assert more_seconds_of_experts(expert=8, **shared) == pytest.approx(SENT / 2 * 7 / 8 / 450e9)
    # With it, two ranks hold halves of an expert; each of the 4 groups of experts is sent half of its tokens a rank.
    assert more_seconds_of_experts(expert=4, expert_tensor=2, **shared) == pytest.approx(SENT / 2 * 3 / 4 / 450e9)


def test_the_busiest_expert_group_sets_the_bytes():
    assert more_seconds_of_experts(expert=8, expert_imbalance=1.5) == pytest.approx(1.5 * SENT * 7 / 8 / 450e9)


def test_overlap_hides_the_all_to_alls():
    shown, hidden = plan(expert=8), plan(expert=8, overlap={"expert": 1})
    assert hidden.expected.hidden["expert"] == pytest.approx(shown.expected.parts["expert"])
    assert hidden.expected.parts["expert"] == 0
    half = plan(expert=8, overlap={"expert": 0.5})
    assert half.expected.parts["expert"] == pytest.approx(shown.expected.parts["expert"] / 2)


@pytest.mark.parametrize(("expert", "own"), [(1, 16), (2, 8), (8, 2), (16, 1)])
def test_a_device_holds_its_share_of_experts(expert, own):
    stage = plan(expert=expert).stages[0]
    assert stage.parameters_held == DENSE + LAYERS * own * EXPERT
    assert stage.parameters == 2 * stage.parameters_held


@pytest.mark.parametrize("zero", [0, 1, 2, 3])
def test_zero_shards_experts_over_the_devices_that_hold_the_same_ones(zero):
    stage = plan(expert=8, zero=zero).stages[0]
    own = LAYERS * 2 * EXPERT  # of 16 devices, 2 hold the same
    whole, sharded = DENSE + own, DENSE / 16 + own / 2
    assert stage.optimizer == 12 * (sharded if zero >= 1 else whole)
    assert stage.gradients == 4 * (sharded if zero >= 2 else whole)
    assert stage.parameters == 2 * (sharded if zero == 3 else whole)


def test_the_update_is_that_of_the_states_that_a_device_holds():
    # Gradient, optimizer state twice and parameter: 4 + 24 + 2 bytes, of 3.35e12 bytes/s.
    own = LAYERS * 2 * EXPERT
    assert plan(expert=8, zero=1).expected.parts["update"] == pytest.approx(30 * (DENSE / 16 + own / 2) / 3.35e12)
    inside = plan(expert=4, zero=1, zero_shards=2).expected.parts["update"]  # 4 devices hold the same, in shards of 2
    assert inside == pytest.approx(30 * (DENSE / 2 + LAYERS * 4 * EXPERT / 2) / 3.35e12)


def test_experts_can_be_sharded_by_tensor_parallelism():
    whole = plan(tensor=2, expert=4, batch=8).stages[0]
    halves = plan(tensor=2, expert=4, expert_tensor=2, batch=8).stages[0]
    assert whole.parameters_held - halves.parameters_held == LAYERS * 4 * EXPERT / 2


def test_activations_grow_with_the_tokens_of_the_busiest_group():
    # For each routed token: its copy, the result, and two inputs and the product of the gated activation.
    each = 2 * (2 * EMBED + 3 * WIDTH)
    balanced, busy = plan(expert=8), plan(expert=8, expert_imbalance=1.25)
    more = busy.stages[0].activations - balanced.stages[0].activations
    assert more == LAYERS * 0.25 * 2048 * CHOSEN * each


@pytest.mark.parametrize(
    ("values", "load"),
    [
        ({}, 1),
        ({"expert_imbalance": 1.5}, 1.5),
        ({"expert_imbalance": 1.5, "expert_capacity": 1.25}, 1.25),  # the rest is dropped
        ({"expert_imbalance": 1.5, "expert_capacity": 2}, 1.5),
        ({"expert_capacity": 1.25}, 1),
        ({"expert_capacity": 0.5}, 0.5),
        ({"expert_capacity": 1.25, "expert_padding": True}, 1.25),
        ({"expert_imbalance": 1.5, "expert_capacity": 2, "expert_padding": True}, 2),
    ],
)
def test_capacity_sets_the_tokens_of_experts(values, load):
    assert more_seconds_of_experts(expert=8, **values) == pytest.approx(load * SENT * 7 / 8 / 450e9)
    none, some = plan(expert=8), plan(expert=8, **values)
    each = 2 * (2 * EMBED + 3 * WIDTH)
    more = some.stages[0].activations - none.stages[0].activations
    assert more == LAYERS * (load - 1) * 2048 * CHOSEN * each
    # Enough tokens for each expert that its products are not limited by memory; 3 passes of 2 FLOPs.
    none, some = (plan(expert=8, sequence=32768, **each).expected.parts["products"] for each in ({}, values))
    assert some - none == pytest.approx(6 * 32768 * CHOSEN * (load - 1) * LAYERS * EXPERT / 989e12)
    assert plan(expert=8, **values).model_flops == plan(expert=8).model_flops


def test_padded_slots_are_sent_to_another_node_apart():
    padded = {"expert": 16, "expert_capacity": 1.0, "expert_padding": True}
    assert more_seconds_of_experts(expert=16, expert_capacity=1.0) == pytest.approx(SENT / CHOSEN * 1.5 / 2 / 50e9)
    # Half of all slots are those of the other node.
    assert more_seconds_of_experts(**padded) == pytest.approx(SENT / 2 / 50e9)


def test_capacity_is_shown_and_becomes_flags():
    found = plan(expert=8, expert_capacity=1.25, expert_padding=True, zero=3)
    assert "experts over 8, capacity 1.25 padded" in str(found)
    flags = TrainingChoice(found).to_megatron_flags()
    assert "--moe-expert-capacity-factor 1.25 \\\n--moe-pad-expert-input-to-capacity \\\n" in flags
    assert "capacity_factor=1.25\n" in TrainingChoice(found).to_maxtext_flags()
    dropless = TrainingChoice(plan(expert=8, zero=3))
    assert "capacity" not in dropless.to_megatron_flags() + dropless.to_maxtext_flags()


def test_products_of_experts_are_those_of_the_chosen_ones():
    three = replace(SPARSE, experts_per_token=3)
    more = plan(three).model_flops - plan().model_flops
    assert more == 6 * 16 * 2048 * LAYERS * EXPERT
    # Enough tokens for each expert that its products are not limited by memory.
    two, three = (plan(shape, sequence=32768).expected.parts["products"] for shape in (SPARSE, three))
    assert three - two == pytest.approx(6 * 32768 * LAYERS * EXPERT / 989e12)


def test_shared_experts_are_on_every_device():
    shape = replace(SPARSE, shared_experts=2, shared_mlp=256)
    ours, theirs = plan(shape, expert=8), plan(expert=8)
    shared = 3 * EMBED * 2 * 256
    assert ours.stages[0].parameters_held - theirs.stages[0].parameters_held == LAYERS * shared
    assert ours.model_flops - theirs.model_flops == 6 * 16 * 2048 * LAYERS * shared
    assert ours.stages[0].activations - theirs.stages[0].activations == LAYERS * 2048 * 2 * 3 * 2 * 256
    assert ours.expected.parts["expert"] == theirs.expected.parts["expert"]


def test_dense_layers_come_first():
    shape = replace(SPARSE, dense_layers=2, dense_mlp=2048)
    first, last = plan(shape, pipeline=2, expert=8).stages
    router = EMBED * EXPERTS
    table = 32000 * EMBED
    attention = 4 * EMBED * EMBED + 2 * EMBED  # with two norms
    assert first.parameters_held == table + 2 * (attention + 3 * EMBED * 2048)
    assert last.parameters_held == table + EMBED + 2 * (attention + router + 2 * EXPERT)
    assert plan(shape, expert=8).expected.parts["expert"] == pytest.approx(plan(expert=8).expected.parts["expert"] / 2)


def test_recomputed_layers_send_their_tokens_again():
    once, again = plan(expert=8), plan(expert=8, recompute="full")
    assert again.expected.parts["expert"] == pytest.approx(1.5 * once.expected.parts["expert"])
    half = plan(expert=8, recompute="full", recompute_layers=2)
    assert half.expected.parts["expert"] == pytest.approx(1.25 * once.expected.parts["expert"])


def test_gradients_of_experts_are_reduced_over_fewer_devices():
    def reduced(**values):
        return plan(overlap={"data": 0}, **values).expected.parts["data"]

    # All-reduce over the network between the two nodes: each node's copy of its part. Experts in both nodes are
    # reduced, those of expert=16 exist once.
    assert reduced(expert=16) < reduced(expert=8) < reduced(expert=1)


def test_decoding_reads_the_experts_that_have_a_token():
    served = {"batch": 1, "prompt": 128, "output": 1, "efficiency": Efficiency.ideal()}
    node = cluster.dgx("h100")
    two, four = (plan_inference(replace(SPARSE, experts_per_token=k), node, **served).roofline.decode for k in (2, 4))
    assert four - two == pytest.approx(LAYERS * 2 * EXPERT * 2 / 3.35e12, rel=0.01)  # and their activations


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"expert": 3}, "expert is 3, expected a divisor of the number of experts, 16"),
        ({"expert": 8, "tensor": 4, "expert_tensor": 2}, "expert_tensor is 2, expected 1 or tensor, 4"),
        ({"expert": 16, "tensor": 2, "expert_tensor": 2}, "expert x expert_tensor is 32, expected a divisor of"),
        ({"expert": 2, "shape": models.SHAPES["llama-2-7b"]}, "expert is 2 and the model has no experts, expected 1"),
        ({"expert_capacity": 2, "shape": models.SHAPES["llama-2-7b"]}, "expert_capacity is 2 and the model has no exp"),
        ({"expert_padding": True}, "expert_padding without expert_capacity, expected the tokens to pad to"),
    ],
)  # fmt: skip
def test_experts_that_do_not_fit(values, text):
    with pytest.raises(ValueError, match=text):
        plan(**{"batch": 32, **values})


def test_the_run_of_deepseek_v3():
    # arXiv:2412.19437, section 3.2: 2048 H800, 16 stages, experts over 64 devices, ZeRO-1; batch 15360 x 4096.
    pod = cluster.gpus("h800", nodes=256)
    assert pod.parts["bandwidth"] == (200e9, "S23")  # half of 400 GB/s in both directions
    shape = models.SHAPES["deepseek-v3"]
    assert (shape.parameters.total, shape.parameters.active) == (671_026_419_200, 37_552_297_472)
    config = TrainingConfig(batch=15360, sequence=4096, pipeline=16, expert=64, zero=1, dtype="float8")
    found = plan_training(shape, pod, config)
    assert (found.config.data, found.microbatches) == (128, 120)
    assert sum(stage.layers for stage in found.stages) == 61
    # 4 layers with 4 of 256 experts each, of 3 matrices of 7168 x 2048.
    experts = 4 * 4 * 3 * 7168 * 2048
    attention = 7168 * 1536 + 1536 * 128 * 192 + 7168 * 576 + 512 * 128 * 256 + 128 * 128 * 7168
    norms = 2 * 7168 + 1536 + 512
    always = attention + norms + 256 * (7168 + 1) + 3 * 7168 * 2048  # router with its bias, shared expert
    assert found.stages[8].parameters_held == experts + 4 * always
    assert found.stages[8].optimizer == 12 * (4 * always / 128 + experts / 2)


def test_the_search_for_deepseek_v3_ends():
    pod = cluster.gpus("h800", nodes=256)
    pinned = {"dtype": "float8", "overlap": {"expert": 1}, "device_counts": [2048], "progress": False}
    found = suggest("deepseek-v3", pod, batch=15360, sequence=4096, **pinned)
    assert found.space.combinations > 100_000
    assert found.best.plan.memory <= found.space.memory_limit
    assert found.best.config.expert > 1
