# SPDX-License-Identifier: Apache-2.0
"""Bytes of the loss, of gathered and reduced units and of the runtime, counted by hand, and published reports."""

import itertools
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from artifex_devices import cluster, models
from artifex_devices.planner import TrainingConfig, plan_training

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "bench"))
from planner_memory import errors_of, memory_cases

SMALL = models.TransformerShape("small", 8, 1024, 4096, 16, 16, 64, 32000)
NODE = cluster.dgx("h100")
GIB = 2**30
TOKENS = 2048
INPUT = 2 * TOKENS * 1024  # bytes of a layer's input in bfloat16
LOGITS = TOKENS * 32000
LAYER = 4 * 1024**2 + 3 * 1024 * 4096 + 2 * 1024  # parameters
TABLE = 32000 * 1024
COMPLETE = 8 * INPUT + 4 * 16 * TOKENS + 3 * 2 * 4096 * TOKENS  # bytes of a layer's activations


def plan(shape=SMALL, machine=NODE, **values):
    return plan_training(shape, machine, TrainingConfig(**{"batch": 8, "sequence": TOKENS, **values}))


@pytest.mark.parametrize(
    ("values", "each"),
    [
        ({}, 14),  # logits 2, log-softmax 4, its gradient 4, gradient of the float32 logits 4
        ({"loss": "plain", "activation_dtype": "float32"}, 16),
        ({"loss": "chunked"}, 14 / 8),
        ({"loss": "chunked", "loss_chunks": 4}, 14 / 4),
        ({"loss": "fused"}, 2),
        ({"loss": "fused", "activation_dtype": "float32"}, 4),
        ({"tensor": 4}, 14 / 4),  # the vocabulary is sharded
        ({"context": 2}, 14 / 2),
        ({"microbatch": 2, "batch": 16}, 14 * 2),
    ],
)
def test_the_loss_holds_its_bytes_for_each_logit(values, each):
    larger = replace(SMALL, vocab=SMALL.vocab + 4096)
    more = plan(larger, **values).stages[0].activations - plan(**values).stages[0].activations
    assert more == each * TOKENS * 4096


def test_activations_are_those_of_the_layers_and_the_output():
    assert plan().stages[0].activations == 8 * COMPLETE + 2 * INPUT + 14 * LOGITS
    assert plan(recompute="full").stages[0].activations == 8 * INPUT + 2 * INPUT + 14 * LOGITS


def test_the_output_stays_on_the_device_where_activations_are_offloaded():
    found = plan(offload_activations=True).stages[0]
    assert found.activations == 2 * COMPLETE + 2 * INPUT + 14 * LOGITS  # one layer computes, one moves
    assert found.host == 6 * COMPLETE


