# SPDX-License-Identifier: Apache-2.0
"""Fits of the factors of plan_training to measured steps."""

import numpy as np
import pytest
from artifex_devices import cluster, planner
from artifex_devices.planner import Efficiency, TrainingConfig, plan_training
from artifex_devices.planner.training.efficiency_fit import quantile

NODE = cluster.dgx("h100")
POD = cluster.dgx("h100", nodes=4)
CONFIGS = (
    ("llama-2-7b", NODE, {"batch": 64, "sequence": 4096, "zero": 3}),
    ("llama-2-7b", POD, {"batch": 64, "sequence": 2048, "zero": 3}),
    ("llama-3-8b", NODE, {"batch": 8, "sequence": 32768, "zero": 3, "recompute": "full"}),
    ("llama-2-70b", POD, {"batch": 64, "sequence": 4096, "tensor": 8, "sequence_parallel": True, "zero": 1}),
    ("llama-2-13b", POD, {"batch": 64, "sequence": 4096, "tensor": 4, "pipeline": 2, "zero": 1}),
    ("llama-2-13b", NODE, {"batch": 32, "sequence": 4096, "tensor": 2, "pipeline": 2, "zero": 1}),
)


def measured_with(truth):
    """Plans with the published factors, and as measured what `truth` gives."""
    for shape, machine, config in CONFIGS:
        config = TrainingConfig(**config)
        seconds = plan_training(shape, machine, config, efficiency=truth).expected.total
        yield plan_training(shape, machine, config, measured=seconds)


def test_factors_are_found_again():
    start = Efficiency.published(NODE)
    truth = start.replaced(matmul=0.6, links=0.5, nvls=0.5 / start.links * start.nvls)  # the fit scales both alike
    found = planner.fit(measured_with(truth), efficiency=Efficiency.published(NODE))
    assert found.error(1) < 0.02
    assert found.efficiency.matmul == pytest.approx(0.6, rel=0.03)
    assert found.efficiency.links == pytest.approx(0.5, rel=0.1)
    assert found.efficiency.sources["matmul"] == "fit of 6 measured steps"
    assert "matmul" in found.fitted
    assert "matmul_float8" not in found.fitted
    assert found.efficiency.tile_rows == truth.tile_rows
    assert found.efficiency.sources["tile_rows"] == truth.sources["tile_rows"]
    assert len(found.predicted) == len(found.measured) == len(found.errors) == 6


def test_the_fit_predicts_other_steps():
    truth = Efficiency.published(NODE).replaced(matmul=0.55, attention_forward=0.5, attention_backward=0.43)
    fitted = planner.fit(list(measured_with(truth))[:4], efficiency=Efficiency.published(NODE)).efficiency
    config = TrainingConfig(batch=128, sequence=8192, zero=3, recompute="full")
    ours, theirs = (plan_training("llama-3-8b", POD, config, efficiency=each) for each in (fitted, truth))
    assert ours.expected.total == pytest.approx(theirs.expected.total, rel=0.03)


def test_one_measured_step_scales_the_expected_time():
    config = TrainingConfig(batch=64, sequence=4096, zero=3)
    expected = plan_training("llama-3-8b", NODE, config).expected.total
    plan = plan_training("llama-3-8b", NODE, config, measured=1.25 * expected)
    found = planner.fit([plan])
    assert found.predicted[0] == pytest.approx(1.25 * expected, rel=0.02)
    assert 0 < found.efficiency.matmul < plan.efficiency.matmul


def test_another_start():
    truth = Efficiency.published(NODE)
    found = planner.fit(measured_with(truth), efficiency=truth.replaced(matmul=0.4))
    assert found.efficiency.matmul == pytest.approx(truth.matmul, rel=0.1)
    assert found.error(1) < 0.05


def test_quantiles_are_those_of_numpy():
    values = np.random.default_rng(1).random(17).tolist()
    for part in (0.1, 0.5, 0.9, 1):
        assert quantile(values, part) == pytest.approx(np.quantile(values, part))
    assert quantile([3.0], 0.9) == 3.0


PLAN = plan_training("llama-2-7b", NODE, TrainingConfig(batch=64, sequence=4096, zero=3), measured=3.0)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: planner.fit([]), ValueError, "fit: measured is empty; expected one plan at least; write"),
        (lambda: planner.fit(3), TypeError, r"fit: measured is 3 \(int\); expected plans with measured seconds"),
        (lambda: planner.fit("abc"), TypeError, "fit: measured is 'abc'"),
        (lambda: planner.fit([3]), TypeError, r"fit: measured\[0\] is 3 \(int\); expected a TrainingPlan"),
        (lambda: planner.fit([PLAN, plan_training("llama-2-7b", NODE, PLAN.config)]), ValueError,
         r"fit: measured\[1\] has no measured seconds; expected a plan with them; write plan_training"),
        (lambda: planner.fit([PLAN], efficiency=1), TypeError, "fit: efficiency is 1"),
        (lambda: planner.fit([PLAN, plan_training("llama-2-7b", cluster.dgx("a100"), PLAN.config, measured=9.0)]),
         ValueError, "fit: measured has steps of .*A100.*H100.*; expected one chip.*fit each apart"),
        (lambda: planner.fit([PLAN]).error(0), ValueError, "EfficiencyFit.error: part is 0"),
        (lambda: planner.fit([PLAN]).error(2), ValueError, "part is 2; expected a number above 0, at most 1"),
        (lambda: planner.fit([PLAN]).error("x"), TypeError, "part is 'x'"),
    ],
)  # fmt: skip
def test_bad_arguments(call, error, text):
    with pytest.raises(error, match=text):
        call()
