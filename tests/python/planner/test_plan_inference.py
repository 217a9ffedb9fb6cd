# SPDX-License-Identifier: Apache-2.0
"""plan_inference: memory, times of prefill and decoding, texts."""

import json
import pickle
from dataclasses import replace

import pytest
from artifex_devices import cluster, models
from artifex_devices.planner import Efficiency, plan_inference

NODE = cluster.dgx("h100")
ONE = cluster.gpus("h100", chips_per_node=1)
LLAMA = models.SHAPES["llama-3-8b"]


def plan(shape=LLAMA, machine=ONE, **changed):
    return plan_inference(shape, machine, **{"batch": 1, "prompt": 128, "output": 256, **changed})


def test_memory_is_parameters_and_cache():
    found = plan("llama-3-70b", NODE, batch=32, prompt=1024, output=512, tensor=8)
    assert found.cache == 32 * 1536 * 80 * 2 * 128 * 2
    assert found.roofline.step > found.parameters / 3.35e12
    assert found.largest_batch >= 32


@pytest.mark.parametrize("name", ["batch", "prompt", "output", "tensor", "pipeline", "expert"])
def test_nothing_is_refused(name):
    with pytest.raises(ValueError, match=f"plan_inference: {name} is 0; expected"):
        plan(**{name: 0})


def test_quantized_weights_halve_the_streamed_bytes():
    ideal = Efficiency.ideal()
    layers = LLAMA.layers * (4096 * 128 * (32 + 2 * 8 + 32) + 3 * 4096 * 14336)
    halved = replace(LLAMA, quantized_bytes=1, quantized_kinds=("attention", "mlp"))
    plain, small = (plan(shape, efficiency=ideal).roofline.parts["products"] for shape in (LLAMA, halved))
    assert plain - small == pytest.approx(layers / 3.35e12, rel=1e-9)
    every = plan(parameter_dtype="float8_e4m3fn", efficiency=ideal)
    assert plain - every.roofline.parts["products"] == pytest.approx((layers + 4096 * 128256) / 3.35e12, rel=1e-9)
    assert every.parameters == LLAMA.parameters.total
    # The arguments come before the checkpoint, and kinds of tensors before all parameters.
    assert plan(halved, parameter_dtype="bfloat16").parameters == 2 * LLAMA.parameters.total
    mixed = plan(parameter_dtype="bfloat16", parameter_dtypes={"attention": "int8", "mlp": "int8"}, efficiency=ideal)
    assert mixed.roofline.parts["products"] == small


def test_the_cache_has_its_own_dtype():
    half, quarter = (plan(cache_dtype=dtype, efficiency=Efficiency.ideal()) for dtype in ("bfloat16", "int8"))
    assert half.cache == 2 * quarter.cache
    assert half.roofline.parts["attention"] == 2 * quarter.roofline.parts["attention"]


def test_parts_sum_to_the_step():
    for found in (plan(), plan("mixtral-8x7b", NODE, batch=32, tensor=4, pipeline=2)):
        for seconds in (found.expected, found.roofline):
            assert sum(seconds.parts.values()) == pytest.approx(seconds.step, rel=1e-12)
            assert seconds.step <= seconds.decode <= seconds.request
    factors = Efficiency.of(ONE)
    assert plan().expected.parts["fixed"] == 32 * factors.decode_layer_seconds
    each = factors.decode_layer_seconds + factors.decode_expert_seconds
    assert plan("mixtral-8x7b", parameter_dtype="int4").expected.parts["fixed"] == pytest.approx(32 * each)


def test_training_factors_do_not_price_decoding():
    factors = Efficiency.of(ONE)
    slow = plan(efficiency=factors.replaced(memory=0.1, tile_rows=256, tile_columns=256)).expected
    assert slow.step == plan().expected.step
    half = plan(efficiency=factors.replaced(stream=factors.stream / 2)).expected
    assert half.parts["products"] == pytest.approx(2 * plan().expected.parts["products"])


def test_expected_times_come_first_with_their_error():
    lines = str(plan()).splitlines()
    assert lines[1].split() == ["expected", "bound"]
    assert lines[2].startswith("  one token of a request ")
    error = next(line for line in lines if line.split()[0] == "error")
    assert "published decode runs of dense models on H100 that were not used to fit the factors" in error
    document = json.loads(plan().to_json())
    assert document["error"]["chip"] == "H100"
    assert list(document["seconds"]) == ["expected", "roofline"]


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        (plan(machine=cluster.gpus("b200", chips_per_node=1)), "dense models"),
        (plan(machine=cluster.tpu("v5e", (2, 2)), tensor=4), "dense models"),
        (plan(efficiency=Efficiency.of(ONE).replaced(stream=0.5)), "dense models"),
        (plan("mixtral-8x7b", cluster.gpus("b200", chips_per_node=1)), "models with experts"),
    ],
)
def test_an_error_that_is_not_known(found, kind):
    assert f"not known: no published decode run of {kind} on this chip was compared with these factors" in str(found)
    assert json.loads(found.to_json())["error"] is None


def test_plans_can_be_pickled():
    found = plan()
    again = pickle.loads(pickle.dumps(found))
    assert again.expected == found.expected
    with pytest.raises(TypeError):
        again.expected.parts["fixed"] = 0
