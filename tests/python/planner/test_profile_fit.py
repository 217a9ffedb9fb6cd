# SPDX-License-Identifier: Apache-2.0
"""Fits of the factors of plan_training to the parts of a profiled step."""

import json
import pickle

import pytest
from artifex_devices import cluster, planner
from artifex_devices.planner import Efficiency, TrainingConfig, fit_profile, plan_training, read_profile

NODE = cluster.dgx("h100")
POD = cluster.dgx("h100", nodes=4)
START = Efficiency.published(NODE)
TRUTH = START.replaced(
    matmul=0.5,
    attention_forward=0.4,
    attention_backward=0.3,
    memory=0.7,
    links=0.6,
    nvls=0.6 / START.links * START.nvls,
)  # the fit scales rings and sums in switches alike
KERNELS = {
    "products": "sm90_xmma_gemm_bf16",
    "attention_forward": "flash_fwd_kernel",
    "attention_backward": "flash_bwd_kernel",
    "elementwise": "void at::native::elementwise_kernel",
    "other": "my_kernel",
    "all_gather": "ncclDevKernel_AllGather_RING_LL",
    "reduce_scatter": "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL",
    "all_reduce": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL",
    "all_to_all": "all-to-all.1",
    "send": "ncclDevKernel_SendRecv",
    "host": "Memcpy HtoD",
}


def trace(seconds, idle=0.0, hidden=0.0):
    """One kernel of each kind, one after the other; a part of the messages runs beside the first kernel."""
    events, now = [], 0.0
    for kind, length in seconds.items():
        if length == 0:
            continue
        is_message = kind in planner.profile.kinds.MESSAGES
        begin = now - hidden * length if is_message else now
        events.append(
            {"ph": "X", "cat": "kernel", "name": KERNELS[kind], "ts": begin * 1e6, "dur": length * 1e6,
             "args": {"device": 0}}
        )  # fmt: skip
        now = begin + length
    if idle:
        events.append({**events[-1], "ts": (now + idle) * 1e6, "dur": 0})
    return events


def expected(plan, efficiency):
    """Seconds of each kind with these factors."""
    start = plan_training(plan.model, plan.cluster, plan.config, efficiency=efficiency)
    anything = read_profile(trace({"products": 1.0}), steps=1)
    return dict(fit_profile(start, anything).before)


@pytest.mark.parametrize(
    "values",
    [
        {"zero": 1},
        {"zero": 3, "recompute": "full"},
        {"tensor": 8, "sequence_parallel": True, "recompute": "selective"},
        {"tensor": 8},
        {"context": 2, "context_method": "all_to_all", "tensor": 4},
    ],
    ids=str,
)
def test_factors_are_found_again(values):
    config = TrainingConfig(batch=64, sequence=4096, **values)
    plan = plan_training("llama-3-8b", NODE, config, efficiency=START)
    seconds = expected(plan, TRUTH)
    found = fit_profile(plan, read_profile(trace(seconds), steps=1))
    for name in ("matmul", "attention_forward", "attention_backward", "memory", "links", "nvls"):
        assert getattr(found.efficiency, name) == pytest.approx(getattr(TRUTH, name), rel=1e-5), name
        assert found.efficiency.sources[name] == "profile a trace, gpu:0, 1 step"
        assert name in found.fitted
    assert found.after == pytest.approx(seconds, rel=1e-5)
    assert found.before == pytest.approx(expected(plan, START))
    assert found.efficiency.layer_seconds == pytest.approx(0, abs=1e-15)  # times are sums
    assert found.efficiency.step_seconds == 0
    assert found.efficiency.network == START.network
    assert found.efficiency.sources["network"] == START.sources["network"]


