# SPDX-License-Identifier: Apache-2.0
"""Plans of training runs as code: meshes and PartitionSpecs, options of Megatron-LM and MaxText."""

from __future__ import annotations

import numpy as np

from artifex_devices.planner.shape import TransformerShape
from artifex_devices.planner.training.plan import TrainingPlan


def mesh_axes(plan: TrainingPlan) -> dict[str, int]:
    """Returns the axes of a mesh of the plan and their sizes, slowest first, without axes of size 1."""
    config = plan.config
    data, shards = config.data or 1, config.zero_shards
    sizes = {"pipeline": config.pipeline, "data": data, "context": config.context, "tensor": config.tensor}
    if config.zero and shards and shards < data and data % shards == 0:
        sizes = {"pipeline": config.pipeline, "replica": data // shards, "data": shards}
        sizes |= {"context": config.context, "tensor": config.tensor}
    return {name: size for name, size in sizes.items() if size > 1} or {"data": 1}


def _specs(plan: TrainingPlan) -> dict[str, str]:
    """Formats the PartitionSpecs of a layer's arrays."""
    axes = mesh_axes(plan)
    tensor = "'tensor'" if "tensor" in axes else "None"
    batch = [name for name in ("replica", "data") if name in axes]
    rows = repr(tuple(batch)) if len(batch) > 1 else repr(batch[0]) if batch else "None"
    context = "'context'" if "context" in axes else "None"
    full = "'data'" if plan.config.zero == 3 and "data" in axes else "None"
    between = context
    if plan.config.sequence_parallel and "tensor" in axes:
        between = "('context', 'tensor')" if "context" in axes else "'tensor'"
    return {
        "embedding": f"P({tensor}, {full})",
        "w_q, w_k, w_v, w_gate, w_up": f"P({full}, {tensor})",
        "w_o, w_down": f"P({tensor}, {full})",
        "tokens": f"P({rows}, {context})",
        "activations between layers": f"P({rows}, {between}, None)",
        "activations inside": f"P({rows}, {context}, {tensor})",
    }


def _specs_text(plan: TrainingPlan) -> list[str]:
    specs = _specs(plan)
    return ["specs = {", *(f"    {name!r}: {spec}," for name, spec in specs.items()), "}"]


def _comment(plan: TrainingPlan) -> str:
    pipeline = f", {plan.config.pipeline} stages" if plan.config.pipeline > 1 else ""
    return (
        f"# {plan.model.name} on {plan.devices} devices: microbatches of {plan.config.microbatch} sequences, "
        f"{plan.microbatches} a step, ZeRO {plan.config.zero}{pipeline}, recompute {plan.config.recompute}"
    )


def mesh_code(plan: TrainingPlan) -> str:
    """Returns code of the mesh and the specs for this library; it runs on a simulated world of as many devices."""
    axes = mesh_axes(plan)
    sizes = ", ".join(map(str, axes.values()))
    lines = [
        _comment(plan),
        "import numpy as np",
        "import artifex_devices as ad",
        "from artifex_devices.sharding import Mesh, PartitionSpec as P",
        "",
        f"devices = np.array(ad.devices()[:{int(np.prod(list(axes.values())))}], object)",
        f"mesh = Mesh(devices.reshape({sizes}), {tuple(axes)!r})",
        *_specs_text(plan),
    ]
    return "\n".join(lines) + "\n"


def jax_code(plan: TrainingPlan) -> str:
    """Returns code of the mesh and the specs for JAX."""
    axes = mesh_axes(plan)
    sizes = ", ".join(map(str, axes.values()))
    lines = [
        _comment(plan),
        "import jax",
        "import numpy as np",
        "from jax.sharding import Mesh, PartitionSpec as P",
        "",
        f"devices = np.array(jax.devices()[:{int(np.prod(list(axes.values())))}])",
        f"mesh = Mesh(devices.reshape({sizes}), {tuple(axes)!r})",
        *_specs_text(plan),
    ]
    return "\n".join(lines) + "\n"


def _groups(shape: TransformerShape) -> list[str]:
    if not shape.expert_groups:
        return []
    return [f"--moe-router-num-groups {shape.expert_groups}", f"--moe-router-group-topk {shape.groups_per_token}"]


def megatron_flags(plan: TrainingPlan) -> str:
    """Returns options of Megatron-LM (its megatron/training/arguments.py), one per line."""
    config, shape = plan.config, plan.model
    flags = [
        f"--num-layers {shape.layers}",
        f"--hidden-size {shape.embed}",
        f"--ffn-hidden-size {shape.dense_mlp if shape.experts and shape.dense_mlp else shape.mlp}",
        f"--num-attention-heads {shape.heads}",
        f"--seq-length {config.sequence}",
        f"--micro-batch-size {config.microbatch}",
        f"--global-batch-size {config.batch}",
        f"--tensor-model-parallel-size {config.tensor}",
        f"--pipeline-model-parallel-size {config.pipeline}",
        f"--context-parallel-size {config.context}",
    ]
    if shape.kv_heads < shape.heads:
        flags += ["--group-query-attention", f"--num-query-groups {shape.kv_heads}"]
    if config.sequence_parallel:
        flags.append("--sequence-parallel")
    if config.sharp:
        flags.append("--use-sharp")
    if config.chunks > 1:
        flags.append(f"--num-virtual-stages-per-pipeline-rank {config.chunks}")
    if config.context > 1:
        kinds = {"ring": "p2p", "all_to_all": "a2a", "all_gather": "allgather"}
        flags.append(f"--cp-comm-type {kinds[config.context_method]}")
    if shape.experts:
        flags += [
            f"--num-experts {shape.experts}",
            f"--moe-router-topk {shape.experts_per_token}",
            *_groups(shape),
            f"--moe-ffn-hidden-size {shape.mlp}",
            f"--expert-model-parallel-size {config.expert}",
            f"--expert-tensor-parallel-size {config.expert_tensor or 1}",
        ]
    if config.expert_capacity is not None:
        flags.append(f"--moe-expert-capacity-factor {config.expert_capacity:g}")
        flags += ["--moe-pad-expert-input-to-capacity"] * config.expert_padding
    if config.zero == 1:
        flags.append("--use-distributed-optimizer")
    elif config.zero > 1:
        kind = "optim_grads" if config.zero == 2 else "optim_grads_params"
        flags += ["--use-custom-fsdp", f"--data-parallel-sharding-strategy {kind}"]
    if config.zero and config.overlap["data"] > 0:
        flags += ["--overlap-grad-reduce", "--overlap-param-gather"]
    if config.recompute == "full":
        # Megatron-LM counts the layers of a chunk.
        layers = (
            max(stage.layers for stage in plan.stages) if config.recompute_layers is None else config.recompute_layers
        )
        number = config.recompute_layers or 1 if config.recompute_method == "uniform" else -(-layers // config.chunks)
        flags += ["--recompute-granularity full", f"--recompute-method {config.recompute_method}"]
        flags.append(f"--recompute-num-layers {number}")
    elif config.recompute == "selective":
        flags.append("--recompute-granularity selective")
    if config.offload_optimizer:
        flags.append("--optimizer-cpu-offload")
    flags.append("--bf16" if config.dtype != "float16" else "--fp16")
    if config.dtype == "float8":
        flags.append("--fp8-format hybrid")
    return " \\\n".join(flags) + "\n"


def maxtext_flags(plan: TrainingPlan) -> str:
    """Returns settings of MaxText (its configs/base.yml), one per line."""
    config, cluster = plan.config, plan.cluster
    data, shards = config.data or 1, config.zero_shards or config.data or 1
    fsdp = min(shards, data) if config.zero == 3 else 1
    across = 1
    if cluster.slices > 1 and (data // fsdp) % cluster.slices == 0:
        across = cluster.slices
    replicas = data // fsdp // across  # experts share their devices
    settings: dict[str, int | float | str] = {
        "per_device_batch_size": config.batch / plan.devices,
        "max_target_length": config.sequence,
        "ici_tensor_parallelism": config.tensor,
        "ici_context_parallelism": config.context,
        "ici_pipeline_parallelism": config.pipeline,
        "ici_expert_parallelism": config.expert,
        "ici_fsdp_parallelism": fsdp,
        "ici_data_parallelism": max(1, replicas // config.expert),
        "dcn_data_parallelism": across,
        "remat_policy": "full" if config.recompute == "full" else "minimal",
        "dtype": "bfloat16",
    }
    if config.expert_capacity is not None:
        settings["capacity_factor"] = config.expert_capacity
    if config.pipeline > 1:
        settings["num_pipeline_microbatches"] = plan.microbatches
        settings["num_layers_per_pipeline_stage"] = max(stage.layers for stage in plan.stages) // config.chunks
    return "\n".join(f"{name}={value}" for name, value in settings.items()) + "\n"
