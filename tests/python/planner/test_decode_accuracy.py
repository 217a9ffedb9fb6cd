# SPDX-License-Identifier: Apache-2.0
"""plan_inference beside published decode runs, which published_decode.json describes."""

import importlib.util
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[3] / "bench"


@pytest.fixture(scope="module")
def accuracy():
    spec = importlib.util.spec_from_file_location("decode_accuracy", BENCH / "decode_accuracy.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["decode_accuracy"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["decode_accuracy"]


def test_every_run_has_a_source_a_model_and_a_format(accuracy):
    for run in (*accuracy.decode_runs(), *accuracy.decode_runs(outside=True)):
        source = accuracy.DATA["sources"][run.row["source"]]
        assert source["title"]
        assert source["address"].startswith("https://")
        assert accuracy.shape_of(run.row["model"])
        assert run.row["format"] in accuracy.DATA["formats"]
        assert run.row["unit"] in ("tokens/s", "tokens/s/GPU", "ms/token", "ms")
    assert len(accuracy.decode_runs()) > 80


def test_models_have_the_published_parameters(accuracy):
    total = {name: accuracy.shape_of(name).parameters.total for name in accuracy.DATA["models"]}
    assert total.pop("falcon-180b") == pytest.approx(180e9, rel=0.01)  # in its name
    assert total == {
        "gpt-j-6b": 6_050_882_784,
        "mistral-7b": 7_241_732_096,
        "gpt-oss-120b": 116_829_156_672,
    }


def test_errors_of_published_runs(accuracy):
    found = accuracy.decode_outcomes()
    held = [abs(each.fitted) for each in found if each.run.is_held_out]
    assert accuracy.quantile(held, 0.5) < 0.08
    assert accuracy.quantile(held, 0.9) < 0.16
    assert max(abs(each.fitted) for each in found) < 0.4


@pytest.mark.parametrize(
    ("source", "model", "batch", "published", "low", "high"),
    [
        ("gpt-fast", "llama-2-7b", 1, 104.9, 0.0, 0.1),
        ("gpt-fast", "llama-2-70b", 1, 62.50, -0.05, 0.05),
        ("trt-0.5", "llama-2-7b", 64, 5367, -0.05, 0.05),
        ("nim", "llama-3-70b", 1, 18.58, -0.05, 0.05),
        ("nim", "llama-3-70b", 25, 38.75, 0.05, 0.15),
        ("inferencebench", "llama-3-8b", 4, 6.59, 0.1, 0.2),
        ("vllm-nightly", "mixtral-8x7b", 8, 1917.44, -0.1, 0.0),
        ("inferencex", "gpt-oss-120b", 16, 692.672, -0.05, 0.05),
    ],
)
def test_error_of_one_run(accuracy, source, model, batch, published, low, high):
    key = (source, model, batch, published)
    run = next(
        each
        for each in accuracy.decode_runs()
        if tuple(each.row[name] for name in ("source", "model", "batch", "published")) == key
    )
    assert low <= run.error(run.plan()) <= high
