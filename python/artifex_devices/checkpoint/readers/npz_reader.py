# SPDX-License-Identifier: Apache-2.0
"""Readers of .npy and .npz files. Nothing is unpickled, and the sizes of headers are bounded."""

from __future__ import annotations

import io
import itertools
import math
import os
import struct
import threading
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any, NamedTuple

import numpy as np

from artifex_devices._base.checks import failure
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import internal
from artifex_devices.checkpoint.readers.located_arrays import LocatedArray, LocatedArrays, LocatedPart, row_major
from artifex_devices.checkpoint.readers.reader import Box, ReadArray, Reader, closed
from artifex_devices.checkpoint.readers.zip_members import BoundedFile, open_regular, stored_bytes

_MAX_HEADER = 10_000  # bytes of the header of an array, as in NumPy
_PIECE = 1 << 20  # bytes that are decompressed at a time
_MAX_POSITIONS = 16  # at which decompression may continue
_MAX_RATIO = 1032  # of deflate: zlib.net/zlib_tech.html
_HEADER_ERRORS = (
    ValueError, TypeError, SyntaxError, EOFError, RecursionError, MemoryError, zlib.error, zipfile.BadZipFile,
    tokenize.TokenError,
)  # fmt: skip
_ONE_NAME = "value"  # of the array of a .npy file, as of a tree that is one leaf


