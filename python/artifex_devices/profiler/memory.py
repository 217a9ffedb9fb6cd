# SPDX-License-Identifier: Apache-2.0
"""Memory profiles of devices."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

from artifex_devices._runtime.devices import client_of


def device_memory_profile(backend: str | None = None) -> bytes:
    """Writes the memory that Arrays hold, by device and by the line that created them, for the tool `pprof`.

    Lines are known for Arrays that were created under `config.update("trace_allocations", True)`.

    Args:
        backend: None or "cpu".

    Returns:
        A pprof profile, compressed by gzip.

    Raises:
        RuntimeError: Unknown backend.

    Example:
        >>> import gzip, artifex_devices as ad
        >>> len(gzip.decompress(ad.profiler.device_memory_profile())) > 0
        True
    """
    return gzip.compress(client_of("device_memory_profile", backend).heap_profile())


def save_device_memory_profile(filename: str | os.PathLike[str], backend: str | None = None) -> None:
    """Writes `device_memory_profile(backend)` to a file.

    Args:
        filename: Path of the file.
        backend: None or "cpu".

    Raises:
        OSError: The file cannot be written.
        RuntimeError: Unknown backend.
    """
    Path(filename).write_bytes(device_memory_profile(backend))
