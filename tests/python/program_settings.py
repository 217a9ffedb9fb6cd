# SPDX-License-Identifier: Apache-2.0
"""Settings of training programs, read as the programs do and checked against recorded lists of their options."""

import argparse
import json
import math
import re
import shlex
import tomllib
from pathlib import Path

from artifex_devices import cluster, models
from artifex_devices.planner import TrainingChoice, TrainingConfig, plan_training

LISTS = Path(__file__).parents[1] / "data" / "programs"
GPUS, TPUS = cluster.dgx("h100", nodes=2), cluster.tpu("v5e", (4, 4))
METHODS = {
    "megatron": "to_megatron_flags",
    "maxtext": "to_maxtext_flags",
    "torchtitan": "to_torchtitan_toml",
    "deepspeed": "to_deepspeed_json",
}
QWEN = models.TransformerShape("qwen3-30b-a3b", 48, 2048, 768, 32, 4, 128, 151936, 128, 8, query_key_norm=True)
DEEPSEEK = models.SHAPES["deepseek-v3"]
GPT_2 = models.TransformerShape(
    "gpt-2", 12, 768, 3072, 12, 12, 64, 50257, positions=1024, norm="layer", gated_mlp=False, qkv_bias=True,
    attention_out_bias=True, mlp_bias=True, tied_embeddings=True,
)  # fmt: skip


def plan(model, on=GPUS, **values):
    return plan_training(model, on, TrainingConfig(**{"batch": 64, "sequence": 4096, **values}))


def settings(program, found):
    return getattr(TrainingChoice(found), METHODS[program])()


# --- Reading settings as the programs do ---


def options_of(program):
    return json.loads((LISTS / f"{program}.json").read_text(encoding="utf-8"))["options"]


def check_value(name, value, option):
    """Checks the type of a value, and that it is one of the choices."""
    kinds = {"int": int, "float": float, "str": str, "bool": bool, "list[str]": list}
    assert type(value) is kinds[option["type"]], (name, value, option)
    for each in value if isinstance(value, list) else [value]:
        assert each in option.get("choices", [each]), (name, value, option)


def read_megatron(text):
    parser = argparse.ArgumentParser(allow_abbrev=False, exit_on_error=False)
    for name, option in options_of("megatron").items():
        kind = {"int": int, "float": float, "str": str}.get(option["type"])
        if kind is None:
            parser.add_argument(name, action="store_true")
        else:
            many = {"nargs": "+"} if option.get("many") else {}
            parser.add_argument(name, type=kind, choices=option.get("choices"), **many)
    return {
        name: value
        for name, value in vars(parser.parse_args(shlex.split(text.replace("\\\n", " ")))).items()
        if value not in (None, False)
    }


def read_maxtext(text):
    options, values = options_of("maxtext"), {}
    for line in text.splitlines():
        name, value = line.split("=", 1)
        kind = options[name]["type"]
        read_value = {"int": int, "float": float, "bool": {"true": True, "false": False}.__getitem__}.get(kind, str)
        values[name] = read_value(value)
    return values


def flat(tree, prefix=""):
    found = {}
    for name, value in tree.items():
        found |= flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return found


READERS = {
    "megatron": read_megatron,
    "maxtext": read_maxtext,
    "torchtitan": lambda text: flat(tomllib.loads(text)),
    "deepspeed": lambda text: flat(json.loads(text)),
}


def read(program, found):
    """Reads the settings of a plan, checks them against the list, and the batch and devices against the plan."""
    values = READERS[program](settings(program, found))
    if program != "megatron":  # whose values argparse has checked
        options = options_of(program)
        for name, value in values.items():
            check_value(name, value, options[name])
    devices, batch = CHECKS[program](values, found.devices)
    assert (devices, batch) == (found.devices, found.config.batch)
    return values


def check_megatron(values, devices):
    ways = ("tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size")
    others = math.prod(values[way] for way in ways)
    data = devices // others
    batch = values["global_batch_size"]
    assert batch % (values["micro_batch_size"] * data) == 0
    if "expert_model_parallel_size" in values:
        ranks = values["expert_model_parallel_size"] * values["expert_tensor_parallel_size"]
        assert devices // values["pipeline_model_parallel_size"] % ranks == 0
    return data * others, batch


def check_maxtext(values, devices):
    sizes = [value for name, value in values.items() if re.fullmatch("(ici|dcn)_.*_parallelism", name)]
    across = math.prod(value for name, value in values.items() if name.startswith("dcn_"))
    assert across == (2 if values["hardware"] == "gpu" else 1)
    batch = values["per_device_batch_size"] * devices * values["gradient_accumulation_steps"]
    assert batch / values["gradient_accumulation_steps"] % values.get("num_pipeline_microbatches", 1) == 0
    return math.prod(sizes), batch


def check_torchtitan(values, devices):
    ways = [
        "data_parallel_replicate",
        "data_parallel_shard",
        "tensor_parallel",
        "pipeline_parallel",
        "context_parallel",
    ]
    degrees = {way: values[f"parallelism.{way}_degree"] for way in ways}
    data = degrees["data_parallel_replicate"] * degrees["data_parallel_shard"]
    assert values["training.global_batch_size"] % (values["training.local_batch_size"] * data) == 0
    if "parallelism.expert_parallel_degree" in values:
        ranks = degrees["data_parallel_shard"] * degrees["context_parallel"] * degrees["tensor_parallel"]
        experts = values["parallelism.expert_parallel_degree"] * values["parallelism.expert_tensor_parallel_degree"]
        assert ranks % experts == 0
    return math.prod(degrees.values()), values["training.global_batch_size"]


def check_deepspeed(values, devices):
    others = values.get("tensor_parallel.autotp_size", 1) * values.get("sequence_parallel_size", 1)
    data = devices // others
    assert values.get("data_parallel_size", data) == data
    steps = values["train_micro_batch_size_per_gpu"] * values["gradient_accumulation_steps"]
    assert values["train_batch_size"] == steps * data
    return data * others, values["train_batch_size"]


CHECKS = {
    "megatron": check_megatron,
    "maxtext": check_maxtext,
    "torchtitan": check_torchtitan,
    "deepspeed": check_deepspeed,
}
