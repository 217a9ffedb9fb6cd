# SPDX-License-Identifier: Apache-2.0
"""The parameters of a decoder as a tree: the shape of each array, and what each of its dimensions is sharded over."""

from __future__ import annotations

from artifex_devices.planner.shape import TransformerShape

#: A dimension: its size and what it is sharded over. "full" is what ZeRO 3 shards.
Dimension = tuple[int, str]
Array = tuple[Dimension, ...]
Tree = dict[str, "Array | Tree"]

LAYERS, TENSOR, FULL, EXPERTS, EXPERT_TENSOR, EXPERT_FULL, WHOLE = (
    "layers", "tensor", "full", "experts", "expert tensor", "expert full", "",
)  # fmt: skip


def parameter_tree(shape: TransformerShape) -> Tree:
    """Returns the parameters of a decoder; the arrays of equal layers are stacked along a first dimension."""
    embed = shape.embed
    embedding: Tree = {"tokens": ((shape.vocab, TENSOR), (embed, FULL))}
    if shape.positions:
        embedding["positions"] = ((shape.positions, WHOLE), (embed, FULL))
    if shape.embedding_norm:
        embedding["norm"] = _norm(shape)
    tree: Tree = {"embedding": embedding, **_layer_groups(shape)}
    tree["final_norm"] = _norm(shape)
    head: Tree = {} if shape.tied_embeddings else {"w": ((embed, FULL), (shape.vocab, TENSOR))}
    if shape.head_bias:
        head["b"] = ((shape.vocab, TENSOR),)
    tree["head"] = head
    return _without_empty(tree)


def _layer_groups(shape: TransformerShape) -> Tree:
    """Returns the layers; in a model with both kinds, layers with a dense MLP and layers with experts."""
    norms = ("attention_norm", "mlp_norm", "attention_out_norm", "mlp_out_norm")
    names = norms[: shape.norms_per_layer] if shape.norms_per_layer > 1 else ("norm",) * shape.norms_per_layer
    both: Tree = {"attention": _attention(shape), **{name: _norm(shape) for name in names}}
    counts = shape.parameters
    groups: Tree = {}
    if counts.dense_layers:
        width = shape.dense_mlp if shape.experts else shape.mlp
        dense = {**both, "mlp": _mlp(shape, width)}
        groups["dense_layers" if shape.experts else "layers"] = _stacked(dense, counts.dense_layers)
    if counts.expert_layers:
        sparse = {**both, **_experts(shape)}
        groups["expert_layers" if counts.dense_layers else "layers"] = _stacked(sparse, counts.expert_layers)
    return groups


def _norm(shape: TransformerShape) -> Tree:
    if shape.norm == "layer without parameters":
        return {}
    scale: Tree = {"scale": ((shape.embed, WHOLE),)}
    return {**scale, "bias": ((shape.embed, WHOLE),)} if shape.norm == "layer" else scale


def _attention(shape: TransformerShape) -> Tree:
    embed, head = shape.embed, shape.head_dim
    queries, values = shape.heads * head, shape.heads * (shape.value_head_dim or head)
    arrays: Tree = {}
    if shape.kv_lora_rank:
        if shape.q_lora_rank:
            arrays["w_q_down"] = ((embed, FULL), (shape.q_lora_rank, WHOLE))
            arrays["q_norm"] = ((shape.q_lora_rank, WHOLE),)
            arrays["w_q_up"] = ((shape.q_lora_rank, FULL), (queries, TENSOR))
        else:
            arrays["w_q"] = ((embed, FULL), (queries, TENSOR))
        arrays["w_kv_down"] = ((embed, FULL), (shape.kv_lora_rank + shape.rope_head_dim, WHOLE))
        arrays["kv_norm"] = ((shape.kv_lora_rank, WHOLE),)
        arrays["w_kv_up"] = ((shape.kv_lora_rank, FULL), (shape.heads * shape.nope_head_dim + values, TENSOR))
    else:
        widths = {"q": queries, "k": shape.kv_heads * head, "v": shape.kv_heads * head}
        if shape.gated_attention:
            widths["gate"] = queries
        for name, width in widths.items():
            arrays[f"w_{name}"] = ((embed, FULL), (width, TENSOR))
        if shape.qkv_bias:
            arrays.update({f"b_{name}": ((width, TENSOR),) for name, width in widths.items()})
        if shape.query_key_norm:
            arrays.update({f"{name}_norm": ((head, WHOLE),) for name in ("q", "k")})
        if shape.joint_query_key_norm:
            arrays.update({f"{name}_norm": ((widths[name], TENSOR),) for name in ("q", "k")})
    if shape.attention_sinks:
        arrays["sinks"] = ((shape.heads, TENSOR),)
    arrays["w_o"] = ((values, TENSOR), (embed, FULL))
    if shape.attention_out_bias:
        arrays["b_o"] = ((embed, WHOLE),)
    return arrays


def _mlp(shape: TransformerShape, width: int) -> Tree:
    embed = shape.embed
    inputs = ("gate", "up") if shape.gated_mlp else ("up",)
    arrays: Tree = {f"w_{name}": ((embed, FULL), (width, TENSOR)) for name in inputs}
    arrays["w_down"] = ((width, TENSOR), (embed, FULL))
    if shape.mlp_bias:
        arrays.update({f"b_{name}": ((width, TENSOR),) for name in inputs})
        arrays["b_down"] = ((embed, WHOLE),)
    return arrays


def _experts(shape: TransformerShape) -> Tree:
    router: Tree = {"w": ((shape.embed, FULL), (shape.experts, WHOLE))}
    if shape.router_bias:
        router["b"] = ((shape.experts, WHOLE),)
    roles = {TENSOR: EXPERT_TENSOR, FULL: EXPERT_FULL}
    experts: Tree = {}
    for name, array in _mlp(shape, shape.mlp).items():
        assert isinstance(array, tuple)
        experts[name] = ((shape.experts, EXPERTS), *((size, roles.get(role, role)) for size, role in array))
    arrays: Tree = {"router": router, "experts": experts}
    if shape.shared_experts:
        arrays["shared_experts"] = _stacked(_mlp(shape, shape.shared_mlp), shape.shared_experts, WHOLE)
    if shape.shared_gate:
        arrays["shared_gate"] = ((shape.embed, WHOLE),)
    return arrays


def _stacked(tree: Tree, count: int, role: str = LAYERS) -> Tree:
    """Returns the same arrays with another first dimension."""
    return {
        name: _stacked(node, count, role) if isinstance(node, dict) else ((count, role), *node)
        for name, node in tree.items()
    }


def _without_empty(tree: Tree) -> Tree:
    cleaned = {name: _without_empty(node) if isinstance(node, dict) else node for name, node in tree.items()}
    return {name: node for name, node in cleaned.items() if node}
