# SPDX-License-Identifier: Apache-2.0
"""convert: another number of files for the arrays of a checkpoint, piece by piece and without a device."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from artifex_devices._base.checks import check_bool, check_int
from artifex_devices._core import internal
from artifex_devices.checkpoint import manifest
from artifex_devices.checkpoint.folders import StagingFolder, StrPath, check_path
from artifex_devices.checkpoint.manifest import Manifest
from artifex_devices.checkpoint.reporting import check_progress, run_reported
from artifex_devices.checkpoint.stored import Stored

_OPERATION = "checkpoint.convert"


def convert(
    source: StrPath,
    target: StrPath,
    *,
    num_files: int = 1,
    overwrite: bool = False,
    progress: Callable[[int], None] | None = None,
) -> None:
    """Writes the arrays and values of a checkpoint to a new checkpoint, with another number of files.

    Arrays are copied in pieces of 1 MiB: none is in memory as a whole, and no device is used.

    Args:
        source: Folder of a checkpoint of any program that `restore` reads, one safetensors file, or an index.
        target: Folder of the new checkpoint.
        num_files: Number of files. Each has an equal part of each array, as that many processes would save it.
        overwrite: Whether a checkpoint at `target` is replaced.
        progress: Called with the number of bytes written so far: after each file, and ten times a second on another
            thread while a file is written. `metadata(source).nbytes` is the total.

    Raises:
        FileNotFoundError: `source` has no checkpoint.
        FileExistsError: `target` exists and `overwrite` is false.
        ValueError: The source is damaged, or has a type that has no dtype here.
        OSError: A file cannot be read or written.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> from artifex_devices import checkpoint
        >>> folder = tempfile.TemporaryDirectory()
        >>> checkpoint.save(f"{folder.name}/one", {"w": np.arange(6)})
        >>> checkpoint.convert(f"{folder.name}/one", f"{folder.name}/two", num_files=2)
        >>> [part.shape for part in checkpoint.metadata(f"{folder.name}/two").arrays["w"].parts]
        [(3,), (3,)]
    """
    check_int(_OPERATION, "num_files", num_files, "write 1", minimum=1, maximum=99_999)
    check_bool(_OPERATION, "overwrite", overwrite)
    check_progress(_OPERATION, progress)
    stored = Stored(_OPERATION, check_path(_OPERATION, "source", source))
    arrays = {name: (array.shape, stored.dtype_of(name)) for name, array in stored.arrays.items()}
    staging = StagingFolder(_OPERATION, check_path(_OPERATION, "target", target), overwrite)
    try:
        staging.create()
        names = list(arrays)
        parts: list[internal.SavePart] = []
        for index in range(num_files):
            part = internal.SavePart(_OPERATION)
            parts.append(part)
            internal.add_stored(part, stored.files, index, num_files)
            write = partial(part.write, staging.folder, names, index)
            run_reported(write, lambda: sum(part.bytes_written for part in parts), progress)
        manifest.write(staging.folder, Manifest(arrays, stored.values, num_files, stored.paths))
        staging.commit()
    except BaseException:
        staging.abandon()
        raise
