# SPDX-License-Identifier: Apache-2.0
"""Rules for models: Hugging Face's llama and Mixtral, as MaxText and as trees for einsum.

Source of MaxText's names, axes and arithmetic: github.com/AI-Hypercomputer/maxtext, commit e591f30c (2026-08-22), in
src/maxtext/checkpoint_conversion with scanned layers: the functions LLAMA31_MAXTEXT_TO_HF_* and MIXTRAL_MAXTEXT_TO_HF_*
of utils/param_mapping.py, the functions of to_maxtext.py that stack layers and experts, and for llama 2
standalone_scripts/llama_mistral_mixtral_orbax_to_hf.py, which leaves the elements of a head in their order.
"""

from __future__ import annotations

import math

from artifex_devices._base.checks import check_bool, check_choice, check_int, check_str, failure
from artifex_devices._base.public_path import public
from artifex_devices.checkpoint.array_rules import rename, scale
from artifex_devices.checkpoint.axis_rules import flatten, stack, transpose, unflatten
from artifex_devices.checkpoint.rule import Rule

_OPERATION = "rules.preset"
_LAYER = "model.layers.{layer}"

# Names in Hugging Face's files, MaxText and trees. Names of layers are without what they begin with.
_MODEL = {
    "model.embed_tokens": ("token_embedder.embedding", "embedding"),
    "model.norm": ("decoder.decoder_norm.scale", "norm"),
    "lm_head": ("decoder.logits_dense.kernel", "head"),
}
_NORMS = {
    "input_layernorm": ("pre_self_attention_layer_norm.scale", "attention_norm"),
    "post_attention_layernorm": ("post_self_attention_layer_norm.scale", "mlp_norm"),
}
_MLP = {
    "mlp.gate_proj": ("mlp.wi_0.kernel", "gate"),
    "mlp.up_proj": ("mlp.wi_1.kernel", "up"),
    "mlp.down_proj": ("mlp.wo.kernel", "down"),
}
_ROUTER = {"block_sparse_moe.gate": ("MoeBlock_0.gate.kernel", "router")}
_EXPERTS = {
    "block_sparse_moe.experts.{expert}.w1": ("MoeBlock_0.wi_0", "gate"),
    "block_sparse_moe.experts.{expert}.w3": ("MoeBlock_0.wi_1", "up"),
    "block_sparse_moe.experts.{expert}.w2": ("MoeBlock_0.wo", "down"),
}
_ATTENTION = {
    "self_attn.q_proj": ("self_attention.query.kernel", "query"),
    "self_attn.k_proj": ("self_attention.key.kernel", "key"),
    "self_attn.v_proj": ("self_attention.value.kernel", "value"),
    "self_attn.o_proj": ("self_attention.out.kernel", "out"),
}
_NAMES = tuple(
    f"hf-to-{name}" for name in ("maxtext-llama", "maxtext-llama2", "maxtext-mixtral", "tree-llama", "tree-mixtral")
)


