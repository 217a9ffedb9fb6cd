# SPDX-License-Identifier: Apache-2.0
"""Keys of a config.json of Hugging Face for families with layer norms and two matrices in each MLP, as GPT-2 has.

Source: the classes `<Family>Config` and the modules of the library transformers,
https://github.com/huggingface/transformers, src/transformers/models.
"""

from __future__ import annotations

from typing import Any

from artifex_devices.planner.shape.hf_reader import ConfigReader, decoder

_BIASES = {"qkv_bias": True, "attention_out_bias": True, "mlp_bias": True}
CLASSIC = {"norm": "layer", "gated_mlp": False}


def gpt2(read: ConfigReader) -> dict[str, Any]:
    """Reads the arguments of a TransformerShape for GPT-2."""
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
    } | _BIASES | CLASSIC  # fmt: skip


def gpt_neox(read: ConfigReader) -> dict[str, Any]:
    """Reads the arguments of a TransformerShape for GPT-NeoX."""
    bias = read.flag("attention_bias", True)
    parallel = read.flag("use_parallel_residual", True)
    more = {"qkv_bias": bias, "attention_out_bias": bias, "mlp_bias": True, "parallel_layers": parallel}
    return decoder(read) | more | CLASSIC


def opt(read: ConfigReader) -> dict[str, Any]:
    """Reads the arguments of a TransformerShape for OPT."""
    embed, heads = read.size("hidden_size"), read.size("num_attention_heads")
    read.expect("word_embed_proj_dim", embed, embed)
    read.expect("do_layer_norm_before", True, True)
    read.expect("_remove_final_layer_norm", False, False)
    bias = read.flag("enable_bias", True)
    has_parameters = read.flag("layer_norm_elementwise_affine", True)
    return (
        {
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
        }
        | CLASSIC
        | ({} if has_parameters else {"norm": "layer without parameters"})
    )


def bloom(read: ConfigReader) -> dict[str, Any]:
    """Reads the arguments of a TransformerShape for BLOOM."""
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
    } | _BIASES | CLASSIC  # fmt: skip


def falcon(read: ConfigReader) -> dict[str, Any]:
    """Reads the arguments of a TransformerShape for Falcon, of both architectures."""
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
    } | CLASSIC
