# SPDX-License-Identifier: Apache-2.0
"""Terms of plan_training that only some kinds of runs have, beside seconds that are counted here; errors by kind."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from artifex_devices import cluster, models
from artifex_devices.planner import Efficiency, TrainingConfig, plan_training, suggest
from artifex_devices.planner.training.published import ROWS, published_error, run_kind

LAYERS, EMBED, WIDTH, VOCAB = 2, 1024, 4096, 32000
SHAPE = models.TransformerShape("small", LAYERS, EMBED, WIDTH, 8, 8, 128, VOCAB)
SPARSE = replace(SHAPE, mlp=2048, experts=4, experts_per_token=2)
NODE = cluster.dgx("h100")
IDEAL = Efficiency.ideal()
TOKENS = 4096  # of a device, in each plan below
PEAK, PEAK8, MEMORY = 989e12, 1979e12, 3.35e12  # published rates of the H100


def parts(shape=SHAPE, factors=IDEAL, **values):
    """Expected seconds by part, of 8 sequences of 4096 tokens on 8 devices."""
    config = TrainingConfig(**{"batch": 8, "sequence": 4096, **values})
    return plan_training(shape, NODE, config, efficiency=factors).expected.parts


# --- Attention ---

# Two products of 8 heads of 128 for each token and half of the 4096 others; five such products backward.
ATTENTION = LAYERS * (1 + 2.5) * 4 * TOKENS * 2048 * EMBED / PEAK


def test_flash_attention_2_is_a_fraction_of_the_native_kernel():
    slow = IDEAL.replaced(flash2=0.5)
    assert parts()["attention"] == pytest.approx(ATTENTION)
    assert parts(factors=slow)["attention"] == pytest.approx(ATTENTION)
    assert parts(factors=slow, attention_kernel="flash2")["attention"] == pytest.approx(2 * ATTENTION)
    # Programs with ZeRO 3 are PyTorch's unless the configuration says otherwise.
    assert parts(factors=slow, zero=3)["attention"] == pytest.approx(2 * ATTENTION)
    assert parts(factors=slow, zero=3, attention_kernel="native")["attention"] == pytest.approx(ATTENTION)
    without = {"flash_attention": False, "attention_kernel": "flash2"}
    assert parts(factors=slow, **without) == parts(flash_attention=False)


def test_flash_attention_2_has_published_factors_on_chips_later_than_the_a100():
    published = Efficiency.published(NODE)
    assert published.flash2 == 0.467  # 35 % of the peak where FlashAttention-3 has 75 %
    assert "2407.08608" in published.sources["flash2"]
    assert Efficiency.published(cluster.dgx("h200")).flash2 == 0.467
    assert Efficiency.published(cluster.gpus("gb200")).flash2 == 0.467  # "model"
    assert Efficiency.published(cluster.dgx("a100")).flash2 == 1


@pytest.mark.parametrize("context", [2, 4, 8])
def test_consecutive_parts_of_a_sequence_give_the_last_rank_most_work(context):
    shared = {"context": context, "batch": 8, "context_method": "all_gather", "microbatch": context}
    mean = parts(**shared, context_balanced=True)["attention"]
    # The last of c parts sees c - 1/2 parts, the mean rank c / 2.
    assert parts(**shared)["attention"] == pytest.approx(mean * (context - 0.5) / (context / 2))
    assert parts(**shared, causal=False) == parts(**shared, causal=False, context_balanced=True)
    ring = {**shared, "context_method": "ring"}
    assert parts(**ring)["attention"] == pytest.approx(mean)
    assert parts(**ring, context_balanced=False)["attention"] == pytest.approx(mean * (2 - 1 / context))
    heads = {**shared, "context_method": "all_to_all", "context_balanced": False}
    assert parts(**heads)["attention"] == pytest.approx(mean)


def test_each_step_of_a_ring_adds_its_result():
    shared = {"context": 4, "microbatch": 4}
    gathered = parts(**shared, context_method="all_gather", context_balanced=True)
    # 3 of 4 steps read a result of 2 bytes and a sum of 4, and write the sum; twice as much backward.
    added = LAYERS * 3 * 3 * TOKENS * EMBED * 10 / MEMORY
    assert parts(**shared)["elementwise"] - gathered["elementwise"] == pytest.approx(added)


# --- Products of 8 bits ---

MATRICES = 4 * EMBED**2 + 3 * EMBED * WIDTH  # elements of a layer


def test_only_layers_multiply_in_8_bits():
    found = parts(dtype="float8")
    assert parts()["products"] == pytest.approx(6 * TOKENS * (LAYERS * MATRICES + EMBED * VOCAB) / PEAK)
    layers, head = LAYERS * MATRICES / PEAK8, EMBED * VOCAB / PEAK
    assert found["products"] == pytest.approx(6 * TOKENS * (layers + head))
    assert found["attention"] == pytest.approx(ATTENTION)


def test_operands_of_8_bits_are_converted():
    # Inputs of queries, of keys with values, of the output, of both matrices of the gate and of the last matrix; and
    # gradients of their results. Each is read twice in 16 bits and written twice in 8.
    inputs = 3 * EMBED + EMBED + WIDTH
    gradients = EMBED + 2 * EMBED + EMBED + 2 * WIDTH + EMBED
    converted = LAYERS * TOKENS * (inputs + gradients) * 6 / MEMORY
    assert parts(dtype="float8")["elementwise"] - parts()["elementwise"] == pytest.approx(converted)


# --- Programs that are not compiled ---


def test_operations_that_are_not_fused_read_and_write_more():
    # Bytes of a token forward: norms 42 instead of 8 for each of EMBED elements, rotary positions 20 instead of 4 for
    # queries and keys, the gated activation 10 instead of 6. Backward twice as many.
    more = 2 * (42 - 8) * EMBED + (20 - 4) * 2 * EMBED + (10 - 6) * WIDTH
    found = parts(compiled=False)["elementwise"] - parts()["elementwise"]
    assert found == pytest.approx(3 * LAYERS * TOKENS * more / MEMORY)


# --- Experts ---


def test_grouped_products_have_a_factor():
    half = parts(SPARSE, IDEAL.replaced(grouped=0.5))["products"] - parts(SPARSE)["products"]
    assert half == pytest.approx(LAYERS * 6 * TOKENS * 2 * 3 * EMBED * 2048 / PEAK)
    assert parts(factors=IDEAL.replaced(grouped=0.5)) == parts()


def test_the_exchange_of_tokens_has_a_factor():
    more = parts(SPARSE, IDEAL.replaced(dispatch=0.5), expert=4)["expert"] - parts(SPARSE, expert=4)["expert"]
    # Two copies of a token go to their experts and back, forward and backward; three of four leave the device.
    assert more == pytest.approx(LAYERS * 4 * TOKENS * 2 * EMBED * 2 * 3 / 4 / 450e9)
    assert (
        parts(SPARSE, IDEAL.replaced(links=0.5, network=0.5), expert=4)["expert"] == parts(SPARSE, expert=4)["expert"]
    )


def test_tokens_of_distant_experts_are_sorted_twice_more():
    found = parts(SPARSE, expert=4)["elementwise"] - parts(SPARSE)["elementwise"]
    # Two experts for each token: read and written after they arrive and before they leave, twice as much backward.
    assert found == pytest.approx(3 * LAYERS * TOKENS * 2 * 4 * EMBED * 2 / MEMORY)


def test_experts_have_seconds_of_their_own():
    factors = IDEAL.replaced(expert_seconds=1e-3)
    assert parts(SPARSE, factors)["fixed"] == pytest.approx(2 * LAYERS * 1e-3)
    assert parts(factors=factors)["fixed"] == 0


# --- Errors by kind ---


PAGE = (Path(__file__).parents[3] / "docs" / "planner_accuracy.md").read_text(encoding="utf-8")


def test_errors_are_those_of_the_page():
    pattern = r"^\| ([\w, -]+), (\w+), on ([^|]+), held out \| (\d+) \| (.*?)% \| (.*?)% \| (.*?)% \| (.*?)% \|$"
    found = re.findall(pattern, PAGE, re.MULTILINE)
    page = {(chip, kind, each): (int(runs), *map(float, cells)) for kind, each, chip, runs, *cells in found}
    table = {row[:3]: (row[3], *(round(100 * each, 1) for each in (*row[4], *row[5]))) for row in ROWS if row[0]}
    assert len(table) >= 10
    assert table == page


def kind_of(shape="llama-3-8b", machine=NODE, **values):
    """Chip, kind and precision of a plan's run."""
    config = TrainingConfig(**{"batch": 8, "sequence": 4096, **values})
    found = run_kind(models.SHAPES[shape], machine, config)
    return found.chip, found.kind, found.precision


