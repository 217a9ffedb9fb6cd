# SPDX-License-Identifier: Apache-2.0
"""Samples joined to one batch: each leaf of the samples becomes one array with a new first dimension."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artifex_devices import tree_util
from artifex_devices._base.checks import failure
from artifex_devices._base.leaf_types import PyTree
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import internal
from artifex_devices._core.data import copy_to_rows

_NUMBERS = "biufcV"  # kinds of dtypes
_PART = 16  # samples that are copied together, while they are in the cache


def collate(operation: str, samples: Iterable[Any], positions: NDArray[np.int64], padding: int) -> PyTree:
    """Returns samples as a tree of arrays, followed by `padding` rows of zeros.

    Args:
        operation: Name of the operation, for messages.
        samples: Samples of equal structure, as many as positions. Few of them are in memory at the same time.
        positions: Positions of the samples in the stream, at least one, for messages.
        padding: Number of rows of zeros.

    Raises:
        ValueError: Structures or shapes of the samples differ.
        TypeError: A leaf is not an array of numbers.
    """
    remaining = iter(samples)
    part = list(itertools.islice(remaining, _PART))
    first, structure = tree_util.tree_flatten(part[0])
    names = [tree_util.keystr(path) for path in structure.paths()]
    columns = [_Column(operation, name, leaf, positions, padding) for name, leaf in zip(names, first, strict=True)]
    done = 0
    while part:
        flat = [tree_util.tree_flatten(sample) for sample in part]
        for number, (_, other) in enumerate(flat, done):
            if other != structure:
                raise failure(
                    ValueError,
                    operation,
                    f"the samples at positions {positions[0]} and {positions[number]} are different trees",
                    expected=f"the structure {structure}",
                    got=str(other),
                    fix="return the same keys for every sample in stream.map(f)",
                )
        for place, column in enumerate(columns):
            column.append([leaves[place] for leaves, _ in flat])
        done += len(part)
        part = list(itertools.islice(remaining, _PART))
    return tree_util.tree_unflatten(structure, [column.joined() for column in columns])


class _Column:
    """A leaf of the samples, which becomes one array."""

    def __init__(self, operation: str, name: str, first: Any, positions: NDArray[np.int64], padding: int) -> None:
        self._operation = operation
        self._name = name
        self._positions = positions
        self._padding = padding
        self._copied = 0  # rows of `_rows` that are filled
        self._others: list[Any] = []  # leaves after them: numbers, and arrays of another dtype, shape or layout
        leaf = np.asarray(first)
        self._is_copied = leaf.dtype.kind in _NUMBERS  # whether all leaves so far are in `_rows`
        self._rows = _empty((len(positions) + padding if self._is_copied else 0, *leaf.shape), leaf.dtype)

    def append(self, leaves: list[Any]) -> None:
        """Adds the leaves of the next samples."""
        copied = copy_to_rows(leaves, self._rows, self._copied) if self._is_copied else 0
        self._copied += copied
        self._others += leaves[copied:]
        self._is_copied = not self._others

    def joined(self) -> NDArray[Any]:
        """Returns the array, with rows of zeros at the end."""
        count = len(self._positions)
        rows = self._rows
        if self._others:
            arrays = [*self._rows[: self._copied], *map(np.asarray, self._others)]
            self._check(arrays)
            dtype = np.result_type(*dict.fromkeys(array.dtype for array in arrays))
            rows = _empty((count + self._padding, *arrays[0].shape), dtype)
            np.stack(arrays, out=rows[:count])
        rows[count:] = np.zeros((), rows.dtype)
        return rows

    def _check(self, arrays: Sequence[NDArray[Any]]) -> None:
        shape = arrays[0].shape
        where = f" in {self._name}" if self._name else ""
        for number, array in enumerate(arrays):
            if array.shape != shape:
                raise failure(
                    ValueError,
                    self._operation,
                    f"the samples at positions {self._positions[0]} and {self._positions[number]} have shapes {shape} "
                    f"and {array.shape}{where}",
                    expected="equal shapes",
                    fix="cut or pad them in stream.map(f), or join them to rows by data.pack(stream, length=4096)",
                )
            if array.dtype.kind not in _NUMBERS:
                leaf = self._others[number - self._copied]
                raise failure(
                    TypeError,
                    self._operation,
                    f"the sample at position {self._positions[number]} has {safe_repr(leaf)} ({array.dtype}){where}",
                    expected="arrays of numbers",
                    fix="leave it out, or encode it as numbers, in stream.map(f)",
                )


def _empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Returns an array in memory that devices share, and that is used again for later batches."""
    native = np.result_type(dtype)  # in the byte order of the machine
    try:
        return internal.host_empty(shape, native)
    except TypeError:  # not a dtype of Arrays: placing the batch raises
        return np.empty(shape, native)
