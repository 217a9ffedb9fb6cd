# SPDX-License-Identifier: Apache-2.0
"""Settings of MaxText for a plan: arguments after the path of its configs/base.yml."""

from __future__ import annotations

import math
from collections.abc import Iterator

from artifex_devices.planner.training.code.limits import Limit, first_problem, stage_limits
from artifex_devices.planner.training.plan import TrainingPlan

Settings = dict[str, "int | float | str | bool"]

#: The commit whose settings tests/data/programs/maxtext.json has.
NAME = "MaxText (commit e591f30c)"

_NO_SETTING = (
    "linear_value_heads", "gated_attention", "joint_query_key_norm", "embedding_norm", "parallel_layers",
    "other_parameters", "head_bias", "expert_period", "norms_per_layer", "norm", "window", "attention_sinks",
    "positions", "shared_gate", "qkv_bias", "attention_out_bias", "mlp_bias", "gated_mlp",
)  # fmt: skip
_CONTEXT = {"ring": "ring", "all_gather": "all_gather", "all_to_all": "ulysses"}
_FORMATS = ("bfloat16", "float16", "float32", "float8", "int8")
#: Fields of a search for this program.
SEARCH: dict[str, object] = {}


def problem(plan: TrainingPlan) -> str | None:
    """Returns why MaxText cannot run the plan, or None."""
    shape = plan.model
    is_deepseek = shape.kv_lora_rank > 0 and shape.experts > 0
    fields = [*_NO_SETTING, *(() if is_deepseek else ("kv_lora_rank", "shared_experts", "dense_layers", "router_bias"))]
    return first_problem(NAME, plan, fields, _limits(plan))


