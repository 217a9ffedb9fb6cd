# SPDX-License-Identifier: Apache-2.0
"""Rows of Parquet and Arrow files, read by the package pyarrow by row groups."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artifex_devices.data.files import FileSource, unreadable

_MOST_GROUPS = 4  # row groups in memory


class _TableFiles(FileSource):
    """Files of tables, of which a part ("group") is read at once: each sample is a dict of columns."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._schema: Any = None
        self._forget_groups()
        super().__init__(paths)

    def _forget_groups(self) -> None:
        self._kept: dict[tuple[int, int], dict[str, list[Any]]] = {}
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_kept", "_lock")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget_groups()

    def _opened(self, path: Path) -> Any:
        raise NotImplementedError

    def _sizes(self, file: Any) -> list[int]:
        raise NotImplementedError

    def _table(self, file: Any, group: int) -> Any:
        raise NotImplementedError

    def _open(self, path: Path) -> Any:
        try:
            import pyarrow
        except ImportError as error:
            raise ImportError(
                f"data.source: pyarrow cannot be imported ({error}); expected it for {self.kind} files; "
                "pip install 'artifex_devices[parquet]' installs it"
            ) from error
        try:
            return self._opened(path)
        except (pyarrow.ArrowException, OSError, ValueError) as error:
            if isinstance(error, FileNotFoundError):
                raise
            raise unreadable(
                path, f"is no {self.kind} file that pyarrow can read: {error}", "a complete file"
            ) from error

    def _groups(self, path: Path) -> tuple[Sequence[int], int]:
        with self._open(path) as file:
            schema = getattr(file, "schema_arrow", None) or file.schema
            sizes = self._sizes(file)
        columns = {field.name: str(field.type) for field in schema}
        if len(columns) != len(schema):
            raise unreadable(path, "has two columns of one name", "columns with different names")
        if self._schema is None:
            self._schema = columns
        if columns != self._schema:
            problem = f"has the columns {columns}, and the file before it {self._schema}"
            raise unreadable(path, problem, "files with the same columns", "make one source of each kind")
        ends = np.cumsum([0, *sizes])
        return ends[:-1].tolist() or [0], int(ends[-1])

    def _read_file(self, number: int, records: NDArray[np.int64]) -> list[Any]:
        starts = self.files[number].starts
        groups = np.searchsorted(starts, records, side="right") - 1
        found: list[Any] = []
        for group in np.unique(groups).tolist():
            columns = self._columns(number, group)
            rows = (records[groups == group] - starts[group]).tolist()
            found += [{name: _own(values[row]) for name, values in columns.items()} for row in rows]
        return found

    def _columns(self, number: int, group: int) -> dict[str, list[Any]]:
        """Returns the columns of a group, which stay in memory until others are read."""
        key = (number, group)
        with self._lock:
            columns = self._kept.pop(key, None)
            if columns is not None:
                self._kept[key] = columns
                return columns
        with self._open(self.files[number].path) as file:
            table = self._table(file, group)
            columns = {name: _values(table.column(name)) for name in table.column_names}
        with self._lock:
            while len(self._kept) >= _MOST_GROUPS:
                del self._kept[next(iter(self._kept))]
            self._kept[key] = columns
        return columns


class ParquetFiles(_TableFiles):
    """The rows of Parquet files."""

    kind = "Parquet"

    def _opened(self, path: Path) -> Any:
        from pyarrow.parquet import ParquetFile

        return ParquetFile(path)

    def _sizes(self, file: Any) -> list[int]:
        return [file.metadata.row_group(k).num_rows for k in range(file.metadata.num_row_groups)]

    def _table(self, file: Any, group: int) -> Any:
        return file.read_row_group(group)


class ArrowFiles(_TableFiles):
    """The rows of Arrow files (Feather 2)."""

    kind = "Arrow"

    def _opened(self, path: Path) -> Any:
        import pyarrow

        return pyarrow.ipc.open_file(pyarrow.OSFile(str(path)))

    def _sizes(self, file: Any) -> list[int]:
        return [file.get_batch(k).num_rows for k in range(file.num_record_batches)]

    def _table(self, file: Any, group: int) -> Any:
        return file.get_batch(group)


def _values(column: Any) -> Any:
    """Returns the values of a column: NumPy numbers, lists of numbers as arrays, and Python objects else."""
    import pyarrow

    if isinstance(column, pyarrow.ChunkedArray):
        column = column.combine_chunks()
    if isinstance(column, pyarrow.ChunkedArray):  # without a chunk
        return column.to_pylist()
    kind = column.type
    types = pyarrow.types
    if column.null_count:
        return column.to_pylist()
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
        return column.to_numpy(zero_copy_only=False)
    if types.is_fixed_size_list(kind) and not types.is_nested(kind.value_type):
        return [np.asarray(each.values) for each in column]
    if (types.is_list(kind) or types.is_large_list(kind)) and _is_number(kind.value_type):
        numbers = column.values
        if not numbers.null_count:
            offsets = column.offsets.to_numpy()
            return np.split(numbers.to_numpy(zero_copy_only=False), offsets[1:-1]) if len(offsets) > 1 else []
    return column.to_pylist()


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def _own(value: Any) -> Any:
    """Returns a value that the caller may change: arrays are views of a kept group."""
    return value.copy() if isinstance(value, np.ndarray) else value
