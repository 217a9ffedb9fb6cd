# SPDX-License-Identifier: Apache-2.0
"""Files of torch.save: which of a folder are the model, and where the elements of tensors are in a file."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Iterable

from artifex_devices.checkpoint.readers.zip_members import MAX_DIRECTORY, StoredBytes, read_stored, stored_bytes

INDEX = ".bin.index.json"
_SUFFIXES = (".bin", ".pt", ".pth")
# Files that Transformers' Trainer and Megatron write beside a model.
_COMPANIONS = ("common.", "optimizer", "rng_state", "scaler.", "scheduler.", "training_args.")
ARCHIVE_ERRORS = (zipfile.BadZipFile, ValueError, EOFError, NotImplementedError, struct.error)


def model_files(names: Iterable[str]) -> list[str]:
    """Returns the files of torch.save in a folder, without the state of a trainer."""
    return [name for name in names if name.endswith(_SUFFIXES) and not name.startswith(_COMPANIONS)]


def storages_of(archive: zipfile.ZipFile, descriptor: int, begin: int = 0) -> dict[int, StoredBytes]:
    """Returns the storages of an archive, by its first byte in the file.

    Args:
        archive: The archive.
        descriptor: The file that contains it.
        begin: First byte of the archive in the file.

    Raises:
        ARCHIVE_ERRORS: It is damaged, compressed, or big-endian.
    """
    storages = {}
    for info in archive.infolist():
        name = info.filename.partition("/")[2]
        if info.compress_type != zipfile.ZIP_STORED:
            raise ValueError("it is compressed")
        stored = stored_bytes(descriptor, info, begin)
        if name == "byteorder" and (stored.nbytes != 6 or read_stored(descriptor, stored) != b"little"):
            raise ValueError("its numbers are big-endian")
        if name == "data.pkl" and stored.nbytes <= MAX_DIRECTORY:  # PyTorch does not compare its checksum
            read_stored(descriptor, stored)
        if name.startswith("data/"):
            storages[stored.begin] = stored
    return storages


def axes_of(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...] | None:
    """Returns the dimensions in the order of the memory of a dense tensor, or None for another tensor."""
    if 0 in shape:
        return tuple(range(len(shape)))
    axes = sorted(range(len(shape)), key=lambda axis: (-strides[axis], -shape[axis], axis))
    expected = 1
    for axis in reversed(axes):
        if shape[axis] != 1 and strides[axis] != expected:
            return None
        expected *= shape[axis]
    return tuple(axes)
