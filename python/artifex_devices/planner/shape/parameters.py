# SPDX-License-Identifier: Apache-2.0
"""Shapes of decoders of any architecture: sizes of a config, and exact numbers of parameters from their names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

from artifex_devices._base.checks import failure
from artifex_devices.planner.plain_numbers import is_count
from artifex_devices.planner.shape.hf_reader import ConfigReader
from artifex_devices.planner.shape.transformer import TransformerShape

# Keys of a config by field, as architectures of the library transformers 5.24.0 name them.
_KEYS = {
    "embed": ("hidden_size", "n_embd", "n_embed", "d_model", "dim", "model_dim"),
    "heads": ("num_attention_heads", "n_head", "num_heads", "n_heads", "attention_heads"),
    "kv_heads": ("num_key_value_heads", "num_kv_heads", "n_head_kv", "n_kv_heads"),
    "head_dim": ("head_dim", "kv_channels", "d_kv", "d_head"),
    "mlp": ("moe_intermediate_size", "expert_ffn_hidden_size", "intermediate_size", "ffn_dim", "n_inner", "d_ff",
            "ffn_hidden_size", "ff_dim", "mlp_dim"),
    "dense_mlp": ("intermediate_size", "ffn_dim", "ffn_hidden_size", "mlp_dim"),
    "experts_per_token": ("num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_k", "num_selected_experts"),
}  # fmt: skip
_LATENT = {
    "kv_lora_rank": "kv_lora_rank",
    "rope_head_dim": "qk_rope_head_dim",
    "nope_head_dim": "qk_nope_head_dim",
    "value_head_dim": "v_head_dim",
}
_LAYER = re.compile(r"(?:^|\.)(?:layers|h|blocks?|decoder_layers|layer)\.(\d+)\.")
_EXPERT = re.compile(r"(?:^|\.)(?:experts|local_experts|routed_experts)(?:\.(\d+))?\.")
_MLP = re.compile(r"mlp|feed_?forward|ffn|\.fc\d|moe|expert|gate_proj|up_proj|down_proj|\.wi\b|\.wo\b|4h_to_h|h_to_4h")
_HEAD = re.compile(r"(?:^|\.)(?:lm_head|embed_out|output|output_layer|output_projection)\.")
_EMBEDDING = re.compile(r"embed|wte|word_embeddings|tok_emb")


class _Layer(NamedTuple):
    """Elements of the matrices of one layer."""

    mlp: int  # without routed and shared experts
    routed: int
    shared: int


def stored_shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    """Returns the shapes of the arrays of a folder of safetensors files, from their headers."""
    from artifex_devices import checkpoint

    return {name: array.shape for name, array in checkpoint.metadata(folder).arrays.items()}


def from_parameters(
    operation: str,
    config: Mapping[Any, Any],
    shapes: Mapping[str, tuple[int, ...]],
    name: str,
    notes: tuple[str, ...] = (),
) -> TransformerShape:
    """Returns a shape with as many parameters as the arrays have. `other_parameters` is what the sizes leave out.

    Args:
        operation: Name for messages.
        config: Keys of a config.json.
        shapes: Shapes of the parameters, by name.
        name: Name of the model.
        notes: Notes of the shape.

    Raises:
        ValueError: The config lacks a size, or no name shows a layer or the embedding.
    """
    read = ConfigReader({field: _first(config, keys) for field, keys in _KEYS.items()}, {})
    layers = _layers(shapes)
    outside = {key: shape for key, shape in shapes.items() if not _LAYER.search(key)}
    tables = [shape for key, shape in outside.items() if _EMBEDDING.search(key) and len(shape) == 2]
    embed, heads = read.size("embed"), read.size("heads")
    kv_heads, head_dim = read.size("kv_heads", heads), read.size("head_dim", max(embed // heads, 1))
    width, per_token = read.size("dense_mlp", 4 * embed), read.size("experts_per_token", 1)
    if not layers or not tables:
        read.problems.append("no parameter is named as one of a layer, such as model.layers.0.mlp.up_proj.weight")
    if read.problems:
        raise failure(
            ValueError,
            operation,
            f"the sizes of {name} cannot be read: {'; '.join(read.problems)}",
            expected="a decoder with hidden_size, num_attention_heads and layers",
            fix="write a models.TransformerShape",
        )
    fields: dict[str, Any] = {
        "layers": len(layers),
        "embed": embed,
        "heads": heads,
        "kv_heads": kv_heads,
        "head_dim": head_dim,
        "vocab": max(shape[0] for shape in tables),
        "tied_embeddings": not any(_HEAD.search(key) for key in outside),
    }
    latent = {key: config.get(key) for key in _LATENT.values()}
    if all(is_count(size) for size in latent.values()):
        fields |= {field: config[key] for field, key in _LATENT.items()}
        fields |= {"q_lora_rank": config.get("q_lora_rank") or 0, "kv_heads": heads}
        fields["head_dim"] = fields["nope_head_dim"] + fields["rope_head_dim"]
    dense = [layer for layer in layers if not layer.routed]
    gated = (dense[0].mlp if dense else 3 * embed * width) > 2.5 * embed * width
    matrices = 3 if gated else 2
    dense_mlp = max(round(sum(layer.mlp for layer in dense) / (matrices * embed * len(dense))), 1) if dense else 0
    fields |= {"gated_mlp": gated, "mlp": dense_mlp or 1}
    if len(dense) < len(layers):
        fields |= _experts(per_token, shapes, layers, dense_mlp, matrices * embed)
    total = sum(map(prod, shapes.values()))
    shape = TransformerShape(name, **fields, source=f"parameters of {name}")
    other = total - shape.parameters.total
    how = "not" if other > 0 else "more than"
    share = f"{abs(other) / max(total, 1):.2%} of {total} parameters are {how} described by sizes"
    return replace(shape, other_parameters=other, notes=(*notes, *([share] if other else [])))


def _experts(
    per_token: int, shapes: Mapping[str, tuple[int, ...]], layers: list[_Layer], dense_mlp: int, per_width: int
) -> dict[str, Any]:
    """Returns the fields of routed and shared experts."""
    numbers = {int(match[1]) for key in shapes if (match := _EXPERT.search(key)) and match[1] is not None}
    stacked = [shape[0] for key, shape in shapes.items() if _EXPERT.search(key) and len(shape) == 3]
    count = len(numbers) or max(stacked, default=1)
    sparse = [i for i, layer in enumerate(layers) if layer.routed]
    mean = sum(layers[i].routed for i in sparse) / len(sparse)
    shared = sum(layers[i].shared for i in sparse) / len(sparse)
    period = sparse[1] - sparse[0] if len(sparse) > 1 else 1
    first = sparse[0] - (period - 1)
    is_mixed = first > 0 or period > 1
    shared_mlp = round(shared / per_width)
    return {
        "experts": count,
        "experts_per_token": min(per_token, count),
        "mlp": max(round(mean / count / per_width), 1),
        "dense_layers": max(first, 0),
        "expert_period": period,
        "dense_mlp": max(dense_mlp, 1) if is_mixed else 0,
        "shared_experts": 1 if shared_mlp else 0,
        "shared_mlp": shared_mlp,
    }


def _layers(shapes: Mapping[str, tuple[int, ...]]) -> list[_Layer]:
    """Returns the matrices of each layer, in order."""
    sums: dict[int, dict[str, int]] = {}
    for key, shape in shapes.items():
        match = _LAYER.search(key)
        if match is None:
            continue
        part = sums.setdefault(int(match[1]), {"mlp": 0, "routed": 0, "shared": 0})
        inside = key[match.end() - 1 :]
        if len(shape) < 2 or "bias" in inside or "norm" in inside:
            continue
        if "shared" in inside:
            part["shared"] += prod(shape)
        elif _EXPERT.search(inside):
            part["routed"] += prod(shape)
        elif _MLP.search(inside):
            part["mlp"] += prod(shape)
    return [_Layer(**sums[number]) for number in sorted(sums)]


def _first(config: Mapping[Any, Any], keys: tuple[str, ...]) -> object:
    return next((config[key] for key in keys if config.get(key) is not None), None)
