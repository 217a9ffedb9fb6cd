# SPDX-License-Identifier: Apache-2.0
"""Types of the fields of a StepModel. The core checks whether its parts fit each other."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

from artifex_devices._base.safe_repr import safe_repr
from artifex_devices.planner.packed_dtypes import dtype_hint, dtype_of, holds_numbers
from artifex_devices.planner.plain_numbers import is_number

FORMATS = ("tensorfloat32", "float8", "int4", "float4")  # of products, in addition to NumPy's dtypes


def _is_dtype(value: Any) -> bool:
    try:
        return value is not None and holds_numbers(dtype_of(value))
    except (TypeError, ValueError, SyntaxError):
        return False


def _is_format(value: object) -> bool:
    return value is None or (isinstance(value, str) and value in FORMATS) or _is_dtype(value)


_Rule = tuple[Callable[[Any], bool], str]  # whether a value is right, and what is
_DTYPE = "a dtype of numbers or booleans, such as 'bfloat16'"
_BY_TYPE: dict[Any, _Rule] = {
    "str": (lambda value: isinstance(value, str), "a str"),
    "int": (lambda value: is_number(value, int), "an int of 1 or more, below 2**62"),
    "float": (lambda value: is_number(value, int, float), "a number of 0 to 1048576"),
    "bool": (lambda value: isinstance(value, bool), "True or False"),
    "tuple[str, ...]": (lambda values: all(isinstance(value, str) for value in values), "names"),
    "tuple[int, ...]": (
        lambda values: all(is_number(value, int) for value in values),
        "ints of 1 or more, and fewer than 2**62 elements",
    ),
}
_DTYPES: dict[str, _Rule] = {
    "Tensor.dtype": (_is_dtype, _DTYPE),
    "Operation.dtype": (_is_format, f"{_DTYPE}, or one of {', '.join(FORMATS)}"),
    "Optimizer.gradient_dtype": (lambda value: value is None or _is_dtype(value), _DTYPE),
}
_EXPECTED = {  # instead of the text for the type
    "Tensor.role": "one of parameter, activation, given",
    "Operation.einsum": "one such as 'bd,df->bf'",
    "Operation.inputs": "names of tensors",
    "Operation.output": "the name of a tensor",
    "Operation.kind": "one of matmul, elementwise, lookup, route",
}


def type_mistakes(parts: Iterable[Any]) -> list[str]:
    """Describes every field of StepModels, Tensors, Operations and Optimizers that has a wrong type.

    A mistake that several tensors or operations share is one text.
    """
    subjects: dict[tuple[str, str], list[str]] = {}
    for part in parts:
        kind = type(part).__name__
        for field in dataclasses.fields(part):
            path, value = f"{kind}.{field.name}", getattr(part, field.name)
            rule = _DTYPES.get(path) or _BY_TYPE.get(field.type)
            if rule is not None and not rule[0](value):
                hint = dtype_hint(value) if path in _DTYPES else ""
                text = f"{field.name} is {safe_repr(value)}{hint}, expected {_EXPECTED.get(path, rule[1])}"
                named = f" {safe_repr(part.name)}" if kind in ("Tensor", "Operation") else ""
                subjects.setdefault((kind.lower() if named else "", text), []).append(named)
    return [
        f"{kind}{names[0]}{f' and {len(names) - 1} other {kind}s' * (len(names) > 1)}{': ' * bool(kind)}{text}"
        for (kind, text), names in subjects.items()
    ]
