# SPDX-License-Identifier: Apache-2.0
"""Options of Megatron-LM for a plan: the command line of its pretrain_gpt.py."""

from __future__ import annotations

from collections.abc import Iterator

from artifex_devices.planner.training.code.limits import Limit, first_problem, stage_limits
from artifex_devices.planner.training.plan import TrainingPlan

#: megatron/core/package_info.py, and the commit whose options tests/data/programs/megatron.json has.
NAME = "Megatron-LM (core 0.20.0)"

_NO_SETTING = (
    "linear_value_heads", "attention_sinks", "gated_attention", "joint_query_key_norm", "embedding_norm",
    "norms_per_layer", "parallel_layers", "other_parameters", "head_bias", "router_bias", "expert_period",
)  # fmt: skip
_CONTEXT = {"ring": "p2p", "all_to_all": "a2a", "all_gather": "all_gather"}
_COMPUTE = {"bfloat16": "bfloat16", "float8": "bfloat16", "float16": "float16", "float32": "float32"}
#: Fields of a search for this program: few of the fastest configurations run in it without them.
SEARCH: dict[str, object] = {"offload_activations": False}


def problem(plan: TrainingPlan) -> str | None:
    """Returns why Megatron-LM cannot run the plan, or None."""
    shape = plan.model
    fields = [*_NO_SETTING, *(["norm"] if shape.norm not in ("rms", "layer") else [])]
    if shape.expert_groups:
        fields.remove("router_bias")  # DeepSeek-V3 updates this bias without gradients, as Megatron-LM does
    if (shape.qkv_bias, shape.attention_out_bias, shape.mlp_bias) != (True, True, True):
        fields += ["attention_out_bias", "mlp_bias"]  # one option is for the biases of all matrices
    return first_problem(NAME, plan, fields, _limits(plan))


def _limits(plan: TrainingPlan) -> Iterator[Limit]:
    config, shape = plan.config, plan.model
    yield config.schedule == "gpipe", "schedule", "1f1b", "its pipelines are 1F1B or interleaved"
    yield from stage_limits(plan, 2)
    positions = shape.positions or config.sequence
    yield config.sequence > positions, "sequence", positions, f"the model has {positions} learned positions"
    reason = "its sequences are cut into 2 x context equal parts"
    yield config.context > 1 and config.sequence % (2 * config.context) != 0, "context", 1, reason
    reason = "its experts with tensor parallelism need sequence parallelism"
    needs_sharing = shape.experts > 0 and config.tensor > 1 and config.expert > 1
    yield needs_sharing and not config.sequence_parallel, "sequence_parallel", True, reason
    compute = _COMPUTE.get(config.dtype, "bfloat16")
    yield config.dtype not in _COMPUTE, "dtype", "bfloat16", f"it computes in {', '.join(_COMPUTE)}"
    reason = f"its parameters are {compute} with dtype={config.dtype!r}"
    yield str(config.parameter_dtype) != compute, "parameter_dtype", compute, reason
    reason = f"its activations are {compute} with dtype={config.dtype!r}"
    yield str(config.activation_dtype) != compute, "activation_dtype", compute, reason
    gradients = dict.fromkeys((compute, "float32"))
    reason = f"its gradients are {' or '.join(gradients)} with dtype={config.dtype!r}"
    yield str(config.gradient_dtype) not in gradients, "gradient_dtype", "float32", reason
    optimizers = ("adam", "muon") if compute == "float32" else ("adamw-fp32-master", "muon")
    reason = f"its optimizers for {compute} parameters are Adam and Muon, with a float32 copy of the parameters"
    yield config.optimizer not in optimizers, "optimizer", optimizers[0], reason
    needs_adam = config.offload_optimizer or config.zero > 1
    reason = "its FSDP and its offloading need Adam"
    yield needs_adam and config.optimizer == "muon", "optimizer", optimizers[0], reason
    yield config.offload_activations, "offload_activations", False, "it offloads only some inputs of modules"
    yield bool(config.parameter_dtypes), "parameter_dtypes", {}, "all its parameters have one dtype"
    yield bool(config.gradient_dtypes), "gradient_dtypes", {}, "all its gradients have one dtype"
    yield config.parameter_scale > 0, "parameter_scale", 0.0, "its parameters have no scales"
    yield not config.causal, "causal", True, "its GPT models mask later tokens"


def settings(plan: TrainingPlan) -> str:
    """Returns the options, one per line."""
    flags = [*_model(plan), *_run(plan), *_experts(plan), *_memory(plan), *_numbers(plan)]
    return " \\\n".join(flags) + "\n"


def _model(plan: TrainingPlan) -> list[str]:
    shape = plan.model
    dense = shape.dense_mlp if shape.experts and shape.dense_mlp else shape.mlp
    flags = [
        f"--num-layers {shape.layers}",
        f"--hidden-size {shape.embed}",
        f"--ffn-hidden-size {dense}",
        f"--num-attention-heads {shape.heads}",
    ]
    if shape.kv_lora_rank:
        flags.append("--multi-latent-attention")
        flags += [f"--q-lora-rank {shape.q_lora_rank}"] * (shape.q_lora_rank > 0)
        flags += [f"--kv-lora-rank {shape.kv_lora_rank}", f"--qk-head-dim {shape.nope_head_dim}"]
        flags += [f"--qk-pos-emb-head-dim {shape.rope_head_dim}", f"--v-head-dim {shape.value_head_dim}"]
    else:
        flags.append(f"--kv-channels {shape.head_dim}")
        if shape.kv_heads < shape.heads:
            flags += ["--group-query-attention", f"--num-query-groups {shape.kv_heads}"]
    if shape.window:
        flags.append(f"--window-size {shape.window - 1},0")
        flags += [f"--window-attn-skip-freq {shape.full_attention_period}"] * (shape.full_attention_period > 0)
    flags.append(f"--vocab-size {shape.vocab}")
    flags += ["--untie-embeddings-and-output-weights"] * (not shape.tied_embeddings)
    flags += ["--position-embedding-type learned_absolute" if shape.positions else "--position-embedding-type rope"]
    flags.append(f"--max-position-embeddings {shape.positions or plan.config.sequence}")
    flags.append(f"--normalization {'RMSNorm' if shape.norm == 'rms' else 'LayerNorm'}")
    flags += ["--swiglu"] * shape.gated_mlp + ["--qk-layernorm"] * (shape.query_key_norm or shape.kv_lora_rank > 0)
    if not (shape.mlp_bias and shape.attention_out_bias):
        flags += ["--disable-bias-linear"] + ["--add-qkv-bias"] * shape.qkv_bias
    if not plan.config.dropout:
        flags += ["--attention-dropout 0.0", "--hidden-dropout 0.0"]
    return flags


