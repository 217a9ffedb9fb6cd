# SPDX-License-Identifier: Apache-2.0
"""Which Arrays are alive, and the freed memory that is kept for reuse."""

from __future__ import annotations

from artifex_devices import _core
from artifex_devices._base.clearable_cache import forget_all
from artifex_devices._core import Array
from artifex_devices._runtime.devices import check_backend

__all__ = ["clear_caches", "live_arrays"]


def live_arrays(platform: str | None = None) -> list[Array]:
    """All Arrays that are alive and not deleted, of all worlds.

    Args:
        platform: None or "cpu".

    Returns:
        A new list, oldest first; shards taken out of an Array do not count.

    Raises:
        RuntimeError: There is no such platform; the text says which there are.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> x = ad.device_put(np.ones(3))
        >>> any(x is y for y in ad.live_arrays())
        True
    """
    check_backend("live_arrays", platform)
    return _core.live_arrays()


def clear_caches() -> None:
    """Gives freed memory that is kept for reuse back to the system, and forgets what was worked out or made before.

    Arrays stay as they are, and so does the rest of the chunks of 2 MiB that small ones of them lie in.
    `memory_stats()["pool_bytes_cached"]` of the devices says how much memory there is. Layouts of operations keep
    meshes, and with them worlds that have ended, until then; meshes, shardings and index maps that are kept for the
    next call are let go of when their world ends too. All of it is bounded in number.

    Example:
        >>> import artifex_devices as ad
        >>> ad.clear_caches()
        >>> ad.devices()[0].memory_stats()["pool_bytes_cached"]
        0
    """
    forget_all()
    _core._forget_recent()
    _core._trim()
