# SPDX-License-Identifier: Apache-2.0
"""Rules that rename, leave out and add arrays, or change their values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from artifex_devices._base.checks import (
    check_bool,
    check_int,
    check_number,
    check_sequence_of_ints,
    failure,
    wrong_type,
)
from artifex_devices._base.public_path import public
from artifex_devices._core import internal
from artifex_devices.checkpoint.rule import Rule, check_pattern


@public("artifex_devices.checkpoint.rules")
def rename(source: str, target: str) -> Rule:
    """Returns a rule that gives arrays other names.

    Args:
        source: Pattern of the names.
        target: Pattern of the new names.

    Raises:
        TypeError: A pattern is not a str.
        ValueError: A pattern is not valid, or the placeholders of both differ.

    Example:
        >>> from artifex_devices.checkpoint import rules
        >>> rules.rename("model.layers.{layer}.mlp.up_proj.weight", "layers/{layer}/up")
        rules.rename('model.layers.{layer}.mlp.up_proj.weight', 'layers/{layer}/up')
    """
    operation = "rules.rename"
    return Rule("rename", (check_pattern(operation, "source", source),), (check_pattern(operation, "target", target),))


@public("artifex_devices.checkpoint.rules")
def cast(pattern: str, dtype: DTypeLike) -> Rule:
    """Returns a rule that converts arrays to another dtype. It has no inverse.

    Args:
        pattern: Pattern of the arrays, which keep their names.
        dtype: New dtype, as an argument of `numpy.dtype` or a name such as "bfloat16".

    Raises:
        TypeError: The pattern is not a str, or the dtype is not one of an Array.
        ValueError: The pattern is not valid.

    Example:
        >>> from artifex_devices.checkpoint import rules
        >>> rules.cast("model.layers.{layer}.*.weight", "bfloat16")
        rules.cast('model.layers.{layer}.*.weight', 'bfloat16')
    """
    operation = "rules.cast"
    return Rule("cast", (check_pattern(operation, "pattern", pattern),), dtype=internal.rule_dtype(dtype, operation))


@public("artifex_devices.checkpoint.rules")
def scale(pattern: str, factor: float) -> Rule:
    """Returns a rule that multiplies floating-point arrays by a number.

    The product is computed in float32, with the factor rounded to float32, and rounded to the dtype of the array. The
    inverse multiplies by `1 / factor`, which may differ from the original values in the last bit.

    Args:
        pattern: Pattern of the arrays, which keep their names.
        factor: Factor.

    Raises:
        TypeError: An argument has another type.
        ValueError: The pattern is not valid, or the factor is 0 or not finite.

    Example:
        >>> from artifex_devices.checkpoint import rules
        >>> rules.scale("decoder/layers/self_attention/query/kernel", 0.125)
        rules.scale('decoder/layers/self_attention/query/kernel', 0.125)
    """
    operation = "rules.scale"
    pattern = check_pattern(operation, "pattern", pattern)
    return Rule("scale", (pattern,), factor=float(check_number(operation, "factor", factor)))


@public("artifex_devices.checkpoint.rules")
def drop(pattern: str) -> Rule:
    """Returns a rule that leaves arrays out. It has no inverse.

    Args:
        pattern: Pattern of the arrays.

    Raises:
        TypeError: The pattern is not a str.
        ValueError: The pattern is not valid.

    Example:
        >>> from artifex_devices.checkpoint import rules
        >>> rules.drop("model.layers.{layer}.self_attn.rotary_emb.inv_freq")
        rules.drop('model.layers.{layer}.self_attn.rotary_emb.inv_freq')
    """
    return Rule("drop", (check_pattern("rules.drop", "pattern", pattern),))


@public("artifex_devices.checkpoint.rules")
def constant(name: str, shape: Sequence[int], dtype: DTypeLike, value: complex) -> Rule:
    """Returns a rule that adds an array whose elements are all equal. Its inverse drops the array.

    Args:
        name: Name of the array.
        shape: Shape of the array.
        dtype: Dtype of the array, as an argument of `numpy.dtype` or a name such as "bfloat16".
        value: Value of each element, a number that the dtype has.

    Raises:
        TypeError: An argument has another type.
        ValueError: The name has placeholders, a size is negative, or the dtype does not have the value.

    Example:
        >>> from artifex_devices.checkpoint import rules
        >>> rules.constant("step", (), "int32", 0)
        rules.constant('step', (), 'int32', 0)
    """
    operation = "rules.constant"
    of_dtype = internal.rule_dtype(dtype, operation)
    name = check_pattern(operation, "name", name)
    shape = check_sequence_of_ints(operation, "shape", shape, "write shape=(8,)")
    element = _element(operation, value, of_dtype)
    return Rule(
        "constant", target=(name,), dtype=of_dtype, shape=shape, value=element.tobytes(), value_text=str(element[()])
    )


def _element(operation: str, value: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Returns an array without dimensions; a number that the dtype does not have is an error."""
    if dtype.kind == "b":
        return np.array(check_bool(operation, "value", value), dtype)
    if dtype.kind in "iu" or dtype.name in ("int2", "int4", "uint2", "uint4"):
        number = check_int(operation, "value", value)
        element = np.array(number % 2**64, np.uint64).astype(dtype)
        if int(element) != number:
            raise failure(
                ValueError, operation, f"value is {number}", expected=f"a number of {dtype.name}", fix="write 0"
            )
        return element
    if dtype.kind != "c":
        value = check_number(operation, "value", value)
    elif not isinstance(value, (int, float, complex)):
        raise wrong_type(operation, "value", value, "a number", "write 0")
    return np.array(value).astype(dtype)
