# SPDX-License-Identifier: Apache-2.0
"""plan_training beside published memory figures; published_runs.json is consistent; the page of errors is current."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from artifex_devices import cluster, models
from artifex_devices.models import TransformerShape
from artifex_devices.planner import TrainingConfig, plan_training

ROOT = Path(__file__).resolve().parents[3]
DATA = json.loads((ROOT / "bench" / "published_runs.json").read_text(encoding="utf-8"))


def megatron(name, layers, embed, heads):
    return TransformerShape(
        name, layers, embed, 4 * embed, heads, heads, embed // heads, 51200, positions=2048, norm="layer",
        tied_embeddings=True, gated_mlp=False, qkv_bias=True, attention_out_bias=True, mlp_bias=True,
    )  # fmt: skip


@pytest.mark.parametrize(("zero", "gigabytes"), [(0, "120"), (1, "31.4"), (2, "16.6"), (3, "1.88")])
def test_states_of_zero(zero, gigabytes):
    # Rajbhandari et al. 2019, arXiv:1910.02054, figure 1: 7.5e9 parameters, 64 GPUs, 2 + 2 + 12 bytes for each.
    config = TrainingConfig(batch=64, sequence=1024, zero=zero, gradient_dtype="float16", parameter_dtype="float16")
    shape = megatron("7.5B", 36, 4096, 32)
    stage = plan_training(shape, cluster.dgx("a100", nodes=8), config).stages[0]
    states = stage.parameters + stage.gradients + stage.optimizer
    for_7_5 = states / shape.parameters.total * 7.5e9 / 1e9
    assert f"{for_7_5:.3g}" == gigabytes


@pytest.mark.parametrize(("name", "layers", "embed", "heads"), [("22B", 48, 6144, 64), ("175B", 96, 12288, 96)])
@pytest.mark.parametrize(
    ("sequence_parallel", "recompute", "formula"),
    [
        # arXiv:2205.05198, equations 2, 4 and 6; a: heads, s: tokens, h: width, t: tensor ranks.
        (False, "none", lambda a, s, h, t: 10 + 24 / t + 5 * a * s / (h * t)),
        (True, "none", lambda a, s, h, t: (34 + 5 * a * s / h) / t),
        (True, "selective", lambda a, s, h, t: 34 / t),
    ],
)
def test_activations_of_korthikanti(name, layers, embed, heads, sequence_parallel, recompute, formula):
    t, s, b = 8, 2048, 1
    plans = {}
    for count in (layers, layers // 2):
        config = TrainingConfig(
            batch=b, sequence=s, tensor=t, sequence_parallel=sequence_parallel, recompute=recompute, dropout=True,
            flash_attention=False, causal=False,
        )  # fmt: skip
        plan = plan_training(megatron(name, count, embed, heads), cluster.dgx("a100"), config)
        plans[count] = plan.stages[0].activations
    of_a_layer = (plans[layers] - plans[layers // 2]) / (layers - layers // 2)
    assert of_a_layer == pytest.approx(s * b * embed * formula(heads, s, embed, t), rel=0.05)


def test_every_run_has_a_source_a_model_and_a_consistent_batch():
    assert len(DATA["runs"]) >= 40
    assert len(DATA["collectives"]) >= 20
    for row in (*DATA["runs"], *DATA["collectives"]):
        source = DATA["sources"][row["source"]]
        assert source["title"]
        assert source["address"].startswith("https://")
    for run in DATA["runs"]:
        assert run["seconds"] > 0
        assert run["published"]
        config = TrainingConfig(**run["config"])
        assert config.batch % (config.data * config.microbatch) == 0, run["name"]
        if "tokens/s" in run["published"]:
            rate = float(run["published"].split()[0])
            chips = config.data * config.tensor * config.context * config.pipeline
            each = rate * (chips if "per" in run["published"] else 1)
            assert run["seconds"] == pytest.approx(config.tokens / each, rel=1e-4), run["name"]
        elif run["published"].endswith(" s"):
            assert run["seconds"] == float(run["published"].split()[0])
    assert len({run["name"] for run in DATA["runs"]}) == len(DATA["runs"])


def test_models_of_runs_have_the_published_parameters():
    counted = [run for run in DATA["runs"] if "parameters" in run]
    assert len(counted) > 50
    for run in counted:
        shape = TransformerShape(run["model"], **DATA["models"][run["model"]])
        assert shape.parameters.total == run["parameters"], run["name"]
    for name in {run["model"] for run in DATA["runs"]} - set(DATA["models"]):
        assert name in models.SHAPES


def test_the_page_of_errors_is_current():
    tool = ROOT / "bench" / "planner_accuracy.py"
    done = subprocess.run([sys.executable, str(tool), "--check"], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0), "python bench/planner_accuracy.py, and commit"


def test_the_default_factors_are_those_of_the_fit():
    tool = ROOT / "bench" / "planner_accuracy.py"
    done = subprocess.run([sys.executable, str(tool), "--factors"], capture_output=True, text=True, check=True)
    rows = done.stdout.splitlines()
    source = (ROOT / "cpp" / "artifex_planner" / "cost" / "efficiency.cpp").read_text(encoding="utf-8")
    assert len(rows) == 12
    for row in rows:
        assert row in source, "python bench/planner_accuracy.py --factors, and copy the rows"
