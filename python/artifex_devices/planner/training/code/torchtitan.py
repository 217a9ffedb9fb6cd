# SPDX-License-Identifier: Apache-2.0
"""Settings of torchtitan for a plan: the TOML file that its train.py reads.

Releases after 0.2.2 are configured in Python: commit 9810191b removed the files.
"""

from __future__ import annotations

from collections.abc import Iterator

from artifex_devices.planner.shape import TransformerShape
from artifex_devices.planner.training.code.limits import Limit, first_problem, stage_limits
from artifex_devices.planner.training.plan import TrainingPlan

#: The release whose settings tests/data/programs/torchtitan.json has.
NAME = "torchtitan 0.2.2"

#: Layers, width, heads, heads of keys and values, width of the MLP or of an expert, and experts of its models. Sizes of
#: the vocabulary differ, because torchtitan takes them from the tokenizer.
_MODELS: dict[tuple[int, ...], tuple[str, str]] = {
    (32, 4096, 32, 8, 14336, 0): ("llama3", "8B"),
    (80, 8192, 64, 8, 28672, 0): ("llama3", "70B"),
    (126, 16384, 128, 8, 53248, 0): ("llama3", "405B"),
    (28, 1024, 16, 8, 3072, 0): ("qwen3", "0.6B"),
    (28, 2048, 16, 8, 6144, 0): ("qwen3", "1.7B"),
    (36, 2560, 32, 8, 9728, 0): ("qwen3", "4B"),
    (36, 4096, 32, 8, 12288, 0): ("qwen3", "8B"),
    (40, 5120, 40, 8, 17408, 0): ("qwen3", "14B"),
    (64, 5120, 64, 8, 25600, 0): ("qwen3", "32B"),
    (48, 2048, 32, 4, 768, 128): ("qwen3", "30B-A3B"),
    (94, 4096, 64, 4, 1536, 128): ("qwen3", "235B-A22B"),
    (27, 2048, 16, 16, 1408, 64): ("deepseek_v3", "16B"),
    (60, 5120, 128, 128, 1536, 160): ("deepseek_v3", "236B"),
    (61, 7168, 128, 128, 2048, 256): ("deepseek_v3", "671B"),
    (24, 2880, 64, 8, 2880, 32): ("gpt_oss", "20b"),
    (36, 2880, 64, 8, 2880, 128): ("gpt_oss", "120b"),
}
_SCHEDULES = {"1f1b": "1F1B", "gpipe": "GPipe", "interleaved": "Interleaved1F1B"}


def _sizes(shape: TransformerShape) -> tuple[int, ...]:
    return (shape.layers, shape.embed, shape.heads, shape.kv_heads, shape.mlp, shape.experts)


def _distance(some: tuple[int, ...], others: tuple[int, ...]) -> float:
    return sum(abs(a - b) / max(a, b, 1) for a, b in zip(some, others, strict=True))


#: Fields of a search for this program: few of the fastest configurations run in it without them.
SEARCH: dict[str, object] = {"offload_activations": False}


def problem(plan: TrainingPlan) -> str | None:
    """Returns why torchtitan cannot run the plan, or None."""
    shape = plan.model
    if _sizes(shape) not in _MODELS:
        nearest = min(_MODELS, key=lambda sizes: _distance(sizes, _sizes(shape)))
        return (
            f"{NAME} cannot run {shape.name}, because none of its {len(_MODELS)} models has these sizes; "
            f"plan its nearest, {' '.join(_MODELS[nearest])}, or write settings for another program"
        )
    return first_problem(NAME, plan, (), _limits(plan, _MODELS[_sizes(shape)][0]))


def _limits(plan: TrainingPlan, family: str) -> Iterator[Limit]:
    config, tensor = plan.config, plan.config.tensor
    reason = "its tensor parallelism always shards the sequence between matrices"
    yield tensor > 1 and not config.sequence_parallel, "sequence_parallel", True, reason
    yield config.pipeline > 1 and family in ("qwen3", "gpt_oss"), "pipeline", 1, f"its {family} models have no stages"
    yield from stage_limits(plan, 2)
    is_all_gather = config.context_method == "all_gather"
    reason = "it gathers keys and values"
    yield config.context > 1 and not is_all_gather, "context_method", "all_gather", reason
    has_attention = family in ("llama3", "qwen3")
    yield config.context > 1 and not has_attention, "context", 1, f"its {family} models have no context parallelism"
    reason = "its sequences are cut into 2 x context x tensor equal parts"
    yield config.sequence % (tensor * (2 * config.context if config.context > 1 else 1)) != 0, "context", 1, reason
    yield from _sharding_limits(plan)
    reason = "it routes every token to its experts"
    yield config.expert_capacity is not None, "expert_capacity", None, reason
    reason = "its own selective mode recomputes other operations"
    yield config.recompute == "selective", "recompute", "full", reason
    layers = max(stage.layers for stage in plan.stages) if config.recompute_method == "block" else 1
    is_partial = config.recompute_layers not in (None, layers)
    yield config.recompute == "full" and is_partial, "recompute_layers", None, "it recomputes all layers or none"
    yield config.offload_activations, "offload_activations", False, "it offloads parameters and optimizer state only"
    yield from _number_limits(plan)
    reason = "its deepseek_v3 models have no tensor parallelism in float8"
    yield family == "deepseek_v3" and config.dtype == "float8" and tensor > 1, "dtype", "bfloat16", reason
    yield config.dropout, "dropout", False, "its models have no dropout"
    yield not config.flash_attention, "flash_attention", True, "it calls PyTorch's fused attention"
    yield config.sharp, "sharp", False, "it has no setting for SHARP"
    yield not config.causal, "causal", True, "its decoders mask later tokens"