@public("artifex_devices.checkpoint.rules")
def preset(
    name: str,
    *,
    heads: int,
    kv_heads: int,
    head_dim: int,
    tied: bool = False,
    prefix: str | None = None,
    scan_axis: int | None = None,
) -> list[Rule]:
    """Returns the rules that convert a model of Hugging Face; `inverse` of them converts it back.

    "hf-to-maxtext-llama" is for llama 3.1 and later, for which MaxText rotates neighbouring elements of a head;
    "hf-to-maxtext-llama2" is for llama 2 and Mistral, and "hf-to-maxtext-mixtral" for Mixtral. All are for scanned
    layers. MaxText divides the weights of queries by the square root of `head_dim` and rounds them to their dtype, so
    they may differ in the last bit after a conversion and its inverse, unless `head_dim` is a power of 4. All other
    weights keep their bits.

    "hf-to-tree-llama" and "hf-to-tree-mixtral" create the arrays `embedding`, `norm`, `head`, and `layers.` with
    `query`, `key`, `value`, `out`, `gate`, `up`, `down`, `attention_norm`, `mlp_norm` and `router`. Layers are the
    first axis, experts the next, then inputs, then outputs: `layers.query` has the shape (layers, inputs, heads,
    head_dim). All weights keep their bits.

    Args:
        name: "hf-to-maxtext-llama" or another name above.
        heads: Number of heads of queries, `num_attention_heads` of config.json.
        kv_heads: Number of heads of keys and values, `num_key_value_heads` of config.json.
        head_dim: Size of a head; an even number for "hf-to-maxtext-llama".
        tied: Whether the model has no lm_head, because it is the embedding (`tie_word_embeddings`).
        prefix: What all new names begin with; None for "params." in MaxText, and for nothing in trees.
        scan_axis: Axis of the layers: MaxText's setting `param_scan_axis`. None for 1 in MaxText, and for 0 in trees.

    Raises:
        TypeError: An argument has another type.
        ValueError: The name is unknown, or a number is out of range.

    Example:
        >>> from artifex_devices.checkpoint import rules
        >>> made = rules.preset("hf-to-maxtext-llama", heads=32, kv_heads=8, head_dim=128)
        >>> made[0]
        rules.rename('model.embed_tokens.weight', 'params.token_embedder.embedding')
    """
    check_choice(_OPERATION, "name", name, _NAMES)
    heads = check_int(_OPERATION, "heads", heads, minimum=1)
    kv_heads = check_int(_OPERATION, "kv_heads", kv_heads, minimum=1)
    head_dim = check_int(_OPERATION, "head_dim", head_dim, minimum=1)
    is_maxtext = name.startswith("hf-to-maxtext")
    is_mixtral = name.endswith("mixtral")
    is_interleaved = name == "hf-to-maxtext-llama"
    if is_interleaved and head_dim % 2:
        raise failure(ValueError, _OPERATION, f"head_dim is {head_dim}", expected="an even number", fix="correct it")
    axis = int(is_maxtext) if scan_axis is None else check_int(_OPERATION, "scan_axis", scan_axis, minimum=0, maximum=1)
    start = ("params." if is_maxtext else "") if prefix is None else check_str(_OPERATION, "prefix", prefix)
    column = 0 if is_maxtext else 1
    layers = f"{start}decoder.layers." if is_maxtext else f"{start}layers."
    embedding, norm, head = (start + names[column] for names in _MODEL.values())
    made = [rename("model.embed_tokens.weight", embedding), rename("model.norm.weight", norm)]
    if not check_bool(_OPERATION, "tied", tied):
        made += [transpose("lm_head.weight", (1, 0)), rename("lm_head.weight", head)]
    for source, names in _NORMS.items():
        made.append(stack(f"{_LAYER}.{source}.weight", layers + names[column], "layer", axis))
    for source, names in (_ROUTER if is_mixtral else _MLP).items():
        weight = f"{_LAYER}.{source}.weight"
        made += [transpose(weight, (1, 0)), stack(weight, layers + names[column], "layer", axis)]
    for source, names in (_EXPERTS if is_mixtral else {}).items():
        weight, target = f"{_LAYER}.{source}.weight", layers + names[column]
        inner, outer = ("layer", "expert") if is_maxtext else ("expert", "layer")
        made += [
            transpose(weight, (1, 0)),
            stack(weight, f"{target}.{{{outer}}}", inner),
            stack(f"{target}.{{{outer}}}", target, outer),
        ]
    for (source, names), count in zip(_ATTENTION.items(), (heads, kv_heads, kv_heads, heads), strict=True):
        weight = f"{_LAYER}.{source}.weight"
        made.append(transpose(weight, (1, 0)))
        if is_interleaved and names[1] in ("query", "key"):
            made += _interleaved(weight, count, head_dim)
        else:
            made.append(unflatten(weight, 0 if names[1] == "out" else 1, [count, head_dim]))
        if is_maxtext and names[1] == "query":
            made.append(scale(weight, 1 / math.sqrt(head_dim)))
        made.append(stack(weight, layers + names[column], "layer", axis))
    return made


def _interleaved(weight: str, heads: int, head_dim: int) -> list[Rule]:
    """Returns the rules for rotary embeddings: Hugging Face rotates halves of a head, MaxText pairs of elements."""
    return [
        unflatten(weight, 1, [heads, 2, head_dim // 2]),
        transpose(weight, (0, 1, 3, 2)),
        flatten(weight, 2, [head_dim // 2, 2]),
    ]
