# SPDX-License-Identifier: Apache-2.0
"""Live Arrays, caches of freed memory and results, and the end of the library's threads."""

from __future__ import annotations

import sys

from artifex_devices import _core
from artifex_devices._base.clearable_cache import clear_all
from artifex_devices._core import Array, internal
from artifex_devices._runtime.devices import client_of


def live_arrays(platform: str | None = None) -> list[Array]:
    """Returns the Arrays that are alive and not deleted, of all worlds.

    Args:
        platform: "cpu" or "gpu" for the Arrays on its devices, or None for all.

    Returns:
        A new list, oldest first, without shards taken out of an Array.

    Raises:
        RuntimeError: The platform is not available; the text lists the available ones.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> x = ad.device_put(np.ones(3))
        >>> any(x is y for y in ad.live_arrays())
        True
    """
    arrays = _core.live_arrays()
    if platform is None:
        return arrays
    platform = client_of("live_arrays", platform).platform
    return [array for array in arrays if next(iter(array.sharding.device_set)).platform == platform]


def clear_caches() -> None:
    """Returns freed memory that is cached for reuse to the system, and empties the caches of results.

    Arrays are not affected, and neither are the chunks of 2 MiB that hold small Arrays.
    `memory_stats()["pool_bytes_cached"]` of the devices is the number of cached bytes. Cached layouts of operations
    keep meshes alive, and with them worlds that have ended; a mapped function keeps the last 4 worlds that it ran in.
    Cached meshes, shardings and index maps are also released when their world ends. All caches are bounded.

    Example:
        >>> import artifex_devices as ad
        >>> ad.clear_caches()
        >>> ad.devices()[0].memory_stats()["pool_bytes_cached"]
        0
    """
    clear_all()
    internal.forget_recent()
    internal.trim()


def shutdown() -> None:
    """Ends the library's threads after the copies under way; the next big copy or program starts them again.

    Example:
        >>> import artifex_devices
        >>> artifex_devices.shutdown()
    """
    for name in ("artifex_devices._spmd.threaded", "artifex_devices._spmd.watchdog"):
        module = sys.modules.get(name)  # a module that was never loaded has no thread
        if module is not None:
            module.shutdown()
    internal.shutdown()
