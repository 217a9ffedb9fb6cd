# SPDX-License-Identifier: Apache-2.0
"""The repr of a caller's value for messages: shortened where it is long; a repr that raises does not hide the message."""

from __future__ import annotations

from artifex_devices._core import _safe_repr as safe_repr

__all__ = ["safe_repr"]
