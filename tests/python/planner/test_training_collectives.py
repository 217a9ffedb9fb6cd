# SPDX-License-Identifier: Apache-2.0
"""Seconds of collectives as plan_training prices them: message sizes, and sums that switches compute."""

import pytest
from artifex_devices import _planner, cluster
from artifex_devices.planner import Efficiency, TrainingConfig, fit, plan_training

IDEAL = Efficiency.ideal()


def seconds(op, size, machine, devices, factors=IDEAL):
    return _planner.training_collective_seconds(op, size, machine, devices, factors._described())


def test_a_message_of_half_bytes_reaches_half_of_the_rate():
    node = cluster.dgx("a100")  # 300e9 bytes/s one way
    sent = 1e6 * 7 / 8 / 300e9
    whole, half = (seconds("all_gather", 1e6, node, 8, IDEAL.replaced(links_half_bytes=size)) for size in (0, 1e6))
    assert half - whole == pytest.approx(sent)
    # n / (n + half sqrt(2 n / (n + half))) for n = 8 half.
    eight = seconds("all_gather", 8e6, node, 8, IDEAL.replaced(links_half_bytes=1e6))
    assert eight - seconds("all_gather", 8e6, node, 8) == pytest.approx(sent * (16 / 9) ** 0.5)


def test_larger_messages_take_longer():
    factors = Efficiency.published(cluster.dgx("a100"))
    times = [seconds("all_reduce", 2.0**power, cluster.dgx("a100"), 8, factors) for power in range(10, 34)]
    assert times == sorted(times)


@pytest.mark.parametrize("gpu", ["h100", "h200", "h800", "b200"])
def test_switches_of_nvlink_4_and_5_add(gpu):
    # Each GPU sends its array and the sum of its eighth; 23 us as in NCCL's model.
    node = cluster.gpus(gpu)
    link = node.parts["bandwidth"][0]
    assert seconds("all_reduce", 1e9, node, 8) == pytest.approx(23e-6 + 1e9 * 9 / 8 / link)
    assert seconds("all_reduce", 1e9, node, 4) == pytest.approx(23e-6 + 1e9 * 5 / 4 / link)
    slow = IDEAL.replaced(nvls=0.8)
    assert seconds("all_reduce", 1e9, node, 8, slow) == pytest.approx(23e-6 + 1e9 * 9 / 8 / (0.8 * link))


def test_where_switches_do_not_add_all_reduces_are_rings():
    def ring(devices, link):
        return pytest.approx(2e9 * (devices - 1) / devices / link, rel=0.03)  # and its latency

    assert seconds("all_reduce", 1e9, cluster.dgx("a100"), 8) == ring(8, 300e9)
    assert seconds("all_reduce", 1e9, cluster.dgx("h100"), 2) == ring(2, 450e9)
    assert seconds("all_gather", 1e9, cluster.dgx("h100"), 8) == pytest.approx(1e9 * 7 / 8 / 450e9, rel=0.03)
    two_nodes = seconds("all_reduce", 1e9, cluster.dgx("h100", nodes=2), 16)
    assert two_nodes > 2e9 * 7 / 8 / 450e9
    # Where the switch is the slower way, the ring is chosen.
    assert seconds("all_reduce", 1e9, cluster.dgx("h100"), 8, IDEAL.replaced(nvls=0.1)) == ring(8, 450e9)


def test_the_fit_scales_rings_and_switches_alike():
    node = cluster.dgx("h100")
    start = Efficiency.published(node)
    truth = start.replaced(links=0.5 * start.links, nvls=0.5 * start.nvls)
    plans = []
    for tensor in (1, 2, 4, 8):
        for sequence in (512, 4096):
            config = TrainingConfig(batch=64, sequence=sequence, tensor=tensor)
            expected = plan_training("llama-2-7b", node, config, efficiency=truth).seconds
            plans.append(plan_training("llama-2-7b", node, config, measured=expected))
    found = fit(plans, efficiency=start)
    assert found.efficiency.nvls / start.nvls == pytest.approx(found.efficiency.links / start.links)
    assert found.efficiency.nvls == pytest.approx(truth.nvls, rel=0.1)
    assert "nvls" in found.fitted


def test_the_default_factors_scale_rings_and_switches_alike():
    node = cluster.dgx("h100")
    published, default = Efficiency.published(node), Efficiency.of(node)
    assert default.nvls / published.nvls == pytest.approx(default.links / published.links)
    assert default.sources["nvls"] == default.sources["links"]
