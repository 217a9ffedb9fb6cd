# SPDX-License-Identifier: Apache-2.0
"""Keys of a config.json of Hugging Face for each family of decoders.

Source: the classes `<Family>Config` and the modules of the library transformers,
https://github.com/huggingface/transformers, src/transformers/models.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from artifex_devices.planner.shape import hf_gpt_families
from artifex_devices.planner.shape.hf_reader import ConfigReader, decoder


def _llama(read: ConfigReader) -> dict[str, Any]:
    bias = read.flag("attention_bias", False)
    return decoder(read, qkv_bias=bias, attention_out_bias=bias, mlp_bias=read.flag("mlp_bias", False))


def _mistral(read: ConfigReader) -> dict[str, Any]:
    return decoder(read, window=read.window())


def _mixtral(read: ConfigReader) -> dict[str, Any]:
    experts = {"experts": read.size("num_local_experts"), "experts_per_token": read.size("num_experts_per_tok")}
    return _mistral(read) | experts


def _starcoder2(read: ConfigReader) -> dict[str, Any]:
    bias = read.flag("use_bias", True)
    return _mistral(read) | {"qkv_bias": bias, "attention_out_bias": bias, "mlp_bias": bias} | hf_gpt_families.CLASSIC


def _alternating(read: ConfigReader, usual: int) -> dict[str, Any]:
    """Returns the window and the period of layers without one."""
    window, period = read.window(), read.full_period(usual)
    return {"window": 0, "full_attention_period": 0} if period == 1 or not window else {
        "window": window, "full_attention_period": period,
    }  # fmt: skip


def _cohere(read: ConfigReader) -> dict[str, Any]:
    shape = _llama(read) | {"norm": "layer without bias", "norms_per_layer": 1, "parallel_layers": True}
    return shape | {"joint_query_key_norm": read.flag("use_qk_norm", False)}


def _cohere2(read: ConfigReader) -> dict[str, Any]:
    return _cohere(read) | _alternating(read, read.size("sliding_window_pattern", 4, other="_sliding_window_pattern"))


def _gpt_oss(read: ConfigReader) -> dict[str, Any]:
    bias = read.flag("attention_bias", True)
    shape = decoder(read, qkv_bias=bias, attention_out_bias=bias, mlp_bias=True, router_bias=True)
    experts = {"experts": read.size("num_local_experts"), "experts_per_token": read.size("num_experts_per_tok")}
    return shape | experts | {"attention_sinks": True} | _alternating(read, 2)


def _llama4(read: ConfigReader) -> dict[str, Any]:
    shape = decoder(read)
    bias = read.flag("attention_bias", False)
    period = read.size("interleave_moe_layer_step")
    with_experts = read.values.get("moe_layers")
    numbers = with_experts if isinstance(with_experts, list) else [None]
    is_regular = len(numbers) == shape["layers"] // period and numbers == [
        period * (i + 1) - 1 for i in range(len(numbers))
    ]
    if with_experts is not None and not is_regular:
        read.problems.append(f"moe_layers is not each {period}-th layer; a TransformerShape can only express that")
    usual = read.size("no_rope_layer_interval", 4)
    chunk = read.size("attention_chunk_size", 0)
    full = read.full_period(usual, "chunked_attention")
    if chunk and full != 1:
        read.notes.append(f"attention within chunks of {chunk} tokens is planned as a window of {chunk} tokens")
        shape |= {"window": chunk, "full_attention_period": full}
    return shape | {
        "qkv_bias": bias,
        "attention_out_bias": bias,
        "experts": read.size("num_local_experts"),
        "experts_per_token": read.size("num_experts_per_tok"),
        "shared_experts": 1,
        "shared_mlp": shape["mlp"],
        "expert_period": period,
        "dense_mlp": read.size("intermediate_size_mlp") if period > 1 else 0,
    }


def _qwen_window(read: ConfigReader, layers: int) -> int:
    """Returns the window of the layers; adds a problem where only the layers from `max_window_layers` on have one."""
    if not read.flag("use_sliding_window", False):
        return 0
    full = read.size("max_window_layers", 28, minimum=0)
    if 0 < full < layers:
        read.problems.append(
            f"max_window_layers is {full} of {layers} layers; a TransformerShape can only express all or none"
        )
    return 0 if full else read.window()


def _qwen2(read: ConfigReader) -> dict[str, Any]:
    shape = decoder(read, qkv_bias=True)
    return shape | {"window": _qwen_window(read, shape["layers"])}


def _qwen3(read: ConfigReader) -> dict[str, Any]:
    bias = read.flag("attention_bias", False)
    shape = decoder(read, query_key_norm=True, qkv_bias=bias, attention_out_bias=bias)
    return shape | {"window": _qwen_window(read, shape["layers"])}


def _qwen_experts(read: ConfigReader, shape: dict[str, Any]) -> dict[str, Any]:
    """Replaces the MLP of each `decoder_sparse_step`-th layer by experts."""
    if read.values.get("mlp_only_layers") is not None:
        read.expect("mlp_only_layers", [], [])
    period = read.size("decoder_sparse_step", 1)
    return shape | {
        "mlp": read.size("moe_intermediate_size"),
        "dense_mlp": shape["mlp"] if period > 1 else 0,
        "experts": read.size("num_experts", other="num_local_experts"),
        "experts_per_token": read.size("num_experts_per_tok"),
        "expert_period": period,
    }


def _shared_expert(read: ConfigReader) -> dict[str, Any]:
    return {"shared_experts": 1, "shared_mlp": read.size("shared_expert_intermediate_size"), "shared_gate": True}


def _qwen2_moe(read: ConfigReader) -> dict[str, Any]:
    bias = read.flag("qkv_bias", True)
    return _qwen_experts(read, decoder(read)) | _shared_expert(read) | {"qkv_bias": bias}


def _qwen3_next(read: ConfigReader) -> dict[str, Any]:
    bias = read.flag("attention_bias", False)
    shape = decoder(read, query_key_norm=True, gated_attention=True, qkv_bias=bias, attention_out_bias=bias)
    period = read.full_period(read.size("full_attention_interval", 4), "linear_attention")
    if period == 0:
        read.problems.append("layer_types has no full_attention; a TransformerShape can only express each n-th layer")
    return _qwen_experts(read, shape) | _shared_expert(read) | {
        "full_attention_period": period,
        "linear_key_heads": read.size("linear_num_key_heads"),
        "linear_value_heads": read.size("linear_num_value_heads"),
        "linear_key_dim": read.size("linear_key_head_dim"),
        "linear_value_dim": read.size("linear_value_head_dim"),
        "linear_kernel": read.size("linear_conv_kernel_dim"),
    }  # fmt: skip


def _gemma(read: ConfigReader) -> dict[str, Any]:
    bias = read.flag("attention_bias", False)
    return decoder(read, qkv_bias=bias, attention_out_bias=bias)


def _gemma2(read: ConfigReader) -> dict[str, Any]:
    return _gemma(read) | {"norms_per_layer": 4} | _alternating(read, 2)


def _gemma3(read: ConfigReader) -> dict[str, Any]:
    usual = read.size("sliding_window_pattern", 6, other="_sliding_window_pattern")
    return _gemma(read) | {"norms_per_layer": 4, "query_key_norm": True} | _alternating(read, usual)


def _olmo(read: ConfigReader) -> dict[str, Any]:
    return _llama(read) | {"norm": "layer without parameters"}


def _olmo2(read: ConfigReader) -> dict[str, Any]:
    return _llama(read) | {"joint_query_key_norm": True}


def _deepseek_experts(read: ConfigReader, shape: dict[str, Any]) -> dict[str, Any]:
    """Replaces the MLP of all but the first layers by routed and shared experts."""
    first = read.size("first_k_dense_replace", 0, minimum=0)
    shared = read.size("n_shared_experts", 0, minimum=0)
    width = read.size("moe_intermediate_size")
    groups, chosen = read.size("n_group", 1), read.size("topk_group", 1)
    limits = {"expert_groups": groups, "groups_per_token": chosen} if chosen < groups else {}
    return shape | limits | {
        "mlp": width,
        "experts": read.size("n_routed_experts"),
        "experts_per_token": read.size("num_experts_per_tok"),
        "shared_experts": shared,
        "shared_mlp": width if shared else 0,
        "dense_layers": first,
        "dense_mlp": shape["mlp"] if first else 0,
    }  # fmt: skip


def _deepseek(read: ConfigReader) -> dict[str, Any]:
    read.expect("moe_layer_freq", 1, 1)
    read.expect("attention_bias", False, False)
    rope, nope = read.size("qk_rope_head_dim"), read.size("qk_nope_head_dim")
    shape = _deepseek_experts(read, decoder(read))
    return shape | {
        "kv_heads": shape["heads"],
        "head_dim": rope + nope,
        "rope_head_dim": rope,
        "nope_head_dim": nope,
        "value_head_dim": read.size("v_head_dim"),
        "q_lora_rank": read.size("q_lora_rank", 0),
        "kv_lora_rank": read.size("kv_lora_rank"),
    }


def _prediction(read: ConfigReader) -> dict[str, Any]:
    layers = read.size("num_nextn_predict_layers", 0, minimum=0, other="num_mtp_layers")
    return {"router_bias": True, "prediction_layers": layers}


def _deepseek3(read: ConfigReader) -> dict[str, Any]:
    return _deepseek(read) | _prediction(read)


def _glm4_moe(read: ConfigReader) -> dict[str, Any]:
    bias, norm = read.flag("attention_bias", False), read.flag("use_qk_norm", False)
    shape = _deepseek_experts(read, decoder(read, qkv_bias=bias, query_key_norm=norm))
    return shape | _prediction(read)


#: Reads the arguments of a TransformerShape, by `model_type`.
FAMILIES: dict[str, Callable[[ConfigReader], dict[str, Any]]] = {
    "llama": _llama,
    "mistral": _mistral,
    "mixtral": _mixtral,
    "qwen2": _qwen2,
    "qwen2_moe": _qwen2_moe,
    "qwen3": _qwen3,
    "qwen3_moe": lambda read: _qwen_experts(read, _qwen3(read)),
    "qwen3_next": _qwen3_next,
    "gemma": _gemma,
    "gemma2": _gemma2,
    "gemma3_text": _gemma3,
    "deepseek_v2": _deepseek,
    "deepseek_v3": _deepseek3,
    "glm4_moe": _glm4_moe,
    "gpt2": hf_gpt_families.gpt2,
    "gpt_neox": hf_gpt_families.gpt_neox,
    "gpt_oss": _gpt_oss,
    "llama4_text": _llama4,
    "olmo": _olmo,
    "olmo2": _olmo2,
    "opt": hf_gpt_families.opt,
    "bloom": hf_gpt_families.bloom,
    "falcon": hf_gpt_families.falcon,
    "phi3": _mistral,
    "starcoder2": _starcoder2,
    "granite": _llama,
    "cohere": _cohere,
    "cohere2": _cohere2,
}

#: Other values of `model_type`, with the family whose text model they have.
ALIASES = {
    "kimi_k2": "deepseek_v3",
    "gemma3": "gemma3_text",
    "llama4": "llama4_text",
    "llava": "llama",
    "mistral3": "mistral",
    "paligemma": "gemma",
    "qwen2_vl": "qwen2",
    "qwen2_vl_text": "qwen2",
    "qwen2_5_vl": "qwen2",
    "qwen2_5_vl_text": "qwen2",
    "qwen3_vl_text": "qwen3",
    "qwen3_vl_moe_text": "qwen3_moe",
}