def test_runs_have_a_chip_a_kind_and_a_precision():
    assert kind_of() == ("H100", "dense", "bfloat16")
    assert kind_of(context=2, dtype="float8") == ("H100", "context-parallel", "float8")
    assert kind_of("deepseek-v3", context=2, dtype="int8") == ("H100", "experts", "float8")
    assert kind_of(compiled=False, dtype="float16") == ("H100", "dense, not compiled", "bfloat16")
    assert [kind_of(machine=cluster.gpus(chip))[0] for chip in ("h200", "h800", "a100-40gb")] == [
        "H100",
        "H100",
        "A100",
    ]
    assert kind_of(machine=cluster.gpus("gb200"))[0] == kind_of(machine=cluster.gpus("b200"))[0] == "B200"
    assert kind_of(machine=cluster.tpu("v5e", (4, 4)))[0] == "TPU v5e"


def error(shape, machine, efficiency, **values):
    config = TrainingConfig(**{"batch": 8, "sequence": 4096, **values})
    return published_error(run_kind(models.SHAPES[shape], machine, config), machine, efficiency)


@pytest.mark.parametrize("row", [row for row in ROWS if row[0] == "H100"], ids=lambda row: "-".join(row[:3]))
def test_a_plan_has_the_error_of_its_kind(row):
    _, kind, precision, runs, published, fitted = row
    shape = "deepseek-v3" if kind.startswith("experts") else "llama-3-8b"
    values = {
        "dtype": precision, "context": 2 if kind.startswith("context") else 1, "compiled": "not compiled" not in kind
    }  # fmt: skip
    found = error(shape, NODE, Efficiency.of(NODE), **values)
    assert (found.chip, found.kind, found.precision, found.runs) == ("H100", kind, precision, runs)
    assert (found.median, found.tail) == fitted
    found = error(shape, NODE, Efficiency.published(NODE), **values)
    assert (found.median, found.tail) == published
    assert error(shape, NODE, IDEAL, **values) is None
    assert error(shape, NODE, Efficiency.of(NODE).replaced(matmul=0.5), **values) is None


