# SPDX-License-Identifier: Apache-2.0
"""Dtypes of a training run: one for all tensors, and others for some kinds of tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import DTypeLike

from artifex_devices._base.checks import check_type, failure, wrong_value
from artifex_devices._base.nearest_name import did_you_mean
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices.planner.packed_dtypes import dtype_hint, dtype_of, holds_numbers, packed_itemsize
from artifex_devices.planner.shape.transformer import TENSOR_KINDS


def itemsize_of(operation: str, name: str, dtype: DTypeLike | None) -> float:
    """Returns the bytes of one element, 0.5 for int4."""
    try:
        found = dtype_of(dtype)
        if dtype is not None and holds_numbers(found):
            return packed_itemsize(found)
    except (TypeError, ValueError, SyntaxError):
        pass
    raise wrong_value(operation, name, dtype, f"a dtype of numbers{dtype_hint(dtype)}", "write 'bfloat16'")


def checked_dtypes(operation: str, name: str, dtypes: Any) -> dict[str, Any]:
    """Returns dtypes by kind of tensor, in the order of TENSOR_KINDS."""
    check_type(operation, name, dtypes, Mapping, "a mapping", "write {'embedding': 'bfloat16'}")
    unknown = [f"{safe_repr(key)}{did_you_mean(str(key), TENSOR_KINDS)}" for key in dtypes if key not in TENSOR_KINDS]
    if unknown:
        raise failure(
            ValueError,
            operation,
            f"{name} names {', '.join(unknown)}",
            expected=f"some of {', '.join(TENSOR_KINDS)}",
            fix="correct them",
        )
    for key, dtype in dtypes.items():
        itemsize_of(operation, f"{name}[{key!r}]", dtype)
    return {kind: dtypes[kind] for kind in TENSOR_KINDS if kind in dtypes}


def bytes_by_kind(
    operation: str, name: str, dtype: DTypeLike | None, dtypes: Mapping[str, DTypeLike | None], scale: float = 0.0
) -> dict[str, float]:
    """Returns the bytes of an element of each kind of tensor, with `scale` bytes of scales for one of 8 bits or fewer.

    Example:
        >>> bytes_by_kind("plan", "parameter", "float8_e4m3fn", {"norm": "bfloat16"}, 1 / 32)["mlp"]
        1.03125
    """
    sizes = {kind: itemsize_of(operation, name, dtypes.get(kind, dtype)) for kind in TENSOR_KINDS}
    return {kind: size + scale if size <= 1 else size for kind, size in sizes.items()}


def dtypes_text(dtype: DTypeLike | None, dtypes: Mapping[str, DTypeLike | None]) -> str:
    """Formats dtypes: "float8_e4m3fn (embedding bfloat16, head bfloat16)"."""
    others = ", ".join(f"{kind} {dtype_of(each)}" for kind, each in dtypes.items())
    return f"{dtype_of(dtype)}{f' ({others})' if others else ''}"
