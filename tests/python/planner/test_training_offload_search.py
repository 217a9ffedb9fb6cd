# SPDX-License-Identifier: Apache-2.0
"""suggest: offloading, context methods and optimizers as choices."""

import itertools
import json

import pytest
from artifex_devices import cluster, models
from artifex_devices.planner import TrainingConfig, plan_training, suggest
from artifex_devices.planner.training import space

SMALL = models.TransformerShape("small", 8, 1024, 4096, 16, 16, 64, 32000)
NODE = cluster.dgx("h100")
PINNED = {"pipeline": 1, "chunks": 1, "tensor": 1, "zero_shards": None, "microbatch": 1, "device_counts": [8]}


def search(shape=SMALL, batch=16, sequence=4096, **values):
    return suggest(shape, NODE, batch=batch, sequence=sequence, progress=False, **{**PINNED, **values})


def test_each_option_is_the_plan_of_its_configuration():
    found = search(context=[1, 2, 4], zero=[0, 1], top=100)
    kinds = {choice.config.context_method for choice in found.options if choice.config.context > 1}
    assert kinds == {"ring", "all_to_all", "all_gather"}
    for choice in found.options:
        config = choice.config
        assert config.overlap["context"] == (1 if config.context_method == "ring" else 0)
        assert plan_training(SMALL, NODE, config).seconds == choice.plan.seconds
    # 1 + 2 x 3 kinds of contexts, 2 of ZeRO, none and four parts of layers recomputed; all fit without offloading.
    assert found.space.priced == (1 + 2 * 3) * 2 * 5
    assert found.space.skipped == 3 * found.space.priced


def test_the_best_is_that_of_all_plans():
    base = TrainingConfig(batch=16, sequence=4096, data=None)
    plans = [
        plan_training(
            SMALL, NODE, base.replaced(context=context, context_method=method, zero=zero, recompute=recompute)
        )
        for context, method, zero, recompute in itertools.product(
            (1, 2, 4), ("ring", "all_to_all", "all_gather"), range(4), ("none", "full")
        )
    ]
    found = search(context=[1, 2, 4])
    assert found.best.plan.seconds == pytest.approx(min(plan.seconds for plan in plans))


def test_what_does_not_fit_is_offloaded(monkeypatch):
    values = {"zero": 0, "context": 1, "recompute": "none", "loss": "fused"}
    plain, states, both = (
        plan_training(SMALL, NODE, TrainingConfig(batch=16, sequence=4096, loss="fused", **offloads))
        for offloads in ({}, {"offload_optimizer": True}, {"offload_optimizer": True, "offload_activations": True})
    )

    def offloaded(available):
        monkeypatch.setattr(space, "_memory", lambda _: float(available))
        found = search(top=10, **values)
        return [(each.config.offload_optimizer, each.config.offload_activations) for each in found.options]

    assert offloaded(plain.needed) == [(False, False)]
    activations_alone = plain.memory - plain.stages[0].activations + both.stages[0].activations
    assert both.memory < states.memory < activations_alone < plain.memory
    assert offloaded(states.needed) == [(True, False)]
    assert offloaded(both.needed) == [(True, True)]
    assert offloaded(both.needed - 1) == []


def test_offloading_can_be_pinned_and_is_named():
    found = search(offload_activations=True, zero=0, context=1, recompute="none")
    assert [each.config.offload_activations for each in found.options] == [True]
    assert found.space.choices["offload_activations"] == (True,)
    assert "offload activations" in str(found)
    assert "activations in host memory" in str(found.best.plan)
    document = json.loads(found.to_json())
    assert document["space"]["choices"]["offload_activations"] == [True]
    assert document["space"]["choices"]["offload_optimizer"] == [False, True]


def test_a_ways_out_of_pinned_offloading_is_offloading():
    pinned = {"offload_optimizer": False, "offload_activations": False, "zero": 0}
    found = search("llama-2-7b", batch=8, sequence=1024, context=1, **pinned)
    assert found.options == ()
    assert found.ways_out[0] == {"offload_optimizer": True}
    assert search("llama-2-7b", batch=8, sequence=1024, context=1, zero=0).best.config.offload_optimizer


def test_optimizers_are_searched_where_a_list_is_given():
    found = search(optimizer=["adam", "muon", "adamw-fp32-master"], zero=0, context=1, recompute="none")
    assert {each.config.optimizer for each in found.options} == {"adam", "muon", "adamw-fp32-master"}
    assert found.options[0].config.optimizer in ("adam", "muon")  # 8 bytes a parameter instead of 12
    alone = search(optimizer="sgd", zero=0, context=1, recompute="none")
    assert [each.config.optimizer for each in alone.options] == ["sgd"]
    assert {each.config.optimizer for each in search().options} == {"adamw-fp32-master"}
    with pytest.raises(ValueError, match="TrainingConfig: optimizer is 'adamx'"):
        search(optimizer=["adam", "adamx"])


def test_a_given_overlap_holds_for_each_method_and_schedule():
    given = {"context": 0.5, "pipeline": 0.25}
    found = search(context=2, pipeline=2, chunks=[1, 2], context_method=["ring", "all_gather"], overlap=given, top=100)
    assert {each.config.schedule for each in found.options} == {"1f1b", "interleaved"}
    for choice in found.options:
        assert choice.config.overlap == TrainingConfig(batch=1, sequence=1).overlap | given
        assert plan_training(SMALL, NODE, choice.config).seconds == choice.plan.seconds
    assert [each.plan.seconds for each in found.options] == sorted(each.plan.seconds for each in found.options)


def test_without_a_known_link_to_the_host_nothing_is_offloaded(tmp_path):
    file = tmp_path / "lab.toml"
    file.write_text(
        'name = "lab"\n[chip]\nname = "own"\nplatform = "gpu"\nmemory_bytes = 8e10\nmemory_bandwidth = 1e12\n'
        "[chip.peak_flops]\nbfloat16 = 1e14\n[slice]\nchips = 8\nbandwidth = 1e11\nlatency = 1e-6\n"
    )
    lab = cluster.from_toml(file)
    assert lab.parts["host_bandwidth"] is None
    values = {"batch": 16, "sequence": 4096, "progress": False, **PINNED, "context": 1, "zero": 0}
    found = suggest(SMALL, lab, **values)
    assert found.space.choices["offload_optimizer"] == found.space.choices["offload_activations"] == (False,)
    with pytest.raises(RuntimeError, match="suggest: the bandwidth between host and chip of lab is not known"):
        suggest(SMALL, lab, offload_optimizer=[False, True], **values)
