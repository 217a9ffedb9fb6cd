# SPDX-License-Identifier: Apache-2.0
"""All-reduces of gradients whose sums the switches between nodes compute (SHARP of InfiniBand)."""

import json
import pickle

import pytest
from artifex_devices import _planner, cluster, models
from artifex_devices.planner import Efficiency, TrainingConfig, fit, plan_training, suggest

IDEAL = Efficiency.ideal()
NETWORK, LINKS = 50e9, 450e9  # bytes/s of an H100, one way
SMALL = models.TransformerShape("small", 8, 1024, 4096, 16, 16, 64, 32000)
PODS = cluster.dgx("h100", nodes=4)


def seconds(size, machine, sharp, factors=IDEAL, op="all_reduce"):
    return _planner.training_collective_seconds(op, size, machine, machine.device_count, factors._described(), sharp)


def data(machine=PODS, factors=IDEAL, **values):
    config = TrainingConfig(**{"batch": 64, "sequence": 2048, "overlap": {"data": 0}, **values})
    plan = plan_training(SMALL, machine, config, efficiency=factors)
    return plan.expected.parts["data"], plan.stages[0].parameters_held


@pytest.mark.parametrize("nodes", [3, 4, 64])
def test_a_nic_sends_an_array_once_where_a_ring_sends_it_almost_twice(nodes):
    machine = cluster.gpus("h100", nodes=nodes, chips_per_node=1)
    rounds = (nodes - 1).bit_length()
    assert seconds(1e9, machine, True) == pytest.approx(31e-6 + 1e9 / NETWORK)
    ring = 2 * rounds * 9.6e-6 + 2 * 1e9 * (nodes - 1) / nodes / NETWORK
    assert seconds(1e9, machine, False) == pytest.approx(ring)


def test_sums_in_the_switches_follow_sums_inside_the_nodes():
    # Pipelined: the slower of 1e9 bytes scattered and gathered by 8 GPUs, and an eighth of them on each NIC.
    slow = cluster.gpus("h100", nodes=4, network_bandwidth=10e9)
    assert seconds(1e9, slow, True) == pytest.approx(31e-6 + 1e9 / 8 / 10e9, rel=0.01)
    assert seconds(1e9, PODS, True) == pytest.approx(31e-6 + 2 * 1e9 * 7 / 8 / LINKS, rel=0.02)


def test_what_is_faster_is_chosen_and_only_all_reduces_change():
    two = cluster.gpus("h100", nodes=2, chips_per_node=1)
    assert seconds(1e3, two, True) == seconds(1e3, two, False) < 31e-6
    machine = cluster.gpus("h100", nodes=4, chips_per_node=1)
    assert seconds(1e9, machine, True, IDEAL.replaced(sharp=0.1)) == seconds(1e9, machine, False)
    for op in ("all_gather", "reduce_scatter", "all_to_all"):
        assert seconds(1e9, machine, True, op=op) == seconds(1e9, machine, False, op=op)
    node = cluster.dgx("h100")
    assert seconds(1e9, node, True) == seconds(1e9, node, False)


def test_gradients_of_replicas_are_summed_in_the_switches():
    # Eight tensor ranks on each node: every GPU reduces its gradients of 4 bytes over 4 nodes, in a message a layer.
    found, held = data(tensor=8, sequence_parallel=True, sharp=True)
    assert found == pytest.approx(8 * 31e-6 + 4 * held / NETWORK)
    without, _ = data(tensor=8, sequence_parallel=True)
    assert without == pytest.approx(8 * 4 * 9.6e-6 + 2 * 4 * held * 3 / 4 / NETWORK)


def test_replicas_of_hybrid_shards_are_summed_in_the_switches():
    # Each node shards the states; each GPU then reduces an eighth of the gradients over 4 nodes.
    (found, held), (without, _) = (data(zero=1, zero_shards=8, sharp=sharp) for sharp in (True, False))
    part = 4 * held / 8
    assert without - found == pytest.approx(8 * (4 * 9.6e-6 - 31e-6) + part * (2 * 3 / 4 - 1) / NETWORK)


