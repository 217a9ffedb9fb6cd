# SPDX-License-Identifier: Apache-2.0
"""TrainingConfig: its checks, and the values that the planner gets."""

import pickle
import re

import numpy as np
import pytest
from artifex_devices.planner import TrainingConfig


def config(**values):
    return TrainingConfig(**{"batch": 64, "sequence": 2048, **values})


COUNTS = ("batch", "sequence", "tensor", "context", "pipeline", "chunks", "expert", "microbatch")
BOOLS = (
    "expert_padding",
    "sequence_parallel",
    "flash_attention",
    "causal",
    "dropout",
    "offload_optimizer",
    "offload_activations",
)


@pytest.mark.parametrize("name", [*COUNTS, "data", "zero_shards", "expert_tensor"])
def test_counts_are_positive_ints(name):
    assert getattr(config(**{name: 2**31}), name) == 2**31
    assert getattr(config(**{name: np.int64(1)}), name) == 1
    for value in (0, -1, 2**31 + 1):
        with pytest.raises(ValueError, match=f"TrainingConfig: {name} is {value}"):
            config(**{name: value})
    for value in (1.5, "2", True):
        with pytest.raises(TypeError, match=f"TrainingConfig: {name} is {re.escape(repr(value))}"):
            config(**{name: value})
    if name in COUNTS:
        with pytest.raises(TypeError, match=f"TrainingConfig: {name} is None"):
            config(**{name: None})


@pytest.mark.parametrize("name", BOOLS)
def test_switches_are_bools(name):
    for value in (True, False, np.bool_(True)):
        assert getattr(config(**{name: value}), name) is bool(value)
    for value in (1, None, "yes"):
        with pytest.raises(TypeError, match=f"TrainingConfig: {name} is {value!r}"):
            config(**{name: value})


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("context_method", ["ring", "all_to_all", "all_gather"]),
        ("schedule", ["1f1b", "gpipe", "interleaved"]),
        ("recompute", ["none", "selective", "full"]),
        ("optimizer", ["adamw-fp32-master", "adam", "adafactor", "muon", "sgd"]),
        ("framework", ["torch", "maxtext", "megatron"]),
        ("loss", ["plain", "chunked", "fused"]),
        ("dtype", ["bfloat16", "float16", "float32", "tensorfloat32", "float8", "int8"]),
    ],
)
def test_choices(name, values):
    for value in values:
        assert getattr(config(**{name: value}), name) == value
    default = [None] * (name not in ("optimizer", "loss", "framework"))  # elsewhere None is not a value
    for value in ("other", 1, *default):
        with pytest.raises(ValueError, match=f"TrainingConfig: {name} is {value!r}"):
            config(**{name: value})


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"zero": -1}, "zero is -1"),
        ({"zero": 4}, "zero is 4"),
        ({"expert_imbalance": 0.5}, "expert_imbalance is 0.5"),
        ({"expert_imbalance": float("inf")}, "expert_imbalance is inf"),
        ({"expert_capacity": 0}, "expert_capacity is 0"),
        ({"expert_capacity": float("inf")}, "expert_capacity is inf"),
        ({"recompute_layers": -1}, "recompute_layers is -1"),
        ({"parameter_dtype": "text"}, "parameter_dtype is 'text'"),
        ({"activation_dtype": None}, "activation_dtype is None"),
        ({"activation_dtype": "bfloat17"}, "activation_dtype is 'bfloat17'.*bfloat16"),
        (
            {"parameter_dtypes": {"emb": "int8"}},
            r"parameter_dtypes names 'emb' \(did you mean embedding\?\); expected some of embedding, head, ",
        ),
        ({"gradient_dtypes": {"hed": "int8"}}, r"gradient_dtypes names 'hed' \(did you mean head\?\)"),
        ({"gradient_dtypes": {"head": "text"}}, r"gradient_dtypes\['head'\] is 'text'"),
        ({"overlap": {"dta": 1}}, r"overlap names 'dta' \(did you mean data\?\)"),
        ({"overlap": {"data": 1.5}}, r"overlap\['data'\] is 1.5; expected 0 to 1"),
        ({"overlap": {"data": -0.5}}, r"overlap\['data'\] is -0.5"),
    ],
)
def test_values_out_of_range(values, text):
    with pytest.raises(ValueError, match=f"TrainingConfig: {text}"):
        config(**values)


