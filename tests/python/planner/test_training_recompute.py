# SPDX-License-Identifier: Apache-2.0
"""Recomputation of some layers, and of units of layers, beside bytes that are counted here."""

from dataclasses import replace

import pytest
from artifex_devices import cluster, models
from artifex_devices.planner import TrainingChoice, TrainingConfig, plan_training, suggest
from artifex_devices.planner.training.nearest import changes, nearest_fits

SMALL = models.TransformerShape("small", 8, 1024, 4096, 16, 16, 64, 32000)
DEEP = replace(SMALL, layers=16)
NODE = cluster.dgx("h100")
INPUT = 2048 * 1024 * 2  # bytes of a layer's input in bfloat16


def plan(shape=SMALL, **values):
    config = TrainingConfig(**{"batch": 16, "sequence": 2048, "recompute": "full", **values})
    return plan_training(shape, NODE, config)


@pytest.mark.parametrize(
    ("unit", "stored", "at_once"), [(None, 8, 1), (1, 8, 1), (2, 4, 2), (3, 3, 3), (8, 1, 8), (9, 1, 8)]
)
def test_units_keep_their_first_input_and_compute_all_of_their_layers_again(unit, stored, at_once):
    first = {"shape": DEEP, "pipeline": 2}  # a stage without the output, with 2 microbatches in flight
    layers, units = (
        plan(**first, **each).stages[0] for each in ({}, {"recompute_method": "uniform", "recompute_layers": unit})
    )
    assert layers.activations - units.activations == 2 * (8 - stored) * INPUT
    complete = layers.working + INPUT
    assert units.working == at_once * complete - INPUT


def test_layers_are_computed_again_in_the_place_of_the_output():
    first, last = plan(DEEP, pipeline=2, loss="fused").stages
    output = 2 * INPUT + 2048 * 32000 * 2  # inputs of the last norm and of the output's product, and the loss
    assert last.activations - first.activations == output - 8 * INPUT  # one microbatch in flight instead of two
    assert (first.working < output, last.working) == (True, 0)
    large = {"loss": "fused", "microbatch": 2, "recompute_method": "uniform", "recompute_layers": 8}
    first, last = plan(DEEP, pipeline=2, **large).stages
    assert last.working == first.working - 2 * output > 0


def test_units_cost_as_much_as_all_layers():
    layers, units = plan(), plan(recompute_method="uniform", recompute_layers=4)
    assert units.seconds == layers.seconds
    assert units.executed_flops == layers.executed_flops == pytest.approx(layers.model_flops * 4 / 3)


def test_units_are_inside_a_chunk():
    chunks = {"pipeline": 2, "schedule": "interleaved", "chunks": 2}  # of 2 layers; 5 are in flight on the first stage
    layers, units = (
        plan(**chunks, **each).stages[0] for each in ({}, {"recompute_method": "uniform", "recompute_layers": 4})
    )
    assert layers.activations == 5 / 2 * 4 * INPUT
    assert units.activations == 5 / 2 * 2 * INPUT
    assert units.working == 2 * (layers.working + INPUT) - INPUT


@pytest.mark.parametrize(("number", "again"), [(0, 0), (2, 2), (8, 8), (100, 8)])
def test_a_block_computes_some_layers_again(number, again):
    none, some, every = plan(recompute="none"), plan(recompute_layers=number), plan()
    share = again / 8
    assert some.expected.parts["recompute"] == pytest.approx(share * every.expected.parts["recompute"])
    kept = none.stages[0].activations - every.stages[0].activations
    assert some.stages[0].activations == none.stages[0].activations - share * kept


def test_flags_of_megatron_count_the_layers_of_a_chunk():
    def flags(**values):
        text = TrainingChoice(plan(**values)).to_megatron_flags()
        return [line.removesuffix(" \\") for line in text.splitlines() if "recompute" in line]

    full = "--recompute-granularity full"
    assert flags() == [full, "--recompute-method block", "--recompute-num-layers 8"]
    assert flags(recompute_layers=3) == [full, "--recompute-method block", "--recompute-num-layers 3"]
    chunks = {"pipeline": 2, "schedule": "interleaved", "chunks": 2}
    assert flags(**chunks) == [full, "--recompute-method block", "--recompute-num-layers 2"]
    assert flags(recompute_layers=3, **chunks) == [full, "--recompute-method block", "--recompute-num-layers 2"]
    assert flags(recompute_method="uniform") == [full, "--recompute-method uniform", "--recompute-num-layers 1"]
    assert flags(recompute_method="uniform", recompute_layers=4)[2] == "--recompute-num-layers 4"


def test_texts_say_what_is_computed_again():
    assert ", recomputes full, 3 layers\n" in str(plan(recompute_layers=3))
    assert ", recomputes full, units of 4\n" in str(plan(recompute_method="uniform", recompute_layers=4))
    assert ", recomputes full\n" in str(plan())


def test_a_unit_has_a_layer():
    with pytest.raises(ValueError, match="recompute_layers is 0, expected units of 1 layer or more"):
        plan(recompute_method="uniform", recompute_layers=0)


def searched(**values):
    pinned = {"tensor": 1, "context": 1, "pipeline": 1, "chunks": 1, "zero": 0, "microbatch": 1, "recompute": "full"}
    pinned["loss"] = "fused"
    found = suggest(
        SMALL, NODE, batch=16, sequence=2048, top=50, device_counts=[8], progress=False, **{**pinned, **values}
    )
    return [config.recompute_layers for each in found.options for config in (each.config, *each.same)]


def test_layers_are_searched():
    assert sorted(searched(), key=str) == [2, 4, 6, None]
    assert searched(recompute_layers=3) == [3]
    assert searched(recompute_layers=[1, 5, 8, 100, None]) == [1, 5, None]  # fastest first; all that 8 layers have
    assert sorted(searched(recompute_method="uniform")) == [1, 2, 4]
    assert searched(recompute_method="uniform", recompute_layers=[None, 8]) == [1, 8]  # as fast; less memory first
    # Of 4 layers a quarter is 1.
    assert sorted(searched(pipeline=2), key=str) == [1, 2, 3, None]


def test_the_search_prices_what_it_returns():
    for choice in suggest(SMALL, NODE, batch=16, sequence=2048, recompute="full", progress=False).options:
        assert plan_training(SMALL, NODE, choice.config).seconds == choice.plan.seconds


def test_units_are_a_way_to_fit():
    config = TrainingConfig(batch=8, sequence=65536, zero=3, recompute="full", offload_optimizer=True)
    found = plan_training("llama-2-70b", NODE, config)
    assert not found.fits
    units = found.config.replaced(recompute_method="uniform", recompute_layers=2)
    inputs = 80 * 65536 * 8192 * 2
    saved = found.stages[0].activations - plan_training("llama-2-70b", NODE, units).stages[0].activations
    assert saved == inputs / 2
    assert all(
        "recompute_method" not in changes(config, each.config) or each.fits for each in nearest_fits(found).plans
    )
