# SPDX-License-Identifier: Apache-2.0
"""open: finds the format of a checkpoint and returns its reader."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

from artifex_devices._base.checks import check_bool, check_choice, failure
from artifex_devices.checkpoint.detecting import FORMATS, Candidate, candidates, seen_in, why_not_others
from artifex_devices.checkpoint.folders import StrPath, check_path
from artifex_devices.checkpoint.links import check_links
from artifex_devices.checkpoint.readers.distcp_reader import DistcpReader
from artifex_devices.checkpoint.readers.npz_reader import NpzReader
from artifex_devices.checkpoint.readers.orbax_reader import OrbaxReader
from artifex_devices.checkpoint.readers.reader import Reader
from artifex_devices.checkpoint.readers.stored_reader import StoredReader
from artifex_devices.checkpoint.readers.torch_reader import TorchReader

_OPERATION = "checkpoint.open"


def open(path: StrPath, *, format: str | None = None, follow_links: bool = False) -> Reader:
    """Opens a checkpoint of this package or of another program, and returns a reader of its arrays.

    The contents decide which format it is. Only headers are read; nothing is unpickled without restriction.

    Args:
        path: Folder or file of the checkpoint. A step of Orbax may be named by its own folder or by the folder of its
            item `default` or `items`.
        format: "artifex", "safetensors", "dcp", "orbax", "npz" or "torch"; needed for a folder with several.
        follow_links: Whether files may be links that leave the folder. Links of a hub cache, from `snapshots` to
            `blobs`, are always read.

    Raises:
        FileNotFoundError: `path` does not exist, or an index names a file that is not there.
        ValueError: It has no known format, several, or another one than `format`; it is damaged or not complete; a
            link leaves the folder.
        ModuleNotFoundError: The format needs a library that is not installed.
        OSError: A file cannot be read.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> from artifex_devices import checkpoint
        >>> folder = tempfile.TemporaryDirectory()
        >>> checkpoint.save(f"{folder.name}/10", {"w": np.arange(6.0).reshape(3, 2)})
        >>> with checkpoint.open(f"{folder.name}/10") as reader:
        ...     reader.format, reader.names(), reader.read("w", (slice(1, 2),)).tolist()
        ('artifex', ('w',), [[2.0, 3.0]])
    """
    if format is not None:
        check_choice(_OPERATION, "format", format, FORMATS)
    check_bool(_OPERATION, "follow_links", follow_links)
    return open_reader(_OPERATION, check_path(_OPERATION, "path", path), format, follow_links)


def open_reader(
    operation: str, path: str, format: str | None, follow_links: bool, *, prefers_stored: bool = False
) -> Reader:
    """Opens a checkpoint; errors name `operation`.

    `prefers_stored`: whether files that the core reads come before files of PyTorch beside them, as in many hub
    folders, and anything of no known format is taken for such files, whose reader says what it is.
    """
    seen = candidates(path)
    found = _choose(operation, path, seen, format, prefers_stored)
    if not follow_links:
        check_links(operation, path, found.files)
    reader = _READERS[found.family](operation, found.path)
    if format is not None and reader.format != format:
        reader.close()
        raise failure(
            ValueError,
            operation,
            f"{path!r} has the format {reader.format!r}",
            expected=f"format={format!r}",
            fix=f"pass format={reader.format!r}",
        )
    reader.notes += why_not_others(found, seen)
    return reader


def _choose(operation: str, path: str, found: list[Candidate], format: str | None, prefers_stored: bool) -> Candidate:
    matching = [each for each in found if format is None or format in each.formats]
    if prefers_stored:
        matching = [each for each in found if each.family == "stored"] or matching
    if len(matching) == 1:
        return matching[0]
    if not found:
        is_absent = not (os.path.isfile(path) or os.path.isdir(path))
        if prefers_stored or is_absent or path.endswith(".safetensors"):  # the core raises what is wrong
            return Candidate("stored", FORMATS[:3], path, "")
        raise failure(
            ValueError,
            operation,
            f"{path!r} has no known format: {seen_in(path)}",
            expected=f"a checkpoint of one of the formats {', '.join(FORMATS)}",
            fix="correct the path",
        )
    seen = "; ".join(f"{' or '.join(each.formats)}: {each.reason}" for each in found)
    chosen = (matching or found)[0].formats[0]
    raise failure(
        ValueError,
        operation,
        f"{path!r} has several formats ({seen})" if matching else f"{path!r} is not of the format {format!r} ({seen})",
        expected="one" if matching else "that format",
        fix=f"pass format={chosen!r}"
        if operation == _OPERATION
        else f"pass checkpoint.open({path!r}, format={chosen!r})",
    )


_READERS: dict[str, Callable[[str, str], Reader]] = {
    "stored": StoredReader,
    "npy": partial(NpzReader, is_zip=False),
    "npz": partial(NpzReader, is_zip=True),
    "torch": TorchReader,
    "distcp": DistcpReader,
    "orbax": OrbaxReader,
}