def _run(plan: TrainingPlan) -> list[str]:
    config = plan.config
    flags = [
        f"--seq-length {config.sequence}",
        f"--micro-batch-size {config.microbatch}",
        f"--global-batch-size {config.batch}",
        f"--tensor-model-parallel-size {config.tensor}",
        f"--pipeline-model-parallel-size {config.pipeline}",
        f"--context-parallel-size {config.context}",
    ]
    flags += ["--sequence-parallel"] * (config.sequence_parallel and config.tensor > 1)
    flags += [f"--num-virtual-stages-per-pipeline-rank {config.chunks}"] * (config.chunks > 1)
    missing = -plan.model.layers % (config.pipeline * config.chunks)
    flags += ["--account-for-embedding-in-pipeline-split"] * (missing == 2)
    flags += ["--account-for-loss-in-pipeline-split"] * (missing > 0)
    flags += [f"--cp-comm-type {_CONTEXT[config.context_method]}"] * (config.context > 1)
    flags += ["--attention-backend unfused"] * (not config.flash_attention)
    flags += ["--use-sharp"] * config.sharp
    return flags


def _experts(plan: TrainingPlan) -> list[str]:
    config, shape = plan.config, plan.model
    if not shape.experts:
        return []
    flags = [
        f"--num-experts {shape.experts}",
        f"--moe-router-topk {shape.experts_per_token}",
        f"--moe-ffn-hidden-size {shape.mlp}",
    ]
    if shape.dense_layers:
        flags.append(f'--moe-layer-freq "([0]*{shape.dense_layers}+[1]*{shape.layers - shape.dense_layers})"')
    if shape.shared_experts:
        flags.append(f"--moe-shared-expert-intermediate-size {shape.shared_experts * shape.shared_mlp}")
        flags += ["--moe-shared-expert-gate"] * shape.shared_gate
    if shape.expert_groups:
        flags += [f"--moe-router-num-groups {shape.expert_groups}", f"--moe-router-group-topk {shape.groups_per_token}"]
    if shape.router_bias:
        flags += ["--moe-router-score-function sigmoid", "--moe-router-enable-expert-bias"]
    flags += [
        f"--expert-model-parallel-size {config.expert}",
        f"--expert-tensor-parallel-size {config.expert_tensor or 1}",
        "--moe-token-dispatcher-type alltoall",
        "--moe-grouped-gemm",
    ]
    if config.expert_capacity is not None:
        flags.append(f"--moe-expert-capacity-factor {config.expert_capacity:g}")
        flags += ["--moe-pad-expert-input-to-capacity"] * config.expert_padding
    return flags


def _memory(plan: TrainingPlan) -> list[str]:
    config = plan.config
    flags = []
    if config.zero:
        flags.append("--use-distributed-optimizer")
        ranks = (config.data or 1) * config.context
        copies = ranks // (config.zero_shards or ranks)
        flags += [f"--num-distributed-optimizer-instances {copies}"] * (copies > 1)
    if config.zero > 1:
        kind = "optim_grads" if config.zero == 2 else "optim_grads_params"
        flags += ["--use-megatron-fsdp", f"--data-parallel-sharding-strategy {kind}", "--ckpt-format fsdp_dtensor"]
    if config.zero and config.overlap["data"] > 0:
        flags += ["--overlap-grad-reduce", "--overlap-param-gather"]
    if config.recompute == "selective":
        flags.append("--recompute-granularity selective")
    elif config.recompute == "full" and config.recompute_layers != 0:
        # Megatron-LM counts the layers of a chunk.
        most = max(stage.layers for stage in plan.stages)
        layers = most if config.recompute_layers is None else config.recompute_layers
        number = config.recompute_layers or 1 if config.recompute_method == "uniform" else -(-layers // config.chunks)
        flags += ["--recompute-granularity full", f"--recompute-method {config.recompute_method}"]
        flags.append(f"--recompute-num-layers {number}")
    flags += ["--optimizer-cpu-offload", "--use-precision-aware-optimizer"] * config.offload_optimizer
    return flags


def _numbers(plan: TrainingPlan) -> list[str]:
    config = plan.config
    compute, gradients = _COMPUTE[config.dtype], str(config.gradient_dtype)
    flags = [f"--optimizer {'muon' if config.optimizer == 'muon' else 'adam'}"]
    flags += ["--bf16"] * (compute == "bfloat16") + ["--fp16"] * (compute == "float16")
    flags += ["--accumulate-allreduce-grads-in-fp32"] * (compute != gradients == "float32")
    flags += ["--grad-reduce-in-bf16"] * (compute == gradients == "bfloat16")
    flags += ["--fp8-format hybrid"] * (config.dtype == "float8")
    return flags
