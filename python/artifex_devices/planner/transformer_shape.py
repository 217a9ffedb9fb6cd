# SPDX-License-Identifier: Apache-2.0
"""Shapes of published decoders, each with its source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from artifex_devices._base.public_path import public
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices.planner.step_checks import is_count, make_plain


@public("artifex_devices.models")
@dataclass(frozen=True)
class TransformerShape:
    """Sizes of a decoder with RMS norms, rotary positions, gated MLPs and no biases.

    Attributes:
        name: Name for people.
        layers: Number of layers.
        embed: Width of the residual stream.
        mlp: Width of the MLP, or of one expert.
        heads: Number of query heads.
        kv_heads: Number of heads of keys and values; a divisor of `heads`.
        head_dim: Width of a head.
        vocab: Number of rows of the embedding; the output has a matrix of its own.
        experts: Number of experts in each layer; 0 is a dense MLP.
        experts_per_token: Number of experts that each token is routed to.
        source: Source of the numbers.

    Raises:
        ValueError: A size is not an int of 1 or more, or sizes do not fit each other.
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
        make_plain(self)
        minimum = {"experts": 0, "experts_per_token": 0}
        wrong = [
            f"{key} is {safe_repr(value)}"
            for key, value in vars(self).items()
            if not (isinstance(value, str) if key in ("name", "source") else is_count(value, minimum.get(key, 1)))
        ]
        if not wrong and self.heads % self.kv_heads:
            wrong.append(f"heads is {self.heads}, not a multiple of {self.kv_heads} kv_heads")
        if not wrong and not min(self.experts, 1) <= self.experts_per_token <= self.experts:
            wrong.append(f"each token is routed to {self.experts_per_token} of {self.experts} experts")
        if wrong:
            raise ValueError(
                f"TransformerShape: {'; '.join(wrong)}; expected ints that fit each other, and a str as the name; "
                "correct each"
            )


_META_2 = "Touvron et al. 2023, arXiv:2307.09288; config.json of meta-llama/Llama-2-{}-hf"
_META_3 = "Grattafiori et al. 2024, arXiv:2407.21783, table 3; config.json of meta-llama/Meta-Llama-{}"

_PUBLISHED = (
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
)  # fmt: skip

#: Published shapes by name. tests/python/planner/test_models.py checks the numbers of parameters.
SHAPES: Mapping[str, TransformerShape] = MappingProxyType({shape.name: shape for shape in _PUBLISHED})