def _sharding_limits(plan: TrainingPlan) -> Iterator[Limit]:
    config = plan.config
    data, tensor, expert = config.data or 1, config.tensor, config.expert
    others = max(tensor, config.context, config.pipeline, expert)
    reason = "it replicates parameters only where data is the only parallelism"
    yield config.zero == 0 and data * config.context > 1 and others > 1, "zero", 3, reason
    reason = "its FSDP shards gradients and parameters too"
    yield config.zero == 1, "zero", 2, reason
    yield config.zero == 0 and config.offload_optimizer, "zero", 3, "it offloads only with FSDP"
    shards = config.zero_shards or data * config.context
    reason = "its FSDP shards over multiples of context"
    yield config.zero > 1 and shards % config.context != 0, "zero_shards", None, reason
    expert_tensor = config.expert_tensor or 1
    if plan.model.experts and expert == 1:
        reason = "its tensor parallelism shards experts that are not spread"
        yield expert_tensor != tensor, "expert_tensor", tensor, reason
    elif plan.model.experts:
        reason = "its experts are spread within the ranks of FSDP and tensor"
        yield shards * tensor % (expert * expert_tensor) != 0, "zero_shards", None, reason


def _number_limits(plan: TrainingPlan) -> Iterator[Limit]:
    config = plan.config
    formats = ("bfloat16", "float32", "float8")
    yield config.dtype not in formats, "dtype", "bfloat16", f"it computes in {', '.join(formats)}"
    compute = "float32" if config.dtype == "float32" else "bfloat16"
    reason = f"its activations are {compute} with dtype={config.dtype!r}"
    yield str(config.activation_dtype) != compute, "activation_dtype", compute, reason
    yield str(config.gradient_dtype) != "float32", "gradient_dtype", "float32", "it reduces gradients in float32"
    has_master = config.optimizer == "adamw-fp32-master"
    reason = "its optimizers are Adam and AdamW"
    yield not has_master and config.optimizer != "adam", "optimizer", "adamw-fp32-master", reason
    parameters = compute if has_master else "float32"
    reason = f"its parameters are float32{', and converted for products' if has_master else ''}"
    yield str(config.parameter_dtype) not in (parameters, "float32"), "parameter_dtype", parameters, reason
    yield bool(config.parameter_dtypes), "parameter_dtypes", {}, "all its parameters have one dtype"
    yield bool(config.gradient_dtypes), "gradient_dtypes", {}, "all its gradients have one dtype"
    yield config.parameter_scale > 0, "parameter_scale", 0.0, "its parameters have no scales"


def settings(plan: TrainingPlan) -> str:
    """Returns the file."""
    nodes = max(1, plan.devices * plan.cluster.slices // plan.cluster.device_count)
    lines = [f"# {plan.model.name}: torchrun --nnodes {nodes} --nproc-per-node {plan.devices // nodes}"]
    for section, values in _sections(plan).items():
        lines += ["", f"[{section}]", *(f"{name} = {_text(value)}" for name, value in values.items())]
    return "\n".join(lines) + "\n"


def _text(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)


def _sections(plan: TrainingPlan) -> dict[str, dict[str, object]]:
    config = plan.config
    name, flavor = _MODELS[_sizes(plan.model)]
    model: dict[str, object] = {"name": name, "flavor": flavor}
    sections: dict[str, dict[str, object]] = {
        "model": model,
        "optimizer": {"name": "AdamW"},
        "training": _training(plan),
        "parallelism": _parallelism(plan),
        "activation_checkpoint": {"mode": config.recompute},
        "compile": {"enable": True},
    }
    if config.dtype == "float8":
        model["converters"] = ["quantize.linear.float8"]
        sections["quantize.linear.float8"] = {
            "enable_fsdp_float8_all_gather": config.zero > 1,
            "filter_fqns": ["output"],
        }
    return sections


def _training(plan: TrainingPlan) -> dict[str, object]:
    config = plan.config
    microbatches = plan.microbatches if config.pipeline > 1 else 1  # otherwise, steps that accumulate gradients
    return {
        "local_batch_size": config.microbatch * microbatches,
        "global_batch_size": config.batch,
        "seq_len": config.sequence,
        "dtype": "float32",
        "mixed_precision_param": "float32" if config.dtype == "float32" else "bfloat16",
        "mixed_precision_reduce": "float32",
        "enable_cpu_offload": config.offload_optimizer,
    }


def _parallelism(plan: TrainingPlan) -> dict[str, object]:
    config, layers = plan.config, plan.model.layers
    data = config.data or 1
    shards = (config.zero_shards or data * config.context) // config.context if config.zero else 1
    values: dict[str, object] = {
        "data_parallel_replicate_degree": data // shards,
        "data_parallel_shard_degree": shards,
        "tensor_parallel_degree": config.tensor,
        "pipeline_parallel_degree": config.pipeline,
        "context_parallel_degree": config.context,
    }
    if config.zero > 1:
        values["fsdp_reshard_after_forward"] = "always" if config.zero == 3 else "never"
    if config.pipeline > 1:
        stages = config.pipeline * config.chunks
        missing = -layers % stages
        values |= {
            "pipeline_parallel_schedule": _SCHEDULES[config.schedule],
            "pipeline_parallel_microbatch_size": config.microbatch,
            "pipeline_parallel_layers_per_stage": (layers + missing) // stages,
            "pipeline_parallel_first_stage_less_layers": int(missing == 2),
            "pipeline_parallel_last_stage_less_layers": int(missing > 0),
        }
    if config.context > 1:
        values["context_parallel_rotate_method"] = "allgather"
    if plan.model.experts:
        values["expert_parallel_degree"] = config.expert
        values["expert_tensor_parallel_degree"] = config.expert_tensor or 1
    return values
