# SPDX-License-Identifier: Apache-2.0
"""The end of the library's threads."""

from __future__ import annotations

import sys

from artifex_devices import _core

__all__ = ["shutdown"]


def shutdown() -> None:
    """Ends the library's threads, after the copies under way; the next big copy or program starts them anew.

    Example:
        >>> import artifex_devices
        >>> artifex_devices.shutdown()
    """
    for name in ("artifex_devices._spmd.threaded", "artifex_devices._spmd.watchdog"):
        module = sys.modules.get(name)  # what was never loaded has no thread
        if module is not None:
            module.shutdown()
    _core._shutdown()
