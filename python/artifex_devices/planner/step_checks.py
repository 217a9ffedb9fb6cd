# SPDX-License-Identifier: Apache-2.0
"""Types of the fields of a StepModel. The core checks whether its parts fit each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from artifex_devices._base.packed_dtypes import dtype_of, holds_numbers
from artifex_devices._base.safe_repr import safe_repr

FORMATS = ("tensorfloat32", "float8", "int4", "float4")  # of products, beside NumPy's dtypes
_LIMIT = 2**62


def plain(value: Any) -> Any:
    """Returns the Python number or bool for a NumPy scalar, and other values unchanged.

    Example:
        >>> plain(np.int64(8)), plain(np.float32(0.5)), plain("8")
        (8, 0.5, '8')
    """
    return value.item() if isinstance(value, (np.bool_, np.integer, np.floating)) else value


def make_plain(part: Any) -> None:
    """Replaces NumPy scalars in the fields of a frozen dataclass, also in tuples."""
    for name, value in vars(part).items():
        object.__setattr__(part, name, tuple(map(plain, value)) if isinstance(value, tuple) else plain(value))


def is_count(value: Any, minimum: int = 1) -> bool:
    """Whether the value is an int from `minimum` to below 2**62."""
    return _is_int(value) and minimum <= value < _LIMIT


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _LIMIT


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _is_state_size(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= _LIMIT


def _is_dtype(value: Any) -> bool:
    try:
        return value is not None and holds_numbers(dtype_of(value))
    except (TypeError, ValueError, SyntaxError):
        return False


def _is_format(value: Any) -> bool:
    return value is None or (isinstance(value, str) and value in FORMATS) or _is_dtype(value)


def _all(is_valid: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda values: all(map(is_valid, values))


_NAME = (_is_text, "a str")
_NAMES = (_all(_is_text), "names")
_COUNT = (_is_int, "an int of 1 or more, below 2**62")
_FLAG = (_is_bool, "True or False")
_DTYPE = "a dtype of numbers or booleans, such as 'bfloat16'"
_FIELDS: dict[str, dict[str, tuple[Callable[[Any], bool], str]]] = {
    "StepModel": {"name": _NAME, "tokens": _COUNT, "batch_axes": _NAMES},
    "Tensor": {
        "name": _NAME,
        "shape": (_all(_is_int), "ints of 1 or more, and fewer than 2**62 elements"),
        "axes": _NAMES,
        "dtype": (_is_dtype, _DTYPE),
        "role": (_is_text, "one of parameter, activation, given"),
        "count": _COUNT,
        "is_kept": _FLAG,
        "is_on_chip": _FLAG,
    },
    "Operation": {
        "name": _NAME,
        "einsum": (_is_text, "one such as 'bd,df->bf'"),
        "inputs": (_all(_is_text), "names of tensors"),
        "output": (_is_text, "the name of a tensor"),
        "kind": (_is_text, "one of matmul, elementwise, lookup, route"),
        "count": _COUNT,
        "dtype": (_is_format, f"{_DTYPE}, or one of {', '.join(FORMATS)}"),
        "is_recomputed": _FLAG,
    },
    "Optimizer": {
        "bytes_per_parameter": (_is_state_size, "a number of 0 to 1048576"),
        "gradient_dtype": (lambda value: value is None or _is_dtype(value), _DTYPE),
        "holds_gradients": _FLAG,
    },
}


def type_mistakes(part: Any) -> list[str]:
    """Describes every field of a StepModel, Tensor, Operation or Optimizer that has a wrong type."""
    kind = type(part).__name__
    subject = f"{kind.lower()} {safe_repr(part.name)}: " if kind in ("Tensor", "Operation") else ""
    return [
        f"{subject}{name} is {safe_repr(value)}, expected {expected}"
        for name, (is_valid, expected) in _FIELDS[kind].items()
        if not is_valid(value := getattr(part, name))
    ]
