# SPDX-License-Identifier: Apache-2.0
"""Plans as settings of other programs."""

import tomllib

import pytest
from artifex_devices import cluster
from artifex_devices.planner import TrainingChoice, TrainingConfig, plan_training, suggest
from program_settings import DEEPSEEK, GPT_2, GPUS, METHODS, QWEN, TPUS, plan, read, settings
from recorded_texts import check_recorded

DENSE = {
    "megatron": {
        "tensor": 2, "sequence_parallel": True, "pipeline": 2, "schedule": "interleaved", "chunks": 2, "zero": 1,
        "zero_shards": 2, "recompute": "full", "recompute_layers": 3, "dtype": "float8", "offload_optimizer": True,
    },
    "maxtext": {"tensor": 4, "sequence_parallel": True, "zero": 3, "recompute": "full", "microbatch": 2},
    "torchtitan": {
        "tensor": 2, "sequence_parallel": True, "pipeline": 2, "schedule": "interleaved", "chunks": 2, "zero": 3,
        "zero_shards": 2, "recompute": "full", "dtype": "float8",
    },
    "deepspeed": {"tensor": 2, "zero": 2, "recompute": "full", "offload_optimizer": True, "offload_activations": True},
}  # fmt: skip
EXPERTS = {
    "megatron": {
        "tensor": 2, "sequence_parallel": True, "expert": 8, "zero": 1, "expert_capacity": 1.25,
        "expert_padding": True, "recompute": "selective",
    },
    "maxtext": {
        "tensor": 2, "expert_tensor": 2, "expert": 4, "zero": 3, "expert_capacity": 1.25, "expert_padding": True,
        "recompute": "selective",
    },
    "torchtitan": {"tensor": 2, "sequence_parallel": True, "expert": 8, "zero": 3},
    "deepspeed": {"expert": 8, "zero": 3},
}  # fmt: skip
CONTEXT = {
    "megatron": {"context": 4, "context_method": "all_gather", "zero": 1},
    "maxtext": {"context": 4, "context_method": "all_gather", "zero": 3},
    "torchtitan": {"context": 4, "context_method": "all_gather", "zero": 2, "zero_shards": 8},
    "deepspeed": {"context": 4, "context_method": "all_to_all", "zero": 3, "zero_shards": 8},
}


def test_recorded_settings():
    sections = {}
    for program in METHODS:
        sparse = QWEN if program == "torchtitan" else "mixtral-8x7b"
        kinds = {"dense": ("llama-3-8b", DENSE), "experts": (sparse, EXPERTS), "context": ("llama-3-8b", CONTEXT)}
        for kind, (model, values) in kinds.items():
            found = plan(model, **values[program])
            read(program, found)
            sections[f"{program}: {kind}"] = settings(program, found)
    check_recorded("settings_of_programs", sections)


