# SPDX-License-Identifier: Apache-2.0
"""Settings of DeepSpeed for a plan: the JSON file for deepspeed.initialize. The model's code is the user's."""

from __future__ import annotations

import json
from collections.abc import Iterator

from artifex_devices.planner.training.code.limits import Limit, first_problem
from artifex_devices.planner.training.plan import TrainingPlan

#: version.txt of the commit whose settings tests/data/programs/deepspeed.json has.
NAME = "DeepSpeed 0.19.6"

_DTYPES = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}
#: Fields of a search for this program: few of the fastest configurations run in it without them.
SEARCH: dict[str, object] = {"pipeline": 1, "tensor": 1, "context_method": "all_to_all"}


def problem(plan: TrainingPlan) -> str | None:
    """Returns why DeepSpeed cannot run the plan by its settings, or None."""
    return first_problem(NAME, plan, (), _limits(plan))


def _limits(plan: TrainingPlan) -> Iterator[Limit]:
    config = plan.config
    yield config.pipeline > 1, "pipeline", 1, "stages are made by the model's code and not by its settings"
    reason = "its sequence parallelism exchanges heads"
    yield config.context > 1 and config.context_method != "all_to_all", "context_method", "all_to_all", reason
    reason = "its settings shard matrices or sequences, not both"
    yield config.context > 1 and config.tensor > 1, "tensor", 1, reason
    reason = "its tensor parallelism keeps whole activations between matrices"
    yield config.tensor > 1 and config.sequence_parallel, "sequence_parallel", False, reason
    yield config.tensor > 1 and config.zero == 3, "zero", 2, "it has tensor parallelism with ZeRO 0 to 2"
    reason = "its ranks beyond the heads of keys and values would have no attention to compute"
    yield config.tensor > plan.model.kv_heads, "tensor", plan.model.kv_heads, reason
    reason = "without ZeRO it keeps no float32 copy of bfloat16 parameters"
    yield config.zero == 0 and config.dtype == "bfloat16", "zero", 1, reason
    yield from _expert_limits(plan)
    reason = "it shards over fewer ranks only with ZeRO 3"
    ranks = (config.data or 1) * config.context
    is_hybrid = config.zero > 0 and config.zero_shards not in (None, ranks)
    yield is_hybrid and config.zero < 3, "zero_shards", None, reason
    yield config.zero == 0 and config.offload_optimizer, "zero", 1, "it offloads only with ZeRO"
    reason = "what is recomputed in part is chosen by the model's code"
    yield config.recompute == "selective", "recompute", "full", reason
    yield config.recompute == "full" and config.recompute_layers is not None, "recompute_layers", None, reason
    reason = "it offloads only the inputs of recomputed layers"
    yield config.offload_activations and config.recompute != "full", "recompute", "full", reason
    yield from _number_limits(plan)
    yield config.sharp, "sharp", False, "it has no setting for SHARP"


def _expert_limits(plan: TrainingPlan) -> Iterator[Limit]:
    config = plan.config
    yield (config.expert_tensor or 1) > 1, "expert_tensor", 1, "it does not shard single experts"
    if config.expert == 1:
        return
    yield config.expert_capacity is not None, "expert_capacity", None, "it routes every token to its experts"
    yield config.context > 1, "context", 1, "it spreads experts only where sequences are whole"
    yield (
        config.zero == 3 and config.zero_shards is not None,
        "zero_shards",
        None,
        "its experts need all ranks of ZeRO 3",
    )
    reason = "it does not offload experts with tensor parallelism"
    yield config.tensor > 1 and config.offload_optimizer, "offload_optimizer", False, reason


def _number_limits(plan: TrainingPlan) -> Iterator[Limit]:
    config = plan.config
    yield config.dtype not in _DTYPES, "dtype", "bfloat16", f"its settings are for {', '.join(_DTYPES)}"
    for name in ("parameter_dtype", "activation_dtype"):
        yield str(getattr(config, name)) != config.dtype, name, config.dtype, f"the model is {config.dtype} as well"
    gradients = dict.fromkeys((config.dtype, "float32") if config.zero else (config.dtype,))
    reason = f"its gradients are {' or '.join(gradients)} with dtype={config.dtype!r}"
    yield str(config.gradient_dtype) not in gradients, "gradient_dtype", list(gradients)[-1], reason
    optimizers = ("adam", "muon") if config.dtype == "float32" else ("adamw-fp32-master", "muon")
    reason = f"its optimizers for {config.dtype} are AdamW and Muon"
    yield config.optimizer not in optimizers, "optimizer", optimizers[0], reason
    yield bool(config.parameter_dtypes), "parameter_dtypes", {}, "all its parameters have one dtype"
    yield bool(config.gradient_dtypes), "gradient_dtypes", {}, "all its gradients have one dtype"
    yield config.parameter_scale > 0, "parameter_scale", 0.0, "its parameters have no scales"


def settings(plan: TrainingPlan) -> str:
    """Returns the file."""
    config = plan.config
    content: dict[str, object] = {
        "train_batch_size": config.batch,
        "train_micro_batch_size_per_gpu": config.microbatch,
        "gradient_accumulation_steps": plan.microbatches,
        "zero_optimization": _zero(plan),
        "optimizer": {"type": "Muon" if config.optimizer == "muon" else "AdamW"},
    }
    if config.dtype != "float32":
        content[_DTYPES[config.dtype]] = {"enabled": True}
        content["data_types"] = {"grad_accum_dtype": _DTYPES[str(config.gradient_dtype)]}
    if config.tensor > 1:
        content["tensor_parallel"] = {"autotp_size": config.tensor}
    if config.context > 1:
        content |= {"sequence_parallel_size": config.context, "data_parallel_size": config.data or 1}
    if config.expert > 1:
        content["expert_parallel"] = {"enabled": True, "autoep_size": config.expert}
    if config.recompute == "full":
        content["activation_checkpointing"] = {"cpu_checkpointing": config.offload_activations}
    return json.dumps(content, indent=2) + "\n"


def _zero(plan: TrainingPlan) -> dict[str, object]:
    config = plan.config
    values: dict[str, object] = {"stage": config.zero, "overlap_comm": config.overlap["data"] > 0}
    if config.zero and config.zero_shards not in (None, (config.data or 1) * config.context):
        values["mics_shard_size"] = config.zero_shards
    if config.offload_optimizer:
        values["offload_optimizer"] = {"device": "cpu"}
    return values
