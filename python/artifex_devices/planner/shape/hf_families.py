# SPDX-License-Identifier: Apache-2.0
"""Keys of a config.json of Hugging Face, and their defaults, for each family of decoders.

The keys, and the defaults of values that a config leaves out, come from the classes `<Family>Config` in the library
transformers, https://github.com/huggingface/transformers, src/transformers/models.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from artifex_devices._base.safe_repr import safe_repr
from artifex_devices.planner.plain_numbers import is_count

_MISSING: Any = object()


class ConfigReader:
    """Reads typed values of a config and collects all that is wrong with them."""

    def __init__(self, values: Mapping[Any, Any]) -> None:
        self.values = values
        self.problems: list[str] = []

    def size(self, key: str, default: Any = _MISSING, *, minimum: int = 1, other: str = "") -> int:
        """Returns a size; null and a missing key are the default. `other` is a second name of the key."""
        value = self.values.get(key)
        if value is None and other:
            value = self.values.get(other)
        if value is None:
            if default is _MISSING:
                self.problems.append(f"{key} is missing")
                return 1
            return int(default)
        if not is_count(value, minimum):
            self.problems.append(f"{key} is {safe_repr(value)}, not an int of {minimum} or more")
            return max(minimum, 1)
        return int(value)

    def flag(self, key: str, default: bool) -> bool:
        """Returns a boolean; null and a missing key are the default."""
        value = self.values.get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            self.problems.append(f"{key} is {safe_repr(value)}, not true or false")
            return default
        return value

    def expect(self, key: str, value: object, default: object) -> None:
        """Adds a problem unless the key has the only value that a TransformerShape can express."""
        found = self.values.get(key, default)
        if found != value:
            self.problems.append(f"{key} is {safe_repr(found)}; a TransformerShape can only express {value!r}")

    def head_dim(self, embed: int, heads: int, default: int | None = None) -> int:
        """Returns the width of a head: as given, by default `embed / heads`."""
        if self.values.get("head_dim") is not None or default is not None:
            return self.size("head_dim", default)
        if embed % heads:
            self.problems.append(f"hidden size {embed} is not a multiple of {heads} heads, and head_dim is missing")
        return max(embed // heads, 1)


def _decoder(read: ConfigReader, *, head_dim: int | None = None, **more: Any) -> dict[str, Any]:
    """Returns the sizes that most families name alike."""
    embed, heads = read.size("hidden_size"), read.size("num_attention_heads")
    return {
        "layers": read.size("num_hidden_layers"),
        "embed": embed,
        "mlp": read.size("intermediate_size"),
        "heads": heads,
        "kv_heads": read.size("num_key_value_heads", heads),
        "head_dim": read.head_dim(embed, heads, head_dim),
        "vocab": read.size("vocab_size"),
        "tied_embeddings": read.flag("tie_word_embeddings", False),
    } | more


def _llama(read: ConfigReader) -> dict[str, Any]:
    bias = read.flag("attention_bias", False)
    return _decoder(read, qkv_bias=bias, attention_out_bias=bias, mlp_bias=read.flag("mlp_bias", False))


def _window(read: ConfigReader, default: int) -> int:
    absent = "sliding_window" not in read.values
    return default if absent else read.size("sliding_window", 0)


def _mistral(read: ConfigReader) -> dict[str, Any]:
    return _decoder(read, window=_window(read, 4096))


def _mixtral(read: ConfigReader) -> dict[str, Any]:
    experts = {"experts": read.size("num_local_experts", 8), "experts_per_token": read.size("num_experts_per_tok", 2)}
    return _decoder(read, window=_window(read, 0), **experts)


def _qwen_window(read: ConfigReader, layers: int) -> int:
    """Returns the window of the layers; adds a problem where only the layers from `max_window_layers` on have one."""
    if not read.flag("use_sliding_window", False):
        return 0
    full = read.size("max_window_layers", 28, minimum=0)
    if 0 < full < layers:
        read.problems.append(
            f"max_window_layers is {full} of {layers} layers; a TransformerShape can only express all or none"
        )
    return 0 if full else _window(read, 4096)


def _qwen2(read: ConfigReader) -> dict[str, Any]:
    shape = _decoder(read, qkv_bias=True)
    return shape | {"window": _qwen_window(read, shape["layers"])}


def _qwen3(read: ConfigReader) -> dict[str, Any]:
    bias = read.flag("attention_bias", False)
    shape = _decoder(read, head_dim=128, query_key_norm=True, qkv_bias=bias, attention_out_bias=bias)
    return shape | {"window": _qwen_window(read, shape["layers"])}


def _qwen_experts(read: ConfigReader, shape: dict[str, Any]) -> dict[str, Any]:
    """Replaces the MLP of each `decoder_sparse_step`-th layer by experts."""
    read.expect("mlp_only_layers", [], [])
    period = read.size("decoder_sparse_step", 1)
    return shape | {
        "mlp": read.size("moe_intermediate_size"),
        "dense_mlp": shape["mlp"] if period > 1 else 0,
        "experts": read.size("num_experts"),
        "experts_per_token": read.size("num_experts_per_tok"),
        "expert_period": period,
    }


def _qwen2_moe(read: ConfigReader) -> dict[str, Any]:
    shared = read.size("shared_expert_intermediate_size")
    bias = read.flag("qkv_bias", True)
    shape = _qwen_experts(read, _decoder(read))
    return shape | {"qkv_bias": bias, "shared_experts": 1, "shared_mlp": shared, "shared_gate": True}


def _gemma(read: ConfigReader) -> dict[str, Any]:
    return _decoder(read, head_dim=256) | {"tied_embeddings": read.flag("tie_word_embeddings", True)}


def _gemma2(read: ConfigReader) -> dict[str, Any]:
    return _gemma(read) | {"norms_per_layer": 4, "window": _window(read, 4096), "full_attention_period": 2}


def _gemma3(read: ConfigReader) -> dict[str, Any]:
    period = read.size("sliding_window_pattern", 6, other="_sliding_window_pattern")
    kinds = read.values.get("layer_types")
    if kinds is not None:
        count = read.size("num_hidden_layers")
        expected = ["sliding_attention" if (i + 1) % period else "full_attention" for i in range(min(count, 4096))]
        if kinds != expected:
            read.problems.append(f"layer_types is not a full_attention at each {period}-th layer")
    window = {"window": _window(read, 4096), "full_attention_period": period}
    return _gemma(read) | {"norms_per_layer": 4, "query_key_norm": True} | window


def _deepseek(read: ConfigReader) -> dict[str, Any]:
    read.expect("moe_layer_freq", 1, 1)
    read.expect("attention_bias", False, False)
    rope, nope = read.size("qk_rope_head_dim"), read.size("qk_nope_head_dim")
    first = read.size("first_k_dense_replace", 0, minimum=0)
    shared = read.size("n_shared_experts", 0, minimum=0)
    width = read.size("moe_intermediate_size")
    groups, chosen = read.size("n_group", 1), read.size("topk_group", 1)
    limits = {"expert_groups": groups, "groups_per_token": chosen} if chosen < groups else {}
    shape = _decoder(read) | limits
    return shape | {
        "kv_heads": shape["heads"],
        "head_dim": rope + nope,
        "rope_head_dim": rope,
        "nope_head_dim": nope,
        "value_head_dim": read.size("v_head_dim"),
        "q_lora_rank": read.size("q_lora_rank", 0),
        "kv_lora_rank": read.size("kv_lora_rank"),
        "mlp": width,
        "experts": read.size("n_routed_experts"),
        "experts_per_token": read.size("num_experts_per_tok"),
        "shared_experts": shared,
        "shared_mlp": width if shared else 0,
        "dense_layers": first,
        "dense_mlp": shape["mlp"] if first else 0,
    }


def _deepseek3(read: ConfigReader) -> dict[str, Any]:
    prediction = read.size("num_nextn_predict_layers", 0, minimum=0)
    return _deepseek(read) | {"router_bias": True, "prediction_layers": prediction}


_BIASES = {"qkv_bias": True, "attention_out_bias": True, "mlp_bias": True}
_CLASSIC = {"norm": "layer", "gated_mlp": False}


def _gpt2(read: ConfigReader) -> dict[str, Any]:
    embed, heads = read.size("n_embd", other="hidden_size"), read.size("n_head", other="num_attention_heads")
    return {
        "layers": read.size("n_layer", other="num_hidden_layers"),
        "embed": embed,
        "mlp": read.size("n_inner", 4 * embed),
        "heads": heads,
        "kv_heads": heads,
        "head_dim": read.head_dim(embed, heads),
        "vocab": read.size("vocab_size"),
        "positions": read.size("n_positions", other="max_position_embeddings"),
        "tied_embeddings": read.flag("tie_word_embeddings", True),
    } | _BIASES | _CLASSIC  # fmt: skip


def _gpt_neox(read: ConfigReader) -> dict[str, Any]:
    bias = read.flag("attention_bias", True)
    parallel = read.flag("use_parallel_residual", True)
    more = {"qkv_bias": bias, "attention_out_bias": bias, "mlp_bias": True, "parallel_layers": parallel}
    return _decoder(read) | more | _CLASSIC


def _opt(read: ConfigReader) -> dict[str, Any]:
    embed, heads = read.size("hidden_size"), read.size("num_attention_heads")
    read.expect("word_embed_proj_dim", embed, embed)
    read.expect("do_layer_norm_before", True, True)
    read.expect("_remove_final_layer_norm", False, False)
    bias = read.flag("enable_bias", True)
    return {
        "layers": read.size("num_hidden_layers"),
        "embed": embed,
        "mlp": read.size("ffn_dim"),
        "heads": heads,
        "kv_heads": heads,
        "head_dim": read.head_dim(embed, heads),
        "vocab": read.size("vocab_size"),
        "positions": read.size("max_position_embeddings") + 2,  # OPTLearnedPositionalEmbedding has an offset of 2
        "tied_embeddings": read.flag("tie_word_embeddings", True),
        "qkv_bias": bias,
        "attention_out_bias": bias,
        "mlp_bias": bias,
    } | _CLASSIC


def _bloom(read: ConfigReader) -> dict[str, Any]:
    embed, heads = read.size("hidden_size", other="n_embed"), read.size("n_head", other="num_attention_heads")
    return {
        "layers": read.size("n_layer", other="num_hidden_layers"),
        "embed": embed,
        "mlp": 4 * embed,
        "heads": heads,
        "kv_heads": heads,
        "head_dim": read.head_dim(embed, heads),
        "vocab": read.size("vocab_size"),
        "tied_embeddings": read.flag("tie_word_embeddings", True),
        "embedding_norm": True,
    } | _BIASES | _CLASSIC  # fmt: skip


def _falcon(read: ConfigReader) -> dict[str, Any]:
    embed = read.size("hidden_size", other="n_embed")
    heads = read.size("num_attention_heads", other="n_head")
    bias = read.flag("bias", False)
    is_new = read.flag("new_decoder_architecture", False)
    parallel = is_new or read.flag("parallel_attn", True)
    kv_heads = read.size("num_kv_heads", heads, other="n_head_kv") if is_new else heads
    if not is_new and read.flag("multi_query", True):
        kv_heads = 1
    norms = read.size("num_ln_in_parallel_attn", 2) if is_new else (1 if parallel else 2)
    return {
        "layers": read.size("num_hidden_layers", other="n_layer"),
        "embed": embed,
        "mlp": read.size("ffn_hidden_size", 4 * embed),
        "heads": heads,
        "kv_heads": kv_heads,
        "head_dim": read.head_dim(embed, heads),
        "vocab": read.size("vocab_size"),
        "tied_embeddings": read.flag("tie_word_embeddings", True),
        "qkv_bias": bias,
        "attention_out_bias": bias,
        "mlp_bias": bias,
        "norms_per_layer": norms,
        "parallel_layers": parallel,
    } | _CLASSIC


#: Reads the arguments of a TransformerShape, by `model_type`.
FAMILIES: dict[str, Callable[[ConfigReader], dict[str, Any]]] = {
    "llama": _llama,
    "mistral": _mistral,
    "mixtral": _mixtral,
    "qwen2": _qwen2,
    "qwen2_moe": _qwen2_moe,
    "qwen3": _qwen3,
    "qwen3_moe": lambda read: _qwen_experts(read, _qwen3(read)),
    "gemma": _gemma,
    "gemma2": _gemma2,
    "gemma3_text": _gemma3,
    "deepseek_v2": _deepseek,
    "deepseek_v3": _deepseek3,
    "gpt2": _gpt2,
    "gpt_neox": _gpt_neox,
    "opt": _opt,
    "bloom": _bloom,
    "falcon": _falcon,
    "phi3": lambda read: _decoder(read, window=_window(read, 0)),
}
