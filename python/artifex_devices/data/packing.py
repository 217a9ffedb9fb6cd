# SPDX-License-Identifier: Apache-2.0
"""pack: samples of different lengths, one after the other, cut into rows of equal length."""

from __future__ import annotations

import functools
import json
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from artifex_devices._base.checks import check_choice, check_int, check_str, failure, wrong_type
from artifex_devices._base.digest import digest_of
from artifex_devices._base.text import shortened_list
from artifex_devices._core.data import PackedRows
from artifex_devices.data.columns import MAX_LENGTH, POSITIONS, SEGMENT_IDS, columns_of
from artifex_devices.data.leaves import Leaf
from artifex_devices.data.lengths import Lengths, lengths_of
from artifex_devices.data.reading import SampleError, read
from artifex_devices.data.running_sums import RunningSums
from artifex_devices.data.sources import Source
from artifex_devices.data.stream import Stream

_OPERATION = "data.pack"
_SHOWN = 8  # columns in a message
_FIRST_ROWS = 16  # of which the first sample that can be read defines columns and dtypes


def pack(
    stream: Stream,
    length: int = 4096,
    by: str = "tokens",
    lengths: ArrayLike | dict[str, ArrayLike] | None = None,
    too_long: Literal["split", "error"] = "split",
    *,
    workers: int = 2,
) -> Stream:
    """Returns a stream of rows of equal length, which holds the samples of a stream one after the other.

    No token is lost: a sample that does not fit in the rest of a row continues in the next row, and only the last row
    has padding, zeros. A row is a dict of arrays of `length` entries:

    - `by`, and all other columns of the samples, which are cut alike;
    - "segment_ids" (int32): 1 for the first sample in the row, 2 for the second, and so on; 0 is padding;
    - "positions" (int32): the position of each token in its sample; a sample that was cut goes on counting.

    The order of the rows is a function of the order of the samples alone, so it is equal for every number of processes.

    The function needs the length of each sample. Without `lengths`, the first call reads every sample once, through the
    functions of `map`, and stores the lengths beside the source (`artifex-....lengths`); later calls and copies of the
    folder use this file. The file is of the content of the source, of `by`, and of the qualified names of the functions
    of `map`: remove it when such a function returns other lengths than before. The lengths stay in memory if the source
    has no path, its folder is read-only (UserWarning), or a function of `map` has no name of its own, as lambdas, local
    functions, methods and partial functions.

    Finding a row needs the sum of the lengths before it in the order of the stream. From 4 million samples on, these
    sums are stored beside the source too (`artifex-....sums`), so that a resume finds its row at once.

    Args:
        stream: The samples: dicts of columns, or arrays.
        length: Number of tokens in each row.
        by: Name of the column whose length counts. Samples that are arrays become this column.
        lengths: The length of each sample of the source, in the order of the source, before shuffling and slicing. For
            several sources a dict by name, as in `data.mix`. Arrays of int64 are not copied.
        too_long: "split" cuts samples that are longer than a row, "error" refuses them.
        workers: Number of threads that read where lengths are measured.

    Returns:
        The stream of rows. It can be shuffled, sliced, mapped, mixed and repeated as other streams.

    Raises:
        TypeError: An argument, or a column of a sample, is of another type.
        ValueError: A number is out of range, lengths do not match the source, columns of a sample have different
            lengths, a sample is longer than a row with `too_long="error"`, or the samples go through
            `map(f, random=True)` and `lengths` is None.
        SampleError: A sample cannot be read.

    Example:
        >>> import numpy as np
        >>> from artifex_devices import data
        >>> samples = [np.array([1, 2, 3]), np.array([4, 5, 6]), np.array([7, 8])]
        >>> rows = data.pack(data.Stream(samples), length=5)
        >>> len(rows), rows.at(1)["tokens"], rows.at(1)["segment_ids"], rows.at(1)["positions"]
        (2, array([6, 7, 8, 0, 0]), array([1, 2, 2, 0, 0], dtype=int32), array([2, 0, 1, 0, 0], dtype=int32))
    """
    if not isinstance(stream, Stream):
        raise wrong_type(_OPERATION, "stream", stream, "a Stream", "write data.Stream(source)")
    size = check_int(_OPERATION, "length", length, "write length=4096", minimum=1, maximum=MAX_LENGTH)
    column = check_str(_OPERATION, "by", by, 'write by="tokens"', expected="the name of a column")
    if column in (SEGMENT_IDS, POSITIONS):
        problem = f"by is {column!r}, a column that data.pack adds"
        raise failure(ValueError, _OPERATION, problem, expected="another name", fix='write by="tokens"')
    check_choice(_OPERATION, "too_long", too_long, ("split", "error"))
    threads = check_int(_OPERATION, "workers", workers, "write workers=2", minimum=1, maximum=1024)
    table = lengths_of(stream, column, lengths, threads)
    packed = _PackedSource(stream, table, size, column, too_long)
    if stream.length is None:
        packed.rows.pieces(np.zeros(1, np.int64))  # raises where no sample has tokens
    else:
        packed.rows.size()  # adds up all lengths
        packed.sums.store()
    return Stream._of_leaf(Leaf(packed, "packed", ()), packed.rows.size(), stream.seed, stream)


# The dtype and the shape of one entry of each column.
_Layout: TypeAlias = dict[str, tuple[np.dtype[Any], tuple[int, ...]]]


