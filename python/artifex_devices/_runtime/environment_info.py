# SPDX-License-Identifier: Apache-2.0
"""print_environment_info: versions, devices and settings for a bug report."""

from __future__ import annotations

import os
import platform
import sys

import numpy as np

from artifex_devices import _core
from artifex_devices._base.checks import check_bool
from artifex_devices._core import internal

_PREFIXES = ("JAX_", "XLA_", "ARTIFEX_")


def print_environment_info(return_string: bool = False) -> str | None:
    """Prints versions, devices, processes and environment variables, which a bug report needs.

    `artifex_devices doctor` says more, and what to change.

    Args:
        return_string: Whether to return the text instead.

    Returns:
        The text, or None.

    Raises:
        TypeError: `return_string` is not a bool.

    Example:
        >>> import artifex_devices as ad
        >>> ad.print_environment_info(return_string=True).split(":")[0]
        'artifex_devices'
    """
    check_bool("print_environment_info", "return_string", return_string)
    client = internal.current_client()
    kind = client.devices()[0].device_kind
    lines = [
        f"artifex_devices: {_core.__version__}",
        f"numpy:  {np.__version__}",
        f"python: {' '.join(sys.version.split())}",
        f"device info: {kind}-{client.device_count()}, {client.local_device_count()} local devices",
        f"process_count: {client.process_count()}",
        f"platform: {platform.uname()}",
        *(f"{key}={value}" for key, value in os.environ.items() if key.startswith(_PREFIXES)),
    ]
    text = "\n".join(lines)
    if return_string:
        return text
    print(text)
    return None
