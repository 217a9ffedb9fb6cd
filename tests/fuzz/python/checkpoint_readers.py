# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of others that Python parses: .npy and .npz, the metadata of torch (a pickle) and of Orbax (JSON)."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

from artifex_devices import checkpoint
from artifex_devices.checkpoint.readers.distcp_metadata import read_metadata
from artifex_devices.checkpoint.readers.orbax_metadata import read_tree_metadata
from oracle import check_refusal, require

MODULES = (
    "artifex_devices.checkpoint.detecting",
    "artifex_devices.checkpoint.readers.distcp_metadata",
    "artifex_devices.checkpoint.readers.npz_reader",
    "artifex_devices.checkpoint.readers.orbax_metadata",
    "artifex_devices.checkpoint.readers.pickled_records",
    "artifex_devices.checkpoint.readers.zip_members",
    "numpy.lib._format_impl",
    "zipfile",
)
_FOLDER = Path(tempfile.mkdtemp(prefix="fuzz-"))
_MOST_RATIO = 1032  # of deflate


def one_input(data: bytes) -> bool:
    """Whether it was accepted. The first byte chooses the format."""
    try:
        if data.startswith(b"\x80"):
            (_FOLDER / ".metadata").write_bytes(data)
            tensors, objects = read_metadata("open", str(_FOLDER))
            for place in (*objects.values(), *(chunk.place for each in tensors.values() for chunk in each.chunks)):
                require("/" not in place.file and place.file not in ("", "..") and place.begin >= 0, repr(place))
        elif data.startswith(b"{"):
            (_FOLDER / "_METADATA").write_bytes(data)
            found = read_tree_metadata("open", str(_FOLDER))
            require(found is not None and not any(".." in name.split("/") for name in found.names), repr(found))
        else:
            (_FOLDER / "a").write_bytes(data)
            read_all(_FOLDER / "a", len(data))
    except ValueError as error:
        return check_refusal(error, ValueError)
    return True


def read_all(path: Path, size: int) -> None:
    """Reads each array and a box of it; none has more bytes than the file can contain."""
    with checkpoint.open(path) as reader:
        require(all(line.isprintable() for line in str(reader).split("\n")), str(reader))
        for name in reader.names():
            try:
                dtype = reader.dtype(name)
            except ValueError as error:
                check_refusal(error, ValueError)
                continue
            shape = reader.shape(name)
            require(math.prod(shape) * dtype.itemsize <= size * _MOST_RATIO, f"{shape} of {size} bytes")
            full = reader.read(name)
            require((full.shape, full.dtype) == (shape, dtype), f"{full.shape} instead of {shape}")
            box = tuple(slice(length // 3, length) for length in shape)
            require(reader.read(name, box).tobytes() == full[box].tobytes(), f"another box of {name!r}")
