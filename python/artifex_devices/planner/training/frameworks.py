# SPDX-License-Identifier: Apache-2.0
"""Defaults of the programs that train: dtypes, optimizer and loss."""

from __future__ import annotations

from typing import NamedTuple

LOSSES = ("plain", "chunked", "fused")


class FrameworkDefaults(NamedTuple):
    """Values of a TrainingConfig that a program has where its user sets nothing."""

    parameter_dtype: str
    gradient_dtype: str
    optimizer: str
    loss: str


# torch: float32 parameters are sharded, computed with in bfloat16, and their gradients are reduced in float32
#   (torchtitan/config: mixed_precision_param, mixed_precision_reduce); AdamW has two float32 moments and no master
#   copy; the loss is F.cross_entropy of float32 logits (torchtitan/components/loss.py).
# maxtext: weight_dtype, grad_dtype and cast_logits_to_fp32 of src/maxtext/configs/base.yml.
# megatron: 16-bit parameters and gradients with a float32 master copy, as recipes of NVIDIA-NeMo/Megatron-Bridge set
#   grad_reduce_in_fp32=False. Megatron-LM itself needs --grad-reduce-in-bf16 for it, which `to_megatron` sets.
FRAMEWORKS = {
    "torch": FrameworkDefaults("float32", "float32", "adam", "plain"),
    "maxtext": FrameworkDefaults("float32", "float32", "adam", "plain"),
    "megatron": FrameworkDefaults("bfloat16", "bfloat16", "adamw-fp32-master", "plain"),
}
# No framework: a 16-bit copy, float32 gradients and a float32 master copy. No program above holds more.
ANY = FrameworkDefaults("bfloat16", "float32", "adamw-fp32-master", "plain")


def defaults_of(framework: str | None) -> dict[str, str]:
    """Returns the defaults of a framework by field, or for None those that need most memory."""
    return (ANY if framework is None else FRAMEWORKS[framework])._asdict()
