# SPDX-License-Identifier: Apache-2.0
"""Steps of well-known models, for `planner.plan_step`: shapes as published, each with its source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from artifex_devices._base.nearest_name import did_you_mean
from artifex_devices._base.safe_repr import shown
from artifex_devices.planner.step_checks import is_whole, plain
from artifex_devices.planner.step_model import Operation, Optimizer, StepModel, Tensor
from artifex_devices.planner.transformer_parts import TransformerParts, check_factor, expert_places

__all__ = ["SHAPES", "Operation", "Optimizer", "StepModel", "Tensor", "TransformerShape", "mlp", "moe", "transformer"]

ADAM = Optimizer(8)


@dataclass(frozen=True)
class TransformerShape:
    """What a decoder with RMS norms, rotary positions, gated MLPs and no biases is made of.

    Attributes:
        name: For people.
        layers: How many.
        embed: Width of the residual stream.
        mlp: Width of the MLP, or of one expert.
        heads: Of queries.
        kv_heads: Of keys and values; a divisor of `heads`.
        head_dim: Width of a head.
        vocab: Rows of the embedding; the output has a matrix of its own.
        experts: In each layer; 0 is a dense MLP.
        experts_per_token: That each token goes to.
        source: Where the numbers are from.
    """

    name: str
    layers: int
    embed: int
    mlp: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    experts: int = 0
    experts_per_token: int = 0
    source: str = "given"

    def __post_init__(self) -> None:
        for key, value in vars(self).items():
            object.__setattr__(self, key, plain(value))
        texts = ("name", "source")
        least = {"experts": 0, "experts_per_token": 0}
        wrong = [
            f"{key} is {shown(value)}"
            for key, value in vars(self).items()
            if not (isinstance(value, str) if key in texts else is_whole(value, least.get(key, 1)))
        ]
        if not wrong and self.heads % self.kv_heads:
            wrong.append(f"{self.heads} heads are no multiple of {self.kv_heads} kv_heads")
        if not wrong and not (
            1 <= self.experts_per_token <= self.experts if self.experts else self.experts_per_token == 0
        ):
            wrong.append(f"each token goes to {self.experts_per_token} of {self.experts} experts")
        if wrong:
            raise ValueError(
                f"TransformerShape: {'; '.join(wrong)}; expected whole numbers that fit each other, and a text as the "
                "name; correct each"
            )


def _table(shapes: Iterable[TransformerShape]) -> Mapping[str, TransformerShape]:
    return MappingProxyType({shape.name: shape for shape in shapes})


_META_2 = "Touvron et al. 2023, arXiv:2307.09288; config.json of meta-llama/Llama-2-{}-hf"
_META_3 = "Grattafiori et al. 2024, arXiv:2407.21783, table 3; config.json of meta-llama/Meta-Llama-{}"

#: Published shapes by name; the parameters that follow are as many as published (tests/python/planner/test_models.py).
SHAPES: Mapping[str, TransformerShape] = _table(
    (
        TransformerShape("llama-2-7b", 32, 4096, 11008, 32, 32, 128, 32000, source=_META_2.format("7b")),
        TransformerShape("llama-2-13b", 40, 5120, 13824, 40, 40, 128, 32000, source=_META_2.format("13b")),
        TransformerShape("llama-2-70b", 80, 8192, 28672, 64, 8, 128, 32000, source=_META_2.format("70b")),
        TransformerShape("llama-3-8b", 32, 4096, 14336, 32, 8, 128, 128256, source=_META_3.format("3-8B")),
        TransformerShape("llama-3-70b", 80, 8192, 28672, 64, 8, 128, 128256, source=_META_3.format("3-70B")),
        TransformerShape("llama-3.1-405b", 126, 16384, 53248, 128, 8, 128, 128256, source=_META_3.format("3.1-405B")),
        TransformerShape(
            "mixtral-8x7b", 32, 4096, 14336, 32, 8, 128, 32000, 8, 2,
            source="Jiang et al. 2024, arXiv:2401.04088, table 1; config.json of mistralai/Mixtral-8x7B-v0.1",
        ),
    )
)  # fmt: skip


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
    """A step of a decoder, dense or with experts.

    Logical axes of parameters: "vocab", "embed", "kv_heads", "queries_per_kv", "head_dim", "mlp", "experts", "router"
    and "norm". Of activations: "batch", "sequence", "kv_sequence" (the keys' side of scores), "activation_embed",
    "expert_batch" (tokens of an expert), and "kv_heads", "queries_per_kv", "head_dim", "mlp", "vocab", "experts" too.
    Scores of attention stay on the chip and are computed again in the backward pass, as by FlashAttention; they are
    counted whole, masked or not.

    Args:
        shape: A name of `SHAPES`, in small letters or large, or a shape.
        batch: Sequences.
        sequence: Tokens of each.
        keep: What is kept for the backward pass. "layers": each layer's input, the rest is computed again; "products":
            results of all products, and layers' inputs; "all": results of norms and activation functions too. Or names
            of tensors.
        optimizer: None is a forward step. The default is Adam with float32 moments.
        cache: Of a forward step: keys and values of so many tokens of each sequence are there already, and attention
            reads these. With `sequence=1` that is a step of decoding.
        dtype: Of parameters and activations.
        capacity_factor: Places of each expert, over what balanced routing needs; 1 without experts.

    Raises:
        ValueError: No such shape; numbers below 1; expert places that are no whole number; a capacity factor without
            experts; a cache in training.
        TypeError: An argument is of the wrong type.

    Example:
        >>> transformer("llama-2-7b", batch=8, sequence=4096).parameters
        6738415616
    """
    if isinstance(shape, str):
        if shape.lower() not in SHAPES:
            raise ValueError(
                f"models.transformer: {shown(shape)} is no shape{did_you_mean(shape, SHAPES)}; expected one of "
                f"{', '.join(SHAPES)}; or give a TransformerShape"
            )
        shape = SHAPES[shape.lower()]
    if not isinstance(shape, TransformerShape):
        raise TypeError(
            f"models.transformer: shape is {shown(shape)} ({type(shape).__name__}); expected a name or a "
            "TransformerShape; say 'llama-2-7b'"
        )
    batch, sequence, cache = _counts("transformer", {"batch": batch, "sequence": sequence, "cache": cache})
    if not shape.experts and check_factor("transformer", capacity_factor) != 1:
        raise ValueError(
            f"models.transformer: capacity_factor is {shown(capacity_factor)} and {shape.name} has no experts; "
            "expected 1; leave it out"
        )
    if cache and optimizer is not None:
        raise ValueError(
            f"models.transformer: cache is {cache} in a training step; expected 0, as nothing is kept from before; "
            "give optimizer=None"
        )
    parts = TransformerParts(shape, batch, sequence, keep, optimizer is not None, cache, dtype, capacity_factor)
    kind = f"{batch} x {sequence} tokens"
    return StepModel(
        f"{shape.name} ({kind})",
        tuple(parts.tensors),
        tuple(parts.operations),
        tokens=batch * sequence,
        batch_axes=("batch", "expert_batch") if shape.experts else ("batch",),
        optimizer=optimizer,
    )


def mlp(
    *, embed: int, mlp: int, layers: int, tokens: int, optimizer: Optimizer | None = ADAM, dtype: Any = "bfloat16"
) -> StepModel:
    """Layers of two matrices, as the scaling book's chapter on training has them: In * W_in -> Tmp * W_out -> Out.

    Logical axes: "batch" (tokens), "activation_embed", "mlp"; of the parameters "embed" and "mlp". Of each layer In and
    Tmp are kept.

    Args:
        embed: Width of In and Out.
        mlp: Width of Tmp.
        layers: How many.
        tokens: Of a step.
        optimizer: None is a forward step.
        dtype: Of parameters and activations.

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
    """Layers of experts alone, each a gated MLP: a router, tokens to their experts, three matrices, and tokens back.

    Logical axes: "batch" (tokens), "activation_embed", "experts", "expert_batch" (tokens of an expert), "mlp"; of the
    parameters "embed", "experts", "mlp" and "router" (the router's experts, which each token needs all of). Of each
    layer In, the router's result, the experts' inputs and their gate and up products are kept.

    Args:
        embed: Width of In and Out.
        mlp: Width of one expert.
        experts: Of a layer.
        experts_per_token: That each token goes to.
        layers: How many.
        tokens: Of a step.
        capacity_factor: Places of each expert, over what balanced routing needs.
        optimizer: None is a forward step.
        dtype: Of parameters and activations.

    Raises:
        ValueError: A number below 1, more experts a token than there are, or expert places that are no whole number.
        TypeError: An argument is of the wrong type.

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
            f"models.moe: each token goes to {experts_per_token} of {experts} experts; expected at most all; correct "
            "experts_per_token"
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


def _counts(operation: str, given: dict[str, Any]) -> tuple[int, ...]:
    """The numbers as Python's; all are 1 or more, but a cache may be 0."""
    counts = {name: plain(value) for name, value in given.items()}
    wrong = {name: value for name, value in counts.items() if not is_whole(value, 0 if name == "cache" else 1)}
    if wrong:
        texts = [f"{name} is {shown(value)}" for name, value in wrong.items()]
        is_large = any(isinstance(value, int) and value >= 2**62 for value in wrong.values())
        least = ["ints of 1 or more"] * (set(wrong) != {"cache"}) + ["a cache of 0 or more tokens"] * ("cache" in wrong)
        raise ValueError(
            f"models.{operation}: {', '.join(texts)}; expected {' and '.join(least)}{', below 2**62' * is_large}; "
            "correct each"
        )
    return tuple(counts.values())