def test_edges_of_ranges_and_other_types():
    edges = config(zero=3, expert_imbalance=1, recompute_layers=0, overlap={"data": 0, "tensor": 1})
    assert (edges.zero, edges.expert_imbalance, edges.recompute_layers) == (3, 1, 0)
    assert config(zero=0).zero == 0
    with pytest.raises(TypeError, match=r"TrainingConfig: overlap is 3 \(int\); expected a mapping"):
        config(overlap=3)
    with pytest.raises(TypeError, match=r"TrainingConfig: overlap\['data'\] is 'all'"):
        config(overlap={"data": "all"})


def test_the_overlap_depends_on_the_schedule():
    usual = {"tensor": 0.0, "context": 1.0, "expert": 0.0, "pipeline": 0.0, "data": 1.0, "offload": 1.0}
    assert config().overlap == usual
    assert config(schedule="interleaved").overlap == usual | {"pipeline": 1.0}
    assert config(schedule="interleaved", overlap={"pipeline": 0.25, "data": 0}).overlap == usual | {
        "pipeline": 0.25,
        "data": 0.0,
    }
    with pytest.raises(TypeError):
        config().overlap["data"] = 0.0


def test_another_schedule_has_its_usual_overlap_unless_another_one_was_given():
    interleaved = config(overlap={"data": 0.5}).replaced(schedule="interleaved")
    assert (interleaved.overlap["pipeline"], interleaved.overlap["data"]) == (1.0, 0.5)
    assert interleaved.replaced(schedule="1f1b").overlap["pipeline"] == 0.0
    assert interleaved.replaced(chunks=2).overlap == interleaved.overlap
    assert config(overlap={"pipeline": 0.25}).replaced(schedule="interleaved").overlap["pipeline"] == 0.25
    assert config().replaced(schedule="interleaved", overlap={"pipeline": 0}).overlap["pipeline"] == 0.0


def test_only_the_ring_hides_the_communication_of_contexts_unless_another_overlap_was_given():
    assert [config(context_method=each).overlap["context"] for each in ("ring", "all_to_all", "all_gather")] == [
        1,
        0,
        0,
    ]
    assert config(context_method="all_gather", overlap={"context": 0.5}).overlap["context"] == 0.5
    gathered = config(overlap={"data": 0.5}).replaced(context_method="all_gather")
    assert (gathered.overlap["context"], gathered.overlap["data"]) == (0, 0.5)
    assert gathered.replaced(context_method="ring").overlap["context"] == 1
    assert config(overlap={"context": 0.25}).replaced(context_method="all_to_all").overlap["context"] == 0.25


def test_tokens_copies_and_pickles():
    first = config()
    assert first.tokens == 64 * 2048
    again = first.replaced(tensor=8, overlap={"data": 0.5})
    assert (again.tensor, again.batch, again.overlap["data"]) == (8, 64, 0.5)
    assert (first.tensor, first.overlap["data"]) == (1, 1.0)
    with pytest.raises(ValueError, match=r"TrainingConfig.replaced: unknown names 'tensr' \(did you mean tensor\?\)"):
        first.replaced(tensr=8)
    with pytest.raises(ValueError, match="TrainingConfig: tensor is 0"):
        first.replaced(tensor=0)
    assert pickle.loads(pickle.dumps(again)) == again != first
    assert hash(pickle.loads(pickle.dumps(again))) == hash(again)
    assert hash(config(tensor=2)) != hash(first)
    assert first == config()
    with pytest.raises(AttributeError):
        first.tensor = 2


def test_what_the_planner_gets():
    made = config(tensor=2, context=2, pipeline=2, parameter_dtype="float32", activation_dtype="float8_e4m3fn")
    described = made._described(32)
    assert described["data"] == 4
    assert [set(described[f"{key}_bytes"].values()) for key in ("parameter", "gradient")] == [{4}, {4}]
    assert described["activation_bytes"] == 1
    assert described["dtype"] == "bfloat16"
    assert described["overlap"] == dict(made.overlap)
    given = config(data=3, zero_shards=2, expert_tensor=4, recompute_layers=5, parameter_dtype="int4")._described(7)
    assert [given[key] for key in ("data", "zero_shards", "expert_tensor", "recompute_layers")] == [3, 2, 4, 5]
    assert set(given["parameter_bytes"].values()) == {0.5}
    with pytest.raises(ValueError, match=r"tensor 2 x context 2 x pipeline 2 = 8 does not divide 33 devices"):
        made._described(33)