def test_each_factor_is_the_ratio_of_its_part():
    plan = plan_training("llama-3-8b", NODE, TrainingConfig(batch=64, sequence=4096, zero=1), efficiency=TRUTH)
    seconds = {**expected(plan, TRUTH), "other": 0.125}
    doubled = {kind: 2 * length if kind == "elementwise" else length for kind, length in seconds.items()}
    found = fit_profile(plan, read_profile(trace(doubled, idle=0.5), steps=1))
    assert found.efficiency.memory == pytest.approx(TRUTH.memory / 2, rel=1e-9)
    assert found.efficiency.matmul == pytest.approx(TRUTH.matmul, rel=1e-9)
    # 8 microbatches of 32 layers, forward and backward.
    assert found.efficiency.layer_seconds == pytest.approx(0.5 / (2 * 8 * 32), rel=1e-6)
    assert found.efficiency.step_seconds == pytest.approx(0.125)


def test_the_step_of_the_fit_is_the_measured_one_where_nothing_is_hidden():
    config = TrainingConfig(batch=64, sequence=4096, zero=1, tensor=2)
    plan = plan_training("llama-3-8b", NODE, config, efficiency=START)
    seconds = {**expected(plan, TRUTH), "other": 0.125}
    found = fit_profile(plan, read_profile(trace(seconds, idle=0.5), steps=1))
    assert found.overlap == pytest.approx({"tensor": 0, "data": 0}, abs=1e-9)
    assert found.plan.seconds == pytest.approx(found.profile.seconds, rel=1e-6)
    assert found.plan.measured == found.profile.seconds


def test_the_overlap_is_the_part_behind_computation():
    plan = plan_training("llama-3-8b", NODE, TrainingConfig(batch=64, sequence=4096, zero=1), efficiency=START)
    seconds = expected(plan, START)
    found = fit_profile(plan, read_profile(trace(seconds, hidden=0.75), steps=1))
    assert found.profile.alone["all_gather"] == pytest.approx(0.25 * seconds["all_gather"])
    # The reduce-scatter begins beside the all-gather: that time counts as the all-gather's.
    assert found.profile.alone["reduce_scatter"] == pytest.approx(0.25 * seconds["reduce_scatter"])
    assert found.overlap == {"data": pytest.approx(0.75)}
    assert found.plan.config.overlap["data"] == found.overlap["data"]
    assert found.plan.config.overlap["offload"] == 1


def test_messages_of_one_name_share_their_overlap():
    config = TrainingConfig(batch=64, sequence=4096, zero=1, tensor=2)
    plan = plan_training("llama-3-8b", POD, config, efficiency=START)
    assert {"all_reduce", "all_gather", "reduce_scatter"} <= {k for k, s in expected(plan, START).items() if s}
    plan = plan_training("llama-3-8b", POD, config.replaced(sequence_parallel=True), efficiency=START)
    found = fit_profile(plan, read_profile(trace(expected(plan, START)), steps=1))
    assert any(note.startswith("all_gather: messages of tensor and data have one name") for note in found.notes)


def test_sends_of_an_exchange_are_an_exchange():
    config = TrainingConfig(batch=64, sequence=4096, expert=8, zero=1)
    plan = plan_training("mixtral-8x7b", NODE, config, efficiency=START)
    seconds = expected(plan, TRUTH)
    assert seconds["all_to_all"] > 0
    seconds["send"] = seconds.pop("all_to_all")
    found = fit_profile(plan, read_profile(trace(seconds), steps=1))
    assert found.efficiency.links == pytest.approx(0.6, rel=1e-4)
    assert any("count as all_to_all, because libraries build it from sends" in note for note in found.notes)
    assert found.overlap["expert"] == pytest.approx(0, abs=1e-9)


def test_attention_without_a_fused_kernel_is_products_and_elementwise():
    config = TrainingConfig(batch=64, sequence=4096, zero=1, flash_attention=False)
    plan = plan_training("llama-3-8b", NODE, config, efficiency=START)
    truth = START.replaced(matmul=START.matmul / 2, attention_forward=START.attention_forward / 2,
                           attention_backward=START.attention_backward / 2, memory=0.5)  # fmt: skip
    seconds = expected(plan, truth)
    assert seconds["attention_forward"] == seconds["attention_backward"] == 0
    found = fit_profile(plan, read_profile(trace(seconds), steps=1))
    for name in ("matmul", "attention_forward", "attention_backward", "memory"):
        assert getattr(found.efficiency, name) == pytest.approx(getattr(truth, name), rel=1e-6)


