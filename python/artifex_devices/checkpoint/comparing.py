# SPDX-License-Identifier: Apache-2.0
"""compare: whether two checkpoints have the same arrays, read box by box."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from concurrent import futures  # its ThreadPoolExecutor cannot be imported while the interpreter exits
from contextlib import ExitStack
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from artifex_devices._base.checks import check_bool
from artifex_devices._core import internal
from artifex_devices.checkpoint.comparison import ArrayDifference, Comparison
from artifex_devices.checkpoint.folders import StrPath, check_path
from artifex_devices.checkpoint.manifest import value_text
from artifex_devices.checkpoint.named_leaves import list_of
from artifex_devices.checkpoint.opening import open_reader
from artifex_devices.checkpoint.pieces import Box, pieces_of, tiles_of, whole
from artifex_devices.checkpoint.planned_reader import PlannedReader
from artifex_devices.checkpoint.planning import plan_conversion
from artifex_devices.checkpoint.readers.reader import Reader
from artifex_devices.checkpoint.reporting import check_progress
from artifex_devices.checkpoint.rule import Rule

_OPERATION = "checkpoint.compare"


def compare(
    a: StrPath | Reader,
    b: StrPath | Reader,
    *,
    rules: Rule | Iterable[Rule] = (),
    dtype: DTypeLike | None = None,
    follow_links: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Comparison:
    """Compares two checkpoints of any formats: their arrays bit by bit, and their Python values.

    Both are read in boxes of at most 64 MiB, so arrays may be larger than memory.

    Args:
        a: Path of a checkpoint that `open` reads, or a Reader.
        b: The other one.
        rules: Rules that turn `a` into `b`. They are applied while `a` is read.
        dtype: Dtype that all arrays of floating-point numbers are cast to, on both sides, before they are compared.
            Without it, arrays of different dtypes differ, and their values are compared as float64.
        follow_links: Whether files may be links that leave the folder of their checkpoint.
        progress: Called with the number of bytes of `b` that are compared so far.

    Returns:
        A Comparison, which is false if the checkpoints differ. Its text lists the arrays that differ.

    Raises:
        TypeError: An argument has another type.
        FileNotFoundError: A path does not exist.
        ValueError: A checkpoint is damaged, a rule does not fit, or an array has a type that has no dtype here.
        OSError: A file cannot be read.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> from artifex_devices import checkpoint
        >>> folder = tempfile.TemporaryDirectory()
        >>> a, b = f"{folder.name}/a.npz", f"{folder.name}/b.npz"
        >>> np.savez(a, w=np.arange(6.0).reshape(2, 3))
        >>> np.savez(b, w=np.arange(6.0).reshape(2, 3).T)
        >>> bool(checkpoint.compare(a, b))
        False
        >>> bool(checkpoint.compare(a, b, rules=checkpoint.rules.transpose("w", (1, 0))))
        True
    """
    check_bool(_OPERATION, "follow_links", follow_links)
    check_progress(_OPERATION, progress)
    floats = None if dtype is None else internal.rule_dtype(dtype, _OPERATION)
    with ExitStack() as stack:

        def reader_of(name: str, side: StrPath | Reader) -> Reader:
            if isinstance(side, Reader):
                return side
            return stack.enter_context(
                open_reader(_OPERATION, check_path(_OPERATION, name, side), None, follow_links, prefers_stored=True)
            )

        readers = reader_of("a", a), reader_of("b", b)
        sides = _planned(readers[0], rules, floats), _planned(readers[1], (), floats)
        return _compared(*sides, progress or (lambda _: None))


def _planned(reader: Reader, rules: Rule | Iterable[Rule], floats: np.dtype[Any] | None) -> PlannedReader:
    plan = plan_conversion(_OPERATION, reader._types(_OPERATION), rules, floats=floats)
    return PlannedReader(_OPERATION, plan, reader)


def _compared(a: PlannedReader, b: PlannedReader, progress: Callable[[int], None]) -> Comparison:
    values, scalars, notes = _different_values(a, b)
    differences = []
    arrays = nbytes = 0
    pool = futures.ThreadPoolExecutor(1, "artifex_devices-compare")
    try:
        for name in sorted({*a.arrays, *b.arrays} - scalars):
            first, second = (_text(side, name) for side in (a, b))
            if first is None or second is None or a.arrays[name][0] != b.arrays[name][0]:
                differences.append(ArrayDifference(name, first, second))
                continue
            elements, largest = 0, 0.0
            for piece in _pieces(a, b, name):
                other = pool.submit(b.read, name, piece)
                mine = a.read(name, piece)
                count, size = _difference(mine.reshape(-1), other.result().reshape(-1))
                elements, largest = elements + count, max(largest, size)
                nbytes += other.result().nbytes
                progress(nbytes)
            arrays += 1
            if elements or first != second:
                differences.append(ArrayDifference(name, first, second, elements, largest))
    finally:
        pool.shutdown(cancel_futures=True)
    return Comparison(a.reader.path, b.reader.path, arrays, nbytes, tuple(differences), values, notes)


def _pieces(a: PlannedReader, b: PlannedReader, name: str) -> Iterable[Box]:
    """Returns pieces of an array that are read well on both sides: tiles where one of them is a transpose."""
    box = whole(a.arrays[name][0])
    slabs = pieces_of(box, max(a.itemsize(name), b.itemsize(name)))
    first = next(slabs)
    tile = a.tile(name, box, first) or b.tile(name, box, first)
    return tiles_of(box, tile) if tile else itertools.chain([first], slabs)


def _text(side: PlannedReader, name: str) -> str | None:
    if name not in side.arrays:
        return None
    shape, dtype = side.arrays[name]
    return f"{dtype.name} {shape}"


def _different_values(a: PlannedReader, b: PlannedReader) -> tuple[tuple[str, ...], set[str], tuple[str, ...]]:
    """Compares Python values, also with arrays of shape (), which are numbers in formats without values.

    Returns:
        Names of the values that differ, names of such arrays, and sentences on what was not compared.
    """
    differ, scalars, left_out = [], set(), []
    for name in sorted({*a.reader.values, *b.reader.values}):
        texts = []
        for side in (a, b):
            if name in side.reader.values:
                value: Any = side.reader.values[name]
            elif side.arrays.get(name, (None,))[0] == ():
                scalars.add(name)
                value = side.read(name, ((), ())).item()
            else:
                value = None
                if not side.reader.values and a.reader.format != b.reader.format:
                    left_out.append(name)
            texts.append((type(value), value_text(value, repr)))  # also the sign of 0.0
        if texts[0] != texts[1] and name not in left_out:
            differ.append(name)
    notes = (f"Not compared, because only one side has Python values: {list_of(left_out)}.",) if left_out else ()
    return tuple(differ), scalars, notes


def _difference(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> tuple[int, float]:
    """Returns the number of elements that differ, and the largest difference."""
    if a.dtype == b.dtype:
        x, y = _words(a), _words(b)
        if np.array_equal(x, y):
            return 0, 0.0
        differ = np.flatnonzero((x != y).reshape(a.size, -1).any(axis=1))
        return len(differ), _largest(a[differ], b[differ])
    wide = np.dtype(np.complex128 if "c" in a.dtype.kind + b.dtype.kind else np.float64)
    a, b = a.astype(wide), b.astype(wide)
    differ = np.flatnonzero((a != b) & ~(np.isnan(a) & np.isnan(b)))
    return len(differ), _largest(a[differ], b[differ])


def _words(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Returns the bits of elements, as unsigned integers."""
    return array.view(np.dtype(f"u{min(array.dtype.itemsize, 8)}"))


def _largest(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> float:
    """Returns the largest difference of elements that differ; 0 if only their bits do."""
    if not a.size:
        return 0.0
    if a.dtype.kind in "iu":  # exact, also above 2**53
        wide = np.uint64 if a.dtype.kind == "u" else np.int64
        high, low = (pick(a, b).astype(wide).astype(np.uint64) for pick in (np.maximum, np.minimum))
        return float((high - low).max())
    if a.dtype.kind != "c":
        a, b = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        sizes = np.abs(a - b)
    sizes[(a == b) | (np.isnan(a) & np.isnan(b))] = 0
    return float(np.where(np.isnan(sizes), np.inf, sizes).max())