class _Member(NamedTuple):
    """One array in a file: where its elements begin, in the file or in the decompressed member."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]  # as stored, perhaps big-endian
    is_fortran: bool
    begin: int
    compressed: zipfile.ZipInfo | None  # of a compressed member
    header_crc: int
    crc: int | None = None  # of an uncompressed member of an archive

    @property
    def axes(self) -> tuple[int, ...]:
        """The dimensions in the order of the bytes."""
        axes = tuple(range(len(self.shape)))
        return axes[::-1] if self.is_fortran else axes

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""
        return self.dtype.itemsize * math.prod(self.shape)

    @property
    def read_dtype(self) -> np.dtype[Any] | None:
        """The dtype of arrays that are read, or None if it is not a dtype of Arrays."""
        native = self.dtype.newbyteorder("=")
        return native if native.kind in "biu" or native.char in "efdFD" else None


class _Position:
    """A place in a decompressed member, from which the next read continues."""

    def __init__(self, name: str, stream: IO[bytes]) -> None:
        self.name = name
        self.place = 0
        self._stream = stream

    def skip_to(self, place: int) -> None:
        """Reads and forgets bytes; EOFError if there are fewer."""
        while self.place < place:
            self._read(place - self.place)

    def read_into(self, memory: memoryview) -> None:
        """Fills memory; EOFError if there are fewer bytes."""
        done = 0
        while done < len(memory):
            piece = self._read(len(memory) - done)
            memory[done : done + len(piece)] = piece
            done += len(piece)

    def finish(self) -> None:
        """Reads the end, where zipfile compares the checksum; EOFError if there are more bytes."""
        if self._stream.read(1):
            raise EOFError("it is longer than its directory says")
        self._stream.close()

    def _read(self, count: int) -> bytes:
        piece = self._stream.read(min(count, _PIECE))
        if not piece:
            raise EOFError("it ends early")
        self.place += len(piece)
        return piece


class NpzReader(Reader):
    """Reads boxes of the arrays of one .npy or .npz file."""

    def __init__(self, operation: str, path: str, *, is_zip: bool) -> None:
        self._path = path
        self._lock = threading.Lock()  # of the archive and the positions
        self._archive: zipfile.ZipFile | None = None
        self._positions: list[_Position] = []
        with self._errors(operation, "the archive"), open_regular(operation, path) as file:
            if is_zip:
                self._archive = zipfile.ZipFile(BoundedFile(os.dup(file.fileno())))
            members = self._zip_members(operation, file) if is_zip else self._npy_members(operation, file)
            self._members = dict(members)
            self._located = self._uncompressed(operation)
            if not os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
                raise EOFError("it was replaced while it was opened")
        arrays = {
            name: ReadArray(member.shape, member.read_dtype, member.dtype.str) for name, member in self._members.items()
        }
        found = "an archive of .npy files" if is_zip else f"a .npy file, whose array is named {_ONE_NAME!r}"
        notes = [f"It is npz: {found}."]
        if any(member.compressed for member in self._members.values()):
            notes.append("It has compressed arrays: each read decompresses them up to the end of the box.")
        super().__init__(path, "npz", tuple(notes), arrays)

    def _read(self, operation: str, name: str, dtype: np.dtype[Any], box: Box, verify: bool) -> np.ndarray[Any, Any]:
        member = self._members[name]
        if member.compressed is None:
            out = self._located.read_stored(operation, name, dtype, box)
            if member.crc is not None and box[1] == member.shape:
                found = zlib.crc32(_bytes_of(out), member.header_crc)
                if found != member.crc:
                    problem = f"its checksum is {found:08x}, expected {member.crc:08x}"
                    raise self._damaged(operation, name, problem)
        else:
            out = self._decompress(operation, member, dtype, box)
        out = row_major(out, member.axes)
        return out if member.dtype.isnative else out.byteswap(inplace=True)

    def _verify(self, operation: str, name: str, dtype: np.dtype[Any]) -> Iterator[int]:
        """Reads a member of the archive to its end, where zipfile compares the checksum."""
        archive = self._archive
        if archive is None:
            yield from super()._verify(operation, name, dtype)
            return
        with self._errors(operation, name):
            with self._lock:
                stream = archive.open(f"{name}.npy")
            with stream:
                while piece := stream.read(_PIECE):
                    yield len(piece)

    def _unchecked(self, name: str, box: Box) -> Sequence[str]:
        member = self._members[name]  # the checksum of a compressed one is compared at its end
        return () if member.crc is None or box[1] == member.shape else (name,)

    def _checksums(self) -> str:
        return super()._checksums() if self._archive is None else "CRC-32 checksums of the archive were compared."

    def _close(self) -> None:
        self._located.close()
        with self._lock:
            self._positions.clear()
            if self._archive is not None:
                self._archive.close()

    def _uncompressed(self, operation: str) -> LocatedArrays:
        arrays = {}
        for name, member in self._members.items():
            dtype = member.read_dtype
            if member.compressed is None and dtype is not None:
                part = LocatedPart((0,) * len(member.shape), member.shape, 0, member.begin)
                arrays[name] = LocatedArray(dtype, member.shape, member.axes, (part,))
        return LocatedArrays(operation, [self._path], arrays)

    def _npy_members(self, operation: str, file: io.FileIO) -> Iterator[tuple[str, _Member]]:
        member = self._header(operation, file, _ONE_NAME, None)
        size = os.fstat(file.fileno()).st_size
        if member.begin + member.nbytes != size:
            expected = member.begin + member.nbytes
            raise self._damaged(operation, _ONE_NAME, f"the file has {size} bytes, expected {expected}")
        yield _ONE_NAME, member

    def _zip_members(self, operation: str, file: io.FileIO) -> Iterator[tuple[str, _Member]]:
        assert self._archive is not None
        names = set()
        size = os.fstat(file.fileno()).st_size
        for info in self._archive.infolist():
            name = info.filename.removesuffix(".npy")
            if name in names or name == info.filename:
                raise self._damaged(operation, info.filename, "it is not a .npy file, or occurs twice")
            names.add(name)
            is_stored = info.compress_type == zipfile.ZIP_STORED
            if info.flag_bits & 1 or not (is_stored or info.compress_type == zipfile.ZIP_DEFLATED):
                problem = "it is encrypted, or compressed by another method than deflate"
                raise self._damaged(operation, name, problem)
            if info.file_size > info.compress_size * (1 if is_stored else _MAX_RATIO) or info.compress_size > size:
                problem = f"{info.compress_size} bytes cannot contain {info.file_size}"
                raise self._damaged(operation, name, problem)
            with self._archive.open(info) as stream:
                member = self._header(operation, stream, name, info)
            expected = member.begin + member.nbytes
            if expected != info.file_size:
                raise self._damaged(operation, name, f"it has {info.file_size} bytes, expected {expected}")
            if is_stored:
                begin = stored_bytes(file.fileno(), info).begin + member.begin
                member = member._replace(begin=begin, compressed=None, crc=info.CRC)
            yield name, member

    @contextmanager
    def _errors(self, operation: str, name: str) -> Iterator[None]:
        """Raises ValueError for what zipfile raises for damaged archives."""
        try:
            yield
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, struct.error, UnicodeError) as error:
            raise self._damaged(operation, name, safe_repr(error)) from None

    def _header(self, operation: str, stream: Any, name: str, compressed: zipfile.ZipInfo | None) -> _Member:
        """Reads the header of an array, of at most _MAX_HEADER bytes."""
        try:
            head = stream.read(8)
            version = tuple(head[6:8])
            if head[:6] != b"\x93NUMPY" or version not in ((1, 0), (2, 0)):
                raise ValueError("it is not a .npy file of version 1 or 2")
            length_bytes = stream.read(2 if version == (1, 0) else 4)
            length = int.from_bytes(length_bytes, "little")
            if length > _MAX_HEADER:
                raise ValueError(f"its header has {length} bytes")
            text = stream.read(length)
            content = io.BytesIO(length_bytes + text)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, is_fortran, dtype = read(content, max_header_size=_MAX_HEADER)
        except _HEADER_ERRORS as error:
            raise self._damaged(operation, name, safe_repr(error)) from None
        if dtype.hasobject or dtype.names is not None or dtype.subdtype is not None:
            raise failure(
                ValueError,
                operation,
                f"{name!a} has the dtype {dtype}, whose elements are Python objects or records",
                expected="arrays of numbers",
                fix="save it again as arrays of numbers: loading Python objects may run code",
            )
        if len(shape) > 64 or not all(type(size) is int and size >= 0 for size in shape):
            raise self._damaged(operation, name, f"its shape is {safe_repr(shape)}")
        crc = zlib.crc32(head + length_bytes + text)
        begin = 8 + len(length_bytes) + length
        return _Member(shape, dtype, is_fortran and len(shape) > 1, begin, compressed, crc)

    def _decompress(self, operation: str, member: _Member, dtype: np.dtype[Any], box: Box) -> np.ndarray[Any, Any]:
        """Reads the runs of a box, in the order of the bytes, and leaves out what is between them."""
        full, origin, shape = (tuple(part[axis] for axis in member.axes) for part in (member.shape, *box))
        out: np.ndarray[Any, Any] = internal.host_empty(shape, dtype)
        if not out.size:
            return out
        assert member.compressed is not None
        memory = _bytes_of(out)
        runs = _runs(full, origin, shape, dtype.itemsize)
        with self._errors(operation, member.compressed.filename):
            position = None
            for done, (begin, size) in enumerate(runs):
                position = position or self._take(operation, member.compressed, member.begin + begin)
                position.skip_to(member.begin + begin)
                position.read_into(memory[done * size : (done + 1) * size])
            assert position is not None
            if position.place == member.begin + member.nbytes:
                position.finish()
            else:
                self._put(position)
        return out

    def _take(self, operation: str, info: zipfile.ZipInfo, place: int) -> _Position:
        """Returns the last position at or before a place that no other thread uses, or the first one of the member."""
        with self._lock:
            found = [each for each in self._positions if each.name == info.filename and each.place <= place]
            if found:
                nearest = max(found, key=lambda each: each.place)
                self._positions.remove(nearest)
                return nearest
            if self._archive is None or self._archive.fp is None:  # another thread has closed it
                raise closed(operation)
            return _Position(info.filename, self._archive.open(info))

    def _put(self, position: _Position) -> None:
        with self._lock:
            self._positions.append(position)
            del self._positions[:-_MAX_POSITIONS]

    def _damaged(self, operation: str, name: str, problem: str) -> ValueError:
        return failure(
            ValueError,
            operation,
            f"{self._path!r}: {name!a} is damaged: {problem}",
            expected="a file of numpy.save, savez or savez_compressed",
            fix="copy the file again",
        )


def _bytes_of(array: np.ndarray[Any, Any]) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _runs(
    shape: tuple[int, ...], origin: tuple[int, ...], box: tuple[int, ...], itemsize: int
) -> Iterator[tuple[int, int]]:
    """Yields begin and size, in bytes, of the runs of a box in a row-major array, in their order."""
    outer = len(shape)
    run = itemsize
    while outer > 0:
        outer -= 1
        run *= box[outer]
        if box[outer] != shape[outer]:
            break
    strides = [itemsize * math.prod(shape[d + 1 :]) for d in range(len(shape))]
    base = sum(index * stride for index, stride in zip(origin, strides, strict=True))
    for indices in itertools.product(*map(range, box[:outer])):
        yield base + sum(index * stride for index, stride in zip(indices, strides, strict=False)), run
