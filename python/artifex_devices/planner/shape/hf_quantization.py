# SPDX-License-Identifier: Apache-2.0
"""Bytes of the weights that the `quantization_config` of a config.json describes.

Sources: the classes in src/transformers/utils/quantization_config.py of the library transformers 5.24.0; the OCP
Microscaling Formats specification 1.0 for mxfp4; compressed_tensors/quantization/quant_args.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from artifex_devices._base.safe_repr import safe_repr
from artifex_devices.planner.plain_numbers import is_count


class StoredWeights(NamedTuple):
    """How quantized weights are stored.

    Attributes:
        text: Name of the format.
        nbytes: Bytes of an element with its part of the scales.
        only_experts: Whether the other matrices of a layer are not quantized.
    """

    text: str
    nbytes: float
    only_experts: bool = False


def stored_weights(config: object) -> StoredWeights | str:
    """Returns how weights are stored, or the text of a problem.

    Example:
        >>> stored_weights({"quant_method": "gptq", "bits": 4, "group_size": 128})
        StoredWeights(text='gptq of 4 bits', nbytes=0.51953125, only_experts=False)
    """
    if not isinstance(config, Mapping):
        return f"quantization_config is {safe_repr(config)}, not an object"
    method = config.get("quant_method", config.get("quant_algo"))
    if method == "mxfp4":  # scales of 8 bits for 32 elements
        return StoredWeights("mxfp4", 0.5 + 1 / 32, only_experts=True)
    if method in ("fp8", "finegrained_fp8", "fbgemm_fp8"):
        block = config.get("weight_block_size")
        has_blocks = isinstance(block, list) and len(block) == 2 and all(is_count(size) for size in block)
        return StoredWeights("float8", 1 + (4 / (block[0] * block[1]) if has_blocks and block is not None else 0))
    if method in ("gptq", "awq"):
        return _grouped(str(method), config.get("bits", config.get("w_bit", 4)), config.get("group_size", 128), zero=1)
    if method == "bitsandbytes":
        if config.get("load_in_8bit", config.get("_load_in_8bit", False)) is True:
            return StoredWeights("int8", 1)
        scales = 1 / 64 + 4 / (64 * 256) if config.get("bnb_4bit_use_double_quant") is True else 4 / 64
        return StoredWeights(f"{safe_repr(config.get('bnb_4bit_quant_type', 'fp4'))} of 4 bits", 0.5 + scales)
    if method == "compressed-tensors":
        groups = config.get("config_groups")
        first = next(iter(groups.values()), None) if isinstance(groups, Mapping) else None
        weights = first.get("weights") if isinstance(first, Mapping) else None
        if isinstance(weights, Mapping):
            return _grouped("compressed-tensors", weights.get("num_bits"), weights.get("group_size"), zero=0)
    if method == "modelopt" or config.get("quant_algo") in ("FP8", "NVFP4"):
        four = "NVFP4" in (config.get("quant_algo"), config.get("weight_quant_algo"))
        return StoredWeights("nvfp4", 0.5 + 1 / 16) if four else StoredWeights("float8", 1)
    return ""


def _grouped(method: str, bits: object, group: object, *, zero: int) -> StoredWeights | str:
    """Returns weights with a 16-bit scale, and as many zero points of `bits`, for each group."""
    if not is_count(bits) or bits > 16:
        return f"quantization_config has {safe_repr(bits)} bits, not an int from 1 to 16"
    shared = (16 + zero * bits) / group if is_count(group) else 0
    return StoredWeights(f"{method} of {bits} bits", (bits + shared) / 8)
