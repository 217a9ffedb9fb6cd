# SPDX-License-Identifier: Apache-2.0
"""Files with the lengths of the samples of a source, or with running sums of them.

A file is a head of 256 bytes (the line MAGIC, a line of JSON, spaces) and little-endian int64s, 0 or more. It
is renamed into place when it is complete and never changed afterwards, so that processes can map it into memory.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import mmap
import os
import secrets
import stat
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_MAGIC = b"artifex_devices lengths 1\n"
_HEAD = 256  # bytes
_ITEM = 8


def digest_of_lengths(lengths: NDArray[np.int64]) -> str:
    """Returns a digest that is equal where all lengths are equal."""
    return hashlib.blake2b(np.ascontiguousarray(lengths, "<i8").data, digest_size=32).hexdigest()


def read_table(path: Path, key: str, count: int | None = None) -> tuple[NDArray[np.int64], str] | None:
    """Returns the numbers and their digest; None if there is no file, or it is damaged or of something else.

    Args:
        path: The file.
        key: Digest of what the numbers are of.
        count: Number of numbers; None: any.
    """
    try:
        # Not blocking: opening a named pipe would wait for its writer.
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        status = os.fstat(number)
        if count is None:
            count = max(0, status.st_size - _HEAD) // _ITEM
        if not stat.S_ISREG(status.st_mode) or status.st_size != _HEAD + _ITEM * count:
            return None
        head = os.pread(number, _HEAD, 0)
        mapped = mmap.mmap(number, status.st_size, access=mmap.ACCESS_READ)
    except OSError:
        return None
    finally:
        os.close(number)
    lengths: NDArray[np.int64] = np.frombuffer(mapped, "<i8", count, _HEAD)
    digest = digest_of_lengths(lengths)
    if head != _head(key, digest) or (count and int(lengths.min()) < 0):
        return None
    return lengths, digest


def write_table(path: Path, key: str, numbers: NDArray[np.int64]) -> str:
    """Writes a complete file or nothing, and returns the digest of the numbers.

    Raises:
        OSError: The file cannot be written.
    """
    digest = digest_of_lengths(numbers)
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        number = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        with os.fdopen(number, "wb") as file:
            file.write(_head(key, digest))
            file.write(np.ascontiguousarray(numbers, "<i8").data)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    return digest


def _head(key: str, digest: str) -> bytes:
    text = _MAGIC + json.dumps({"of": key, "digest": digest}).encode() + b"\n"
    return text.ljust(_HEAD - 1) + b"\n"
