# SPDX-License-Identifier: Apache-2.0
"""Samples joined to one batch: each leaf of the samples becomes one array with a new first dimension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artifex_devices import tree_util
from artifex_devices._base.checks import failure
from artifex_devices._base.leaf_types import PyTree
from artifex_devices._base.safe_repr import safe_repr


def collate(operation: str, samples: Sequence[Any], positions: NDArray[np.int64], *, size: int, padding: int) -> PyTree:
    """Returns the first `size` samples as a tree of arrays, followed by `padding` rows of zeros.

    Args:
        operation: Name of the operation, for messages.
        samples: Samples of equal structure, at least one.
        positions: Positions of the samples in the stream, for messages.
        size: Number of samples that become rows; 0 gives empty arrays with the shapes and dtypes of the first sample.
        padding: Number of rows of zeros.

    Raises:
        ValueError: Structures or shapes of the samples differ.
    """
    first, structure = tree_util.tree_flatten(samples[0])
    columns: list[list[Any]] = [[leaf] for leaf in first]
    for number in range(1, size):
        leaves, other = tree_util.tree_flatten(samples[number])
        if other != structure:
            raise failure(
                ValueError,
                operation,
                f"the samples at positions {positions[0]} and {positions[number]} are different trees",
                expected=f"the structure {structure}",
                got=str(other),
                fix="return the same keys for every sample in stream.map(f)",
            )
        for column, leaf in zip(columns, leaves, strict=True):
            column.append(leaf)
    return tree_util.tree_unflatten(
        structure,
        [
            _stacked(operation, tree_util.keystr(path), column, positions, size, padding)
            for path, column in zip(structure.paths(), columns, strict=True)
        ],
    )


def _stacked(
    operation: str, name: str, column: list[Any], positions: NDArray[np.int64], size: int, padding: int
) -> Any:
    arrays = [np.asarray(leaf) for leaf in column]
    shape, dtype = arrays[0].shape, arrays[0].dtype
    for number, array in enumerate(arrays):
        if array.shape != shape:
            raise failure(
                ValueError,
                operation,
                f"the samples at positions {positions[0]} and {positions[number]} have shapes {shape} and "
                f"{array.shape}{f' in {name}' if name else ''}",
                expected="equal shapes",
                fix="cut or pad them in stream.map(f), or join them to rows by data.pack(stream, length=4096)",
            )
        if array.dtype.kind not in "biufcV":
            raise failure(
                TypeError,
                operation,
                f"the sample at position {positions[number]} has {safe_repr(column[number])} "
                f"({array.dtype}){f' in {name}' if name else ''}",
                expected="arrays of numbers",
                fix="leave it out, or encode it as numbers, in stream.map(f)",
            )
    if size + padding == 0:
        return np.empty((0, *shape), dtype)
    if not padding:
        return np.stack(arrays)
    dtype = np.result_type(*arrays)
    joined = np.zeros((size + padding, *shape), dtype)
    if size:
        np.stack(arrays, out=joined[:size])
    return joined
