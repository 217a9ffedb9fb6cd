# SPDX-License-Identifier: Apache-2.0
"""Reader: names, shapes, dtypes and boxes of arrays of a checkpoint in any format."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType, TracebackType
from typing import Any, NamedTuple, NoReturn, TypeAlias

import numpy as np

from artifex_devices._base.checks import check_bool, check_str, failure, is_integer, wrong_type
from artifex_devices._base.public_path import public
from artifex_devices._base.text import bytes_text, counted, printable, table_lines
from artifex_devices._core import Array, Sharding, internal
from artifex_devices.checkpoint.manifest import Path, Value, value_text
from artifex_devices.checkpoint.named_leaves import list_of
from artifex_devices.checkpoint.pieces import Box as Box
from artifex_devices.checkpoint.pieces import pieces_of, whole
from artifex_devices.checkpoint.reporting import check_progress

_ErrorType: TypeAlias = type[BaseException]  # in the class, `type` is its method


class ReadArray(NamedTuple):
    """One array: shape, dtype (None for a type that has no dtype here), type in the files, and number there."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any] | None
    type: str
    number: int = 0


@public("artifex_devices.checkpoint")
class Reader(ABC):
    """An open checkpoint, returned by `checkpoint.open`. A `with` block closes it.

    Several threads may read from one reader.

    Attributes:
        path: Absolute path of the checkpoint.
        format: "artifex", "safetensors", "dcp", "orbax", "npz" or "torch".
        notes: Sentences about what was found, why it is not another format, and what the files cannot show.
        values: Python values of the checkpoint, by name; empty for formats that have none.
        paths: Keys and positions in the saved tree of the leaves whose path is not just their name.
    """

    _kept_bytes = 0  # that are in memory between reads, at most

    def __init__(
        self,
        path: str,
        format: str,
        notes: tuple[str, ...],
        arrays: Mapping[str, ReadArray],
        values: Mapping[str, Value] = MappingProxyType({}),
        paths: Mapping[str, Path] = MappingProxyType({}),
    ) -> None:
        self.path = path
        self.format = format
        self.notes = notes
        self.values = MappingProxyType(dict(values))
        self._arrays = arrays
        self.paths = paths
        self._is_closed = False
        self._bytes_read = 0  # by _restored

    def names(self) -> tuple[str, ...]:
        """Returns the names of the arrays."""
        return tuple(self._arrays)

    def shape(self, name: str) -> tuple[int, ...]:
        """Returns the shape of an array; ValueError for an unknown name."""
        return self._array("Reader.shape", name).shape

    def dtype(self, name: str) -> np.dtype[Any]:
        """Returns the dtype of an array.

        Raises:
            ValueError: The name is unknown, or the type in the files has no dtype here.
        """
        return self._dtype("Reader.dtype", name)

    def type(self, name: str) -> str:
        """Returns the type of an array as its files name it, such as "F32"; ValueError for an unknown name."""
        return self._array("Reader.type", name).type

    def read(self, name: str, box: tuple[slice, ...] | None = None, *, verify: bool = False) -> np.ndarray[Any, Any]:
        """Reads an array, or a box of it: no other bytes of the array are read, unless the file is compressed.

        Checksums of checkpoints of this package are compared for the pieces of 1 MiB that the box contains, if it is a
        range of rows or the full array; those of .npz files, if it is the full array. `Reader.verify` also compares
        those of files of torch.save. Other formats have none.

        Args:
            name: Name of the array.
            box: A slice with step 1 for each of the first dimensions, as NumPy takes them; None is the full array.
            verify: Whether the checksums of all pieces that the box touches are compared, in a checkpoint of this
                package. The pieces are then read completely.

        Returns:
            A new row-major ndarray.

        Raises:
            ValueError: The name is unknown, its type has no dtype here, or a file is damaged.
            TypeError: `box` is not a tuple of slices, or `verify` is not a bool.
            OSError: A file cannot be read.

        Example:
            >>> import tempfile
            >>> import numpy as np
            >>> from artifex_devices import checkpoint
            >>> folder = tempfile.TemporaryDirectory()
            >>> np.savez(f"{folder.name}/a.npz", w=np.arange(12).reshape(4, 3))
            >>> with checkpoint.open(f"{folder.name}/a.npz") as reader:
            ...     reader.read("w", (slice(1, 3), slice(0, 2)))
            array([[3, 4],
                   [6, 7]])
        """
        dtype = self._dtype("Reader.read", name)
        checked = _box_of(self._arrays[name].shape, box)
        check_bool("Reader.read", "verify", verify)
        self._check_open("Reader.read")
        return self._read("Reader.read", name, dtype, checked, verify)

    def verify(self, *, progress: Callable[[int], None] | None = None) -> tuple[str, ...]:
        """Reads the whole checkpoint in boxes of at most 64 MiB, and compares the checksums that its format has.

        `open` has already checked that the checkpoint is complete, as far as `notes` do not state otherwise.

        Args:
            progress: Called with the number of bytes that are read so far.

        Returns:
            Sentences on what was checked and what could not be checked.

        Raises:
            ValueError: A file is damaged.
            OSError: A file cannot be read.

        Example:
            >>> import tempfile
            >>> import numpy as np
            >>> from artifex_devices import checkpoint
            >>> folder = tempfile.TemporaryDirectory()
            >>> np.savez(f"{folder.name}/a.npz", w=np.ones((4, 3)))
            >>> with checkpoint.open(f"{folder.name}/a.npz") as reader:
            ...     reader.verify()
            ('All elements of 1 array were read.', 'CRC-32 checksums of the archive were compared.')
        """
        check_progress("Reader.verify", progress)
        self._check_open("Reader.verify")
        known = {name: array.dtype for name, array in self._arrays.items() if array.dtype is not None}
        done = 0
        for name, dtype in known.items():
            for nbytes in self._verify("Reader.verify", name, dtype):
                done += nbytes
                if progress is not None:
                    progress(done)
        found = [f"All elements of {counted(len(known), 'array')} were read.", self._checksums()]
        if unknown := [name for name in self._arrays if name not in known]:
            found.append(f"Not read, because their types have no dtype here: {list_of(unknown)}.")
        return tuple(found)

    def close(self) -> None:
        """Closes the files. Names, shapes and the text stay."""
        if not self._is_closed:
            self._is_closed = True
            self._close()

    def __enter__(self) -> Reader:
        """Returns the reader."""
        return self

    def __exit__(self, kind: _ErrorType | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Closes the reader."""
        self.close()

    def __reduce__(self) -> NoReturn:
        """Raises TypeError: the path can be pickled, open files cannot."""
        raise failure(
            TypeError, "Reader", "an open checkpoint cannot be pickled", expected="its path", fix="open it there"
        )

    def __str__(self) -> str:
        """Formats a table of names, dtypes, shapes and bytes, and the notes."""
        rows = [("name", "dtype", "shape", "bytes")]
        total = 0
        for name, array in self._arrays.items():
            dtype, size = array.type, ""
            if array.dtype is not None:
                nbytes = array.dtype.itemsize * math.prod(array.shape)
                total += nbytes
                dtype, size = array.dtype.name, bytes_text(nbytes)
            rows.append((printable(name), printable(dtype), str(array.shape), size))
        for name, value in self.values.items():
            rows.append((printable(name), type(value).__name__, printable(value_text(value, ascii))[:40], ""))
        head = f"{printable(self.path)}: {self.format}"
        return "\n".join(
            [
                head,
                *table_lines(rows),
                f"{counted(len(self._arrays), 'array')}, {bytes_text(total)}",
                *map(printable, self.notes),
            ]
        )

    def to_json(self) -> str:
        """Returns names, types, shapes, bytes, values and notes as JSON."""
        arrays = {
            name: {
                "shape": array.shape,
                "dtype": None if array.dtype is None else array.dtype.name,
                "type": array.type,
                "nbytes": None if array.dtype is None else array.dtype.itemsize * math.prod(array.shape),
            }
            for name, array in self._arrays.items()
        }
        values = {
            name: {"type": type(value).__name__, "value": value_text(value, str)} for name, value in self.values.items()
        }
        document = {"path": self.path, "kind": self.format, "notes": self.notes, "arrays": arrays, "values": values}
        return json.dumps(document, indent=2)

    def _types(self, operation: str) -> list[tuple[str, tuple[int, ...], np.dtype[Any]]]:
        """Returns name, shape and dtype of each array; ValueError for a type without a dtype."""
        return [(name, array.shape, self._dtype(operation, name)) for name, array in self._arrays.items()]

    def _read_box(self, operation: str, name: str, box: Box, verify: bool) -> np.ndarray[Any, Any]:
        """Reads a box as `read` does, for another public function, which errors name."""
        self._check_open(operation)
        return self._read(operation, name, self._dtype(operation, name), box, verify)

    def _restore(
        self, operation: str, requests: Sequence[tuple[str, Sharding | None]], verify: bool
    ) -> list[np.ndarray[Any, Any] | Array]:
        """Reads arrays as ndarrays, or as Arrays with a sharding: each box of this process once."""
        self._check_open(operation)
        return [self._restored(operation, name, sharding, verify) for name, sharding in requests]

    def _restored(
        self, operation: str, name: str, sharding: Sharding | None, verify: bool
    ) -> np.ndarray[Any, Any] | Array:
        shape, dtype = self._arrays[name].shape, self._dtype(operation, name)
        blocks: dict[Box, np.ndarray[Any, Any]] = {}

        def block(index: tuple[slice, ...]) -> np.ndarray[Any, Any]:
            box = _box_of(shape, index)
            if box not in blocks:
                blocks[box] = self._read(operation, name, dtype, box, verify)
                self._bytes_read += blocks[box].nbytes
            return blocks[box]

        if sharding is None:
            return block(())
        return internal.array_from_callback(operation, shape, sharding, block, dtype)

    @abstractmethod
    def _read(self, operation: str, name: str, dtype: np.dtype[Any], box: Box, verify: bool) -> np.ndarray[Any, Any]:
        """Reads a checked box. Its errors name `operation`."""

    def _verify(self, operation: str, name: str, dtype: np.dtype[Any]) -> Iterator[int]:
        """Reads an array box by box with its checksums, and yields the bytes of each box."""
        for box in pieces_of(whole(self._arrays[name].shape), dtype.itemsize):
            yield self._read(operation, name, dtype, box, True).nbytes

    def _unchecked(self, name: str, box: Box) -> Sequence[str]:
        """Returns the arrays whose `_verify` compares the checksums that a read of a box with `verify` does not."""
        return ()

    def _checksums(self) -> str:
        """Returns a sentence on the checksums that `_verify` compares."""
        return self._checksums_of("", self.names())

    def _checksums_of(self, kind: str, without: Sequence[str]) -> str:
        """Returns the sentence for checksums of a kind that all arrays have, except those `without`."""
        if not without:
            return f"{kind} checksums of all elements were compared."
        if len(without) == len(self.names()):
            return "The format has no checksums of its elements: changed elements cannot be noticed."
        return f"{kind} checksums were compared, but changed elements cannot be noticed in {list_of(list(without))}."

    def _count_read(self) -> int:
        """Returns the bytes that restores have read so far."""
        return self._bytes_read

    @abstractmethod
    def _close(self) -> None:
        """Closes the files."""

    def _check_open(self, operation: str) -> None:
        if self._is_closed:
            raise closed(operation)

    def _array(self, operation: str, name: str) -> ReadArray:
        check_str(operation, "name", name, "choose one of Reader.names()")
        if name not in self._arrays:
            raise failure(
                ValueError,
                operation,
                f"{self.path!r} does not have an array {name!a}",
                expected=list_of(list(self._arrays)) or "no name, because it has no arrays",
                fix="choose one of Reader.names()",
            )
        return self._arrays[name]

    def _dtype(self, operation: str, name: str) -> np.dtype[Any]:
        array = self._array(operation, name)
        if array.dtype is None:
            raise failure(
                ValueError,
                operation,
                f"{name!a} is stored as {array.type}, which has no dtype here",
                expected="types such as F32",
                fix="leave this array out",
            )
        return array.dtype


def closed(operation: str) -> ValueError:
    """Returns the error for a read after `close`."""
    return failure(
        ValueError, operation, "the reader is closed", expected="an open one", fix="open the checkpoint again"
    )


def _box_of(shape: tuple[int, ...], box: object) -> Box:
    """Returns origin and shape of a box that is given as slices, as NumPy clips them."""
    if box is None:
        return (0,) * len(shape), shape
    if not isinstance(box, tuple) or not all(isinstance(part, slice) for part in box):
        raise wrong_type("Reader.read", "box", box, "a tuple of slices", "write (slice(0, 2), slice(None))")
    if len(box) > len(shape):
        raise failure(
            ValueError,
            "Reader.read",
            f"box has {len(box)} slices",
            expected=f"at most {len(shape)}, for shape {shape}",
            fix="remove the last slices",
        )
    origin, sizes = [], []
    for part, size in zip(box + (slice(None),) * (len(shape) - len(box)), shape, strict=True):
        if not all(bound is None or is_integer(bound) for bound in (part.start, part.stop, part.step)):
            raise wrong_type("Reader.read", "box", box, "slices of integers", "write (slice(0, 2), slice(None))")
        begin, end, step = part.indices(size)
        if step != 1:
            raise failure(
                ValueError,
                "Reader.read",
                f"box has a slice with step {step}",
                expected="step 1",
                fix="read the box, then write [::step]",
            )
        origin.append(begin)
        sizes.append(max(0, end - begin))
    return tuple(origin), tuple(sizes)
