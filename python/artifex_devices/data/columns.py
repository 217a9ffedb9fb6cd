# SPDX-License-Identifier: Apache-2.0
"""The columns of samples that are packed into rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artifex_devices._base.checks import failure
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._base.text import shortened_list

SEGMENT_IDS = "segment_ids"
POSITIONS = "positions"
MAX_LENGTH = 2**31 - 1  # positions are int32
_OPERATION = "data.pack"
_SHOWN = 8  # columns in a message


def columns_of(sample: Any, by: str, where: Callable[[], str]) -> dict[str, NDArray[Any]]:
    """Returns the columns of a sample by name; all have the length of the column `by`.

    Args:
        sample: A dict of columns, or an array, which becomes the column `by`.
        by: Name of the column whose length counts.
        where: Returns which sample it is, for messages.

    Raises:
        ValueError: The column `by` is missing, another column has another length, or the name of one is reserved.
        TypeError: A column is not an array of numbers with a first dimension.
    """
    values: Mapping[Any, Any] = sample if isinstance(sample, Mapping) else {by: sample}
    if by not in values:
        raise failure(
            ValueError,
            _OPERATION,
            f"{where()} has no column {by!r}",
            expected=f"one of its columns, {_names(values)}",
            fix="name it: data.pack(stream, by='tokens')",
        )
    columns = {name: _array(name, value, where) for name, value in values.items()}
    length = len(columns[by])
    if length > MAX_LENGTH:
        raise failure(
            ValueError, _OPERATION, f"{where()} has the length {length}", expected=f"{MAX_LENGTH} or less", fix="cut it"
        )
    others = [name for name, column in columns.items() if len(column) != length]
    if others:
        raise failure(
            ValueError,
            _OPERATION,
            f"{where()} has columns of other lengths than {by!r}, {length}: "
            + shortened_list([f"{safe_repr(name)} ({len(columns[name])})" for name in others], _SHOWN),
            expected="columns of equal lengths, which are cut alike",
            fix=_leave_out(by),
        )
    reserved = [name for name in (SEGMENT_IDS, POSITIONS) if name in columns]
    if reserved:
        raise failure(
            ValueError,
            _OPERATION,
            f"{where()} has the column {reserved[0]!r}",
            expected="another name, because data.pack adds a column of this name",
            fix=_leave_out(by),
        )
    return columns


def _array(name: Any, value: Any, where: Callable[[], str]) -> NDArray[Any]:
    array = np.asarray(value)
    if array.ndim == 0 or array.dtype.kind not in "biufcV":
        raise failure(
            TypeError,
            _OPERATION,
            f"{where()} has {safe_repr(value)} in the column {safe_repr(name)}",
            expected="an array of numbers with one entry for each token",
            fix=_leave_out("tokens"),
        )
    return array


def _leave_out(by: str) -> str:
    return f"leave such columns out: stream.map(lambda sample: {{{by!r}: sample[{by!r}]}})"


def _names(values: Mapping[Any, Any]) -> str:
    return shortened_list([safe_repr(name) for name in values], _SHOWN) or "of which it has none"
