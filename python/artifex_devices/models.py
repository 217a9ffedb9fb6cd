# SPDX-License-Identifier: Apache-2.0
"""Steps of well-known models, for `planner.plan_step`: shapes as published, with their sources."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from numpy.typing import DTypeLike

from artifex_devices._base.checks import check_number, failure, wrong_type, wrong_value
from artifex_devices._base.nearest_name import did_you_mean
from artifex_devices._base.public_lookup import add_public_lookup
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices.planner.plain_numbers import is_count, plain
from artifex_devices.planner.shape import SHAPES, ShapeParameters, TransformerShape, from_hf_config, from_transformers
from artifex_devices.planner.step import Operation, Optimizer, StepBuilder, StepModel, Tensor

__all__ = [
    "SHAPES", "Operation", "Optimizer", "ShapeParameters", "StepModel", "Tensor", "TransformerShape", "from_hf_config",
    "from_transformers", "mlp", "moe", "transformer",
]  # fmt: skip
add_public_lookup(__name__)

ADAM = Optimizer(8)
_PRODUCTS = (
    "x", "q", "k", "v", "attended", "middle", "gate", "up", "logits", "last", "expert_in", "router", "shared_gate",
    "shared_up",
)  # fmt: skip
_ALWAYS = ("attention_in", "mlp_in", "activated", "shared_activated", "final_in")  # stored as well as _PRODUCTS
_KEPT = {"layers": ("x", "last"), "products": _PRODUCTS, "all": _PRODUCTS + _ALWAYS}


def transformer(
    shape: str | TransformerShape,
    *,
    batch: int,
    sequence: int,
    keep: str | Iterable[str] = "products",
    optimizer: Optimizer | None = ADAM,
    cache: int = 0,
    dtype: DTypeLike | None = "bfloat16",
    capacity_factor: float = 1,
) -> StepModel:
    """Describes a step of a decoder, dense or with experts.

    Logical axes of parameters: "vocab", "embed", "kv_heads", "queries_per_kv", "head_dim", "mlp", "experts", "router"
    and "norm". Of activations: "batch", "sequence", "kv_sequence" (the keys' side of scores), "activation_embed",
    "expert_batch" (tokens of an expert), and "kv_heads", "queries_per_kv", "head_dim", "mlp", "vocab", "experts" too.
    Attention scores stay on the chip and are recomputed in the backward pass, as by FlashAttention; masked scores
    count too.

    Args:
        shape: A name of `SHAPES`, in any case, or a shape.
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

    Raises:
        ValueError: Unknown shape; numbers below 1; expert places that are not a whole number; a capacity factor without
            experts; a cache in training; a shape with biases, latent attention, a window below the number of tokens, or
            other parts that einsums cannot describe exactly, for which `planner.plan_training` can estimate the time.
        TypeError: An argument has the wrong type.

    Example:
        >>> transformer("llama-2-7b", batch=8, sequence=4096).parameters
        6738415616
    """
    if isinstance(shape, str):
        if shape.lower() not in SHAPES:
            raise failure(
                ValueError,
                "models.transformer",
                f"shape is {safe_repr(shape)}{did_you_mean(shape, SHAPES)}",
                expected=f"one of {', '.join(SHAPES)}",
                fix="or give a TransformerShape",
            )
        shape = SHAPES[shape.lower()]
    if not isinstance(shape, TransformerShape):
        raise wrong_type("models.transformer", "shape", shape, "a name or a TransformerShape", "write 'llama-2-7b'")
    batch, sequence, cache = _counts("transformer", {"batch": batch, "sequence": sequence, "cache": cache})
    if not shape.experts and _factor("transformer", capacity_factor) != 1:
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
        sizes["c"] = _expert_places("transformer", shape.experts, each, batch * sequence, capacity_factor)
    parts = StepBuilder(sizes, shape.layers, dtype, kept, is_training=optimizer is not None)
    parts.add_tensor("embedding", "vd", "parameter", count=1)
    # The result is the first layer's input.
    parts.add_operation("embed", "vd->bsd", ("embedding",), "embedded", "lookup", count=1, needed=())
    parts.add_attention(bool(cache))
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
    return _model(f"{shape.name} ({batch} x {sequence} tokens)", parts, batch * sequence, optimizer)


def mlp(
    *,
    embed: int,
    mlp: int,
    layers: int,
    tokens: int,
    optimizer: Optimizer | None = ADAM,
    dtype: DTypeLike | None = "bfloat16",
) -> StepModel:
    """Describes layers of two matrices, as in the scaling book's chapter on training: In * W_in -> Tmp * W_out -> Out.

    Logical axes: "batch" (tokens), "activation_embed", "mlp"; of the parameters "embed" and "mlp". In and Tmp of each
    layer are kept.

    Args:
        embed: Width of In and Out.
        mlp: Width of Tmp.
        layers: Number of layers.
        tokens: Number of tokens in a step.
        optimizer: Optimiser, or None for a forward step.
        dtype: Dtype of parameters and activations.

    Raises:
        ValueError: A number below 1.

    Example:
        >>> mlp(embed=8192, mlp=32768, layers=1, tokens=48000).parameters
        536870912
    """
    embed, mlp, layers, tokens = _counts("mlp", {"embed": embed, "mlp": mlp, "layers": layers, "tokens": tokens})
    parts = StepBuilder({"b": tokens, "d": embed, "f": mlp}, layers, dtype, ("in", "tmp"))
    parts.add_tensor("in", "bd")
    parts.add_product("in * w_in", "bd,df->bf", "in", "w_in", "tmp")
    parts.add_product("tmp * w_out", "bf,fd->bd", "tmp", "w_out", "out", needed=())  # the next layer's In
    return _model(f"{layers} layers of {embed} x {mlp}", parts, tokens, optimizer)


def moe(
    *,
    embed: int,
    mlp: int,
    experts: int,
    experts_per_token: int,
    layers: int,
    tokens: int,
    capacity_factor: float = 1,
    optimizer: Optimizer | None = ADAM,
    dtype: DTypeLike | None = "bfloat16",
) -> StepModel:
    """Describes layers of experts, each a gated MLP: a router, tokens to their experts, three matrices, tokens back.

    Logical axes: "batch" (tokens), "activation_embed", "experts", "expert_batch" (tokens of an expert), "mlp"; of the
    parameters "embed", "experts", "mlp" and "router" (the router's experts; each token needs all of them). In, the
    router's result, the experts' inputs and their gate and up products of each layer are kept.

    Args:
        embed: Width of In and Out.
        mlp: Width of one expert.
        experts: Number of experts in a layer.
        experts_per_token: Number of experts that each token is routed to.
        layers: Number of layers.
        tokens: Number of tokens in a step.
        capacity_factor: Places of each expert, divided by the number that balanced routing fills.
        optimizer: Optimiser, or None for a forward step.
        dtype: Dtype of parameters and activations.

    Raises:
        ValueError: A number is below 1, a token has more experts than the layer, or expert places are not a whole
            number.
        TypeError: An argument has the wrong type.

    Example:
        >>> moe(embed=4096, mlp=14336, experts=8, experts_per_token=2, layers=1, tokens=65536).parameters
        1409318912
    """
    numbers = {"embed": embed, "mlp": mlp, "experts": experts, "experts_per_token": experts_per_token}
    embed, mlp, experts, experts_per_token, layers, tokens = _counts(
        "moe", numbers | {"layers": layers, "tokens": tokens}
    )
    if experts_per_token > experts:
        raise failure(
            ValueError,
            "models.moe",
            f"each token is routed to {experts_per_token} of {experts} experts",
            expected="at most all",
            fix="correct experts_per_token",
        )
    places = _expert_places("moe", experts, experts_per_token, tokens, capacity_factor)
    sizes = {"b": tokens, "d": embed, "f": mlp, "e": experts, "r": experts, "c": places}
    parts = StepBuilder(sizes, layers, dtype, ("in", "router", "expert_in", "gate", "up"))
    parts.add_tensor("in", "bd")
    parts.add_experts("b", "in", "out")  # the next layer's In
    return _model(f"{layers} layers of {experts} experts of {embed} x {mlp}", parts, tokens, optimizer)


def _model(name: str, parts: StepBuilder, tokens: int, optimizer: Optimizer | None) -> StepModel:
    axes = ("batch", "expert_batch") if "c" in parts.sizes else ("batch",)
    return StepModel(name, tuple(parts.tensors), tuple(parts.operations), tokens, axes, optimizer)


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


def _factor(operation: str, factor: object) -> float:
    """Returns a capacity factor as a Python number above 0 and below 2**62."""
    operation = f"models.{operation}"
    value = check_number(operation, "capacity_factor", plain(factor), "write 1", above=0, expected="a number above 0")
    if value >= 2**62:
        raise wrong_value(operation, "capacity_factor", value, "a number below 2**62", "write 1")
    return value


def _expert_places(operation: str, experts: int, experts_per_token: int, tokens: int, factor: object) -> int:
    """Returns the number of places of one expert."""
    places = tokens * experts_per_token * _factor(operation, factor) / experts
    if places < 1 or places != int(places):
        raise failure(
            ValueError,
            f"models.{operation}",
            (
                f"each of {experts} experts has {places:g} places for {tokens} tokens that are routed to "
                f"{experts_per_token} experts each"
            ),
            expected="a whole number",
            fix="change the tokens or capacity_factor",
        )
    return int(places)


def _counts(operation: str, counts: dict[str, Any]) -> tuple[int, ...]:
    """Returns the numbers as Python ints; all are 1 or more, but a cache may be 0."""
    numbers = {name: plain(value) for name, value in counts.items()}
    wrong = [name for name, value in numbers.items() if not is_count(value, 0 if name == "cache" else 1)]
    if wrong:
        texts = ", ".join(f"{name} is {safe_repr(numbers[name])}" for name in wrong)
        expected = ["ints of 1 or more"] * (wrong != ["cache"]) + ["a cache of 0 or more tokens"] * ("cache" in wrong)
        raise ValueError(f"models.{operation}: {texts}; expected {' and '.join(expected)}, below 2**62; correct each")
    return tuple(numbers.values())