def test_parts_that_are_missing_are_named():
    plan = plan_training("llama-3-8b", NODE, TrainingConfig(batch=64, sequence=4096, zero=1), efficiency=START)
    found = fit_profile(plan, read_profile(trace({"all_gather": 0.5, "host": 0.25}), steps=1))
    kinds = [note.split(":")[0] for note in found.notes]
    assert {"products", "attention", "elementwise", "reduce_scatter", "host"} <= set(kinds)
    assert found.efficiency.matmul == START.matmul
    text = str(found)
    assert "products: no operation of the profile is of this kind, the plan has" in text
    assert "host: the profile has 0.25 s, the plan none" in text


def test_offloading_fits_the_host():
    config = TrainingConfig(batch=64, sequence=4096, zero=1, offload_optimizer=True)
    plan = plan_training("llama-3-8b", NODE, config, efficiency=START)
    seconds = expected(plan, START.replaced(host=0.4))
    found = fit_profile(plan, read_profile(trace(seconds, hidden=0.5), steps=1))
    assert found.efficiency.host == pytest.approx(0.4, rel=1e-6)
    assert found.overlap["offload"] == pytest.approx(0.5)


def test_stages_of_a_pipeline():
    config = TrainingConfig(batch=64, sequence=4096, zero=1, pipeline=2)
    plan = plan_training("llama-3-8b", NODE, config, efficiency=START)
    profile = read_profile(trace({"products": 1.0}, idle=1), steps=1)
    with pytest.raises(ValueError, match=r"stage is None and the plan has 2 stages; .*; write stage=0"):
        fit_profile(plan, profile)
    first, last = (fit_profile(plan, profile, stage=stage) for stage in (0, 1))
    assert first.before["products"] < last.before["products"]  # the output
    assert "layer_seconds" not in first.fitted
    assert any(note.startswith("idle: 1 s, with the wait for other stages") for note in first.notes)


def test_texts_and_pickles():
    plan = plan_training("llama-3-8b", NODE, TrainingConfig(batch=64, sequence=4096, zero=1), efficiency=START)
    found = fit_profile(plan, read_profile(trace({**expected(plan, TRUTH), "other": 0.125}), steps=1))
    text = str(found)
    assert "matmul 0.5" in text
    assert "not hidden" in text
    content = json.loads(found.to_json())
    assert content["fitted"]["matmul"] == pytest.approx(0.5)
    assert content["profile"]["unknown"] == {"my_kernel": pytest.approx(0.125)}
    again = pickle.loads(pickle.dumps(found))
    assert (again.fitted, again.overlap, again.efficiency) == (found.fitted, found.overlap, found.efficiency)


PLAN = plan_training("llama-2-7b", NODE, TrainingConfig(batch=64, sequence=4096, zero=3))
PROFILE = read_profile(trace({"products": 1.0}), steps=1)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: fit_profile(3, PROFILE), TypeError, r"fit_profile: plan is 3 \(int\); expected a TrainingPlan"),
        (lambda: fit_profile(PLAN, "a"), TypeError, "fit_profile: profile is 'a'.*; expected a Profile"),
        (lambda: fit_profile(PLAN, PROFILE, stage=1), ValueError, "fit_profile: stage is 1"),
        (lambda: fit_profile(PLAN, PROFILE, stage="0"), TypeError, "fit_profile: stage is '0'"),
        (lambda: fit_profile(PLAN, PROFILE, efficiency=1), TypeError, "fit_profile: efficiency is 1"),
    ],
)
def test_bad_arguments(call, error, text):
    with pytest.raises(error, match=text):
        call()
