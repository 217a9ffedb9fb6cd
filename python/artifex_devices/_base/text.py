# SPDX-License-Identifier: Apache-2.0
"""Numbers of bytes for people."""

from __future__ import annotations

_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def bytes_text(count: int) -> str:
    """The same text as in the core's messages: "512 bytes", "1.5 KiB", "256.0 MiB"."""
    if count < 1024:
        return f"{count} byte{'' if count == 1 else 's'}"
    value = count / 1024
    unit = 0
    while value >= 1024 and unit + 1 < len(_UNITS):
        value /= 1024
        unit += 1
    return f"{value:.1f} {_UNITS[unit]}"