def _limits(plan: TrainingPlan) -> Iterator[Limit]:
    config, shape = plan.config, plan.model
    on_tpu, data = plan.cluster.platform == "tpu", config.data or 1
    reason = "it runs the forward passes of all microbatches before the first backward pass"
    yield config.pipeline > 1 and config.schedule != "gpipe", "schedule", "gpipe", reason
    yield from stage_limits(plan, 0)
    yield config.pipeline > 1 and shape.dense_layers > 0, "pipeline", 1, "it pipelines only the layers with experts"
    unit = data * config.microbatch * config.pipeline
    reason = f"its {plan.microbatches} microbatches are not a multiple of the {config.pipeline} stages"
    yield config.batch % unit != 0 and config.pipeline > 1, "batch", -(-config.batch // unit) * unit, reason
    yield data % config.expert != 0, "expert", math.gcd(data, config.expert), "its experts are spread over data ranks"
    shared = config.tensor if shape.experts else 1
    reason = "its tensor axis shards experts too"
    yield (config.expert_tensor or 1) != shared, "expert_tensor", shared, reason
    reason = "it has ZeRO 1, for the optimizer, and ZeRO 3"
    yield config.zero == 2, "zero", 3, reason
    reason = "it shards parameters over the axes of contexts and experts"
    yield config.zero < 3 and max(config.context, config.expert) > 1, "zero", 3, reason
    within = config.context * config.expert if config.zero == 3 else data
    shards = config.zero_shards or data * config.context
    reason = f"it shards over {'context x expert' if config.zero == 3 else 'all data'} ranks or multiples of them"
    yield config.zero > 0 and shards % within != 0, "zero_shards", None, reason
    yield from _attention_limits(plan, on_tpu=on_tpu)
    reason = "it recomputes all layers or none"
    yield config.recompute == "full" and not _recomputes_all(plan), "recompute_layers", None, reason
    reason = "it always pads the tokens of an expert to its capacity"
    has_capacity = config.expert_capacity is not None
    yield has_capacity and not config.expert_padding, "expert_padding", True, reason
    yield from _number_limits(plan, on_tpu=on_tpu)
    yield config.sharp, "sharp", False, "it has no setting for SHARP"
    yield not config.causal, "causal", True, "its decoders mask later tokens"


def _attention_limits(plan: TrainingPlan, *, on_tpu: bool) -> Iterator[Limit]:
    config, shape = plan.config, plan.model
    if config.context == 1:
        return
    method = "context_method"
    is_ring, is_all_to_all = config.context_method == "ring", config.context_method == "all_to_all"
    yield is_all_to_all and not on_tpu, method, "all_gather", "it exchanges heads only on TPUs"
    reason = f"the {shape.kv_heads} heads of keys and values are not a multiple of context"
    yield is_all_to_all and shape.kv_heads % config.context != 0, method, "all_gather", reason
    reason = "its ring on TPUs needs an even context whose square divides the sequence"
    fits_ring = config.context % 2 == 0 and config.sequence % config.context**2 == 0
    yield is_ring and on_tpu and not fits_ring, method, "all_gather", reason
    needs_flash = is_all_to_all or (is_ring and on_tpu)
    yield needs_flash and shape.kv_lora_rank > 0, method, "all_gather", "it cannot use it with latent attention"
    yield needs_flash and not config.flash_attention, "flash_attention", True, "this context_method needs it"


def _number_limits(plan: TrainingPlan, *, on_tpu: bool) -> Iterator[Limit]:
    config = plan.config
    yield config.dtype not in _FORMATS, "dtype", "bfloat16", f"it computes in {', '.join(_FORMATS)}"
    yield config.dtype == "float8" and on_tpu, "dtype", "bfloat16", "its setting for float8 is for GPUs"
    accumulates = config.pipeline == 1 and plan.microbatches > 1
    reason = "it does not accumulate gradients over microbatches in float8"
    yield config.dtype == "float8" and accumulates, "dtype", "bfloat16", reason
    compute = config.dtype if config.dtype in ("float16", "float32") else "bfloat16"
    reason = f"its activations are {compute} with dtype={config.dtype!r}"
    yield str(config.activation_dtype) != compute, "activation_dtype", compute, reason
    gradients = ("float32", "bfloat16", "float16")
    reason = f"its gradients are {', '.join(gradients)}"
    yield str(config.gradient_dtype) not in gradients, "gradient_dtype", "float32", reason
    has_master = config.optimizer in ("adamw-fp32-master", "muon")
    parameters = compute if has_master else "float32"
    reason = f"its weights are float32 for this optimizer{', converted for products' if has_master else ''}"
    is_right = str(config.parameter_dtype) in ((compute, "float32") if has_master else ("float32",))
    yield not is_right, "parameter_dtype", parameters, reason
    yield config.optimizer == "adafactor", "optimizer", "adamw-fp32-master", "its optimizers are AdamW, SGD and Muon"
    yield bool(config.parameter_dtypes), "parameter_dtypes", {}, "all its parameters have one dtype"
    yield bool(config.gradient_dtypes), "gradient_dtypes", {}, "all its gradients have one dtype"
    yield config.parameter_scale > 0, "parameter_scale", 0.0, "its parameters have no scales"


def _recomputes_all(plan: TrainingPlan) -> bool:
    layers = plan.config.recompute_layers
    if plan.config.recompute_method == "uniform":
        return layers in (None, 1)
    return layers is None or layers >= max(stage.layers for stage in plan.stages)


def settings(plan: TrainingPlan) -> str:
    """Returns the settings, one per line."""
    values = {**_model(plan), **_batch(plan), **_mesh(plan), **_memory(plan), **_numbers(plan)}
    return "".join(f"{name}={_text(value)}\n" for name, value in values.items())


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _model(plan: TrainingPlan) -> Settings:
    shape = plan.model
    block = "mixtral" if shape.experts else "llama2"
    if shape.query_key_norm:
        block = "qwen3_moe" if shape.experts else "qwen3"
    values: Settings = {
        "decoder_block": "deepseek" if shape.kv_lora_rank else block,
        "base_num_decoder_layers": shape.layers,
        "base_emb_dim": shape.embed,
        "base_mlp_dim": shape.dense_mlp or shape.mlp,
        "base_num_query_heads": shape.heads,
        "base_num_kv_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "vocab_size": shape.vocab,
        "logits_via_embedding": shape.tied_embeddings,
        "enable_dropout": plan.config.dropout,
    }
    if shape.query_key_norm:
        values["use_qk_norm"] = True
    if shape.kv_lora_rank:
        values |= {"attention_type": "mla", "q_lora_rank": shape.q_lora_rank, "kv_lora_rank": shape.kv_lora_rank}
        values |= {"qk_nope_head_dim": shape.nope_head_dim, "qk_rope_head_dim": shape.rope_head_dim}
        values["v_head_dim"] = shape.value_head_dim
    if shape.experts:
        values |= {"num_experts": shape.experts, "num_experts_per_tok": shape.experts_per_token}
        values["base_moe_mlp_dim"] = shape.mlp
        values["megablox"] = plan.cluster.platform == "tpu" and plan.config.expert_capacity is None
    if shape.dense_layers:
        values["first_num_dense_layers"] = shape.dense_layers
    if shape.shared_experts:
        values["shared_experts"] = shape.shared_experts * shape.shared_mlp // shape.mlp
    if shape.expert_groups:
        values |= {"n_routing_groups": shape.expert_groups, "topk_routing_group": shape.groups_per_token}
    if shape.router_bias:
        values |= {"routed_bias": True, "routed_score_func": "sigmoid"}
    return values


def _batch(plan: TrainingPlan) -> Settings:
    """Returns the batch: microbatches are those of the pipeline, or steps that accumulate gradients."""
    config = plan.config
    steps = 1 if config.pipeline > 1 else plan.microbatches
    values: Settings = {
        "max_target_length": config.sequence,
        "per_device_batch_size": config.batch / steps / plan.devices,
        "gradient_accumulation_steps": steps,
    }
    if config.pipeline > 1:
        values["num_pipeline_microbatches"] = plan.microbatches
        values["num_layers_per_pipeline_stage"] = plan.model.layers // config.pipeline
    return values


def _mesh(plan: TrainingPlan) -> Settings:
    """Returns the size of each axis within a slice or node (ici), and between them (dcn), the slowest axes first."""
    config, cluster = plan.config, plan.cluster
    data, expert = config.data or 1, config.expert
    shards = (config.zero_shards or data * config.context) // (config.context * expert) if config.zero == 3 else 1
    tensor = "tensor_sequence" if config.sequence_parallel else "tensor"
    sizes = {
        "pipeline": config.pipeline,
        "data": data // expert // shards,
        "fsdp": shards,
        "expert": expert,
        "context": config.context,
        tensor: config.tensor,
    }
    slices = max(1, plan.devices * cluster.slices // cluster.device_count)
    values: Settings = {}
    for axis, size in sizes.items():
        across = math.gcd(size, slices)
        slices //= across
        values[f"ici_{axis}_parallelism"] = size // across
        values[f"dcn_{axis}_parallelism"] = across
    if config.context > 1:
        values["context_parallel_strategy"] = _CONTEXT[config.context_method]
        if config.context_method == "all_to_all":
            values["context_parallel_load_balance"] = False
        if config.context_method != "all_gather" and cluster.platform == "tpu":
            values["use_tokamax_splash"] = True
    return values


def _memory(plan: TrainingPlan) -> Settings:
    config = plan.config
    values: Settings = {"shard_optimizer_over_data": config.zero == 1}
    policies = {"none": "minimal_with_context", "selective": "minimal", "full": "full"}
    values["remat_policy"] = policies[config.recompute]
    if config.offload_activations and config.recompute == "full":
        values |= {"remat_policy": "custom", "decoder_layer_input": "offload"}
    elif config.offload_activations:
        values["remat_policy"] = "minimal_offloaded"
    values["optimizer_memory_host_offload"] = config.offload_optimizer
    if config.expert_capacity is not None:
        values |= {"capacity_factor": config.expert_capacity, "sparse_matmul": False}
    return values


def _numbers(plan: TrainingPlan) -> Settings:
    config, on_tpu = plan.config, plan.cluster.platform == "tpu"
    flash = "flash" if on_tpu else "cudnn_flash_te"
    optimizers = {"muon": "muon", "sgd": "sgd"}
    values: Settings = {
        "hardware": "tpu" if on_tpu else "gpu",
        "attention": flash if config.flash_attention else "dot_product",
        **({} if on_tpu else {"max_segments_per_seq": 32}),  # of packed documents, as in its configs/gpu
        "opt_type": optimizers.get(str(config.optimizer), "adamw"),
        "dtype": config.dtype if config.dtype in ("float16", "float32") else "bfloat16",
        "weight_dtype": "float32",
        "grad_dtype": str(config.gradient_dtype),
    }
    if config.dtype == "float8":
        values["quantization"] = "fp8"
    if config.dtype == "int8":
        values |= {"quantization": "int8", "use_qwix_quantization": True}
    return values
