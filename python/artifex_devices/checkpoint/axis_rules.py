# SPDX-License-Identifier: Apache-2.0
"""Rules that move elements: stack and unstack, transpose, split and join, unflatten and flatten."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from artifex_devices._base.checks import check_int, check_sequence_of_ints, check_str
from artifex_devices._base.public_path import public
from artifex_devices.checkpoint.rule import Rule, check_pattern, check_patterns


class _Division(TypedDict):
    axis: int
    sizes: tuple[int, ...]
    groups: int


@public("artifex_devices.checkpoint.rules")
def stack(source: str, target: str, axis: str, position: int = 0) -> Rule:
    """Returns a rule that stacks arrays along a new axis, as scanned layers are stored.

    Args:
        source: Pattern of the arrays, which have one shape and dtype.
        target: Pattern of the stacked array, without the placeholder that counts the arrays.
        axis: Name of that placeholder. Its numbers must be 0, 1, 2, ... without gaps.
        position: Axis of the result along which the arrays are stacked.

    Raises:
        TypeError: An argument has another type.
        ValueError: A pattern is not valid, or the placeholders do not fit.

    Example:
        >>> from artifex_devices.checkpoint import rules
        >>> rules.stack("layers.{layer}.up", "decoder/layers/up", axis="layer")
        rules.stack('layers.{layer}.up', 'decoder/layers/up', axis='layer')
    """
    return _stacking("stack", source, target, axis, position)


@public("artifex_devices.checkpoint.rules")
def unstack(source: str, target: str, axis: str, position: int = 0) -> Rule:
    """Returns a rule that divides an array into one array for each index of an axis: the inverse of `stack`.

    Args:
        source: Pattern of the stacked arrays.
        target: Pattern of the arrays, with the placeholder that counts them.
        axis: Name of that placeholder.
        position: Axis of the stacked array that is removed.

    Raises:
        TypeError: An argument has another type.
        ValueError: A pattern is not valid, or the placeholders do not fit.

    Example:
        >>> from artifex_devices.checkpoint import rules
        >>> rules.unstack("decoder/layers/up", "layers.{layer}.up", axis="layer", position=1)
        rules.unstack('decoder/layers/up', 'layers.{layer}.up', axis='layer', position=1)
    """
    return _stacking("unstack", source, target, axis, position)


@public("artifex_devices.checkpoint.rules")
def transpose(pattern: str, axes: Sequence[int]) -> Rule:
    """Returns a rule that permutes the axes of arrays, as `numpy.transpose` does.

    Args:
        pattern: Pattern of the arrays, which keep their names.
        axes: For each axis of the result, the axis of the array.

    Raises:
        TypeError: An argument has another type.
        ValueError: The pattern is not valid, or the axes are not 0, 1, 2, ... in some order.

    Example:
        >>> from artifex_devices.checkpoint import rules
        >>> rules.transpose("*.kernel", (1, 0))
        rules.transpose('*.kernel', (1, 0))
    """
    operation = "rules.transpose"
    axes = check_sequence_of_ints(operation, "axes", axes, "write axes=(1, 0)")
    return Rule("transpose", (check_pattern(operation, "pattern", pattern),), axes=axes)


@public("artifex_devices.checkpoint.rules")
def split(pattern: str, into: Sequence[str], axis: int, sizes: Sequence[int], groups: int = 1) -> Rule:
    """Returns a rule that divides arrays along an axis, such as a fused QKV projection.

    With several groups, the axis has one group after the other, and each group has an equal share of each part in the
    order of `into`. Sizes are totals of all groups.

    Args:
        pattern: Pattern of the arrays.
        into: Patterns of the parts, with the same placeholders.
        axis: Axis that is divided; negative numbers count from the end.
        sizes: Size of each part. Their sum is the size of the axis.
        groups: Number of groups, such as the number of key and value heads.

    Raises:
        TypeError: An argument has another type.
        ValueError: A pattern is not valid, placeholders differ, or a size is not divisible by the groups.

    Example:
        >>> from artifex_devices.checkpoint import rules
        >>> rules.split("{layer}.gate_up", ["{layer}.gate", "{layer}.up"], axis=0, sizes=[8, 8])
        rules.split('{layer}.gate_up', ['{layer}.gate', '{layer}.up'], axis=0, sizes=(8, 8))
    """
    operation = "rules.split"
    fields = _division(operation, axis, sizes, groups)
    return Rule(
        "split", (check_pattern(operation, "pattern", pattern),), check_patterns(operation, "into", into), **fields
    )


@public("artifex_devices.checkpoint.rules")
def join(sources: Sequence[str], target: str, axis: int, sizes: Sequence[int], groups: int = 1) -> Rule:
    """Returns a rule that concatenates arrays along an axis: the inverse of `split`.

    Args:
        sources: Patterns of the parts, with the same placeholders.
        target: Pattern of the result.
        axis: Axis along which the parts are put together; negative numbers count from the end.
        sizes: Size of each part along the axis.
        groups: Number of groups. The result has one group after the other, each with an equal share of each part.

    Raises:
        TypeError: An argument has another type.
        ValueError: A pattern is not valid, placeholders differ, or a size is not divisible by the groups.

    Example:
        >>> from artifex_devices.checkpoint import rules
        >>> rules.join(["q", "k", "v"], "qkv", axis=0, sizes=[8, 4, 4], groups=4)
        rules.join(['q', 'k', 'v'], 'qkv', axis=0, sizes=(8, 4, 4), groups=4)
    """
    operation = "rules.join"
    fields = _division(operation, axis, sizes, groups)
    return Rule(
        "join", check_patterns(operation, "sources", sources), (check_pattern(operation, "target", target),), **fields
    )


@public("artifex_devices.checkpoint.rules")
def unflatten(pattern: str, axis: int, sizes: Sequence[int]) -> Rule:
    """Returns a rule that makes several axes of one, such as heads and their dimensions.

    Args:
        pattern: Pattern of the arrays, which keep their names.
        axis: Axis that is replaced; negative numbers count from the end.
        sizes: Sizes of the new axes, whose product is the size of the axis.

    Raises:
        TypeError: An argument has another type.
        ValueError: The pattern is not valid, or a size is below 1.

    Example:
        >>> from artifex_devices.checkpoint import rules
        >>> rules.unflatten("*.query", axis=-1, sizes=[32, 128])
        rules.unflatten('*.query', axis=-1, sizes=(32, 128))
    """
    return _reshaping("unflatten", pattern, axis, sizes)


@public("artifex_devices.checkpoint.rules")
def flatten(pattern: str, axis: int, sizes: Sequence[int]) -> Rule:
    """Returns a rule that makes one axis of several: the inverse of `unflatten`.

    Args:
        pattern: Pattern of the arrays, which keep their names.
        axis: First axis that is replaced; negative numbers count from the end.
        sizes: Sizes of the axes that are replaced.

    Raises:
        TypeError: An argument has another type.
        ValueError: The pattern is not valid, or a size is below 1.

    Example:
        >>> from artifex_devices.checkpoint import rules
        >>> rules.flatten("*.query", axis=-2, sizes=[32, 128])
        rules.flatten('*.query', axis=-2, sizes=(32, 128))
    """
    return _reshaping("flatten", pattern, axis, sizes)


def _stacking(kind: str, source: object, target: object, axis: object, position: object) -> Rule:
    operation = f"rules.{kind}"
    return Rule(
        kind,
        (check_pattern(operation, "source", source),),
        (check_pattern(operation, "target", target),),
        placeholder=check_str(operation, "axis", axis, 'write axis="layer"', expected="the name of a placeholder"),
        axis=_axis(operation, "position", position),
    )


def _division(operation: str, axis: object, sizes: object, groups: object) -> _Division:
    return {
        "axis": _axis(operation, "axis", axis),
        "sizes": check_sequence_of_ints(operation, "sizes", sizes, "write sizes=[8, 8]"),
        "groups": check_int(operation, "groups", groups, "write 1", minimum=1, maximum=2**31),
    }


def _reshaping(kind: str, pattern: object, axis: object, sizes: object) -> Rule:
    operation = f"rules.{kind}"
    return Rule(
        kind,
        (check_pattern(operation, "pattern", pattern),),
        axis=_axis(operation, "axis", axis),
        sizes=check_sequence_of_ints(operation, "sizes", sizes, "write sizes=[32, 128]"),
    )


def _axis(operation: str, name: str, value: object) -> int:
    return check_int(operation, name, value, minimum=-64, maximum=63)
