# SPDX-License-Identifier: Apache-2.0
"""Steps of well-known models, for `planner.plan_step`: shapes as published, each with its source."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from artifex_devices._base.checks import wrong_type
from artifex_devices._base.nearest_name import did_you_mean
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices.planner.step_checks import is_count, plain
from artifex_devices.planner.step_model import Operation, Optimizer, StepModel, Tensor
from artifex_devices.planner.transformer_parts import TransformerParts, check_factor, expert_places
from artifex_devices.planner.transformer_shape import SHAPES, TransformerShape

__all__ = ["SHAPES", "Operation", "Optimizer", "StepModel", "Tensor", "TransformerShape", "mlp", "moe", "transformer"]

ADAM = Optimizer(8)


def transformer(
    shape: str | TransformerShape,
    *,
    batch: int,
    sequence: int,
    keep: str | Iterable[str] = "products",
    optimizer: Optimizer | None = ADAM,
    cache: int = 0,
    dtype: Any = "bfloat16",
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
        capacity_factor: Places of each expert, divided by what balanced routing needs; 1 without experts.

    Raises:
        ValueError: Unknown shape; numbers below 1; expert places that are not a whole number; a capacity factor without
            experts; a cache in training.
        TypeError: An argument has the wrong type.

    Example:
        >>> transformer("llama-2-7b", batch=8, sequence=4096).parameters
        6738415616
    """
    if isinstance(shape, str):
        if shape.lower() not in SHAPES:
            raise ValueError(
                f"models.transformer: shape is {safe_repr(shape)}{did_you_mean(shape, SHAPES)}; expected one of "
                f"{', '.join(SHAPES)}; or give a TransformerShape"
            )
        shape = SHAPES[shape.lower()]
    if not isinstance(shape, TransformerShape):
        raise wrong_type("models.transformer", "shape", shape, "a name or a TransformerShape", "write 'llama-2-7b'")
    batch, sequence, cache = _counts("transformer", {"batch": batch, "sequence": sequence, "cache": cache})
    if not shape.experts and check_factor("transformer", capacity_factor) != 1:
        raise ValueError(
            f"models.transformer: capacity_factor is {safe_repr(capacity_factor)} and {shape.name} has no experts; "
            "expected 1; leave it out"
        )
    if cache and optimizer is not None:
        raise ValueError(
            f"models.transformer: cache is {cache} in a training step; expected 0, because training has no tokens "
            "from before; give optimizer=None"
        )
    parts = TransformerParts(shape, batch, sequence, keep, optimizer is not None, cache, dtype, capacity_factor)
    return StepModel(
        f"{shape.name} ({batch} x {sequence} tokens)",
        tuple(parts.tensors),
        tuple(parts.operations),
        tokens=batch * sequence,
        batch_axes=("batch", "expert_batch") if shape.experts else ("batch",),
        optimizer=optimizer,
    )


def mlp(
    *, embed: int, mlp: int, layers: int, tokens: int, optimizer: Optimizer | None = ADAM, dtype: Any = "bfloat16"
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
    activations = ("batch", "activation_embed")
    return StepModel(
        f"{layers} layers of {embed} x {mlp}",
        (
            Tensor("in", (tokens, embed), activations, dtype, count=layers),
            Tensor("w_in", (embed, mlp), ("embed", "mlp"), dtype, role="parameter", count=layers),
            Tensor("tmp", (tokens, mlp), ("batch", "mlp"), dtype, count=layers),
            Tensor("w_out", (mlp, embed), ("mlp", "embed"), dtype, role="parameter", count=layers),
            Tensor("out", (tokens, embed), activations, dtype, count=layers, is_kept=False),  # the next layer's In
        ),
        (
            Operation("in * w_in", "bd,df->bf", ("in", "w_in"), "tmp", count=layers),
            Operation("tmp * w_out", "bf,fd->bd", ("tmp", "w_out"), "out", count=layers),
        ),
        tokens=tokens,
        optimizer=optimizer,
    )


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
    dtype: Any = "bfloat16",
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
        capacity_factor: Places of each expert, divided by what balanced routing needs.
        optimizer: Optimiser, or None for a forward step.
        dtype: Dtype of parameters and activations.

    Raises:
        ValueError: A number is below 1, a token has more experts than there are, or expert places are not a whole
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
        raise ValueError(
            f"models.moe: each token is routed to {experts_per_token} of {experts} experts; expected at most all; "
            "correct experts_per_token"
        )
    places = expert_places("moe", experts, experts_per_token, tokens, capacity_factor)
    rows, routed, inside = ("batch", "activation_embed"), ("experts", "expert_batch", "activation_embed"), "mlp"
    tensors = [Tensor("in", (tokens, embed), rows, dtype, count=layers)]
    tensors.append(Tensor("w_router", (embed, experts), ("embed", "router"), dtype, "parameter", layers))
    tensors.append(Tensor("router", (tokens, experts), ("batch", "router"), dtype, count=layers))
    tensors.append(Tensor("expert_in", (experts, places, embed), routed, dtype, count=layers))
    operations = [Operation("router", "bd,de->be", ("in", "w_router"), "router", count=layers)]
    operations.append(Operation("dispatch", "bd->ebd", ("in",), "expert_in", "route", layers))
    middle = ("experts", "expert_batch", inside)
    for name in ("gate", "up"):
        axes = ("experts", "embed", inside)
        tensors.append(Tensor(f"w_{name}", (experts, embed, mlp), axes, dtype, "parameter", layers))
        tensors.append(Tensor(name, (experts, places, mlp), middle, dtype, count=layers))
        operations.append(Operation(name, "ecd,edf->ecf", ("expert_in", f"w_{name}"), name, count=layers))
    tensors.append(Tensor("activated", (experts, places, mlp), middle, dtype, count=layers, is_kept=False))
    down = ("experts", inside, "embed")
    tensors.append(Tensor("w_down", (experts, mlp, embed), down, dtype, "parameter", layers))
    tensors.append(Tensor("expert_out", (experts, places, embed), routed, dtype, count=layers, is_kept=False))
    tensors.append(Tensor("out", (tokens, embed), rows, dtype, count=layers, is_kept=False))  # the next layer's In
    operations.append(Operation("down", "ecf,efd->ecd", ("activated", "w_down"), "expert_out", count=layers))
    operations.append(Operation("combine", "ebd->bd", ("expert_out",), "out", "route", layers))
    return StepModel(
        f"{layers} layers of {experts} experts of {embed} x {mlp}",
        tuple(tensors),
        tuple(operations),
        tokens=tokens,
        batch_axes=("batch", "expert_batch"),
        optimizer=optimizer,
    )


def _counts(operation: str, counts: dict[str, Any]) -> tuple[int, ...]:
    """Returns the numbers as Python ints; all are 1 or more, but a cache may be 0."""
    numbers = {name: plain(value) for name, value in counts.items()}
    wrong = [name for name, value in numbers.items() if not is_count(value, 0 if name == "cache" else 1)]
    if wrong:
        texts = ", ".join(f"{name} is {safe_repr(numbers[name])}" for name in wrong)
        expected = ["ints of 1 or more"] * (wrong != ["cache"]) + ["a cache of 0 or more tokens"] * ("cache" in wrong)
        raise ValueError(f"models.{operation}: {texts}; expected {' and '.join(expected)}, below 2**62; correct each")
    return tuple(numbers.values())
