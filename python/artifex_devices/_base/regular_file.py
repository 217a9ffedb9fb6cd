# SPDX-License-Identifier: Apache-2.0
"""Files of others: read only if they are regular files, and not further than a limit."""

from __future__ import annotations

import errno
import gzip
import io
import os
import stat
from collections.abc import Callable, Iterator

_PIECE = 1 << 20  # bytes at a time, between which Ctrl-C and other threads get their turn
_GZIP = b"\x1f\x8b"


def read_regular_file(
    path: str | os.PathLike[str],
    limit: int,
    *,
    flags: int = 0,
    check: Callable[[os.stat_result], None] | None = None,
) -> bytes:
    """Returns the bytes of a regular file of at most `limit` bytes.

    Pipes and devices, whose read may never end, are refused without reading them.

    Args:
        path: The file.
        limit: Most bytes that it may have.
        flags: Further flags of os.open, such as os.O_NOFOLLOW.
        check: Called with the status of the open file; may raise.

    Raises:
        OSError: The file cannot be opened or read; of the class that `open` raises.
        ValueError: It is not a regular file, or has more bytes. The text goes after the path: "is not a regular file".

    Example:
        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile() as file:
        ...     _ = file.write(b"abc"), file.flush()
        ...     read_regular_file(file.name, 3)
        b'abc'
    """
    # Not blocking: opening a named pipe would wait for its writer.
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | flags)
    try:
        status = os.fstat(number)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("is not a regular file")
        if check is not None:
            check(status)
        if status.st_size > limit:
            raise ValueError(_too_large(limit))
        pieces = list(_pieces(number, limit + 1))
    finally:
        os.close(number)
    content = b"".join(pieces)
    if len(content) > limit:
        raise ValueError(_too_large(limit))
    return content


def _pieces(number: int, most: int) -> Iterator[bytes]:
    while most > 0:
        piece = os.read(number, min(_PIECE, most))
        if not piece:
            return
        most -= len(piece)
        yield piece


def decompressed(content: bytes, limit: int) -> bytes:
    """Returns content, decompressed if it is compressed by gzip, of at most `limit` bytes.

    Raises:
        ValueError: It has more bytes when it is decompressed; the text goes after the path.
        gzip.BadGzipFile, EOFError, zlib.error: It is damaged.
    """
    if not content.startswith(_GZIP):
        return content
    pieces = []
    size = 0
    with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
        while piece := file.read(_PIECE):
            size += len(piece)
            if size > limit:
                raise ValueError(f"{_too_large(limit)} when it is decompressed")
            pieces.append(piece)
    return b"".join(pieces)


def _too_large(limit: int) -> str:
    is_even = 0 < limit < 1 << 20 and limit % 1024 == 0
    return f"has more than {limit >> 10} KiB" if is_even else f"has more than {limit} bytes"
