# SPDX-License-Identifier: Apache-2.0
"""Names that were in `jax.experimental`."""

from __future__ import annotations

from artifex_devices.scopes import enable_x64

__all__ = ["disable_x64", "enable_x64"]


def disable_x64() -> enable_x64:
    """`enable_x64(False)`.

    Example:
        >>> import artifex_devices as ad
        >>> from artifex_devices.experimental import disable_x64
        >>> with disable_x64():
        ...     ad.device_put(7).dtype
        dtype('int32')
    """
    return enable_x64(False)
