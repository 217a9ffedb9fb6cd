# SPDX-License-Identifier: Apache-2.0
"""Names that were in `jax.experimental`."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from artifex_devices._base.public_lookup import missing_name
from artifex_devices._runtime.scopes import enable_x64

if TYPE_CHECKING:
    from artifex_devices import mesh_utils, multihost_utils
    from artifex_devices.experimental import shard_map

__all__ = ["disable_x64", "enable_x64", "mesh_utils", "multihost_utils", "shard_map"]


def __getattr__(name: str) -> Any:
    if name in ("mesh_utils", "multihost_utils", "shard_map"):  # imported at their first use
        package = __name__ if name == "shard_map" else "artifex_devices"
        return importlib.import_module(f"{package}.{name}")
    raise missing_name(__name__, name)


def __dir__() -> list[str]:
    return sorted(__all__)


def disable_x64() -> enable_x64:
    """Disables 64-bit types: `enable_x64(False)`.

    Example:
        >>> import artifex_devices as ad
        >>> from artifex_devices.experimental import disable_x64
        >>> with disable_x64():
        ...     ad.device_put(7).dtype
        dtype('int32')
    """
    return enable_x64(False)
