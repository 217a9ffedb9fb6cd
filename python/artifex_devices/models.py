# SPDX-License-Identifier: Apache-2.0
"""Steps of well-known models, for `planner.plan_step`: shapes as published, with their sources."""

from __future__ import annotations

from numpy.typing import DTypeLike

from artifex_devices._base.checks import failure
from artifex_devices._base.public_lookup import add_public_lookup
from artifex_devices.planner.shape import (
    HUB_IDS,
    SHAPES,
    ShapeParameters,
    TransformerShape,
    from_hf_config,
    from_transformers,
)
from artifex_devices.planner.step import Operation, Optimizer, StepBuilder, StepModel, Tensor, transformer
from artifex_devices.planner.step.sizes import ADAM, counts_of, expert_places, model_of

__all__ = [
    "HUB_IDS", "SHAPES", "Operation", "Optimizer", "ShapeParameters", "StepModel", "Tensor", "TransformerShape",
    "from_hf_config", "from_transformers", "mlp", "moe", "transformer",
]  # fmt: skip
add_public_lookup(__name__)


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
    embed, mlp, layers, tokens = counts_of("mlp", {"embed": embed, "mlp": mlp, "layers": layers, "tokens": tokens})
    parts = StepBuilder({"b": tokens, "d": embed, "f": mlp}, layers, dtype, ("in", "tmp"))
    parts.add_tensor("in", "bd")
    parts.add_product("in * w_in", "bd,df->bf", "in", "w_in", "tmp")
    parts.add_product("tmp * w_out", "bf,fd->bd", "tmp", "w_out", "out", needed=())  # the next layer's In
    return model_of(f"{layers} layers of {embed} x {mlp}", parts, tokens, optimizer)


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
    embed, mlp, experts, experts_per_token, layers, tokens = counts_of(
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
    places = expert_places("moe", experts, experts_per_token, tokens, capacity_factor)
    sizes = {"b": tokens, "d": embed, "f": mlp, "e": experts, "r": experts, "c": places}
    parts = StepBuilder(sizes, layers, dtype, ("in", "router", "expert_in", "gate", "up"))
    parts.add_tensor("in", "bd")
    parts.add_experts("b", "in", "out")  # the next layer's In
    return model_of(f"{layers} layers of {experts} experts of {embed} x {mlp}", parts, tokens, optimizer)
