# SPDX-License-Identifier: Apache-2.0
"""metadata: the contents of a checkpoint, without a device."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from artifex_devices._base.checks import check_bool
from artifex_devices._base.public_path import public
from artifex_devices._base.text import bytes_text, counted, printable, table_lines
from artifex_devices.checkpoint.detecting import candidates
from artifex_devices.checkpoint.folders import StrPath, check_path
from artifex_devices.checkpoint.links import check_links
from artifex_devices.checkpoint.manifest import Value, value_text
from artifex_devices.checkpoint.named_leaves import list_of
from artifex_devices.checkpoint.stored import PartMetadata, Stored

_OPERATION = "checkpoint.metadata"


@public("artifex_devices.checkpoint")
class ArrayMetadata(NamedTuple):
    """One array of a checkpoint.

    Attributes:
        shape: Shape of the global array.
        dtype: Its dtype; None for a type of the file that has no dtype here.
        type: Type in the files, such as F32.
        parts: The stored boxes.
        shape_is_derived: Whether no file states the shape, as in checkpoints of torch.distributed.checkpoint. It is
            then that of the parts that are there, and a part missing at the end cannot be noticed.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any] | None
    type: str
    parts: tuple[PartMetadata, ...]
    shape_is_derived: bool = False

    @property
    def nbytes(self) -> int:
        """Bytes of all stored boxes."""
        return sum(part.nbytes for part in self.parts)


@public("artifex_devices.checkpoint")
@dataclass(frozen=True)
class CheckpointMetadata:
    """The contents of a checkpoint, returned by `metadata`.

    Attributes:
        path: Absolute path of the checkpoint.
        arrays: ArrayMetadata of each array, by name.
        values: Python values, by name.
        process_count: Number of processes that saved it, or None for files of other programs.
    """

    path: str
    arrays: Mapping[str, ArrayMetadata]
    values: Mapping[str, Value]
    process_count: int | None

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self.arrays.values())

    def to_json(self) -> str:
        """Returns everything as JSON."""
        arrays = {
            name: {
                "shape": array.shape,
                "dtype": None if array.dtype is None else array.dtype.name,
                "type": array.type,
                "nbytes": array.nbytes,
                "parts": [part._asdict() for part in array.parts],
                "shape_is_derived": array.shape_is_derived,
            }
            for name, array in self.arrays.items()
        }
        values = {
            name: {"type": type(value).__name__, "value": value_text(value, str)} for name, value in self.values.items()
        }
        document = {"path": self.path, "process_count": self.process_count, "nbytes": self.nbytes}
        return json.dumps({**document, "arrays": arrays, "values": values}, indent=2)

    def __str__(self) -> str:
        """Formats a table of names, types, shapes, parts and bytes."""
        rows = [("name", "dtype", "shape", "parts", "bytes")]
        for name, array in self.arrays.items():
            dtype = array.type if array.dtype is None else array.dtype.name
            parts = str(len(array.parts))
            rows.append((printable(name), printable(dtype), str(array.shape), parts, bytes_text(array.nbytes)))
        for name, value in self.values.items():
            rows.append((printable(name), type(value).__name__, value_text(value, repr)[:40], "", ""))
        files = len({part.file for array in self.arrays.values() for part in array.parts})
        total = f"{counted(len(self.arrays), 'array')}, {bytes_text(self.nbytes)} in {counted(files, 'file')}"
        derived = [name for name, array in self.arrays.items() if array.shape_is_derived]
        note = [f"shape derived from the parts present, no file states it: {list_of(derived)}"] if derived else []
        return "\n".join([printable(self.path), *table_lines(rows), *note, total])


def metadata(path: StrPath, *, follow_links: bool = False) -> CheckpointMetadata:
    """Returns the contents of a checkpoint: names, shapes, dtypes, stored parts and bytes. No device is used.

    Args:
        path: Folder of the checkpoint, one safetensors file, or an index of safetensors files.
        follow_links: Whether files may be links that leave the folder, as in `checkpoint.open`.

    Raises:
        FileNotFoundError: `path` has no checkpoint, or an index names a file that is not there.
        ValueError: It is damaged or not complete; several files do not say that they belong together; a link leaves
            the folder.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> from artifex_devices import checkpoint
        >>> folder = tempfile.TemporaryDirectory()
        >>> checkpoint.save(f"{folder.name}/10", {"w": np.ones((8, 2), np.float32), "step": 10})
        >>> found = checkpoint.metadata(f"{folder.name}/10")
        >>> found.arrays["w"].shape, found.arrays["w"].nbytes, found.values["step"]
        ((8, 2), 64, 10)
    """
    check_bool(_OPERATION, "follow_links", follow_links)
    name = check_path(_OPERATION, "path", path)
    if not follow_links:
        check_links(
            _OPERATION, name, [file for each in candidates(name) if each.family == "stored" for file in each.files]
        )
    stored = Stored(_OPERATION, name)
    arrays: dict[str, ArrayMetadata] = stored.files.describe(ArrayMetadata, PartMetadata)
    return CheckpointMetadata(
        stored.path, MappingProxyType(arrays), MappingProxyType(stored.values), stored.process_count
    )
