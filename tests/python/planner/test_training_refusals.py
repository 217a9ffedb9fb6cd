# SPDX-License-Identifier: Apache-2.0
"""Plans that other programs cannot run: the error, and that its advice is right."""

import ast
import re

import pytest
from artifex_devices import models
from artifex_devices.planner import TrainingChoice, plan_training
from program_settings import GPT_2, METHODS, QWEN, plan, read, settings
from recorded_texts import check_recorded

REFUSED = {
    "megatron": [
        ("llama-3-8b", {"pipeline": 2, "schedule": "gpipe"}),
        ("deepseek-v3", {"pipeline": 16, "batch": 16}),
        ("llama-3-8b", {"pipeline": 2, "schedule": "interleaved", "chunks": 6}),
        (GPT_2, {"sequence": 2048}),
        ("mixtral-8x7b", {"tensor": 2, "expert": 4}),
        ("llama-3-8b", {"dtype": "int8"}),
        ("llama-3-8b", {"parameter_dtype": "float32"}),
        ("llama-3-8b", {"activation_dtype": "float32"}),
        ("llama-3-8b", {"gradient_dtype": "float16"}),
        ("llama-3-8b", {"optimizer": "adafactor"}),
        ("llama-3-8b", {"optimizer": "muon", "zero": 3}),
        ("llama-3-8b", {"offload_activations": True}),
        ("llama-3-8b", {"parameter_dtypes": {"norm": "float32"}}),
        ("llama-3-8b", {"gradient_dtypes": {"norm": "bfloat16"}}),
        ("llama-3-8b", {"parameter_scale": 0.03125}),
        ("llama-3-8b", {"causal": False}),
        (models.TransformerShape("four norms", 8, 64, 128, 8, 4, 16, 1024, norms_per_layer=4), {}),
        (models.TransformerShape("biased", 8, 64, 128, 8, 4, 16, 1024, mlp_bias=True), {}),
        (models.TransformerShape("bare", 8, 64, 128, 8, 4, 16, 1024, norm="layer without bias"), {}),
    ],
    "maxtext": [
        ("llama-3-8b", {"pipeline": 2}),
        ("deepseek-v3", {"pipeline": 16, "schedule": "gpipe", "batch": 16}),
        (
            models.TransformerShape("mixed", 8, 64, 128, 8, 8, 24, 1024, 8, 2, dense_layers=2, dense_mlp=256,
                kv_lora_rank=16, rope_head_dim=8, nope_head_dim=16, value_head_dim=16),
            {"pipeline": 2, "schedule": "gpipe"},
        ),
        ("llama-3-8b", {"pipeline": 4, "schedule": "gpipe", "batch": 24}),
        ("mixtral-8x7b", {"tensor": 4, "expert": 8, "expert_tensor": 1, "zero": 3}),
        ("mixtral-8x7b", {"tensor": 2, "zero": 3}),
        ("llama-3-8b", {"zero": 2}),
        ("llama-3-8b", {"context": 2, "context_method": "all_gather", "zero": 1}),
        ("llama-3-8b", {"zero": 1, "zero_shards": 8}),
        ("llama-3-8b", {"context": 2, "context_method": "all_to_all", "zero": 3}),
        ("llama-3-8b", {"zero": 3, "recompute": "full", "recompute_layers": 3}),
        ("mixtral-8x7b", {"zero": 3, "expert": 2, "expert_capacity": 1.0}),
        ("llama-3-8b", {"dtype": "tensorfloat32"}),
        ("llama-3-8b", {"dtype": "float8"}),
        ("llama-3-8b", {"activation_dtype": "float32"}),
        ("llama-3-8b", {"gradient_dtype": "float8_e4m3fn"}),
        ("llama-3-8b", {"optimizer": "adam"}),
        ("llama-3-8b", {"optimizer": "adafactor", "parameter_dtype": "float32"}),
        ("llama-3-8b", {"parameter_dtypes": {"norm": "float32"}}),
        ("llama-3-8b", {"gradient_dtypes": {"norm": "bfloat16"}}),
        ("llama-3-8b", {"parameter_scale": 0.03125}),
        ("llama-3-8b", {"sharp": True}),
        ("llama-3-8b", {"causal": False}),
        (GPT_2, {"sequence": 1024}),
    ],
    "torchtitan": [
        ("llama-2-7b", {"zero": 3}),
        ("llama-3-8b", {"tensor": 2, "zero": 3}),
        (QWEN, {"pipeline": 2, "zero": 3}),
        ("deepseek-v3", {"pipeline": 16, "batch": 16}),
        ("llama-3-8b", {"context": 2, "context_method": "all_to_all", "zero": 3}),
        ("deepseek-v3", {"context": 2, "context_method": "all_gather", "zero": 3}),
        ("llama-3-8b", {"tensor": 2, "sequence_parallel": True}),
        ("llama-3-8b", {"zero": 1}),
        ("llama-3-8b", {"offload_optimizer": True}),
        ("llama-3-8b", {"context": 4, "context_method": "all_gather", "zero": 3, "zero_shards": 2}),
        (QWEN, {"tensor": 2, "sequence_parallel": True, "zero": 3}),
        (QWEN, {"expert": 8, "zero": 3, "zero_shards": 4}),
        (QWEN, {"expert": 8, "zero": 3, "expert_capacity": 1.0}),
        ("llama-3-8b", {"recompute": "selective", "zero": 3}),
        ("llama-3-8b", {"recompute": "full", "recompute_layers": 3, "zero": 3}),
        ("llama-3-8b", {"offload_activations": True, "zero": 3}),
        ("llama-3-8b", {"dtype": "float16"}),
        ("deepseek-v3", {"tensor": 2, "sequence_parallel": True, "expert": 8, "zero": 3, "dtype": "float8"}),
        ("llama-3-8b", {"activation_dtype": "float32"}),
        ("llama-3-8b", {"gradient_dtype": "bfloat16"}),
        ("llama-3-8b", {"optimizer": "muon"}),
        ("llama-3-8b", {"optimizer": "adam"}),
        ("llama-3-8b", {"parameter_dtypes": {"norm": "float32"}}),
        ("llama-3-8b", {"gradient_dtypes": {"norm": "bfloat16"}}),
        ("llama-3-8b", {"parameter_scale": 0.03125}),
        ("llama-3-8b", {"dropout": True}),
        ("llama-3-8b", {"flash_attention": False}),
        ("llama-3-8b", {"sharp": True}),
        ("llama-3-8b", {"causal": False}),
    ],
    "deepspeed": [
        ("llama-3-8b", {"pipeline": 2, "zero": 1}),
        ("llama-3-8b", {"context": 2, "zero": 1}),
        ("llama-3-8b", {"context": 2, "context_method": "all_to_all", "tensor": 2, "zero": 1}),
        ("llama-3-8b", {"tensor": 2, "sequence_parallel": True, "zero": 1}),
        ("llama-3-8b", {"tensor": 2, "zero": 3}),
        ("llama-3-8b", {"tensor": 16, "zero": 1}),
        ("llama-3-8b", {}),
        ("mixtral-8x7b", {"tensor": 2, "expert_tensor": 2, "zero": 1}),
        ("mixtral-8x7b", {"expert": 8, "expert_capacity": 1.0, "zero": 1}),
        ("mixtral-8x7b", {"expert": 8, "context": 2, "context_method": "all_to_all", "zero": 1}),
        ("mixtral-8x7b", {"expert": 8, "zero": 3, "zero_shards": 8}),
        ("mixtral-8x7b", {"expert": 8, "tensor": 2, "zero": 1, "offload_optimizer": True}),
        ("llama-3-8b", {"zero": 2, "zero_shards": 8}),
        (
            "llama-3-8b",
            {"dtype": "float16", "parameter_dtype": "float16", "activation_dtype": "float16",
             "offload_optimizer": True},
        ),
        ("llama-3-8b", {"zero": 1, "recompute": "selective"}),
        ("llama-3-8b", {"zero": 1, "recompute": "full", "recompute_layers": 3}),
        ("llama-3-8b", {"zero": 1, "offload_activations": True}),
        ("llama-3-8b", {"zero": 1, "dtype": "float8"}),
        ("llama-3-8b", {"zero": 1, "parameter_dtype": "float32"}),
        ("llama-3-8b", {"zero": 1, "activation_dtype": "float32"}),
        ("llama-3-8b", {"zero": 1, "gradient_dtype": "float16"}),
        ("llama-3-8b", {"zero": 1, "optimizer": "adafactor"}),
        ("llama-3-8b", {"zero": 1, "parameter_dtypes": {"norm": "float32"}}),
        ("llama-3-8b", {"zero": 1, "gradient_dtypes": {"norm": "bfloat16"}}),
        ("llama-3-8b", {"zero": 1, "parameter_scale": 0.03125}),
        ("llama-3-8b", {"zero": 1, "sharp": True}),
    ],
}  # fmt: skip