def test_a_kind_without_runs_on_a_chip_has_the_error_on_all_chips():
    pod = cluster.tpu("v5e", (4, 4))
    row = next(row for row in ROWS if row[:3] == ("", "context-parallel", "float8"))
    config = TrainingConfig(batch=16, sequence=4096, context=2, dtype="int8", zero=3)
    plan = plan_training("llama-3-8b", pod, config)
    text = f"{row[3]} published context-parallel runs in float8 on all chips, because none is on TPU v5e"
    assert text in " ".join(str(plan).split())
    assert json.loads(plan.to_json())["error"]["chip"] is None


def test_an_unknown_error_names_the_kind():
    config = TrainingConfig(batch=8, sequence=4096, dtype="tensorfloat32")
    plan = plan_training("llama-3-8b", NODE, config)
    text = "not known: no published run of this kind (dense, tensorfloat32, on H100) was compared with these factors"
    assert text in " ".join(str(plan).split())
    document = json.loads(plan.to_json())
    assert (document["error"], document["run_kind"]["precision"]) == (None, "tensorfloat32")


def test_plans_and_suggestions_show_the_error():
    config = TrainingConfig(batch=64, sequence=4096, zero=1)
    plan = plan_training("llama-2-7b", NODE, config)
    row = next(row for row in ROWS if row[:3] == ("H100", "dense", "bfloat16"))
    text = (
        f"median {row[5][0]:.1%}, nine of ten within {row[5][1]:.1%}: {row[3]} published dense runs in bfloat16 on H100"
    )
    assert text in " ".join(str(plan).split())
    found = suggest("llama-2-7b", NODE, batch=64, sequence=4096, context=1, progress=False)
    assert text in " ".join(str(found).split())
    assert json.loads(found.to_json())["error"] == json.loads(plan.to_json())["error"]


def test_one_run_has_no_median():
    row = next(row for row in ROWS if row[3] == 1 and row[0] == "TPU v6e (Trillium)")
    config = TrainingConfig(batch=64, sequence=4096, zero=3)
    text = str(plan_training("llama-2-7b", cluster.tpu("v6e", (4, 4)), config))
    assert f"{row[5][0]:.1%} on the only published dense run in bfloat16 on TPU v6e (Trillium)" in " ".join(
        text.split()
    )


def test_a_search_compares_configurations_with_one_kernel():
    found = suggest("llama-2-7b", NODE, batch=64, sequence=4096, zero=3, progress=False)
    assert found.options[0].config.attention_kernel == "native"
    assert found.options[0].plan.seconds == plan_training("llama-2-7b", NODE, found.options[0].config).seconds
    given = suggest("llama-2-7b", NODE, batch=64, sequence=4096, attention_kernel="flash2", progress=False)
    assert given.options[0].config.attention_kernel == "flash2"
