# SPDX-License-Identifier: Apache-2.0
"""Archives and their files: bounded reads, and where members that are not compressed begin."""

from __future__ import annotations

import io
import os
import stat
import struct
import zipfile
import zlib
from typing import NamedTuple

from artifex_devices._base.checks import failure

MAX_DIRECTORY = 64 << 20  # bytes of the directory of an archive
_LOCAL = struct.Struct("<4s5H3I2H")  # what stands before a member


class StoredBytes(NamedTuple):
    """Consecutive bytes of a file, and their CRC-32; 0 if they have none, as PyTorch writes on request."""

    begin: int
    nbytes: int
    crc: int


class BoundedFile(io.FileIO):
    """A file of which a read returns at most the bytes that a directory may have: zipfile reads it at once."""

    def read(self, size: int | None = -1, /) -> bytes:
        """Reads `size` bytes, or to the end; ValueError if they are more than a directory may have."""
        most = MAX_DIRECTORY + 1
        content = super().read(most if size is None or size < 0 else min(size, most))
        if len(content) == most:
            raise ValueError(f"the directory has more than {MAX_DIRECTORY} bytes")
        return content

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Changes the position; BadZipFile for one that a file cannot have, which a damaged directory states."""
        if whence == os.SEEK_SET and not 0 <= offset < 1 << 63:
            raise zipfile.BadZipFile("the directory states a wrong place")
        return super().seek(offset, whence)

    def __del__(self) -> None:
        """Closes the file, as zipfile does not close what it did not open."""
        self.close()


def open_regular(operation: str, path: str) -> io.FileIO:
    """Opens a regular file, without waiting for the writer of a pipe; ValueError for another file."""
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise failure(
            ValueError, operation, f"{path!r} is not a regular file", expected="a file", fix="correct the path"
        )
    return open(number, "rb", buffering=0)


def stored_bytes(descriptor: int, info: zipfile.ZipInfo, archive_begin: int = 0) -> StoredBytes:
    """Returns where a member that is not compressed is in a file, of an archive that begins at `archive_begin`.

    Raises:
        ValueError: There is no member at the place that the directory states.
    """
    place = archive_begin + info.header_offset
    head = os.pread(descriptor, _LOCAL.size, place)
    if len(head) != _LOCAL.size or not head.startswith(b"PK\x03\x04"):
        raise ValueError("the directory states a wrong place")
    fields = _LOCAL.unpack(head)
    return StoredBytes(place + _LOCAL.size + int(fields[-2]) + int(fields[-1]), info.file_size, info.CRC)


def read_stored(descriptor: int, stored: StoredBytes) -> bytes:
    """Returns the bytes of a small member; ValueError if the file ends before, or another checksum is stated."""
    content = os.pread(descriptor, stored.nbytes, stored.begin)
    if len(content) != stored.nbytes or stored.crc not in (0, zlib.crc32(content)):
        raise ValueError(f"the checksum of its bytes from {stored.begin} is wrong")
    return content
