# SPDX-License-Identifier: Apache-2.0
"""Shapes of published decoders by name and by their ids on the Hugging Face Hub."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from artifex_devices.planner.shape.transformer import TransformerShape

_META_2 = "Touvron et al. 2023, arXiv:2307.09288; config.json of meta-llama/Llama-2-{}-hf"
_META_3 = "Grattafiori et al. 2024, arXiv:2407.21783, table 3; config.json of meta-llama/Meta-Llama-{}"

_CLASSIC: dict[str, Any] = {"norm": "layer", "gated_mlp": False, "mlp_bias": True}  # as in GPT-2
_BIASED: dict[str, Any] = {**_CLASSIC, "qkv_bias": True, "attention_out_bias": True}
_GPT_2: dict[str, Any] = {**_BIASED, "positions": 1024, "tied_embeddings": True}
_NEOX: dict[str, Any] = {**_BIASED, "parallel_layers": True}
_OPT: dict[str, Any] = {**_BIASED, "positions": 2050, "tied_embeddings": True}  # 2 more than a sequence has
_BLOOM: dict[str, Any] = {**_BIASED, "embedding_norm": True, "tied_embeddings": True}
_QWEN_3: dict[str, Any] = {"query_key_norm": True}
_GEMMA_2: dict[str, Any] = {
    "tied_embeddings": True, "norms_per_layer": 4, "window": 4096, "full_attention_period": 2,
}  # fmt: skip
_LATENT: dict[str, Any] = {"kv_lora_rank": 512, "rope_head_dim": 64, "nope_head_dim": 128, "value_head_dim": 128}


#: By id on the Hub, whose config.json has the sizes.
_PUBLISHED = {
    "meta-llama/Llama-2-7b-hf": TransformerShape(
        "llama-2-7b", 32, 4096, 11008, 32, 32, 128, 32000, source=_META_2.format("7b")),
    "meta-llama/Llama-2-13b-hf": TransformerShape(
        "llama-2-13b", 40, 5120, 13824, 40, 40, 128, 32000, source=_META_2.format("13b")),
    "meta-llama/Llama-2-70b-hf": TransformerShape(
        "llama-2-70b", 80, 8192, 28672, 64, 8, 128, 32000, source=_META_2.format("70b")),
    "meta-llama/Meta-Llama-3-8B": TransformerShape(
        "llama-3-8b", 32, 4096, 14336, 32, 8, 128, 128256, source=_META_3.format("3-8B")),
    "meta-llama/Meta-Llama-3-70B": TransformerShape(
        "llama-3-70b", 80, 8192, 28672, 64, 8, 128, 128256, source=_META_3.format("3-70B")),
    "meta-llama/Llama-3.1-405B": TransformerShape(
        "llama-3.1-405b", 126, 16384, 53248, 128, 8, 128, 128256, source=_META_3.format("3.1-405B")),
    "meta-llama/Llama-3.2-1B": TransformerShape(
        "llama-3.2-1b", 16, 2048, 8192, 32, 8, 64, 128256, tied_embeddings=True),
    "meta-llama/Llama-3.2-3B": TransformerShape(
        "llama-3.2-3b", 28, 3072, 8192, 24, 8, 128, 128256, tied_embeddings=True),
    "mistralai/Mistral-7B-v0.1": TransformerShape("mistral-7b-v0.1", 32, 4096, 14336, 32, 8, 128, 32000, window=4096),
    "mistralai/Mistral-7B-v0.3": TransformerShape("mistral-7b-v0.3", 32, 4096, 14336, 32, 8, 128, 32768),
    "mistralai/Mistral-Nemo-Base-2407": TransformerShape("mistral-nemo-2407", 40, 5120, 14336, 32, 8, 128, 131072),
    "mistralai/Mistral-Small-24B-Base-2501": TransformerShape(
        "mistral-small-24b-2501", 40, 5120, 32768, 32, 8, 128, 131072),
    "mistralai/Mistral-Large-Instruct-2407": TransformerShape(
        "mistral-large-2407", 88, 12288, 28672, 96, 8, 128, 32768),
    "mistralai/Mixtral-8x7B-v0.1": TransformerShape(
        "mixtral-8x7b", 32, 4096, 14336, 32, 8, 128, 32000, 8, 2,
        source="Jiang et al. 2024, arXiv:2401.04088, table 1; config.json of mistralai/Mixtral-8x7B-v0.1"),
    "mistralai/Mixtral-8x22B-v0.1": TransformerShape("mixtral-8x22b", 56, 6144, 16384, 48, 8, 128, 32000, 8, 2),
    "Qwen/Qwen2.5-0.5B": TransformerShape(
        "qwen2.5-0.5b", 24, 896, 4864, 14, 2, 64, 151936, qkv_bias=True, tied_embeddings=True),
    "Qwen/Qwen2.5-1.5B": TransformerShape(
        "qwen2.5-1.5b", 28, 1536, 8960, 12, 2, 128, 151936, qkv_bias=True, tied_embeddings=True),
    "Qwen/Qwen2.5-3B": TransformerShape(
        "qwen2.5-3b", 36, 2048, 11008, 16, 2, 128, 151936, qkv_bias=True, tied_embeddings=True),
    "Qwen/Qwen2.5-7B": TransformerShape("qwen2.5-7b", 28, 3584, 18944, 28, 4, 128, 152064, qkv_bias=True),
    "Qwen/Qwen2.5-14B": TransformerShape("qwen2.5-14b", 48, 5120, 13824, 40, 8, 128, 152064, qkv_bias=True),
    "Qwen/Qwen2.5-32B": TransformerShape("qwen2.5-32b", 64, 5120, 27648, 40, 8, 128, 152064, qkv_bias=True),
    "Qwen/Qwen2.5-72B": TransformerShape("qwen2.5-72b", 80, 8192, 29568, 64, 8, 128, 152064, qkv_bias=True),
    "Qwen/Qwen1.5-MoE-A2.7B": TransformerShape(
        "qwen1.5-moe-a2.7b", 24, 2048, 1408, 16, 16, 128, 151936, 60, 4,
        shared_experts=1, shared_mlp=5632, shared_gate=True, qkv_bias=True),
    "Qwen/Qwen3-4B": TransformerShape("qwen3-4b", 36, 2560, 9728, 32, 8, 128, 151936, tied_embeddings=True, **_QWEN_3),
    "Qwen/Qwen3-8B": TransformerShape("qwen3-8b", 36, 4096, 12288, 32, 8, 128, 151936, **_QWEN_3),
    "Qwen/Qwen3-14B": TransformerShape("qwen3-14b", 40, 5120, 17408, 40, 8, 128, 151936, **_QWEN_3),
    "Qwen/Qwen3-32B": TransformerShape("qwen3-32b", 64, 5120, 25600, 64, 8, 128, 151936, **_QWEN_3),
    "Qwen/Qwen3-30B-A3B": TransformerShape("qwen3-30b-a3b", 48, 2048, 768, 32, 4, 128, 151936, 128, 8, **_QWEN_3),
    "Qwen/Qwen3-235B-A22B": TransformerShape("qwen3-235b-a22b", 94, 4096, 1536, 64, 4, 128, 151936, 128, 8, **_QWEN_3),
    "google/gemma-2b": TransformerShape("gemma-2b", 18, 2048, 16384, 8, 1, 256, 256000, tied_embeddings=True),
    "google/gemma-7b": TransformerShape("gemma-7b", 28, 3072, 24576, 16, 16, 256, 256000, tied_embeddings=True),
    "google/gemma-2-2b": TransformerShape("gemma-2-2b", 26, 2304, 9216, 8, 4, 256, 256000, **_GEMMA_2),
    "google/gemma-2-9b": TransformerShape("gemma-2-9b", 42, 3584, 14336, 16, 8, 256, 256000, **_GEMMA_2),
    "google/gemma-2-27b": TransformerShape("gemma-2-27b", 46, 4608, 36864, 32, 16, 128, 256000, **_GEMMA_2),
    "google/gemma-3-1b-pt": TransformerShape(
        "gemma-3-1b", 26, 1152, 6912, 4, 1, 256, 262144, tied_embeddings=True, norms_per_layer=4, query_key_norm=True,
        window=512, full_attention_period=6),
    "deepseek-ai/DeepSeek-V2": TransformerShape(
        "deepseek-v2", 60, 5120, 1536, 128, 128, 192, 102400, 160, 6, shared_experts=2, shared_mlp=1536,
        dense_layers=1, dense_mlp=12288, q_lora_rank=1536, expert_groups=8, groups_per_token=3, **_LATENT),
    "deepseek-ai/DeepSeek-V2-Lite": TransformerShape(
        "deepseek-v2-lite", 27, 2048, 1408, 16, 16, 192, 102400, 64, 6, shared_experts=2, shared_mlp=1408,
        dense_layers=1, dense_mlp=10944, **_LATENT),
    "deepseek-ai/DeepSeek-V3": TransformerShape(
        "deepseek-v3", 61, 7168, 2048, 128, 128, 192, 129280, 256, 8, shared_experts=1, shared_mlp=2048,
        dense_layers=3, dense_mlp=18432, q_lora_rank=1536, router_bias=True, prediction_layers=1, expert_groups=8,
        groups_per_token=4, **_LATENT,
        source="DeepSeek-AI 2024, arXiv:2412.19437, section 4.2; config.json of deepseek-ai/DeepSeek-V3"),
    "openai-community/gpt2": TransformerShape("gpt2", 12, 768, 3072, 12, 12, 64, 50257, **_GPT_2),
    "openai-community/gpt2-medium": TransformerShape("gpt2-medium", 24, 1024, 4096, 16, 16, 64, 50257, **_GPT_2),
    "openai-community/gpt2-large": TransformerShape("gpt2-large", 36, 1280, 5120, 20, 20, 64, 50257, **_GPT_2),
    "openai-community/gpt2-xl": TransformerShape("gpt2-xl", 48, 1600, 6400, 25, 25, 64, 50257, **_GPT_2),
    "EleutherAI/gpt-neox-20b": TransformerShape("gpt-neox-20b", 44, 6144, 24576, 64, 64, 96, 50432, **_NEOX),
    "EleutherAI/pythia-70m": TransformerShape("pythia-70m", 6, 512, 2048, 8, 8, 64, 50304, **_NEOX),
    "EleutherAI/pythia-160m": TransformerShape("pythia-160m", 12, 768, 3072, 12, 12, 64, 50304, **_NEOX),
    "EleutherAI/pythia-410m": TransformerShape("pythia-410m", 24, 1024, 4096, 16, 16, 64, 50304, **_NEOX),
    "EleutherAI/pythia-1b": TransformerShape("pythia-1b", 16, 2048, 8192, 8, 8, 256, 50304, **_NEOX),
    "EleutherAI/pythia-1.4b": TransformerShape("pythia-1.4b", 24, 2048, 8192, 16, 16, 128, 50304, **_NEOX),
    "EleutherAI/pythia-2.8b": TransformerShape("pythia-2.8b", 32, 2560, 10240, 32, 32, 80, 50304, **_NEOX),
    "EleutherAI/pythia-6.9b": TransformerShape("pythia-6.9b", 32, 4096, 16384, 32, 32, 128, 50432, **_NEOX),
    "EleutherAI/pythia-12b": TransformerShape("pythia-12b", 36, 5120, 20480, 40, 40, 128, 50688, **_NEOX),
    "facebook/opt-125m": TransformerShape("opt-125m", 12, 768, 3072, 12, 12, 64, 50272, **_OPT),
    "facebook/opt-1.3b": TransformerShape("opt-1.3b", 24, 2048, 8192, 32, 32, 64, 50272, **_OPT),
    "facebook/opt-2.7b": TransformerShape("opt-2.7b", 32, 2560, 10240, 32, 32, 80, 50272, **_OPT),
    "facebook/opt-6.7b": TransformerShape("opt-6.7b", 32, 4096, 16384, 32, 32, 128, 50272, **_OPT),
    "facebook/opt-13b": TransformerShape("opt-13b", 40, 5120, 20480, 40, 40, 128, 50272, **_OPT),
    "facebook/opt-30b": TransformerShape("opt-30b", 48, 7168, 28672, 56, 56, 128, 50272, **_OPT),
    "bigscience/bloom-560m": TransformerShape("bloom-560m", 24, 1024, 4096, 16, 16, 64, 250880, **_BLOOM),
    "bigscience/bloom-1b1": TransformerShape("bloom-1b1", 24, 1536, 6144, 16, 16, 96, 250880, **_BLOOM),
    "bigscience/bloom-1b7": TransformerShape("bloom-1b7", 24, 2048, 8192, 16, 16, 128, 250880, **_BLOOM),
    "bigscience/bloom-3b": TransformerShape("bloom-3b", 30, 2560, 10240, 32, 32, 80, 250880, **_BLOOM),
    "bigscience/bloom-7b1": TransformerShape("bloom-7b1", 30, 4096, 16384, 32, 32, 128, 250880, **_BLOOM),
    "bigscience/bloom": TransformerShape("bloom", 70, 14336, 57344, 112, 112, 128, 250880, **_BLOOM),
    "tiiuae/falcon-7b": TransformerShape(
        "falcon-7b", 32, 4544, 18176, 71, 1, 64, 65024, norm="layer", gated_mlp=False, tied_embeddings=True,
        norms_per_layer=1, parallel_layers=True),
    "microsoft/Phi-3-mini-4k-instruct": TransformerShape(
        "phi-3-mini-4k", 32, 3072, 8192, 32, 32, 96, 32064, window=2047),
    "microsoft/Phi-3-medium-4k-instruct": TransformerShape(
        "phi-3-medium-4k", 40, 5120, 17920, 40, 10, 128, 32064, window=2047),
    "microsoft/phi-4": TransformerShape("phi-4", 40, 5120, 17920, 40, 10, 128, 100352),
}  # fmt: skip

#: Other ids whose config.json has the same sizes, by id. They were compared with copies of configs on the Hub, or with
#: the tables of configs/recipes/llama3_1 and llama3_3 of oumi-ai/oumi. The first configs of Meta-Llama-3.1-405B had 16
#: key and value heads, later ones have 8.
_SAME_SIZES = {
    "meta-llama/Llama-2-7b-chat-hf": "meta-llama/Llama-2-7b-hf",
    "meta-llama/Llama-2-13b-chat-hf": "meta-llama/Llama-2-13b-hf",
    "meta-llama/Llama-2-70b-chat-hf": "meta-llama/Llama-2-70b-hf",
    "meta-llama/Meta-Llama-3-8B-Instruct": "meta-llama/Meta-Llama-3-8B",
    "meta-llama/Meta-Llama-3-70B-Instruct": "meta-llama/Meta-Llama-3-70B",
    "meta-llama/Meta-Llama-3.1-8B": "meta-llama/Meta-Llama-3-8B",
    "meta-llama/Meta-Llama-3.1-8B-Instruct": "meta-llama/Meta-Llama-3-8B",
    "meta-llama/Llama-3.1-8B": "meta-llama/Meta-Llama-3-8B",
    "meta-llama/Llama-3.1-8B-Instruct": "meta-llama/Meta-Llama-3-8B",
    "meta-llama/Meta-Llama-3.1-70B": "meta-llama/Meta-Llama-3-70B",
    "meta-llama/Meta-Llama-3.1-70B-Instruct": "meta-llama/Meta-Llama-3-70B",
    "meta-llama/Llama-3.1-70B": "meta-llama/Meta-Llama-3-70B",
    "meta-llama/Llama-3.1-70B-Instruct": "meta-llama/Meta-Llama-3-70B",
    "meta-llama/Llama-3.3-70B-Instruct": "meta-llama/Meta-Llama-3-70B",
    "meta-llama/Meta-Llama-3.1-405B": "meta-llama/Llama-3.1-405B",
    "meta-llama/Meta-Llama-3.1-405B-Instruct": "meta-llama/Llama-3.1-405B",
    "meta-llama/Llama-3.1-405B-Instruct": "meta-llama/Llama-3.1-405B",
    "meta-llama/Llama-3.2-1B-Instruct": "meta-llama/Llama-3.2-1B",
    "meta-llama/Llama-3.2-3B-Instruct": "meta-llama/Llama-3.2-3B",
}


def _with_source(shape: TransformerShape, hub_id: str) -> TransformerShape:
    return replace(shape, source=f"config.json of {hub_id}") if shape.source == "given" else shape


#: Published shapes by name. tests/python/planner/test_hf_config.py compares them with their configs.
SHAPES: Mapping[str, TransformerShape] = MappingProxyType(
    {shape.name: _with_source(shape, hub_id) for hub_id, shape in _PUBLISHED.items()}
)

#: Names of published shapes by id on the Hub.
HUB_IDS: Mapping[str, str] = MappingProxyType(
    {hub_id: shape.name for hub_id, shape in _PUBLISHED.items()}
    | {hub_id: _PUBLISHED[same].name for hub_id, same in _SAME_SIZES.items()}
)

_NAMES = {
    **{hub_id.partition("/")[2].lower(): name for hub_id, name in HUB_IDS.items()},  # ids without organisation
    **{hub_id.lower(): name for hub_id, name in HUB_IDS.items()},
    **{name: name for name in SHAPES},
}


def published_shape(text: str) -> TransformerShape | None:
    """Returns the shape of a name, or of an id with or without its organisation, in any case; None if unknown."""
    name = _NAMES.get(text.lower())
    return None if name is None else SHAPES[name]