def test_pytorch_stores_half_of_the_products_of_a_layer():
    """Its input, queries and values (half of 4 results of 1024), the result of attention, gate and down."""
    stored = INPUT + 2 * INPUT + (INPUT + 4 * 16 * TOKENS) + 2 * 4096 * TOKENS + INPUT
    found = plan(framework="torch", recompute="selective")
    assert found.stages[0].activations == 8 * stored + 2 * INPUT + 14 * LOGITS
    # Keys and the output of attention, and up.
    again = 2 * 8 * (4 * 1024**2 // 2 + 1024 * 4096) * 8 * TOKENS
    assert found.executed_flops - found.model_flops == pytest.approx(again, rel=1e-9)
    assert found.expected.parts["recompute"] > 0
    other = plan(framework="megatron", recompute="selective")
    assert other.stages[0].activations == plan().stages[0].activations  # FlashAttention stores no scores
    assert other.expected.parts["recompute"] == 0


OUTPUT = 2 * INPUT + 2 * LOGITS  # with the fused loss
FSDP = {"zero": 3, "framework": "torch", "loss": "fused"}


@pytest.mark.parametrize(
    ("values", "working"),
    [
        # The output is gathered and the last layer with it, in bfloat16; then the output's gradients are reduced: 2
        # bytes and a copy of 4 for each of its parameters, where its activations were.
        (FSDP, 2 * (TABLE + 1024) + 2 * LAYER + 6 * (TABLE + 1024) - OUTPUT),
        # With gradients in bfloat16 that is less than the activations that were there.
        ({**FSDP, "gradient_dtype": "bfloat16"}, 2 * (TABLE + 1024) + 2 * LAYER),
        ({**FSDP, "loss": "plain"}, 2 * (TABLE + 1024) + 2 * LAYER),  # the plain loss is freed before
        ({**FSDP, "zero": 2}, 6 * (TABLE + 1024) - OUTPUT),  # nothing is gathered
        ({**FSDP, "zero": 1}, 0),
        ({**FSDP, "framework": "maxtext"}, 2 * 2 * LAYER),  # XLA reduces without copies
    ],
)
def test_units_are_gathered_and_reduced_apart(values, working):
    assert plan(**values).stages[0].working == working


def test_layers_are_gathered_two_at_a_time_and_reduced_while_they_are_computed_again():
    first = plan(batch=64, pipeline=2, zero=2, recompute="full").stages[0]
    assert first.working == COMPLETE - INPUT + 6 * LAYER
    thin = replace(SMALL, vocab=64)  # the output is smaller than a layer
    found = plan(thin, recompute="full", **FSDP).stages[0]
    output = 2 * INPUT + 2 * TOKENS * 64
    assert found.working == 2 * 2 * LAYER + 6 * LAYER + COMPLETE - INPUT - output


def test_a_tied_table_is_gathered_for_the_output_too():
    tied = replace(SMALL, tied_embeddings=True)
    assert plan(tied, **FSDP).stages[0].working == plan(**FSDP).stages[0].working


@pytest.mark.parametrize(
    ("framework", "holds"), [("torch", True), (None, True), ("maxtext", False), ("megatron", False)]
)
def test_stages_of_pytorch_stay_gathered_and_keep_full_gradients(framework, holds):
    found = plan(batch=64, pipeline=2, zero=3, framework=framework)
    stage = found.stages[0]
    size = 2 if framework == "megatron" else 4
    assert stage.gradients == (size if holds else size / 4) * stage.parameters_held
    assert (stage.working >= 2 * stage.parameters_held) == holds
    once = plan(batch=4, pipeline=2, zero=3, framework=framework).stages[0]  # one microbatch
    assert once.gradients == size / 4 * once.parameters_held


def test_the_allocator_takes_8_percent_more_and_the_runtime_its_share():
    found = plan()
    assert found.reserved == round(1.08 * found.memory)
    assert found.runtime == round(3e8 + GIB)
    assert found.needed == found.reserved + found.runtime
    assert plan(machine=cluster.gpus("h100", chips_per_node=1), batch=1).runtime == 3e8
    assert plan(tensor=2, pipeline=2).runtime == round(3e8 + GIB + 2 * 0.65 * GIB)
    xla = plan(framework="maxtext")
    assert (xla.reserved, xla.runtime) == (xla.memory, found.runtime)
    tpu = plan(machine=cluster.tpu("v6e", (2, 4)))
    assert (tpu.reserved, tpu.runtime) == (tpu.memory, round(tpu.available * (1 - 31.246 / 32)))


def test_a_plan_fits_if_the_device_has_the_needed_bytes_and_is_close_within_a_tenth():
    verdicts = set()
    for microbatch in range(1, 65):
        found = plan("llama-2-7b", batch=8 * microbatch, microbatch=microbatch, zero=3, recompute="full")
        assert found.fits == (found.needed <= found.available)
        assert found.close == (abs(found.needed - found.available) <= 0.1 * found.available)
        verdicts.add((found.fits, found.close))
        document = json.loads(found.to_json())["memory"]
        assert (document["fits"], document["close"], document["needed"]) == (found.fits, found.close, found.needed)
        assert ("close (within 10 %" in str(found)) == found.close
    assert verdicts == {(True, False), (True, True), (False, True), (False, False)}


def test_a_framework_sets_what_is_not_given():
    def values(config):
        return (config.optimizer, config.loss, str(config.parameter_dtype), str(config.gradient_dtype))

    config = TrainingConfig(batch=8, sequence=128)
    assert values(config) == ("adamw-fp32-master", "plain", "bfloat16", "float32")
    torch = TrainingConfig(batch=8, sequence=128, framework="torch")
    assert values(torch) == values(config.replaced(framework="torch")) == ("adam", "plain", "float32", "float32")
    megatron = torch.replaced(framework="megatron")
    assert values(megatron) == ("adamw-fp32-master", "plain", "bfloat16", "bfloat16")
    assert values(megatron.replaced(framework=None)) == values(config)
    own = TrainingConfig(batch=8, sequence=128, framework="torch", optimizer="sgd", loss="fused")
    assert values(own.replaced(framework="megatron")) == ("sgd", "fused", "bfloat16", "bfloat16")
    states = plan(framework="torch").stages[0]
    assert (states.parameters, states.gradients, states.optimizer) == tuple(
        each * states.parameters_held for each in (4, 4, 8)
    )


def test_no_published_run_that_ran_out_of_memory_fits():
    for cases in (memory_cases(), memory_cases(framework=None)):
        assert [case.row["name"] for case in cases if case.fits and not case.row["fits"]] == []


def test_reserved_memory_is_within_15_percent_in_the_median():
    errors = sorted(errors_of(memory_cases(), "held out"))
    assert len(errors) == 11
    assert errors[5] <= 0.15


def test_a_plan_without_a_framework_needs_no_less_than_with_one():
    for unnamed, framework in itertools.product([memory_cases(framework=None)], ("torch", "maxtext", "megatron")):
        for case, other in zip(unnamed, memory_cases(framework=framework), strict=True):
            assert case.plan.needed >= other.plan.needed