class _PackedSource(Source):
    """The rows of a packed stream."""

    def __init__(self, stream: Stream, table: list[Lengths], length: int, by: str, too_long: str) -> None:
        self.rows = PackedRows(stream._order, [each.values for each in table], length, too_long)
        self.sums = RunningSums(self.rows, stream, table, length if too_long == "error" else None)
        self._arguments = (stream, table, length, by, too_long)
        self._stream = stream
        self._table = table
        self._length = length
        self._by = by
        self._layout: _Layout | None = None
        lengths = digest_of(json.dumps([each.digest for each in table])).hex()[:16]
        self.packing = f"rows of {length} {by}, lengths {lengths}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _PackedSource, self._arguments

    def __len__(self) -> int:
        size = self.rows.size()
        if size is None:
            fix = "use rows.take(n)"
            raise failure(TypeError, _OPERATION, "the rows are endless", expected="a stream with an end", fix=fix)
        return size

    def read(self, indices: NDArray[np.int64]) -> list[dict[str, NDArray[Any]]]:
        """Returns rows; a sample of which several have parts is read once."""
        if len(indices) == 0:
            return []
        starts, positions, firsts, counts = self.rows.pieces(np.asarray(indices, np.int64))
        self.sums.store()
        wanted, places = np.unique(positions, return_inverse=True)
        if self._layout is None:
            self._layout = self._first_layout()
        samples = self._samples(wanted)
        for position, sample in zip(wanted.tolist(), samples, strict=True):
            self._check_layout(sample, position)
        pieces = list(zip(places.tolist(), firsts.tolist(), (firsts + counts).tolist(), strict=True))
        columns = {name: [samples[place][name][first:end] for place, first, end in pieces] for name in self._layout}
        tokens = {name: np.concatenate(parts) for name, parts in columns.items()}
        ends = np.cumsum(counts)
        segments = np.arange(len(pieces)) - np.repeat(starts[:-1], np.diff(starts)) + 1
        tokens[SEGMENT_IDS] = np.repeat(segments, counts).astype(np.int32)
        tokens[POSITIONS] = (np.arange(counts.sum()) + np.repeat(firsts - ends + counts, counts)).astype(np.int32)
        filled = np.diff(np.concatenate([[0], ends])[starts])  # tokens of each row
        found = {name: self._in_rows(column, filled) for name, column in tokens.items()}
        return [{name: column[row] for name, column in found.items()} for row in range(len(filled))]

    def _in_rows(self, column: NDArray[Any], filled: NDArray[np.int64]) -> NDArray[Any]:
        """Returns the tokens of rows, one after the other, as rows of equal length."""
        shape = (len(filled), self._length, *column.shape[1:])
        if len(column) == len(filled) * self._length:
            return column.reshape(shape)
        rows = np.zeros(shape, column.dtype)
        rows[np.arange(self._length) < filled[:, np.newaxis]] = column
        return rows

    def _samples(self, positions: NDArray[np.int64]) -> list[dict[str, NDArray[Any]]]:
        """Returns samples as columns, of the lengths that the table has."""
        found = read(self._stream, positions, skips=False, operation=_OPERATION, fix="repair the source").samples
        leaves, indices, _ = self._stream._resolve(positions)
        samples = []
        for position, leaf, index, sample in zip(
            positions.tolist(), leaves.tolist(), indices.tolist(), found, strict=True
        ):
            columns = columns_of(sample, self._by, functools.partial(self._stream.describe_position, position))
            table = self._table[leaf]
            if len(columns[self._by]) != table.values[index]:
                name = self._stream._leaves[leaf].name
                raise failure(
                    ValueError,
                    _OPERATION,
                    f"sample {index} of the source {name!r} has the length {len(columns[self._by])}",
                    expected=f"{table.values[index]}, its length in the table of lengths",
                    fix=table.fix,
                )
            samples.append(columns)
        return samples

    def _first_layout(self) -> _Layout:
        """Returns the columns of the first sample that can be read, so that all processes have the same."""
        size = self.rows.size()
        _, positions, _, _ = self.rows.pieces(np.arange(_FIRST_ROWS if size is None else min(size, _FIRST_ROWS)))
        first_error: SampleError | None = None
        for position in np.unique(positions):
            try:
                [sample] = self._samples(np.array([position]))
                return _layout(sample)
            except SampleError as error:
                first_error = first_error or error
        assert first_error is not None, "every row has a sample"
        raise first_error

    def _check_layout(self, sample: dict[str, NDArray[Any]], position: int) -> None:
        layout = _layout(sample)
        if self._layout is not None and layout != self._layout:
            raise failure(
                ValueError,
                _OPERATION,
                f"{self._stream.describe_position(position)} has {_text(layout)}",
                expected=f"{_text(self._layout)}, as the first sample",
                fix="convert the samples in stream.map(f)",
            )

    def _samples_at(self, indices: NDArray[np.int64]) -> tuple[Stream, NDArray[np.int64]]:
        return self._stream, self.rows.pieces(indices)[1]

    def digest(self) -> str:
        """Returns a digest of the sources; the stream of rows has their order, and `packing` the lengths."""
        identity = self._stream._identity()
        return digest_of(json.dumps([identity["sources"], identity["packing"]])).hex()[:32]

    def describe(self, index: int) -> str:
        """Returns which samples are in a row."""
        _, positions, _, _ = self.rows.pieces(np.array([index]))
        first, last = (self._stream.describe_position(int(positions[place])) for place in (0, -1))
        return f"packed row {index}, which holds {first}" + (f" to {last}" if len(positions) > 1 else "")

    def __repr__(self) -> str:
        return f"pack({self._length}, by={self._by!r})"


def _layout(columns: dict[str, NDArray[Any]]) -> _Layout:
    return {name: (column.dtype, column.shape[1:]) for name, column in columns.items()}


def _text(layout: _Layout) -> str:
    shown = [f"{name!r} ({dtype}{list(shape) if shape else ''})" for name, (dtype, shape) in layout.items()]
    return f"the column{'s' * (len(shown) > 1)} {shortened_list(shown, _SHOWN)}"
