# SPDX-License-Identifier: Apache-2.0
"""Sizes of decoders and what follows from them: parameters and caches."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from typing import Any

from artifex_devices._base.checks import check_int, check_number, failure
from artifex_devices._base.public_path import public
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._planner import cache_elements, shape_parameters, shape_problems, tensor_elements
from artifex_devices.planner.plain_numbers import is_count, is_number, make_plain, plain

# Kinds of tensors of a model, each of which may have its own dtype.
TENSOR_KINDS = ("embedding", "head", "norm", "attention", "mlp", "router", "expert")
PLAIN_BYTES = 2  # of parameters that are not quantized: bfloat16 or float16


@public("artifex_devices.models")
@dataclass(frozen=True)
class ShapeParameters:
    """Numbers of elements of a decoder's parameters.

    Attributes:
        total: All parameters, without layers of multi-token prediction.
        active: Parameters that one token uses: all but the experts to which it is not routed.
        embedding: Embedding, learned positions and the embedding's norm.
        layers: All layers.
        final_norm: Norm before the output.
        head: Output matrix and its bias; 0 where the output uses the embedding's matrix.
        prediction: Layers of multi-token prediction, which are in no other number.
        dense_layers: Number of layers with a dense MLP.
        expert_layers: Number of layers with experts.
        dense_layer: Parameters of one layer with a dense MLP; 0 in models without such layers.
        expert_layer: Parameters of one layer with experts; 0 in models without experts.
    """

    total: int
    active: int
    embedding: int
    layers: int
    final_norm: int
    head: int
    prediction: int
    dense_layers: int
    expert_layers: int
    dense_layer: int
    expert_layer: int


@public("artifex_devices.models")
@dataclass(frozen=True)
class TransformerShape:
    """Sizes of a decoder. The defaults are a Llama: RMS norms, rotary positions, gated MLPs, no biases.

    Attributes:
        name: Name for people.
        layers: Number of layers.
        embed: Width of the residual stream.
        mlp: Width of the MLP, or of one routed expert.
        heads: Number of query heads.
        kv_heads: Number of heads of keys and values; a divisor of `heads`.
        head_dim: Width of a query or key head.
        vocab: Number of rows of the embedding.
        experts: Number of routed experts in each layer; 0 is a dense MLP.
        experts_per_token: Number of experts that each token is routed to.
        source: Source of the numbers.
        shared_experts: Number of experts that each token passes in addition to the routed experts.
        shared_mlp: Width of one shared expert.
        dense_layers: Number of layers, from the first, with a dense MLP instead of experts.
        dense_mlp: Width of the dense MLP in layers without experts.
        expert_period: Of the layers after `dense_layers`, each `expert_period`-th has experts.
        expert_groups: Groups of neighbouring experts, for models that limit the groups of a token; 0: any experts.
        groups_per_token: Number of groups whose experts a token may be routed to (DeepSeek-V3, section 2.1.2).
        linear_key_heads: Query and key heads of layers with linear attention by the gated delta rule (Qwen3-Next),
            which are all layers but each `full_attention_period`-th one; 0: no layer has it.
        linear_value_heads: Value heads of linear attention.
        linear_key_dim: Width of a query or key head of linear attention.
        linear_value_dim: Width of a value head of linear attention.
        linear_kernel: Number of tokens of the convolution before linear attention.
        attention_sinks: Whether each head has a learned logit that no token has (gpt-oss).
        gated_attention: Whether a gate as wide as the queries scales the result of attention (Qwen3-Next).
        other_parameters: Parameters of all layers together that these sizes do not describe; below 0 where they
            describe too many.
        quantized_bytes: Bytes of a quantized parameter, with its part of the scales; 0: no parameter is quantized.
        quantized_kinds: Kinds of tensors that are quantized, each once: some of "embedding", "head", "norm",
            "attention", "mlp", "router" and "expert". All other parameters have 16 bits.
        notes: Facts about the shape that its sizes do not show.
        q_lora_rank: For latent attention, rank of the queries; 0 projects them in one step.
        kv_lora_rank: Rank of keys and values in multi-head latent attention (DeepSeek-V2, arXiv:2405.04434); 0 is
            attention with heads of keys and values.
        rope_head_dim: For latent attention, width of the rotary part of a head.
        nope_head_dim: For latent attention, width of the other part of a head.
        value_head_dim: Width of a value head; 0 is `head_dim`.
        window: Number of tokens that layers with a sliding window attend to; 0 is all.
        full_attention_period: Each `full_attention_period`-th layer attends to all tokens; 0 is none of them.
        positions: Number of rows of a table of learned positions.
        prediction_layers: Number of layers of multi-token prediction, which `parameters.total` does not count.
        norms_per_layer: Number of norms of width `embed` in a layer.
        norm: "rms", "layer" (with a bias), "layer without bias" or "layer without parameters".
        tied_embeddings: Whether the output uses the embedding's matrix.
        gated_mlp: Whether the MLP has three matrices; False is two.
        qkv_bias: Whether projections of queries, keys and values have biases.
        attention_out_bias: Whether the projection of attention's result has a bias.
        mlp_bias: Whether the MLP has biases.
        head_bias: Whether the output has a bias.
        router_bias: Whether the router has a bias for each expert.
        shared_gate: Whether a gate scales the result of shared experts.
        query_key_norm: Whether each query and key head has an RMS norm.
        joint_query_key_norm: Whether one norm spans all query heads, and another all key heads (OLMo 2).
        embedding_norm: Whether a norm follows the embedding.
        parallel_layers: Whether attention and MLP of a layer read the same input.

    Raises:
        ValueError: A field has the wrong type, a size is below its minimum, sizes do not fit each other, or there are
            2**62 parameters or more.

    Example:
        >>> TransformerShape("small", 2, 64, 128, 4, 2, 16, 1000).parameters.total
        202048
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
    shared_experts: int = 0
    shared_mlp: int = 0
    dense_layers: int = 0
    dense_mlp: int = 0
    expert_period: int = 1
    q_lora_rank: int = 0
    kv_lora_rank: int = 0
    rope_head_dim: int = 0
    nope_head_dim: int = 0
    value_head_dim: int = 0
    window: int = 0
    full_attention_period: int = 0
    positions: int = 0
    prediction_layers: int = 0
    norms_per_layer: int = 2
    norm: str = "rms"
    tied_embeddings: bool = False
    gated_mlp: bool = True
    qkv_bias: bool = False
    attention_out_bias: bool = False
    mlp_bias: bool = False
    head_bias: bool = False
    router_bias: bool = False
    shared_gate: bool = False
    query_key_norm: bool = False
    embedding_norm: bool = False
    parallel_layers: bool = False
    expert_groups: int = 0
    groups_per_token: int = 0
    linear_key_heads: int = 0
    linear_value_heads: int = 0
    linear_key_dim: int = 0
    linear_value_dim: int = 0
    linear_kernel: int = 0
    joint_query_key_norm: bool = False
    attention_sinks: bool = False
    gated_attention: bool = False
    other_parameters: int = 0
    quantized_bytes: float = 0
    quantized_kinds: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        make_plain(self)
        wrong = [
            f"{field.name} is {safe_repr(getattr(self, field.name))}"
            for field in fields(self)
            if not _fits(field.name, str(field.type), getattr(self, field.name))
        ]
        wrong = wrong or shape_problems(vars(self))
        if wrong:
            raise failure(
                ValueError,
                "TransformerShape",
                "; ".join(wrong),
                expected=(
                    "ints that fit each other, True or False for properties, a norm of "
                    f"{', '.join(map(repr, _NORMS))}, and a str as the name"
                ),
                fix="correct each",
            )

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restores pickles of older versions, which lack newer fields."""
        defaults = {field.name: field.default for field in fields(self) if field.default is not MISSING}
        vars(self).update(defaults | state)

    @property
    def parameter_bytes(self) -> float:
        """Mean bytes of a parameter in a quantized checkpoint, with scales; 0: not quantized."""
        if self.quantized_bytes == 0:
            return 0
        counts = tensor_elements(vars(self))
        quantized: float = sum(counts[kind] for kind in self.quantized_kinds)
        return PLAIN_BYTES + (self.quantized_bytes - PLAIN_BYTES) * quantized / self.parameters.total

    @property
    def parameters(self) -> ShapeParameters:
        """Numbers of parameters by part."""
        return ShapeParameters(**shape_parameters(vars(self)))

    def cache_bytes(self, tokens: int, itemsize: float = 2) -> int | float:
        """Returns the bytes of the KV cache of one sequence.

        A layer keeps a key and a value for each KV head and token, or the latent vector and the rotary key of
        multi-head latent attention. A layer with a sliding window keeps the last `window` tokens, and a layer with
        linear attention a state that does not grow.

        Args:
            tokens: Number of tokens in the sequence.
            itemsize: Bytes of an element.

        Raises:
            ValueError: `tokens` is not an int from 1 to 2**31, or `itemsize` is not above 0.
            TypeError: An argument is not a number.

        Example:
            >>> from artifex_devices.models import SHAPES
            >>> SHAPES["llama-2-7b"].cache_bytes(1)
            524288
        """
        operation = "TransformerShape.cache_bytes"
        tokens = check_int(operation, "tokens", plain(tokens), "write 4096", minimum=1, maximum=2**31)
        itemsize = check_number(operation, "itemsize", plain(itemsize), "write 2", above=0)
        return cache_elements(vars(self), tokens) * itemsize


_NORMS = ("rms", "layer", "layer without bias", "layer without parameters")
_FROM_ZERO = frozenset(
    {
        "experts", "experts_per_token", "shared_experts", "shared_mlp", "dense_layers", "dense_mlp", "q_lora_rank",
        "kv_lora_rank", "rope_head_dim", "nope_head_dim", "value_head_dim", "window", "full_attention_period",
        "positions", "prediction_layers", "norms_per_layer", "expert_groups", "groups_per_token", "linear_key_heads",
        "linear_value_heads", "linear_key_dim", "linear_value_dim", "linear_kernel",
    }
)  # fmt: skip


def _fits(name: str, kind: str, value: object) -> bool:
    """Returns whether the value has the type of the field and is not below its minimum."""
    if kind == "str":
        return isinstance(value, str) and (name != "norm" or value in _NORMS)
    if name == "notes":
        return isinstance(value, tuple) and all(isinstance(note, str) for note in value)
    if name == "quantized_kinds":
        return isinstance(value, tuple) and all(value.count(each) == 1 and each in TENSOR_KINDS for each in value)
    if name == "quantized_bytes":
        return is_number(value, int, float) and 0 <= value <= 16
    if name == "other_parameters":
        return is_number(value, int)
    return isinstance(value, bool) if kind == "bool" else is_count(value, 0 if name in _FROM_ZERO else 1)
