# SPDX-License-Identifier: Apache-2.0
"""Parallelism of a training run: how its parts are divided among devices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any

from numpy.typing import DTypeLike

from artifex_devices._base.checks import check_bool, check_choice, check_int, check_number, check_type, failure
from artifex_devices._base.nearest_name import did_you_mean
from artifex_devices._base.public_path import public
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices.planner.plain_numbers import plain
from artifex_devices.planner.training.frameworks import FRAMEWORKS, LOSSES, defaults_of
from artifex_devices.planner.training.tensor_dtypes import bytes_by_kind, checked_dtypes, itemsize_of

SCHEDULES = ("1f1b", "gpipe", "interleaved")
RECOMPUTES = ("none", "selective", "full")
RECOMPUTE_METHODS = ("block", "uniform")
CONTEXT_METHODS = ("ring", "all_to_all", "all_gather")
OPTIMIZERS = ("adamw-fp32-master", "adam", "adafactor", "muon", "sgd")
FORMATS = ("bfloat16", "float16", "float32", "tensorfloat32", "float8", "int8")
ATTENTION_KERNELS = ("native", "flash2")
TRAFFIC = ("tensor", "context", "expert", "pipeline", "data", "offload")
# Values of the context and the pipeline are for the ring and 1F1B. Pickles have this order.
_OVERLAP = {"tensor": 0.0, "context": 1.0, "expert": 0.0, "pipeline": 0.0, "data": 1.0, "offload": 1.0}
_COUNTS = ("tensor", "context", "pipeline", "expert", "chunks", "microbatch", "batch", "sequence", "loss_chunks")
_OPTIONAL_COUNTS = ("data", "zero_shards", "expert_tensor")
_MAPPINGS = ("overlap", "parameter_dtypes", "gradient_dtypes")
# Fields that the first pickles of version 0.1.0 lack.
_LATER_FIELDS = {
    "sharp": False,
    "parameter_scale": 0.0,
    "attention_kernel": None,
    "context_balanced": None,
    "compiled": True,
    "framework": None,
    "loss": "plain",
    "loss_chunks": 8,
}


@public("artifex_devices.planner")
@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """Batch, parallelism, memory savings and overlap of a training run.

    Ranks are numbered with the tensor axis fastest, then context, data and pipeline, as Megatron-LM does. Experts are
    sharded over ranks of the tensor, context and data axes.

    Attributes:
        batch: Number of sequences in a step, over all devices.
        sequence: Number of tokens in a sequence.
        tensor: Devices that share each matrix.
        sequence_parallel: Whether activations between the sharded matrices are sharded over the tensor axis too
            (Korthikanti et al. 2022, arXiv:2205.05198).
        context: Devices that share each sequence.
        context_method: How they exchange keys and values: "ring", "all_to_all" or "all_gather".
        pipeline: Stages of layers.
        schedule: "1f1b", "gpipe" or "interleaved".
        chunks: Chunks of layers in each stage, for the interleaved schedule.
        data: Replicas that share the batch; None means all devices that the other axes leave.
        zero: Stage of ZeRO (Rajbhandari et al. 2019, arXiv:1910.02054): 1 shards optimizer state, 2 also gradients, 3
            also parameters.
        zero_shards: Devices over which ZeRO shards, of context x data; None means all of them, fewer is hybrid
            sharding.
        expert: Devices over which the experts of a layer are spread.
        expert_tensor: Devices that share one expert: 1 or `tensor`. None means 1.
        expert_imbalance: Tokens of the busiest devices' experts over the mean, before any are dropped; 1 or more.
        expert_capacity: Most tokens of an expert over the mean; further ones are dropped (Switch Transformer,
            arXiv:2101.03961, equation 3). None drops none.
        expert_padding: Whether each expert computes and is sent as many tokens as its capacity, some of them empty
            (GShard, arXiv:2006.16668).
        microbatch: Number of sequences that a replica computes at once.
        framework: Program whose defaults and memory are planned: "torch" (PyTorch with FSDP2, as in TorchTitan),
            "maxtext" or "megatron" (Megatron-LM, NeMo). It determines the default optimizer, loss and dtypes of
            parameters and gradients. None means the defaults that need most memory.
        loss: How the loss is computed, by default as the framework does it: "plain" holds 12 bytes for each logit
            beside the logits (PyTorch's cross_entropy), "chunked" the same for one chunk of the tokens, "fused" the
            logits alone, over which a kernel writes their gradient.
        loss_chunks: Chunks of the chunked loss; TorchTitan and torchtune use 8.
        recompute: Activations that are computed again: "none", "selective" (scores of attention; for "torch" half of
            the products, as in TorchTitan) or "full" (layers).
        recompute_method: For "full", "block" computes some layers of each stage again, "uniform" all layers in units
            whose inputs are kept; as in Megatron-LM.
        recompute_layers: For "block", number of layers in each stage that are computed again, None means all; for
            "uniform", number of layers in a unit, None means 1.
        optimizer: "adamw-fp32-master" (12 bytes for each parameter), "adam" (8), "adafactor" (4, and 8 for norms),
            "muon" (8, and 12 for embedding, head and norms, which AdamW updates) or "sgd" (0). None means the
            framework's: "adam" for "torch" and "maxtext", otherwise "adamw-fp32-master".
        parameter_dtype: Dtype of parameters. None means the framework's: float32 for "torch" and "maxtext", otherwise
            bfloat16.
        gradient_dtype: Dtype of gradients, also while they are reduced. None means the framework's: bfloat16 for
            "megatron", otherwise float32.
        activation_dtype: Dtype of activations.
        dtype: Number format of products: "bfloat16", "float16", "float32", "tensorfloat32", "float8" or "int8".
        flash_attention: Whether attention is one kernel that stores no scores.
        causal: Whether such a kernel skips masked scores.
        dropout: Whether dropout stores masks.
        offload_optimizer: Whether optimizer state is in host memory and updated there. With ZeRO 2 and 3 host memory
            also holds the gradients: a layer's gradients are copied when they are reduced (ZeRO-Offload,
            arXiv:2101.06840).
        offload_activations: Whether activations are kept in host memory until the backward pass.
        overlap: Part of each kind of communication that may run behind computation, 0 to 1, by name: "tensor",
            "context", "expert", "pipeline", "data", "offload". It is hidden only while computation runs. Defaults are 1
            for "data", "offload", "context" with the ring and "pipeline" with the interleaved schedule, and 0
            otherwise.
        parameter_dtypes: Dtypes of parameters that differ from `parameter_dtype`, by kind of tensor: "embedding",
            "head", "norm" (with biases), "attention", "mlp" (with shared experts), "router", "expert".
        gradient_dtypes: The same for gradients.
        sharp: Whether switches between nodes sum gradients that replicas reduce by all-reduces (SHARP of InfiniBand):
            without ZeRO, and between the shards of `zero_shards`. Needs switches that have it, and its setup.
        parameter_scale: Bytes of scales for each parameter of 8 bits or fewer: 1/32 for a byte for each 32 of them (OCP
            Microscaling Formats, MXFP8), 4/16384 for a float32 for each block of 128 x 128 (DeepSeek-V3,
            arXiv:2412.19437, section 3.3.2).
        attention_kernel: Kernel of attention that stores no scores: "native" is the best kernel of the chip
            (FlashAttention-3 or cuDNN on an H100), "flash2" is FlashAttention-2. None means "flash2" with ZeRO 3, which
            PyTorch programs use, and "native" otherwise.
        context_balanced: Whether each context rank has an early and a late part of the sequence, so that all have equal
            work where attention skips masked scores. Otherwise the last rank has (2 c - 1) / c of the mean of c ranks.
            None means False for `context_method="all_gather"` and True otherwise.
        compiled: Whether element-wise operations are fused, as torch.compile, XLA and the kernels of Megatron-LM do.

    Raises:
        ValueError: A value is out of its range. Values that do not fit each other are an error of `plan_training`.
        TypeError: A value has the wrong type.

    Example:
        >>> from artifex_devices.planner import TrainingConfig
        >>> TrainingConfig(batch=2048, sequence=8192, tensor=8, pipeline=16, zero=1).tokens
        16777216
    """

    batch: int
    sequence: int
    tensor: int = 1
    sequence_parallel: bool = False
    context: int = 1
    context_method: str = "ring"
    pipeline: int = 1
    schedule: str = "1f1b"
    chunks: int = 1
    data: int | None = None
    zero: int = 0
    zero_shards: int | None = None
    expert: int = 1
    expert_tensor: int | None = None
    expert_imbalance: float = 1.0
    expert_capacity: float | None = None
    expert_padding: bool = False
    microbatch: int = 1
    framework: str | None = None
    loss: str | None = None
    loss_chunks: int = 8
    recompute: str = "none"
    recompute_method: str = "block"
    recompute_layers: int | None = None
    optimizer: str | None = None
    parameter_dtype: DTypeLike | None = None
    gradient_dtype: DTypeLike | None = None
    activation_dtype: DTypeLike | None = "bfloat16"
    dtype: str = "bfloat16"
    flash_attention: bool = True
    causal: bool = True
    dropout: bool = False
    offload_optimizer: bool = False
    offload_activations: bool = False
    overlap: Mapping[str, float] = field(default_factory=dict)
    parameter_dtypes: Mapping[str, DTypeLike | None] = field(default_factory=dict)
    gradient_dtypes: Mapping[str, DTypeLike | None] = field(default_factory=dict)
    sharp: bool = False
    parameter_scale: float = 0.0
    attention_kernel: str | None = None
    context_balanced: bool | None = None
    compiled: bool = True

    def __post_init__(self) -> None:
        name = "TrainingConfig"
        for each in fields(self):
            object.__setattr__(self, each.name, plain(getattr(self, each.name)))
        if self.framework is not None:
            check_choice(name, "framework", self.framework, tuple(FRAMEWORKS))
        for key, value in defaults_of(self.framework).items():
            if getattr(self, key) is None:
                object.__setattr__(self, key, value)
        for key in _COUNTS:
            check_int(name, key, getattr(self, key), minimum=1, maximum=2**31)
        for key in _OPTIONAL_COUNTS:
            if getattr(self, key) is not None:
                check_int(name, key, getattr(self, key), minimum=1, maximum=2**31, expected="an int or None")
        if self.recompute_layers is not None:
            check_int(name, "recompute_layers", self.recompute_layers, minimum=0, maximum=2**31)
        check_int(name, "zero", self.zero, minimum=0, maximum=3)
        check_number(name, "expert_imbalance", self.expert_imbalance, minimum=1)
        check_number(name, "parameter_scale", self.parameter_scale, minimum=0)
        if self.expert_capacity is not None:
            check_number(name, "expert_capacity", self.expert_capacity, above=0)
        for key in ("sequence_parallel", "expert_padding", "flash_attention", "causal", "dropout", "offload_optimizer"):
            check_bool(name, key, getattr(self, key))
        for key in ("offload_activations", "sharp", "compiled"):
            check_bool(name, key, getattr(self, key))
        if self.context_balanced is not None:
            check_bool(name, "context_balanced", self.context_balanced)
        if self.attention_kernel is not None:
            check_choice(name, "attention_kernel", self.attention_kernel, ATTENTION_KERNELS)
        for key, choices in (
            ("context_method", CONTEXT_METHODS),
            ("schedule", SCHEDULES),
            ("recompute", RECOMPUTES),
            ("recompute_method", RECOMPUTE_METHODS),
            ("optimizer", OPTIMIZERS),
            ("loss", LOSSES),
            ("dtype", FORMATS),
        ):
            check_choice(name, key, getattr(self, key), choices)
        for key in ("parameter_dtype", "gradient_dtype", "activation_dtype"):
            itemsize_of(name, key, getattr(self, key))
        object.__setattr__(self, "overlap", MappingProxyType(self._checked_overlap()))
        for key in ("parameter_dtypes", "gradient_dtypes"):
            object.__setattr__(self, key, MappingProxyType(checked_dtypes(name, key, getattr(self, key))))

    @property
    def tokens(self) -> int:
        """Tokens of a step."""
        return self.batch * self.sequence

    def replaced(self, **values: object) -> TrainingConfig:
        """Returns the same with some values changed.

        With another schedule or context method, an overlap that is usual for the old one becomes that of the new one.
        With another framework, the same holds for its optimizer, loss and dtypes.

        Args:
            **values: New values by name.

        Raises:
            ValueError: A value is out of its range, or a name is unknown.
            TypeError: A value has the wrong type.
        """
        names = [each.name for each in fields(self)]
        unknown = [f"{safe_repr(key)}{did_you_mean(key, names)}" for key in values if key not in names]
        if unknown:
            raise failure(
                ValueError,
                "TrainingConfig.replaced",
                f"unknown names {', '.join(unknown)}",
                expected=f"some of {', '.join(names)}",
                fix="correct them",
            )
        usual = defaults_of(self.framework) if "framework" in values else {}
        kept = dict.fromkeys(key for key, value in usual.items() if str(getattr(self, key)) == value)
        fields_: dict[str, Any] = {"overlap": self._unusual_overlap(), **kept, **values}
        return replace(self, **fields_)

    @property
    def _attention_kernel(self) -> str:
        return self.attention_kernel or ("flash2" if self.zero == 3 else "native")

    def _usual_overlap(self) -> dict[str, float]:
        # Keys and values that are gathered or exchanged are needed before attention starts (arXiv:2407.21783, section
        # 3.3.2). Megatron-LM sends in the background of the interleaved schedule.
        context = 1.0 if self.context_method == "ring" else 0.0
        return {**_OVERLAP, "context": context, "pipeline": 1.0 if self.schedule == "interleaved" else 0.0}

    def _unusual_overlap(self) -> dict[str, float]:
        """Returns the parts of the overlap that do not follow from the schedule and the context method."""
        usual = self._usual_overlap()
        return {name: part for name, part in self.overlap.items() if part != usual[name]}

    def _checked_overlap(self) -> dict[str, float]:
        check_type("TrainingConfig", "overlap", self.overlap, Mapping, "a mapping", "write {'data': 1, 'tensor': 0.5}")
        unknown = [f"{safe_repr(key)}{did_you_mean(str(key), TRAFFIC)}" for key in self.overlap if key not in TRAFFIC]
        if unknown:
            raise failure(
                ValueError,
                "TrainingConfig",
                f"overlap names {', '.join(unknown)}",
                expected=f"some of {', '.join(TRAFFIC)}",
                fix="correct them",
            )
        values = self._usual_overlap()
        for key, value in self.overlap.items():
            number = check_number("TrainingConfig", f"overlap[{key!r}]", value, minimum=0)
            if number > 1:
                raise failure(
                    ValueError,
                    "TrainingConfig",
                    f"overlap[{key!r}] is {number}",
                    expected="0 to 1",
                    fix="write 1 for all of it",
                )
            values[key] = float(number)
        return values

    def _described(self, devices: int) -> dict[str, object]:
        """Returns the arguments of the core, with `data` derived from the number of devices."""
        others = self.tensor * self.context * self.pipeline
        if self.data is None and devices % others:
            raise failure(
                ValueError,
                "plan_training",
                (
                    f"tensor {self.tensor} x context {self.context} x pipeline {self.pipeline} = {others} does not "
                    f"divide {devices} devices"
                ),
                expected="a divisor, because data is the rest",
                fix="change one of them",
            )
        operation = "plan_training"
        values = {key: value for key, value in vars(self).items() if not key.endswith(("_dtype", "_dtypes"))}
        return {
            **values,
            "parameter_bytes": bytes_by_kind(
                operation, "parameter", self.parameter_dtype, self.parameter_dtypes, self.parameter_scale
            ),
            "gradient_bytes": bytes_by_kind(operation, "gradient", self.gradient_dtype, self.gradient_dtypes),
            "activation_bytes": itemsize_of(operation, "activation", self.activation_dtype),
            "framework": self.framework or "any",
            "data": devices // others if self.data is None else self.data,
            "attention_kernel": self._attention_kernel,
            "context_balanced": (
                self.context_method != "all_gather" if self.context_balanced is None else self.context_balanced
            ),
            "overlap": dict(self.overlap),
        }

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), **{name: dict(getattr(self, name)) for name in _MAPPINGS}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, **{name: MappingProxyType(dict(state.get(name, {}))) for name in _MAPPINGS})
        for key, value in _LATER_FIELDS.items():
            vars(self).setdefault(key, value)

    def __hash__(self) -> int:
        return hash(tuple((key, value) for key, value in vars(self).items() if key not in _MAPPINGS))


def config_content(config: TrainingConfig) -> dict[str, object]:
    """Returns the fields of a configuration as JSON has them."""
    texts = {"parameter_dtype", "gradient_dtype", "activation_dtype"}
    content = {name: str(value) if name in texts else value for name, value in vars(config).items()}
    dtypes = {"parameter_dtypes": config.parameter_dtypes, "gradient_dtypes": config.gradient_dtypes}
    named = {name: {kind: str(each) for kind, each in mapping.items()} for name, mapping in dtypes.items()}
    return {**content, "overlap": dict(config.overlap), **named}