def refusal(program, found):
    """Returns the message of the error, without the name of the operation."""
    choice = TrainingChoice(found)
    assert not choice.runs_in(program)
    with pytest.raises(ValueError, match=f"TrainingChoice.{METHODS[program]}: ") as error:
        settings(program, found)
    return str(error.value).split(": ", 1)[1]


def test_recorded_refusals():
    sections = {}
    for program, rows in REFUSED.items():
        for model, values in rows:
            name = model if isinstance(model, str) else model.name
            title = f"{program}: {name}{''.join(f', {key}={value}' for key, value in values.items())}"
            sections[title] = refusal(program, plan(model, **values))
    check_recorded("settings_that_are_refused", sections)


@pytest.mark.parametrize(("program", "row"), [(program, row) for program, rows in REFUSED.items() for row in rows])
def test_the_advice_leads_to_a_configuration_that_runs(program, row):
    found = plan(row[0], **row[1])
    for _ in range(8):
        if TrainingChoice(found).runs_in(program):
            read(program, found)
            return
        advice = re.search(r"; plan it with (\w+)=(.*)$", refusal(program, found))
        if advice is None:  # it is about the model
            assert re.search("; plan (a model with|its nearest)", refusal(program, found))
            return
        change = {advice[1]: ast.literal_eval(advice[2])}
        if change == {"pipeline": 1}:
            change["schedule"] = "1f1b"
        found = plan_training(found.model, found.cluster, found.config.replaced(data=None, **change))
    raise AssertionError(refusal(program, found))