MORE = [
    ("megatron", "llama-3-8b", {"zero": 2, "dtype": "bfloat16", "gradient_dtype": "bfloat16", "dropout": True}),
    ("megatron", "llama-3-8b", {"zero": 3, "zero_shards": 8, "sharp": True, "flash_attention": False}),
    ("megatron", "llama-3-8b", {"context": 2, "recompute": "full", "recompute_method": "uniform"}),
    ("megatron", "llama-3-8b", {"context": 2, "context_method": "all_to_all", "tensor": 2}),
    (
        "megatron",
        "llama-3-8b",
        {"dtype": "float16", "parameter_dtype": "float16", "activation_dtype": "float16", "optimizer": "muon"},
    ),
    (
        "megatron",
        "llama-3-8b",
        {"dtype": "float32", "parameter_dtype": "float32", "activation_dtype": "float32", "optimizer": "adam"},
    ),
    ("megatron", DEEPSEEK, {"expert": 16, "zero": 1}),
    ("megatron", GPT_2, {"sequence": 1024, "zero": 1}),
    ("maxtext", "llama-3-8b", {"zero": 1}),
    ("maxtext", "llama-3-8b", {"pipeline": 2, "schedule": "gpipe", "batch": 128}),
    ("maxtext", "llama-3-8b", {"zero": 3, "zero_shards": 4, "tensor": 2, "optimizer": "muon", "dtype": "int8"}),
    ("maxtext", "llama-3-8b", {"zero": 3, "context": 2, "flash_attention": False, "context_method": "all_gather"}),
    ("maxtext", "llama-3-8b", {"zero": 3, "offload_activations": True, "offload_optimizer": True}),
    ("maxtext", "llama-3-8b", {"zero": 3, "offload_activations": True, "recompute": "full"}),
    ("maxtext", "llama-3-8b", {"zero": 3, "batch": 16, "dtype": "float8"}),
    ("maxtext", QWEN, {"zero": 3, "expert": 8, "optimizer": "sgd", "parameter_dtype": "float32"}),
    ("maxtext", DEEPSEEK, {"zero": 3, "expert": 16}),
    ("torchtitan", "llama-3-8b", {}),
    ("torchtitan", "llama-3-8b", {"zero": 2, "optimizer": "adam", "parameter_dtype": "float32"}),
    ("torchtitan", DEEPSEEK, {"zero": 3, "expert": 16, "offload_optimizer": True}),
    ("torchtitan", QWEN, {"zero": 3, "tensor": 2, "sequence_parallel": True, "expert_tensor": 2}),
    (
        "deepspeed",
        "llama-3-8b",
        {"dtype": "float32", "parameter_dtype": "float32", "activation_dtype": "float32", "optimizer": "adam"},
    ),
    ("deepspeed", "llama-3-8b", {"zero": 1, "gradient_dtype": "bfloat16", "optimizer": "muon"}),
    ("deepspeed", "mixtral-8x7b", {"zero": 2, "expert": 8, "tensor": 2}),
]


@pytest.mark.parametrize(("program", "model", "values"), MORE)
def test_settings_are_options_of_the_program(program, model, values):
    found = plan(model, **values)
    assert TrainingChoice(found).runs_in(program)
    read(program, found)


@pytest.mark.parametrize("method", ["ring", "all_to_all", "all_gather"])
def test_context_methods_of_maxtext_on_tpus(method):
    found = read("maxtext", plan("llama-3-8b", TPUS, context=4, context_method=method, zero=3))
    assert found["context_parallel_strategy"] == {"all_to_all": "ulysses"}.get(method, method)
    assert found.get("use_tokamax_splash", False) == (method != "all_gather")
    assert (found["ici_context_parallelism"], found["ici_fsdp_parallelism"]) == (4, 4)


def test_shorter_first_and_last_stages():
    found = plan_training(
        "llama-3.1-405b",
        cluster.dgx("h100", nodes=16),
        TrainingConfig(batch=64, sequence=8192, tensor=8, sequence_parallel=True, pipeline=16, zero=1),
    )
    assert [stage.layers for stage in found.stages] == [7, *[8] * 14, 7]
    flags = settings("megatron", found)
    assert "--account-for-embedding-in-pipeline-split \\\n--account-for-loss-in-pipeline-split \\\n" in flags
    replicas = plan_training(found.model, found.cluster, found.config.replaced(zero=0))
    values = tomllib.loads(settings("torchtitan", replicas))["parallelism"]
    assert values["pipeline_parallel_layers_per_stage"] == 8
    assert values["pipeline_parallel_first_stage_less_layers"] == 1
    assert values["pipeline_parallel_last_stage_less_layers"] == 1


@pytest.mark.parametrize(
    ("program", "model", "pinned"),
    [
        ("megatron", "mixtral-8x7b", {}),
        ("maxtext", "llama-3-8b", {"pipeline": 1}),
        ("torchtitan", "llama-3-8b", {"zero": [2, 3], "context_method": "all_gather"}),
        ("deepspeed", "llama-3-8b", {"pipeline": 1, "tensor": 1, "context_method": "all_to_all"}),
    ],
)
def test_options_of_a_search_have_valid_settings(program, model, pinned):
    found = suggest(model, GPUS, batch=64, sequence=4096, top=300, progress=False, **pinned)
    runs = [option.plan for option in found.options if option.runs_in(program)]
    assert len(runs) > 5
    for each in runs:
        read(program, each)