def test_zero_over_all_replicas_has_no_all_reduce():
    assert data(zero=1, sharp=True) == data(zero=1)
    assert data(zero=3, sharp=True) == data(zero=3)


def test_the_factor_is_published_and_can_be_replaced():
    published, default = Efficiency.published(PODS), Efficiency.of(PODS)
    assert published.sharp == 0.95
    assert "10.1007/978-3-030-50743-5_3" in published.sources["sharp"]
    # Whole training runs reach less of the network than the best messages, in switches as in rings.
    assert default.sharp == pytest.approx(0.95 * default.network / published.network)
    assert default.sources["sharp"] == default.sources["network"]
    assert (IDEAL.sharp, IDEAL.sources["sharp"]) == (1, "model")
    found, held = data(tensor=8, sharp=True, factors=IDEAL.replaced(sharp=0.9))
    assert found == pytest.approx(8 * 31e-6 + 4 * held / (0.9 * NETWORK))
    with pytest.raises(ValueError, match=r"sharp is 1\.5, expected a number above 0, at most 1"):
        IDEAL.replaced(sharp=1.5)


def test_the_fit_scales_rings_and_switches_between_nodes_alike():
    slow = cluster.dgx("h100", nodes=4, network_bandwidth=2e9)  # on which most of a step is gradients
    start = Efficiency.published(slow)
    truth = start.replaced(network=0.5 * start.network, sharp=0.5 * start.sharp)
    plans = []
    for sharp in (True, False):
        for batch in (32, 64):
            config = TrainingConfig(batch=batch, sequence=512, tensor=8, sharp=sharp, overlap={"data": 0})
            expected = plan_training(SMALL, slow, config, efficiency=truth).seconds
            plans.append(plan_training(SMALL, slow, config, measured=expected))
    found = fit(plans, efficiency=start)
    assert {"network", "sharp"} <= set(found.fitted)
    assert found.efficiency.sharp / start.sharp == pytest.approx(found.efficiency.network / start.network)
    assert found.efficiency.sharp == pytest.approx(truth.sharp, rel=0.1)


def test_texts_and_flags_name_it_where_it_is_chosen():
    config = TrainingConfig(batch=64, sequence=2048, tensor=8, sharp=True)
    chosen, usual = (plan_training(SMALL, PODS, each) for each in (config, config.replaced(sharp=False)))
    assert "sums in switches between nodes (SHARP)" in " ".join(str(chosen).split())
    assert "sharp 0.541" in " ".join(chosen.details().split())
    assert "sharp" not in usual.details().lower()
    assert json.loads(chosen.to_json())["config"]["sharp"] is True
    found = suggest(SMALL, PODS, batch=64, sequence=2048, zero=0, sharp=True, progress=False, tensor=8)
    assert {choice.config.sharp for choice in found.options} == {True}
    assert "--use-sharp" in found.best.to_megatron_flags()


def test_slices_of_tpus_have_no_such_switches():
    pod = cluster.tpu("v5e", (4, 4), slices=2)
    config = TrainingConfig(batch=64, sequence=2048, sharp=True)
    text = "sharp is true and 2 x TPU v5e 4x4 is a torus, expected nodes of GPUs"
    with pytest.raises(ValueError, match=f"plan_training: {text}"):
        plan_training(SMALL, pod, config)
    with pytest.raises(ValueError, match="suggest: sharp is true"):
        suggest(SMALL, pod, batch=64, sequence=2048, sharp=True, progress=False)


def test_values_come_back_from_pickles_with_and_without_it():
    config = TrainingConfig(batch=64, sequence=2048, sharp=True)
    assert pickle.loads(pickle.dumps(config)) == config
    older = {name: value for name, value in config.__getstate__().items() if name != "sharp"}
    again = object.__new__(TrainingConfig)
    again.__setstate__(older)
    assert again == config.replaced(sharp=False)
    state = IDEAL.__getstate__()
    del state["sharp"], state["sources"]["sharp"]
    efficiency = object.__new__(Efficiency)
    efficiency.__setstate__(state)
    assert efficiency == IDEAL
