# SPDX-License-Identifier: Apache-2.0
"""Steps of decoders, dense or with experts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from numpy.typing import DTypeLike

from artifex_devices._base.checks import check_bool, failure, wrong_type, wrong_value
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices.planner.shape import ModelLike, TransformerShape, shape_of
from artifex_devices.planner.step.builder import StepBuilder
from artifex_devices.planner.step.model import Optimizer, StepModel
from artifex_devices.planner.step.sizes import ADAM, capacity_of, counts_of, expert_places, model_of

_PRODUCTS = (
    "x", "q", "k", "v", "attended", "middle", "gate", "up", "logits", "last", "expert_in", "router", "shared_gate",
    "shared_up",
)  # fmt: skip
_ALWAYS = ("attention_in", "mlp_in", "activated", "shared_activated", "final_in")  # stored as well as _PRODUCTS
_KEPT = {"layers": ("x", "last"), "products": _PRODUCTS, "all": _PRODUCTS + _ALWAYS}


def transformer(
    shape: ModelLike,
    *,
    batch: int,
    sequence: int,
    keep: str | Iterable[str] = "products",
    optimizer: Optimizer | None = ADAM,
    cache: int = 0,
    dtype: DTypeLike | None = "bfloat16",
    capacity_factor: float = 1,
    causal: bool = True,
) -> StepModel:
    """Describes a step of a decoder, dense or with experts.

    Logical axes of parameters: "vocab", "embed", "kv_heads", "queries_per_kv", "head_dim", "mlp", "experts", "router"
    and "norm". Of activations: "batch", "sequence", "kv_sequence" (the keys' side of scores), "activation_embed",
    "expert_batch" (tokens of an expert), and "kv_heads", "queries_per_kv", "head_dim", "mlp", "vocab", "experts" too.
    Attention scores stay on the chip and are recomputed in the backward pass, as by FlashAttention.

    Args:
        shape: A name of `SHAPES` or an id on the Hugging Face Hub, in any case; the path of a config.json, of its
            folder or of a TOML file; or a shape.
        batch: Number of sequences.
        sequence: Number of tokens in each sequence.
        keep: Activations that are kept for the backward pass. "layers": the input of each layer, the rest is
            recomputed; "products": results of all products, and inputs of layers; "all": results of norms and
            activation functions too. Or names of tensors.
        optimizer: Optimiser, or None for a forward step. The default is Adam with float32 moments.
        cache: For a forward step, number of tokens of each sequence whose keys and values exist already; attention
            reads these. With `sequence=1` that is a step of decoding.
        dtype: Dtype of parameters and activations.
        capacity_factor: Places of each expert, divided by the number that balanced routing fills; 1 without experts.
        causal: Whether the kernel of attention skips masked scores: half of them. With a cache no scores are masked.

    Raises:
        ValueError: Unknown shape; numbers below 1; expert places that are not a whole number; a capacity factor without
            experts; a cache in training; a shape with biases, latent attention, a window below the number of tokens, or
            other parts that einsums cannot describe exactly, for which `planner.plan_training` can estimate the time.
        TypeError: An argument has the wrong type.

    Example:
        >>> transformer("llama-2-7b", batch=8, sequence=4096).parameters
        6738415616
    """
    shape = shape_of("models.transformer", shape, "shape")
    batch, sequence, cache = counts_of("transformer", {"batch": batch, "sequence": sequence, "cache": cache})
    if not shape.experts and capacity_of("transformer", capacity_factor) != 1:
        raise failure(
            ValueError,
            "models.transformer",
            f"capacity_factor is {safe_repr(capacity_factor)} and {shape.name} has no experts",
            expected="1",
            fix="leave it out",
        )
    if problems := _inexact(shape, cache + sequence):
        raise failure(
            ValueError,
            "models.transformer",
            f"{shape.name} has {', '.join(problems)}",
            expected="a model that einsums describe exactly",
            fix="estimate it with planner.plan_training",
        )
    if cache and optimizer is not None:
        raise failure(
            ValueError,
            "models.transformer",
            f"cache is {cache} in a training step",
            expected="0, because training has no tokens from before",
            fix="give optimizer=None",
        )
    kept = _kept(keep)
    sizes = {
        "b": batch, "s": sequence, "t": cache or sequence, "d": shape.embed, "n": shape.embed, "k": shape.kv_heads,
        "g": shape.heads // shape.kv_heads, "h": shape.head_dim, "f": shape.mlp, "v": shape.vocab,
        "e": shape.experts, "r": shape.experts, "m": shape.shared_experts * shape.shared_mlp,
    }  # fmt: skip
    if shape.experts:
        each = shape.experts_per_token
        sizes["c"] = expert_places("transformer", shape.experts, each, batch * sequence, capacity_factor)
    parts = StepBuilder(sizes, shape.layers, dtype, kept, is_training=optimizer is not None)
    parts.add_tensor("embedding", "vd", "parameter", count=1)
    # The result is the first layer's input.
    parts.add_operation("embed", "vd->bsd", ("embedding",), "embedded", "lookup", count=1, needed=())
    is_causal = bool(check_bool("models.transformer", "causal", causal)) and not cache
    parts.add_attention(bool(cache), is_causal)
    parts.add_norm("mlp_norm", "middle", "mlp_in")
    if shape.experts:
        parts.add_experts("bs", "mlp_in", "mlp_out", is_gated=shape.gated_mlp)
        if shape.shared_experts:  # side by side, as one MLP
            parts.add_mlp("mlp_in", "shared_out", "m", "shared_", is_gated=shape.gated_mlp)
    else:
        parts.add_mlp("mlp_in", "mlp_out", is_gated=shape.gated_mlp)
    parts.add_tensor("last", "bsd", count=1)
    parts.add_norm("final_norm", "last", "final_in", count=1)
    if shape.tied_embeddings:
        parts.add_operation("logits", "bsd,vd->bsv", ("final_in", "embedding"), "logits", count=1)
    else:
        parts.add_product("logits", "bsd,dv->bsv", "final_in", "w_out", "logits", count=1)
    activations = [tensor.name for tensor in parts.tensors if tensor.role == "activation"]
    unknown = sorted(kept.difference(activations))
    if unknown and not isinstance(keep, str):  # _KEPT has names of dense models and of experts
        raise failure(
            ValueError,
            "models.transformer",
            f"keep names {', '.join(map(safe_repr, unknown))}",
            expected=f"activations of the model ({', '.join(activations)})",
            fix="correct it",
        )
    return model_of(f"{shape.name} ({batch} x {sequence} tokens)", parts, batch * sequence, optimizer)


def _inexact(shape: TransformerShape, tokens: int) -> list[str]:
    """Lists what einsums and parameters with one use cannot describe."""
    found = {
        "multi-head latent attention": shape.kv_lora_rank,
        "layers with and without experts": shape.dense_layers or shape.expert_period > 1,
        f"a window of {shape.window} of {tokens} tokens": 0 < shape.window < tokens,
        "learned positions": shape.positions,
        f"{shape.norms_per_layer} norms in each layer": shape.norms_per_layer != 2,
        "norms with biases": shape.norm == "layer",
        "norms without parameters": shape.norm == "layer without parameters",
        "norms of query and key heads": shape.query_key_norm or shape.joint_query_key_norm,
        "linear attention": shape.linear_value_heads,
        "learned logits of attention": shape.attention_sinks,
        "a gate of attention": shape.gated_attention,
        "parameters that its sizes do not describe": shape.other_parameters,
        "a norm of the embedding": shape.embedding_norm,
        "a gate of shared experts": shape.shared_gate,
        "attention and MLP side by side": shape.parallel_layers,
        "biases": shape.qkv_bias or shape.attention_out_bias or shape.mlp_bias or shape.head_bias or shape.router_bias,
    }
    return [text for text, is_there in found.items() if is_there]


def _kept(keep: object) -> frozenset[str]:
    expected = f"{', '.join(map(repr, _KEPT))} or names of tensors"
    if isinstance(keep, str):
        if keep not in _KEPT:
            raise wrong_value("models.transformer", "keep", keep, expected, "choose one")
        return frozenset(_KEPT[keep])
    names: tuple[Any, ...] = tuple(keep) if isinstance(keep, Iterable) else (None,)
    if not all(isinstance(name, str) for name in names):
        raise wrong_type("models.transformer", "keep", keep, expected, "choose one")
    return frozenset(names)
